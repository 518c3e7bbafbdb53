"""Table that shows whole columns: the first ones stay, the others follow as far as there is room."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from rich.segment import Segment
from textual.content import Content

from whatif.plotting.description import SERIES_STYLES, shorten
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.text_columns import GAP

WORDS = "words"
"""The part of a cell that stretches to the end of its row."""
LOW, FLAT = 20, 8
"""The heights below which a page with such a table has no room for frames, and for nothing but the table."""
_MORE, _UNSEEN = "← → other columns", "more columns"


class ColumnsView(TableView):
    """Rows whose first columns stay visible; left and right bring the others, none of them cut.

    A column without a title goes with the one before it. Cells may have the colours of curves, of what is `better`
    or `worse`, and of the grades.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"table--{part}"
        for part in (*SERIES_STYLES, WORDS, "better", "worse", "measured", "datasheet", "assumed", "stated")
    }
    DEFAULT_CSS = """
    ColumnsView { height: auto; max-height: 50%; overflow-x: hidden; }
    ColumnsView > .table--words { color: $text-muted; }
    ColumnsView > .table--better { color: $text-success; }
    ColumnsView > .table--worse { color: $text-warning; }
    ColumnsView > .table--measured { color: $text-success; }
    ColumnsView > .table--datasheet { color: $text-primary; }
    ColumnsView > .table--assumed { color: $text-warning; }
    ColumnsView > .table--stated { color: $text-muted; }
    """ + "".join(
        f"ColumnsView > .table--{style} {{ color: ${style}; text-style: bold; }}\n" for style in SERIES_STYLES
    )

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._whole = TableRows((), ())
        self._kept = 0
        self._sizes: tuple[int, ...] = ()
        self._first = 0
        self._words = ""

    def fill(self, rows: TableRows, kept: int, words: str = "") -> None:
        """Show other rows, whose first `kept` columns stay visible, with words below them."""
        self._whole, self._kept, self._words = rows, kept, words
        self.show(_without_words(rows))
        self._sizes = tuple(width + GAP for width in self._widths)
        self._choose()

    def bring(self, column: int) -> None:
        """Bring a column into sight."""
        groups = self._groups()
        wanted = next((index for index, group in enumerate(groups) if column in group), 0)
        while wanted not in self._fitting(groups) and self._first != wanted:
            self._first += 1 if self._first < wanted else -1
        self._choose()

    def on_resize(self) -> None:
        """Show the columns that there is room for now."""
        self._choose()
        self.keep_in_sight()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Name the keys that bring other columns only while they do so."""
        # Handlers of `Focus` and `Blur` run before `has_focus` changes.
        super().watch_has_focus(has_focus)
        self._choose()

    def action_slide(self, cells: int) -> None:
        """Bring the next column, or the last one, into sight."""
        self._first = max(0, self._first + (1 if cells > 0 else -1))
        self._choose()

    def _choose(self) -> None:
        """Show the columns that there is room for."""
        groups = self._groups()
        self._first = min(self._first, self._latest(groups))
        fitting = self._fitting(groups)
        chosen = [*range(self._kept), *(index for at in fitting for index in groups[at])]
        self._tell((_MORE if self.has_focus else _UNSEEN) if len(fitting) < len(groups) else "")
        titles = tuple(self._whole.titles[index] for index in chosen)
        cells = tuple(tuple(row[index] for index in chosen) for row in self._whole.cells)
        rows = TableRows(titles, cells, frozenset(at for at, index in enumerate(chosen) if index in self._whole.texts))
        self.show(_without_words(rows))
        self._rows = rows

    def _tell(self, more: str) -> None:
        """Announce more columns below the rows, or above them without a frame."""
        self.border_subtitle = Content(" · ".join(filter(None, (self._words, more))))
        title = (self.border_title or "").removesuffix(f" · {_MORE}").removesuffix(f" · {_UNSEEN}")
        framed = bool(self.styles.border_bottom[0])
        self.border_title = f"{title} · {more}" if more and title and not framed else title

    def _groups(self) -> list[list[int]]:
        """The columns that come and go, each with those without a title after it."""
        groups: list[list[int]] = []
        for index, title in enumerate(self._whole.titles[self._kept :], self._kept):
            if title or not groups:
                groups.append([])
            groups[-1].append(index)
        return groups

    def _room(self) -> int:
        """Cells next to the columns that stay; the last column needs no gap behind it."""
        return self.scrollable_content_region.width + GAP - sum(self._sizes[: self._kept])

    def _fitting(self, groups: list[list[int]]) -> range:
        """Groups that fit, starting with the first visible one."""
        room, stop = self._room(), self._first
        for group in groups[self._first :]:
            room -= sum(self._sizes[index] for index in group)
            if room < 0:
                break
            stop += 1
        return range(self._first, stop)

    def _latest(self, groups: list[list[int]]) -> int:
        """The first visible group where the last one is too."""
        room, start = self._room(), len(groups)
        for group in reversed(groups):
            room -= sum(self._sizes[index] for index in group)
            if room < 0:
                break
            start -= 1
        return max(0, min(start, len(groups) - 1))

    def _segments(self, cells: Sequence[Cell]) -> list[Segment]:
        """The cells of a row; words stretch to its end."""
        start = next((index for index, cell in enumerate(cells) if cell.part == WORDS), None)
        segments = super()._segments(cells)
        if start is None:
            return segments
        room = max(0, self.scrollable_content_region.width - sum(self._sizes[:start]))
        return [*segments[:start], Segment(shorten(cells[start].text, room), self.part(WORDS))]


def _without_words(rows: TableRows) -> TableRows:
    """The rows with empty cells in the place of words, which would make their column as wide as they are."""
    cells = (tuple(Cell("") if cell.part == WORDS else cell for cell in row) for row in rows.cells)
    return replace(rows, cells=tuple(cells))


def speedup(time: float, other: float) -> Cell:
    """Speedup of a time over another one: larger is better, everywhere in the explorer."""
    ratio = other / time if time > 0 else math.nan
    if not math.isfinite(ratio):
        return Cell("–", "faint")
    part = "better" if ratio > 1.005 else "worse" if ratio < 0.995 else "faint"
    number = f"{ratio:#.3g}".rstrip(".") if 0.001 <= ratio < 1000 else f"{ratio:.2g}"
    return Cell(f"{number}x", part)
