"""Tables of the page of profiles."""

from __future__ import annotations

from typing import Final

from whatif.profiles.profile_study import ProfileSummary, ProjectionSummary
from whatif.table import Column, Table
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.data_table import Cell, TableRows, speedup
from whatif.tui.widgets.profile_bars import class_words
from whatif.units import BYTE, ONE, format_quantity

_WAYS: Final = {"model": "projected", "peak": "peak", "envelope": "envelope"}
_KEPT: Final = {"sizes": 3, "streams": 2, "kernels": 1}
"""Columns that stay visible, by side."""


def table_of(found: ProfileSummary, side: str) -> tuple[TableRows, int]:
    """The numbers of a side, and how many columns stay visible."""
    if side == "projection":
        return (class_rows(found.projected), 1) if found.projected is not None else (TableRows((), ()), 0)
    table = found.tables.get(side)
    return (TableRows((), ()), 0) if table is None else (_plain(table), _KEPT[side])


def _plain(table: Table) -> TableRows:
    """A table in words."""
    titles = tuple(name.replace("_", " ").replace("fraction", "share") for name in table.columns)
    texts = frozenset(at for at, column in enumerate(table.columns.values()) if column.dimension is None)
    cells = ([_cell(name, column, row) for name, column in table.columns.items()] for row in range(len(table)))
    return TableRows(titles, tuple(tuple(row) for row in cells), texts)


def _cell(name: str, column: Column, row: int) -> Cell:
    value = column.values[row]
    if column.dimension is None:
        return Cell(str(value).replace("_to_", " to "), "text")
    if name.endswith("fraction"):
        return Cell(percent(float(value)))
    return Cell(format_quantity(float(value), column.dimension, 5) if value == value else "–")  # noqa: PLR0124


def class_rows(projected: ProjectionSummary) -> TableRows:
    """Each class of copies and fills with its times, three projected; with errors where the profile is the machine's
    own, else with the speedup over the measured time."""
    table = projected.classes
    columns = table.arrays
    heading = "error" if projected.own else ""
    titles = ("copies", "measured", *(part for name in _WAYS for part in (name, heading)), "count", "bytes")
    rows = []
    for row in range(len(table)):
        measured = float(columns["time"][row])
        cells = [Cell(class_words(table, row), "text"), Cell(duration(measured))]
        for key in _WAYS.values():
            time = float(columns[f"{key}_time"][row])
            error = Cell(percent(float(columns[f"{key}_error"][row])), "faint")
            cells += [Cell(duration(time)), error if projected.own else speedup(time, measured)]
        cells.append(Cell(format_quantity(float(columns["count"][row]), ONE)))
        cells.append(Cell(format_quantity(float(columns["total_size"][row]), BYTE, 5)))
        rows.append(tuple(cells))
    return TableRows(titles, tuple(rows), frozenset((0,)))
