"""Texts cut and filled to the width of a column, in cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from whatif.plotting.description import shorten, text_cells

GAP: Final = 2
"""Cells between two columns."""


def widest(texts: Iterable[str]) -> int:
    """Width of the widest text, in cells."""
    return max((len(text_cells(text)) for text in texts), default=0)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text in `width` cells, at the left or at the right."""
    short = shorten(text, width)
    space = " " * (width - len(text_cells(short)))
    return space + short if right else short + space


def column(text: str, width: int, *, right: bool = False) -> str:
    """A text in a column, with the gap before it; empty if the column has no width."""
    return " " * GAP + padded(text, width, right=right) if width else ""


def tail(path: str, width: int) -> str:
    """End of a path, its most specific part, in `width` cells."""
    cells = text_cells(path)
    if len(cells) <= width:
        return "".join(cells)
    return "…" + "".join(cells[len(cells) - width + 1 :]) if width > 1 else "…" * width
