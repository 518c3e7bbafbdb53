"""Message times from files of any known format, detected by their first lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from whatif.errors import InvalidFileError, Problem, UsageError, listed
from whatif.importers.mapped_csv import read_columns
from whatif.importers.mapping import EXAMPLE
from whatif.importers.numbers import MOST_ROWS
from whatif.importers.rows import joined, tables_of_folder
from whatif.importers.simgrid import is_platform
from whatif.importers.text import chunks, reading, refuse
from whatif.schema.toml import shown_path
from whatif.table import Table

HEAD_SIZE: Final = 256 * 2**10
"""Bytes at the beginning of a file that show its format."""
FORMATS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "OSU micro-benchmarks": (re.compile(r"#[ \t]*OSU \S+.* (?:Test|v\d)"), "osu.read_osu"),
    "Intel MPI Benchmarks": (
        re.compile(r"#bytes[ \t]+#repetitions|#repetitions[ \t]+t_min|# Benchmarking \w"), "imb.read_imb",
    ),
    "Netgauge": (re.compile(r"## Netgauge v\d|PRTT\(1,0,s\)"), "netgauge.read_netgauge"),
    "ping-pong log": (
        re.compile(r"^\[Rank \d+\] comp time:|^Pingpong for$", re.M), "ping_pong_log.read_ping_pong_log",
    ),
    "nccl-tests": (
        re.compile(r"#[ \t]+size[ \t]+count[ \t]+type|^# Collective test starting: \w+_perf", re.M),
        "nccl_tests.read_nccl_tests",
    ),
    "SimGrid calibration": (
        re.compile(r"\A(?:\d+,)?MPI_\w+,\d+,[\d.eE+-]+,[\d.eE+-]+$", re.M), "simgrid.read_simgrid",
    ),
}  # fmt: skip
"""Formats that are detected by content: pattern of their beginning, and reader. CSV files need a mapping of columns."""


def read_network(path: Path, mapping: Mapping[str, str] | None = None, where: Mapping[str, str] | None = None) -> Table:
    """A table of measurements of one file; `mapping` and `where` are for CSV files (see `read_columns`).

    Raise `InvalidFileError` for a file of no known format.
    """
    head = _head(path)
    if name := _recognised(head):
        if where:
            raise UsageError(f"{shown_path(path)}: rows can be chosen by column in CSV files only")
        with reading(path, name):
            return _reader(name)(path)
    if not head.strip():
        raise refuse(shown_path(path), "no measurements in this file: it is empty")
    if is_platform(path):
        message = "a SimGrid platform has parameters, no measurements; `whatif import network` alone shows them"
        raise refuse(shown_path(path), f"XML: {message}")
    if mapping is None and "message_size" not in head[:4096]:
        raise refuse(shown_path(path), _unknown(head))
    with reading(path, "CSV"):
        return read_columns(path, mapping, where=where)


def read_networks(
    paths: Sequence[Path], mapping: Mapping[str, str] | None = None, where: Mapping[str, str] | None = None
) -> Table:
    """The measurements of several files in one table, in the order given.

    A folder means its files, sorted by name; those of no known format are reported as warnings. Raise
    `InvalidFileError` where nothing is left, `UsageError` for too many rows.
    """
    tables: list[Table] = []
    warnings: list[str] = []
    for path in paths:
        if path.is_dir():
            tables += tables_of_folder(path, lambda file: read_network(file, mapping, where), warnings)
        else:
            tables.append(read_network(path, mapping, where))
    if not tables:
        raise InvalidFileError([Problem(shown_path(path), 0, 0, "", "no measurements here") for path in paths])
    if sum(map(len, tables)) > MOST_ROWS:
        raise UsageError(f"more than {MOST_ROWS:,} rows together: read fewer files")
    return tables[0] if len(tables) == 1 and not warnings else joined(tables, warnings)


def is_network(path: Path) -> bool:
    """Whether a file has a format that is detected by content, or is a platform of SimGrid."""
    return path.is_file() and (is_platform(path) or _recognised(_head(path)) != "")


def _head(path: Path) -> str:
    return next(chunks(path, HEAD_SIZE), "")


def _recognised(head: str) -> str:
    """Name of a format; empty if it is not known."""
    return next((name for name, (pattern, _) in FORMATS.items() if pattern.search(head)), "")


def _reader(name: str) -> Callable[[Path], Table]:
    module, function = FORMATS[name][1].split(".")
    reader: Callable[[Path], Table] = getattr(import_module(f"whatif.importers.{module}"), function)
    return reader


def _unknown(head: str) -> str:
    rows = [line.split(",") for line in head.splitlines() if not line.startswith("#")][:2]
    is_table = len(rows) > 1 and len(rows[0]) == len(rows[1]) > 1
    columns = f" ({listed((cell.strip() for cell in rows[0]), 9)})" if is_table else ""
    return f"no known format ({', '.join(FORMATS)}); for a CSV file, name its columns{columns}: --columns '{EXAMPLE}'"
