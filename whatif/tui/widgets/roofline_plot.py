"""Kernels under the roofs of a GPU, and under those of a second one: rate over intensity, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from whatif.plotting.axis_view import axes_of
from whatif.plotting.cells import Cells, TextRun
from whatif.plotting.frame import Area, Word, plot_frame
from whatif.plotting.raster import GLYPHS, Dots, Glyphs, MarkerName, Raster, walk
from whatif.studies.roofline_study import ROOF_AXES, ROOF_STYLES, AxisLimits, KernelPoint, Roof, Roofline, limits, roofs
from whatif.tui.widgets.picture import PictureOf


class Signs(NamedTuple):
    """The characters of points: of this GPU and of the second one, beyond the left and the right rim, a ridge."""

    point: str
    hollow: str
    left: str
    right: str
    ridge: str
    tick: str


_SIGNS: Final = Signs("●", "○", "◂", "▸", "▴", "━")
_ASCII_SIGNS: Final = Signs("#", "o", "<", ">", "^", "=")


def limit_style(kernel: KernelPoint) -> str:
    """The colour of the roof that limits a kernel."""
    return ROOF_STYLES[kernel.dominant_operation if kernel.limit == "compute" else kernel.limit]


def letter(index: int) -> str:
    """The letter of a kernel, the same in the picture and in the list."""
    return "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[index % 52]


def roofline_runs(
    found: Roofline, width: int, height: int, marker: MarkerName = "braille", chosen: int = -1
) -> list[list[TextRun]]:
    """Draw a roofline as `height` lines of runs, each exactly `width` cells wide; the `chosen` kernel is stressed."""
    ends, glyphs = limits(found), GLYPHS[marker]
    axes = axes_of(ROOF_AXES, [(np.array([ends.left, ends.right]), np.array([ends.low, ends.high]))])
    words = _legend(found, axes.y.label(width // 3), ends, glyphs.pens[0].sample)
    page = plot_frame(axes, "", words, glyphs, (width, height), reading=False)
    if page.empty:
        return page.cells.runs()
    drawing = _Drawing(page.cells, page.area, glyphs, _ASCII_SIGNS if marker == "ascii" else _SIGNS)
    own = roofs(found.gpu, found, ends)
    second = found.second.roofs if found.second is not None else None
    drawing.lines(own, roofs(second, found, ends) if second is not None else [])
    drawing.ridges(own)
    drawing.kernels(found, chosen)
    drawing.labels(own)
    return page.cells.runs()


def _legend(found: Roofline, y_label: str, ends: AxisLimits, sample: str) -> list[Word]:
    """The y axis, and the roofs of the second GPU in words: those of the first one bear theirs."""
    words: list[Word] = [(TextRun(y_label, "label"),)]
    if found.second is not None and found.second.roofs is not None:
        others = roofs(found.second.roofs, found, ends)
        words += [(TextRun(f"{sample} {roof.words}", "baseline"),) for roof in others]
    return words


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A screen with its frame, on which roofs, points and words are set; `taken` are cells that words must avoid."""

    cells: Cells
    area: Area
    glyphs: Glyphs
    signs: Signs
    taken: set[tuple[int, int]] = field(default_factory=set)

    def place(self, x: float, y: float) -> tuple[int, int]:
        """The row and column of a point in decimal logarithms, moved to the rim if outside."""
        view_x, view_y = self.area.axes
        inside = [min(max(x, view_x.low), view_x.high)], [min(max(y, view_y.low), view_y.high)]
        return self.area.cells(self.area.dots(*inside))[0]

    def lines(self, own: Sequence[Roof], others: Sequence[Roof]) -> None:
        """Draw the roofs of both GPUs; those of the second one are dashed and lie below."""
        raster = Raster(self.area.columns, self.area.rows, self.glyphs)
        for roof in others:
            dots = self._dots(roof)
            dashed = dots[:, np.arange(dots.shape[1]) // self.glyphs.columns % 4 < 2]
            raster.draw(dashed, self.glyphs.pens[0], self.cells.number("baseline"))
        pens = self.glyphs.pens[1:]
        for index, roof in enumerate(own):
            raster.draw(self._dots(roof), pens[index % len(pens)], self.cells.number(roof.style))
        self.cells.paint(self.area.top, self.area.left, raster.text, raster.styles)

    def _dots(self, roof: Roof) -> Dots:
        return walk(self.area.dots(roof.x, roof.y))

    def ridges(self, own: Sequence[Roof]) -> None:
        """Mark on the x axis where the flat roofs meet that of the device memory."""
        floor = self.area.top + self.area.rows
        flat = sorted((roof for roof in own if roof.flat), key=lambda roof: roof.ridge)
        for roof in flat if self.area.framed else ():
            text, (_, column) = f"{10**roof.ridge:.3g}", self.place(roof.ridge, roof.y[0])
            self.cells.put(floor, column, self.signs.ridge, roof.style)
            # The words of two near ridges go apart.
            start = column if roof is flat[-1] else column - len(text) + 1
            if self.cells.blank(floor - 1, start - 1, start + len(text) + 1):
                self._write(floor - 1, start, text, roof.style)

    def kernels(self, found: Roofline, stressed: int) -> None:
        """Draw the kernels: those of the second GPU hollow and below, then the own ones with roofs and letters."""
        others = found.second.kernels if found.second is not None else ()
        for kernel in others:
            self._point(kernel, self.signs.hollow, "baseline")
        for kernel in found.kernels:
            self._own_roof(kernel)
        for index, kernel in enumerate(found.kernels):
            chosen = index == stressed
            self._plumb(kernel, "marker" if chosen else "axis", down=chosen)
            self._level(kernel)
        together: dict[tuple[int, int], list[int]] = {}
        for index, kernel in enumerate(found.kernels):
            cell = self._point(kernel, self.signs.point, limit_style(kernel))
            if cell is not None:
                together.setdefault(cell, []).append(index)
        for cell, group in together.items():
            style = "marker" if stressed in group else "label"
            self._letters(cell, "".join(letter(index) for index in group), style)

    def _point(self, kernel: KernelPoint, sign: str, style: str) -> tuple[int, int] | None:
        """Draw a kernel at its place, or at the rim if its intensity is 0 or infinite; None if it is not drawn."""
        if kernel.achieved_rate <= 0 and kernel.intensity > 0:
            return None
        sign = self.signs.left if kernel.intensity <= 0 else self.signs.right if math.isinf(kernel.intensity) else sign
        row, column = self.place(_log(kernel.intensity), _log(kernel.achieved_rate))
        self.cells.put(row, column, sign, style)
        self.taken.add((row, column))
        return row, column

    def _own_roof(self, kernel: KernelPoint) -> None:
        """A short line at the rate that the instruction mix of a kernel allows."""
        if not (0 < kernel.intensity < math.inf and kernel.attainable_rate > 0):
            return
        row, column = self.place(_log(kernel.intensity), _log(kernel.attainable_rate))
        style = ROOF_STYLES[kernel.dominant_operation]
        for at in range(max(column - 1, self.area.left), min(column + 2, self.cells.width)):
            self.cells.put(row, at, self.signs.tick, style)
            self.taken.add((row, at))

    def _plumb(self, kernel: KernelPoint, style: str, *, down: bool) -> None:
        """A line from a kernel up to its own roof, or through both from the x axis."""
        if 0 < kernel.intensity < math.inf:
            top, column = self.place(_log(kernel.intensity), _log(kernel.attainable_rate))
            row, _ = self.place(_log(kernel.intensity), _log(kernel.achieved_rate))
            for at in range(top, self.area.top + self.area.rows if down else row):
                if self.cells.blank(at, column, column + 1):
                    self.cells.put(at, column, self.glyphs.frame[5], style)

    def _level(self, kernel: KernelPoint) -> None:
        """A line from the slope of the cache to a kernel that it limits: its bytes of the cache are others."""
        if kernel.limit == "l2" and kernel.l2_bandwidth is not None:
            rate = _log(kernel.achieved_rate)
            row, last = self.place(_log(kernel.intensity), rate)
            _, first = self.place(rate - math.log10(kernel.l2_bandwidth), rate)
            for column in range(first, last):
                if self.cells.blank(row, column, column + 1):
                    self.cells.put(row, column, self.glyphs.frame[1], "axis")

    def _letters(self, cell: tuple[int, int], text: str, style: str) -> None:
        """Write letters next to their points, where nothing is drawn if possible, away from other points and words."""
        (row, column), size = cell, len(text)
        places = [(0, 1), (0, -size), (-1, 0), (1, 0), (-1, 1), (1, 1), (-1, -size), (1, -size)]
        spots = [(row + down, column + across) for down, across in places]
        free = [spot for spot in spots if self._free(*spot, size)]
        blank = [(at, start) for at, start in free if self.cells.blank(at, start, start + size)]
        apart = [(at, start) for at, start in blank if not self.taken - {cell} & set(_cells(at, start - 1, size + 2))]
        for at, start in (*apart, *blank, *free)[:1]:
            self._write(at, start, text, style)

    def _free(self, row: int, start: int, size: int) -> bool:
        """Whether some cells of the area are free of points and words."""
        inside = self.area.left <= start and start + size <= self.area.left + self.area.columns
        inside = inside and self.area.top <= row < self.area.top + self.area.rows
        return inside and self.taken.isdisjoint(_cells(row, start, size))

    def _write(self, row: int, start: int, text: str, style: str) -> None:
        self.cells.put(row, start, text, style)
        self.taken.update(_cells(row, start, len(text)))

    def labels(self, own: Sequence[Roof]) -> None:
        """Write the name of each roof if there is room: above flat ones, next to slopes."""
        for roof in own:
            size = len(roof.words)
            spots = self._along(roof) if roof.flat else self._next_to(roof)
            for row, start in spots:
                if self._free(row, start, size) and self.taken.isdisjoint(_cells(row, start - 1, size + 2)):
                    # A cell of air on both sides; on the right, none beyond the area.
                    air = min(size + 2, self.area.left + self.area.columns - start + 1)
                    self.cells.put(row, start - 1, " " * air, "")
                    self._write(row, start, roof.words, roof.style)
                    break

    def _along(self, roof: Roof) -> Iterator[tuple[int, int]]:
        """Free places for words on a flat roof, from the right to the left; else just above or below it."""
        row, first = self.place(roof.x[0], roof.y[0])
        last = self.area.left + self.area.columns - len(roof.words)
        for start in range(last, first + 2, -1):
            yield row, start
        for other in (row - 1, row + 1, row + 2, row + 3):
            if self.cells.blank(other, last - 1, last + len(roof.words)):
                yield other, last

    def _next_to(self, roof: Roof) -> Iterator[tuple[int, int]]:
        """Free places for words below a slope, or above that of the cache."""
        size, above = len(roof.words), roof.style == ROOF_STYLES["l2"]
        top, floor = self.area.top + self.area.rows // 3, self.area.top + self.area.rows - 1
        for row in reversed(range(top, floor)):
            height = self.area.value(row, self.area.left)
            if height is None or not roof.y[0] <= math.log10(height[1]) <= roof.y[1]:
                continue
            _, column = self.place(math.log10(height[1]) - roof.y[0] + roof.x[0], roof.y[0])
            for away in range(3, 12):
                start = column - size - away if above else column + away
                if self.cells.blank(row, start - 1, start + size + 1):
                    yield row, start


def _cells(row: int, start: int, size: int) -> list[tuple[int, int]]:
    return [(row, column) for column in range(start, start + size)]


def _log(value: float) -> float:
    """Decimal logarithm, with 0 and infinity clamped far outside every axis."""
    if value <= 0:
        return -1000.0
    return 1000.0 if math.isinf(value) else math.log10(value)


class RoofsView(PictureOf[tuple[Roofline, int]]):
    """The kernels of an application under the roofs of a GPU, one of them stressed."""

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
        """Draw the roofline."""
        if self._shown is None:
            return []
        found, chosen = self._shown
        return roofline_runs(found, width, height, self.marker, chosen)
