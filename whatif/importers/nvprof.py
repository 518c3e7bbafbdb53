"""nvprof and the Visual Profiler (`nvprof -o FILE.nvvp`): the memory copies of a profile; and summaries of copies.

A profile is an SQLite database of CUPTI activities: times in ns since an epoch, sizes in bytes. The copies are in
`CUPTI_ACTIVITY_KIND_MEMCPY`, those between two devices in `CUPTI_ACTIVITY_KIND_MEMCPY2`. The numbers of `copyKind` are
CUPTI's (1 host to device, ..), those of `srcKind` and `dstKind` too (1 pageable, 2 pinned); Nsight Systems counts the
latter from 0. A summary is CSV with one row for each machine, direction, kind of memory and size, times in ns.
Source: CUPTI, `CUpti_ActivityMemcpyKind`, `CUpti_ActivityMemoryKind`; Abdelhafez et al., "AHEAD", released data.
"""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.text import read_text, refuse
from whatif.schema.toml import shown_path
from whatif.table import Column, Table
from whatif.units import BYTE, ONE, SECOND, Dimension

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
"""Columns of a summary, `time` being the mean of `repetition_count` copies. What a file does not say is NaN, or an
empty text."""
MOST_COPIES: Final = 5_000_000
"""Copies of one profile that are read."""

_MAGIC: Final = b"SQLite format 3\0"
_FIELDS: Final = ("copyKind", "srcKind", "dstKind", "bytes", "start", "end", "streamId", "deviceId")
_HOST_COPIES, _PEER_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2"
_QUERIES: Final = {
    _HOST_COPIES: 'SELECT copyKind, srcKind, dstKind, bytes, start, "end", streamId, deviceId '
    "FROM CUPTI_ACTIVITY_KIND_MEMCPY",
    _PEER_COPIES: 'SELECT copyKind, srcKind, dstKind, bytes, start, "end", streamId, deviceId '
    "FROM CUPTI_ACTIVITY_KIND_MEMCPY2",
}
_ROWS_AT_A_TIME: Final = 100_000
_READ, _WRITE, _INSIDE, _PEER = "host_to_device", "device_to_host", "device_to_device", "peer_to_peer"
# By copyKind; an array is device memory in another layout. Host to host and unknown kinds have no direction here.
_DIRECTIONS: Final = ("", _READ, _WRITE, _READ, _WRITE, _INSIDE, _INSIDE, _INSIDE, _INSIDE, "", _PEER)
_MEMORIES: Final = ("unknown", "pageable", "pinned", "device", "device", "managed", "device", "managed")
_SPELLINGS: Final = {"htod": _READ, "dtoh": _WRITE, "dtod": _INSIDE, "ptop": _PEER}
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
_NANOSECOND: Final = 1e-9


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite database, as profiles are."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise refuse(shown_path(path), f"cannot be read: {error.strerror}") from None


def read_copies(path: Path) -> Table:
    """The memory copies of an nvprof profile, one row each with `COPY_COLUMNS`, in the order they were recorded.

    The file is opened read-only. Copies without a direction and those that end before they start are left out, with
    a warning. Raise `InvalidFileError` for a file that is no such profile, is damaged, or holds no copies.
    """
    name = shown_path(path)
    _refuse_other(path, name)
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            return _copies(name, *_recorded(database, name))
    except sqlite3.Error as error:
        raise refuse(name, f"the database is damaged or cut off: {error}") from None


def read_copy_summary(path: Path) -> Table:
    """The summary of copies at a path; see `parse_copy_summary`."""
    return parse_copy_summary(read_text(path), shown_path(path))


def parse_copy_summary(text: str, file: str = "<text>") -> Table:
    """A CSV of mean times of copies by machine, direction, kind of memory and size, with `SUMMARY_COLUMNS`.

    Columns are found by name: `direction` (`HtoD`, `DtoH`, `DtoD`, `PtoP`), `host_mem` or `host_memory`, `bytes` or
    `message_size_B`, `gpu_time_mean_ns` or `mean_time_ns`; `machine`, `n` and the extremes where they are stated.
    Raise `InvalidFileError` for a missing column, a value that is none, a row that is cut off, or no rows.
    """
    lines = _lines(text, file)
    heading = [word.strip() for word in next(lines, (1, []))[1]]
    places = {
        name: next((heading.index(word) for word in words if word in heading), -1) for name, words in _HEADINGS.items()
    }
    missing = [" or ".join(f"`{word}`" for word in _HEADINGS[name]) for name in _NEEDED if places[name] < 0]
    if missing:
        raise refuse(file, f"no summary of copies: the first line has no column {', '.join(missing)}", 1)
    rows = [_summary_row(file, line, row, len(heading), places) for line, row in lines if row]
    if not rows:
        raise refuse(file, "no rows below the heading", 1)
    columns = zip(SUMMARY_COLUMNS.items(), zip(*rows, strict=True), strict=True)
    return Table({name: _column(values, dimension) for (name, dimension), values in columns}, {"file": file})


def _lines(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines())
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise refuse(file, f"no CSV: {error}", reader.line_num) from None


def _refuse_other(path: Path, name: str) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as error:
        raise refuse(name, f"cannot be read: {error.strerror}") from None
    if head != _MAGIC:
        said = "it is empty" if not head else "it is text or of another format"
        raise refuse(name, f"not an nvprof profile (`nvprof -o FILE.nvvp` writes an SQLite database): {said}")


def _recorded(database: sqlite3.Connection, name: str) -> tuple[NDArray[np.int64], dict[str, str]]:
    """The copies of a database, of shape (copies, fields), in ns and bytes; and its notes."""
    found = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if "StringIds" in found:
        raise refuse(name, "this is an export of Nsight Systems, whose kinds of memory are numbered in another way")
    if "StringTable" not in found or _HOST_COPIES not in found:
        raise refuse(name, f"an SQLite database, but no nvprof profile: it has no table `{_HOST_COPIES}`")
    parts = [part for table in _QUERIES if table in found for part in _rows(database, name, table)]
    if not parts:
        raise refuse(name, "the profile holds no memory copies")
    versions = database.execute("SELECT version FROM Version").fetchall() if "Version" in found else []
    notes = {"tool": "nvprof", "version": ", ".join(str(row[0]) for row in versions), "file": name}
    return np.concatenate(parts), {key: value for key, value in notes.items() if value}


def _rows(database: sqlite3.Connection, name: str, table: str) -> Iterator[NDArray[np.int64]]:
    there = {row[0] for row in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}
    missing = [field for field in _FIELDS if field not in there]
    if missing:
        raise refuse(name, f"the table `{table}` has no column {', '.join(missing)}")
    cursor, count = database.execute(_QUERIES[table]), 0
    while rows := cursor.fetchmany(_ROWS_AT_A_TIME):
        count += len(rows)
        if count > MOST_COPIES:
            raise refuse(name, f"more than {MOST_COPIES:,} memory copies: profile a shorter run")
        try:
            yield np.array(rows, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            raise refuse(name, f"the table `{table}` holds a value that is no whole number") from None


def _copies(name: str, recorded: NDArray[np.int64], notes: dict[str, str]) -> Table:
    kind, source, target, size, start, end, stream, device = recorded.T
    direction = _looked_up(_DIRECTIONS, kind, "")
    memory = _looked_up(_MEMORIES, np.where(direction == _READ, source, target), "unknown")
    memory[(direction == _INSIDE) | (direction == _PEER)] = "device"
    good = (direction != "") & (end > start) & (start >= 0) & (size >= 0)
    if not good.any():
        raise refuse(name, "none of the memory copies has a direction, a size and a duration")
    if not good.all():
        lost = f"{name}: {int((~good).sum())} of {len(good)} copies left out: no direction, size or duration"
        notes = {**notes, "warnings": lost}
    # Differences of whole numbers first: the times themselves are beyond 2^53 ns.
    values = {
        "direction": direction[good],
        "memory": memory[good],
        "message_size": size[good].astype(float),
        "start_time": (start[good] - start[good].min()) * _NANOSECOND,
        "time": (end[good] - start[good]) * _NANOSECOND,
        "stream": stream[good].astype(float),
        "device": device[good].astype(float),
    }
    return Table({key: Column(values[key], dimension) for key, dimension in COPY_COLUMNS.items()}, notes)


def _looked_up(words: Sequence[str], number: NDArray[np.int64], missing: str) -> NDArray[Any]:
    table = np.array([*words, missing], dtype=object)
    return table[np.where((number >= 0) & (number < len(words)), number, len(words))]


def _summary_row(file: str, line: int, row: list[str], width: int, places: Mapping[str, int]) -> tuple[Any, ...]:
    if len(row) != width:
        raise refuse(file, f"{len(row)} values where the heading has {width} columns: cut off?", line)
    cells = {name: row[place].strip() if place >= 0 else "" for name, place in places.items()}
    direction = _SPELLINGS.get(cells["direction"].lower(), cells["direction"])
    if direction not in _DIRECTIONS or not direction:
        raise refuse(file, f"`{cells['direction'][:40]}` is no direction; write HtoD, DtoH, DtoD or PtoP", line)
    if cells["memory"] not in _MEMORIES:
        known = ", ".join(dict.fromkeys(_MEMORIES))
        raise refuse(file, f"`{cells['memory'][:40]}` is no kind of memory; write one of {known}", line)
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
        raise refuse(file, f"{name}: `{cell[:40]}` is no positive number", line)
    return value * _NANOSECOND if dimension == SECOND else value


def _column(values: Sequence[Any], dimension: Dimension | None) -> Column:
    return Column(np.array(values, dtype=object if dimension is None else float), dimension)
