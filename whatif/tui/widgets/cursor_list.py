"""Rows of styled text with a cursor on one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.geometry import Size

from whatif.plotting.cells import TextRun
from whatif.tui.labels import grade_style
from whatif.tui.widgets.line_list import LineList, movement_keys

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


class CursorList(LineList):
    """List of rows of styled text below lines of titles."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"list--{part}" for part in (*_COLOURS, "cursor")}
    BINDINGS: ClassVar[list[BindingType]] = [*movement_keys("list")]
    DEFAULT_CSS = """
    CursorList > .list--cursor { background: $primary 10%; }
    CursorList:focus > .list--cursor { background: $primary 20%; }
    CursorList > .list--strong { text-style: bold; }
    """ + "".join(f"CursorList > .list--{part} {{ color: {colour}; }}\n" for part, colour in _COLOURS.items())
    STYLES = "list"

    def draw_title(self, line: int, width: int) -> Sequence[TextRun]:
        """Draw a line of titles."""
        return ()

    def draw_row(self, index: int, width: int) -> Sequence[TextRun]:
        """Draw a row; what is wider than `width` is cut off."""
        raise NotImplementedError

    def lay_out(self, row_count: int, cursor: int) -> None:
        """Set the number of rows, and put the cursor on one of them."""
        self.virtual_size = Size(0, row_count + self.TITLES)
        self.move_to(cursor)

    def row_segments(self, index: int, width: int) -> Iterable[Segment]:
        """Segments of a row."""
        return self._segments(self.draw_row(index, width))

    def title_segments(self, line: int, width: int) -> Iterable[Segment]:
        """Segments of a line of titles."""
        return self._segments(self.draw_title(line, width))

    def _segments(self, runs: Sequence[TextRun]) -> Iterable[Segment]:
        return (Segment(run.text, self.part(run.style if run.style in _COLOURS else self.GROUND)) for run in runs)
