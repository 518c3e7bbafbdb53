"""Lines of a plot as strokes on the screen: dots, single cells with a sign, and where their names can stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import Points, bars_of
from whatif.plotting.cells import Cells
from whatif.plotting.description import PlotDescription, PlotLine, shorten, text_cells
from whatif.plotting.frame import Area
from whatif.plotting.raster import Dots, Glyphs, Pen, block, dashed, isolated, thin, walk
from whatif.plotting.window import clipped

_JOIN = (1, 3)
"""Dashes of the faint line between points."""
_APART = 3
"""Columns of the screen for each point of an axis of whole numbers below which its curves are drawn as lines."""
_NAME_WIDTH, _NAME_ROWS = 16, 10


class Stroke(NamedTuple):
    """One line on the screen: its dots, and the cells (row, column) of its signs, its letter and its end."""

    style: str
    depth: int
    """0 for lines below, 1 for curves, 2 for points above them."""
    pen: Pen
    dots: Dots
    sign: str
    signs: list[tuple[int, int]]
    key: list[tuple[int, int]]
    end: list[tuple[int, int]]


def strokes(description: PlotDescription, points: Sequence[Points], area: Area) -> Iterator[Stroke]:
    """Strokes of the lines of a plot, in their order."""
    pens = pens_of(description, area.glyphs)
    styled = zip(description.lines, description.line_styles(), pens, points, strict=True)
    for index, (line, style, pen, places) in enumerate(styled):
        # Letters are spread over the right half: at the end those of close curves would cover each other.
        share = index / (2 * len(description.lines))
        draw = _scatter if line.style == "points" else _curve
        yield draw(_Given(line, style, pen, places, share), description, area)


class _Given(NamedTuple):
    """Input of a drawn line; its letter is at a `share` of its length before the end."""

    line: PlotLine
    style: str
    pen: Pen
    points: Points
    share: float


def _curve(given: _Given, description: PlotDescription, area: Area) -> Stroke:
    line, style, pen, points, share = given
    glyphs = area.glyphs
    # Three points per column of dots preserve the shape of a curve.
    places = _finite(area.dots(*thin(points[0], points[1], 3 * area.columns * glyphs.columns)))
    known = np.flatnonzero(_visible(places, area))
    named = bool(line.label)
    single = line.style != "band" and drawn_as_points(description, places[1, known], area.left + area.columns)
    dots = (
        walk(places[:, :0])
        if single and glyphs.rows == 1
        else dashed(walk(clipped(places, *_last(area))), _JOIN if single else pen.dashes)
    )
    signs = known if single else np.intersect1d(isolated(places[1]), known)
    key = known[::-1][int(share * known.size) :][:named]
    cells = (area.cells(places[:, at]) for at in (signs, key, known[-1:][:named]))
    return Stroke(style, int(line.style != "baseline"), pen, dots, point_sign(glyphs, line, pen), *cells)


def _scatter(given: _Given, description: PlotDescription, area: Area) -> Stroke:
    line, style, pen, points, share = given
    glyphs = area.glyphs
    places = area.dots(*points)
    places = places[:, _visible(places, area)]
    whole = places.astype(np.intp)
    cells = area.cells(places)
    # Fewer than four rows of dots are too few for a point with a shape.
    most = {4: 0, 1: len(cells)}.get(glyphs.rows, 1)
    alone = [cell for cell, count in Counter(cells).items() if count <= most]
    dots = np.hstack((block(whole, glyphs), _bars(line, description, area)))
    key = cells[::-1][int(share * len(cells)) :][: bool(line.label)]
    if glyphs.rows == 1:
        pen = pen._replace(characters=np.array([" ", glyphs.frame[0]]))
    return Stroke(style, 2, pen, dots, glyphs.measured, alone, key, [])


def _bars(line: PlotLine, description: PlotDescription, area: Area) -> Dots:
    """Dots of the error bars of points: vertical lines."""
    if line.error is None:
        return np.zeros((2, 0), dtype=np.intp)
    x, low, high = bars_of(line, description)
    known = np.isfinite(x + low + high)
    gap = np.full(x.shape, np.nan)
    ends = np.stack([area.dots(x, end) for end in (low, high, gap)], axis=-1)[:, known]
    return walk(clipped(_finite(ends.reshape(2, -1)), *_last(area)))


def _last(area: Area) -> tuple[int, int]:
    """Last column and row of dots."""
    return area.columns * area.glyphs.columns - 1, area.rows * area.glyphs.rows - 1


def _visible(places: FloatArray, area: Area) -> FloatArray:
    """Whether each place is in the area: not beyond the ends of a part that is zoomed in on."""
    last = np.array(_last(area))[:, None]
    return np.asarray(((places >= 0) & (places <= last)).all(axis=0))


def _finite(places: FloatArray) -> FloatArray:
    """Places with both coordinates missing where one is."""
    return np.where(np.isfinite(places).all(axis=0), places, np.nan)


def drawn_as_points(description: PlotDescription, y: FloatArray, width: int) -> bool:
    """Whether a curve is a sequence of points: over names, and over whole numbers unless they are too close."""
    few = description.x.whole and _APART * np.count_nonzero(np.isfinite(y)) <= width
    return bool(description.x.ticks) or bool(few)


def pens_of(description: PlotDescription, glyphs: Glyphs) -> list[Pen]:
    """Pen of each line: the first curve has no dashes."""
    numbered = zip(description.lines, description.curve_numbers(), strict=True)
    return [glyphs.pen(line, number) for line, number in numbered]


def sample(description: PlotDescription, line: PlotLine, pen: Pen, y: FloatArray, width: int, glyphs: Glyphs) -> str:
    """Sample of a line for the legend."""
    if line.style == "points":
        return glyphs.measured
    if glyphs.rows > 1 and line.style != "band" and drawn_as_points(description, y, width):
        return point_sign(glyphs, line, pen) + "╌"
    return pen.sample


def point_sign(glyphs: Glyphs, line: PlotLine, pen: Pen) -> str:
    """Sign of a point of a curve; without rows of dots the character of its pen."""
    if glyphs.rows == 1:
        return str(pen.characters[1])
    return glyphs.hollow if line.style == "baseline" or line.of else glyphs.point


def name_ends(cells: Cells, area: Area, lines: Sequence[PlotLine], drawn: Sequence[Stroke]) -> None:
    """Write the names of several curves next to their ends, if there is room."""
    named = [(line.label, stroke) for line, stroke in zip(lines, drawn, strict=True) if stroke.end and line.label]
    if len(named) < 2 or area.rows < _NAME_ROWS:
        return
    right = area.left + area.columns
    for label, stroke in named:
        text, [(row, column)] = shorten(label, _NAME_WIDTH), stroke.end
        size = len(text_cells(text))
        last = min(column + 1, right) - size
        for at, start in ((row, column + 2), *((row + down, last) for down in (-1, 1, -2, 2))):
            inside = area.top <= at < area.top + area.rows and area.left < start and start + size <= right
            if inside and cells.blank(at, start - 1, min(start + size + 1, right)):
                cells.put(at, start, text, stroke.style)
                break
