"""Ranks that share a GPU: at the same time, as under MPS, or one after another in time slices.

Measured with 1 to 8 ranks of 16 programs on an H200: docs/devices.md.
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from whatif.models.quantities import Bytes, Count, Seconds, model

_SOURCE = "whatif, from programs with 1 to 8 ranks on an H200"


@model("n_r = r n_b", "definition: the blocks of all ranks fill the device together")
def joint_blocks(block_count: Count, ranks_at_once: Count) -> Count:
    """Blocks, or products of a batch, of all ranks whose kernels run at the same time on a device. Elementwise."""
    return block_count * ranks_at_once


@model("S_r = r S", "definition: the data of all ranks share the cache")
def joint_working_set(working_set: Bytes, ranks_at_once: Count) -> Bytes:
    """Data that all ranks at the same time on a device use again. Elementwise."""
    return working_set * ranks_at_once


@model("t_r = r t_l", "definition: nothing else runs on the device")
def sliced_launch_time(launch_time: Seconds, ranks_per_gpu: Count) -> Seconds:
    """Time of a launch of each of r ranks whose launches follow one another. Elementwise."""
    return launch_time * ranks_per_gpu


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
