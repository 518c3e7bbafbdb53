"""A bar chart as rows of cells: label, bar from start to end, text; with a cursor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from whatif.plotting.bars import LESS, MORE, BarChart, BarRow
from whatif.plotting.cells import TextRun
from whatif.plotting.description import shorten, text_cells
from whatif.tui.widgets.cursor_list import CursorList
from whatif.tui.widgets.text_columns import GAP, column, padded, tail, widest

_LABEL, _BAR, _TEXT = 8, 6, 28
"""The fewest cells of a label and of the bars, and the most of a text."""
_ZOOM: Final = 0.5
"""Bars that all begin beyond this share of the axis are drawn without the part before them."""
_ROOM: Final = 0.1


class ChartBars(CursorList):
    """Bars below one another, on one axis."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[BarRow, ...] = ()
        self._styles: dict[str, str] = {}
        self._range = 0.0, 0.0
        self._label = self._text = 0

    @property
    def row(self) -> BarRow | None:
        """Item under the cursor."""
        return self._rows[self.cursor] if self._rows else None

    @property
    def begins(self) -> float:
        """Start of the axis, in base units: 0, or larger if steps would be too short to be visible."""
        return self._range[0]

    def show(self, chart: BarChart) -> None:
        """Show other bars; the cursor stays on its label if it still exists."""
        label = "" if self.row is None else self.row.label
        self._rows = chart.rows
        # Where more and less are told apart, less is good; bars of one kind only show how long they are.
        self._styles = {LESS: "good", MORE: "bad"} if chart.legend else {LESS: "term", MORE: "strong"}
        self._range = axis_of(chart.rows)
        self._label = widest(row.label for row in chart.rows)
        self._text = min(widest(row.text for row in chart.rows if _is_drawn(row)), _TEXT)
        self.lay_out(len(chart.rows), next((at for at, row in enumerate(chart.rows) if row.label == label), 0))

    def draw_row(self, index: int, width: int) -> Sequence[TextRun]:
        """Draw a label, its bar, its text."""
        row = self._rows[index]
        label, bars, text = self._columns(width)
        name = TextRun(padded(tail(row.label, label), label) + " " * GAP, "text")
        if not _is_drawn(row):
            return [name, TextRun(shorten(row.text, max(width - label - GAP, 0)), "faint")]
        before, bar = self._bar(row, bars)
        return [
            name,
            TextRun(before, "text"),
            TextRun(bar.ljust(bars - len(before)), self._styles.get(row.style, row.style)),
            TextRun(column(row.text, text), "faint" if row.style == "faint" else "strong"),
        ]

    def on_resize(self) -> None:
        """The text under the cursor may fit now, or no longer."""
        self.post_message(self.Pointed(self))

    @property
    def says_all(self) -> bool:
        """Whether there is room for the label and the text under the cursor."""
        width = self.scrollable_content_region.width
        if self.row is None or not width:
            return True
        label, _, text = self._columns(width)
        room = text if _is_drawn(self.row) else width - label - GAP
        return label >= len(text_cells(self.row.label)) and room >= len(text_cells(self.row.text))

    def _bar(self, row: BarRow, width: int) -> tuple[str, str]:
        """Blank before a bar, and the bar; shorter than half a cell, a thin mark."""
        low, high = self._range
        if high <= low:
            return "", ""
        ends = sorted(min(max(end, low), high) for end in (row.start, row.end))
        first, last = (round(2 * width * (end - low) / (high - low)) for end in ends)
        if first == last:
            return " " * min(first // 2, max(width - 1, 0)), "▏"[: int(width > 0 and row.start != row.end)]
        cells = range(first // 2, (last + 1) // 2)
        return " " * (first // 2), "".join(_cell(at, first, last) for at in cells)

    def _columns(self, width: int) -> tuple[int, int, int]:
        """The cells of the labels, of the bars, of the texts."""
        text = self._text if width >= _LABEL + _BAR + self._text + 2 * GAP else 0
        room = max(width - GAP - (text + GAP if text else 0), 0)
        label = min(self._label, max(room - max(_BAR, room // 3), room // 2))
        return label, room - label, text


def _cell(at: int, first: int, last: int) -> str:
    """One cell of a bar between two half cells."""
    if 2 * at < first:
        return "▐"
    return "▌" if 2 * at + 1 >= last else "█"


def _is_drawn(row: BarRow) -> bool:
    """Whether a row has a bar; one without has only words."""
    return math.isfinite(row.start) and math.isfinite(row.end)


def axis_of(rows: Sequence[BarRow]) -> tuple[float, float]:
    """Start and end of the axis of some bars.

    From 0, unless steps that begin elsewhere all lie far from it: then from a little before them.
    """
    rows = [row for row in rows if _is_drawn(row)]
    ends = [end for row in rows for end in (row.start, row.end)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    steps = [end for row in rows if row.start != 0 for end in (row.start, row.end)]
    if low < 0 or not steps or min(steps) < _ZOOM * high:
        return low, high
    return min(steps) - _ROOM * (high - min(steps)), high
