"""Output of nccl-tests and rccl-tests: the time of a collective by size, out of place and in place.

A run states its program (`# Collective test starting: all_reduce_perf`, or a command line), a line for each rank with
its host and device, and rows of size, count, type, operation, root and twice time, algorithm and bus bandwidth. Lines
may carry the name of a process (`0: `, `[1,0]<stdout>:`) or a time stamp.
Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.importers.numbers import MOST_ROWS, valid_measurements
from whatif.importers.operations import MOST_RANKS
from whatif.importers.text import refuse, text_of
from whatif.table import Table
from whatif.units import counted

_PREFIX: Final = re.compile(r"^\s*(?:\d{4}-\d\d-\d\dT\S+Z\s|\[\d+,\d+\](?:<std\w+>)?:|\d+:(?=\s))\s?")
_PROGRAM: Final = re.compile(r"\b(\w+)_perf\b")
_RANK: Final = re.compile(r"#\s+Rank\s+\d+\b.*?\bon\s+(\S+)\s+device\s+\d+\s+\[\S+\]\s*(.*)")
_NUMBER: Final = r"\s+(\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_PLACE: Final = _NUMBER * 3 + r"\s+(\d+(?:\.\d+)?(?:e[+-]?\d+)?|N/A)"
_ROW: Final = re.compile(r"(\d+)\s+(\d+)\s+[a-z]\w*(?:\s+[a-z]\w*)?(?:\s+-?\d+)?" + _PLACE + _PLACE)
_DAMAGED: Final = re.compile(r"\d+\s+\d+\s+[a-z]")
_START: Final = re.compile(r"#\s+(?:Collective test starting|nThread|Rank\s+\d|size\s+count\s+type)")
"""Lines before the rows of a run; one of them after rows begins another run."""
_NAMES: Final = {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter"}
_UNSURE: Final = 1.05
"""Least ratio of bus to algorithm bandwidth from which an all-reduce is recognised."""


@dataclass
class _Run:
    """One table, and what was stated before it."""

    test: str = ""
    ranks: int = 0
    hosts: list[str] = field(default_factory=list)
    """Host of each listed rank."""
    device: str = ""
    rows: list[tuple[float, ...]] = field(default_factory=list)
    """Size, then time, algorithm and bus bandwidth and wrong values, out of place and in place, and the line."""


def read_nccl_tests(source: str | Path, file: str = "<text>") -> Table:
    """Collectives as measurements (see `whatif.importers.message_tables`), those in place with `_in_place` in the test.

    Times are the averages that the program prints; sizes are those of its first column. Where neither program nor ranks
    are stated, an all-reduce and its ranks follow from bus bandwidth / algorithm bandwidth = 2 (P - 1) / P, with a
    warning. Raise `InvalidFileError` for a text without rows, and a file larger than 64 MiB.
    """
    text, file = text_of(source, file)
    warnings: list[str] = []
    runs = [_named(run, file, warnings) for run in _runs(text, file, warnings) if run.rows]
    if not runs:
        raise refuse(file, "nccl-tests: no rows of results")
    rows = [row for run in runs for row in run.rows]
    if len(rows) > MOST_ROWS:
        raise refuse(file, f"more than {MOST_ROWS:,} rows")
    columns = _columns(runs)
    if wrong := sum(row[4] > 0 or row[8] > 0 for row in rows):
        warnings.append(f"{file}: {counted(wrong, 'row')} with wrong results")
    devices = "; ".join(dict.fromkeys(run.device for run in runs if run.device))
    lines = np.array([int(row[-1]) for run in runs for _ in range(2) for row in run.rows])
    notes = {"tool": "nccl-tests", "file": file, "device": devices} | _placement(runs)
    return valid_measurements(columns, lines, notes, warnings)


def _placement(runs: list[_Run]) -> dict[str, str]:
    """Note with the ranks of a node, where they are the same on all nodes of all runs and there are several nodes."""
    counts = {count for run in runs for count in Counter(run.hosts).values()}
    several = all(len(set(run.hosts)) > 1 for run in runs)
    return {"ranks_per_node": str(counts.pop())} if several and len(counts) == 1 else {}


def _runs(text: str, file: str, warnings: list[str]) -> Iterator[_Run]:
    run = _Run()
    program = ""
    damaged: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        plain = _PREFIX.sub("", line).strip()
        if found := _ROW.fullmatch(plain):
            run.test, program = run.test or program, ""
            size, _, *cells = found.groups()
            cells[3::4] = map(_wrong_count, cells[3::4])
            run.rows.append((float(size), *map(float, cells), number))
            continue
        if _DAMAGED.match(plain):
            damaged.append(number)
        if run.rows and _START.match(plain):
            yield run
            run = _Run()
        if "test concluded" not in plain and (named := _PROGRAM.search(plain)):
            program = _NAMES.get(named[1], named[1])
        if rank := _RANK.match(plain):
            run.ranks += 1
            run.hosts.append(rank[1])
            run.device = rank[2].strip()
    if damaged:
        what = f"{counted(len(damaged), 'row')} left out: a cell is missing or is not a number"
        warnings.append(f"{file}:{damaged[0]}: {what}")
    yield run


def _wrong_count(text: str) -> str:
    """Wrong values; 0 for `N/A`, and for the largest error, `4e-07`, which old versions print instead."""
    return text if text.isdecimal() else "0"


def _named(run: _Run, file: str, warnings: list[str]) -> _Run:
    """Run whose program and ranks are known as far as they can be."""
    if run.test and run.ranks:
        return run
    largest = max(run.rows)
    ratio = largest[3] / largest[2] if largest[2] else 0.0
    ranks = round(2 / (2 - ratio)) if _UNSURE < ratio < 2 and run.test in ("", "allreduce") else 0
    if ranks and run.ranks:
        guess = f"taken as allreduce, as its bandwidths suggest; {run.ranks} ranks as listed"
        warnings.append(f"{file} does not name the test; {guess}")
        run.test = "allreduce"
    elif 0 < ranks <= MOST_RANKS:
        warnings.append(
            f"{file}: allreduce on {ranks} ranks, by the ratio of its bandwidths: the output does not state it"
        )
        run.test, run.ranks = "allreduce", ranks
    else:
        missing = "ranks" if run.test else "program"
        warnings.append(f"{file}: the output does not state its {missing}")
    return run


def _columns(runs: list[_Run]) -> dict[str, Any]:
    """Columns of all rows: those out of place, then those in place of each run."""
    found: dict[str, list[Any]] = {name: [] for name in ("test", "message_size", "process_count", "time", "bandwidth")}
    for run in runs:
        ranks = run.ranks or np.nan
        for suffix, at in (("", 1), ("_in_place", 5)):
            for row in run.rows:
                cells = (f"{run.test}{suffix}", row[0], ranks, row[at] * 1e-6, row[at + 1] * 1e9)
                for column, cell in zip(found.values(), cells, strict=True):
                    column.append(cell)
    texts = {"test": np.array(found.pop("test"), dtype=object), "buffers": "device"}
    return {**texts, **{name: np.array(cells, dtype=float) for name, cells in found.items()}}
