"""Rows of styled text with a cursor on one of them: the base of lists that are drawn line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from whatif.plotting.cells import TextRun
from whatif.plotting.description import shorten, text_cells
from whatif.tui.labels import grade_style

_COLOURS = {
    "text": "$foreground",
    "strong": "$foreground",
    "term": "$text-primary",
    "faint": "$text-muted",
    "guide": "$text-disabled",
    "good": "$text-success",
    "bad": "$text-error",
    **{grade: grade_style(grade) for grade in ("measured", "datasheet", "assumed", "stated")},
}
_FAR = 1_000_000_000
GAP = 2
"""The cells between two columns."""


class CursorList(ScrollView, can_focus=True):
    """Lists rows below lines of titles that stay; draws only those in sight."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"list--{part}" for part in (*_COLOURS, "cursor")}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("home,g", f"move({-_FAR})", "First", show=False, id="list.first"),
        Binding("end,G", f"move({_FAR})", "Last", show=False, id="list.last"),
    ]
    DEFAULT_CSS = """
    CursorList { height: 1fr; width: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    CursorList > .list--cursor { background: $primary 10%; }
    CursorList:focus > .list--cursor { background: $primary 20%; }
    CursorList > .list--strong { text-style: bold; }
    """ + "".join(f"CursorList > .list--{part} {{ color: {colour}; }}\n" for part, colour in _COLOURS.items())
    ALLOW_SELECT = False
    TITLES: ClassVar[int] = 0
    """How many lines of titles there are."""

    class Pointed(Message):
        """The cursor came to a row, or the row under it is another one."""

        def __init__(self, rows: CursorList) -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> CursorList:
            """The list."""
            return self.rows

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.cursor = 0
        self._row_count = 0

    def draw_title(self, line: int, width: int) -> Sequence[TextRun]:
        """Draw a line of titles."""
        return ()

    def draw_row(self, index: int, width: int) -> Sequence[TextRun]:
        """Draw a row; what is wider than `width` is cut off."""
        raise NotImplementedError

    def lay_out(self, row_count: int, cursor: int) -> None:
        """There are so many rows now, with the cursor on one of them."""
        self._row_count = row_count
        self.virtual_size = Size(0, row_count + self.TITLES)
        self.move_to(cursor)

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, or on the nearest one there is."""
        self.cursor = min(max(index, 0), max(0, self._row_count - 1))
        self._keep_in_sight()
        self.refresh()
        self.post_message(self.Pointed(self))

    def _keep_in_sight(self) -> None:
        top, height = self.scroll_offset.y, max(1, self.size.height - self.TITLES)
        wanted = min(max(top, self.cursor - height + 1), self.cursor)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._keep_in_sight()

    def action_move(self, steps: int) -> None:
        """Move the cursor by rows."""
        self.move_to(self.cursor + steps)

    def action_page(self, pages: int) -> None:
        """Move the cursor by screens."""
        self.move_to(self.cursor + pages * max(1, self.size.height - self.TITLES - 1))

    def on_click(self, event: events.Click) -> None:
        """Point at what is clicked."""
        index = event.y - self.TITLES + self.scroll_offset.y
        if event.y >= self.TITLES and index < self._row_count:
            self.move_to(index)
            self.clicked()

    def clicked(self) -> None:
        """Do what a click on the row under the cursor asks for."""

    def render_line(self, y: int) -> Strip:
        """Draw one line in sight; titles stay on top."""
        width, index = self.scrollable_content_region.width, y - self.TITLES + self.scroll_offset.y
        if y >= self.TITLES and index >= self._row_count:
            return Strip.blank(width, self._part("text"))
        runs = self.draw_row(index, width) if y >= self.TITLES else self.draw_title(y, width)
        strip = Strip([Segment(run.text, self._part(run.style)) for run in runs])
        strip = strip.adjust_cell_length(width, self._part("text"))
        if y < self.TITLES or index != self.cursor:
            return strip
        behind = Style(bgcolor=self._part("cursor").bgcolor)
        return Strip([Segment(text, (style or Style()) + behind) for text, style, _ in strip], width)

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"list--{name}" if name in _COLOURS or name == "cursor" else "list--text")


def padded(text: str, width: int) -> str:
    """A text cut and filled to some cells."""
    short = shorten(text, width)
    return short + " " * (width - len(text_cells(short)))


def column(text: str, width: int, *, right: bool = False) -> str:
    """A text in a column, with the gap before it; nothing where there is no room for the column."""
    if not width:
        return ""
    short = shorten(text, width)
    space = " " * (width - len(text_cells(short)))
    return " " * GAP + (space + short if right else short + space)


def tail(path: str, width: int) -> str:
    """The end of a path, which tells most, in so many cells."""
    cells = text_cells(path)
    if len(cells) <= width:
        return "".join(cells)
    return "…" + "".join(cells[len(cells) - width + 1 :]) if width > 1 else "…" * width
