"""Memory bandwidths of a host by active cores: outputs of STREAM and likwid-bench, and CSV with cores and bandwidth.

STREAM states `Number of Threads counted = N` and a table (`babelstream`); likwid-bench `Test: triad`, `Using N threads`
and `MByte/s: ..`, in 1e6 bytes. One file may hold several runs, one after another.
Sources: J. D. McCalpin, stream.c 5.10; RRZE-HPC/likwid, bench/likwid-bench.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.importers.babelstream import parse_babelstream
from whatif.importers.rows import row_table
from whatif.importers.runs_csv import read_runs_csv
from whatif.importers.text import read_text, reading, refuse
from whatif.schema.toml import shown_path
from whatif.table import Column, Table
from whatif.units import BYTE_PER_SECOND, ONE, Dimension, counted, format_quantity

COLUMNS: Final[Mapping[str, Dimension | None]] = {"function": None, "cores": ONE, "bandwidth": BYTE_PER_SECOND}
"""Columns of the table; `function` is `triad`, `copy`, .. and empty in a CSV file without that column."""

_LOWEST, _HIGHEST = 1e3, 1e18
"""Limits of a bandwidth in B/s."""
_STREAM: Final = re.compile(r"(?=^STREAM version )", re.MULTILINE)
_THREADS: Final = re.compile(r"^Number of Threads counted *= *(\d+)", re.MULTILINE)
_LIKWID: Final = re.compile(r"(?=^LIKWID MICRO BENCHMARK)", re.MULTILINE)
_RUN: Final = {
    "Test: NAME": re.compile(r"^Test: *(\S+)", re.MULTILINE),
    "Using N threads": re.compile(r"^Using (\d+) threads", re.MULTILINE),
    "MByte/s: NUMBER": re.compile(r"^MByte/s:\s*([0-9.eE+]+)\s*$", re.MULTILINE),
}
_HEADING: Final = re.compile(r"^(?!#)[^\n]*\bcores\b", re.MULTILINE)


def read_host(path: Path) -> Table:
    """Bandwidths of a file by active cores, with `COLUMNS`; see `parse_host`."""
    with reading(path, "STREAM, likwid-bench or CSV"):
        return parse_host(read_text(path), shown_path(path))


def parse_host(text: str, file: str = "<text>") -> Table:
    """Bandwidths by active cores, with `COLUMNS`; the note `tool` names STREAM or likwid-bench.

    Rows without a number of cores or a bandwidth are left out, with a warning. Raise `InvalidFileError` for a run
    without its number of threads, for rows without any valid ones, and for other texts.
    """
    if _STREAM.search(text):
        return _valid(_stream(text, file), file)
    if _LIKWID.search(text):
        rows = row_table(list(_likwid_rows(text, file)), COLUMNS, {"tool": "likwid-bench", "file": file})
        return _valid(rows, file)
    return _valid(_csv(text, file), file)


def _valid(table: Table, file: str) -> Table:
    """Rows with a positive number of cores and a bandwidth that memory may have."""
    cores, bandwidth = (table.columns[name].values for name in ("cores", "bandwidth"))
    good = (cores >= 1) & (bandwidth > _LOWEST) & (bandwidth < _HIGHEST)
    if good.all():
        return table
    count, first = int((~good).sum()), int(np.argmin(good))
    rate = float(bandwidth[first])
    why = f"{cores[first]:g} cores, {'no number' if np.isnan(rate) else format_quantity(rate, BYTE_PER_SECOND)}"
    if not good.any():
        raise refuse(file, f"no row has a number of cores and a bandwidth from 1 kB/s to 1 EB/s: {why}")
    warned = f"{file}: {counted(count, 'row')} left out, row {first + 1} is the first: {why}"
    warnings = [*table.warnings, warned]
    return replace(table.at(good), notes={**table.notes, "warnings": "\n".join(warnings)})


def _stream(text: str, file: str) -> Table:
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    for run in _STREAM.split(text)[1:]:
        threads = _THREADS.search(run)
        if threads is None:
            remedy = "compile STREAM with OpenMP, or give a CSV file with columns cores and bandwidth"
            raise refuse(file, f"a run without `Number of Threads counted = N`; {remedy}")
        table = parse_babelstream(run, file)
        values = (table.columns[name].values.tolist() for name in ("function", "bandwidth"))
        rows += [
            {"function": name, "cores": float(threads[1]), "bandwidth": found}
            for name, found in zip(*values, strict=True)
        ]
        warnings += table.warnings
    return row_table(rows, COLUMNS, {"tool": "STREAM", "file": file}, warnings)


def _likwid_rows(text: str, file: str) -> Iterator[dict[str, Any]]:
    for run in _LIKWID.split(text)[1:]:
        found = {line: pattern.search(run) for line, pattern in _RUN.items()}
        if missing := [line for line, match in found.items() if match is None]:
            raise refuse(file, f"a run of likwid-bench without `{'`, `'.join(missing)}`; is the file cut off?")
        name, threads, bandwidth = (match[1] for match in found.values() if match is not None)
        yield {"function": name, "cores": float(threads), "bandwidth": float(bandwidth) * 1e6}


def _csv(text: str, file: str) -> Table:
    known = "neither STREAM, likwid-bench, nor CSV with columns `cores` and `bandwidth [GB/s]`"
    if not _HEADING.search(text):
        raise refuse(file, known if text.strip() else "the file is empty")
    table = read_runs_csv(text, file)
    for name in ("cores", "bandwidth"):
        if name not in table.columns:
            raise refuse(file, f"{known}: no column {name}")
        if table.columns[name].dimension != COLUMNS[name]:
            raise refuse(file, f"`{name}` must be in {COLUMNS[name]}: write the unit behind it, `bandwidth [GB/s]`")
    unnamed = Column(np.full(len(table), "", dtype=object))
    return Table({name: table.columns.get(name, unnamed) for name in COLUMNS}, table.notes)
