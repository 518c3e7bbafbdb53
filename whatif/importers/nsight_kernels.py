"""Kernels on the roofline from metrics of Nsight Compute, with the roofs that the recorded metrics suffice for.

All roofs need the metrics that gpuroofperf took from nvprof, which does not run on GPUs after Volta: operations
W = add + mul + 2 fma of the dominant precision (or the integer operations, if there are no others), operation
efficiency = W / (2 (W - fma)), and as shares of all 32 lanes of all instructions the add + mul + fma and the loads and
stores. Source: NVIDIA, Nsight Compute documentation (its comparison with nvprof's metrics).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.importers.kernel_phases import KERNEL_COLUMNS
from whatif.importers.nsight_compute import BLOCK_SIZE, BLOCKS, TIME
from whatif.importers.rows import row_table
from whatif.importers.text import refuse
from whatif.table import Table

_THREADS = "sass_thread_inst_executed_op_{}_pred_on.sum"
_LETTERS: Final = {"fp_64": "d", "fp_32": "f", "fp_16": "h"}
_OPERATIONS: Final = {
    kind: [_THREADS.format(f"{x}{op}") for op in ("add", "mul", "fma")] for kind, x in _LETTERS.items()
}
_INTEGER: Final = _THREADS.format("integer")
Sums = Sequence[Mapping[str, float]]
"""Sources of one quantity: metrics with their factors; the first one with all metrics recorded is used."""
_DRAM: Final[Sums] = (
    {"dram__bytes.sum": 1},
    {"dram__bytes_read.sum": 1, "dram__bytes_write.sum": 1},
    {"dram__bytes_op_read.sum": 1, "dram__bytes_op_write.sum": 1},
    {"dram__sectors_read.sum": 32, "dram__sectors_write.sum": 32},
)
_L2: Final[Sums] = (
    {"lts__t_bytes.sum": 1},
    {"lts__t_sectors.sum": 32},
    {"lts__t_sectors_op_read.sum": 32, "lts__t_sectors_op_write.sum": 32},
)
_INSTRUCTIONS: Final[Sums] = ({"inst_executed.sum": 32}, {"thread_inst_executed.sum": 1})
_LOADS_STORES: Final[Sums] = (
    {_THREADS.format("memory"): 1},
    {"sass_inst_executed_op_ld.sum": 32, "sass_inst_executed_op_st.sum": 32},
)
METRICS: Final = (
    TIME, *_DRAM[0], *_L2[0], "smsp__inst_executed.sum",
    *(f"smsp__{name}" for names in _OPERATIONS.values() for name in names),
    *(f"smsp__{_THREADS.format(kind)}" for kind in ("integer", "memory")),
)  # fmt: skip
"""The metrics to record, for `ncu --csv --page raw --metrics`."""


def kernel_metrics(table: Table) -> Table:
    """Kernels with `KERNEL_COLUMNS`, mean of their launches, from a table of `parse_nsight_compute`.

    `metrics_per` is `launch`; NaN for what the recorded metrics do not give. Warnings name the metrics that a roof
    lacks, the kernels that are left out because half precision dominates or no roof is left, and those with work of
    tensor cores, which is in none of the counts. Raise `InvalidFileError` if no kernel is left, with the command
    that records all metrics.
    """
    file = table.notes.get("file", "")
    if "kernel" not in table.columns or "launch_count" not in table.columns:
        raise UsageError("not a table of kernel launches from Nsight Compute")
    means = list(_means(table))
    warnings = _lacks(means)
    rows = []
    for kernel, metrics in means:
        row = _phase(metrics)
        warnings += _doubts(kernel, row, metrics)
        if row["dominant_operation"] != "fp_16" and _has_roof(row):
            rows.append({"kernel": kernel, **row})
    if not rows:
        command = f"ncu --csv --page raw --metrics {','.join(METRICS)} PROGRAM"
        raise refuse(file, "\n".join(["no kernel that could be used:", *warnings, f"this records all:\n{command}"]))
    notes = {key: value for key, value in table.notes.items() if key != "warnings"}
    return row_table(rows, KERNEL_COLUMNS, notes, [f"{file}: {warning}" for warning in warnings])


def _means(table: Table) -> Iterator[tuple[str, dict[str, float]]]:
    """Recorded metrics of each kernel, mean over its launches, and `launch_count`."""
    kernels = table.columns["kernel"].values
    counts = table.columns["launch_count"].values
    for kernel in dict.fromkeys(kernels.tolist()):
        chosen = kernels == kernel
        means = {"launch_count": float(counts[chosen].sum())}
        for name, column in table.columns.items():
            known = chosen & np.isfinite(column.values) if column.dimension is not None else chosen[:0]
            if name != "launch_count" and known.any():
                means[name] = float(np.average(column.values[known], weights=counts[known]))
        yield kernel, means


def _sum(metrics: Mapping[str, float], ways: Sums) -> float | None:
    for way in ways:
        if way.keys() <= metrics.keys():
            return sum(factor * metrics[name] for name, factor in way.items())
    return None


def _recorded(metrics: Mapping[str, float]) -> dict[str, list[float]]:
    """Additions, multiplications and multiply-adds of the precisions that have all three."""
    return {
        kind: [metrics[name] for name in names] for kind, names in _OPERATIONS.items() if metrics.keys() >= {*names}
    }


def _missing(metrics: Mapping[str, float]) -> dict[str, list[str]]:
    """The metrics that are missing, by what follows from their absence."""
    recorded = _recorded(metrics)
    operations = []
    if not recorded:
        operations = [name for name in _OPERATIONS["fp_64"] if name not in metrics]
    elif not any(map(sum, recorded.values())) and _INTEGER not in metrics:
        operations = [_INTEGER]
    instructions = [] if _sum(metrics, _INSTRUCTIONS) else ["inst_executed.sum"]
    loads = [] if _sum(metrics, _LOADS_STORES) is not None else [_THREADS.format("memory")]
    lacks = {
        "no roof of compute": [f"smsp__{name}" for name in operations],
        "no roof of DRAM": [] if _sum(metrics, _DRAM) is not None else ["dram__bytes.sum"],
        "no roof of L2": [] if _sum(metrics, _L2) is not None else ["lts__t_bytes.sum"],
        "the mix of instructions does not lower the roof of compute": [
            f"smsp__{name}" for name in instructions + loads
        ],
        "no measured time": [] if TIME in metrics else [TIME],
    }
    if operations:
        del lacks["the mix of instructions does not lower the roof of compute"]
    return {effect: names for effect, names in lacks.items() if names}


def _lacks(means: Sequence[tuple[str, Mapping[str, float]]]) -> list[str]:
    """Note on values that the recorded metrics lack, for all kernels or the named ones."""
    kernels: dict[str, list[str]] = {}
    for kernel, metrics in means:
        for effect, names in _missing(metrics).items():
            verb = "is" if len(names) == 1 else "are"
            text = f"{effect}: {', '.join(f'`{name}`' for name in names)} {verb} not in the file"
            kernels.setdefault(text, []).append(kernel)
    return [text if len(named) == len(means) else f"{text} for {', '.join(named)}" for text, named in kernels.items()]


def _has_roof(row: Mapping[str, Any]) -> bool:
    return any(math.isfinite(row[name]) for name in ("operations", "dram_size", "l2_size"))


def _phase(metrics: Mapping[str, float]) -> dict[str, Any]:
    loads_stores, instructions = _sum(metrics, _LOADS_STORES), _sum(metrics, _INSTRUCTIONS)
    dominant, compute_count, fused = _dominant(metrics)
    operations = compute_count + fused
    shares: tuple[float | None, float | None] = (None, None)
    if dominant and instructions and loads_stores is not None:
        shares = compute_count / instructions, loads_stores / instructions
    row = {
        "operations": operations if dominant else None,
        "dram_size": _sum(metrics, _DRAM),
        "l2_size": _sum(metrics, _L2),
        "operation_efficiency": operations / (2 * compute_count) if compute_count else 1.0,
        "compute_fraction": shares[0],
        "load_store_fraction": shares[1],
        "reference_time": metrics.get(TIME),
        **{name: float(round(metrics[name])) for name in (BLOCKS, BLOCK_SIZE) if name in metrics},
    }
    return {
        "dominant_operation": dominant,
        "metrics_per": "launch",
        "profiled_launch_count": metrics["launch_count"],
        BLOCKS: math.nan,
        BLOCK_SIZE: math.nan,
        **{name: math.nan if value is None else value for name, value in row.items()},
    }


def _dominant(metrics: Mapping[str, float]) -> tuple[str, float, float]:
    """The precision of most operations, its instructions, and those of them that are multiply-adds; empty for none."""
    recorded = _recorded(metrics)
    kind = max(recorded, key=lambda kind: sum(recorded[kind]), default="")
    if kind and sum(recorded[kind]):
        return kind, sum(recorded[kind]), recorded[kind][2]
    return ("integer", metrics[_INTEGER], 0.0) if kind and _INTEGER in metrics else ("", 0.0, 0.0)


def _doubts(kernel: str, row: Mapping[str, Any], metrics: Mapping[str, float]) -> Iterator[str]:
    absent = [kind for kind in _OPERATIONS if kind not in _recorded(metrics)]
    if row["dominant_operation"] == "fp_16":
        yield f"left out, half-precision operations dominate: {kernel}"
    elif not _has_roof(row):
        yield f"left out, no roof: {kernel}"
    elif row["dominant_operation"] and ("fp_32" in absent or "fp_64" in absent):
        told = f"{' and '.join(absent)} operations were not recorded"
        yield f"{told}, {row['dominant_operation']} may not dominate: {kernel}"
    if any("tensor" in name and count > 0 for name, count in metrics.items()):
        yield f"work of tensor cores is not in these counts: {kernel}"
