"""Rows of numbers under lines of text: what most benchmarks print, read in bulk.

A file is a sequence of gaps (headings, banners, noise) and runs (lines of numbers only). Gaps are read line by line,
and remembered, since concatenated outputs repeat them; the numbers of all runs of a chunk are converted at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.measurements import measurements
from whatif.importers.text import refuse
from whatif.table import Table

MOST_ROWS: Final = 4_000_000
"""Rows of one file, or of several read together."""
NOTES: Final = ("tool", "version", "command", "date")
"""Constants of a section that describe the file, not its rows."""
_MOST_VALUES: Final = 20
_REMEMBERED: Final = 4096

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Not \d: a class of plain characters is matched twice as fast.
_RUN = re.compile(
    r"^(?:[ \t]*[0-9][0-9. \t\n]*\n|[ \t]*[0-9][-+.0-9eEnNaAiIfF \t]*(?:(?:Pass|Fail)[ \t]*)?\n)+",
    re.MULTILINE,
)
# `srun --label` and `mpirun --tag-output` name the process before each line.
_PROCESS = r"^[ \t]*(?:\d+|\[\d+,\d+\](?:<std(?:out|err)>)?): ?"
_PREFIX = re.compile(_PROCESS, re.MULTILINE)
_PREFIXED = re.compile(_PROCESS + "[ \t]*#", re.MULTILINE)
_POWERS = 10.0 ** np.arange(23)


@dataclass(frozen=True)
class Section:
    """What the lines above rows of numbers say about them: their columns with scales, and what is the same in all."""

    columns: tuple[tuple[str, float], ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()

    def constant(self, name: str) -> Any:
        """The value of a constant, None where it is not said."""
        return dict(self.constants).get(name)

    def having(self, **constants: Any) -> Section:
        """The same with constants set."""
        return replace(self, constants=tuple((dict(self.constants) | constants).items()))


ReadLine = Callable[[Section, str], Section]
"""A line between rows of numbers: the section before it to the section after it."""


class RowReader:
    """Collects the rows of one file: columns and constants of the sections by name, `lines`, `notes`, `warnings`."""

    def __init__(self, file: str, read_line: ReadLine) -> None:
        self.file = file
        self.warnings: list[str] = []
        self._read_line = read_line
        self._sections = [Section()]
        self._numbers = {Section(): 0}
        self._now = 0
        self._remembered: dict[tuple[int, str], int] = {}
        self._parts: list[dict[str, FloatArray]] = []
        self._section_of_rows: list[IntArray] = []
        self._line_of_rows: list[IntArray] = []
        self._line, self._row_count, self._prefixed = 1, 0, False
        self._counted: dict[str, tuple[int, int]] = {}

    def read(self, texts: Iterable[str]) -> RowReader:
        """Read the pieces of a file, each of whole lines."""
        for text in texts:
            self._read(text)
        for what, (count, line) in self._counted.items():
            self.warnings.append(f"{self.file}:{line}: {what}" + (f" ({count} such rows)" if count > 1 else ""))
        return self

    def column(self, name: str) -> FloatArray:
        """A column of numbers, NaN in rows that do not have it."""
        missing = np.float64(np.nan)
        if not any(name in part for part in self._parts):
            return np.broadcast_to(missing, (self._row_count,))
        lengths = zip(self._parts, self._line_of_rows, strict=True)
        return np.concatenate([part.get(name, np.broadcast_to(missing, len(lines))) for part, lines in lengths])

    @cached_property
    def lines(self) -> IntArray:
        """The line of each row."""
        return np.concatenate([np.empty(0, dtype=int), *self._line_of_rows])

    @cached_property
    def _section_of_row(self) -> IntArray:
        return np.concatenate([np.empty(0, dtype=int), *self._section_of_rows])

    def constant(self, name: str, missing: Any = np.nan) -> NDArray[Any]:
        """A constant of the sections, spread over their rows; of floats, or of texts where `missing` is one."""
        values = [section.constant(name) for section in self._sections]
        filled = [missing if value is None else value for value in values]
        array = np.array(filled, dtype=object if isinstance(missing, str) else float)
        used = np.flatnonzero(np.bincount(self._section_of_row))
        if len({filled[number] for number in used}) == 1:
            return np.broadcast_to(array[used[:1]], (self._row_count,))
        return array[self._section_of_row]

    @property
    def notes(self) -> dict[str, str]:
        """What the sections say about the file: distinct values, joined."""
        found = {name: [section.constant(name) for section in self._sections] for name in NOTES}
        return {
            name: "; ".join(list(dict.fromkeys(value for value in values if value))[:_MOST_VALUES])
            for name, values in found.items()
        } | {"file": self.file}

    def _read(self, text: str) -> None:
        text = _PREFIX.sub("", text) if self._prefixed else text
        before = self._now, self._prefixed
        runs, lines, kinds, end, line = [], [], [], 0, self._line
        for match in _RUN.finditer(text):
            start = match.start()
            self._advance(text[end:start], line)
            line += text.count("\n", end, start)
            runs.append(match[0])
            lines.append(line)
            kinds.append(self._now)
            line, end = line + match[0].count("\n"), match.end()
        self._advance(text[end:], line)
        if self._prefixed and not before[1]:
            self._now = before[0]
            self._read(text)
            return
        self._line = line + text.count("\n", end)
        if runs:
            self._convert(runs, np.array(lines), np.array(kinds))

    def _advance(self, gap: str, line: int) -> None:
        if not gap:
            return
        key = (self._now, gap)
        after = self._remembered.get(key)
        if after is None:
            after = self._after(gap, line)
            if len(gap) < _REMEMBERED and len(self._remembered) < _REMEMBERED:
                self._remembered[key] = after
        self._now = after

    def _after(self, gap: str, line: int) -> int:
        """The number of the section after some lines."""
        if not self._prefixed and _PREFIXED.search(gap):
            self._prefixed = True
            return self._now
        section = self._sections[self._now]
        for offset, text in enumerate(gap.splitlines()):
            self._refuse_damaged(section, text, line + offset)
            section = self._read_line(section, text)
        number = self._numbers.setdefault(section, len(self._numbers))
        if number == len(self._sections):
            self._sections.append(section)
        return number

    def _refuse_damaged(self, section: Section, text: str, line: int) -> None:
        """Refuse a line that has the shape of a row of its section, but a word that is no number."""
        if not section.columns or not text.lstrip()[:1].isdigit():
            return
        words = text.split()
        if len(words) == len(section.columns):
            wrong = next((word for word in words if not is_number(word)), words[-1])
            raise refuse(self.file, f"`{wrong[:40]}` is not a number", line)

    def _convert(self, runs: list[str], lines: IntArray, kinds: IntArray) -> None:
        text = "".join(runs)
        if "Fail" in text:
            self._count_failed(runs, lines)
        if "Pass" in text or "Fail" in text:
            text = text.replace("Pass", "    ").replace("Fail", "    ")
        values, counts, ends = _numbers(text)
        run = np.searchsorted(np.cumsum([len(part) for part in runs]), ends)
        first = np.searchsorted(run, np.arange(len(runs)))
        line = lines[run] + np.arange(len(ends)) - first[run]
        kind = kinds[run]
        widths = np.array([len(section.columns) for section in self._sections])[kind]
        keep = self._whole(counts, widths, run, line)
        starts = np.cumsum(counts) - counts
        if values is None:
            values = self._slowly(text, line, np.repeat(np.arange(len(counts)), counts))
        self._store(values, starts[keep], kind[keep], line[keep])

    def _whole(self, counts: IntArray, widths: IntArray, run: IntArray, line: IntArray) -> NDArray[np.bool_]:
        """Which rows have the values that their heading says; a row that was cut off can only be a last one."""
        filled = counts > 0
        unknown = filled & (widths == 0)
        if unknown.any():
            self._count("numbers under no heading that is known, left out", int(unknown.sum()), int(line[unknown][0]))
        wrong = filled & (widths > 0) & (counts != widths)
        if wrong.any():
            followed = np.append(run[1:] == run[:-1], False) & (np.append(counts[1:], 0) > 0)
            bad = wrong & (followed | (counts > widths))
            if bad.any():
                at = int(np.argmax(bad))
                said = f"{counts[at]} values where the heading has {widths[at]} columns"
                raise refuse(self.file, said, int(line[at]))
            self._count("a row that was cut off, left out", int(wrong.sum()), int(line[wrong][0]))
        whole: NDArray[np.bool_] = filled & (counts == widths)
        return whole

    def _slowly(self, text: str, line: IntArray, row: IntArray) -> FloatArray:
        words = text.split()
        try:
            return np.array(words, dtype=float)
        except ValueError:
            at = next(at for at, word in enumerate(words) if not is_number(word))
            raise refuse(self.file, f"`{words[at][:40]}` is not a number", int(line[row[at]])) from None

    def _store(self, values: FloatArray, starts: IntArray, kind: IntArray, line: IntArray) -> None:
        self._row_count += len(starts)
        if self._row_count > MOST_ROWS:
            raise refuse(self.file, f"more than {MOST_ROWS:,} rows: split the file, or read a part of it")
        part: dict[str, FloatArray] = {}
        for number in np.flatnonzero(np.bincount(kind)):
            rows = np.flatnonzero(kind == number)
            for position, (name, scale) in enumerate(self._sections[number].columns):
                if name:
                    with np.errstate(over="ignore"):
                        scaled = values[starts[rows] + position] * scale
                    if len(rows) == len(kind):
                        part[name] = scaled
                    else:
                        part.setdefault(name, np.full(len(kind), np.nan))[rows] = scaled
        self._parts.append(part)
        self._section_of_rows.append(kind)
        self._line_of_rows.append(line)

    def _count_failed(self, runs: list[str], lines: IntArray) -> None:
        for run, first in zip(runs, lines, strict=True):
            if "Fail" in run:
                offset = run.count("\n", 0, run.index("Fail"))
                self._count("the validation of this row failed", run.count("Fail"), int(first) + offset)

    def _count(self, what: str, count: int, line: int) -> None:
        before, first = self._counted.get(what, (0, line))
        self._counted[what] = (before + count, first)


def table_of(rows: RowReader, columns: dict[str, Any]) -> Table:
    """The rows of a reader as measurements: see `valid_measurements`."""
    return valid_measurements(columns, rows.lines, rows.notes, rows.warnings)


def valid_measurements(
    columns: dict[str, Any], lines: NDArray[Any], notes: dict[str, str], warnings: list[str]
) -> Table:
    """Measurements with sizes and times that can be; others are left out, told with their number and first line.

    A time must be a positive number, a message size a number that is not negative. Raise `InvalidFileError` where
    nothing is left.
    """
    time, size = np.asarray(columns["time"]), np.asarray(columns["message_size"])
    good = np.isfinite(time) & (time > 0) & np.isfinite(size) & (size >= 0)
    good = np.broadcast_to(good, (len(lines),))
    file, told = notes.get("file", ""), list(warnings)
    if not good.all():
        count, first = int((~good).sum()), int(lines[~good][0])
        rows = "rows, this and others," if count > 1 else "row"
        told.append(f"{file}:{first}: {count} {rows} left out: zero, negative or no number as time or message size")
        columns = {name: value[good] if np.ndim(value) else value for name, value in columns.items()}
    if not good.any():
        raise refuse(file, "; ".join(["no measurements in this file", *told]))
    return measurements(columns | {"file": file}, notes, told)


def is_number(word: str) -> bool:
    """Whether a word is a number as programs print them: no `1_000`."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _numbers(text: str) -> tuple[FloatArray | None, IntArray, IntArray]:
    """The numbers of a text of numbers, how many each line has, and where lines end; None for hard ones.

    A number of at most 15 digits without an exponent is an integer below 2^53 over a power of ten below 10^23: the
    quotient is the correctly rounded value, and all of them can be computed at once, digit by digit.
    """
    characters = np.frombuffer(text.encode("ascii", "replace"), dtype=np.uint8)
    solid = characters > 32
    solid[-1] = False  # the last character ends a line
    edges = np.flatnonzero(solid[1:] != solid[:-1]) + 1
    edges = np.insert(edges, 0, 0) if solid[0] else edges
    starts, widths = edges[0::2], edges[1::2] - edges[0::2]
    ends = np.flatnonzero(characters == 10)
    counts = np.diff(np.searchsorted(starts, ends), prepend=0)
    points = characters == 46
    easy = (characters < 58) & ((characters > 47) | points | ~solid)
    if not len(starts) or not easy.all() or widths.max() > 16:
        return (None if len(starts) else np.empty(0)), counts, ends
    return _digits(characters, starts, widths, int(points.sum())), counts, ends


def _digits(characters: NDArray[np.uint8], starts: IntArray, widths: IntArray, point_count: int) -> FloatArray | None:
    value, decimals = np.zeros(len(starts)), np.full(len(starts), -1)
    for position in range(int(widths.max())):
        character = characters.take(starts + position, mode="clip")
        inside = position < widths
        is_point = character == 46
        value = np.where(inside & ~is_point, value * 10 + (character - 48.0), value)
        decimals = np.where(inside & is_point, widths - 1 - position, decimals)
    # Two points in one word, or a word of 16 digits, are not for this way of reading.
    if int((decimals >= 0).sum()) != point_count or ((widths > 15) & (decimals < 0)).any():
        return None
    quotient: FloatArray = value / _POWERS[np.maximum(decimals, 0)]
    return quotient
