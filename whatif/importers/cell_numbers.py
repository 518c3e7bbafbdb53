"""Cells of a column as numbers: missing values, failed runs, decimal commas, durations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.errors import listed
from whatif.importers.mapping import DURATIONS, split_unit, symbol_of
from whatif.importers.numbers import is_number
from whatif.models.quantities import FloatArray
from whatif.units import SECOND, UnitError, parse_unit

MISSING: Final = ("NaN", "nan", "NA", "N/A", "")
"""Cells of missing numbers, as the fast readers know them."""
_MISSING: Final = {cell.lower() for cell in MISSING} | {"#n/a", "n.a.", "null", "none", "nil", "-", "--", "?", "."}
_WORD: Final = re.compile(r"[#*]?[A-Za-z][A-Za-z _./:!*+-]*")
"""Words in place of a missing number: TIMEOUT, OUT_OF_MEMORY; a cell with a digit is an error instead."""
_COMMA: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_LONG: Final = re.compile(r"(?:(\d{1,6})-)?(\d{1,9}):([0-5]?\d):([0-5]?\d(?:\.\d*)?)")
_SHORT: Final = re.compile(r"(\d{1,9}):([0-5]?\d(?:\.\d*)?)")
_MEANT_AS_NUMBERS: Final = {
    re.compile(r"=.*", re.DOTALL): "is a formula: save the values",
    _THOUSANDS: "has a thousands separator, or a decimal comma: write plain numbers with a decimal point",
    _COMMA: "has a decimal comma: write it with a decimal point",
}
_ALMOST_NUMBERS: Final = {
    re.compile(r"[+-]?\d{1,3}(?:[ '\u2019\u00a0\u202f]\d{3})+(?:[.,]\d*)?|[+-]?\d{1,3}(?:\.\d{3})+,\d*"):
        "has a thousands separator: write plain numbers with a decimal point",
    re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)? ?[A-Za-zµμ%][A-Za-z/%]*"):
        "is not a number; a unit belongs into the heading, as in `time [us]`",
}  # fmt: skip
_MOST_WORDS: Final = 3


@dataclass(frozen=True)
class Numbers:
    """Numbers of a column, NaN where a cell is missing, and remarks about them."""

    values: FloatArray
    words: tuple[tuple[int, str], ...] = ()
    """Words in the place of numbers, such as TIMEOUT, with the position of each such cell."""
    wrong: tuple[int, str] | None = None
    """Position of the first cell that is not a number, and what is wrong with it."""
    durations: bool = False
    """Whether cells are durations, so that the column is a time."""
    decimal_commas: bool = False


def looks_like_number(cell: str) -> bool:
    """Whether a cell is a number, a duration, or a number as spreadsheets format it."""
    patterns = (_LONG, _SHORT, *_MEANT_AS_NUMBERS)
    return is_number(cell) or any(pattern.fullmatch(cell) for pattern in patterns)


def is_missing(cell: str) -> bool:
    """Whether a cell marks a missing number."""
    return cell.lower() in _MISSING


def numbers_of(cells: Sequence[str], heading: str = "", separator: str = ",") -> Numbers:
    """Cells below a heading as numbers, in the unit of the heading.

    A duration, `01:48:11` or `1-02:03:04`, is seconds, and so is `20:03` where the heading or the column tell minutes
    from hours. A comma is a decimal one in a file that is separated by `;`, elsewhere only where it cannot separate
    thousands.
    """
    cells = [cell.strip() for cell in cells]
    commas = [cell for cell in set(cells) if _COMMA.fullmatch(cell)]
    is_decimal = separator != "," and bool(commas) and _are_decimal(commas, cells, separator)
    unit = split_unit(heading)[1]
    scale, first = _duration_scale(unit), _first_part(unit, cells)
    known: dict[str, float] = {}
    wrong: tuple[int, str] | None = None
    for at, cell in enumerate(cells):
        if cell in known:
            continue
        value = float(cell.replace(",", ".")) if is_decimal and _COMMA.fullmatch(cell) else _number(cell)
        if value is None and scale and (seconds := _seconds(cell, first)) is not None:
            value = seconds / scale
        if value is None and wrong is None:
            wrong = at, _not_a_number(cell, heading, first, bool(scale))
        known[cell] = float("nan") if value is None else value
    places = ((at, cell) for at, cell in enumerate(cells) if _WORD.fullmatch(cell))
    words = tuple((at, cell) for at, cell in places if not is_missing(cell) and not is_number(cell))
    durations = bool(scale) and any(_LONG.fullmatch(cell) or _SHORT.fullmatch(cell) for cell in known)
    return Numbers(np.array([known[cell] for cell in cells]), words, wrong, durations, is_decimal)


def failures(heading: str, words: Sequence[str]) -> str:
    """Note about the rows that have a word in the place of a number."""
    shown = listed(list(dict.fromkeys(words))[:_MOST_WORDS])
    rows = f"{len(words)} rows have" if len(words) > 1 else "1 row has"
    return f"`{heading[:80]}`: {rows} {shown} for a number, taken as missing"


def _number(cell: str) -> float | None:
    """Value of a plain number, NaN for a missing one and for a word; None for other cells."""
    if is_number(cell):
        return float(cell)
    return float("nan") if is_missing(cell) or _WORD.fullmatch(cell) else None


def _are_decimal(commas: Sequence[str], cells: Sequence[str], separator: str) -> bool:
    """Whether commas within numbers are decimal ones: no number has a point, and none may be of thousands."""
    if any("." in cell and looks_like_number(cell) for cell in cells):
        return False
    return separator == ";" or not all(_THOUSANDS.fullmatch(cell) for cell in commas)


def _duration_scale(unit: str) -> float:
    """Size of the unit of a column that may hold durations, 1 without a unit; 0 if it is not a unit of time."""
    try:
        dimension, size = parse_unit(symbol_of(unit)) if unit else (SECOND, 1.0)
    except UnitError:
        return 0.0
    return size if dimension == SECOND else 0.0


def _first_part(unit: str, cells: Sequence[str]) -> float:
    """Seconds of the first part of `20:03`: of a minute, of an hour, or 0 if unknown.

    The heading tells, `[mm:ss]` or `[hh:mm]`. So does a column with a fraction of a second or with hours, `01:48:11`:
    programs leave the hours out if there are none.
    """
    if unit in DURATIONS:
        return DURATIONS[unit]
    return 60.0 if any(_LONG.fullmatch(cell) or (_SHORT.fullmatch(cell) and "." in cell) for cell in cells) else 0.0


def _seconds(cell: str, first: float) -> float | None:
    if match := _LONG.fullmatch(cell):
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    match = _SHORT.fullmatch(cell)
    return float(match[1]) * first + float(match[2]) * first / 60 if match and first else None


def _not_a_number(cell: str, heading: str, first: float, is_time: bool) -> str:
    shown = f"`{cell[:40]}`"
    if is_time and not first and _SHORT.fullmatch(cell):
        name = split_unit(heading)[0][:80]
        return f"{shown} is minutes and seconds, or hours and minutes: write `{name} [mm:ss]` or `{name} [hh:mm]`"
    patterns = {**_MEANT_AS_NUMBERS, **_ALMOST_NUMBERS}
    meant = next((meant for pattern, meant in patterns.items() if pattern.fullmatch(cell)), "")
    return f"{shown} {meant or 'is not a number'}"
