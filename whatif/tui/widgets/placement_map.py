"""Which ranks share a node, as a map with a cell for each rank; below it what the busiest node sends, as a bar."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray
from rich.style import Style
from textual.message import Message

from whatif.plotting.cells import Cells, Line, TextRun, flowing
from whatif.plotting.description import BarSegment, StackedBar
from whatif.plotting.tiles import COLOURS
from whatif.studies.message_study import DISTANCE_LABELS
from whatif.studies.placement_layout import PlacementPicture
from whatif.tui.jobs.messages_job import Placed
from whatif.tui.widgets.breakdown import bar_legend, bar_runs, legend_runs
from whatif.tui.widgets.picture import PictureOf
from whatif.units import ONE
from whatif.vocabulary import DISTANCES

_SIGNS: Final = "·+ox#*"
_WIDEST: Final = 16
"""The most cells that a rank is wide."""
_NODE_STYLES: Final = tuple(f"node-{number}" for number in range(COLOURS))
_WORD_WIDTH: Final = 34


def room_for_ranks(width: int, height: int) -> tuple[int, int]:
    """Numbers of columns and rows of ranks that fit on a screen, above the words below them."""
    return max(1, width), max(1, height - _word_lines(width, height))


def _word_lines(width: int, height: int) -> int:
    """Words, a bar and its legend, or what of them leaves most of the screen to the map."""
    words = 2 if width >= 2 * _WORD_WIDTH else 4
    legend = -(-len(DISTANCES) // max(1, width // _WORD_WIDTH))
    return min(words + 1 + legend, 2 * height // 5)


def placement_runs(placed: Placed, width: int, height: int, *, letters: bool = False) -> list[Line]:
    """Draw the map and the words below it as at most `height` lines.

    In `letters`, for a screen without colours, neighbouring nodes differ by a letter, a capital one for the busiest.
    """
    if width <= 0 or height <= 0:
        return []
    shown = _cropped(placed, *room_for_ranks(width, height))
    rows, columns = shown.colours.shape
    wide = min(width // columns, _WIDEST)
    tall = min((height - _word_lines(width, height)) // rows, wide)
    cells = Cells(width, rows * tall)
    _draw_map(cells, shown, (wide, tall), letters=letters)
    words = _words(shown.picture, width, letters=letters, signs=wide > int(letters))
    return [*cells.runs(), *words[: _word_lines(width, height)]]


def _cropped(placed: Placed, columns: int, rows: int) -> Placed:
    """Part that fits, until another part has been computed for a screen that became smaller."""
    picture, window = placed.picture, np.s_[:rows, :columns]
    part = replace(picture.part, ranks=picture.part.ranks[window])
    maps = {name: getattr(picture, name)[window] for name in ("nodes", "sockets", "busiest")}
    return Placed(replace(picture, part=part, **maps), placed.colours[window])


def _draw_map(cells: Cells, placed: Placed, size: tuple[int, int], *, letters: bool) -> None:
    """Draw each rank in a number of columns and lines."""
    (wide, tall), (rows, columns) = size, placed.colours.shape
    text = np.full((rows * tall, columns * wide), " ", dtype="U1")
    written = _written(placed, size, letters=letters)
    for line, words in enumerate(written, (tall - len(written)) // 2):
        text[line::tall] = np.ascontiguousarray(words).view("U1").reshape(rows, -1)
    styles, fills = _styles(cells, placed, letters=letters)
    whole = np.ones((tall, wide), dtype=np.intp)
    cells.paint(0, 0, text, np.kron(styles, whole), np.kron(fills, whole))


def _written(placed: Placed, size: tuple[int, int], *, letters: bool) -> list[NDArray[np.str_]]:
    """The lines on each rank: the sign of its socket, behind or below it the number of the rank, if it fits."""
    picture, (wide, tall) = placed.picture, size
    ranks, digits = picture.part.ranks.astype(str), len(str(picture.part.ranks.max()))
    signs = np.array(list(_SIGNS))[picture.sockets % len(_SIGNS)]
    if letters:
        names = np.array([[chr(ord(first) + colour) for colour in range(COLOURS)] for first in "aA"])
        signs = np.char.add(names[picture.busiest.astype(np.intp), placed.colours], signs)
    if 2 + digits < wide:
        lines = [np.char.add(signs, ranks)]
    else:
        lines = [signs, ranks] if tall > 1 and digits < wide else [signs]
    return [np.char.center(line.astype(f"U{wide}"), wide) for line in lines]


def _styles(cells: Cells, placed: Placed, *, letters: bool) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The numbers of the styles of what is written on ranks, and of those behind it."""
    colours, busiest = placed.colours, placed.picture.busiest
    if letters:
        return np.where(busiest, cells.number("marker"), cells.number("label")), np.zeros_like(colours)
    fills = np.array([cells.number(style) for style in _NODE_STYLES])[colours]
    styles = np.where(busiest, cells.number("busy"), cells.number("sign"))
    return styles, np.where(busiest, cells.number("busiest"), fills)


def _words(picture: PlacementPicture, width: int, *, letters: bool, signs: bool) -> list[Line]:
    """Legend: the picture, the bright ranks, the sockets, and the destinations of the node's messages."""
    part, sockets = picture.part, int(picture.sockets.max()) + 1
    words = [TextRun(part.shown, "label")]
    if part.plane_name:
        words.append(TextRun(f"{part.plane_name}, plane {part.plane + 1} of {part.plane_count}", "label"))
    mark, where = ("capitals: " if letters else "■ ", "") if picture.busiest.any() else ("", " is elsewhere")
    busiest = f"{mark}busiest node {picture.busiest_node} of {picture.node_count}{where}"
    words.append(TextRun(busiest, "marker" if letters else "busiest"))
    if signs and sockets > 1:
        named = (f"{_SIGNS[number % len(_SIGNS)]} socket {number + 1}" for number in range(sockets))
        words.append(TextRun("  ".join(named), "label"))
    bar = StackedBar(
        tuple(BarSegment(DISTANCE_LABELS[distance], count) for distance, count in picture.sent.items()), ONE
    )
    legend = legend_runs(bar_legend(bar), width, len(DISTANCES))
    return [*flowing([(word,) for word in words], width), bar_runs(bar, width), *legend]


class PlacementMap(PictureOf[Placed]):
    """Shows the placement of the ranks of a halo phase."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"picture--{name}" for name in (*_NODE_STYLES, "busiest", "busy", "sign")}
    DEFAULT_CSS = """
    PlacementMap > .picture--node-0 { color: $primary 36%; }
    PlacementMap > .picture--node-1 { color: $success 22%; }
    PlacementMap > .picture--node-2 { color: $secondary 40%; }
    PlacementMap > .picture--node-3 { color: $accent 24%; }
    PlacementMap > .picture--node-4 { color: $foreground 20%; }
    PlacementMap > .picture--busiest { color: $text-warning; text-style: bold; }
    PlacementMap > .picture--busy { color: $background; }
    PlacementMap > .picture--sign { color: $text-muted; }
    """

    class Resized(Message):
        """There is room for more ranks, or for fewer."""

    def on_resize(self) -> None:
        """Notify the page."""
        self.post_message(self.Resized())

    def draw(self, width: int, height: int) -> list[Line]:
        """Draw the placement."""
        if self._shown is None:
            return []
        app = self.app
        # Sixteen colours are too loud to be muted, and some of them the same.
        few = app.no_color or app.current_theme.ansi or app.console.color_system == "standard"
        return placement_runs(self._shown, width, height, letters=few)

    def shade(self, name: str) -> Style:
        """Style of a name, of its own or of all pictures."""
        component = f"picture--{name}"
        own = component in PlacementMap.COMPONENT_CLASSES
        return self.get_component_rich_style(component) if own else super().shade(name)
