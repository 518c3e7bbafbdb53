"""CSV and TSV text with one line of headings: read in pieces, with errors that name the line and the column."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import InvalidFileError
from whatif.importers.cell_numbers import MISSING, failures, is_missing, looks_like_number, numbers_of
from whatif.importers.mapping import SheetLayout
from whatif.importers.numbers import MOST_ROWS, is_number
from whatif.importers.text import CUT_OFF, refuse, whole_lines

Cells = dict[int, NDArray[Any]]
"""Columns by position: numbers as float64, texts as objects."""
_FEW_CHARACTERS: Final = 300_000
"""Length of a text up to which importing pandas takes longer than reading the text without."""

NOT_A_TABLE: Final = (
    "is not a table with one row a line, and cells between tabs, commas, semicolons, | or blanks; "
    "`whatif import logs` reads the output of applications"
)
DECIMAL_COMMAS: Final = "commas are taken as decimal ones"
_SEPARATORS: Final = "\t,;|"
_FEW_ROWS: Final = 20
# The line below the headings of sacct and of Markdown.
_RULE: Final = re.compile(r"[\s|+:=-]*-{2}[\s|+:=-]*")
# A unit belongs to the heading before it.
_BLANKS: Final = re.compile(r"[ \t]+(?![(\[])")


@dataclass
class SheetRows:
    """Rows of a sheet, in pieces: frames of the wanted columns by position, the line of each row, and warnings."""

    sheet: SheetLayout
    file: str
    frames: list[Cells] = field(default_factory=list)
    lines: list[NDArray[np.int64]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    count: int = 0
    wrong: dict[int, InvalidFileError] = field(default_factory=dict)
    """First cell that is not a number, of the columns of numbers that are left as texts."""
    durations: set[int] = field(default_factory=set)
    """Columns of durations, in seconds where their headings have no unit."""
    words: dict[int, dict[int, str]] = field(default_factory=dict)
    """Words in the place of numbers by line, by column."""
    decimal_commas: bool = False

    def add(self, frame: Cells, lines: NDArray[np.int64], wanted: Mapping[int, bool]) -> None:
        """Add a piece; cells of columns of numbers that are still texts become numbers."""
        for at in [at for at, cells in frame.items() if wanted.get(at) and cells.dtype == object]:
            heading = self.sheet.names[at]
            found = numbers_of(frame[at].tolist(), heading, self.sheet.separator)
            if found.wrong is not None:
                line = int(lines[found.wrong[0]])
                self.wrong.setdefault(at, refuse(self.file, found.wrong[1], line, heading))
                continue
            frame[at] = found.values
            self.words.setdefault(at, {}).update((int(lines[row]), word) for row, word in found.words)
            self.durations |= {at} if found.durations else set()
            self.decimal_commas |= found.decimal_commas
        self.frames.append(frame)
        self.lines.append(lines)
        self.count += len(lines)

    def refuse_wrong(self, positions: Iterable[int]) -> None:
        """Raise `InvalidFileError` with the first cell of each of some columns that is not a number."""
        if problems := [item for at in positions if at in self.wrong for item in self.wrong[at].problems]:
            raise InvalidFileError(problems)

    @property
    def remarks(self) -> list[str]:
        """Warnings, and how cells that are no plain numbers were read."""
        found = [
            f"{self.file}:{next(iter(words))}: {failures(self.sheet.names[at], [*words.values()])}"
            for at, words in self.words.items()
            if words
        ]
        for at, error in self.wrong.items():
            problem = error.problems[0]
            place = f"{self.file}:{problem.line}: `{self.sheet.names[at][:80]}`"
            found.append(f"{place} is read as texts: {problem.message}")
        return [*self.warnings, *found, *([f"{self.file}: {DECIMAL_COMMAS}"] if self.decimal_commas else [])]


def opened(texts: Iterable[str], file: str) -> tuple[SheetLayout, str, Iterator[str]]:
    """Layout of a file in pieces, the rows of its first piece, and the pieces after it."""
    texts = iter(texts)
    first = next(texts, "")
    sheet = _sheet(first, file)
    rest = "".join(first.splitlines(keepends=True)[sheet.line :])
    return (sheet, _single_blanks(rest), map(_single_blanks, texts)) if sheet.separator == " " else (sheet, rest, texts)


def _single_blanks(text: str) -> str:
    return re.sub(r"[ \t]+", " ", re.sub(r"^[ \t]+|[ \t]+$", "", text, flags=re.MULTILINE))


def _sheet(text: str, file: str) -> SheetLayout:
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None)
    if at is None:
        raise refuse(file, "no measurements in this file: it is empty")
    if _is_data(lines[at]):
        # A heading may itself be written as a comment: `# Threads,Bandwidth (MB/s)`.
        at = next((above for above in range(at - 1, -1, -1) if lines[above].strip()), -1)
        if at < 0:
            raise refuse(file, "the first line holds numbers: a line of headings is missing above it", 1)
    line = at + 1 + bool(lines[at + 1 : at + 2] and _RULE.fullmatch(lines[at + 1]))
    rows = [row for row in lines[line:] if row.strip() and not row.lstrip().startswith("#")]
    heading = _heading(lines[at].strip().removeprefix("#").strip(), rows)
    if not any(separator in heading for separator in _SEPARATORS):
        return _blank_separated(heading, rows, line, file)
    separator = max(_SEPARATORS, key=heading.count)
    cells = next(csv.reader([heading], delimiter=separator, skipinitialspace=True))
    return SheetLayout(separator, tuple(cell.strip() for cell in cells), line)


def _heading(text: str, rows: Sequence[str]) -> str:
    """Line of headings without a comment behind it: `size (bytes),time (seconds) # Source: ...`, but `run #,time`."""
    short = re.sub(r"\s#.*", "", text)
    return (
        text if rows and any(short.count(one) < rows[0].count(one) <= text.count(one) for one in _SEPARATORS) else short
    )


def _blank_separated(heading: str, rows: Sequence[str], line: int, file: str) -> SheetLayout:
    """Layout of columns between blanks, or of one column of numbers. Raise `InvalidFileError` for a text."""
    words = tuple(_BLANKS.split(heading))
    if rows and len(words) > 1 and len(words) in {len(rows[0].split()), len(re.sub(r"\s#.*", "", rows[0]).split())}:
        return SheetLayout(" ", words, line)
    if not all(is_missing(row.strip()) or looks_like_number(row.strip()) for row in rows[:_FEW_ROWS]):
        raise refuse(file, NOT_A_TABLE, line)
    return SheetLayout("\t", (heading,), line)


def _is_data(line: str) -> bool:
    cells = [cell for cell in re.split(r"[\s,;|]", line) if cell]
    return all(is_number(cell) for cell in cells)


def read_rows(
    texts: Iterable[str], sheet: SheetLayout, wanted: Mapping[int, bool], filters: Mapping[int, str], file: str
) -> SheetRows:
    """Wanted columns by position, numbers or texts, of the rows that match all filters.

    A column of numbers with another cell in a matching row is left as texts: `SheetRows.wrong`.
    """
    part, line = SheetRows(sheet, file), sheet.line + 1
    for piece in texts:
        text, rest = whole_lines(piece)
        text = _without_comments(text, sheet)
        if rest.strip():
            part.warnings.append(f"{file}:{line + text.count(chr(10))}: {CUT_OFF}")
        if text:
            frame, lines = _frame(text, sheet, dict.fromkeys(filters, False) | dict(wanted), line, file, part.warnings)
            if filters:
                keep = kept(frame, filters)
                frame, lines = {at: cells[keep] for at, cells in frame.items()}, lines[keep]
            part.add(frame, lines, wanted)
            line += text.count("\n")
        if part.count > MOST_ROWS:
            raise refuse(file, f"more than {MOST_ROWS:,} rows: split the file, or keep a part of the rows")
    return part


def _frame(
    text: str, sheet: SheetLayout, wanted: Mapping[int, bool], line: int, file: str, warnings: list[str]
) -> tuple[Cells, NDArray[np.int64]]:
    """The wanted columns of some lines, with the line of each row: numbers, or all texts if a cell is not a number."""
    lines = _lines_of_rows(text, line)
    if text.count(sheet.separator) != len(lines) * (len(sheet.names) - 1) or '"' in text:
        text, lines = _without_cut_row(text, sheet, lines, file, warnings)
    if not len(lines):
        return {at: np.empty(0, float if number else object) for at, number in wanted.items()}, lines
    parse = _parsed if len(text) > _FEW_CHARACTERS else _parsed_short
    for kinds in (wanted, dict.fromkeys(wanted, False)):
        with suppress(ValueError):
            frame = parse(text, sheet, kinds)
            # A carriage return within a line ends a row of CSV.
            if all(len(cells) == len(lines) for cells in frame.values()):
                return frame, lines
    raise refuse(file, "is not a table with one row a line", line)


def _lines_of_rows(text: str, line: int) -> NDArray[np.int64]:
    if "\n\n" not in text and not text.startswith("\n"):
        return line + np.arange(text.count("\n"))
    return np.array([number for number, row in enumerate(text.splitlines(), line) if row.strip()], dtype=int)


def _without_comments(text: str, sheet: SheetLayout) -> str:
    """Lines without their comments, which begin a line or follow a last cell that is a number."""
    if "#" not in text:
        return text
    return "".join(_without_comment(row, sheet) if "#" in row else row for row in text.splitlines(keepends=True))


def _without_comment(row: str, sheet: SheetLayout) -> str:
    for at in (match.start() for match in re.finditer("#", row)):
        cells = next(csv.reader([row[:at].strip()], delimiter=sheet.separator, skipinitialspace=True), [])
        last = cells[-1].strip() if cells else ""
        if not cells or (len(cells) == len(sheet.names) and last and (is_missing(last) or looks_like_number(last))):
            return row[:at].rstrip() + "\n"
    return row


def _parsed_short(text: str, sheet: SheetLayout, wanted: Mapping[int, bool]) -> Cells:
    """The wanted columns of a short text; raise `ValueError` for other cells."""
    rows = [cells for _, cells in _rows(text, sheet)]
    if any(len(cells) != len(sheet.names) for cells in rows):
        raise ValueError
    columns = {at: [cells[at] for cells in rows] for at in wanted}
    return {
        at: np.array(list(map(_number, cells))) if wanted[at] else np.array(cells, dtype=object)
        for at, cells in columns.items()
    }


def _number(cell: str) -> float:
    cell = cell.strip()
    if cell in MISSING:
        return float("nan")
    if not is_number(cell):
        raise ValueError
    return float(cell)


def _parsed(text: str, sheet: SheetLayout, wanted: Mapping[int, bool]) -> Cells:
    """The wanted columns of a long text; raise `ValueError` for other cells."""
    import pandas as pd

    kinds: dict[Any, Any] = {position: float if number else str for position, number in wanted.items()}
    missing: dict[Any, Any] = {position: list(MISSING) if number else [] for position, number in wanted.items()}
    frame: pd.DataFrame = pd.read_csv(
        BytesIO(text.encode()),
        sep=sheet.separator,
        header=None,
        names=list(range(len(sheet.names))),
        index_col=False,
        usecols=sorted(wanted),
        dtype=kinds,
        skipinitialspace=True,
        na_values=missing,
        keep_default_na=False,
        engine="c",
    )
    return {at: frame[at].to_numpy() for at in wanted}


def _rows(text: str, sheet: SheetLayout, lines: Iterable[int] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Cells of each row, with its line where lines are given."""
    plain = (row for row in text.splitlines() if row.strip())
    rows = csv.reader(plain, delimiter=sheet.separator, skipinitialspace=True)
    return zip(count() if lines is None else lines, rows, strict=False)


def _without_cut_row(
    text: str, sheet: SheetLayout, lines: NDArray[np.int64], file: str, warnings: list[str]
) -> tuple[str, NDArray[np.int64]]:
    """Refuse rows with more or fewer cells than headings; a last one with fewer is left out with a warning."""
    width = len(sheet.names)
    for line, cells in _rows(text, sheet, lines.tolist()):
        if len(cells) == width:
            continue
        if len(cells) < width and line == lines[-1]:
            warnings.append(f"{file}:{line}: a row that was cut off, left out")
            start = text.rstrip("\n").rfind("\n") + 1
            return text[:start], lines[:-1]
        raise refuse(file, f"{len(cells)} cells where the heading has {width}{_remedy(cells, sheet)}", line)
    return text, lines


def _remedy(cells: Sequence[str], sheet: SheetLayout) -> str:
    """Possible causes of a row with another number of cells."""
    if not any(is_number(cell) for cell in cells):
        return f": this {NOT_A_TABLE}"
    if sheet.separator == " ":
        return ": a missing cell between blanks is written NA, and a cell has no blanks"
    return "; decimal commas?" if sheet.separator == "," and len(cells) > len(sheet.names) else ""


def kept(frame: Mapping[int, NDArray[Any]], filters: Mapping[int, str]) -> NDArray[np.bool_]:
    """Mask of the rows that match all filters, as texts or as numbers."""
    keep = np.ones(len(next(iter(frame.values()))), dtype=bool)
    for position, value in filters.items():
        cells = frame[position].tolist()
        same = {cell: _same_value(str(cell).strip(), value) for cell in set(cells)}
        keep &= np.fromiter(map(same.__getitem__, cells), bool, len(cells))
    return keep


def _same_value(cell: str, value: str) -> bool:
    """Whether a cell has the value of a filter, as a text or as a number."""
    return cell == value or (is_number(cell) and is_number(value) and float(cell) == float(value))
