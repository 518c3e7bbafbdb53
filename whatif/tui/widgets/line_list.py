"""Lists drawn line by line: rows below titles, with a cursor on one row, as quick with a million rows as with ten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

_FAR: Final = 1_000_000_000


def movement_keys(name: str) -> tuple[Binding, ...]:
    """Keys that move the cursor of a list; `name` begins their ids."""
    keys = (
        ("up,k", "move(-1)", "Up"),
        ("down,j", "move(1)", "Down"),
        ("pageup,ctrl+u", "page(-1)", "Page up"),
        ("pagedown,ctrl+d", "page(1)", "Page down"),
        ("home,g", f"move({-_FAR})", "First"),
        ("end,G", f"move({_FAR})", "Last"),
    )
    return tuple(
        Binding(key, action, words, show=False, id=f"{name}.{words.lower().replace(' ', '_')}")
        for key, action, words in keys
    )


class LineList(ScrollView, can_focus=True):
    """Base of lists that draw only the visible lines; a subclass sets `virtual_size` and provides `row_segments`."""

    DEFAULT_CSS = """
    LineList { height: 1fr; width: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    """
    ALLOW_SELECT = False
    STYLES: ClassVar[str] = ""
    """Prefix of the component classes."""
    GROUND: ClassVar[str] = "text"
    """Component class of empty cells."""
    TITLES: ClassVar[int] = 0
    """Number of lines of titles, which stay on top."""
    AROUND: ClassVar[int] = 0
    """Lines that stay visible above and below the cursor."""

    @dataclass(eq=False)
    class Pointed(Message):
        """The cursor came to a row, or the row under it changed."""

        rows: LineList

        @property
        def control(self) -> LineList:
            """The list."""
            return self.rows

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.cursor = 0

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return max(0, self.virtual_size.height - self.TITLES)

    def row_segments(self, index: int, width: int) -> Iterable[Segment]:
        """Segments of a row; those beyond `width` are cut off."""
        raise NotImplementedError

    def title_segments(self, line: int, width: int) -> Iterable[Segment]:
        """Segments of a line of titles."""
        return ()

    def pointed(self, before: int) -> None:
        """Report the row under the cursor, which was on row `before`."""
        self.post_message(self.Pointed(self))

    def clicked(self, again: bool) -> None:
        """React to a click on the row under the cursor; `again` for a second click."""

    def move_to(self, index: int) -> None:
        """Put the cursor on a row, or on the nearest one."""
        before, self.cursor = self.cursor, min(max(index, 0), max(0, self.row_count - 1))
        self.keep_in_sight()
        self.refresh()
        self.pointed(before)

    def keep_in_sight(self) -> None:
        """Scroll to the cursor."""
        top, height = self.scroll_offset.y, max(1, self.scrollable_content_region.height - self.TITLES)
        around = min(self.AROUND, (height - 1) // 2)
        wanted = min(max(top, self.cursor + around - height + 1), self.cursor - around)
        wanted = min(max(wanted, 0), max(0, self.row_count - height))
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Keep the cursor visible."""
        self.keep_in_sight()

    def action_move(self, steps: int) -> None:
        """Move the cursor by rows."""
        self.move_to(self.cursor + steps)

    def action_page(self, pages: int) -> None:
        """Move the cursor by screens."""
        self.move_to(self.cursor + pages * max(1, self.size.height - self.TITLES - 1))

    def on_click(self, event: events.Click) -> None:
        """Point at the clicked row."""
        index = event.y - self.TITLES + self.scroll_offset.y
        if event.y >= self.TITLES and index < self.row_count:
            again = index == self.cursor and event.chain > 1
            self.move_to(index)
            self.clicked(again)

    def render_line(self, y: int) -> Strip:
        """Draw one visible line."""
        width, index = self.scrollable_content_region.width, y - self.TITLES + self.scroll_offset.y
        if y >= self.TITLES and index >= self.row_count:
            return Strip.blank(width, self.part(self.GROUND))
        segments = self.row_segments(index, width) if y >= self.TITLES else self.title_segments(y, width)
        left = self.scroll_offset.x
        strip = Strip(segments).crop(left, left + width).adjust_cell_length(width, self.part(self.GROUND))
        if y < self.TITLES or index != self.cursor:
            return strip
        return Strip(
            [Segment(text, self._pointed_style(style or Style())) for text, style, _ in strip], strip.cell_length
        )

    def _pointed_style(self, style: Style) -> Style:
        """Style in the row under the cursor; in the terminal's own colours that of its plain text, reversed.

        Those cannot be mixed: behind a blue row, or one in reverse, yellow and faint text could not be read.
        """
        if self.app.current_theme.ansi:
            return Style(reverse=True, bold=style.bold)
        return style + Style(bgcolor=self.part("cursor").bgcolor)

    def part(self, name: str) -> Style:
        """Style of a component class."""
        return self.get_component_rich_style(f"{self.STYLES}--{name}")
