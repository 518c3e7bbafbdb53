"""Domains of a machine, one in the other, with those marked that a message crosses."""

from __future__ import annotations

from whatif.plotting.boxes import Box, box_runs
from whatif.plotting.cells import Line
from whatif.tui.widgets.picture import Picture


class DomainMap(Picture):
    """Shows boxes in boxes."""

    def __init__(self) -> None:
        super().__init__()
        self._box: Box | None = None

    def show(self, box: Box) -> None:
        """Show other domains."""
        self._box = box
        self.redraw()

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the boxes."""
        return box_runs(self._box, width, height) if self._box is not None else []
