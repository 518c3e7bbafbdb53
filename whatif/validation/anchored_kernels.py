"""Kernels anchored to the time on one GPU and predicted on another: measured RAJA Performance Suite kernels."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from typing import Final

import numpy as np

from whatif.schema.gpu import GPU
from whatif.schema.load import load_part
from whatif.units import ONE, Dimension
from whatif.validation.measured_kinds import ErrorTable, Rows, error_table, joined_by

_PARTS: Final = {"V100": "v100-sxm2-16gb", "GH200": "gh200-96gb", "MI300A": "mi300a"}
TRIAD: Final = "Stream_TRIAD"
"""Kernel whose rate is the memory bandwidth of a device."""
LIMITING: Final = ("bytes_B", "operations_flop", "time_us")
"""Numbers of a kernel that its limit follows from."""
LIMITS: Final = ("memory bandwidth", "arithmetic", "caches, latency")
_BOUND: Final = 0.6
"""Share of the measured time that a memory-bound kernel spends at the rate of the triad, at least."""
_COMPUTING: Final = 0.2
"""Share of the measured time that a compute-bound kernel would take at the peak, at least."""


def anchored_kernels(rows: Rows) -> ErrorTable:
    """Errors of kernel times on one GPU that were predicted from another, by the resource that limits them.

    A time is multiplied by the work here over the work there, and by the ratio of the binding roofs: the memory
    bandwidth by the triad of the same suite, or the peak double-precision rate.
    """
    kernels: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        kernels.setdefault(row["kernel"], {})[row["device"]] = {key: float(row[key]) for key in LIMITING}
    kernels = {name: known for name, known in kernels.items() if len(known) == len(_PARTS)}
    columns: dict[str, Dimension | None] = {"measured on": None, "predicted on": None, "limit": None}
    columns |= dict.fromkeys(("kernels", "mean absolute error", "bias", "median error"), ONE)
    table = [
        (here, there, limit, len(errors), np.abs(errors).mean(), np.mean(errors), np.median(np.abs(errors)))
        for here, there in permutations(_PARTS, 2)
        for limit, errors in _errors(kernels, here, there).items()
    ]
    title = "kernels anchored to one GPU and predicted on another (RAJA Performance Suite)"
    means = joined_by([str(row[2]) for row in table], [[float(number) for number in row[3:6]] for row in table])
    return error_table(columns, table, title, means)


def _errors(kernels: Mapping[str, Mapping[str, Mapping[str, float]]], here: str, there: str) -> dict[str, list[float]]:
    """Errors by limiting resource."""
    bandwidth = {gpu: times["bytes_B"] / times["time_us"] for gpu, times in kernels[TRIAD].items()}
    peak = {gpu: peak_rate(gpu) for gpu in (here, there)}
    found: dict[str, list[float]] = {}
    for known in kernels.values():
        if known[here]["bytes_B"] == 0 or known is kernels[TRIAD]:
            continue
        limiting = limit(known[here], bandwidth[here], peak[here])
        work, roof = ("operations_flop", peak) if limiting == "arithmetic" else ("bytes_B", bandwidth)
        predicted = known[here]["time_us"] * known[there][work] / known[here][work] * roof[here] / roof[there]
        found.setdefault(limiting, []).append(predicted / known[there]["time_us"] - 1)
    return dict(sorted(found.items(), key=lambda item: item[0] != "memory bandwidth"))


def limit(kernel: Mapping[str, float], bandwidth: float, peak: float) -> str:
    """Limit of a kernel, one of `LIMITS`, by the bandwidth of the triad in B/us and the peak in flop/us."""
    if kernel["bytes_B"] / bandwidth >= _BOUND * kernel["time_us"]:
        return LIMITS[0]
    return LIMITS[1] if kernel["operations_flop"] / peak >= _COMPUTING * kernel["time_us"] else LIMITS[2]


def peak_rate(gpu: str) -> float:
    """Peak double-precision rate of a device, in flop/us."""
    part = load_part(_PARTS[gpu])
    assert isinstance(part, GPU)
    return part.number("peak_double_rate") * 1e-6
