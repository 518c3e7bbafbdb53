"""Table that is as high as its rows, and what pages with such a table have in common."""

from __future__ import annotations

import math

from whatif.tui.widgets.data_table import Cell, TableView

LOW, FLAT = 20, 8
"""The heights below which a page with such a table has no room for frames, and for nothing but the table."""


class ColumnsView(TableView):
    """Table that is as high as its rows, at most half of the page."""

    DEFAULT_CSS = "ColumnsView { height: auto; max-height: 50%; }"


def speedup(time: float, other: float) -> Cell:
    """Speedup of a time over another one: larger is better, everywhere in the explorer."""
    ratio = other / time if time > 0 else math.nan
    if not math.isfinite(ratio):
        return Cell("–", "faint")
    part = "better" if ratio > 1.005 else "worse" if ratio < 0.995 else "faint"
    number = f"{ratio:#.3g}".rstrip(".") if 0.001 <= ratio < 1000 else f"{ratio:.2g}"
    return Cell(f"{number}x", part)
