"""Texts that are drawn again only when they differ: an edit changes little of the screen."""

from __future__ import annotations

from textual.content import Content
from textual.visual import VisualType
from textual.widget import Widget
from textual.widgets import Static


class KeptStatic(Static):
    """Text of a fixed size that is drawn again only when it differs."""

    def update(self, content: VisualType = "", *, layout: bool = False) -> None:
        """Show another text."""
        if not _same(content, self.content):
            super().update(content, layout=layout)


def _same(content: VisualType, before: VisualType) -> bool:
    """Whether two texts are the same, with their styles."""
    if isinstance(content, Content) and isinstance(before, Content):
        return content.is_same(before)
    return isinstance(content, str) and isinstance(before, str) and content == before


def set_border_titles(widget: Widget, title: Content, subtitle: Content) -> None:
    """Set the texts in the upper and the lower border of a widget, which is drawn again only if they differ."""
    if widget.border_title != title.markup:
        widget.border_title = title
    if widget.border_subtitle != subtitle.markup:
        widget.border_subtitle = subtitle
