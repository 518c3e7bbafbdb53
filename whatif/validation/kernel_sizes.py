"""Kernels timed on a V100 at one size and predicted at smaller ones: the RAJA Performance Suite.

The work of a kernel at each size, its launches and its threads are counts of the suite. The time at the largest size
states `measured_factor` and `launch_time`, as in a profile; blocks, launches and waits are those of the models.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.importers.kernel_anchors import KernelAnchor
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.units import ONE, SECOND, Dimension
from whatif.validation.anchored_kernels import LIMITING, TRIAD, limit, peak_rate
from whatif.validation.measured_kinds import ErrorTable, Kinds, Row, Rows, mean_errors, numbers, summarised_table

ANCHOR: Final = 2**23
"""Elements of the measured times that the kernels are anchored to."""
_GPU: Final = "V100"
_MULTIPROCESSORS: Final = 80
_SCENARIO: Final = parse_document(
    """
[application]
name = "kernel"
rank_count = 1
iteration_count = 1
[application.phases.kernel]
kind = "kernel"
model = "roofline"
dominant_operation = "fp_64"
metrics_per = "rank"
operations = "1 flop"
dram_size = "1 B"
block_count = 1
block_size = 256
blocks_follow = "nothing"
launch_time = "2 us"
measured_factor = 1
[application.phases.copy]
kind = "transfer"
direction = "device_to_host"
transfer_size = "8 B"
transfer_count = 0
blocking = true
""",
    "kernels of the RAJA Performance Suite",
)
_WAITS: Final = {
    **dict.fromkeys(("Algorithm_REDUCE_SUM", "Basic_PI_REDUCE", "Basic_REDUCE3_INT", "Basic_REDUCE_STRUCT"), 2),
    **dict.fromkeys(("Basic_TRAP_INT", "Lcals_FIRST_MIN", "Stream_DOT"), 2),
    **dict.fromkeys(("Basic_INDEXLIST", "Basic_INDEXLIST_3LOOP"), 1),
}
"""Copies of a few bytes that the host waits for: the sources of the suite set a sum and read it, or read a count."""
BOUNDS: Final = {
    "few blocks": 0.1,
    "host waits": 0.1,
    "memory bandwidth": 0.05,
    "arithmetic": 0.05,
    "caches, latency": 0.2,
}
"""Largest mean absolute error of each kind of kernels."""


def kernel_sizes(rows: Rows) -> ErrorTable:
    """One row per kernel, block size and number of elements: measured time, and times from the largest size.

    `linear` is the time by elements alone, `predicted` that of the models.
    """
    wanted, known = anchored(rows)
    measured, elements = times_of(wanted), numbers(wanted, "elements")
    found, limited = predictions(wanted, known), kinds(known)
    series = (elements, measured, times_of(known) * elements / ANCHOR, found, found / measured - 1)
    cells = [
        (row["kernel"], float(row["block_size"]), kind, *values)
        for row, kind, *values in zip(wanted, limited.tolist(), *series, strict=True)
    ]
    columns: dict[str, Dimension | None] = {"kernel": None, "block_size": ONE, "kind": None, "elements": ONE}
    columns |= dict.fromkeys(("measured", "linear", "predicted"), SECOND) | {"error": ONE}
    title = "kernels on a V100, from their times with 2^23 elements"
    return summarised_table(columns, cells, title, mean_errors(limited, series[-1], BOUNDS))


def anchored(rows: Rows) -> tuple[Rows, Rows]:
    """Rows of a V100 with fewer elements than the largest size, and the row of each that it is anchored to."""
    times = [row for row in rows if row["device"] == _GPU]
    largest = {(row["kernel"], row["block_size"]): row for row in times if float(row["elements"]) == ANCHOR}
    wanted = [row for row in times if float(row["elements"]) < ANCHOR]
    return wanted, [largest[row["kernel"], row["block_size"]] for row in wanted]


def times_of(rows: Rows) -> FloatArray:
    """Measured times in s."""
    return numbers(rows, "time_us") * 1e-6


def kinds(known: Rows) -> Kinds:
    """Limit of each kernel at the largest size."""
    (triad,) = {numbers([row], "bytes_B")[0] / times_of([row])[0] for row in known if _is_triad(row)}
    limits = [limit({key: float(row[key]) for key in LIMITING}, triad * 1e-6, peak_rate(_GPU)) for row in known]
    waits = np.array([row["kernel"] in _WAITS for row in known])
    few = shape(known)["block_count"] < _MULTIPROCESSORS
    return np.select([waits, few], ["host waits", "few blocks"], np.array(limits))


def _is_triad(row: Row) -> bool:
    return row["kernel"] == TRIAD and row["block_size"] == "256"


def predictions(rows: Rows, known: Rows, gpu: Mapping[str, float] = MappingProxyType({})) -> FloatArray:
    """Predicted times in s of `rows`, each anchored to the measured time of the same kernel in `known`.

    `gpu` are values of the GPU other than those of its part.
    """
    before, there = _evaluated(known, {}, gpu), shape(known)
    empty = before["platform.node.gpu.empty_kernel_time"].item()
    kernels = times_of(known) - before["copy"]
    anchors = [
        KernelAnchor(time, {"roof": roof}, count, empty)
        for time, roof, count in zip(kernels, before["kernel.roofline"], there["launch_count"], strict=True)
    ]
    factors = np.array([(anchor.measured_factor, anchor.launch_time) for anchor in anchors]).T
    stated = np.where(np.isnan(factors), [[1.0], [empty]], factors)
    return _evaluated(rows, dict(zip(("measured_factor", "launch_time"), stated, strict=True)), gpu)["iteration.time"]


def _evaluated(rows: Rows, stated: Mapping[str, FloatArray], gpu: Mapping[str, float]) -> dict[str, FloatArray]:
    """Values of the scenario for each row, with what is stated of its kernels."""
    work = {"operations": numbers(rows, "operations_flop"), "dram_size": numbers(rows, "bytes_B")}
    values = {f"application.phases.kernel.{key}": value for key, value in {**work, **shape(rows), **stated}.items()}
    values["application.phases.copy.transfer_count"] = np.array([_WAITS.get(row["kernel"], 0.0) for row in rows])
    values |= {f"platform.node.gpu.{key}": np.array([value]) for key, value in gpu.items()}
    return evaluate(Scenario(_SCENARIO, "lassen").program, values).values


def shape(rows: Rows) -> dict[str, FloatArray]:
    """Launches of each kernel, and blocks and threads of one; each thread has one iteration.

    The suite counts two launches of a kernel whose iterations need 80: a launch has at most one for each element.
    """
    iterations, size = numbers(rows, "iterations"), numbers(rows, "block_size")
    launches = np.maximum(numbers(rows, "launches"), np.round(iterations / numbers(rows, "elements")))
    return {"launch_count": launches, "block_count": np.ceil(iterations / launches / size), "block_size": size}
