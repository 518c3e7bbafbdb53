"""Domains of a machine, one in the other, with those marked that a message crosses."""

from __future__ import annotations

from whatif.plotting.boxes import Box, box_runs
from whatif.plotting.cells import Line
from whatif.tui.widgets.picture import PictureOf


class DomainMap(PictureOf[Box]):
    """Shows boxes in boxes."""

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the boxes."""
        return box_runs(self._shown, width, height) if self._shown is not None else []
