"""Bars of a profile: times of copies, shares of their sizes, kernels. All but the widgets is drawing on cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from whatif.plotting.cells import EIGHTHS, Line, TextRun, flowing
from whatif.plotting.description import BarSegment, StackedBar, series_style, shorten
from whatif.table import Table
from whatif.table_writers import short_kernel
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.breakdown import bar_runs
from whatif.tui.widgets.picture import PictureOf
from whatif.tui.widgets.text_columns import padded
from whatif.units import ONE, format_quantity

WAYS: Final = (
    ("measured", "time", "series-1"),
    ("model", "projected_time", "series-2"),
    ("peak", "peak_time", "baseline"),
    ("envelope", "envelope_time", "axis"),
)
"""The times of a class of copies: how they are called, their column, their style."""
NO_COPIES: Final = "There are no copies in this profile."
NO_KERNELS: Final = "There are no kernels in this profile."
_WORD: Final = 8


class SizeClass(NamedTuple):
    """Copies of one direction and memory: number, time in s, and by decade of size the shares in both."""

    name: str
    memory: str
    copy_count: float
    time: float
    shares: Mapping[str, tuple[float, float]]

    @property
    def texts(self) -> tuple[str, str]:
        """Number and time in words."""
        return f"{format_quantity(self.copy_count, ONE)} copies", duration(self.time)


def length(value: float, largest: float, width: int) -> str:
    """A bar to the eighth of a cell; what is too short for one is a thin mark."""
    share = value / largest if largest > 0 and math.isfinite(value) else 0.0
    eighths = max(min(round(share * width * 8), width * 8), int(share > 0))
    return ("█" * (eighths // 8) + EIGHTHS[eighths % 8].rstrip())[:width]


def legend(entries: Sequence[tuple[str, str, str]], width: int, *, colours: bool) -> list[Line]:
    """Names with their colours, or without colours their letters: (name, style, letter)."""
    words = [
        [TextRun("■ " if colours else f"{letter} ", style), TextRun(name, "label")] for name, style, letter in entries
    ]
    return flowing(words, width)


def class_words(classes: Table, row: int) -> str:
    """Name of a class of copies or fills: `host to device pinned`, `fill device`."""
    words = {key: str(classes.columns[key].values[row]) for key in ("operation", "direction", "memory")}
    return f"{words['direction'].replace('_', ' ') or words['operation']} {words['memory']}".strip()


class _Layout(NamedTuple):
    """The cells of the names of classes, of those of their times, and of the bars; the time of the longest bar."""

    title: int
    word: int
    room: int
    largest: float


def time_lines(classes: Table, width: int, height: int) -> list[Line]:
    """Times of each class of copies, measured and projected three ways, all on one scale.

    On few lines the two rougher ways are left out, then classes.
    """
    rows = [row for row in range(len(classes)) if classes.columns["operation"].values[row] != "all"]
    ways = WAYS if len(rows) * len(WAYS) <= height else WAYS[:2]
    shown = rows[: max(1, height // len(ways))]
    gap = len(shown) * (len(ways) + 1) - 1 <= height
    names = [class_words(classes, row) for row in shown]
    times = [[float(classes.columns[key].values[row]) for _, key, _ in ways] for row in shown]
    layout = _layout(names, [time for some in times for time in some], width)
    lines: list[Line] = []
    for name, some in zip(names, times, strict=True):
        lines += [*_class_lines(name, some, layout), *([[]] * gap)]
    return lines[:height]


def _layout(names: Sequence[str], times: Sequence[float], width: int) -> _Layout:
    title = min(max(map(len, names)), width // 3)
    room = width - title - 2 - max(len(duration(time)) for time in times)
    word = _WORD + 1 if room > 3 * _WORD else 0
    return _Layout(title, word, max(0, room - word), max((time for time in times if math.isfinite(time)), default=0.0))


def _class_lines(heading: str, times: Sequence[float], layout: _Layout) -> Iterator[Line]:
    """The times of one class, with its name before the first one."""
    for at, ((name, _, style), time) in enumerate(zip(WAYS, times, strict=False)):
        title = TextRun(f"{padded('' if at else heading, layout.title)} ", "title")
        bar = TextRun(length(time, layout.largest, layout.room), style)
        yield [title, TextRun(f"{name:<{_WORD}} "[: layout.word], "label"), bar, TextRun(f" {duration(time)}", "label")]


def size_classes(sizes: Table) -> tuple[SizeClass, ...]:
    """`size_distribution` by direction and memory, first all copies."""
    found: dict[tuple[str, str], list[tuple[str, float, float, float, float]]] = {}
    names = ("direction", "memory", "message_size", "count", "count_fraction", "time", "time_fraction")
    for direction, memory, *rest in zip(*(sizes.columns[name].values.tolist() for name in names), strict=True):
        found.setdefault((direction, memory), []).append(tuple(rest))
    return tuple(
        SizeClass(
            direction.replace("_", " ") or "all copies",
            memory,
            sum(row[1] for row in rows),
            sum(row[3] for row in rows),
            {name: (count, time) for name, _, count, _, time in rows},
        )
        for (direction, memory), rows in found.items()
    )


def size_lines(classes: Sequence[SizeClass], width: int, height: int, *, colours: bool) -> list[Line]:
    """Two bars for each class of copies: the decades of their sizes by number and by time, with a legend.

    Without colours letters mark the decades. Of many classes the last ones are left out.
    """
    if not classes:
        return [[TextRun(shorten(NO_COPIES, width), "label")]][:height]
    styles = {name: (series_style(at), chr(ord("A") + at)) for at, name in enumerate(classes[0].shares)}
    below = legend([(name, *style) for name, style in styles.items()], width, colours=colours)
    below = below[: max(0, (height - 2) // 3)]
    listed = classes[1:] if len(classes) == 2 else classes
    gap = len(listed) * 3 <= height - len(below)
    shown = listed[: max(1, (height - len(below)) // (2 + gap))]
    title = min(max(len(text) for item in shown for text in (item.name, item.memory)), width // 3)
    side = max(len(text) for item in shown for text in item.texts) + 1
    side = side if width >= title + side + 24 else 0
    lines: list[Line] = []
    for item in shown:
        for which, (name, text) in enumerate(zip((item.name, item.memory), item.texts, strict=True)):
            parts = {decade: shares[which] for decade, shares in item.shares.items()}
            bar = _stacked(parts, styles, width - title - 1 - side, colours=colours)
            lines.append([TextRun(f"{padded(name, title)} ", "title"), *bar, TextRun(text.rjust(side)[:side], "label")])
        lines += [[]] * gap
    return [*lines, *below][:height]


def _stacked(parts: Mapping[str, float], styles: Mapping[str, tuple[str, str]], width: int, *, colours: bool) -> Line:
    """Shares as a bar of exactly `width` cells."""
    if colours:
        return bar_runs(
            StackedBar(tuple(BarSegment(name, part, styles[name][0]) for name, part in parts.items())), width
        )
    edge, letters = 0.0, ""
    for name, part in parts.items():
        edge += part
        letters += styles[name][1] * (round(edge * width) - len(letters))
    return [TextRun(letters.ljust(width)[: max(0, width)], "label")]


def kernel_lines(kernels: Table, width: int, height: int) -> list[Line]:
    """The kernels that take the most time: name, a bar, time and share; as many as there is room for."""
    keys = ("kernel", "time", "time_fraction", "launch_count")
    rows = list(zip(*(kernels.columns[key].values.tolist() for key in keys), strict=True))
    shown = rows if len(rows) <= height else rows[: max(1, height - 1)]
    texts = [f" {duration(time):>9}" for _, time, *_ in shown]
    if width >= 36:
        texts = [f"{text} {percent(share):>6}" for text, (_, _, share, _) in zip(texts, shown, strict=True)]
    if width >= 60:
        texts = [f"{text} {count:>7.0f}x" for text, (*_, count) in zip(texts, shown, strict=True)]
    title = min(max(len(short_kernel(name)) for name, *_ in shown), 2 * width // 5)
    room = max(0, width - title - 1 - max(map(len, texts)))
    lines = []
    for (name, time, *_), text in zip(shown, texts, strict=True):
        bar = TextRun(length(time, rows[0][1], room).ljust(room), "series-1")
        lines.append([TextRun(f"{padded(short_kernel(name), title)} ", "title"), bar, TextRun(text, "label")])
    rest = [[TextRun(f"and {len(rows) - len(shown)} more", "label")]] if len(shown) < len(rows) else []
    return [*lines, *rest][:height]


class TimesOfCopies(PictureOf[Table], can_focus=True):
    """Shows the times of each class of copies, measured and projected."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the bars."""
        return time_lines(self._shown, width, height) if self._shown is not None else []


class SizesOfCopies(PictureOf[Table], can_focus=True):
    """Shows which sizes the copies have, by number and by time."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the bars; without colours letters mark the decades."""
        classes = size_classes(self._shown) if self._shown is not None else ()
        return size_lines(classes, width, height, colours=not self.app.no_color)


class KernelsByTime(PictureOf[Table], can_focus=True):
    """Shows the kernels that take the most time."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the kernels as bars."""
        if self._shown is None:
            return [[TextRun(shorten(NO_KERNELS, width), "label")]][:height]
        return kernel_lines(self._shown, width, height)
