"""Marks on plots: a glyph at a point, with its word next to it where there is room."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from whatif.plotting.axis_view import Axes, axis_space
from whatif.plotting.description import Description, HeatMap, PlotMark, text_cells
from whatif.plotting.frame import PlotFrame, arrow_beyond
from whatif.plotting.picture_style import FONT_SIZE, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes as MatplotlibAxes

PLAIN_GLYPHS: Final = {"◆": "X", "◇": "O", "×": "x"}
"""Glyphs in ASCII."""
_SHAPES: Final = {"◆": "D", "◇": "d", "×": "x", "!": "|"}
"""Shapes of glyphs in matplotlib."""


def visible_marks(description: Description, axes: Axes) -> Iterator[tuple[PlotMark, float, float]]:
    """Marks within the axes, with their positions in axis space; a NaN y is at the low end of the axis."""
    for mark in description.marks:
        x = float(axis_space(np.array(mark.x), description.x))
        y = axes.y.low if np.isnan(mark.y) else float(axis_space(np.array(mark.y), description.y))
        if np.isfinite(x) and np.isfinite(y) and not (arrow_beyond(axes.x, x) or arrow_beyond(axes.y, y)):
            yield mark, x, y


def draw_marks(page: PlotFrame, description: Description) -> None:
    """Draw the marks of a curve plot on the screen: words only over blank cells."""
    places = [
        (mark, page.area.cells(page.area.dots([x], y))[0]) for mark, x, y in visible_marks(description, page.area.axes)
    ]
    for mark, (row, column) in reversed(places):
        page.cells.put(row, column, mark.glyph, "marker")
    for mark, (row, column) in places:
        _write(page, mark.word, row, column)


def _write(page: PlotFrame, word: str, row: int, column: int) -> None:
    """Write a word next to a cell, else a few lines above or below it."""
    area, size = page.area, len(text_cells(word))
    rows = [
        at
        for at in (row, row - 1, row + 1, row - 2, row + 2, row - 3, row + 3)
        if area.top <= at < area.top + area.rows
    ]
    for at, start in itertools.product(rows, (column + 2, column - 1 - size)):
        inside = area.left < start and start + size <= area.left + area.columns
        if size and inside and page.cells.blank(at, start - 1, start + size):
            page.cells.put(at, start, word, "marker")
            return


def draw_picture_marks(target: MatplotlibAxes, description: Description, axes: Axes) -> None:
    """Draw the marks of a plot with matplotlib."""
    light = isinstance(description, HeatMap)
    ground: dict[str, Any] | None = {"facecolor": ink("ground"), "edgecolor": "none", "pad": 1.5} if light else None
    for mark, x, y in visible_marks(description, axes):
        look = "ink", "ground"
        if mark.glyph not in "◆◇":
            look = "ink", "ink"
        elif mark.glyph == "◇":
            look = "ground", "ink"
        target.plot(x, y, marker=_SHAPES.get(mark.glyph, ""), markersize=7, linestyle="", zorder=5, clip_on=False,
                    color=ink(look[0]), markeredgecolor=ink(look[1]))  # fmt: skip
        # A word without a glyph is the name of the rising line below it.
        right = not mark.glyph or axes.x.fraction(np.array(x)) > 0.8
        target.annotate(
            mark.word, (x, y), (-7 if right else 7, 7), textcoords="offset points", ha="right" if right else "left",
            color=ink("ink"), size=FONT_SIZE - 1, bbox=ground,
        )  # fmt: skip
