"""Maps of tiles and nested boxes on matplotlib axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.plotting.boxes import Box
from whatif.plotting.description import shorten
from whatif.plotting.picture_style import FONT_SIZE, TILES, ink, typographic
from whatif.plotting.tiles import TileMap, group_colours
from whatif.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE: Final = 1.45 * FONT_SIZE
"""Height of a line of text, in points."""
_FRAME: Final = 0.5
"""Space between two frames, in lines."""
_LINES: Final = 100
"""Width of the outermost box, in letters."""
_MAP: Final = (6.6, 4.6)
"""Most width and height of a map, in inches."""
Segment = tuple[tuple[float, float], tuple[float, float]]


def draw_tiles(axes: Axes, tiles: TileMap) -> None:
    """Draw tiles in the colours of their groups, with lines between groups and thin ones between their parts.

    Tiles have their numbers, else groups have them, where these fit.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap

    rows, columns = tiles.numbers.shape
    axes.pcolormesh(group_colours(tiles.groups), cmap=ListedColormap([ink(name) for name in TILES]), vmin=-0.5,
                    vmax=len(TILES) - 0.5, rasterized=tiles.numbers.size > 2000)  # fmt: skip
    stressed = np.ma.masked_where(~tiles.stressed, np.zeros_like(tiles.groups, dtype=float))
    axes.pcolor(stressed, hatch="///", edgecolor=ink("ink"), cmap=ListedColormap(["none"]), linewidth=0)  # fmt: skip
    axes.add_collection(LineCollection(_borders(tiles.parts + 1e6 * tiles.groups), colors=ink("muted"), linewidths=0.5,
                                       linestyles=(0, (2, 2))))  # fmt: skip
    axes.add_collection(LineCollection(_borders(tiles.groups), colors=ink("ink"), linewidths=1.2))
    axes.set(xlim=(0, columns), ylim=(rows, 0), aspect="equal", xticks=[], yticks=[])
    axes.set_xlabel("\n".join([f"{tiles.x} →", *_lines_below(tiles)]), loc="left")
    axes.set_ylabel(f"← {tiles.y}" if tiles.y else "", loc="top")
    axes.set_anchor("W")
    _write_numbers(axes, tiles, 72 * _tile_size(tiles))


def _borders(groups: NDArray[np.float64]) -> list[Segment]:
    """Lines between tiles that differ, and around all."""
    framed = np.pad(groups.astype(float), 1, constant_values=-1.0)
    across, down = np.nonzero(np.diff(framed, axis=0)), np.nonzero(np.diff(framed, axis=1))
    level = [((c - 1.0, float(r)), (float(c), float(r))) for r, c in zip(*across, strict=True)]
    upright = [((float(c), r - 1.0), (float(c), float(r))) for r, c in zip(*down, strict=True)]
    return [*level, *upright]


def _write_numbers(axes: Axes, tiles: TileMap, size: float) -> None:
    """Write the number of each tile `size` points wide, or that of each group, if they fit."""
    ground = {"facecolor": ink("ground"), "edgecolor": "none", "pad": 0.8}
    small = 0.78 * FONT_SIZE
    if len(str(tiles.numbers.max())) * 0.6 * small < 0.9 * size:
        for (row, column), number in np.ndenumerate(tiles.numbers):
            box = ground if tiles.stressed[row, column] else None
            axes.text(column + 0.5, row + 0.5, str(number), ha="center", va="center", size=small, bbox=box)
        return
    for group in np.unique(tiles.groups).tolist():
        places = np.argwhere(tiles.groups == group)
        widest = np.bincount(places[:, 0])
        rows = np.flatnonzero(widest == widest.max())
        columns = places[places[:, 0] == rows[0], 1]
        letters = min(small, 0.9 * size * len(rows))
        if len(str(group)) * 0.6 * letters < size * len(columns) and letters > 0.6 * small:
            box = ground if tiles.stressed[rows[0], columns[0]] else None
            axes.text(columns.mean() + 0.5, rows.mean() + 0.5, str(group), ha="center", va="center", size=letters,
                      bbox=box)  # fmt: skip


def _tile_size(tiles: TileMap) -> float:
    """Width of a tile in inches."""
    rows, columns = map(int, tiles.numbers.shape)
    return min(_MAP[0] / columns, _MAP[1] / rows)


def _lines_below(tiles: TileMap) -> list[str]:
    return textwrap.wrap(f"{tiles.words}; hatched: {tiles.stressed_words}", _LINES - 8)


def tiles_height(tiles: TileMap) -> float:
    """Height in inches of a map."""
    return len(tiles.numbers) * _tile_size(tiles) + 0.9 + LINE / 72 * len(_lines_below(tiles))


def box_lines(box: Box, letters: int = _LINES) -> float:
    """Height of a box of a width in letters, in lines."""
    inner: float = sum(box_lines(one, letters - 4) + _FRAME for one in box.inside)
    return 1.0 + len(_words(box, letters)) + _FRAME * (1 + bool(box.inside)) + inner


def boxes_height(box: Box) -> float:
    """Height in inches of nested boxes."""
    return (box_lines(box) + 1) * LINE / 72


def draw_boxes(axes: Axes, box: Box) -> None:
    """Draw boxes in boxes; a marked one has thick lines."""
    axes.set_axis_off()
    axes.set(xlim=(0, _LINES), ylim=(box_lines(box), 0))
    _draw_box(axes, box, 0.0, 0.0, _LINES)


def _draw_box(axes: Axes, box: Box, left: float, top: float, letters: int) -> None:
    from matplotlib.patches import Rectangle

    edge, line = (ink("series-2"), 2.4) if box.marked else (ink("faint"), 1.0)
    axes.add_patch(Rectangle((left, top), letters, box_lines(box, letters), facecolor="none", edgecolor=edge,
                             linewidth=line, clip_on=False))  # fmt: skip
    place: dict[str, Any] = {"x": left + 1.2, "va": "top", "clip_on": False}
    axes.text(y=top + _FRAME / 2, s=shorten(box.title, letters - 4), weight="bold", **place)
    row = top + _FRAME / 2 + 1.0
    for text, style in _words(box, letters):
        bold = "bold" if style == "title" else "normal"
        axes.text(y=row, s=typographic(text), color=ink("ink" if style == "title" else "muted"), weight=bold, **place)
        row += 1.0
    row += _FRAME
    for inner in box.inside:
        _draw_box(axes, inner, left + 2, row, letters - 4)
        row += box_lines(inner, letters - 4) + _FRAME


def _words(box: Box, letters: int) -> Sequence[tuple[str, str]]:
    """Lines of a box with their styles."""
    return [
        (line, words.style)
        for words in box.words
        for line in textwrap.wrap(visible(words.text), letters - 4, subsequent_indent="  ") or [""]
    ]
