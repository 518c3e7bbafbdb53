"""Axis of times below bars on cells."""

from __future__ import annotations

from typing import NamedTuple

from whatif.plotting.axis_view import AxisView, Tick, axis_unit, labels_apart, ticks
from whatif.plotting.cells import Cells
from whatif.plotting.description import AxisDescription
from whatif.units import SECOND


class TimeAxis(NamedTuple):
    """A drawn axis: the columns of its ticks, and the unit of their labels."""

    columns: list[int]
    unit: str


def draw_time_axis(
    cells: Cells, row: int, left: int, window: tuple[float, float], *, gap: int, first: int = 0
) -> TimeAxis:
    """Draw an axis of the times of a window, from column `left` to the end of a line, with labels in the line below.

    The labels are `gap` cells apart, and begin at column `first` at the earliest.
    """
    width, (low, high) = max(0, cells.width - left), window
    view = AxisView(AxisDescription("time", SECOND), low, high, axis_unit(high, SECOND))

    def column(tick: Tick) -> int:
        return left + min(int((tick.position - low) / (high - low) * width), max(width - 1, 0))

    found = ticks(view, lambda some: labels_apart(some, list(map(column, some)), gap))
    cells.put(row, left, "─" * width, "axis")
    for tick in found:
        at, size = column(tick), len(tick.label)
        cells.put(row, at, "┴", "axis")
        cells.put(row + 1, max(first, min(at - size // 2, cells.width - size)), tick.label, "label")
    return TimeAxis(list(map(column, found)), view.unit.name)
