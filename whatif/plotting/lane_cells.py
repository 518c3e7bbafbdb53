"""Lanes drawn on cells, for terminals."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.plotting.cells import EIGHTHS, Cells, Line, Numbers, TextRun, flowing
from whatif.plotting.lanes import Kinds, Lanes, Ranks32
from whatif.plotting.time_axis import draw_time_axis

MOST_MARKS: Final = 60
"""Messages whose ends are marked, unless they are those of one rank."""
_CRITICAL, _SENT, _RECEIVED, _CHOSEN = "━", "▸", "◂", "»"
_HIGHEST: Final = 4
_LONG: Final = 96
"""Least width for a legend in one line."""
_ROOMY: Final = 60
"""Least width for names of nodes."""


class _Frame(NamedTuple):
    """Lines of a picture by lane."""

    lanes: range
    """Visible ones, as places in `Lanes`."""
    lines: tuple[int, ...]
    """The first line of each of them, and the one below the last."""
    high: int
    """The lines of a bar."""
    left: int
    """The first cell of the bars."""
    axis: int
    """Lines of the time axis."""
    legend: int
    """Lines of the legend."""


def lanes_in_sight(lane_count: int, width: int, height: int) -> int:
    """Number of ranks that fit into the lines."""
    return min(lane_count, max(1, height - sum(_words(width, height))))


def lane_at(lanes: Lanes, first: int, width: int, height: int, line: int) -> int | None:
    """Lane of a line of a drawing, as a place in `Lanes`; None for other lines."""
    frame = _frame(lanes, first, width, height)
    place = bisect_right(frame.lines, line) - 1
    return frame.lanes[place] if 0 <= place < len(frame.lanes) else None


def _words(width: int, height: int) -> tuple[int, int]:
    """The lines of the axis and of the legend."""
    return (2 if height >= 6 else 0), (2 if height >= 14 and width < _LONG else 1 if height >= 8 else 0)


def _frame(lanes: Lanes, first: int, width: int, height: int) -> _Frame:
    count = lanes_in_sight(len(lanes.node), width, height)
    place = min(max(first - lanes.first_rank, 0), len(lanes.node) - count)
    axis, legend = _words(width, height)
    digits = len(str(lanes.first_rank + len(lanes.node) - 1))
    node = len(f"node {lanes.node.max()} ") if width >= _ROOMY else 0
    shown = range(place, place + count)
    lines, high = _given_out(lanes.node[shown.start : shown.stop], height - axis - legend)
    # Before the bars: the node, its bracket, a mark, the rank.
    return _Frame(shown, lines, high, min(node + digits + 4, width), axis, legend)


def _given_out(node: Ranks32, room: int) -> tuple[tuple[int, ...], int]:
    """The first line of each lane and the one below the last, and the lines of a bar: high ones stand apart, and
    if there is room nodes do."""
    pitch = min(max(1, room // len(node)), _HIGHEST)
    other = np.append(node[1:] != node[:-1], False)
    apart = pitch * len(node) + int(other.sum()) <= room
    lines = np.cumsum([0, *(pitch + other * apart)])
    return tuple(lines.tolist()), max(1, pitch - 1)


def lane_runs(
    lanes: Lanes, first: int, rank: int | None, width: int, height: int, *, kinds: Kinds, colours: bool = True
) -> list[Line]:
    """Draw ranks from `first` on, with the ends of messages where they are few or those of one `rank`.

    A cell has the colour of the activity that takes most of it, and a line on the critical path; without colours it
    has the letter of the activity, a capital one on the critical path.
    """
    if not len(lanes.node) or not lanes.window[1] > lanes.window[0]:
        cells = Cells(width, height)
        cells.put(0, 0, "No rank takes any time.", "label")
        return cells.runs()
    frame = _frame(lanes, first, width, height)
    chart = _Chart(Cells(width, height), lanes, frame, kinds, colours=colours)
    chart.draw_names(rank)
    chart.draw_bars()
    marked = chart.draw_messages(all_of_them=rank is not None)
    if frame.axis:
        chart.draw_axis(frame.lines[-1])
    legend = flowing(chart.legend(marked=marked), width)[: frame.legend]
    return [*chart.cells.runs()[: frame.lines[-1] + frame.axis], *legend][:height]


class _Chart:
    """Draws lanes on cells."""

    def __init__(self, cells: Cells, lanes: Lanes, frame: _Frame, kinds: Kinds, *, colours: bool) -> None:
        self.cells, self.lanes, self.frame, self.kinds, self.colours = cells, lanes, frame, kinds, colours
        self.width = max(0, cells.width - frame.left)
        shown = np.s_[frame.lanes.start : frame.lanes.stop]
        self._group = lanes.group[shown]
        self._critical = lanes.critical == np.array(self._ranks)[:, None]

    def draw_names(self, rank: int | None) -> None:
        """Write the ranks, a bracket round those of a node, and its number."""
        for place, lane in enumerate(self.frame.lanes):
            row, below = self.frame.lines[place : place + 2]
            number = self.lanes.first_rank + lane
            text = f"{_CHOSEN if number == rank else ' '}{number:>{self._digits}} "
            column = self.frame.left - len(text) - 1
            begins, ends = self._ends_of_node(lane)
            for line in range(row + 1, below * (not ends)):
                self.cells.put(line, column, "│", "axis")
            self.cells.put(row, column, "╶" if begins and ends else "┌" if begins else "└" if ends else "│", "axis")
            self.cells.put(row, column + 1, text, "title" if number == rank else "label")
            if column > 1 and (begins or place == 0):
                self.cells.put(row, 0, f"node {self.lanes.node[lane]}", "label")

    def _ends_of_node(self, lane: int) -> tuple[bool, bool]:
        """Whether a lane is the first, and whether the last, of its node's."""
        node = self.lanes.node
        return lane == 0 or node[lane - 1] != node[lane], lane + 1 == len(node) or node[lane + 1] != node[lane]

    @property
    def _digits(self) -> int:
        return len(str(self.lanes.first_rank + len(self.lanes.node) - 1))

    def draw_bars(self) -> None:
        """Draw what each visible rank does."""
        if not self.width:
            return
        text, styles, fills = self._looks()
        for place, first in enumerate(self.frame.lines[:-1]):
            row = np.s_[place : place + 1]
            for line in range(first, min(first + self.frame.high, self.cells.height)):
                self.cells.paint(line, self.frame.left, text[row], styles[row], fills[row])

    def _looks(self) -> tuple[NDArray[np.str_], Numbers, Numbers]:
        """Characters, styles and fillings of the cells [lane, cell]."""
        main, left, right, eighths = _in_cells(self._group, self.width, len(self.kinds.styles))
        critical = _path_cells(self._critical, self.width)
        if not self.colours:
            letters, capitals = (np.array(list(signs))[main] for signs in (self.kinds.letters, self.kinds.capitals))
            text = np.where(critical, capitals, letters)
            styles = np.where(critical, self.cells.number("title"), self.cells.number("label"))
            return text, styles, np.zeros_like(styles)
        numbers = np.array([self.cells.number(style) for style in self.kinds.styles])
        split = (eighths > 0) & ~critical
        text = np.where(split, np.array(list(EIGHTHS))[eighths], np.where(critical, _CRITICAL, " "))
        lone = critical & (main == 0)
        styles = np.where(split, numbers[left], np.where(lone, self.cells.number("title"), 0))
        return text, styles, numbers[np.where(split, right, main)]

    def draw_messages(self, *, all_of_them: bool) -> bool:
        """Mark the ends of visible messages; returns whether any is marked."""
        ends = list(self._ends(apart=not all_of_them))
        if not all_of_them and len(ends) > 2 * MOST_MARKS:
            return False
        for mark, rank, column in ends:
            row = self.frame.lines[rank - self._ranks.start]
            self.cells.put(row, column, mark, "" if self.cells.fill(row, column) else "title")
        return bool(ends)

    def _ends(self, *, apart: bool) -> Iterator[tuple[str, int, int]]:
        """Mark, rank and column of the visible ends of messages; with `apart`, only of those with two columns."""
        found = self.lanes.messages
        for rows in zip(found.sender, found.receiver, found.sent, found.received, strict=True):
            sender, receiver, *times = (item.item() for item in rows)
            columns = [self._column(time) for time in times]
            for mark, rank, column in ((_SENT, sender, columns[0]), (_RECEIVED, receiver, columns[1])):
                inside = rank in self._ranks and 0 <= column < self.width
                if inside and not (apart and columns[0] == columns[1]):
                    yield mark, rank, self.frame.left + column

    @property
    def _ranks(self) -> range:
        first = self.lanes.first_rank
        return range(first + self.frame.lanes.start, first + self.frame.lanes.stop)

    def _column(self, time: float) -> int:
        """The cell of the bars in which a time lies; none of them outside of the window."""
        low, high = self.lanes.window
        place = math.floor((time - low) / (high - low) * self.width)
        return place - (time == high)

    def draw_axis(self, row: int) -> None:
        """Draw the axis below the bars."""
        left = self.frame.left
        unit = draw_time_axis(self.cells, row, left, self.lanes.window, gap=3, first=left).unit
        self.cells.put(row + 1, max(0, left - len(unit) - 2), unit, "label")

    def legend(self, *, marked: bool) -> list[Line]:
        """Legend of the colours, or the letters, and the visible marks."""
        words = [
            [
                TextRun("■" if self.colours else self.kinds.letters[number], self.kinds.styles[number]),
                TextRun(f" {name}", "label"),
            ]
            for number, name in enumerate(self.kinds.names, 1)
            if (self._group == number).any()
        ]
        if self._critical.any():
            sign = _CRITICAL if self.colours else "+ and capitals:"
            words.append([TextRun(sign, "title"), TextRun(" critical path", "label")])
        if marked:
            words.append(
                [
                    TextRun(_SENT, "title"),
                    TextRun(" sends  ", "label"),
                    TextRun(_RECEIVED, "title"),
                    TextRun(" receives", "label"),
                ]
            )
        return words


def _in_cells(group: NDArray[np.uint8], width: int, kind_count: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Longest, first and last activity of each cell, and the eighths of the first one if there are no
    more than these two: all [lane, cell]."""
    first, last = _parts_of_cells(group.shape[1], width)
    counts = np.stack([_sums(group == number, first, last) for number in range(kind_count)])
    begins, ends = group[:, first].astype(np.intp), group[:, last - 1].astype(np.intp)
    changes = np.zeros(group.shape, dtype=np.intp)
    changes[:, 1:] = group[:, 1:] != group[:, :-1]
    inner = _sums(changes, np.minimum(first + 1, last), last)
    share = np.take_along_axis(counts, begins[None], axis=0)[0] / (last - first)
    eighths = np.where((inner == 1) & (begins != ends), np.clip(np.rint(8 * share), 1, 7), 0).astype(np.intp)
    return counts.argmax(axis=0), begins, ends, eighths


def _path_cells(critical: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """The cells that the critical path runs through, one lane for each column at most."""
    first, last = _parts_of_cells(critical.shape[1], width)
    counts = _sums(critical, first, last)
    found: NDArray[np.bool_] = (counts > 0) & (np.arange(len(counts))[:, None] == counts.argmax(axis=0))
    return found


def _parts_of_cells(part_count: int, width: int) -> tuple[Numbers, Numbers]:
    """The first part of each cell, and the one after its last; a cell has one at least."""
    edges = np.arange(width + 1) * part_count // width
    return edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)


def _sums(values: NDArray[np.generic], first: Numbers, last: Numbers) -> Numbers:
    """The sum over the parts of each cell [lane, cell]."""
    total = np.zeros((values.shape[0], values.shape[1] + 1), dtype=np.intp)
    np.cumsum(values, axis=1, out=total[:, 1:])
    return total[:, last] - total[:, first]
