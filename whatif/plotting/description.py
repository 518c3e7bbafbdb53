"""Plot descriptions as data: curves, heat maps, stacked bars; and text measured in screen cells.

Gaps in a curve and infeasible points of a heat map are NaN.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from whatif import units
from whatif.models.quantities import FloatArray
from whatif.units import Dimension
from whatif.visible_text import visible

SERIES_STYLES = tuple(f"series-{number}" for number in range(1, 7))
HEAT_STYLES = tuple(f"heat-{number}" for number in range(12))
# Versions of Unicode and terminals disagree on the width of these: parts of Korean letters, Chinese trigrams.
_DISPUTED = re.compile("[\u1100-\u11ff\u2630-\u2637\u268a-\u268f\u3164\u4dc0-\u4dff\ud7b0-\ud7ff\uffa0]")
# Far enough from the limits of float64 for a unit and one more decade.
LARGEST, SMALLEST = 1e250, 1e-250


class Scale(Enum):
    """Scale of an axis."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class AxisDescription:
    """Axis: label, dimension, scale and limits; `ticks` are the names at 0, 1, 2, .. of a categorical axis."""

    label: str
    dimension: Dimension = units.ONE
    scale: Scale = Scale.LINEAR
    ticks: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    """Ends of the part that is drawn, in axis space (see `axis_view`); None for all values."""
    whole: bool = False
    """Whether there are only whole numbers: curves over the axis are points, joined by a faint line."""
    close_up: bool = False
    """Whether a linear y axis leaves out curves far below the first one if that varies by little."""

    @property
    def name(self) -> str:
        """Short label: the last part of the path of a parameter, `gpu` of `platform.node.gpu.extends`."""
        return self.label.removesuffix(".extends").rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class PlotLine:
    """Curve in base units; a non-finite value is a gap.

    The style is `data`, `baseline`, `band` (one limit of the band of the previous curve), or `points`, which no line
    joins, with the half length of the error bar of each. A line without a label is not in the legend.
    What is `of` a curve, by its label, has its colour; a `number` selects dashes other than those of its turn.
    """

    label: str
    x: FloatArray
    y: FloatArray
    style: str = "data"
    error: FloatArray | None = None
    of: str = ""
    number: int | None = None

    def __post_init__(self) -> None:
        for name in ("x", "y", "error"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64).ravel())
        if self.x.size != self.y.size:
            raise ValueError(f"line `{self.label}` has {self.x.size} x values but {self.y.size} y values")


@dataclass(frozen=True, slots=True)
class Marker:
    """Named position on the x axis, such as the current point."""

    x: float
    label: str = ""


@dataclass(frozen=True, slots=True)
class PlotMark:
    """Marked point with a glyph and a word; y = NaN: a point on the x axis; glyph = "": only the word."""

    x: float
    y: float
    glyph: str
    word: str = ""
    below: bool = False
    """Whether a picture has the word below the point, given room."""


@dataclass(frozen=True, slots=True, eq=False)
class PlotDescription:
    """Curve plot with its axes, lines, markers and marks."""

    title: str
    x: AxisDescription
    y: AxisDescription
    lines: tuple[PlotLine, ...] = ()
    markers: tuple[Marker, ...] = ()
    marks: tuple[PlotMark, ...] = ()

    def line_styles(self) -> tuple[str, ...]:
        """Style of each line: `baseline`, or the data styles in turn; a band has the style of its curve."""
        curves = [line.label if line.style == "data" else "" for line in self.lines]
        own = [line.style in ("data", "points") and not (line.of and line.of in curves) for line in self.lines]
        data = itertools.islice(itertools.accumulate(own, initial=-1), 1, None)
        styles = [
            "baseline" if line.style == "baseline" else series_style(max(number, 0))
            for line, number in zip(self.lines, data, strict=True)
        ]
        named = {name: style for name, style in zip(curves, styles, strict=True) if name}
        return tuple(named.get(line.of, style) for line, style in zip(self.lines, styles, strict=True))

    def curve_numbers(self) -> tuple[int, ...]:
        """Number of each line among the curves, points and bands with that of the curve before them."""
        count = itertools.accumulate((line.style == "data" for line in self.lines), initial=0)
        counts = zip(self.lines, itertools.islice(count, 1, None), strict=True)
        return tuple(max(number - 1, 0) if line.number is None else line.number for line, number in counts)


def series_style(index: int) -> str:
    """Style of the index-th data series; styles repeat after the last one."""
    return SERIES_STYLES[index % len(SERIES_STYLES)]


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """Heat map of `values[x, y]` in base units; NaN for infeasible points.

    `here` is the present point (x, y).
    """

    title: str
    x: AxisDescription
    y: AxisDescription
    z: AxisDescription
    xs: FloatArray
    ys: FloatArray
    values: FloatArray
    here: tuple[float, float] | None = None
    marks: tuple[PlotMark, ...] = ()

    def __post_init__(self) -> None:
        for name in ("xs", "ys", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        if self.values.shape != (self.xs.size, self.ys.size):
            raise ValueError(
                f"`{self.title}` has {self.xs.size} x {self.ys.size} points but {self.values.shape} values"
            )


Description = PlotDescription | HeatMap
"""A plot over one or two axes."""


@dataclass(frozen=True, slots=True, eq=False)
class PlotStack:
    """Two curve plots, one above the other; `shared` if they are over the same values of x."""

    above: PlotDescription
    below: PlotDescription
    shared: bool = True


class BarSegment(NamedTuple):
    """One part of a stacked bar; an empty style means the data style of its position."""

    label: str
    value: float
    style: str = ""


@dataclass(frozen=True, slots=True)
class StackedBar:
    """Stacked bar of the parts of a whole, in order; values that are not positive and finite count as 0."""

    segments: tuple[BarSegment, ...]
    dimension: Dimension = units.SECOND

    def shares(self) -> tuple[float, ...]:
        """Fraction of each segment; they sum to 1, or are all 0 for an empty bar."""
        drawable = [s.value if 0 < s.value <= LARGEST else 0.0 for s in self.segments]
        largest = max(drawable, default=0.0) or 1.0
        parts = [value / largest for value in drawable]
        return tuple(part / (sum(parts) or 1.0) for part in parts)

    def styles(self) -> tuple[str, ...]:
        """Style of each segment."""
        return tuple(segment.style or series_style(i) for i, segment in enumerate(self.segments))


def text_cells(text: str) -> list[str]:
    """Screen cells of a visible text; a wide character is followed by an empty cell, one of unknown width is `?`."""
    if text.isascii() and text.isprintable():
        return list(text)
    cells: list[str] = []
    for char in visible(text, ""):
        if " " <= char <= "~":
            cells.append(char)
        elif unicodedata.category(char)[0] not in "LNPS" or char > "\uffdc" or _DISPUTED.match(char):
            cells.append("?")
        else:
            cells.extend((char, "") if unicodedata.east_asian_width(char) in "WF" else (char,))
    return cells


def shorten(text: str, width: int) -> str:
    """Text cut to a width in cells, with an ellipsis if it was cut."""
    cells = text_cells(text)
    if len(cells) <= width:
        return "".join(cells)
    kept = cells[: max(0, width - 1)]
    # A wide character cannot be cut in half.
    kept = kept[:-1] if kept and cells[len(kept)] == "" else kept
    return "".join(kept) + "…" * (width > 0)
