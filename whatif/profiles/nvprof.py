"""nvprof and the Visual Profiler (`nvprof -o FILE.nvvp`): profiles; and summaries of copies.

A profile is an SQLite database of CUPTI activities: times in ns since an epoch, sizes in bytes, names by number in
`StringTable`. Kernels are in `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL` and `_KERNEL`, copies in `_MEMCPY`, those between
two devices in `_MEMCPY2`, fills in `_MEMSET`, devices in `_DEVICE` (bandwidth in kB/s, clock in kHz). The numbers of
`copyKind` are CUPTI's (1 host to device, ..), those of `srcKind` and `dstKind` too (1 pageable, 2 pinned); Nsight
Systems counts the latter from 0. A summary is CSV with one row for each machine, direction, kind of memory and size,
times in ns. Source: CUPTI, `CUpti_ActivityMemcpyKind`, `CUpti_ActivityMemoryKind`; Abdelhafez et al., "AHEAD",
released data.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.sqlite import MOST_OPERATIONS, Database, newest_known, open_database, refused
from whatif.importers.text import refuse, text_of
from whatif.profiles.profile_data import (
    COPY,
    COPY_DIRECTIONS,
    FILL,
    INSIDE,
    KERNEL,
    MEMORY_KINDS,
    PEER,
    READ,
    WRITE,
    OperationBatch,
    Profile,
    copy_memories,
    cuda_peaks,
    device_table,
    looked_up,
    named,
    operation_table,
    places_in,
    plain_memory,
    touches_symbol,
)
from whatif.table import Column, Table, noted
from whatif.units import BYTE, NANOSECOND, ONE, SECOND, Dimension

COPY_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "direction": None,
    "memory": None,
    "message_size": BYTE,
    "start_time": SECOND,
    "time": SECOND,
    "stream": ONE,
    "device": ONE,
}
"""Columns of the copies of a profile. `direction` is `host_to_device`, `device_to_host`, `device_to_device` or
`peer_to_peer`; `memory` is that of the host's side, `pinned`, `pageable`, `managed` or `unknown`, or `device` where
there is no host; `start_time` counts from the first copy, `time` is the time on the link."""
SUMMARY_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "machine": None,
    "direction": None,
    "memory": None,
    "message_size": BYTE,
    "repetition_count": ONE,
    "time": SECOND,
    "minimum_time": SECOND,
    "maximum_time": SECOND,
}
"""Columns of a summary, `time` being the mean of `repetition_count` copies. Missing values are NaN, or an
empty text."""
MOST_COPIES: Final = 5_000_000
"""Copies of one profile that are read."""

NEWEST_VERSION: Final = 11
"""The newest version of the tables that is known."""

_EXPECTED: Final = "an nvprof profile (`nvprof -o FILE.nvvp`)"
_PREFIX: Final = "CUPTI_ACTIVITY_KIND_"
_COPIES: Final = (f"{_PREFIX}MEMCPY", f"{_PREFIX}MEMCPY2")
_KERNELS: Final = (f"{_PREFIX}CONCURRENT_KERNEL", f"{_PREFIX}KERNEL")
_TIMES: Final = dict.fromkeys(("start", "end", "deviceId", "streamId"))
_COPY_FIELDS: Final = dict.fromkeys(("copyKind", "srcKind", "dstKind", "bytes", "start", "end", "streamId", "deviceId"))
_DEVICE_FIELDS: Final = dict.fromkeys(
    ("globalMemoryBandwidth", "globalMemorySize", "l2CacheSize", "coreClockRate", "numMultiprocessors", "name",
     "computeCapabilityMajor", "computeCapabilityMinor"), 0,
)  # fmt: skip
# The tool was replaced before migrations of managed memory were recorded as copies.
_DIRECTIONS: Final = COPY_DIRECTIONS[:11]
_SPELLINGS: Final = {"htod": READ, "dtoh": WRITE, "dtod": INSIDE, "ptop": PEER}
_MEMORIES: Final = ("unknown", "pageable", "pinned", "device", "managed")
_HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "machine": ("machine",),
    "direction": ("direction",),
    "memory": ("host_mem", "host_memory", "memory"),
    "message_size": ("bytes", "message_size_B"),
    "time": ("gpu_time_mean_ns", "mean_time_ns"),
    "repetition_count": ("n", "repetition_count"),
    "minimum_time": ("gpu_time_min_ns", "minimum_time_ns"),
    "maximum_time": ("gpu_time_max_ns", "maximum_time_ns"),
}
_NEEDED: Final = ("direction", "memory", "message_size", "time")


def read_copies(path: Path) -> Table:
    """The memory copies of an nvprof profile, one row each with `COPY_COLUMNS`, in the order they were recorded.

    The file is opened read-only. Copies without a direction and those that end before they start are left out, with
    a warning. Raise `InvalidFileError` for a file that is no such profile, is damaged, or holds no copies.
    """
    with open_database(path, _EXPECTED) as database:
        _refuse_other(database)
        parts = [_copy_part(database, table, MOST_COPIES) for table in _COPIES]
        if not any(len(part.start) for part in parts):
            raise refused(database, "the profile holds no memory copies")
        return _copies(database, parts, _notes(database))


def is_nvprof(database: Database) -> bool:
    """Whether a database has the tables of an nvprof profile."""
    return "StringTable" in database.tables and any(table.startswith(_PREFIX) for table in database.tables)


def nvprof_profile(database: Database) -> Profile:
    """Kernels, copies and fills of an nvprof profile, and its devices. Raise `InvalidFileError` for a damaged one."""
    notes, names = _notes(database), database.texts("StringTable", "_id_", "value")
    parts = [_kernel_part(database, table, names) for table in _KERNELS]
    parts += [*(_copy_part(database, table) for table in _COPIES), _fill_part(database)]
    operations = operation_table(parts, database.name, notes, database.warnings)
    return Profile(operations, device_table(_devices(database, names), operations))


def _kernel_part(database: Database, table: str, names: Mapping[int, str]) -> OperationBatch:
    found = database.integers(table, {**_TIMES, "name": 0}, what="kernels")
    return _part(KERNEL, found, name=named(names, found["name"]))


def _copy_part(database: Database, table: str, most: int = MOST_OPERATIONS) -> OperationBatch:
    found = database.integers(table, {**_COPY_FIELDS, "flags": 0}, most, "memory copies")
    direction = looked_up(_DIRECTIONS, found["copyKind"])
    source, target = (looked_up(MEMORY_KINDS, found[end], "unknown") for end in ("srcKind", "dstKind"))
    memory, is_symbol = copy_memories(direction, source, target)
    return _part(COPY, found, direction=direction, memory=memory, is_symbol=is_symbol)


def _fill_part(database: Database) -> OperationBatch:
    found = database.integers(f"{_PREFIX}MEMSET", {**_TIMES, "bytes": None, "flags": 0, "memoryKind": 0}, what="fills")
    kind = looked_up(MEMORY_KINDS, found["memoryKind"], "unknown")
    return _part(FILL, found, memory=plain_memory(kind), is_symbol=touches_symbol(kind))


def _part(operation: str, found: Mapping[str, NDArray[np.int64]], **texts: NDArray[Any]) -> OperationBatch:
    # The lowest bit of the flags of copies and fills says asynchronous.
    flags = {"is_asynchronous": found["flags"] & 1, "message_size": found["bytes"]} if "flags" in found else {}
    times = {name: found[field] for name, field in zip(("start", "end", "device", "stream"), _TIMES, strict=True)}
    return OperationBatch(operation, **times, **flags, **texts)


def _devices(database: Database, names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    found = database.integers(f"{_PREFIX}DEVICE", {"id": None, **_DEVICE_FIELDS}, most=1000, what="devices")
    for number, bandwidth, memory, cache, clock, count, name, *capability in np.stack(list(found.values())).T.tolist():
        yield {
            "device": number,
            "name": names.get(name, ""),
            "dram_bandwidth": bandwidth * 1e3,
            "processor_count": count,
            "clock_rate": clock * 1e3,
            "memory_size": memory,
            "l2_size": cache,
            **cuda_peaks((capability[0], capability[1]), count, clock * 1e3),
        }


def read_copy_summary(source: str | Path, file: str = "<text>") -> Table:
    """Mean times of copies by machine, direction, memory and size, with `SUMMARY_COLUMNS`, of CSV or its text.

    Columns are found by name: `direction` (`HtoD`, `DtoH`, `DtoD`, `PtoP`), `host_mem` or `host_memory`, `bytes` or
    `message_size_B`, `gpu_time_mean_ns` or `mean_time_ns`; `machine`, `n` and the extremes where they are stated.
    Raise `InvalidFileError` for a missing column, a wrong value, a row that is cut off, or no rows.
    """
    text, file = text_of(source, file)
    lines = _lines(text, file)
    heading = [word.strip() for word in next(lines, (1, []))[1]]
    places = places_in(heading, _HEADINGS)
    missing = [" or ".join(f"`{word}`" for word in _HEADINGS[name]) for name in _NEEDED if places[name] < 0]
    if missing:
        raise refuse(file, f"no summary of copies: the first line has no column {', '.join(missing)}", 1)
    rows = [_summary_row(file, line, row, len(heading), places) for line, row in lines if row]
    if not rows:
        raise refuse(file, "no rows below the heading", 1)
    return Table.of_rows(SUMMARY_COLUMNS, rows, {"file": file})


def _lines(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines())
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise refuse(file, f"no CSV: {error}", reader.line_num) from None


def _refuse_other(database: Database) -> None:
    if "StringIds" in database.tables:
        raise refused(database, "this is an export of Nsight Systems, no nvprof profile")
    if "StringTable" not in database.tables or _COPIES[0] not in database.tables:
        raise refused(database, f"an SQLite database, but no nvprof profile: it has no table `{_COPIES[0]}`")


def _notes(database: Database) -> dict[str, str]:
    versions = database.integers("Version", {"version": 0}, most=1000)["version"].tolist()
    newest_known(database, str(max(versions, default=0)), (NEWEST_VERSION,))
    return {"tool": "nvprof", "version": ", ".join(map(str, versions)), "file": database.name}


def _copies(database: Database, parts: Sequence[OperationBatch], notes: Mapping[str, str]) -> Table:
    names = ("direction", "memory", "message_size", "start", "end", "stream", "device")
    found = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    direction, memory, size, start, end, stream, device = found
    good = (direction != "") & (end > start) & (start >= 0) & (size >= 0)
    if not good.any():
        raise refuse(database.name, "none of the memory copies has a direction, a size and a duration")
    lost = f"{database.name}: {int((~good).sum())} of {len(good)} copies left out: no direction, size or duration"
    warnings = [*database.warnings, *([] if good.all() else [lost])]
    # Differences of whole numbers first: the times themselves are beyond 2^53 ns.
    values = {
        "direction": direction[good],
        "memory": memory[good],
        "message_size": size[good].astype(float),
        "start_time": (start[good] - start[good].min()) * NANOSECOND,
        "time": (end[good] - start[good]) * NANOSECOND,
        "stream": stream[good].astype(float),
        "device": device[good].astype(float),
    }
    return Table(
        {key: Column(values[key], dimension) for key, dimension in COPY_COLUMNS.items()}, noted(notes, warnings)
    )


def _summary_row(file: str, line: int, row: list[str], width: int, places: Mapping[str, int]) -> tuple[Any, ...]:
    if len(row) != width:
        raise refuse(file, f"{len(row)} values where the heading has {width} columns: cut off?", line)
    cells = {name: row[place].strip() if place >= 0 else "" for name, place in places.items()}
    direction = _SPELLINGS.get(cells["direction"].lower(), cells["direction"])
    if direction not in _DIRECTIONS or not direction:
        raise refuse(file, f"`{cells['direction'][:40]}` is not a direction; write HtoD, DtoH, DtoD or PtoP", line)
    if cells["memory"] not in _MEMORIES:
        known = ", ".join(_MEMORIES)
        raise refuse(file, f"`{cells['memory'][:40]}` is not a kind of memory; write one of {known}", line)
    words = {"machine": cells["machine"], "direction": direction, "memory": cells["memory"]}
    return tuple(
        words[name] if dimension is None else _number(file, line, name, cells[name], dimension)
        for name, dimension in SUMMARY_COLUMNS.items()
    )


def _number(file: str, line: int, name: str, cell: str, dimension: Dimension) -> float:
    if not cell and name not in _NEEDED:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0 and (value > 0 or name != "time")):
        raise refuse(file, f"{name}: `{cell[:40]}` is not a positive number", line)
    return value * NANOSECOND if dimension == SECOND else value
