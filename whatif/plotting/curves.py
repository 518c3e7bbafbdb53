"""Curve plots on the screen: lines as strokes of dots and signs, with their names, markers and a crosshair."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import Points, axes_of, axis_space, bars_of, points_of
from whatif.plotting.cells import Cells, TextRun
from whatif.plotting.crosshair import Reading, nearest, readout
from whatif.plotting.description import PlotDescription, PlotLine, shorten, text_cells
from whatif.plotting.frame import Area, PlotFrame, Word, arrow_beyond, kept_lines, plot_frame
from whatif.plotting.marks import draw_marks
from whatif.plotting.raster import Dots, Glyphs, Pen, Raster, block, dashed, isolated, thin, walk
from whatif.plotting.window import clipped

# Readings have a fixed width, so that the plot does not shift while the crosshair moves.
_READING = 11
_COMPARED = 21
_JOIN = (1, 3)
"""Dashes of the faint line between points."""
_APART = 3
"""Columns of the screen for each point of an axis of whole numbers below which its curves are drawn as lines."""
_NAME_WIDTH, _NAME_ROWS = 16, 10


def curve_plot(
    description: PlotDescription,
    width: int,
    height: int,
    glyphs: Glyphs,
    *,
    colours: bool,
    cross: tuple[float, float] | None,
    reserve: bool,
) -> PlotFrame:
    """Screen with a curve plot; without colours, letters link the curves to the legend.

    `reserve` keeps lines for the values at a crosshair, so that the plot stays in place when one comes.
    """
    points = points_of(description)
    axes = axes_of(description, points)
    legend = _Legend(description, points, axes.y.label(width // 3), glyphs, width, colours)
    words = legend.words(readout(description, cross[0]) if cross is not None else ())
    size, title = (width, height), description.title
    kept = kept_lines(title, legend.words(()), legend.words(_blank_readout(description)), size) if reserve else 0
    page = plot_frame(axes, title, words, glyphs, size, reading=cross is not None, kept=kept)
    if page.empty:
        return page
    drawn = list(strokes(description, points, page.area))
    _draw_curves(page, drawn, colours=colours)
    name_ends(page.cells, page.area, description.lines, drawn)
    if cross is not None:
        _draw_cross(page, description, cross[0])
    _draw_markers(page.cells, description, page.area)
    if cross is not None:
        _draw_points(page, description, points, cross[0])
    draw_marks(page, description)
    return page


def _blank_readout(description: PlotDescription) -> tuple[Reading, ...]:
    """Readout without values, which takes as much space as one with values."""
    named = (Reading(line.label, "") for line in description.lines if line.label)
    return Reading(description.x.name, ""), *named


class _Legend(NamedTuple):
    """Words above a plot: the label of the y axis, and the lines with a sample and their value at a crosshair."""

    description: PlotDescription
    points: Sequence[Points]
    y_label: str
    glyphs: Glyphs
    width: int
    colours: bool

    def words(self, readings: Sequence[Reading]) -> list[Word]:
        """Words with the values of a crosshair, the position first; empty without one."""
        words: list[Word] = [(TextRun(self.y_label, "label"),)] if self.y_label else []
        place, values = (readings[0], iter(readings[1:])) if readings else (None, iter(()))
        if place is not None:
            words.append((TextRun(f"{place.label} ", "label"), TextRun(place.value.ljust(_READING), "marker")))
        compared = any(line.style == "baseline" for line in self.description.lines)
        pens, styles = pens_of(self.description, self.glyphs), self.description.line_styles()
        for index, (line, style) in enumerate(zip(self.description.lines, styles, strict=True)):
            if not line.label:
                continue
            runs = [TextRun(self._name(index, line, pens[index]), style)]
            if place is not None:
                wide = _COMPARED if compared and index == 0 else _READING
                runs.append(TextRun(f" {next(values).value.ljust(wide)}", "marker"))
            words.append(tuple(runs))
        return words

    def _name(self, index: int, line: PlotLine, pen: Pen) -> str:
        """Sample and label of a line, with an arrow if it is wholly below the axis."""
        y = self.points[index][1]
        key = "" if self.colours else f"{_key(index)} "
        below = " ↓" if np.isfinite(line.y).any() and not np.isfinite(y).any() else ""
        return f"{sample(self.description, line, pen, y, self.width, self.glyphs)} {key}{line.label}{below}"


def _key(index: int) -> str:
    return chr(ord("a") + index % 26)


def _draw_curves(page: PlotFrame, drawn: Sequence[Stroke], *, colours: bool) -> None:
    cells, area = page.cells, page.area
    if not any(line.dots.size or line.signs for line in drawn):
        text = shorten("no values to draw", area.columns)
        cells.put(area.top + (area.rows - 1) // 2, area.left + (area.columns - len(text)) // 2, text, "label")
        return
    raster = Raster(area.columns, area.rows, area.glyphs)
    # Drawn last means on top: curves above the baseline, the first one above the others, and points above curves.
    order = sorted(enumerate(drawn), key=lambda item: (item[1].depth, -item[0]))
    for _, line in order:
        raster.draw(line.dots, line.pen, cells.number(line.style))
    cells.paint(area.top, area.left, raster.text, raster.styles)
    for index, line in order:
        for row, column in line.signs:
            cells.put(row, column, line.sign, line.style)
        for row, column in () if colours else line.key:
            cells.put(row, column, _key(index), line.style)


def _draw_cross(page: PlotFrame, description: PlotDescription, x: float) -> None:
    position = float(axis_space(np.array(x), description.x))
    if np.isfinite(position) and not arrow_beyond(page.area.axes.x, position):
        _draw_vertical(page.cells, page.area, position, page.area.glyphs.frame[0])


def _draw_vertical(cells: Cells, area: Area, position: float, glyph: str) -> None:
    """Draw a vertical line behind the curves."""
    [(_, column)] = area.cells(area.dots([position], area.axes.y.low))
    for row in range(area.top, area.top + area.rows):
        if cells.blank(row, column, column + 1):
            cells.put(row, column, glyph, "marker")


def _draw_points(page: PlotFrame, description: PlotDescription, points: Sequence[Points], x: float) -> None:
    """Highlight the point of each curve at the crosshair; the first curve is on top."""
    styled = list(zip(description.lines, description.line_styles(), points, strict=True))
    for line, style, (across, up) in reversed(styled):
        at = nearest(line.x, x, description.x)
        axes = page.area.axes
        if at is None or arrow_beyond(axes.x, across[at]) or arrow_beyond(axes.y, up[at]):
            continue
        if np.isfinite(up[at]):
            [(row, column)] = page.area.cells(page.area.dots(across[[at]], up[[at]]))
            page.cells.put(row, column, page.area.glyphs.point, style)


def _draw_markers(cells: Cells, description: PlotDescription, area: Area) -> None:
    """Draw vertical markers behind the curves; one beyond the axis becomes a label with an arrow."""
    view = area.axes.x
    for mark in description.markers:
        position = float(axis_space(np.array(mark.x), description.x))
        if np.isnan(position):
            continue
        arrow, label = arrow_beyond(view, position), mark.label
        inside = float(np.clip(position, view.low, view.high))
        if not arrow:
            _draw_vertical(cells, area, inside, area.glyphs.frame[5])
        else:
            label = f"< {label}" if arrow == "<" else f"{label} >"
        [(_, column)] = area.cells(area.dots([inside], area.axes.y.low))
        _draw_marker_label(cells, label, column, area)


def _draw_marker_label(cells: Cells, label: str, column: int, area: Area) -> None:
    """Write the label next to its marker, in the top line that no curve crosses."""
    size = len(text_cells(label))
    for row, start in itertools.product(range(area.top, area.top + area.rows), (column + 2, column - 1 - size)):
        if start > area.left and cells.blank(row, start - 1, start + size):
            cells.put(row, start, label, "marker")
            return


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
