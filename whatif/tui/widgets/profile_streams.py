"""The time line of a profile by streams, measured and projected. All but the widget is drawing on cells."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.plotting.cells import Cells, Line, Numbers, TextRun
from whatif.plotting.description import shorten, text_cells
from whatif.plotting.time_axis import draw_time_axis
from whatif.profiles.stream_lanes import Interval, Lane, Streams, TimelineSpan
from whatif.table_writers import short_kernel
from whatif.tui.labels import duration
from whatif.tui.widgets.picture import PictureOf
from whatif.tui.widgets.profile_bars import legend
from whatif.tui.widgets.text_columns import padded

STYLES: Final = {
    "kernel": ("series-1", "K"),
    "host_to_device": ("series-2", "H"),
    "device_to_host": ("series-3", "D"),
    "device_to_device": ("series-4", "I"),
    "peer_to_peer": ("series-5", "P"),
    "fill": ("series-6", "F"),
}
"""The colour of each kind of operations, and its letter without colours."""
_LEVELS: Final = np.array(list(" ▁▂▃▄▅▆▇ "))
_HIGHEST: Final = 6


def stream_lines(streams: Streams, width: int, height: int, *, colours: bool) -> list[Line]:
    """Draw all time lines on one axis, a lane for each stream: as high as the stream is busy in the time of a cell.

    A cell has the colour of what takes most of its time; without colours a letter, small below one half. Streams that
    find no line are left out, those that are busy least first.
    """
    cells = Cells(width, height)
    below = legend([(kind.replace("_", " "), *STYLES[kind]) for kind in streams.kinds], width, colours=colours)
    below = below[: max(0, (height - 4) // 3)]
    axis = 2 if height - len(below) >= 3 * len(streams.bands) + 2 else 0
    room = height - len(below) - axis
    count = max(1, min(len(streams.bands[0].lanes), room // len(streams.bands) - 1))
    chart = _Chart(cells, streams, count, colours=colours)
    pitch = min(max(1, (room // len(streams.bands) - 1) // count), _HIGHEST)
    row = 0
    for band in streams.bands[: max(1, room)]:
        row = chart.draw(row, band, pitch, headed=room >= 2 * len(streams.bands))
    if axis:
        chart.draw_axis(row)
    return [*cells.runs()[: row + axis], *below][:height]


class _Chart:
    """Draws time lines on cells."""

    def __init__(self, cells: Cells, streams: Streams, count: int, *, colours: bool) -> None:
        self.cells, self.streams, self.count, self.colours = cells, streams, count, colours
        names = [*(f" {lane.name}" for lane in streams.bands[0].lanes[:count]), *(band.name for band in streams.bands)]
        self.left = min(max(map(len, names)) + 1, cells.width // 3)
        self.width = cells.width - self.left

    def draw(self, row: int, band: TimelineSpan, pitch: int, *, headed: bool) -> int:
        """Draw a time line with its name, above it if space permits; returns the next free line."""
        if headed:
            self.cells.put(row, 0, self._heading(band), "title")
            row += 1
        for lane in band.lanes[: self.count]:
            name = f" {lane.name}" if headed else band.name
            self.cells.put(row + pitch - 1, 0, padded(name, self.left - 1), "label")
            self._draw_lane(row, lane, pitch)
            row += pitch
        return row

    def _heading(self, band: TimelineSpan) -> str:
        left_out = len(band.lanes) - self.count
        return f"{band.name} {duration(band.total_time)}" + (f", {left_out} more streams" if left_out > 0 else "")

    def _draw_lane(self, row: int, lane: Lane, pitch: int) -> None:
        shares = _in_cells(lane.busy, self.width)
        most, busy = shares.argmax(axis=0), np.minimum(shares.sum(axis=0), 1.0)
        eighths = np.maximum(np.round(busy * 8 * pitch), busy > 0).astype(np.intp)
        for line in range(min(pitch, self.cells.height - row)):
            level = np.clip(eighths - 8 * (pitch - 1 - line), 0, 8)
            self._paint(row + line, level, most)
        if self.colours:
            self._name_intervals(row + (pitch - 1) // 2, lane, eighths == 8 * pitch)

    def _paint(self, row: int, level: Numbers, most: Numbers) -> None:
        """Draw a line of cells, each filled to some eighths."""
        kinds = [STYLES[kind] for kind in self.streams.kinds]
        if not self.colours:
            letters = np.array([letter for _, letter in kinds])[most]
            text = np.where(level > 3, letters, np.where(level > 0, np.char.lower(letters), " "))
            self.cells.paint(row, self.left, text[None, :], np.full((1, self.width), self.cells.number("label")))
            return
        styles = np.array([self.cells.number(style) for style, _ in kinds])[most]
        empty = self.cells.number("")
        front = np.where((level > 0) & (level < 8), styles, empty)
        self.cells.paint(
            row, self.left, _LEVELS[level][None, :], front[None, :], np.where(level == 8, styles, empty)[None, :]
        )

    def _name_intervals(self, row: int, lane: Lane, full: NDArray[np.bool_]) -> None:
        """Write into long operations what they are."""
        start, end = self.streams.window
        for interval in lane.named:
            places = [(edge - start) / (end - start) * self.width for edge in (interval.start, interval.end)]
            first, last = max(0, math.ceil(places[0])), min(self.width, math.floor(places[1]))
            if last - first >= 6 and full[first:last].all():
                text = shorten(_label(interval), last - first - 2)
                self.cells.put(row, self.left + first + (last - first - len(text_cells(text))) // 2, text, "")

    def draw_axis(self, row: int) -> None:
        """Draw the axis of the visible time."""
        unit = draw_time_axis(self.cells, row, self.left, self.streams.window, gap=4).unit
        self.cells.put(row + 1, max(0, self.left - len(unit) - 2), unit, "label")


def _label(interval: Interval) -> str:
    """Name and duration of an operation."""
    name = interval.label.replace("_", " ") if interval.label in STYLES else short_kernel(interval.label)
    return f"{name} {duration(interval.end - interval.start)}"


def _in_cells(busy: NDArray[np.float32], width: int) -> NDArray[np.float64]:
    """The shares of cells from those of the parts of the time."""
    parts = busy.shape[1]
    covered = np.concatenate([np.zeros((len(busy), 1)), np.cumsum(busy, axis=1, dtype=float)], axis=1)
    edges = np.linspace(0, parts, width + 1)
    at = np.array([np.interp(edges, np.arange(parts + 1), row) for row in covered])
    return np.asarray(np.diff(at, axis=1) * (width / parts))


class StreamBars(PictureOf[Streams], can_focus=True):
    """Shows when each stream does what, measured and projected."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the time lines; without colours letters mark the kinds."""
        if self._shown is None or width < 8:
            return []
        if not self._shown.whole > 0:
            return [[TextRun(shorten("No operation takes any time.", width), "label")]][:height]
        return stream_lines(self._shown, width, height, colours=not self.app.no_color)
