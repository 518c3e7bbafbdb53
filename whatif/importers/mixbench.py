"""mixbench: rates over operational intensity, as the CUDA, HIP, OpenCL, SYCL and CPU programs print them.

The text has the program's name with its version, the device's specification, a line `CSV data`, two heading lines
(the kinds of operation, four columns each: `Flops/byte, ex.time, GFLOPS, GB/sec`), the rows, a closing line. Time
is in ms, rates in 1e9 operations or bytes a second. Versions before 0.02 have no `Flops/byte`.
Source: mixbench; E. Konstantinidis, Y. Cotronis, JPDC 107, 2017.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from whatif.importers.numbers import number_of
from whatif.importers.rows import row_table
from whatif.importers.text import refuse
from whatif.table import Table
from whatif.units import BYTE_PER_SECOND, FLOP_PER_BYTE, FLOP_PER_SECOND, SECOND, Dimension

COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "precision": None,
    "operational_intensity": FLOP_PER_BYTE,
    "time": SECOND,
    "rate": FLOP_PER_SECOND,
    "bandwidth": BYTE_PER_SECOND,
}
"""Columns of the table; `precision` is `single`, `packed single`, `double`, `half` or `integer`."""

_MEASURES: Final[Mapping[str, tuple[str, float]]] = {
    "flops/byte": ("operational_intensity", 1.0),
    "iops/byte": ("operational_intensity", 1.0),
    "ex.time": ("time", 1e-3),
    "time": ("time", 1e-3),
    "gflops": ("rate", 1e9),
    "giops": ("rate", 1e9),
    "gb/sec": ("bandwidth", 1e9),
}
_FIRST_HEADINGS: Final = ("experiment id", "operations ratio")
_VERSION = re.compile(r"^mixbench\S*\s+\((\S+)\)", re.MULTILINE)
_DEVICE = re.compile(r"^Device:[ \t]*(\S.*)$", re.MULTILINE)
_DATASHEET = {
    "peak_single_rate": (re.compile(r"^Compute throughput:\s*([0-9.]+) GFlops", re.MULTILINE), "Gflop/s"),
    "dram_bandwidth": (re.compile(r"^Memory bandwidth:\s*([0-9.]+) GB/sec", re.MULTILINE), "GB/s"),
}
Headings = Sequence[tuple[str, str, float]]
"""Precision, measure and unit in base units of each column after the first."""


def parse_mixbench(text: str, file: str = "<text>") -> Table:
    """One row per precision and operational intensity, with `COLUMNS`; runs in one file on the same device are joined.

    Notes: `version`, `device`, and the specification's `datasheet.peak_single_rate` and `datasheet.dram_bandwidth`.
    A precision that the device cannot do (no time, an infinite rate) has no rows. Raise `InvalidFileError` if
    there is no table, or a row is cut off or no number.
    """
    lines = text.split("\n")
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    starts = [number for number, line in enumerate(lines, 1) if line.strip().lower().startswith(_FIRST_HEADINGS)]
    for start in starts:
        rows += _block(file, lines, start, warnings)
    if not rows:
        message = "no rows of measurements" if starts else "no table of mixbench (`Experiment ID, ..`)"
        raise refuse(file, message, starts[0] if starts else 0)
    devices = dict.fromkeys(name.strip() for name in _DEVICE.findall(text))
    if len(devices) > 1:
        raise refuse(file, f"runs on different devices: {', '.join(devices)}; write each to a separate file")
    return row_table(rows, COLUMNS, _notes(text, file, devices), warnings)


def _notes(text: str, file: str, devices: Mapping[str, None]) -> dict[str, str]:
    version = _VERSION.search(text)
    notes = {"tool": "mixbench", "file": file, "device": next(iter(devices), "")}
    notes |= {"version": version[1] if version else ""}
    for parameter, (pattern, unit) in _DATASHEET.items():
        if match := pattern.search(text):
            notes[f"datasheet.{parameter}"] = f"{match[1]} {unit}"
    return notes


def _block(file: str, lines: Sequence[str], start: int, warnings: list[str]) -> Iterator[dict[str, Any]]:
    """Rows of the table whose first heading is in line `start` (from 1)."""
    if len(lines) <= start or not lines[start].strip():
        raise refuse(file, "the second heading line is missing; is the file cut off?", start)
    headings = _headings(file, lines, start)
    number = start + 1
    for number in range(start + 2, len(lines) + 1):
        line = lines[number - 1].strip()
        if not line or line.startswith("---"):
            break
        yield from _row(file, number, headings, line, warnings)
    closed = number <= len(lines) and lines[number - 1].strip().startswith("---")
    if not closed and "CSV data" in lines[start - 2]:
        warnings.append(f"{file}: the closing line of the table is missing; the file may be cut off")


def _headings(file: str, lines: Sequence[str], start: int) -> Headings:
    kinds = [cell.strip() for cell in lines[start - 1].split(",")][1:]
    measures = [cell.strip().lower() for cell in lines[start].split(",")][1:]
    unknown = [measure for measure in measures if measure not in _MEASURES]
    if unknown:
        known = ", ".join(_MEASURES)
        raise refuse(file, f"unknown column `{unknown[0]}` (known: {known})", start + 1)
    headings, kind = [], ""
    for index, measure in enumerate(measures):
        kind = (kinds[index] if index < len(kinds) else "") or kind
        headings.append((_precision(kind), *_MEASURES[measure]))
    for precision in dict.fromkeys(name for name, _, _ in headings):
        missing = {"time", "rate", "bandwidth"} - {measure for name, measure, _ in headings if name == precision}
        if missing:
            raise refuse(file, f"no {min(missing)} under `{precision}`; is the heading cut off?", start + 1)
    return headings


def _precision(kind: str) -> str:
    """`single` for `Single Precision ops`, `integer` for `Integer operations`."""
    return re.sub(r"\s+(precision\s+)?(ops|operations)$", "", kind.lower())


def _row(file: str, number: int, headings: Headings, line: str, warnings: list[str]) -> Iterator[dict[str, Any]]:
    cells = line.split(",")[1:]
    if len(cells) != len(headings):
        message = f"{len(cells)} values under {len(headings)} headings; is the file cut off?"
        raise refuse(file, message, number)
    by_precision: dict[str, dict[str, float]] = {}
    for (precision, measure, unit), cell in zip(headings, cells, strict=True):
        by_precision.setdefault(precision, {})[measure] = number_of(cell, file, number, precision) * unit
    for precision, values in by_precision.items():
        rate, bandwidth = values["rate"], values["bandwidth"]
        if not (values["time"] > 0 and 0 <= rate < math.inf and 0 <= bandwidth < math.inf and rate + bandwidth > 0):
            warnings.append(f"{file}: {precision}: rows without a time or rate are left out")
            continue
        intensity = rate / bandwidth if bandwidth else math.inf
        yield {"precision": precision, "operational_intensity": intensity, **values}
