"""BabelStream (GPU-STREAM) and STREAM: memory bandwidths, as text or as BabelStream's CSV (`--csv`).

Text has a head (`Version:`, `Implementation:`, `Precision:`, `Array size: 268.4 MB`, `Using CUDA device ..`,
`Driver:`) and a table `Function  MBytes/sec  Min (sec)  Max  Average`; a run of triad alone has `Bandwidth (GB/s):`.
STREAM's table is `Function  Best Rate MB/s  Avg time  Min time  Max time`. The heading says the unit: MB and GB are
1e6 and 1e9 bytes, MiB and GiB 2^20 and 2^30. The bandwidth is that of the shortest time.
Source: T. Deakin et al., GPU-STREAM v2.0; J. D. McCalpin, STREAM.
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
from whatif.units import BYTE, BYTE_PER_SECOND, SECOND, Dimension, UnitError, parse_quantity

COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "function": None,
    "array_size": BYTE,
    "bandwidth": BYTE_PER_SECOND,
    "time": SECOND,
    "minimum_time": SECOND,
    "maximum_time": SECOND,
}
"""Columns of the table; `function` is `copy`, `mul`, `add`, `triad`, `dot` or `nstream`, `array_size` that of one
array, `time` the mean. Values that are missing are NaN."""
ARRAY_COUNTS: Final = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2, "nstream": 4}
"""Arrays that a function reads and writes."""

_UNITS: Final = {
    "mbytes/sec": 1e6, "mibytes/sec": 2.0**20, "gbytes/sec": 1e9, "gibytes/sec": 2.0**30,
    "mb/s": 1e6, "mib/s": 2.0**20, "gb/s": 1e9, "gib/s": 2.0**30,
    "max_mbytes_per_sec": 1e6, "max_mibytes_per_sec": 2.0**20, "gbytes_per_sec": 1e9, "gibytes_per_sec": 2.0**30,
}  # fmt: skip
_RUN = re.compile(r"(?=^(?:BabelStream|GPU-STREAM|STREAM version)\b)", re.MULTILINE)
_TABLE = re.compile(r"Function\s+(?:Best )?(?:Rate )?\(?(\S+?)\)?\s+(Min|Avg)\b")
_TRIAD = re.compile(r"Bandwidth \((\S+)\):\s*(\S+)")
_CSV = "function,num_times,n_elements,sizeof,"
_NOTES: Final = {
    "version": re.compile(r"^(?:STREAM version \$Revision|Version): *([0-9.]+)", re.MULTILINE),
    "implementation": re.compile(r"^Implementation: *(\S.*)$", re.MULTILINE),
    "precision": re.compile(r"^Precision: *(\S+)", re.MULTILINE),
    "device": re.compile(r"^Using \w+ device\s+(\S.*)$", re.MULTILINE),
    "driver": re.compile(r"^Driver: *(\S.*)$", re.MULTILINE),
}
_INVALID = re.compile(r"^(?:Validation failed on|Failed Validation on) .*", re.MULTILINE)
_ARRAY = re.compile(r"^Array size: *([0-9]+\.?[0-9]*) *([MG]i?B)\b", re.MULTILINE)
_ELEMENTS = re.compile(r"^(?:Array size = |Number of elements: |Resizing array from [0-9]+ to )([0-9]+)", re.MULTILINE)
_ELEMENT_SIZE = re.compile(r"^This system uses ([0-9]+) bytes", re.MULTILINE)


def parse_babelstream(text: str, file: str = "<text>") -> Table:
    """One row per function, with `COLUMNS`; notes `version`, `implementation`, `precision`, `device`, `driver`.

    Several runs in one file follow one another. Rows whose bandwidth, time and array size disagree, and results that
    the program found wrong, cause a warning. Raise `InvalidFileError` for an unknown unit, a row that is cut off or no
    number, or no table at all.
    """
    rows = list(_rows(text, file))
    if not rows:
        raise refuse(file, "no table of BabelStream or STREAM (`Function  MBytes/sec ..`), or one without rows")
    doubtful = [row["function"] for row in rows if not _agrees(row)]
    warnings = []
    if doubtful:
        names = ", ".join(doubtful)
        warnings.append(f"{file}: bandwidth, time and array size do not agree for {names}; was the file edited?")
    if invalid := _INVALID.search(text):
        warnings.append(f"{file}:{_line(invalid)}: rates of wrong results: `{invalid[0][:60]}`")
    stated = {name: dict.fromkeys(map(str.strip, pattern.findall(text))) for name, pattern in _NOTES.items()}
    notes = {name: "; ".join(values) for name, values in stated.items()}
    tool = "STREAM" if "STREAM version" in text else "BabelStream"
    return row_table(rows, COLUMNS, {"tool": tool, "file": file, **notes}, warnings)


def _rows(text: str, file: str) -> Iterator[dict[str, Any]]:
    lines, array_sizes, array_size = text.split("\n"), dict(_array_sizes(text, file)), math.nan
    for number, line in enumerate(lines, 1):
        array_size = array_sizes.get(number, array_size)
        if match := _TABLE.match(line):
            yield from _text_rows(file, lines, number, match, array_size)
        elif match := _TRIAD.match(line):
            yield _row("triad", array_size, _float(file, number, match[2]) * _unit(file, number, match[1]))
        elif line.replace(";", ",").startswith(_CSV):
            yield from _csv_rows(file, lines, number)


def _agrees(row: Mapping[str, Any]) -> bool:
    """Whether the bytes moved are those of the arrays, to 2 % and the five decimals that times are printed with."""
    moved = row["bandwidth"] * row["minimum_time"] / ARRAY_COUNTS[row["function"]]
    if not math.isfinite(moved) or not math.isfinite(row["array_size"]):
        return True
    return bool(abs(moved / row["array_size"] - 1) <= 0.02 + 1e-5 / row["minimum_time"])


def _array_sizes(text: str, file: str) -> Iterator[tuple[int, float]]:
    """First line of each run, and the size of its arrays."""
    line = 1
    for run in _RUN.split(text):
        yield line, _array_size(run, file, line)
        line += run.count("\n")


def _array_size(run: str, file: str, first: int) -> float:
    """Size of one array in B, exact if the run states the number of elements, otherwise rounded; NaN if unknown.

    `first` is the first line of the run.
    """
    element_size = _ELEMENT_SIZE.search(run)
    size = float(element_size[1]) if element_size else 4.0 if re.search(r"^Precision: float", run, re.M) else 8.0
    if match := _ELEMENTS.search(run):
        return _positive(float(match[1]) * size, file, _line(match, first))
    match = _ARRAY.search(run)
    if match is None:
        return math.nan
    # Before version 2.0 the size that is printed as MB is in MiB; the bandwidths always were in MB.
    unit = "MiB" if re.search(r"^Version: *[01]\.", run, re.M) else match[2]
    try:
        return _positive(parse_quantity(f"{match[1]} {unit}").value, file, _line(match, first))
    except UnitError as error:
        raise refuse(file, f"size of an array: {error}", _line(match, first)) from None


def _positive(size: float, file: str, line: int) -> float:
    if not 0 < size < math.inf:
        raise refuse(file, f"size of an array: must be greater than 0 and finite, not {size:g} B", line)
    return size


def _line(match: re.Match[str], first: int = 1) -> int:
    return match.string.count("\n", 0, match.start()) + first


def _text_rows(
    file: str, lines: Sequence[str], heading: int, match: re.Match[str], array_size: float
) -> Iterator[dict[str, Any]]:
    unit = _unit(file, heading, match[1])
    order = ("minimum_time", "maximum_time", "time") if match[2] == "Min" else ("time", "minimum_time", "maximum_time")
    for number, line in enumerate(lines[heading:], heading + 1):
        name, *cells = line.replace(":", " ").split() or [""]
        function = _function(name)
        if function not in ARRAY_COUNTS:
            break
        values = [_float(file, number, cell) for cell in cells]
        if len(values) != 4:
            raise refuse(file, f"{len(values)} values after `{name}`, not 4; is the file cut off?", number)
        yield _row(function, array_size, values[0] * unit, **dict(zip(order, values[1:], strict=True)))


def _csv_rows(file: str, lines: Sequence[str], heading: int) -> Iterator[dict[str, Any]]:
    separator = lines[heading - 1][len("function")]
    names = lines[heading - 1].strip().split(separator)
    unit = _unit(file, heading, names[4])
    times = {"min_runtime": "minimum_time", "max_runtime": "maximum_time", "avg_runtime": "time"}
    for number, line in enumerate(lines[heading:], heading + 1):
        name, *cells = line.strip().split(separator)
        function = _function(name)
        if function not in ARRAY_COUNTS:
            break
        if len(cells) != len(names) - 1:
            message = f"{len(cells) + 1} values under {len(names)} headings; is the file cut off?"
            raise refuse(file, message, number)
        values = dict(zip(names[1:], (_float(file, number, cell) for cell in cells), strict=True))
        known = {column: values[key] for key, column in times.items() if key in values}
        yield _row(function, values["n_elements"] * values["sizeof"], values[names[4]] * unit, **known)


def _row(function: str, array_size: float, bandwidth: float, **times: float) -> dict[str, Any]:
    unknown = dict.fromkeys(("time", "minimum_time", "maximum_time"), math.nan)
    return {"function": function, "array_size": array_size, "bandwidth": bandwidth, **unknown, **times}


def _function(name: str) -> str:
    """STREAM's `Scale` is BabelStream's `Mul`."""
    return {"scale": "mul"}.get(name.lower(), name.lower())


def _unit(file: str, number: int, name: str) -> float:
    if name.lower() not in _UNITS:
        raise refuse(file, f"unknown unit `{name}`, not one of {', '.join(list(_UNITS)[:8])}", number)
    return _UNITS[name.lower()]


def _float(file: str, number: int, cell: str) -> float:
    value = number_of(cell, file, number)
    if not 0 < value < math.inf:
        raise refuse(file, f"must be greater than 0, not {cell}", number)
    return value
