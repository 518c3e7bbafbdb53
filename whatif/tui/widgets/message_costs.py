"""Time against message size as curves with the messages of a phase among them, and these messages line by line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from whatif.core.sweep_figure import plot_table
from whatif.plotting.description import PlotDescription, PlotLine
from whatif.studies.message_curves import MessageCurves, PhaseMessages
from whatif.studies.message_study import Detail, curve_numbers, curve_picture, sent_table
from whatif.tui.jobs.fit_job import FitPoints
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.plot_view import PlotView
from whatif.units import BYTE, ONE, SECOND, format_quantity

if TYPE_CHECKING:
    from whatif.models.quantities import FloatArray

_MOST_POINTS: Final = 300
_FINENESS: Final = ((256, 256), (256, 64), (256, 12), (128, 12), (64, 12), (32, 8))
"""Steps across and up, from fine to coarse: points within one of them are drawn as one."""
_TITLES: Final = ("distance", "messages", "size", "each", "together", "model")
_TEXTS: Final = ("distance", "messages", "model")
# What gives way first if there is no room for all.
_DISPENSABLE: Final = ("model", "size", "each", "messages")
_HEADINGS: Final = {
    Detail.NAMES: "time over message size, across nodes",
    Detail.COUNTS: "time over message size, across nodes",
    Detail.DISTANCES: "time over size, across nodes unless named",
    Detail.ALL: "time over message size",
}


def fitting_picture(
    curves: MessageCurves, phase: PhaseMessages | None, width: int, height: int, measured: FitPoints | None = None
) -> tuple[Detail, PlotDescription]:
    """The most detailed picture whose legend fits on a screen."""
    points = None if measured is None else measured_line(measured)
    for detail in sorted(Detail, reverse=True):
        picture = curve_picture(curves, phase, detail, points)
        if _legend_lines(picture, width) <= max(1, height // 6):
            break
    return detail, picture


def _legend_lines(picture: PlotDescription, width: int) -> int:
    """Number of lines of the legend of a plot: the y axis with its unit, then each curve after a sample."""
    lines, used = 1, len(f"{picture.y.label} (us)".strip())
    for line in picture.lines:
        size = len(f"   ━━ {line.label}")
        lines, used = (lines, used + size) if used + size <= width else (lines + 1, size - 3)
    return lines


def measured_line(points: FitPoints) -> PlotLine:
    """Measured times, as many as can be distinguished."""
    with np.errstate(divide="ignore"):
        chosen = distinct(np.log(points.size), np.log(points.time))
    return PlotLine("measured", points.size[chosen], points.time[chosen], "points")


def distinct(x: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    """The places, ascending, of points that do not fall together on a screen; of those that do, the first."""
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    chosen = known
    for steps in _FINENESS:
        if chosen.size <= _MOST_POINTS:
            break
        along = zip(steps, (x[known], y[known]), strict=True)
        places = [np.rint(count * (value - value.min()) / (np.ptp(value) or 1.0)) for count, value in along]
        chosen = known[np.sort(np.unique(np.stack(places), axis=1, return_index=True)[1])]
    return chosen


def message_rows(phase: PhaseMessages, width: int) -> TableRows:
    """The messages of the slowest rank in one iteration, line by line, and the time of the phase.

    Where a screen is narrow, whole columns are left out.
    """
    lines = [_cells(*row) for row in sent_table(phase).rows()]
    columns = dict(zip(_TITLES, zip(*lines, strict=True), strict=True))
    for title in _DISPENSABLE:
        if sum(max(map(len, (name, *texts))) + 2 for name, texts in columns.items()) > width:
            del columns[title]
    rows = [tuple(Cell(text) for text in line) for line in zip(*columns.values(), strict=True)]
    rows[-1] = tuple(replace(cell, part="marked") for cell in rows[-1])
    return TableRows(tuple(columns), tuple(rows), frozenset(i for i, title in enumerate(columns) if title in _TEXTS))


def _cells(
    distance: str, kind: str, count: float | None, size: float | None, each: float | None, together: float, model: str
) -> tuple[str, ...]:
    """A row of `sent_table` in words."""
    return (
        distance,
        kind if count is None else f"{format_quantity(count, ONE)} × {kind}",
        "" if size is None else format_quantity(size, BYTE),
        "" if each is None else format_quantity(each, SECOND),
        format_quantity(together, SECOND),
        model,
    )


class MessageCosts(Vertical):
    """The curves, or the table of their numbers, above the messages."""

    DEFAULT_CSS = """
    MessageCosts #timing { height: 1fr; }
    MessageCosts #sent { height: auto; max-height: 45%; }
    MessageCosts #rows { scrollbar-size-horizontal: 0; }
    """

    def __init__(self) -> None:
        super().__init__(id="costs")
        self._curves: MessageCurves | None = None
        self._phase: PhaseMessages | None = None
        self._measured: FitPoints | None = None

    def compose(self) -> ComposeResult:
        """Lay out the panels."""
        with Vertical(id="timing", classes="panel"):
            yield PlotView()
            yield TableView(id="numbers")
        with Vertical(id="sent", classes="panel"):
            yield TableView(id="rows")

    @property
    def _numbers(self) -> TableView:
        """Table in place of the curves."""
        return self.query_one("#numbers", TableView)

    def show(self, curves: MessageCurves, phase: PhaseMessages | None, measured: FitPoints | None = None) -> None:
        """Show other curves and messages, and what was measured."""
        self._curves, self._phase, self._measured = curves, phase, measured
        self._numbers.show(plot_table(curve_numbers(curves, phase)))
        if phase is not None:
            self.query_one("#sent").border_title = Content(f"{phase.phase}: what the slowest rank sends")
        self._draw()

    def turn(self, *, tabular: bool, messages: bool) -> None:
        """Show numbers in place of the curves; the messages if they fit."""
        self.query_one(PlotView).display = not tabular
        self._numbers.display = tabular
        self.query_one("#sent").display = messages and self._phase is not None
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """A wider screen has room for more words."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        """Show as much as there is room for."""
        if self._curves is None:
            return
        plot = self.query_one(PlotView)
        detail, picture = fitting_picture(self._curves, self._phase, *plot.size, self._measured)
        plot.show(picture)
        self.query_one("#timing").border_title = _HEADINGS[detail if plot.display else Detail.ALL]
        self._numbers.announce()
        if self._phase is not None:
            table = self.query_one("#rows", TableView)
            rows = message_rows(self._phase, self.size.width - 3)
            table.show(rows)
            table.styles.height = len(rows.cells) + 1
