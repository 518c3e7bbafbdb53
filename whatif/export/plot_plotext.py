"""Draw a plot description as terminal text: plotext draws the curves, all else is placed cell by cell here.

Plotext sees only dots at integer places: its own logarithmic axes fail on zero and its labels overlap.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whatif.export.plot import (
    SERIES_STYLES,
    Axes,
    FloatArray,
    Line,
    PlotDescription,
    Scale,
    Tick,
    axis_space,
    curve,
    plot_axes,
    shorten,
    text_cells,
    ticks,
)

MarkerName = Literal["braille", "dot", "ascii"]

# The normal ANSI colours read on black and on white; the bright ones do not.
PALETTE = {"cyan": 36, "yellow": 33, "green": 32, "magenta": 35, "red": 31, "blue": 34}
_CODES = dict(zip(SERIES_STYLES, PALETTE.values(), strict=True)) | {
    "title": 1,
    "marker": 1,
    "axis": 2,
    "baseline": 2,
}
_ANSI_RUN = re.compile(r"(?:\x1b\[38;5;(\d+)m)?([^\x1b]*)(?:\x1b\[0m)?")


class Run(NamedTuple):
    """A piece of a screen line: text, the name of its style and, on a filled bar, the style behind it."""

    text: str
    style: str = ""
    fill: str = ""


class _Pen(NamedTuple):
    """What plotext calls the dots of a line, and what the legend shows for it."""

    dot: str
    sample: str


class _Glyphs(NamedTuple):
    """The characters of one marker: pens (the baseline's first), dots in a cell, line art."""

    pens: tuple[_Pen, ...]
    columns: int = 1
    rows: int = 1
    point: str = "●"
    frame: str = "│─└┤┬┊"

    def pen(self, line: Line, index: int) -> _Pen:
        return self.pens[0 if line.style == "baseline" else 1 + index % (len(self.pens) - 1)]


_GLYPHS = {
    "braille": _Glyphs((_Pen("braille", "╍╍"), _Pen("braille", "━━")), 2, 4),
    "dot": _Glyphs((_Pen("•", "• "), _Pen("•", "••"))),
    "ascii": _Glyphs((_Pen(".", ". "), *(_Pen(dot, dot * 2) for dot in "*+xo%@")), point="#", frame="|-+++:"),
}


class _Grid:
    """A screen of cells, each with a style name; what does not fit is cut off."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = max(0, width), max(0, height)
        self.cells = [[" "] * self.width for _ in range(self.height)]
        self.styles = [[""] * self.width for _ in range(self.height)]

    def put(self, row: int, column: int, text: str, style: str) -> None:
        column = max(0, column)
        if 0 <= row < self.height and column < self.width:
            for offset, cell in enumerate(text_cells(shorten(text, self.width - column)), start=column):
                self.cells[row][offset], self.styles[row][offset] = cell, style

    def blank(self, row: int, start: int, stop: int) -> bool:
        inside = 0 <= start <= stop <= self.width and 0 <= row < self.height
        return inside and all(cell == " " for cell in self.cells[row][start:stop])

    def runs(self) -> list[list[Run]]:
        return [
            [
                Run("".join(cell for cell, _ in group), style)
                for style, group in itertools.groupby(zip(*row, strict=True), key=lambda pair: pair[1])
            ]
            for row in zip(self.cells, self.styles, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Area:
    """The screen cells of the curves and the dots in them; without a frame there was no room for one."""

    axes: Axes
    glyphs: _Glyphs
    left: int
    top: int
    columns: int
    rows: int
    framed: bool = True

    def dots(self, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Number the dots of positions in axis space, x over y, from the lower left; NaN stays."""
        last = np.array([[self.columns * self.glyphs.columns - 1], [self.rows * self.glyphs.rows - 1]])
        fractions = self.axes.x.fraction(np.asarray(x)), self.axes.y.fraction(np.asarray(y))
        return np.asarray(np.rint(np.stack(np.broadcast_arrays(*fractions)) * last), dtype=np.float64)

    def cells(self, dots: FloatArray) -> list[tuple[int, int]]:
        """Screen (row, column) of dots."""
        columns = self.left + dots[0] // self.glyphs.columns
        rows = self.top + self.rows - 1 - dots[1] // self.glyphs.rows
        return list(zip(rows.astype(int).tolist(), columns.astype(int).tolist(), strict=True))

    def tick_rows(self, chosen: Sequence[Tick]) -> list[int]:
        places = self.dots(self.axes.x.low, [tick.position for tick in chosen])
        return [row for row, _ in self.cells(places)]

    def tick_columns(self, chosen: Sequence[Tick]) -> list[int]:
        places = self.dots([tick.position for tick in chosen], self.axes.y.low)
        return [column for _, column in self.cells(places)]


def _layout(axes: Axes, glyphs: _Glyphs, grid: _Grid, header: int) -> tuple[_Area, tuple[Tick, ...]]:
    """Divide the screen; a tiny one is all curve."""
    rows = grid.height - header - 2 - bool(axes.x.label and grid.height >= 8)
    if grid.width < 16 or rows < 2:
        return _Area(axes, glyphs, 0, 0, grid.width, grid.height, framed=False), ()
    draft = _Area(axes, glyphs, 0, header, grid.width, rows)
    apart = 2 if rows <= 9 or axes.y.description.scale is Scale.LOG else 3

    def fits(candidate: Sequence[Tick]) -> bool:
        places = draft.tick_rows(candidate)
        spread = all(lower - upper >= apart for lower, upper in itertools.pairwise(places))
        return spread and _widest(candidate) <= grid.width // 3

    y_ticks = ticks(axes.y, fits)
    left = _widest(y_ticks) + 2
    return replace(draft, left=left, columns=grid.width - left), y_ticks


def _widest(candidate: Sequence[Tick]) -> int:
    return max((len(text_cells(tick.label)) for tick in candidate), default=0)


def _walk(points: FloatArray) -> NDArray[np.intp]:
    """Go from dot to dot in steps of one, never across NaN."""
    delta = np.diff(points, append=np.nan)
    # A point without a successor makes one step, and stays where it is.
    length = np.nan_to_num(np.abs(delta).max(axis=0), nan=1.0)
    steps = np.where(np.isfinite(points[1]), length, 0).astype(np.intp)
    segment = np.repeat(np.arange(steps.size), steps)
    part = (np.arange(segment.size) - (np.cumsum(steps) - steps)[segment]) / steps[segment]
    dots = points[:, segment] + np.nan_to_num(part * delta[:, segment])
    return np.asarray(np.rint(dots), dtype=np.intp)


def _lonely(y: FloatArray) -> NDArray[np.intp]:
    """Find points with a gap on both sides: a single braille dot would be overlooked."""
    known = np.r_[False, np.isfinite(y), False]
    return np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])


class _Trail(NamedTuple):
    """One line on the screen: its dots, and the cells of points to stress and of its key."""

    style: str
    dot: str
    dots: NDArray[np.intp]
    stressed: list[tuple[int, int]]
    key: list[tuple[int, int]]


def _trails(description: PlotDescription, area: _Area) -> Iterator[_Trail]:
    for index, (line, style) in enumerate(zip(description.lines, description.line_styles(), strict=True)):
        points = area.dots(*curve(line, description))
        known = np.flatnonzero(np.isfinite(points[1]))
        stressed = known if description.x.ticks else _lonely(points[1])
        dots = _walk(points)
        if line.style == "baseline":
            dots = dots[:, np.arange(dots.shape[1]) // area.glyphs.columns % 4 < 2]
        # Keys stand apart along the right half: at the very end those of near curves would cover each other.
        key = known[::-1][index * known.size // (2 * len(description.lines)) :][:1]
        cells = [area.cells(points[:, at]) for at in (stressed, key)]
        yield _Trail(style, area.glyphs.pen(line, index).dot, np.unique(dots, axis=1), *cells)


def _canvas(trails: Sequence[_Trail], area: _Area) -> list[list[Run]]:
    """Let plotext turn dots into characters; a colour number stands for the index of a line."""
    from plotext._figure import _figure_class  # slow, and most commands draw nothing

    figure = _figure_class()  # a figure of our own: the one of the module is shared by everybody
    figure._limit_size(False, False)
    figure._set_size(area.columns, area.rows)
    figure.theme("clear")
    figure.frame(False)
    figure.xlim(0, max(1, area.columns * area.glyphs.columns - 1))
    figure.ylim(0, max(1, area.rows * area.glyphs.rows - 1))
    figure.xticks([], [])
    figure.yticks([], [])
    for index, trail in enumerate(trails):
        if trail.dots.size:
            figure.scatter(*trail.dots.tolist(), marker=trail.dot, color=index % 256)
    return parse_ansi(figure.build(), [trail.style for trail in trails])


def parse_ansi(text: str, styles: Sequence[str]) -> list[list[Run]]:
    """Split ANSI text into runs: colour n of 256 stands for the n-th style, no colour for none."""
    return [
        [Run(m[2], styles[int(m[1])] if m[1] else "") for m in _ANSI_RUN.finditer(line) if m[2]]
        for line in text.splitlines()
    ]


def render_runs(
    description: PlotDescription,
    width: int,
    height: int,
    *,
    marker: MarkerName = "braille",
    keys: bool = False,
) -> list[list[Run]]:
    """Draw a plot as `height` lines of runs, each exactly `width` cells wide.

    With `keys` each line bears a letter that the legend repeats, for a screen without colours.
    """
    grid, glyphs, axes = _Grid(width, height), _GLYPHS[marker], plot_axes(description)
    header = _header(description, axes.y.label, grid, glyphs, keys=keys)
    area, y_ticks = _layout(axes, glyphs, grid, len(header))
    if area.framed:
        _draw_words(grid, header, axes.x.label, area)
        _draw_frame(grid, area, y_ticks)
    if area.columns > 0 and area.rows > 0:
        _draw_curves(grid, description, area, keys=keys)
        _draw_markers(grid, description, area)
    return grid.runs()


def _header(description: PlotDescription, y_label: str, grid: _Grid, glyphs: _Glyphs, *, keys: bool) -> list[list[Run]]:
    """Title, then the y axis label and the legend, flowing over a few lines."""
    words = [Run(y_label, "label")] if y_label else []
    for index, (line, style) in enumerate(zip(description.lines, description.line_styles(), strict=True)):
        key = f"{_key(index)} " if keys else ""
        words.append(Run(f"{glyphs.pen(line, index).sample} {key}{line.label}", style))
    titled = bool(description.title) and grid.height >= 8
    lines = [[Run(description.title, "title")]] if titled else []
    most = len(lines) + max(1, grid.height // 6)
    used = grid.width
    for word in words:
        size = len(text_cells(word.text)) + 3
        if used + size > grid.width + 3:
            if len(lines) == most:
                lines[-1].append(Run("…", "label"))
                break
            lines.append([])
            used = 0
        lines[-1].append(word)
        used += size
    return lines


def _key(index: int) -> str:
    return chr(ord("a") + index % 26)


def _draw_words(grid: _Grid, header: Sequence[Sequence[Run]], x_label: str, area: _Area) -> None:
    for row, words in enumerate(header):
        column = 0
        if words and words[0].style == "title":
            column = (grid.width - len(text_cells(words[0].text))) // 2
        for word in words:
            grid.put(row, column, word.text, word.style)
            column += len(text_cells(word.text)) + 3
    if area.top + area.rows + 2 < grid.height:
        column = area.left + (area.columns - len(text_cells(x_label))) // 2
        grid.put(grid.height - 1, column, x_label, "label")


def _draw_frame(grid: _Grid, area: _Area, y_ticks: Sequence[Tick]) -> None:
    vertical, horizontal, corner, tick_left, tick_down, _ = list(area.glyphs.frame)
    floor = area.top + area.rows
    for row in range(area.top, floor):
        grid.put(row, area.left - 1, vertical, "axis")
    grid.put(floor, area.left - 1, corner + horizontal * area.columns, "axis")
    for tick, row in zip(y_ticks, area.tick_rows(y_ticks), strict=True):
        grid.put(row, area.left - 2 - len(text_cells(tick.label)), tick.label, "label")
        grid.put(row, area.left - 1, tick_left, "axis")
    for tick, column in _x_ticks(area, grid.width):
        grid.put(floor, column, tick_down, "axis")
        grid.put(floor + 1, _label_start(tick, column, grid.width), tick.label, "label")


def _x_ticks(area: _Area, width: int) -> list[tuple[Tick, int]]:
    """Choose the x ticks whose labels keep two cells apart, with their columns."""

    def fits(candidate: Sequence[Tick]) -> bool:
        columns = area.tick_columns(candidate)
        starts = [_label_start(tick, column, width) for tick, column in zip(candidate, columns, strict=True)]
        ends = [start + len(text_cells(tick.label)) for start, tick in zip(starts, candidate, strict=True)]
        return ends[-1] <= width and all(b - a >= 2 for a, b in zip(ends, starts[1:], strict=False))

    chosen = ticks(area.axes.x, fits)
    return list(zip(chosen, area.tick_columns(chosen), strict=True))


def _label_start(tick: Tick, column: int, width: int) -> int:
    """Centre a label under its tick, moved inwards at the rim."""
    size = len(text_cells(tick.label))
    return max(0, min(column - size // 2, width - size))


def _draw_curves(grid: _Grid, description: PlotDescription, area: _Area, *, keys: bool) -> None:
    trails = list(_trails(description, area))
    if not any(trail.dots.size for trail in trails):
        text = shorten("no values to draw", area.columns)
        grid.put(area.top + (area.rows - 1) // 2, area.left + (area.columns - len(text)) // 2, text, "label")
        return
    # What is drawn last lies on top, and that is the data; of the data, the first line.
    ordered = [trail for _, trail in sorted(enumerate(trails), key=_depth)]
    for row, runs in enumerate(_canvas(ordered, area), start=area.top):
        column = area.left
        for run in runs:
            if run.style:
                grid.put(row, column, run.text, run.style)
            column += len(run.text)
    for index, trail in enumerate(trails):
        for row, column in trail.stressed:
            grid.put(row, column, area.glyphs.point, trail.style)
        for row, column in trail.key if keys else ():
            grid.put(row, column, _key(index), trail.style)


def _depth(place: tuple[int, _Trail]) -> tuple[bool, int]:
    return place[1].style != "baseline", -place[0]


def _draw_markers(grid: _Grid, description: PlotDescription, area: _Area) -> None:
    """Draw vertical marks behind the curves; one beyond the axis becomes a label with an arrow."""
    view = area.axes.x
    for mark in description.markers:
        position = axis_space(np.array([mark.x]), description.x)
        fraction = float(view.fraction(position)[0])
        if np.isnan(fraction):
            continue
        [(_, column)] = area.cells(area.dots(np.clip(position, view.low, view.high), area.axes.y.low))
        label = mark.label
        if -1e-9 <= fraction <= 1 + 1e-9:
            for row in range(area.top, area.top + area.rows):
                if grid.blank(row, column, column + 1):
                    grid.put(row, column, area.glyphs.frame[5], "marker")
        else:
            label = f"< {label}" if fraction < 0 else f"{label} >"
        _draw_marker_label(grid, label, column, area)


def _draw_marker_label(grid: _Grid, label: str, column: int, area: _Area) -> None:
    """Write beside the mark, in the uppermost line where no curve is in the way."""
    size = len(text_cells(label))
    for row, start in itertools.product(range(area.top, area.top + area.rows), (column + 2, column - 1 - size)):
        if start > area.left and grid.blank(row, start - 1, start + size):
            grid.put(row, start, label, "marker")
            return


def render(
    description: PlotDescription,
    width: int,
    height: int,
    *,
    marker: MarkerName = "braille",
    colour: bool = True,
) -> str:
    """Draw `height` lines of at most `width` cells; without colour, letters tell the lines apart."""
    lines = render_runs(description, width, height, marker=marker, keys=not colour)
    text = "\n".join("".join(_ansi(run) if colour else run.text for run in line).rstrip() for line in lines)
    return text.replace("…", "~") if marker == "ascii" else text


def _ansi(run: Run) -> str:
    code = _CODES.get(run.style)
    return run.text if code is None else f"\x1b[{code}m{run.text}\x1b[0m"
