"""Drawn lines without control characters: Textual passes those of a text on to the terminal."""

from __future__ import annotations

from typing import Final

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

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


VISIBLE_LINES: Final = _VisibleLines()
"""The one filter, as lines are kept by it."""
