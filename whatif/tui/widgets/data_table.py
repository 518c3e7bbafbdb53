"""Tables with a cursor on a row; cells become texts when they become visible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message

from whatif.plotting.description import text_cells
from whatif.table import Column, Table
from whatif.tui.labels import brief
from whatif.tui.widgets.line_list import LineList, movement_keys
from whatif.tui.widgets.text_columns import GAP, padded
from whatif.units import ONE, format_quantity

_PARTS = ("head", "cell", "text", "cursor", "marked", "faint")
_WIDEST = 44


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
    """Shows a `Table` of numbers, or rows that somebody has put in words; has a cursor on a row."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"table--{part}" for part in _PARTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        *movement_keys("table"),
        Binding("left,h", "slide(-8)", "Left", show=False, id="table.left"),
        Binding("right,l", "slide(8)", "Right", show=False, id="table.right"),
        Binding("enter", "choose", "choose", show=False, id="table.choose"),
    ]
    DEFAULT_CSS = """
    TableView { overflow-x: auto; scrollbar-size-horizontal: 1; }
    TableView > .table--head { color: $text-primary; text-style: bold; }
    TableView > .table--cell { color: $foreground; }
    TableView > .table--text { color: $foreground; }
    TableView > .table--faint { color: $text-muted; }
    TableView > .table--marked { color: $text-success; text-style: bold; }
    TableView > .table--cursor { background: $primary 10%; }
    TableView:focus > .table--cursor { background: $primary 20%; }
    """
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

    def show(self, content: Table | TableRows) -> None:
        """Show other rows; the cursor stays where it is, as far as there are rows."""
        self._rows = _Numbers(content) if isinstance(content, Table) else content
        self._widths = _widths(self._rows)
        self.virtual_size = Size(sum(self._widths) + GAP * len(self._widths), len(self._rows.cells) + 1)
        self.cursor = min(self.cursor, max(0, self.row_count - 1))
        self.refresh()

    def pointed(self, before: int) -> None:
        """Report another row."""
        if self.cursor != before:
            super().pointed(before)

    def action_slide(self, cells: int) -> None:
        """Move sideways."""
        self.scroll_relative(x=cells, animate=False, immediate=True)

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
        return self._segments(self._rows.cells[index])

    def title_segments(self, line: int, width: int) -> Iterable[Segment]:
        """Segments of the titles."""
        return self._segments(tuple(Cell(title, "head") for title in self._rows.titles))

    def _segments(self, cells: Sequence[Cell]) -> list[Segment]:
        return [
            Segment(padded(cell.text, width, right=index not in self._rows.texts) + " " * GAP, self.part(cell.part))
            for index, (cell, width) in enumerate(zip(cells, self._widths, strict=True))
        ]


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
    return format_quantity(float(value), column.dimension or ONE, 5) if value == value else "–"  # noqa: PLR0124


def _widths(rows: TableRows | _Numbers) -> tuple[int, ...]:
    """Width of each column in cells, by its title and the first rows."""
    seen = [rows.cells[row] for row in range(min(len(rows.cells), 200))]
    longest = ([len(text_cells(cells[index].text)) for cells in seen] for index in range(len(rows.titles)))
    titles = (len(text_cells(title)) for title in rows.titles)
    return tuple(min(max([title, *lengths]), _WIDEST) for title, lengths in zip(titles, longest, strict=True))
