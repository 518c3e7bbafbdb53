"""Ranks that share a GPU: at the same time, as under MPS, or one after another in time slices.

Measured with 1 to 8 ranks of 16 programs on an H200: docs/devices.md.
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from whatif.models.quantities import Count, FloatArray, Seconds, model

_SOURCE = "whatif, from programs with 1 to 8 ranks on an H200"


@model("X_r = r X", "definition")
def of_all_ranks(quantity: FloatArray, rank_count: Count) -> FloatArray:
    """Blocks, data in a cache, or times of the ranks that use a device together; X is that of one. Elementwise."""
    return quantity * rank_count


@model("t = t_s max(r Σ w, T_k / τ_s) if r > 1, else 0", _SOURCE)
def switching_time(
    kernel_time: Seconds, ranks_per_gpu: Count, switch_time: Seconds, time_slice: Seconds, *wait_counts: Count
) -> Seconds:
    """Time of an iteration in which the device switches from one rank to another.

    It switches when the rank that has it waits (`wait_counts`, w) and at the end of a `time_slice` (τ_s);
    `switch_time` is t_s, `kernel_time` T_k that of the kernels of all r ranks (`ranks_per_gpu`). Elementwise over any
    broadcastable shapes; valid for r ≥ 1, τ_s > 0, counts ≥ 0.
    """
    waits = ranks_per_gpu * reduce(add, wait_counts, np.asarray(0.0))
    return np.where(ranks_per_gpu > 1, switch_time * np.maximum(waits, kernel_time / time_slice), 0.0)
