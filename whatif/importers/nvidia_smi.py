"""Logs of nvidia-smi, for power: `--query-gpu=.. --format=csv`, with or without units in the cells, and `dmon`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Final

from whatif.importers.mapping import split_unit
from whatif.importers.run_columns import has_known_unit
from whatif.importers.runs_csv import sheet_runs
from whatif.importers.text import pieces_of, refuse
from whatif.table import Table
from whatif.units import DAY

TOOL: Final = "nvidia-smi"
MONITOR: Final = re.compile(r"\A\s*#[^\n]*\bgpu\b[^\n]*\n\s*#[^\n]*\bIdx\b")
"""Start of a log of `dmon`."""

_ASKED: Final = re.compile(r"(?:power\.draw|utilization\.(?:gpu|memory)|temperature\.gpu|clocks\.(?:current\.)?\w+)\b")
_DOTTED: Final = re.compile(r"\w+\.\w")
_OWN: Final = re.compile(
    r"(?:timestamp|index|name|uuid|serial|count|pstate|gpu_\w+|\w+_(?:mode|version|cap|active)|\w+\.[\w.]+)"
    r"(?:\s*\[[^\]]*\])?"
)
"""Headings of a log of `--query-gpu`: the usual ones, most, and all."""
_DATE: Final = re.compile(r"\d{4}/\d\d/\d\d ")
_MISSING: Final = re.compile(r"\[.*\]|N/A|-")
_MEASURED: Final = re.compile(r"([-+]?\d+(?:\.\d*)?)\s+(\S+)")
_TIME: Final = "timestamp"


@dataclass
class _Log:
    """Rewrites a log line by line as a sheet; lines stay where they are, so that errors name them."""

    file: str
    monitor: bool
    names: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    heading: str = ""
    start: datetime | None = None
    last: float = 0.0
    line: int = 0

    def rewritten(self, texts: Iterable[str]) -> Iterator[str]:
        """The pieces of a log as pieces of a CSV file."""
        for text in texts:
            yield "".join(self._line(line) for line in text.splitlines(keepends=True))

    def _line(self, line: str) -> str:
        self.line += 1
        end = "\n" if line.endswith("\n") else ""
        return (self._monitored(line) if self.monitor else self._queried(line)) + end

    def _queried(self, line: str) -> str:
        cells = [cell.strip() for cell in line.split(",")]
        if not line.strip() or line.strip() == self.heading:
            return ""
        if not self.names:
            self.heading, self.names = line.strip(), cells
            self.units = [split_unit(name)[1] for name in cells]
            return _heading(self.names)
        return self._row(cells)

    def _monitored(self, line: str) -> str:
        words = line.replace("#", " ").split()
        if not line.lstrip().startswith("#"):
            return self._row(words) if words else ""
        if not self.names:
            self.names = words
        elif not self.units:
            # `Idx`, and degrees, are no units; `Time` is a time of day.
            self.names = [_TIME if name == "Time" else name for name in self.names]
            self.units = [unit if has_known_unit(f"x [{unit}]") else "" for unit in words]
            pairs = zip(self.names, [*self.units, *[""] * len(self.names)], strict=False)
            return _heading([f"{name} [{unit}]" if unit else name for name, unit in pairs])
        return ""

    def _row(self, cells: list[str]) -> str:
        at = self.names.index(_TIME) if _TIME in self.names else -1
        if len(cells) == len(self.names) and at >= 0:
            cells[at] = repr(self._seconds(cells[at]))
        units = [*self.units, *[""] * len(cells)]
        return ",".join(_plain(cell, unit) for cell, unit in zip(cells, units, strict=False))

    def _seconds(self, text: str) -> float:
        """Seconds since the first row; an earlier time of day is one of the next day."""
        formats = ("%H:%M:%S",) if self.monitor else ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S")
        found = next((time for form in formats if (time := _time(text, form))), None)
        if found is None:
            raise refuse(self.file, f"`{text[:40]}` is not a time such as `2026/01/31 12:00:00.000`", self.line, _TIME)
        self.start = self.start or found
        seconds = (found - self.start).total_seconds()
        while self.monitor and seconds < self.last - DAY / 2:
            seconds += DAY
        self.last = seconds
        return seconds


def is_nvidia_smi(head: str) -> bool:
    """Whether a file begins as a log does; a sheet may have a column `clocks.sm` too."""
    first, _, rest = head.lstrip().partition("\n")
    headings = [heading.strip() for heading in first.split(",")]
    if MONITOR.match(head) or len(headings) == 1:
        return MONITOR.match(head) is not None
    is_asked = any(map(_ASKED.match, headings))
    if headings[0] == _TIME:
        return is_asked or (any(map(_DOTTED.match, headings)) and _DATE.match(rest.lstrip()) is not None)
    return is_asked and all(map(_OWN.fullmatch, headings))


def read_nvidia_smi(
    source: str | Path,
    file: str = "<text>",
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, str] | None = None,
) -> Table:
    """Samples of a log, one row each: `timestamp` in seconds since the first row, `power_draw`, and other columns.

    `columns` and `where` are those of `read_runs_csv`, with the names of the log, `power.draw`. Raise
    `InvalidFileError` with the place.
    """
    texts, file = pieces_of(source, file)
    rest = iter(texts)
    first = next(rest, "")
    log = _Log(file, MONITOR.match(first) is not None)
    table = sheet_runs(log.rewritten(chain((first,), rest)), file, columns, where)
    date = {} if log.start is None or log.monitor else {"date": str(log.start)}
    return replace(table, notes={**table.notes, "tool": TOOL, **date})


def _heading(names: list[str]) -> str:
    return ",".join(f"{name} [s]" if name == _TIME else name for name in names)


def _time(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def _plain(cell: str, unit: str) -> str:
    """A cell without the unit of its column; empty for `[N/A]` and the like."""
    if _MISSING.fullmatch(cell):
        return ""
    measured = _MEASURED.fullmatch(cell)
    return measured[1] if measured and measured[2] == unit else cell
