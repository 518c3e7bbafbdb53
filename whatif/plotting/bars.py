"""Horizontal bar charts as data: one bar per row, on one linear axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from whatif.plotting.description import AxisDescription

LESS: Final = "series-1"
MORE: Final = "series-2"


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar from `start` to `end` in base units, with a label before it and a text after it."""

    label: str
    start: float
    end: float
    style: str
    text: str = ""
    band: tuple[float, float] | None = None
    """Ends of its uncertainty interval, drawn as a whisker."""


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars in rows on one linear axis."""

    title: str
    x: AxisDescription
    rows: tuple[BarRow, ...]
    legend: tuple[tuple[str, str], ...] = ()
    """Styles and their meanings."""
    reference: float | None = None
    """Value that a line marks."""
