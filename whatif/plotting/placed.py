"""Places of plots on a screen of cells, and what is needed to draw them in pixels there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from whatif.plotting.cells import TextRun
from whatif.plotting.description import Description

_MOST: Final = 3_000_000
"""Most pixels of a picture: on larger screens a pixel is several."""


class PlacedPlot(NamedTuple):
    """A plot on the screen: the lines above its data, and their place (column, row) and size in cells."""

    description: Description
    header: list[list[TextRun]]
    left: int
    top: int
    columns: int
    rows: int


class CellSize(NamedTuple):
    """Width and height of a cell of the terminal in pixels."""

    width: int
    height: int


@dataclass(frozen=True)
class PixelRequest:
    """Plots to draw over a part of the screen: its size and that of a cell, and the colour of each name."""

    plots: tuple[PlacedPlot, ...]
    columns: int
    rows: int
    cell: CellSize
    colours: Mapping[str, str]

    @property
    def shrunk(self) -> float:
        """Pixels of the picture for one of the screen along each axis, at most 1."""
        return min(1.0, math.sqrt(_MOST / (self.columns * self.cell.width * self.rows * self.cell.height)))
