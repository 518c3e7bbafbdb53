"""Horizontal bars as pure data: one row a bar, on one linear axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from whatif.plotting.description import AxisDescription

LESS: Final = "series-1"
MORE: Final = "series-2"


@dataclass(frozen=True, slots=True)
class BarRow:
    """One bar from `start` to `end`, in base units, with what stands before it and behind it."""

    label: str
    start: float
    end: float
    style: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars below one another on one linear axis; `legend` says what their styles mean."""

    title: str
    x: AxisDescription
    rows: tuple[BarRow, ...]
    legend: tuple[tuple[str, str], ...] = ()
    """Style and meaning."""
