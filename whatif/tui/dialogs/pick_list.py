"""A list to pick from: a line that filters rows of names and descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from whatif.errors import did_you_mean
from whatif.plotting.description import text_cells
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.line_list import LineList
from whatif.tui.widgets.prompt import PromptInput
from whatif.tui.widgets.text_columns import GAP, padded

Row = tuple[str, str]
"""Name and description."""
# Lines of the window that are not rows: border, filter, and two lines of description.
_AROUND: Final = 5
_CURRENT: Final = "●"
_AS_TYPED: Final = "as typed"


def matching(rows: Sequence[Row], text: str) -> list[Row]:
    """Rows in which all words of a text occur, in the name or the description; best matches first."""
    words = text.lower().split()
    found = [row for row in rows if all(word in " ".join(row).lower() for word in words)]
    return sorted(found, key=lambda row: sum(_rank(row[0].lower(), word) for word in words))


def _rank(name: str, word: str) -> int:
    """Rank of a match of a word in a name: 0 for the whole name, 4 without a match."""
    if word not in name:
        return 4
    begins = any(part.startswith(word) for part in name.replace("_", "-").split("-"))
    return 0 if word == name else 1 if name.startswith(word) else 2 if begins else 3


class PickRows(LineList):
    """Rows of name and description; a click picks one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"pick--{part}" for part in ("name", "text", "current", "cursor")}
    DEFAULT_CSS = """
    PickRows { height: 1fr; }
    PickRows > .pick--name { color: $foreground; text-style: bold; }
    PickRows > .pick--text { color: $text-muted; }
    PickRows > .pick--current { color: $text-success; }
    PickRows > .pick--cursor { background: $primary 30%; }
    """
    STYLES = "pick"

    class Clicked(Message):
        """A row was clicked."""

    def __init__(self, rows: Sequence[Row], current: str) -> None:
        super().__init__()
        self.can_focus = False
        self._current = current
        self._longest = max((len(name) for name, _ in rows), default=0)
        self.rows: list[Row] = []

    @property
    def row(self) -> Row | None:
        """Row below the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def lay_out(self, rows: list[Row], name: str) -> None:
        """Show other rows, with the cursor on the one of a name, else on the first."""
        self.rows = rows
        self.virtual_size = Size(0, len(rows))
        self.move_to(next((index for index, row in enumerate(rows) if row[0] == name), 0))
        # How far can be scrolled is only known when the new size is laid out.
        self.call_after_refresh(self.keep_in_sight)

    def clicked(self, again: bool) -> None:
        """Report the click."""
        self.post_message(self.Clicked())

    def _room(self, text: str, width: int) -> int:
        """Cells of the name of a row."""
        return min(self._longest, max(width // 2, 8) if text else max(width - 2, 0))

    @property
    def row_words(self) -> str:
        """Description of the row below the cursor, after its name if there is no room for all of it; or nothing."""
        name, text = self.row or ("", "")
        cut = len(text_cells(name)) > self._room(text, self.scrollable_content_region.width)
        return f"{name}: {text}" if cut and text else text

    def row_segments(self, index: int, width: int) -> list[Segment]:
        """Segments of a row."""
        name, text = self.rows[index]
        mark = _CURRENT if name == self._current else " "
        room = self._room(text, width)
        return [
            Segment(f"{mark} ", self.part("current")),
            Segment(padded(name, room) + " " * GAP, self.part("name")),
            Segment(padded(text, max(0, width - room - GAP - 2)), self.part("text")),
        ]


class PickList(ModalScreen[str | None]):
    """Rows of name and description to pick from; the result is a name, or None after escape.

    Typing filters the rows. With `free`, a text that is not a row may be accepted as it is. `about` is shown for rows
    without a description, `problem` is what was wrong with the row picked before.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "choose", key_display="↑↓", priority=True, id="picking.up"),
        Binding("down", "move(1)", "Down", show=False, priority=True, id="picking.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, priority=True, id="picking.page_up"),
        Binding("pagedown", "page(1)", "Page down", show=False, priority=True, id="picking.page_down"),
        Binding("escape", "dismiss(None)", "leave", key_display="esc", id="picking.leave"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (8, "-few"), (16, "-tall")]  # noqa: RUF012 - declared without ClassVar by Textual

    def __init__(
        self,
        title: str,
        rows: Sequence[Row],
        current: str = "",
        *,
        free: bool = False,
        about: str = "",
        problem: str = "",
    ) -> None:
        super().__init__()
        self._heading, self._rows, self._current, self._free = title, tuple(rows), current, free
        self._about, self._problem = about, problem

    def compose(self) -> ComposeResult:
        """The line, the rows, and the whole description of one of them."""
        with Vertical(id="window") as window:
            window.border_title = Content(self._heading)
            yield PromptInput(placeholder="type to filter", compact=True)
            if self._problem:
                yield Static(self._problem, id="wrong", markup=False)
            yield PickRows(self._rows, self._current)
            yield Static(id="description", markup=False)
        yield KeyBar()

    @property
    def list(self) -> PickRows:
        """The visible rows."""
        return self.query_one(PickRows)

    def on_mount(self) -> None:
        """Begin at the current row."""
        self._show("")

    def on_resize(self) -> None:
        """The window is as high as its rows, as far as there is room above the line of keys."""
        self.query_one("#window").styles.height = min(len(self._rows) + self._free + _AROUND, self.size.height - 1)

    def _show(self, text: str) -> None:
        rows = matching(self._rows, text)
        if self._free and text and text not in (name for name, _ in rows):
            rows.append((text, _AS_TYPED))
        self.list.lay_out(rows, "" if text else self._current)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._show(event.value.strip())

    @on(PickRows.Pointed)
    def _describe(self) -> None:
        row, words = self.list.row, self.query_one(Input).value.strip()
        near = did_you_mean(words, [name for name, _ in self._rows])
        missing = f"no row with `{words}`{near}" if words else "nothing to pick from yet"
        self.query_one("#description", Static).update(missing if row is None else self.list.row_words or self._about)

    @on(Input.Submitted)
    @on(PickRows.Clicked)
    def _pick(self, event: Message) -> None:
        event.stop()
        if self.list.row is not None:
            self.dismiss(self.list.row[0])

    def action_move(self, steps: int) -> None:
        """Move the cursor by rows."""
        self.list.action_move(steps)

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.list.action_page(pages)
