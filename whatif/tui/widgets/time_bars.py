"""The phases of an iteration as bars on a time axis. All but the widget is plain data and drawing on cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from whatif.core.iteration_timeline import Bar, Timeline
from whatif.plotting.cells import EIGHTHS, Cells, Numbers, TextRun
from whatif.plotting.description import SMALLEST, series_style, shorten, text_cells
from whatif.plotting.time_axis import draw_time_axis
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.picture import PictureOf
from whatif.tui.widgets.text_columns import widest

_TITLES: Final = ("phase", "category", "start", "time", "share", "before")
_NAMES, _BOLD, _BEFORE = (0, 1), (0, 3), 5
# The columns of words, the richest choice first: the first one that leaves the bars enough room is taken.
_CHOICES: Final = ((0, 1, 2, 3, 4, 5), (0, 1, 3, 4, 5), (0, 1, 3, 5), (0, 1, 3), (0, 3, 4, 5), (0, 3, 4), (0, 3), (0,))
_GAP: Final = 2
_LONGEST_NAME: Final = 24
_HIGHEST: Final = 6
_DIM: Final = ("baseline", "axis")


class Mark(NamedTuple):
    """A bar with its style and, without colours, its letter."""

    bar: Bar
    style: str
    letter: str


class LaneGroup(NamedTuple):
    """Some lanes of bars with the words before them: a phase, or a whole iteration."""

    words: tuple[str, ...]
    lanes: tuple[tuple[Mark, ...], ...]
    whole: bool = False


def time_bars(
    now: Timeline, before: Timeline | None, width: int, height: int, *, colours: bool = True
) -> list[list[TextRun]]:
    """Draw an iteration, the one it is compared with, and each phase by itself, all on one axis.

    What is too short for a cell is a thin mark. Phases that find no line are named in the last one.
    """
    cells = Cells(width, height)
    span = max(now.iteration_time, before.iteration_time if before is not None else 0.0)
    if not span > SMALLEST:
        cells.put(0, 0, "No phase takes any time.", "label")
        return cells.runs()
    wholes = [_whole("now", now, before), *([_whole("before", before)] if before is not None else [])]
    axis = 2 if height >= 6 else 0
    shown, left_out = _chosen(_phases(now, before), height - axis - sum(len(band.lanes) for band in wholes))
    layout = _layout([*wholes, *shown], width, height - axis - bool(left_out), compared=before is not None)
    chart = _Chart(cells, layout, span, colours=colours)
    row = chart.draw(wholes, shown)
    if axis:
        chart.draw_axis(row + bool(left_out))
    if left_out:
        cells.put(row, 0, _listed(left_out, width).ljust(width), "label")
    return cells.runs()


def _whole(name: str, found: Timeline, before: Timeline | None = None) -> LaneGroup:
    """All phases of an iteration; the one that is compared with is dimmer."""
    marks = [
        Mark(bar, series_style(index) if name == "now" else _DIM[index % 2], _letter(index))
        for index, bar in enumerate(found.bars)
    ]
    lanes = tuple(tuple(mark for mark in marks if mark.bar.lane == lane) for lane in range(found.lane_count))
    was = duration(before.iteration_time) if before is not None else ""
    return LaneGroup((name, "", "", duration(found.iteration_time), "", was), lanes, whole=True)


def _phases(now: Timeline, before: Timeline | None) -> list[LaneGroup]:
    """Each phase with its numbers."""
    return [
        LaneGroup((*words_of(bar, now), was_of(bar, before)), ((Mark(bar, series_style(index), _letter(index)),),))
        for index, bar in enumerate(now.bars)
    ]


def words_of(bar: Bar, found: Timeline) -> tuple[str, str, str, str, str]:
    """Phase, category, start, duration and share of the iteration, as the page's table has them too."""
    return bar.phase, bar.category, duration(bar.start), duration(bar.duration), percent(found.share(bar))


def was_of(bar: Bar, before: Timeline | None) -> str:
    """The duration that the phase has in another iteration, or a dash."""
    bars = before.bars if before is not None else ()
    return next((duration(other.duration) for other in bars if other.phase == bar.phase), "–")


def _letter(index: int) -> str:
    return chr(ord("A") + index % 26)


def _chosen(bands: Sequence[LaneGroup], room: int) -> tuple[list[LaneGroup], list[str]]:
    """The phases that there is a line for, the longest of many, and the names of the others."""
    if len(bands) <= room:
        return list(bands), []
    by_time = sorted(bands, key=lambda band: band.lanes[0][0].bar.duration, reverse=True)
    kept = by_time[: max(0, room - 1)]
    return [band for band in bands if band in kept], [band.words[0] for band in bands if band not in kept]


def _listed(names: Sequence[str], width: int) -> str:
    """The names of phases without a line of their own, as many as fit, and the number of the others."""
    for count in range(len(names), 0, -1):
        others = [f"{len(names) - count} more"] if count < len(names) else []
        text = f"and {', '.join([*names[:count], *others])}"
        if len(text_cells(text)) <= width:
            return text
    return f"and {len(names)} more"


class _Layout(NamedTuple):
    """The columns of words and their widths, the first cell of the bars, the lines of a lane of each kind."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    left: int
    whole_pitch: int
    pitch: int
    titles: bool


def _layout(bands: Sequence[LaneGroup], width: int, height: int, *, compared: bool) -> _Layout:
    wholes = sum(len(band.lanes) for band in bands if band.whole)
    lanes = sum(len(band.lanes) for band in bands)
    pitch = min(max(1, (height - 1) // lanes), _HIGHEST)
    # Lines that do not suffice for all make the bars of the whole iterations higher.
    spare = height - lanes * pitch
    lines = pitch + min(max(0, spare - 1) // wholes, 4), pitch, spare > 0
    for choice in _CHOICES:
        columns = tuple(column for column in choice if compared or column != _BEFORE)
        widths = tuple(_widest(bands, column) for column in columns)
        # A mark stands before the name.
        left = 2 + sum(widths) + _GAP * len(widths)
        if width - left >= max(16, 2 * width // 5):
            return _Layout(columns, widths, left, *lines)
    return _Layout((), (), 0, *lines)


def _widest(bands: Sequence[LaneGroup], column: int) -> int:
    return min(widest((_TITLES[column], *(band.words[column] for band in bands))), _LONGEST_NAME)


class _Chart:
    """Draws bands on cells."""

    def __init__(self, cells: Cells, layout: _Layout, span: float, *, colours: bool) -> None:
        self.cells, self.layout, self.span, self.colours = cells, layout, span, colours
        self.width = max(0, cells.width - layout.left)
        self._barred = np.zeros((cells.height, cells.width), dtype=bool)

    def draw(self, wholes: Sequence[LaneGroup], phases: Sequence[LaneGroup]) -> int:
        """Draw all bands, with the titles of the columns below the whole iterations; the next free line."""
        row = 0
        for band in wholes:
            row = self._draw_band(row, band, self.layout.whole_pitch)
        if self.layout.titles:
            self._draw_words(row, _TITLES, "axis")
            row += 1
        for band in phases:
            row = self._draw_band(row, band, self.layout.pitch)
        return row

    def _draw_band(self, row: int, band: LaneGroup, pitch: int) -> int:
        """Draw a band, with its words at the middle of its first lane."""
        # Without a gap between them, high bars make one heap.
        high = pitch - (pitch > 2)
        middle = row + (high - 1) // 2
        self._draw_words(middle, band.words, "title" if band.whole else "")
        if self.layout.columns and not band.whole:
            mark = band.lanes[0][0]
            self.cells.put(middle, 0, "■" if self.colours else mark.letter, mark.style)
        for lane in band.lanes:
            self._draw_lane(range(row, min(row + high, self.cells.height)), lane, labelled=band.whole)
            row += high
        return row + pitch - high

    def _draw_words(self, row: int, words: tuple[str, ...], style: str) -> None:
        column = 2
        for number, size in zip(self.layout.columns, self.layout.widths, strict=True):
            text = shorten(words[number], size)
            pad = 0 if number in _NAMES else size - len(text_cells(text))
            self.cells.put(row, column + pad, text, style or ("title" if number in _BOLD else "label"))
            column += size + _GAP

    def _draw_lane(self, lines: range, lane: Sequence[Mark], *, labelled: bool) -> None:
        """Draw the bars of a lane on some lines."""
        if not self.width or not lines:
            return
        places = [(mark.bar.start / self.span, mark.bar.end / self.span) for mark in lane]
        owners = _owners(places, self.width).reshape(self.width, 8)
        glyphs = _glyphs(owners, lane, colours=self.colours)
        text = np.array([[glyph.text for glyph in glyphs]])
        styles = np.array([[self.cells.number(glyph.style) for glyph in glyphs]])
        fills = np.array([[self.cells.number(glyph.fill) for glyph in glyphs]])
        for line in lines:
            self.cells.paint(line, self.layout.left, text, styles, fills)
            self._barred[line, self.layout.left :] |= owners.any(axis=1)
        for number, mark in enumerate(lane if labelled else (), 1):
            full = np.flatnonzero((owners == number).all(axis=1))
            self._draw_label(lines[(len(lines) - 1) // 2], full, mark.bar)

    def _draw_label(self, row: int, full: Numbers, bar: Bar) -> None:
        """Write name and time into a bar, as far as it has room."""
        texts = (f" {bar.phase} {duration(bar.duration)} ", f" {bar.phase} ")
        text = next((text for text in texts if len(text_cells(text)) <= full.size), "")
        if text:
            self.cells.put(row, self.layout.left + int(full[0]) + (full.size - len(text_cells(text))) // 2, text, "")

    def draw_axis(self, row: int) -> None:
        """Draw the axis, and faint lines up from its ticks."""
        columns, unit = draw_time_axis(self.cells, row, self.layout.left, (0.0, self.span), gap=4)
        for line, column in itertools.product(range(row), columns):
            if self.cells.blank(line, column, column + 1) and not self._barred[line, column]:
                self.cells.put(line, column, "┊", "axis")
        self._draw_unit(row + 1, unit)

    def _draw_unit(self, row: int, unit: str) -> None:
        """Name the unit before the first number; where the bars begin at the rim, at the end of the axis."""
        before = self.layout.left - len(unit) - 2
        self.cells.put(*((row, before) if before >= 0 else (row - 1, self.cells.width - len(unit))), unit, "label")


def _owners(bars: Sequence[tuple[float, float]], width: int) -> Numbers:
    """For every eighth of a cell the number of the bar there, from 1, or 0.

    The shorter ones lie on top. One without a whole cell gets an eighth at least, at the left side of its cell.
    """
    owners = np.zeros(8 * width, dtype=np.intp)
    for number, (start, end) in sorted(enumerate(bars, 1), key=lambda item: item[1][0] - item[1][1]):
        if end > start:
            left, right = (round(edge * 8 * width) for edge in (start, end))
            owners[left:right] = number
            if right - left < 8:
                first = min(left // 8, width - 1) * 8
                owners[first : first + max(1, right - left)] = number
    return owners


def _glyphs(owners: Numbers, lane: Sequence[Mark], *, colours: bool) -> list[TextRun]:
    """The cells of a lane, each from the bars at its two sides and the eighths of the left one."""
    first, last = owners[:, 0].tolist(), owners[:, -1].tolist()
    if not colours:
        letters = [" ", *(mark.letter for mark in lane)]
        return [TextRun(letters[left or right], "label") for left, right in zip(first, last, strict=True)]
    styles = ["", *(mark.style for mark in lane)]
    eighths = (owners == owners[:, :1]).cumprod(axis=1).sum(axis=1).tolist()
    return [
        TextRun(" ", "", styles[right]) if part == 8 else TextRun(EIGHTHS[part], styles[left], styles[right])
        for left, right, part in zip(first, last, eighths, strict=True)
    ]


def hidden(found: Timeline) -> Iterator[tuple[float, str, str]]:
    """The overlaps: the time in s that is hidden, the shorter phase of the two, and the longer one."""
    for one, other in itertools.combinations(found.bars, 2):
        shared = min(one.end, other.end) - max(one.start, other.start)
        # What two bars share by rounding alone is no overlap.
        if one.lane != other.lane and shared > 1e-12 * found.iteration_time:
            shorter, longer = sorted((one, other), key=lambda bar: bar.duration)
            yield shared, shorter.phase, longer.phase


class TimeBars(PictureOf[tuple[Timeline, Timeline | None]]):
    """Shows when each phase of an iteration begins and ends, and of the one that it is compared with."""

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
        """Draw the bars; without colours letters distinguish them."""
        return time_bars(*self._shown, width, height, colours=not self.app.no_color) if self._shown else []
