"""Nsight Compute: kernel metrics from `ncu --csv`, in the long form, the raw page, or the summary per kernel.

The long form has a row a launch and metric: `"ID",..,"Kernel Name",..,"Metric Name","Metric Unit","Metric Value"`; the
summary (`--print-summary per-kernel`) has `"Invocations",..,"Average"` instead. The raw page (`--page raw`) has a
column a metric and the units in its second line. Lines of the tool and of the program around them are skipped.
Values have thousands separators and scaled, decimal units (`usecond` or `us`, `Mbyte`), or are `n/a`.

A kernel phase needs those that gpuroofperf took from nvprof, which does not run on GPUs after Volta:
operations W = add + mul + 2 fma of the dominant precision (or the integer operations, where there are no others),
operation efficiency = W / (2 (W - fma)), and as shares of all 32 lanes of all instructions the add + mul + fma and
the loads and stores. Source: NVIDIA, Nsight Compute documentation (its comparison with nvprof's metrics).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.errors import InvalidFileError, Problem, UsageError
from whatif.importers.kernel_phases import KERNEL_COLUMNS
from whatif.importers.rows import row_table
from whatif.importers.text import read_text, refuse
from whatif.schema.toml import shown_path
from whatif.table import Table
from whatif.units import BYTE, ONE, SECOND, Dimension

_THREADS = "sass_thread_inst_executed_op_{}_pred_on.sum"
_LETTERS: Final = {"fp_64": "d", "fp_32": "f", "fp_16": "h"}
_OPERATIONS: Final = {
    kind: [_THREADS.format(f"{x}{op}") for op in ("add", "mul", "fma")] for kind, x in _LETTERS.items()
}
_INTEGER: Final = _THREADS.format("integer")
Sums = Sequence[Mapping[str, float]]
"""Sources of one quantity: metrics with their factors; the first one with all metrics recorded is used."""
_TIME: Final[Sums] = ({"gpu__time_duration.sum": 1},)
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
    *next(iter(_TIME)), *next(iter(_DRAM)), *next(iter(_L2)), "smsp__inst_executed.sum",
    *(f"smsp__{name}" for names in _OPERATIONS.values() for name in names),
    *(f"smsp__{_THREADS.format(kind)}" for kind in ("integer", "memory")),
)  # fmt: skip
"""The metrics to record, for `ncu --csv --page raw --metrics`."""

_USED = re.compile(
    r"(gpu__time_duration|dram__(bytes|sectors)\w*|lts__t_(bytes|sectors)\w*|sm(sp)?__(sass_)?(thread_)?inst_executed\w*"
    r"|sm__ops_path_tensor\w*)\.sum"
)
_DEVICE_NAME: Final = "device__attribute_display_name"
_NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?([eE][+-]?\d+)?")
_UNITS: Final[Mapping[str, tuple[Dimension, float]]] = {
    "nsecond": (SECOND, 1e-9), "usecond": (SECOND, 1e-6), "msecond": (SECOND, 1e-3), "second": (SECOND, 1.0),
    "ns": (SECOND, 1e-9), "us": (SECOND, 1e-6), "ms": (SECOND, 1e-3), "s": (SECOND, 1.0),
    "byte": (BYTE, 1.0), "Kbyte": (BYTE, 1e3), "Mbyte": (BYTE, 1e6), "Gbyte": (BYTE, 1e9), "Tbyte": (BYTE, 1e12),
    "": (ONE, 1.0), "inst": (ONE, 1.0), "sector": (ONE, 1.0), "op": (ONE, 1.0),
}  # fmt: skip


def read_nsight_compute(path: Path) -> Table:
    """The output of `ncu --csv` at a path; see `parse_nsight_compute`."""
    return parse_nsight_compute(read_text(path), shown_path(path))


def parse_nsight_compute(text: str, file: str = "<text>") -> Table:
    """One row a launch (in a summary: a kernel): `kernel`, `launch_count`, and a column in base units a metric.

    Only metrics that `kernel_metrics` uses are kept; `sm__` and `smsp__`, whose sums are the same, are left out of
    their names. NaN for `n/a`. Raise `InvalidFileError` for no table, a row that is cut off, a value that is no number
    or an unknown unit.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.startswith('"')]
    rows = [(number, _cells(file, number, line)) for number, line in lines]
    start = next((index for index, (_, row) in enumerate(rows) if "Kernel Name" in row), None)
    if start is None:
        error = re.search(r"^==ERROR== .*", text, re.MULTILINE)
        reason = f"; error of ncu: {error[0]}" if error else ""
        raise refuse(file, f'no heading with "Kernel Name" as `ncu --csv` prints it{reason}')
    headings = rows[start][1]
    if other := next((number for number, row in rows[start:] if "Kernel Name" in row and row != headings), 0):
        raise refuse(file, "a second table with other columns; write each to a separate file", other)
    table = [(number, row) for number, row in rows[start + 1 :] if row != headings]
    notes = {"tool": "Nsight Compute", "file": file}
    launches = (_long if "Metric Name" in headings else _wide)(file, headings, table, notes)
    if not launches:
        raise refuse(file, "no kernel under the heading", rows[start][0])
    names = dict.fromkeys(name for launch in launches for name in launch)
    dimensions = {"kernel": None, "launch_count": ONE} | {name: _dimension(name) for name in names if "." in name}
    missing = dict.fromkeys(dimensions, math.nan)
    return row_table([missing | launch for launch in launches], dimensions, notes)


def _cells(file: str, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise refuse(file, f"not CSV: {error}", number) from None


Rows = Sequence[tuple[int, list[str]]]


def _long(file: str, headings: Sequence[str], rows: Rows, notes: dict[str, str]) -> list[dict[str, Any]]:
    value_heading = "Metric Value" if "Metric Value" in headings else "Average"
    if absent := {"Metric Unit", value_heading} - set(headings):
        raise refuse(file, f"no column `{min(absent)}`", rows[0][0] - 1 if rows else 0)
    # The columns before the section and the metric identify the launch.
    identity = min(headings.index(name) for name in ("Section Name", "Metric Name") if name in headings)
    launches: dict[tuple[str, ...], dict[str, Any]] = {}
    for number, row in rows:
        cells = _named(file, number, headings, row)
        key = tuple(row[:identity])
        if key not in launches:
            launches[key] = _launch(file, number, cells)
        name = cells["Metric Name"]
        if plain := _plain(name):
            launches[key][plain] = _value(file, number, name, cells["Metric Unit"], cells[value_heading])
        elif name == _DEVICE_NAME:
            notes["device"] = cells[value_heading]
    return list(launches.values())


def _wide(file: str, headings: Sequence[str], rows: Rows, notes: dict[str, str]) -> list[dict[str, Any]]:
    if not rows:
        return []
    units = _named(file, rows[0][0], headings, rows[0][1])
    if units["Kernel Name"]:
        raise refuse(file, "the second line of a raw page has units, this one has values", rows[0][0])
    launches = []
    for number, row in rows[1:]:
        cells = _named(file, number, headings, row)
        if not cells["Kernel Name"]:
            continue  # the units again, where outputs were joined
        launch = _launch(file, number, cells)
        for name in filter(_plain, headings):
            launch[_plain(name)] = _value(file, number, name, units[name], cells[name])
        notes |= {"device": cells[_DEVICE_NAME]} if _DEVICE_NAME in cells else {}
        launches.append(launch)
    return launches


def _launch(file: str, number: int, cells: Mapping[str, str]) -> dict[str, Any]:
    count = _value(file, number, "Invocations", "", cells.get("Invocations", "1"))
    if not count >= 1:
        raise refuse(file, "a kernel of a profile is launched at least once", number, "Invocations")
    return {"kernel": cells["Kernel Name"], "launch_count": count}


def _named(file: str, number: int, headings: Sequence[str], row: Sequence[str]) -> dict[str, str]:
    # Rows of rules at the end of a long form may be shorter or longer; the columns that are used come before them.
    needed = headings.index("Rule Name") if "Rule Name" in headings else len(headings)
    if len(row) < needed or (needed == len(headings) and len(row) > needed):
        raise refuse(file, f"{len(row)} values under {len(headings)} headings; is the file cut off?", number)
    return dict(zip(headings, row, strict=False))


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    """A metric's name without the unit of the device it was summed over; empty for one that is not used."""
    return re.sub(r"^sm(sp)?__(?!ops)", "", name) if _USED.fullmatch(name) else ""


def _dimension(name: str) -> Dimension:
    return SECOND if "time_duration" in name else BYTE if "bytes" in name else ONE


def _value(file: str, number: int, name: str, unit: str, text: str) -> float:
    if text in ("n/a", "", "nan"):
        return math.nan
    if not _NUMBER.fullmatch(text):
        raise refuse(file, f"`{text}` is not a number such as 1,234.5; run ncu with LC_ALL=C", number, name)
    dimension, size = _UNITS.get(unit, (None, math.nan))
    if dimension != _dimension(name):
        raise refuse(file, f"unexpected unit `{unit}`; run ncu with --print-units base", number, name)
    if text.startswith("-"):
        raise refuse(file, f"`{text}` is negative: nothing of a kernel is less than 0", number, name)
    return float(text.replace(",", "")) * size


def kernel_metrics(table: Table) -> Table:
    """Kernels with `KERNEL_COLUMNS`, mean of their launches, from a table of `parse_nsight_compute`.

    `metrics_per` is `launch`. Kernels dominated by half precision are left out with a warning, and there is a warning
    for work of tensor cores, which is in none of the counts. `l2_size` and `reference_time` may be missing. Raise
    `InvalidFileError` for other metrics that were not recorded, with the command that records them.
    """
    file = table.notes.get("file", "")
    if "kernel" not in table.columns or "launch_count" not in table.columns:
        raise UsageError("not a table of kernel launches from Nsight Compute")
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    missing: dict[str, None] = {}
    for kernel, metrics in _means(table):
        absent = _missing(metrics)
        if absent:
            missing |= dict.fromkeys(absent)
            continue
        row = _phase(metrics)
        warnings += _doubts(kernel, row, metrics)
        if row["dominant_operation"] != "fp_16":
            rows.append({"kernel": kernel, **row})
    if missing:
        raise InvalidFileError([Problem(file, 0, 0, "", _advice(list(missing)))])
    if not rows:
        raise refuse(file, "no kernel that could be used:\n" + "\n".join(warnings))
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


def _missing(metrics: Mapping[str, float]) -> list[str]:
    needed = {"dram__bytes.sum": _DRAM, "smsp__inst_executed.sum": _INSTRUCTIONS}
    needed[f"smsp__{_THREADS.format('memory')}"] = _LOADS_STORES
    absent = [name for name, ways in needed.items() if _sum(metrics, ways) is None]
    if _sum(metrics, _INSTRUCTIONS) == 0:
        absent.append("smsp__inst_executed.sum")
    floating = [names for names in _OPERATIONS.values() if metrics.keys() >= set(names)]
    if not floating:
        absent += [f"smsp__{name}" for name in _OPERATIONS["fp_64"]]
    if not any(metrics[name] for names in floating for name in names) and _INTEGER not in metrics:
        absent.append(f"smsp__{_INTEGER}")
    return absent


def _advice(missing: Sequence[str]) -> str:
    command = f"ncu --csv --page raw --metrics {','.join(METRICS)} PROGRAM"
    return f"not recorded: {', '.join(missing)}; record the metrics of a kernel phase with\n{command}"


def _phase(metrics: Mapping[str, float]) -> dict[str, Any]:
    recorded = {
        kind: [metrics[name] for name in names] for kind, names in _OPERATIONS.items() if metrics.keys() >= {*names}
    }
    dominant = max(recorded, key=lambda kind: sum(recorded[kind]))
    add, multiply, fused = recorded[dominant]
    if add + multiply + fused == 0:
        dominant, add, multiply, fused = "integer", metrics[_INTEGER], 0.0, 0.0
    compute_count = add + multiply + fused
    operations = compute_count + fused
    instruction_count = _sum(metrics, _INSTRUCTIONS) or math.nan
    l2_size, time = _sum(metrics, _L2), _sum(metrics, _TIME)
    return {
        "dominant_operation": dominant,
        "metrics_per": "launch",
        "profiled_launch_count": metrics["launch_count"],
        "operations": operations,
        "dram_size": _sum(metrics, _DRAM),
        "l2_size": math.nan if l2_size is None else l2_size,
        "operation_efficiency": operations / (2 * compute_count) if compute_count else 1.0,
        "compute_fraction": compute_count / instruction_count,
        "load_store_fraction": (_sum(metrics, _LOADS_STORES) or 0.0) / instruction_count,
        "reference_time": math.nan if time is None else time,
    }


def _doubts(kernel: str, row: Mapping[str, Any], metrics: Mapping[str, float]) -> Iterator[str]:
    absent = [kind for kind, names in _OPERATIONS.items() if not metrics.keys() >= {*names}]
    if row["dominant_operation"] == "fp_16":
        yield f"left out, half-precision operations dominate: {kernel}"
    elif "fp_32" in absent or "fp_64" in absent:
        told = f"{' and '.join(absent)} operations were not recorded"
        yield f"{told}, {row['dominant_operation']} may not dominate: {kernel}"
    if any("tensor" in name and count > 0 for name, count in metrics.items()):
        yield f"work of tensor cores is not in these counts: {kernel}"
