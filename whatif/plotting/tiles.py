"""Maps of tiles as data: each tile belongs to a group and a part of it, such as a rank to a node and a socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.visible_text import visible

COLOURS: Final = 5
"""Number of colours that distinguish neighbouring groups."""


@dataclass(frozen=True, slots=True, eq=False)
class TileMap:
    """Tiles [row, column] with their numbers; lines separate groups, thin ones their parts, `stressed` tiles are
    hatched."""

    title: str
    x: str
    y: str
    """Labels of columns and rows."""
    numbers: NDArray[Any]
    groups: NDArray[Any]
    parts: NDArray[Any]
    stressed: NDArray[np.bool_]
    words: str
    """Line below the map."""
    stressed_words: str
    """Name of the stressed tiles."""


def group_colours(groups: NDArray[Any]) -> NDArray[np.intp]:
    """Colour, counted from 0, of each tile [row, column] by its group.

    Groups side by side, and one above the other, differ as far as five colours go, given out in the order of the
    groups.
    """
    neighbours: dict[int, set[int]] = {group: set() for group in np.unique(groups).tolist()}
    for one, other in ((groups[:, :-1], groups[:, 1:]), (groups[:-1], groups[1:])):
        apart = one != other
        for first, second in np.unique(np.stack([one[apart], other[apart]]), axis=1).T.tolist():
            neighbours[first].add(second)
            neighbours[second].add(first)
    colours: dict[int, int] = {}
    for group, others in neighbours.items():
        taken = {colours[other] for other in others if other in colours}
        choices = [(group + step) % COLOURS for step in range(COLOURS)]
        colours[group] = next((colour for colour in choices if colour not in taken), choices[0])
    numbers, places = np.unique(groups, return_inverse=True)
    return np.array([colours[group] for group in numbers.tolist()], dtype=np.intp)[places].reshape(groups.shape)


def tile_text(tiles: TileMap) -> str:
    """Map as text: neighbouring groups are different letters, capital ones where they are stressed."""
    colours, stressed = group_colours(tiles.groups), tiles.stressed.astype(np.intp)
    letters = np.array([list(name[:COLOURS]) for name in ("abcde", "ABCDE")])[stressed, colours]
    lines = [tiles.title, *map("".join, letters.tolist()), tiles.words, f"capitals: {tiles.stressed_words}"]
    return "\n".join(visible(line, "") for line in lines)
