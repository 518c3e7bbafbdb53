"""Rows of numbers under lines of text: what most benchmarks print, read in bulk.

A file is a sequence of rows (lines of numbers only) and gaps (headings, banners, noise). Gaps are read line by line,
and remembered, since concatenated outputs repeat them; the numbers of all rows of a chunk are converted at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.message_tables import measurements
from whatif.importers.text import CUT_OFF, refuse, whole_lines
from whatif.models.quantities import FloatArray, IntArray
from whatif.table import Table

MOST_ROWS: Final = 4_000_000
"""Rows of one file, or of several read together."""
NOTES: Final = ("tool", "version", "command", "date", "nodes")
"""Constants of a section that describe the file, not its rows; `nodes` are those of processes 0 and 1."""
_MOST_VALUES: Final = 20
_REMEMBERED: Final = 4096

# A run of OSU with validation ends each row with its result.
_VALIDATION = re.compile(r"\d +(?:Pass|Fail) *$", re.MULTILINE)
# `srun --label` and `mpirun --tag-output` name the process before each line.
_PROCESS = r"^[ \t]*(?:\d+|\[\d+,\d+\](?:<std(?:out|err)>)?): ?"
_PREFIX = re.compile(_PROCESS, re.MULTILINE)
# Followed by a comment, or a row: a size and at least one more number.
_PREFIXED = re.compile(_PROCESS + r"[ \t]*(?:#|\d+(?:[ \t]+\d+(?:\.\d*)?)+[ \t]*$)", re.MULTILINE)

# Class of each character; `bytes.translate` is the fastest way to find it.
_BLANK, _DIGIT, _POINT, _LETTER, _OTHER = range(5)
_KINDS = bytearray([_OTHER] * 256)
for _kind, _characters in ((_BLANK, b" \t\n"), (_DIGIT, b"0123456789"), (_POINT, b"."), (_LETTER, b"+-eEnNaAiIfF")):
    for _character in _characters:
        _KINDS[_character] = _kind

_MOST_DIGITS: Final = 15
_POWERS = 10.0 ** np.arange(_MOST_DIGITS + 1)


@dataclass(frozen=True)
class Section:
    """Heading of rows of numbers: their columns with scales, and constant values."""

    columns: tuple[tuple[str, float], ...] = ()
    constants: tuple[tuple[str, Any], ...] = ()

    def constant(self, name: str) -> Any:
        """Value of a constant; None if it is not stated."""
        return dict(self.constants).get(name)

    def having(self, **constants: Any) -> Section:
        """Section with constants set."""
        return replace(self, constants=tuple((dict(self.constants) | constants).items()))


ReadLine = Callable[[Section, str], Section]
"""A line between rows of numbers: the section before it to the section after it."""


class Lines:
    """Lines of a text that ends with a line end: their ends, and their numbers of words.

    Rows are lines that begin with a digit and hold only characters of numbers.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        plain = text.encode("ascii", "replace")
        self._characters = np.frombuffer(plain, dtype=np.uint8)
        kinds = np.frombuffer(plain.translate(_KINDS), dtype=np.uint8)
        edges = np.flatnonzero(np.diff(kinds != _BLANK, prepend=False))
        self._starts, self._ends = edges[0::2], edges[1::2]
        self.ends = np.flatnonzero(self._characters == ord("\n")) + 1
        starts = np.concatenate([[0], self.ends[:-1]])
        first_word = np.searchsorted(self._starts, starts)
        self.counts = np.diff(first_word, append=len(self._starts))
        first_kind = kinds[np.append(self._starts, len(plain) - 1)[first_word]]
        self.is_row = (self.counts > 0) & (first_kind == _DIGIT) & (np.maximum.reduceat(kinds, starts) < _OTHER)

    @property
    def gaps(self) -> tuple[IntArray, IntArray]:
        """First lines of the blocks between rows, and the lines after."""
        edges = np.flatnonzero(np.diff(self.is_row, prepend=True, append=True))
        return edges[0::2], edges[1::2]

    def texts(self, first: IntArray, last: IntArray) -> list[str]:
        """The text from each first line to the line before its last."""
        ends = np.insert(self.ends, 0, 0)
        return [self.text[start:end] for start, end in zip(ends[first].tolist(), ends[last].tolist(), strict=True)]

    def numbers(self, rows: IntArray) -> FloatArray:
        """The numbers of some rows, one after the other; raise `ValueError` for another word."""
        is_wanted = np.zeros(len(self.counts), dtype=bool)
        is_wanted[rows] = True
        words = np.repeat(is_wanted, self.counts)
        starts, ends = self._starts[words], self._ends[words]
        values, is_plain = _plain_numbers(self._characters, starts, ends - starts)
        if not is_plain.all():
            spans = zip(starts[~is_plain].tolist(), ends[~is_plain].tolist(), strict=True)
            values[~is_plain] = np.array([self.text[start:end] for start, end in spans], dtype=float)
        return values


def _plain_numbers(
    characters: NDArray[np.uint8], starts: IntArray, widths: IntArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The numbers that are digits with at most one point, and which words are such numbers.

    A number of at most 15 digits is an integer below 2^53 over a power of ten that is exact too: the quotient is the
    correctly rounded value, and all of them can be computed at once, digit by digit.
    """
    value = np.zeros(len(starts))
    width = np.minimum(widths, 255).astype(np.uint8)
    digits, points, decimals = (np.zeros_like(width) for _ in range(3))
    for position in range(min(int(width.max(initial=0)), _MOST_DIGITS + 1)):
        character = characters.take(starts + position, mode="clip")
        digit = character - ord("0")  # of unsigned bytes: those below "0" become large
        is_inside = position < width
        is_digit = is_inside & (digit < 10)
        value = np.where(is_digit, value * 10 + digit, value)
        digits += is_digit
        decimals += is_digit & (points > 0)
        points += is_inside & (character == ord("."))
    is_plain = (digits + points == width) & (points < 2) & (digits > 0) & (digits <= _MOST_DIGITS)
    return value / _POWERS[np.minimum(decimals, _MOST_DIGITS)], is_plain


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
        self._line, self._row_count = 1, 0
        self._prefixed = self._validated = False
        self._counted: dict[str, tuple[int, int]] = {}

    def read(self, texts: Iterable[str]) -> RowReader:
        """Read the pieces of a file, each of whole lines."""
        for text in texts:
            whole, rest = whole_lines(text)
            if whole:
                self._read(whole)
            if rest and not self._is_row(rest):
                self._read(rest + "\n")
            elif rest:
                self._count(CUT_OFF, 1, self._line)
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
        """Notes of all sections about the file: distinct values, joined."""
        found = {name: [section.constant(name) for section in self._sections] for name in NOTES}
        return {
            name: "; ".join(list(dict.fromkeys(value for value in values if value))[:_MOST_VALUES])
            for name, values in found.items()
        } | {"file": self.file}

    def _read(self, text: str) -> None:
        text = _PREFIX.sub("", text) if self._prefixed else text
        lines = Lines(text.replace(" Pass", "     ").replace(" Fail", "     ") if self._validated else text)
        first, last = lines.gaps
        gaps = lines.texts(first, last)
        if self._learns(set(gaps)):
            self._read(text)
            return
        sections = [self._now, *map(self._advance, gaps, (self._line + first).tolist())]
        rows = np.flatnonzero(lines.is_row)
        if self._validated:
            self._count_failed(text, lines)
        if len(rows):
            self._convert(lines, rows, np.array(sections)[np.searchsorted(first, rows)])
        self._line += len(lines.is_row)

    @staticmethod
    def _is_row(line: str) -> bool:
        return bool(Lines(_PREFIX.sub("", line) + "\n").is_row.any())

    def _learns(self, gaps: set[str]) -> bool:
        """Whether some gaps show, for the first time, that lines hold more than text and numbers."""
        before = self._prefixed, self._validated
        self._prefixed = self._prefixed or any(map(_PREFIXED.search, gaps))
        self._validated = self._validated or any(map(_VALIDATION.search, gaps))
        return (self._prefixed, self._validated) != before

    def _advance(self, gap: str, line: int) -> int:
        key = (self._now, gap)
        after = self._remembered.get(key)
        if after is None:
            after = self._after(gap, line)
            if len(gap) < _REMEMBERED and len(self._remembered) < _REMEMBERED:
                self._remembered[key] = after
        self._now = after
        return after

    def _after(self, gap: str, line: int) -> int:
        """The number of the section after some lines."""
        section = self._sections[self._now]
        for offset, text in enumerate(gap.splitlines()):
            self._refuse_damaged(section, text, line + offset)
            section = self._read_line(section, text)
        number = self._numbers.setdefault(section, len(self._numbers))
        if number == len(self._sections):
            self._sections.append(section)
        return number

    def _refuse_damaged(self, section: Section, text: str, line: int) -> None:
        """Refuse a line that has the shape of a row of its section, but a word that is not a number."""
        if not section.columns or not text.lstrip()[:1].isdigit():
            return
        words = text.split()
        if len(words) == len(section.columns):
            wrong = next((word for word in words if not is_number(word)), words[-1])
            raise refuse(self.file, f"`{wrong[:40]}` is not a number", line)

    def _convert(self, lines: Lines, rows: IntArray, kind: IntArray) -> None:
        keep = self._whole(lines, rows, kind)
        rows, kind = rows[keep], kind[keep]
        try:
            values = lines.numbers(rows)
        except ValueError:
            texts = zip(rows, lines.texts(rows, rows + 1), strict=True)
            row, word = next((row, word) for row, text in texts for word in text.split() if not is_number(word))
            raise refuse(self.file, f"`{word[:40]}` is not a number", self._line + int(row)) from None
        self._store(values, lines.counts[rows], kind, self._line + rows)

    def _whole(self, lines: Lines, rows: IntArray, kind: IntArray) -> NDArray[np.bool_]:
        """Mask of the rows with as many values as headings; only a last row can have been cut off."""
        counts, line = lines.counts[rows], self._line + rows
        widths = np.array([len(section.columns) for section in self._sections])[kind]
        unknown = widths == 0
        if unknown.any():
            self._count("numbers under no heading that is known, left out", int(unknown.sum()), int(line[unknown][0]))
        wrong = ~unknown & (counts != widths)
        if wrong.any():
            followed = np.append(np.diff(rows) == 1, False)
            bad = wrong & (followed | (counts > widths))
            if bad.any():
                at = int(np.argmax(bad))
                message = f"{counts[at]} values where the heading has {widths[at]} columns"
                raise refuse(self.file, message, int(line[at]))
            self._count("a row that was cut off, left out", int(wrong.sum()), int(line[wrong][0]))
        whole: NDArray[np.bool_] = counts == widths
        return whole

    def _store(self, values: FloatArray, counts: IntArray, kind: IntArray, line: IntArray) -> None:
        self._row_count += len(line)
        if self._row_count > MOST_ROWS:
            raise refuse(self.file, f"more than {MOST_ROWS:,} rows: split the file, or read a part of it")
        part: dict[str, FloatArray] = {}
        starts = np.cumsum(counts) - counts
        for number in np.flatnonzero(np.bincount(kind)):
            rows = np.flatnonzero(kind == number)
            for position, (name, scale) in enumerate(self._sections[number].columns):
                if name:
                    with np.errstate(over="ignore"):
                        scaled = values[starts[rows] + position] * scale
                    part.setdefault(name, np.full(len(kind), np.nan))[rows] = scaled
        self._parts.append(part)
        self._section_of_rows.append(kind)
        self._line_of_rows.append(line)

    def _count_failed(self, text: str, lines: Lines) -> None:
        failed = [match.start() for match in re.finditer(" Fail", text)]
        line = np.searchsorted(lines.ends, failed, side="right")
        line = line[lines.is_row[line]]
        if len(line):
            self._count("the validation of this row failed", len(line), self._line + int(line[0]))

    def _count(self, what: str, count: int, line: int) -> None:
        before, first = self._counted.get(what, (0, line))
        self._counted[what] = (before + count, first)


def table_of(rows: RowReader, columns: dict[str, Any]) -> Table:
    """The rows of a reader as measurements: see `valid_measurements`."""
    return valid_measurements(columns, rows.lines, rows.notes, rows.warnings)


def valid_measurements(
    columns: dict[str, Any], lines: NDArray[Any], notes: dict[str, str], warnings: list[str]
) -> Table:
    """Measurements with valid sizes and times; others are left out with a warning.

    A time must be a positive number, a message size a number that is not negative. Raise `InvalidFileError` if
    nothing is left.
    """
    time, size = np.asarray(columns["time"]), np.asarray(columns["message_size"])
    good = np.isfinite(time) & (time > 0) & np.isfinite(size) & (size >= 0)
    good = np.broadcast_to(good, (len(lines),))
    file, warned = notes.get("file", ""), list(warnings)
    if not good.all():
        count, first = int((~good).sum()), int(lines[~good][0])
        rows = "rows, this and others," if count > 1 else "row"
        warned.append(f"{file}:{first}: {count} {rows} left out: zero, negative or no number as time or message size")
        columns = {name: value[good] if np.ndim(value) else value for name, value in columns.items()}
    if not good.any():
        raise refuse(file, "; ".join(["no measurements in this file", *warned]))
    return measurements(columns | {"file": file}, notes, warned)


def number_of(word: str, file: str, line: int = 0, key: str = "") -> float:
    """Value of a word; raise `InvalidFileError` for one that is not a number."""
    if not is_number(word):
        raise refuse(file, f"`{word.strip()[:40]}` is not a number", line, key)
    return float(word)


def is_number(word: str) -> bool:
    """Whether a word is a number as programs print them: no `1_000`."""
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word
