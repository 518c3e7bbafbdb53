"""CSV and TSV text with one line of headings: read in pieces, with errors that name the line and the column."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.mapping import SheetLayout
from whatif.importers.numbers import MOST_ROWS, is_number
from whatif.importers.text import CUT_OFF, refuse, whole_lines

Cells = dict[int, NDArray[Any]]
"""Columns by position: numbers as float64, texts as objects."""
MISSING: Final = ("NaN", "nan", "NA", "N/A", "")
"""Cells of numbers that are not there."""

_FEW_CHARACTERS: Final = 300_000
"""Length of a text up to which importing pandas takes longer than reading the text without."""

_MEANT_AS_NUMBERS: Final = {
    re.compile(r"=.*", re.DOTALL): "is a formula: save the values",
    re.compile(
        r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?"
    ): "has a thousands separator, or a decimal comma: write plain numbers with a decimal point",
    re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?"): "has a decimal comma: write it with a decimal point",
}


@dataclass
class SheetRows:
    """Rows of a sheet, in pieces: frames of the wanted columns by position, the line of each row, and warnings."""

    frames: list[Cells] = field(default_factory=list)
    lines: list[NDArray[np.int64]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    count: int = 0


def opened(texts: Iterable[str], file: str) -> tuple[SheetLayout, str, Iterator[str]]:
    """Layout of a file in pieces, the rows of its first piece, and the pieces after it."""
    texts = iter(texts)
    first = next(texts, "")
    sheet = _sheet(first, file)
    return sheet, "".join(first.splitlines(keepends=True)[sheet.line :]), texts


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
    heading = lines[at].strip().removeprefix("#").strip()
    separator = max("\t,;", key=heading.count)
    # A comment may follow the headings: `size (bytes),time (seconds) # Source: ...`.
    cells = next(csv.reader([re.sub(r"\s#.*", "", heading)], delimiter=separator, skipinitialspace=True))
    return SheetLayout(separator, tuple(cell.strip() for cell in cells), at + 1)


def _is_data(line: str) -> bool:
    cells = [cell for cell in re.split(r"[\t,;]", line) if cell.strip()]
    return all(is_number(cell) for cell in cells)


def read_rows(
    texts: Iterable[str], sheet: SheetLayout, wanted: Mapping[int, bool], filters: Mapping[int, str], file: str
) -> SheetRows:
    """Wanted columns by position, numbers or texts, of the rows that match all filters."""
    part, line = SheetRows(), sheet.line + 1
    for piece in texts:
        text, rest = whole_lines(piece)
        if rest.strip():
            part.warnings.append(f"{file}:{line + text.count(chr(10))}: {CUT_OFF}")
        if text:
            frame, lines = _frame(text, sheet, dict.fromkeys(filters, False) | dict(wanted), line, file, part.warnings)
            if filters:
                keep = kept(frame, filters)
                frame, lines = {at: cells[keep] for at, cells in frame.items()}, lines[keep]
            part.frames.append(frame)
            part.lines.append(lines)
            part.count += len(lines)
            line += text.count("\n")
        if part.count > MOST_ROWS:
            raise refuse(file, f"more than {MOST_ROWS:,} rows: split the file, or keep a part of the rows")
    return part


def _frame(
    text: str, sheet: SheetLayout, wanted: Mapping[int, bool], line: int, file: str, warnings: list[str]
) -> tuple[Cells, NDArray[np.int64]]:
    """The wanted columns (numbers or not) of some lines, with the line of each row."""
    lines = _lines_of_rows(text, line)
    if text.count(sheet.separator) != len(lines) * (len(sheet.names) - 1) or '"' in text:
        text, lines = _without_cut_row(text, sheet, lines, file, warnings)
    if not len(lines):
        return {at: np.empty(0, float if number else object) for at, number in wanted.items()}, lines
    try:
        frame = (_parsed if len(text) > _FEW_CHARACTERS else _parsed_short)(text, sheet, wanted)
        if any(len(cells) != len(lines) for cells in frame.values()):
            raise ValueError  # a carriage return within a line ends a row of CSV
    except ValueError:
        _refuse_cells(text, sheet, wanted, lines, file)
        raise refuse(file, "is not a table with one row a line", line) from None
    return frame, lines


def _lines_of_rows(text: str, line: int) -> NDArray[np.int64]:
    if "#" not in text and "\n\n" not in text and not text.startswith("\n"):
        return line + np.arange(text.count("\n"))
    rows = enumerate(text.splitlines(), line)
    return np.array([number for number, row in rows if row.strip() and not row.lstrip().startswith("#")], dtype=int)


def _parsed_short(text: str, sheet: SheetLayout, wanted: Mapping[int, bool]) -> Cells:
    """The wanted columns of a short text; raise `ValueError` for other cells."""
    width = len(sheet.names)
    # As pandas has it: what a `#` within a row cuts off is missing.
    rows = [cells + [""] * (width - len(cells)) for _, cells in _rows(text, sheet)]
    if any(len(cells) > width for cells in rows):
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
        comment="#",
        skipinitialspace=True,
        na_values=missing,
        keep_default_na=False,
        engine="c",
    )
    return {at: frame[at].to_numpy() for at in wanted}


def _rows(text: str, sheet: SheetLayout, lines: Iterable[int] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Cells of each row, with its line where lines are given."""
    plain = (row.split("#", 1)[0].rstrip("\n") for row in text.splitlines())
    rows = csv.reader((row for row in plain if row.strip()), delimiter=sheet.separator, skipinitialspace=True)
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
        comma = "; decimal commas?" if sheet.separator == "," and len(cells) > width else ""
        raise refuse(file, f"{len(cells)} cells where the heading has {width}{comma}", line)
    return text, lines


def _refuse_cells(
    text: str, sheet: SheetLayout, wanted: Mapping[int, bool], lines: NDArray[np.int64], file: str
) -> None:
    positions = [position for position, is_number in wanted.items() if is_number]
    for line, cells in _rows(text, sheet, lines.tolist()):
        for position in positions:
            cell = cells[position].strip() if position < len(cells) else ""
            if cell not in MISSING and not is_number(cell):
                raise refuse(file, _not_a_number(cell), line, sheet.names[position])


def _not_a_number(cell: str) -> str:
    shown = f"`{cell[:40]}`"
    meant = next((meant for pattern, meant in _MEANT_AS_NUMBERS.items() if pattern.fullmatch(cell)), "")
    return f"{shown} {meant or 'is not a number'}"


def looks_like_number(cell: str) -> bool:
    """Whether a cell is a number, or one as spreadsheets format it."""
    return is_number(cell) or any(pattern.fullmatch(cell) for pattern in _MEANT_AS_NUMBERS)


def kept(frame: Mapping[int, NDArray[Any]], filters: Mapping[int, str]) -> NDArray[np.bool_]:
    """Mask of the rows that match all filters, as texts or as numbers."""
    keep = np.ones(len(next(iter(frame.values()))), dtype=bool)
    for position, value in filters.items():
        cells = frame[position].tolist()
        same = {cell: _same(str(cell).strip(), value) for cell in set(cells)}
        keep &= np.fromiter(map(same.__getitem__, cells), bool, len(cells))
    return keep


def _same(cell: str, value: str) -> bool:
    return cell == value or (is_number(cell) and is_number(value) and float(cell) == float(value))
