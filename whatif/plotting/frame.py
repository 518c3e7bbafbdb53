"""Frame of a plot on the screen: title, legend, axes with ticks; and the area of the data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import Axes, AxisView, Tick, minor_ticks, ticks
from whatif.plotting.cells import Cells, TextRun
from whatif.plotting.description import Scale, text_cells
from whatif.plotting.raster import Glyphs

Word = tuple[TextRun, ...]
_GAP = 3
_KEPT, _TALL = 2, 20
"""Lines of a header kept on a screen of some height, where an edit adds the baseline to the legend."""
_FEW = 3
"""Fewer labels than these leave the scale of an axis open."""


@dataclass(frozen=True, slots=True)
class Area:
    """Screen area of the data, in cells and dots; `framed` is false if there is no space for a frame."""

    axes: Axes
    glyphs: Glyphs
    left: int
    top: int
    columns: int
    rows: int
    framed: bool = True

    def dots(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Dot coordinates (x, y) of positions in axis space, from the lower left; NaN is kept."""
        last = np.array([[self.columns * self.glyphs.columns - 1], [self.rows * self.glyphs.rows - 1]])
        fractions = self.axes.x.fraction(np.asarray(x)), self.axes.y.fraction(np.asarray(y))
        return np.asarray(np.rint(np.stack(np.broadcast_arrays(*fractions)) * last), dtype=np.float64)

    def cells(self, dots: FloatArray) -> list[tuple[int, int]]:
        """Screen cells (row, column) of dots."""
        columns = self.left + dots[0] // self.glyphs.columns
        rows = self.top + self.rows - 1 - dots[1] // self.glyphs.rows
        return list(zip(rows.astype(int).tolist(), columns.astype(int).tolist(), strict=True))

    def tick_rows(self, chosen: Sequence[Tick]) -> list[int]:
        """Screen rows of ticks on the y axis."""
        return self.rows_of([tick.position for tick in chosen])

    def rows_of(self, positions: Sequence[float]) -> list[int]:
        """Screen rows of positions on the y axis."""
        return [row for row, _ in self.cells(self.dots(self.axes.x.low, positions))]

    def tick_columns(self, chosen: Sequence[Tick]) -> list[int]:
        """Screen columns of ticks on the x axis."""
        return self.columns_of([tick.position for tick in chosen])

    def columns_of(self, positions: Sequence[float]) -> list[int]:
        """Screen columns of positions on the x axis."""
        return [column for _, column in self.cells(self.dots(positions, self.axes.y.low))]

    def value(self, row: int, column: int) -> tuple[float, float] | None:
        """Values of x and y at the centre of a cell; None outside the area."""
        across, up = column - self.left, self.top + self.rows - 1 - row
        if not (0 <= across < self.columns and 0 <= up < self.rows):
            return None
        return self.axes.x.value((across + 0.5) / self.columns), self.axes.y.value((up + 0.5) / self.rows)


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """Screen with everything except the data, and the area for the data."""

    cells: Cells
    area: Area

    @property
    def empty(self) -> bool:
        """Whether there is no space for data."""
        return self.area.columns <= 0 or self.area.rows <= 0


def plot_frame(
    axes: Axes,
    title: str,
    words: Sequence[Word],
    glyphs: Glyphs,
    size: tuple[int, int],
    *,
    reading: bool,
    kept: int = 0,
) -> PlotFrame:
    """Screen with the frame drawn; a tiny screen has no frame.

    Words of a crosshair reading get more space, and no title. The header takes at least the `kept` number of lines.
    """
    cells = Cells(*size)
    header = _header(words, title, size, reading=reading)
    area, y_ticks = _layout(axes, glyphs, cells, max(len(header), kept))
    if area.framed:
        _draw_words(cells, header, area)
        _draw_frame(cells, area, y_ticks)
    return PlotFrame(cells, area)


def kept_lines(title: str, words: Sequence[Word], readings: Sequence[Word], size: tuple[int, int]) -> int:
    """Number of lines of the header that suffice with a crosshair, whose words are `readings`, and without one."""
    plain, read = _header(words, title, size, reading=False), _header(readings, "", size, reading=True)
    return max(len(plain), len(read), _KEPT if size[1] >= _TALL else 0)


def _header(words: Sequence[Word], title: str, size: tuple[int, int], *, reading: bool) -> list[list[Word]]:
    """Lines of the header: the title, then the words, wrapped over a few lines."""
    width, height = size
    lines: list[list[Word]] = [[(TextRun(title, "title"),)]] if title and height >= 8 and not reading else []
    most = max(2, height // 4) if reading else len(lines) + max(1, height // 6)
    used = width
    for word in words:
        size_ = _size(word) + _GAP
        if used + size_ > width + _GAP:
            if len(lines) == most:
                lines[-1].append((TextRun("…", "label"),))
                break
            lines.append([])
            used = 0
        lines[-1].append(word)
        used += size_
    return lines


def _size(word: Word) -> int:
    return sum(len(text_cells(run.text)) for run in word)


def _layout(axes: Axes, glyphs: Glyphs, cells: Cells, header: int) -> tuple[Area, tuple[Tick, ...]]:
    rows = cells.height - header - 2 - bool(axes.x.description.label and cells.height >= 8)
    if cells.width < 16 or rows < 2:
        return Area(axes, glyphs, 0, 0, cells.width, cells.height, framed=False), ()
    draft = Area(axes, glyphs, 0, header, cells.width, rows)
    y_ticks = _y_ticks(draft)
    left = _widest(y_ticks) + 2
    return replace(draft, left=left, columns=cells.width - left), y_ticks


def _y_ticks(area: Area) -> tuple[Tick, ...]:
    """Ticks of the y axis: labels with space between them, or a few on consecutive rows where these would be two."""
    view = area.axes.y
    apart = 2 if area.rows <= 9 or view.description.scale is Scale.LOG else 3

    def fits(candidate: Sequence[Tick]) -> bool:
        places = area.tick_rows(candidate)
        spread = all(lower - upper >= apart for lower, upper in itertools.pairwise(places))
        return spread and _widest(candidate) <= area.columns // 3

    chosen = ticks(view, fits)
    if len(chosen) >= _FEW:
        return chosen
    apart = 1
    most = max(_FEW + 1, area.rows // 2)
    return ticks(view, lambda candidate: _FEW <= len(candidate) <= most and fits(candidate)) or chosen


def _widest(candidate: Sequence[Tick]) -> int:
    return max((len(text_cells(tick.label)) for tick in candidate), default=0)


def _draw_words(cells: Cells, header: Sequence[Sequence[Word]], area: Area) -> None:
    for row, words in enumerate(header):
        column = 0
        if words and words[0][0].style == "title":
            column = (cells.width - _size(words[0])) // 2
        for word in words:
            cells.put_runs(row, column, word)
            column += _size(word) + _GAP
    if area.top + area.rows + 2 < cells.height:
        label = area.axes.x.label(area.columns)
        cells.put(cells.height - 1, area.left + (area.columns - len(text_cells(label))) // 2, label, "label")


def _draw_frame(cells: Cells, area: Area, y_ticks: Sequence[Tick]) -> None:
    vertical, horizontal, corner, tick_left, tick_down, _, inner_right, inner_up = list(area.glyphs.frame)
    floor = area.top + area.rows
    for row in range(area.top, floor):
        cells.put(row, area.left - 1, vertical, "axis")
    cells.put(floor, area.left - 1, corner + horizontal * area.columns, "axis")
    for row in _minor_places(area.axes.y, area.rows_of):
        cells.put(row, area.left - 1, inner_right, "axis")
    for column in _minor_places(area.axes.x, area.columns_of):
        cells.put(floor, column, inner_up, "axis")
    for tick, row in zip(y_ticks, area.tick_rows(y_ticks), strict=True):
        cells.put(row, area.left - 2 - len(text_cells(tick.label)), tick.label, "label")
        cells.put(row, area.left - 1, tick_left, "axis")
    for tick, column in _x_ticks(area, cells.width):
        cells.put(floor, column, tick_down, "axis")
        cells.put(floor + 1, _label_start(tick, column, cells.width), tick.label, "label")


def _minor_places(view: AxisView, places: Callable[[Sequence[float]], list[int]]) -> list[int]:
    """Rows or columns of ticks without labels, each in a cell of its own."""
    return places(minor_ticks(view, lambda positions: len(set(places(positions))) == len(positions)))


def _x_ticks(area: Area, width: int) -> list[tuple[Tick, int]]:
    """Ticks of the x axis with labels at least two cells apart, and their columns."""

    def fits(candidate: Sequence[Tick]) -> bool:
        columns = area.tick_columns(candidate)
        starts = [_label_start(tick, column, width) for tick, column in zip(candidate, columns, strict=True)]
        ends = [start + len(text_cells(tick.label)) for start, tick in zip(starts, candidate, strict=True)]
        return ends[-1] <= width and all(b - a >= 2 for a, b in zip(ends, starts[1:], strict=False))

    chosen = ticks(area.axes.x, fits)
    return list(zip(chosen, area.tick_columns(chosen), strict=True))


def _label_start(tick: Tick, column: int, width: int) -> int:
    """First column of a label centred under its tick, moved inwards at the edge of the screen."""
    size = len(text_cells(tick.label))
    return max(0, min(column - size // 2, width - size))


def arrow_beyond(view: AxisView, position: float) -> str:
    """`<` or `>` for a position beyond the end of an axis, else empty."""
    fraction = float(view.fraction(np.array(position)))
    return "<" if fraction < -1e-9 else ">" if fraction > 1 + 1e-9 else ""
