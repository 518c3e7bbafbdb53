"""Nsight Compute: kernel metrics from `ncu --csv`, in the long form, the raw page, or the summary per kernel.

The long form has a row a launch and metric: `"ID",..,"Kernel Name",..,"Metric Name","Metric Unit","Metric Value"`; the
summary (`--print-summary per-kernel`) has `"Invocations",..,"Average"` instead. The details page (`--page details`) is
a long form with titles of metrics, as `Duration`. The raw page (`--page raw`) has a column a metric and the units in
its second line. Lines of the tool and of the program around them are skipped. Values have thousands separators and
scaled, decimal units (`usecond` or `us`, `Mbyte`), or are `n/a`.

A rate, as in the section of rooflines (`dram__bytes.sum.per_second`, `..dfma_pred_on.sum.per_cycle_elapsed`), becomes
the sum that it is the rate of, by the time or the cycles of the launch. Source: NVIDIA, Nsight Compute documentation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from whatif.importers.rows import csv_cells, row_table
from whatif.importers.text import refuse
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, PER_SECOND, SECOND, Dimension, format_quantity

_USED = re.compile(
    r"gpu__time_duration\.(sum|avg|max)|sm(sp)?__cycles_elapsed\.(avg|max)(\.per_second)?"
    r"|((dram__(bytes|sectors)\w*|lts__t_(bytes|sectors)\w*|sm(sp)?__(sass_)?(thread_)?inst_executed\w*"
    r"|sm__ops_path_tensor\w*)\.sum)(\.per_second|\.per_cycle_elapsed)?"
)
_TITLES: Final[Mapping[str, tuple[str, Dimension]]] = {
    "Duration": ("gpu__time_duration.sum", SECOND),
    "Elapsed Cycles": ("sm__cycles_elapsed.max", ONE),
    "SM Frequency": ("sm__cycles_elapsed.avg.per_second", PER_SECOND),
    "Memory Throughput": ("dram__bytes.sum.per_second", BYTE_PER_SECOND),  # in % it is a share of several peaks
    "Executed Instructions": ("smsp__inst_executed.sum", ONE),
}
"""Metrics that the details page shows by a title: their names, and the dimensions that they have."""
TIME: Final = "gpu__time_duration.sum"
BLOCKS: Final = "block_count"
"""Column of the blocks of a launch."""
BLOCK_SIZE: Final = "block_size"
"""Column of the threads of a block."""
MULTIPROCESSORS: Final = "multiprocessor_count"
"""Note on the device."""
_CYCLES: Final = "cycles_elapsed.avg"
_MOST: Final = "cycles_elapsed.max"
_DEVICE: Final = {
    "device__attribute_display_name": "device",
    "device__attribute_total_memory": "device_memory",
    "device__attribute_multiprocessor_count": MULTIPROCESSORS,
}
"""Notes on the device, by the metrics that state them."""
_EDGE = re.compile(r"\d{1,10}")
_NUMBER = re.compile(r"-?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?([eE][+-]?\d+)?")
_PREFIXES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS: Final[Mapping[str, tuple[Dimension, float]]] = {
    **{name: (SECOND, size) for size, *names in ((1e-9, "nsecond", "ns"), (1e-6, "usecond", "us"),
                                                 (1e-3, "msecond", "ms"), (1.0, "second", "s")) for name in names},
    **{f"{prefix}byte": (BYTE, size) for prefix, size in _PREFIXES.items()},
    **{f"{prefix}hz": (PER_SECOND, size) for prefix, size in _PREFIXES.items()},
    **dict.fromkeys(("", "inst", "sector", "op", "cycle"), (ONE, 1.0)),
}  # fmt: skip
_NO_UNIT: Final[tuple[Dimension | None, float]] = (None, math.nan)


def parse_nsight_compute(text: str, file: str = "<text>") -> Table:
    """One row per launch (in a summary: a kernel): `kernel`, `launch_count`, and a column in base units a metric.

    Only metrics that `kernel_metrics` uses are kept, as sums; `sm__` and `smsp__`, whose sums are the same, are left
    out of their names. NaN for `n/a`. Raise `InvalidFileError` for no table, a row that is cut off, a value that is no
    number or an unknown unit.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.startswith('"')]
    rows = [(number, csv_cells(line.rstrip(), file, number)) for number, line in lines]
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
    launches = [_as_sums(launch) for launch in launches]
    names = dict.fromkeys(name for launch in launches for name in launch)
    dimensions = {"kernel": None, "launch_count": ONE, BLOCKS: ONE, BLOCK_SIZE: ONE} | {
        name: _dimension(name) for name in names if "." in name
    }
    missing = dict.fromkeys(dimensions, math.nan)
    return row_table([missing | launch for launch in launches], dimensions, notes)


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
        name = _untitled(cells["Metric Name"], cells["Metric Unit"])
        if plain := _plain(name):
            launches[key][plain] = _value(file, number, name, cells["Metric Unit"], cells[value_heading])
        elif name in _DEVICE:
            notes |= _device_note(name, cells[value_heading])
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
        for name in filter(cells.__contains__, _DEVICE):
            notes |= _device_note(name, cells[name])
        launches.append(launch)
    return launches


def _device_note(name: str, text: str) -> dict[str, str]:
    """Name of the device, its memory with a unit, or its multiprocessors; empty for a number that is not a size."""
    note, number = _DEVICE[name], text.replace(",", "")
    if note == "device":
        return {note: text}
    if not _NUMBER.fullmatch(text) or not 0 < float(number) < math.inf:
        return {}
    return {note: format_quantity(float(number), BYTE, 6) if note == "device_memory" else number}


def _launch(file: str, number: int, cells: Mapping[str, str]) -> dict[str, Any]:
    count = _value(file, number, "Invocations", "", cells.get("Invocations", "1"))
    if not count >= 1:
        raise refuse(file, "a kernel of a profile is launched at least once", number, "Invocations")
    sizes = {BLOCKS: _product(cells.get("Grid Size", "")), BLOCK_SIZE: _product(cells.get("Block Size", ""))}
    return {"kernel": cells["Kernel Name"], "launch_count": count, **sizes}


def _product(text: str) -> float:
    """Product of the three edges of a grid or a block, such as `(16, 2, 1)`; NaN without them."""
    edges = [int(edge) for edge in _EDGE.findall(text)[:3]]
    return float(math.prod(edges)) if edges else math.nan


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


def _untitled(title: str, unit: str) -> str:
    """Name of a metric that the details page shows by a title."""
    name, dimension = _TITLES.get(title, (title, None))
    return name if dimension == _unit(unit)[0] else title


def _as_sums(launch: Mapping[str, Any]) -> dict[str, Any]:
    """A launch with its time and its sums; rates become sums."""
    known = {name: value for name, value in launch.items() if isinstance(value, str) or math.isfinite(value)}
    cycles, frequency = (_first(known, _CYCLES + end, _MOST + end) for end in ("", ".per_second"))
    time = _first(known, TIME, "gpu__time_duration.avg", "gpu__time_duration.max")
    if time is None and cycles and frequency:
        time = cycles / frequency
    if time and frequency and not cycles:
        cycles = time * frequency
    sums = {name: value for name, value in launch.items() if "." not in name or name.endswith(".sum")}
    for end, factor in ((".per_second", time), (".per_cycle_elapsed", cycles)):
        for name, value in known.items():
            base = name.removesuffix(end)
            # DRAM and the second-level cache have clocks of their own.
            if base.endswith(".sum") and base not in known and factor and (end == ".per_second" or "__" not in base):
                sums[base] = value * factor
    return sums | ({} if time is None else {TIME: time})


def _first(values: Mapping[str, Any], *names: str) -> float | None:
    return next((float(values[name]) for name in names if name in values), None)


def _dimension(name: str) -> Dimension:
    whole = SECOND if "time_duration" in name else BYTE if "bytes" in name else ONE
    return whole / SECOND if name.endswith(".per_second") else whole


@lru_cache(maxsize=256)
def _unit(text: str) -> tuple[Dimension | None, float]:
    """Dimension and size of a unit as `Gbyte/second` or `inst/cycle`; None for an unknown one."""
    above, _, below = text.partition("/")
    (dimension, size), (divisor, divisor_size) = _UNITS.get(above, _NO_UNIT), _UNITS.get(below, _NO_UNIT)
    if dimension is None or divisor is None:
        return _NO_UNIT
    return dimension / divisor, size / divisor_size


def _value(file: str, number: int, name: str, unit: str, text: str) -> float:
    if text in ("n/a", "", "nan"):
        return math.nan
    if not _NUMBER.fullmatch(text):
        raise refuse(file, f"`{text}` is not a number such as 1,234.5; run ncu with LC_ALL=C", number, name)
    dimension, size = _unit(unit)
    # Operations of tensor cores have no unit, nor have their rates.
    if dimension != _dimension(name) and (unit or _dimension(name) != PER_SECOND):
        raise refuse(file, f"unexpected unit `{unit}`; run ncu with --print-units base", number, name)
    if text.startswith("-"):
        raise refuse(file, f"`{text}` is negative: nothing of a kernel is less than 0", number, name)
    return float(text.replace(",", "")) * size
