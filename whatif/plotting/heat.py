"""Heat maps on the screen: two coloured values per cell, or one value per cell as a character by density."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import AxisView, axis_space, heat_axes
from whatif.plotting.cells import Cells, TextRun
from whatif.plotting.crosshair import Reading, readout, value_text
from whatif.plotting.description import HEAT_STYLES, HeatMap, Scale
from whatif.plotting.frame import Area, PlotFrame, Word, kept_lines, plot_frame
from whatif.plotting.raster import Glyphs

DENSITIES = " .:-=+*#%@"
_READING = 11
_NO_VALUE = -1
Levels = NDArray[np.intp]


def heat_plot(
    description: HeatMap,
    width: int,
    height: int,
    glyphs: Glyphs,
    *,
    colours: bool,
    cross: tuple[float, float] | None,
    reserve: bool,
) -> PlotFrame:
    """Screen with a heat map; each cell shows the nearest value. `reserve` keeps lines for those at a crosshair."""
    glyphs = glyphs._replace(bits=np.zeros((2 if colours else 1, 1), dtype=np.uint8))
    axes = heat_axes(description)
    words, plain, readings = (
        _words(description, axes.y.label(width // 3), glyphs, width, colours=colours, cross=place)
        for place in (cross, None, (np.nan, np.nan))
    )
    size, title = (width, height), description.title
    kept = kept_lines(title, plain, readings, size) if reserve else 0
    page = plot_frame(axes, title, words, glyphs, size, reading=cross is not None, kept=kept)
    if page.empty:
        return page
    levels = _levels(description, len(HEAT_STYLES) if colours else len(DENSITIES))
    # If an axis has no value that can be drawn, the index -1 selects this padding.
    levels = np.pad(levels, ((0, 1), (0, 1)), constant_values=_NO_VALUE)
    shown = levels[np.ix_(*_nearest_points(description, page.area))].T
    (_draw_colours if colours else _draw_densities)(page, shown)
    if cross is not None:
        _draw_cross(page, description, cross)
    if description.here is not None:
        _draw_point(page, description, description.here, glyphs.point)
    for mark in description.marks:
        _draw_point(page, description, (mark.x, mark.y), mark.glyph)
    return page


def _words(
    description: HeatMap, y_label: str, glyphs: Glyphs, width: int, *, colours: bool, cross: tuple[float, float] | None
) -> list[Word]:
    """Label of the y axis and the colour scale; with a crosshair the values there in place of the label."""
    scale = _scale(description, width, colours=colours)
    if cross is not None:
        # What does not fit is left out at the end.
        *place, value = map(_reading, readout(description, *cross))
        return [value, *place, scale]
    words: list[Word] = [(TextRun(y_label, "label"),)] if y_label else []
    words.append(scale)
    if not np.isfinite(description.values).all():
        words.append((TextRun(f"{_missing(colours=colours)} infeasible", "label"),))
    if description.here is not None:
        words.append((TextRun(f"{glyphs.point} now", "marker"),))
    words += [(TextRun(f"{mark.glyph} {mark.word}", "marker"),) for mark in description.marks]
    return words


def _reading(reading: Reading) -> Word:
    return TextRun(f"{reading.label} ", "label"), TextRun(reading.value.ljust(_READING), "marker")


def _scale(description: HeatMap, width: int, *, colours: bool) -> Word:
    """Colour scale: name, smallest value, colours in order, largest value; without the name on a narrow screen."""
    known, narrow = description.values[np.isfinite(description.values)], width < 60
    if not known.size:
        return (TextRun(f"{description.z.label}: no values", "label"),)
    low, high = (value_text(float(value), description.z) for value in (known.min(), known.max()))
    styles = HEAT_STYLES[:: 2 if narrow else 1]
    ramp = [TextRun("█", style) for style in styles] if colours else [TextRun(f"[{DENSITIES}]", "label")]
    name = "" if narrow else f"{description.z.label} "
    spread = " (log)" if description.z.scale is Scale.LOG and not narrow else ""
    return TextRun(f"{name}{low} ", "label"), *ramp, TextRun(f" {high}{spread}", "label")


def _missing(*, colours: bool) -> str:
    """Character for a missing value; not a dot where dots are densities."""
    return "·" if colours else "/"


def _levels(description: HeatMap, count: int) -> Levels:
    """Colour number of every value; on a logarithmic scale, values that are not positive have the first colour."""
    positions = axis_space(description.values, description.z)
    known = positions[np.isfinite(positions)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    fractions = (positions - low) / (high - low) if high > low else np.where(np.isfinite(positions), 0.5, np.nan)
    numbers = np.nan_to_num(np.clip(fractions * count, 0, count - 1)).astype(np.intp)
    return np.where(np.isfinite(description.values), numbers, _NO_VALUE)


def _nearest_points(description: HeatMap, area: Area) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Index of the nearest value for each column of the area, and for each row of dots from the top."""
    down = area.rows * area.glyphs.rows
    columns = _nearest_indices(description.xs, area.axes.x, (np.arange(area.columns) + 0.5) / area.columns)
    return columns, _nearest_indices(description.ys, area.axes.y, (np.arange(down)[::-1] + 0.5) / down)


def _nearest_indices(values: FloatArray, view: AxisView, fractions: FloatArray) -> NDArray[np.intp]:
    places = axis_space(values, view.description)
    order = np.argsort(places)[: np.count_nonzero(np.isfinite(places))]
    if not order.size:
        return np.full(fractions.size, _NO_VALUE)
    borders = (places[order][1:] + places[order][:-1]) / 2
    return order[np.searchsorted(borders, view.low + fractions * (view.high - view.low))]


def _draw_colours(page: PlotFrame, levels: Levels) -> None:
    """Draw two values per cell: the upper half as a coloured character, the lower half as its background."""
    cells, area = page.cells, page.area
    upper, lower = levels[::2], levels[1::2]
    numbers = np.array([*map(cells.number, HEAT_STYLES), cells.number("")])
    both, alone = upper >= 0, (upper < 0) & (lower >= 0)
    text = np.select([both, alone], ["▀", "▄"], _missing(colours=True))
    styles = np.select([both, alone], [numbers[upper], numbers[lower]], cells.number("label"))
    cells.paint(area.top, area.left, text, styles, np.where(both, numbers[lower], numbers[_NO_VALUE]))


def _draw_densities(page: PlotFrame, levels: Levels) -> None:
    text = np.array([*DENSITIES, _missing(colours=False)])[levels]
    page.cells.paint(page.area.top, page.area.left, text, np.full(text.shape, page.cells.number("label")))


def _draw_cross(page: PlotFrame, description: HeatMap, cross: tuple[float, float]) -> None:
    """Draw a vertical and a horizontal line over the values, and their intersection."""
    place = _cell(page, description, cross)
    if place is None:
        return
    area = page.area
    upright, level = area.glyphs.frame[0], area.glyphs.frame[1]
    for row in range(area.top, area.top + area.rows):
        _over(page.cells, row, place[1], upright)
    for column in range(area.left, area.left + area.columns):
        _over(page.cells, place[0], column, level)
    _over(page.cells, *place, "┼" if upright == "│" else "+")


def _draw_point(page: PlotFrame, description: HeatMap, point: tuple[float, float], glyph: str) -> None:
    place = _cell(page, description, point)
    if place is not None:
        _over(page.cells, *place, glyph)


def _cell(page: PlotFrame, description: HeatMap, point: tuple[float, float]) -> tuple[int, int] | None:
    """Screen cell (row, column) of a point; None outside the axes."""
    views, axes = page.area.axes, (description.x, description.y)
    positions = [float(axis_space(np.array(value), axis)) for value, axis in zip(point, axes, strict=True)]
    if not all(view.low <= position <= view.high for view, position in zip(views, positions, strict=True)):
        return None
    return page.area.cells(page.area.dots([positions[0]], [positions[1]]))[0]


def _over(cells: Cells, row: int, column: int, glyph: str) -> None:
    """Write over a value, dark on light colours and light on dark ones."""
    fill = cells.fill(row, column)
    light = fill in HEAT_STYLES[len(HEAT_STYLES) // 2 :]
    cells.put(row, column, glyph, "marker" if not fill else "over-light" if light else "over-dark")
