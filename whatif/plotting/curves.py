"""Curve plots on the screen, with markers and a crosshair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from whatif.plotting.axis_view import Points, axes_of, axis_space, points_of
from whatif.plotting.cells import Cells, TextRun
from whatif.plotting.crosshair import Reading, nearest, readout
from whatif.plotting.description import PlotDescription, shorten, text_cells
from whatif.plotting.frame import Area, PlotFrame, Word, arrow_beyond, plot_frame
from whatif.plotting.marks import draw_marks
from whatif.plotting.raster import Dots, Glyphs, Pen, Raster, isolated, thin, walk
from whatif.plotting.window import clipped

# Readings have a fixed width, so that the plot does not shift while the crosshair moves.
_READING = 11
_COMPARED = 21


def curve_plot(
    description: PlotDescription,
    width: int,
    height: int,
    glyphs: Glyphs,
    *,
    colours: bool,
    cross: tuple[float, float] | None,
) -> PlotFrame:
    """Screen with a curve plot; without colours, letters link the curves to the legend."""
    points = points_of(description)
    axes = axes_of(description, points)
    words = _words(description, axes.y.label(width // 3), glyphs, colours=colours, cross=cross)
    page = plot_frame(axes, description.title, words, glyphs, (width, height), reading=cross is not None)
    if page.empty:
        return page
    drawn = list(_drawn_lines(description, points, page.area))
    _draw_curves(page, drawn, colours=colours)
    if cross is not None:
        _draw_cross(page, description, cross[0])
    _draw_markers(page.cells, description, page.area)
    if cross is not None:
        _draw_points(page, description, points, cross[0])
    draw_marks(page, description)
    return page


def _words(
    description: PlotDescription, y_label: str, glyphs: Glyphs, *, colours: bool, cross: tuple[float, float] | None
) -> list[Word]:
    """Label of the y axis and the legend; with a crosshair, also the values of the curves there."""
    words: list[Word] = [(TextRun(y_label, "label"),)] if y_label else []
    readings: Sequence[Reading] = ()
    if cross is not None:
        place, *readings = readout(description, cross[0])
        words.append((TextRun(f"{place.label} ", "label"), TextRun(place.value.ljust(_READING), "marker")))
    compared = any(line.style == "baseline" for line in description.lines)
    styled = enumerate(zip(description.lines, description.line_styles(), strict=True))
    for row, (index, (line, style)) in enumerate(item for item in styled if item[1][0].label):
        key = "" if colours else f"{_key(index)} "
        runs = [TextRun(f"{glyphs.pen(line, index).sample} {key}{line.label}", style)]
        if readings:
            wide = compared and index == 0
            runs.append(TextRun(f" {readings[row].value.ljust(_COMPARED if wide else _READING)}", "marker"))
        words.append(tuple(runs))
    return words


def _key(index: int) -> str:
    return chr(ord("a") + index % 26)


class _DrawnLine(NamedTuple):
    """One line on the screen: its dots, and the cells of its highlighted points and of its letter."""

    style: str
    pen: Pen
    dots: Dots
    highlighted: list[tuple[int, int]]
    key: list[tuple[int, int]]


def _drawn_lines(description: PlotDescription, points: Sequence[Points], area: Area) -> Iterator[_DrawnLine]:
    # Three points per column of dots preserve the shape of a curve.
    limit = 3 * area.columns * area.glyphs.columns
    for index, (line, style) in enumerate(zip(description.lines, description.line_styles(), strict=True)):
        places = area.dots(*thin(*points[index], limit))
        last = area.columns * area.glyphs.columns - 1, area.rows * area.glyphs.rows - 1
        places = np.where(np.isfinite(places).all(axis=0), places, np.nan)
        known = np.flatnonzero((places >= 0).all(axis=0) & (places[0] <= last[0]) & (places[1] <= last[1]))
        highlighted = known if description.x.ticks else np.intersect1d(isolated(places[1]), known)
        dots = walk(clipped(places, *last))
        if line.style != "data":
            dots = dots[:, np.arange(dots.shape[1]) // area.glyphs.columns % 4 < 2]
        # Letters are spread over the right half: at the end those of close curves would cover each other.
        key = known[::-1][index * known.size // (2 * len(description.lines)) :][: bool(line.label)]
        cells = [area.cells(places[:, at]) for at in (highlighted, key)]
        yield _DrawnLine(style, area.glyphs.pen(line, index), dots, *cells)


def _draw_curves(page: PlotFrame, drawn: Sequence[_DrawnLine], *, colours: bool) -> None:
    cells, area = page.cells, page.area
    if not any(line.dots.size for line in drawn):
        text = shorten("no values to draw", area.columns)
        cells.put(area.top + (area.rows - 1) // 2, area.left + (area.columns - len(text)) // 2, text, "label")
        return
    raster = Raster(area.columns, area.rows, area.glyphs)
    # Drawn last means on top: data above the baseline, and the first line above the others.
    for _, line in sorted(enumerate(drawn), key=_depth):
        raster.draw(line.dots, line.pen, cells.number(line.style))
    cells.paint(area.top, area.left, raster.text, raster.styles)
    for index, line in enumerate(drawn):
        for row, column in line.highlighted:
            cells.put(row, column, area.glyphs.point, line.style)
        for row, column in () if colours else line.key:
            cells.put(row, column, _key(index), line.style)


def _depth(place: tuple[int, _DrawnLine]) -> tuple[bool, int]:
    return place[1].style != "baseline", -place[0]


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
