"""Boxes inside boxes, as data and drawn with lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from whatif.plotting.cells import Line, TextRun
from whatif.plotting.description import shorten, text_cells

_THIN: Final = ("┌", "─", "┐", "│", "└", "┘")
_THICK: Final = ("┏", "━", "┓", "┃", "┗", "┛")
_NARROWEST: Final = 24
"""Columns below which a box is a line, without a frame."""


@dataclass(frozen=True, slots=True)
class BoxText:
    """Words in a box with their style; without room, the ranks with the highest number are left out first."""

    text: str
    style: str = "label"
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    """A box: its title, words below it, and the boxes inside; a `marked` one has thick lines."""

    title: str
    words: tuple[BoxText, ...] = ()
    inside: tuple[Box, ...] = ()
    marked: bool = False


def box_runs(box: Box, width: int, height: int) -> list[Line]:
    """Lines of a box, with as many words as there is room for; without frames where they do not fit `height` lines."""
    if width <= 0 or height <= 0:
        return []
    highest = max((words.rank for words in _all_words(box)), default=0)
    shown = [_without(box, rank) for rank in range(highest, -1, -1)]
    drawn = (*(_framed(one, width) for one in shown), *(_listed(one, width, 0) for one in shown))
    lines: list[Line] = []
    for lines in map(list, drawn):
        if len(lines) <= height:
            break
    return lines[:height]


def _all_words(box: Box) -> Iterator[BoxText]:
    yield from box.words
    for inner in box.inside:
        yield from _all_words(inner)


def _without(box: Box, rank: int) -> Box:
    """The box without words of a higher rank."""
    words = tuple(words for words in box.words if words.rank <= rank)
    return replace(box, words=words, inside=tuple(_without(inner, rank) for inner in box.inside))


def _framed(box: Box, width: int) -> Iterator[Line]:
    if width < _NARROWEST:
        yield from _listed(box, width, 0)
        return
    left, dash, right, side, low_left, low_right = _THICK if box.marked else _THIN
    style, room = "series-2" if box.marked else "axis", width - 4
    title = shorten(f" {box.title} ", room)
    rest = dash * (width - 3 - len(text_cells(title)))
    yield [
        TextRun(left + dash, style),
        TextRun(title, "title" if box.marked else "label"),
        TextRun(rest + right, style),
    ]
    body: list[Line] = [[TextRun(line, words.style)] for words in box.words for line in _wrapped(words.text, room)]
    body += [line for inner in box.inside for line in _framed(inner, room)]
    for line in body:
        filled = " " * (room - sum(len(text_cells(run.text)) for run in line))
        yield [TextRun(f"{side} ", style), *line, TextRun(filled), TextRun(f" {side}", style)]
    yield [TextRun(low_left + dash * (width - 2) + low_right, style)]


def _listed(box: Box, width: int, depth: int) -> Iterator[Line]:
    """A box as lines that are indented, if there is no room for frames."""
    indent = " " * min(2 * depth, max(0, width - _NARROWEST // 2))
    sign = "▶ " if box.marked else "  "
    yield [TextRun(shorten(f"{indent}{sign}{box.title}", width), "title" if box.marked else "label")]
    for words in box.words:
        yield [TextRun(shorten(f"{indent}    {words.text}", width), words.style)]
    for inner in box.inside:
        yield from _listed(inner, width, depth + 1)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ") or [""]
