"""The tree of leaves: tables that fold, and every value with its unit and what became of it."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whatif.engine.session import Session
from whatif.export.plot import shorten, text_cells
from whatif.schema.expressions import Expression
from whatif.schema.leaves import Leaf
from whatif.tui.changes import Nudge, Sweep
from whatif.tui.messages import ChangeAsked, LeafSelected, PromptAsked, Purpose
from whatif.tui.outline import Row, ancestors, idle_tables, matters, outline
from whatif.units import format_quantity

EDITED, SWEPT, COMPUTED = "●", "↔", "="
_PARTS = ("table", "guide", "name", "value", "unit", "idle", "edited", "swept", "computed", "cursor")
# Guides of two cells look better, but deep tables on a narrow screen need the room for names.
_ROOMY = 44


class Shown(NamedTuple):
    """A leaf in words: number, unit, mark and the style that says what became of it."""

    value: str
    unit: str
    mark: str
    style: str


class LeafTree(ScrollView, can_focus=True):
    """Lists tables and leaves; draws only the lines in sight."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"leaf-tree--{part}" for part in _PARTS}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "move(-1000000)", "First", show=False),
        Binding("end", "move(1000000)", "Last", show=False),
        Binding("enter", "enter", "edit", key_display="⏎", tooltip="Type another value for the selected leaf"),
        Binding("left,minus", "step(-1)", "nudge", key_display="←→", tooltip="Move the value by a step, or fold"),
        Binding("right,plus,equals_sign", "step(1)", "Nudge up, or unfold", show=False),
        Binding(
            "left_square_bracket,shift+left",
            "step(-1, True)",
            "coarse",
            key_display="[ ]",
            tooltip="Halve or double the value",
        ),
        Binding("right_square_bracket,shift+right", "step(1, True)", "Double", show=False),
        Binding("space", "toggle", "Fold or unfold", show=False),
        Binding("s", "sweep", "sweep", tooltip="Draw the time over the selected leaf"),
        Binding("S", "ask('RANGE')", "range", key_display="S", tooltip="Type the range to sweep the leaf over"),
        Binding("slash", "ask('FILTER')", "filter", key_display="/", tooltip="Show the leaves whose path has some words"),
    ]
    DEFAULT_CSS = """
    LeafTree { height: 1fr; width: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """
    ALLOW_SELECT = False

    def __init__(self, session: Session, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._session = session
        self._folded = set(idle_tables(session.program))
        self._words = ""
        self._rows: tuple[Row, ...] = ()
        self._cursor = 0

    @property
    def row(self) -> Row | None:
        """What the cursor is on."""
        return self._rows[self._cursor] if self._rows else None

    @property
    def leaf(self) -> Leaf | None:
        """The leaf that the cursor is on."""
        row = self.row
        return None if row is None or row.table else self._session.program.leaves.get(row.path)

    @property
    def words(self) -> str:
        """What the rows are filtered by."""
        return self._words

    def on_mount(self) -> None:
        """Begin at the swept leaf."""
        self._lay_out()
        swept = self._session.grid.leaves()
        if swept:
            self.select(swept[0])

    def show(self, session: Session) -> None:
        """Show another session; the cursor stays on its leaf."""
        same = session.program.leaves.keys() == self._session.program.leaves.keys()
        self._session = session
        if same:
            self.refresh()
        else:
            self._lay_out()

    def filter(self, words: str) -> None:
        """Show only leaves whose path has all the words."""
        self._words = words
        self._lay_out()

    def select(self, path: str) -> None:
        """Move the cursor to a leaf, unfolding what hides it."""
        self._folded.difference_update(ancestors(path))
        self._lay_out()
        at = next((i for i, row in enumerate(self._rows) if row.path == path), None)
        if at is not None:
            self._move_to(at)

    def _lay_out(self) -> None:
        """Make the rows anew, with the cursor on the same row or as near as can be."""
        before = self.row.path if self.row is not None else ""
        self._rows = outline(self._session.program.leaves, self._folded, self._words)
        self.virtual_size = Size(0, len(self._rows))
        around = {before, *ancestors(before)}
        near = [index for index, row in enumerate(self._rows) if row.path in around]
        found = near[-1] if near and self._rows[near[-1]].path == before else self._first_leaf() if self._words else (near or [0])[-1]
        self._move_to(found)
        self.refresh()

    def _first_leaf(self) -> int:
        return next((index for index, row in enumerate(self._rows) if not row.table), 0)

    def _move_to(self, index: int) -> None:
        self._cursor = min(max(index, 0), max(0, len(self._rows) - 1))
        self.scroll_to_region(Region(0, self._cursor, 1, 1), animate=False, force=True)
        self.refresh()
        row = self.row
        if row is not None and self.is_attached:
            self.post_message(LeafSelected(row.path))
