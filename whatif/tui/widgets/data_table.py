"""Rows and columns drawn line by line: as quick with a million rows as with ten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whatif.plotting.description import shorten, text_cells
from whatif.table import Column, Table
from whatif.tui.labels import brief
from whatif.units import ONE, format_quantity

_PARTS = ("head", "cell", "text", "cursor", "marked", "faint")
_GAP = 2
_WIDEST = 44


@dataclass(frozen=True, slots=True)
class Cell:
    """One text of a row, and the part of the table whose colour it has."""

    text: str
    part: str = "cell"


@dataclass(frozen=True, slots=True)
class TableRows:
    """What a table shows: titles, rows of cells, and which columns are texts, set to the left."""

    titles: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    texts: frozenset[int] = frozenset()


class TableView(ScrollView, can_focus=True):
    """Shows a `Table` of numbers, or rows that somebody has put in words; has a cursor on a row."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{part}" for part in _PARTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="table.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="table.down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="table.page_up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="table.page_down"),
        Binding("home,g", "move(-1000000000)", "First", show=False, id="table.first"),
        Binding("end,G", "move(1000000000)", "Last", show=False, id="table.last"),
        Binding("left,h", "slide(-8)", "Left", show=False, id="table.left"),
        Binding("right,l", "slide(8)", "Right", show=False, id="table.right"),
        Binding("enter", "choose", "choose", show=False, id="table.choose"),
    ]
    DEFAULT_CSS = """
    TableView { height: 1fr; width: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    TableView > .table--head { color: $text-primary; text-style: bold; }
    TableView > .table--cell { color: $foreground; }
    TableView > .table--text { color: $foreground; }
    TableView > .table--faint { color: $text-muted; }
    TableView > .table--marked { color: $text-success; text-style: bold; }
    TableView > .table--cursor { background: $primary 10%; }
    TableView:focus > .table--cursor { background: $primary 20%; }
    """
    ALLOW_SELECT = False

    class _AtRow(Message):
        """Something about a row."""

        def __init__(self, table: TableView, row: int) -> None:
            super().__init__()
            self.table = table
            self.row = row

        @property
        def control(self) -> TableView:
            """The table."""
            return self.table

    class Chosen(_AtRow):
        """The person wants the row under the cursor."""

    class Pointed(_AtRow):
        """The cursor came to another row."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._rows: TableRows | _Numbers = TableRows((), ())
        self._widths: tuple[int, ...] = ()
        self.cursor = 0

    def show(self, content: Table | TableRows) -> None:
        """Show other rows; the cursor stays where it is, as far as there are rows."""
        self._rows = _Numbers(content) if isinstance(content, Table) else content
        self._widths = _widths(self._rows)
        self.virtual_size = Size(sum(self._widths) + _GAP * len(self._widths), len(self._rows.cells) + 1)
        self.cursor = min(self.cursor, max(0, len(self._rows.cells) - 1))
        self.refresh()

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return len(self._rows.cells)

    def action_move(self, steps: int) -> None:
        """Move the cursor by rows."""
        before, self.cursor = self.cursor, min(max(self.cursor + steps, 0), max(0, self.row_count - 1))
        top, height = self.scroll_offset.y, max(1, self.scrollable_content_region.height - 1)
        wanted = min(max(top, self.cursor - height + 1), self.cursor)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)
        self.refresh()
        if self.cursor != before:
            self.post_message(self.Pointed(self, self.cursor))

    def action_page(self, pages: int) -> None:
        """Move the cursor by screens."""
        self.action_move(pages * max(1, self.size.height - 2))

    def action_slide(self, cells: int) -> None:
        """Move sideways."""
        self.scroll_relative(x=cells, animate=False, immediate=True)

    def action_choose(self) -> None:
        """Choose the row under the cursor."""
        if self.row_count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Point at what is clicked; a second click chooses it."""
        row = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and row < self.row_count:
            again = row == self.cursor and event.chain > 1
            self.action_move(row - self.cursor)
            if again:
                self.action_choose()

    def render_line(self, y: int) -> Strip:
        """Draw one line in sight; the titles stay on top."""
        width = self.scrollable_content_region.width
        row = y - 1 + self.scroll_offset.y
        if y and row >= self.row_count:
            return Strip.blank(width, self._part("cell"))
        cells = self._rows.cells[row] if y else tuple(Cell(title, "head") for title in self._rows.titles)
        strip = Strip(self._segments(cells)).crop(self.scroll_offset.x, self.scroll_offset.x + width)
        strip = strip.adjust_cell_length(width, self._part("cell"))
        if y and row == self.cursor:
            behind = Style(bgcolor=self._part("cursor").bgcolor)
            return Strip([Segment(text, (style or Style()) + behind) for text, style, _ in strip], width)
        return strip

    def _segments(self, cells: Sequence[Cell]) -> list[Segment]:
        return [
            Segment(_padded(cell.text, width, left=index in self._rows.texts), self._part(cell.part))
            for index, (cell, width) in enumerate(zip(cells, self._widths, strict=True))
        ]

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"table--{name}")


class _Numbers:
    """The rows of a `Table`, put in words only when they come in sight."""

    def __init__(self, table: Table) -> None:
        self._columns = list(table.columns.values())
        self.titles = tuple(table.columns)
        self.texts = frozenset(i for i, column in enumerate(self._columns) if column.dimension is None)
        self.cells = self

    def __len__(self) -> int:
        return len(self._columns[0].values) if self._columns else 0

    def __getitem__(self, row: int) -> tuple[Cell, ...]:
        return tuple(Cell(_words(column, row)) for column in self._columns)


def _words(column: Column, row: int) -> str:
    value = column.values[row]
    if column.values.dtype == object:
        return brief(str(value))
    return format_quantity(float(value), column.dimension or ONE, 5) if value == value else "–"  # noqa: PLR0124


def _widths(rows: TableRows | _Numbers) -> tuple[int, ...]:
    """The cells of each column, by its title and the rows first in sight."""
    seen = [rows.cells[row] for row in range(min(len(rows.cells), 200))]
    longest = ([len(text_cells(cells[index].text)) for cells in seen] for index in range(len(rows.titles)))
    titles = (len(text_cells(title)) for title in rows.titles)
    return tuple(min(max([title, *lengths]), _WIDEST) for title, lengths in zip(titles, longest, strict=True))


def _padded(text: str, width: int, *, left: bool) -> str:
    short = shorten(text, width)
    space = " " * (width - len(text_cells(short)))
    return (short + space if left else space + short) + " " * _GAP
