"""Drawn lines without control characters: Textual passes those of a text on to the terminal."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from whatif.plain_text import undrawn
from whatif.visible_text import is_visible, visible


class _VisibleLines(LineFilter):
    """Writes control characters as `\\x1b`; the line keeps its width, so it may lose its end."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Segments with visible texts."""
        if all(segment.control or is_visible(segment.text) for segment in segments):
            return segments
        shown = [
            segment if segment.control else Segment(visible(segment.text, ""), segment.style) for segment in segments
        ]
        return Segment.adjust_line_length(shown, Segment.get_line_length(segments))


class _PlainLines(LineFilter):
    """Leaves out frames, bars and dots of pictures, which a screen reader would name one by one."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Segments with spaces for what only draws."""
        return [segment if segment.control else Segment(undrawn(segment.text), segment.style) for segment in segments]


VISIBLE_LINES: Final = _VisibleLines()
PLAIN_LINES: Final = _PlainLines()
"""The one filter of each kind, as lines are kept by it."""
