"""Marks on plots: a glyph at a point, with its word next to it if there is room."""

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
_LOOKS: Final = {"◆": ("ink", "ground"), "◇": ("ground", "ink")}
"""Colours of their inside and edge."""


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


def draw_picture_marks(target: MatplotlibAxes, description: Description, axes: Axes, room: tuple[float, float]) -> None:
    """Draw the marks of a plot with matplotlib; `room` is the size of the axes in points.

    A word without a glyph lies below a line that rises by a decade for each decade.
    """
    light = isinstance(description, HeatMap)
    ground: dict[str, Any] | None = {"facecolor": ink("ground"), "edgecolor": "none", "pad": 1.5} if light else None
    placed = _Words([])
    for mark, x, y in visible_marks(description, axes):
        if not mark.glyph:
            target.text(x, y, mark.word, color=ink("ink"), size=FONT_SIZE - 1, rotation=45, ha="center", va="top",
                        rotation_mode="anchor", transform_rotates_text=True)  # fmt: skip
            continue
        front, edge = _LOOKS.get(mark.glyph, ("ink", "ink"))
        target.plot(x, y, marker=_SHAPES[mark.glyph], markersize=7, linestyle="", zorder=5, clip_on=False,
                    color=ink(front), markeredgecolor=ink(edge))  # fmt: skip
        point = float(axes.x.fraction(np.array(x))) * room[0], float(axes.y.fraction(np.array(y))) * room[1]
        right, down = placed.place(mark, point, room[0])
        target.annotate(
            mark.word, (x, y), (right, down), textcoords="offset points", ha="left" if right > 0 else "right",
            color=ink("ink"), size=FONT_SIZE - 1, bbox=ground,
        )  # fmt: skip


class _Words:
    """Words next to points, in points of the page: they do not overlap if another place is free."""

    def __init__(self, taken: list[tuple[float, float, float]]) -> None:
        self.taken = taken
        """Left and right ends and the base line of each word."""

    def place(self, mark: PlotMark, point: tuple[float, float], width: float) -> tuple[float, float]:
        """Offset of the word of a mark: to the right where it fits, close to its point where that is free."""
        size = 0.56 * FONT_SIZE * len(mark.word)
        sides = (7.0, -7.0) if point[0] < 0.8 * width else (-7.0, 7.0)
        lines = (-13.0, 7.0, -24.0, 18.0, -35.0, 29.0) if mark.below else (7.0, -13.0, 18.0, -24.0, 29.0, -35.0)
        offsets = [(side, up) for up in lines for side in sides]
        right, up = next((offset for offset in offsets if self._free(_span(point, offset, size))), offsets[0])
        self.taken.append(_span(point, (right, up), size))
        return right, up

    def _free(self, span: tuple[float, float, float]) -> bool:
        left, right, base = span
        return all(right < start or end < left or abs(base - line) >= FONT_SIZE for start, end, line in self.taken)


def _span(point: tuple[float, float], offset: tuple[float, float], size: float) -> tuple[float, float, float]:
    start = point[0] + offset[0]
    end = start + (size if offset[0] > 0 else -size)
    return min(start, end), max(start, end), point[1] + offset[1]
