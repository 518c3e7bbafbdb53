"""What a plot shows, as pure data: curves, heat maps, stacked bars, and the text that fits a screen.

A gap in a curve, a point that cannot exist in a heat map, is a NaN.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif import units
from whatif.units import Dimension

FloatArray = NDArray[np.float64]

SERIES_STYLES = tuple(f"series-{number}" for number in range(1, 7))
HEAT_STYLES = tuple(f"heat-{number}" for number in range(12))
# Versions of Unicode, and terminals, disagree on how wide these are: parts of Korean letters, Chinese trigrams.
_DISPUTED = re.compile("[\u1100-\u11ff\u2630-\u2637\u268a-\u268f\u3164\u4dc0-\u4dff\ud7b0-\ud7ff\uffa0]")
# Far enough from the ends of float64 for a unit and a decade more.
LARGEST, SMALLEST = 1e250, 1e-250


class Scale(Enum):
    """How an axis spreads its values."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class AxisDescription:
    """An axis: what it measures and, for a categorical one, the names standing at 0, 1, 2 and so on."""

    label: str
    dimension: Dimension = units.ONE
    scale: Scale = Scale.LINEAR
    ticks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The last part of a parameter's path, for where there is no room for the whole label."""
        return self.label.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class PlotLine:
    """A curve in base units; a non-finite value is a gap. The style is `data`, `baseline`, or `band`: an end of the
    range of the curve before it. A line without a label is in no legend."""

    label: str
    x: FloatArray
    y: FloatArray
    style: str = "data"

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64).ravel())
        if self.x.size != self.y.size:
            raise ValueError(f"line `{self.label}` has {self.x.size} x values but {self.y.size} y values")


@dataclass(frozen=True, slots=True)
class Marker:
    """A named place on the x axis, such as the current point."""

    x: float
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class PlotDescription:
    """Everything a backend needs to draw one plot."""

    title: str
    x: AxisDescription
    y: AxisDescription
    lines: tuple[PlotLine, ...] = ()
    markers: tuple[Marker, ...] = ()

    def line_styles(self) -> tuple[str, ...]:
        """Name the style of each line: `baseline`, or the data styles in turn; a band has that of its curve."""
        data = itertools.accumulate((line.style == "data" for line in self.lines), initial=-1)
        return tuple(
            "baseline" if line.style == "baseline" else series_style(max(number, 0))
            for line, number in zip(self.lines, itertools.islice(data, 1, None), strict=True)
        )


def series_style(index: int) -> str:
    """Name the style of the index-th data series; the names repeat after the last one."""
    return SERIES_STYLES[index % len(SERIES_STYLES)]


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """A value at every point of two axes, `values[x, y]`, in base units; NaN where there is none.

    `here` is the present point, x and y.
    """

    title: str
    x: AxisDescription
    y: AxisDescription
    z: AxisDescription
    xs: FloatArray
    ys: FloatArray
    values: FloatArray
    here: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name in ("xs", "ys", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.values.shape != (self.xs.size, self.ys.size):
            raise ValueError(
                f"`{self.title}` has {self.xs.size} x {self.ys.size} points but {self.values.shape} values"
            )


Description = PlotDescription | HeatMap
"""What can be drawn over one or two axes."""


class BarSegment(NamedTuple):
    """One part of a stacked bar; an empty style means the data style of its place."""

    label: str
    value: float
    style: str = ""


@dataclass(frozen=True, slots=True)
class StackedBar:
    """Parts of a whole, in the order they are stacked; what is not positive and finite counts as nothing."""

    segments: tuple[BarSegment, ...]
    dimension: Dimension = units.SECOND

    def shares(self) -> tuple[float, ...]:
        """Return the fraction of each segment: together one, or all zero for an empty bar."""
        drawable = [s.value if 0 < s.value <= LARGEST else 0.0 for s in self.segments]
        largest = max(drawable, default=0.0) or 1.0
        parts = [value / largest for value in drawable]
        return tuple(part / (sum(parts) or 1.0) for part in parts)

    def styles(self) -> tuple[str, ...]:
        """Return the style name of each segment."""
        return tuple(segment.style or series_style(i) for i, segment in enumerate(self.segments))


def text_cells(text: str) -> list[str]:
    """Split a text into screen cells; a wide character is followed by an empty cell, odd ones become `?`."""
    cells: list[str] = []
    for char in text:
        if " " <= char <= "~":
            cells.append(char)
        elif unicodedata.category(char)[0] not in "LNPS" or char > "\uffdc" or _DISPUTED.match(char):
            cells.append("?")
        else:
            cells.extend((char, "") if unicodedata.east_asian_width(char) in "WF" else (char,))
    return cells


def shorten(text: str, width: int) -> str:
    """Cut a text to so many cells, with an ellipsis for what was cut."""
    cells = text_cells(text)
    if len(cells) <= width:
        return "".join(cells)
    kept = cells[: max(0, width - 1)]
    # Half of a wide character is no character.
    kept = kept[:-1] if kept and cells[len(kept)] == "" else kept
    return "".join(kept) + "…" * (width > 0)
