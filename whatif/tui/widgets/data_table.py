"""Tables of whole columns with a cursor on a row; cells become texts when they become visible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from whatif.plotting.description import SERIES_STYLES, shorten, text_cells
from whatif.table import Column, Table
from whatif.tui.labels import brief
from whatif.tui.widgets.line_list import LineList, movement_keys
from whatif.tui.widgets.text_columns import GAP, padded

WORDS = "words"
"""The part of a cell that stretches to the end of its row."""
_PLAIN = ("head", "cell", "text", "cursor", "marked", "faint", WORDS)
_PARTS = (*_PLAIN, *SERIES_STYLES, "better", "worse", "measured", "datasheet", "assumed", "stated")
_WIDEST, _NARROWEST = 44, 8
_MORE, _UNSEEN = "← → other columns", "more columns"


@dataclass(frozen=True, slots=True)
class Cell:
    """One text of a row, and the part of the table whose colour it has."""

    text: str
    part: str = "cell"


@dataclass(frozen=True, slots=True)
class TableRows:
    """Content of a table: titles, rows of cells, and which columns are texts, set to the left."""

    titles: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    texts: frozenset[int] = frozenset()


class TableView(LineList):
    """Shows a `Table` of numbers, or rows that somebody has put in words; has a cursor on a row.

    The first columns stay visible; left and right bring the others, none of them cut. A column without a title goes
    with the one before it. Cells may be coloured as curves, as `better` or `worse`, and as grades.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{part}" for part in _PARTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        *movement_keys("table"),
        Binding("left,h", "slide(-1)", "Left", show=False, id="table.left"),
        Binding("right,l", "slide(1)", "Right", show=False, id="table.right"),
        Binding("enter", "choose", "choose", show=False, id="table.choose"),
    ]
    DEFAULT_CSS = """
    TableView > .table--head { color: $text-primary; text-style: bold; }
    TableView > .table--cell { color: $foreground; }
    TableView > .table--text { color: $foreground; }
    TableView > .table--faint { color: $text-muted; }
    TableView > .table--words { color: $text-muted; }
    TableView > .table--marked { color: $text-success; text-style: bold; }
    TableView > .table--better { color: $text-success; }
    TableView > .table--worse { color: $text-warning; }
    TableView > .table--measured { color: $text-success; }
    TableView > .table--datasheet { color: $text-primary; }
    TableView > .table--assumed { color: $text-warning; }
    TableView > .table--stated { color: $text-muted; }
    TableView > .table--cursor { background: $primary 10%; }
    TableView:focus > .table--cursor { background: $primary 20%; }
    """ + "".join(f"TableView > .table--{style} {{ color: ${style}; text-style: bold; }}\n" for style in SERIES_STYLES)
    STYLES, GROUND, TITLES = "table", "cell", 1

    @dataclass(eq=False)
    class Chosen(Message):
        """The user chose the row under the cursor."""

        table: TableView
        row: int

        @property
        def control(self) -> TableView:
            """The table."""
            return self.table

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._rows: TableRows | _Numbers = TableRows((), ())
        self._widths: tuple[int, ...] = ()
        self._kept = self._first = 0
        self.cut = False
        """Whether there are more columns than room."""
        self._columns: tuple[int, ...] = ()
        """The visible columns."""

    def show(self, content: Table | TableRows, kept: int = 1, words: str = "") -> None:
        """Show other rows, whose first `kept` columns stay visible, with words in the frame of the table.

        The cursor stays where it is, as far as there are rows. A frame around the table has its own texts by now.
        """
        self.border_subtitle = Content(words)
        self._rows = _Numbers(content) if isinstance(content, Table) else content
        self._kept = min(kept, len(self._rows.titles))
        self._widths = _widths(self._rows)
        self._choose()
        self.cursor = min(self.cursor, max(0, self.row_count - 1))

    def bring(self, column: int) -> None:
        """Bring a column into sight."""
        groups = self._groups()
        wanted = next((index for index, group in enumerate(groups) if column in group), 0)
        while wanted not in self._fitting(groups) and self._first != wanted:
            self._first += 1 if self._first < wanted else -1
        self._choose()

    def announce(self) -> None:
        """Announce more columns in the frame of the table or around it: below the rows, or else above them."""
        frame = next(
            (node for node in (self, self.parent) if isinstance(node, Widget) and node.has_class("panel")), self
        )
        cut = [table for table in (self, *frame.query(TableView)) if table.cut and table.display]
        more = _MORE if any(table.has_focus for table in cut) else _UNSEEN if cut else ""
        frame.border_subtitle = _announced(frame.border_subtitle, more)
        frame.border_title = _announced(frame.border_title, "" if frame.styles.border_bottom[0] else more)

    def on_resize(self) -> None:
        """Show the columns that there is room for now."""
        self._choose()
        self.keep_in_sight()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Name the keys that bring other columns only while they do so."""
        # Handlers of `Focus` and `Blur` run before `has_focus` changes.
        super().watch_has_focus(has_focus)
        self._choose()

    def on_show(self) -> None:
        """Announce more columns in the frame of what was in its place."""
        self.announce()

    def on_hide(self) -> None:
        """Remove the hint, which the frame around the table may show."""
        self.announce()

    def pointed(self, before: int) -> None:
        """Report another row."""
        if self.cursor != before:
            super().pointed(before)

    def action_slide(self, steps: int) -> None:
        """Bring the next column, or the last one, into sight."""
        self._first = max(0, self._first + steps)
        self._choose()

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.row_count:
            self.post_message(self.Chosen(self, self.cursor))

    def clicked(self, again: bool) -> None:
        """Choose the row on a second click."""
        if again:
            self.action_choose()

    def row_segments(self, index: int, width: int) -> Iterable[Segment]:
        """Segments of the cells of a row."""
        return self._segments(self._rows.cells[index], width)

    def title_segments(self, line: int, width: int) -> Iterable[Segment]:
        """Segments of the titles."""
        return self._segments(tuple(Cell(title, "head") for title in self._rows.titles), width)

    def _segments(self, cells: Sequence[Cell], width: int) -> Iterator[Segment]:
        """The visible cells of a row; words stretch to its end."""
        for index in self._columns:
            cell, size, right = cells[index], self._width_of(index), index not in self._rows.texts
            if cell.part == WORDS:
                yield Segment(shorten(cell.text, width), self.part(WORDS))
                return
            yield Segment(padded(cell.text, size, right=right) + " " * GAP, self.part(cell.part))
            width -= size + GAP

    def _choose(self) -> None:
        """Show the columns that there is room for."""
        groups = self._groups()
        self._first = min(self._first, self._latest(groups))
        fitting = self._fitting(groups)
        self.cut = len(fitting) < len(groups)
        self._columns = (*range(self._kept), *(index for at in fitting for index in groups[at]))
        self.virtual_size = Size(self._length(self._columns), len(self._rows.cells) + 1)
        self.announce()
        self.refresh()

    def _groups(self) -> list[list[int]]:
        """The columns that come and go, each with those without a title after it."""
        groups: list[list[int]] = []
        for index, title in enumerate(self._rows.titles[self._kept :], self._kept):
            if title or not groups:
                groups.append([])
            groups[-1].append(index)
        return groups

    def _width_of(self, index: int) -> int:
        """Width of a column in cells; the first column leaves room for the widest of the others."""
        if index or not self._kept:
            return self._widths[index]
        widest = max(map(self._length, self._groups()), default=0)
        return min(self._widths[0], max(_NARROWEST, self._room(range(1, self._kept)) - GAP - widest))

    def _length(self, columns: Iterable[int]) -> int:
        """Cells of columns, each with the gap behind it."""
        return sum(self._width_of(index) + GAP for index in columns)

    def _room(self, beside: Iterable[int]) -> int:
        """Cells next to some columns; the last column needs no gap behind it."""
        return self.scrollable_content_region.width + GAP - self._length(beside)

    def _fitting(self, groups: list[list[int]]) -> range:
        """Groups that fit, starting with the first visible one."""
        return range(self._first, self._first + self._count(groups[self._first :]))

    def _latest(self, groups: list[list[int]]) -> int:
        """The first visible group where the last one is too."""
        return max(0, min(len(groups) - self._count(groups[::-1]), len(groups) - 1))

    def _count(self, groups: list[list[int]]) -> int:
        """Number of groups that fit next to the columns that stay, from the first on."""
        room = self._room(range(self._kept))
        return sum(end <= room for end in accumulate(map(self._length, groups)))


class ColumnsView(TableView):
    """Table that is as high as its rows, at most half of the page."""

    DEFAULT_CSS = "ColumnsView { height: auto; max-height: 50%; }"


def _announced(text: str | None, more: str) -> str:
    """Text of a frame with another announcement of more columns, or without one."""
    for known in (_MORE, _UNSEEN):
        text = (text or "").removesuffix(known).removesuffix(" · ")
    return " · ".join(filter(None, (text, more)))


class _Numbers:
    """The rows of a `Table`, put in words only when they become visible."""

    def __init__(self, table: Table) -> None:
        self._columns = list(table.columns.values())
        self.titles = tuple(table.columns)
        self.texts = frozenset(i for i, column in enumerate(self._columns) if column.dimension is None)
        self.cells = self

    def __len__(self) -> int:
        return len(self._columns[0].values) if self._columns else 0

    def __getitem__(self, row: int) -> tuple[Cell, ...]:
        return tuple(Cell(_words(column, row)) for column in self._columns)


def table_rows(table: Table) -> TableRows:
    """All rows of a table in words."""
    numbers = _Numbers(table)
    return TableRows(numbers.titles, tuple(numbers[row] for row in range(len(numbers))), numbers.texts)


def _words(column: Column, row: int) -> str:
    value = column.values[row]
    if column.values.dtype == object:
        return brief(str(value))
    return column.text(float(value)) if value == value else "–"  # noqa: PLR0124


def _widths(rows: TableRows | _Numbers) -> tuple[int, ...]:
    """Width of each column in cells, by its title and the first rows."""
    seen = [rows.cells[row] for row in range(min(len(rows.cells), 200))]
    longest = ([_cells(cells[index]) for cells in seen] for index in range(len(rows.titles)))
    titles = (len(text_cells(title)) for title in rows.titles)
    return tuple(min(max([title, *lengths]), _WIDEST) for title, lengths in zip(titles, longest, strict=True))


def _cells(cell: Cell) -> int:
    """Cells that a text needs; words have the rest of their row instead."""
    return 0 if cell.part == WORDS else len(text_cells(cell.text))


def speedup(time: float, other: float) -> Cell:
    """Speedup of a time over another one: larger is better, everywhere in the explorer."""
    ratio = other / time if time > 0 else math.nan
    if not math.isfinite(ratio):
        return Cell("–", "faint")
    part = "better" if ratio > 1.005 else "worse" if ratio < 0.995 else "faint"
    number = f"{ratio:#.3g}".rstrip(".") if 0.001 <= ratio < 1000 else f"{ratio:.2g}"
    return Cell(f"{number}x", part)
