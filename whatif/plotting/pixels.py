"""Plots as pixels in place of the cells of a terminal: the same axes, in its colours and the size of its letters."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from whatif.plotting.cells import TextRun
from whatif.plotting.description import HEAT_STYLES, HeatMap, PlotDescription, PlotLine, text_cells
from whatif.plotting.picture import drawing
from whatif.plotting.picture_axes import draw_curves, draw_heat, look_of, point_look
from whatif.plotting.picture_style import FONT_SIZE, ink, inked
from whatif.plotting.placed import PixelRequest, PlacedPlot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LETTER: Final = 0.68
"""Height of letters as a share of the height of a cell."""

_INSET: Final = (0.5, 0.25)
"""Cells between the data and the ends of the axes along x and y: room for half a marker."""

_END: Final = 0.02
"""Share of the x axis before its end where a label ends at its tick."""


def draw_pixels(request: PixelRequest) -> bytes:
    """Picture of plots as a PNG file, as large as their part of the screen."""
    from matplotlib.figure import Figure

    dpi = request.shrunk * 72 * _LETTER * request.cell.height / FONT_SIZE
    width, height = request.columns * request.cell.width, request.rows * request.cell.height
    file = io.BytesIO()
    with inked(request.colours), drawing():
        size = request.shrunk * width / dpi, request.shrunk * height / dpi
        figure = Figure(figsize=size, dpi=dpi)
        for plot in request.plots:
            _draw(figure, plot, (request.columns, request.rows))
        figure.savefig(file, format="png", dpi=dpi, pil_kwargs={"compress_level": 1})
    return file.getvalue()


def _draw(figure: Figure, plot: PlacedPlot, size: tuple[int, int]) -> None:
    """Draw a plot where its cells are."""
    columns, rows = size
    left, low = plot.left + _INSET[0], rows - plot.top - plot.rows + _INSET[1]
    width, height = plot.columns - 2 * _INSET[0], plot.rows - 2 * _INSET[1]
    axes = figure.add_axes((left / columns, low / rows, width / columns, height / rows))
    description = plot.description
    if isinstance(description, HeatMap):
        draw_heat(axes, description, scale=False)
    else:
        draw_curves(axes, description, named=False)
    axes.set_ylabel("")
    low, high = axes.get_xlim()
    for label in axes.get_xticklabels():
        # A label in the middle of the last tick would be cut off.
        label.set_horizontalalignment("right" if label.get_position()[0] > high - _END * (high - low) else "center")
    looks = iter(list(_looks(description)) if isinstance(description, PlotDescription) else ())
    for row, line in enumerate(plot.header, plot.top - len(plot.header)):
        _write(figure, line, 1 - (row + 0.5) / rows, columns, looks)


def _looks(description: PlotDescription) -> Iterator[dict[str, Any]]:
    """Look of each line of the legend."""
    numbered = zip(description.lines, description.curve_numbers(), strict=True)
    return (_look(line, number) for line, number in numbered if line.label)


def _look(line: PlotLine, number: int) -> dict[str, Any]:
    if line.style == "points":
        return point_look(line)
    dashes, marker = look_of(line, number)
    return {"linestyle": dashes, "marker": marker, "markersize": 3}


def _write(figure: Figure, line: Sequence[TextRun], y: float, columns: int, looks: Iterator[dict[str, Any]]) -> None:
    """Write a line of a legend, with the samples of the curves and the colours of a heat map drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    column = 0
    for text, style, _ in line:
        size, start, named = len(text_cells(text)), column, text
        column += size
        if style in HEAT_STYLES:
            half = 0.3 * figure.dpi / figure.bbox.height * FONT_SIZE / 36
            figure.add_artist(Rectangle((start / columns, y - half), size / columns, 2 * half, color=ink(style)))
            continue
        if style == "baseline" or style.startswith("series"):
            sample, _, named = text.partition(" ")
            middle, half = start + len(sample) / 2, max(len(sample) - 1, 0)
            places = [(middle + side * half) / columns for side in (-1, 0, 1)]
            figure.add_artist(Line2D(places, [y] * 3, color=ink(style), markevery=[1], **next(looks, {})))
            start += len(sample) + 1
        if named.strip():
            weight = "bold" if style == "title" else "normal"
            figure.text(start / columns, y, named, color=ink(style), va="center", weight=weight)
