"""Text of labelled lines: where one is wrapped, its further lines begin next to the label."""

from __future__ import annotations

from typing import Final

from textual.content import Content
from textual.widgets import Static

LABEL_END: Final = "\x1f"
"""Ends the label of a line; texts of files have tabs, but not this character."""
_LEAST: Final = 16
"""Cells next to a label that a wrapped line needs."""


class LabelledText(Static):
    """Text that is wrapped anew when its width changes."""

    def __init__(self, text: Content) -> None:
        super().__init__(wrapped(text, 0), markup=False)
        self._text = text

    def on_resize(self) -> None:
        """Wrap for another width."""
        self.update(wrapped(self._text, self.size.width))


def wrapped(text: Content, width: int) -> Content:
    """The text, its labelled lines wrapped."""
    return Content("\n").join(part for line in text.split(allow_blank=True) for part in _parts(line, width))


def _parts(line: Content, width: int) -> list[Content]:
    label, *rest = line.split(LABEL_END)
    room = width - label.cell_length
    if not rest or room < _LEAST:
        return [Content("").join((label, *rest))]
    first, *others = rest[0].wrap(room)
    return [label + first, *(Content(" " * label.cell_length) + part for part in others)]
