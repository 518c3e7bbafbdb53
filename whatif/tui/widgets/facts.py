"""Facts in a few lines: names with numbers, and a sentence."""

from __future__ import annotations

import textwrap

from textual.geometry import Size

from whatif.plotting.cells import TextRun, flowing
from whatif.tui.widgets.picture import Picture

Fact = tuple[str, str]
"""A name and a number in words."""


class Facts(Picture):
    """Shows facts side by side and a sentence below them, in as few lines as they fit in."""

    DEFAULT_CSS = """
    Facts { height: auto; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._facts: tuple[Fact, ...] = ()
        self._sentence = ""

    def show(self, facts: tuple[Fact, ...], sentence: str) -> None:
        """Show other facts."""
        self._facts, self._sentence = facts, sentence
        self.redraw()
        if len(self._lines(self.size.width)) != self.size.height:
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Request the necessary height."""
        return len(self._lines(width))

    def draw(self, width: int, height: int) -> list[list[TextRun]]:
        """Draw as many lines as fit."""
        return self._lines(width)[:height]

    def _lines(self, width: int) -> list[list[TextRun]]:
        words = [(TextRun(f"{name} ", "label"), TextRun(number, "title")) for name, number in self._facts]
        sentence = textwrap.wrap(self._sentence, max(1, width))
        return [*flowing(words, width), *([TextRun(line, "title")] for line in sentence)]
