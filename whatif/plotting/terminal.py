"""Plot descriptions as lines of styled text, or as text for a terminal."""

from __future__ import annotations

import shutil
import sys
from typing import TypedDict, Unpack

from whatif.plotting.boxes import Box, box_runs
from whatif.plotting.cells import TextRun
from whatif.plotting.crosshair import move_crosshair
from whatif.plotting.curves import curve_plot
from whatif.plotting.description import HEAT_STYLES, SERIES_STYLES, Description, HeatMap
from whatif.plotting.frame import PlotFrame
from whatif.plotting.heat import heat_plot
from whatif.plotting.lane_cells import lane_runs
from whatif.plotting.lanes import LaneChart
from whatif.plotting.marks import PLAIN_GLYPHS
from whatif.plotting.placed import PlacedPlot
from whatif.plotting.raster import GLYPHS, MarkerName
from whatif.plotting.tiles import TileMap, tile_text
from whatif.visible_text import visible

# The normal ANSI colours are readable on black and on white; the bright ones are not.
_PALETTE = (36, 33, 32, 35, 31, 34)
# Viridis, approximated by the 256 terminal colours.
_HEAT = (53, 54, 60, 24, 31, 30, 36, 35, 71, 113, 149, 220)
_CODES = (
    {style: str(code) for style, code in zip(SERIES_STYLES, _PALETTE, strict=True)}
    | {style: f"38;5;{code}" for style, code in zip(HEAT_STYLES, _HEAT, strict=True)}
    | {"title": "1", "marker": "1", "axis": "2", "baseline": "2", "over-dark": "97", "over-light": "30"}
)
_FILLS = {style: f"48;5;{code}" for style, code in zip(HEAT_STYLES, _HEAT, strict=True)}
_AXIS_AND_LEGEND = 4
"""Lines below lanes."""
_PLAIN = str.maketrans({"…": "~", "–": "-", "↓": "v", **PLAIN_GLYPHS})


class DrawOptions(TypedDict, total=False):
    """Options of a drawing: the marker of curves, colours, and the position of a crosshair.

    Without colours, letters link the curves to the legend, and a heat map consists of characters. `cross` is the
    position (x, y) of a crosshair, with y used only on a heat map; the legend then shows the values there. `reserve`
    keeps lines for them, so that the plot does not move when a crosshair comes or goes.
    """

    marker: MarkerName
    colours: bool
    cross: tuple[float, float] | None
    reserve: bool


def render_runs(
    description: Description, width: int, height: int, **options: Unpack[DrawOptions]
) -> list[list[TextRun]]:
    """Plot as `height` lines of runs, each exactly `width` cells wide."""
    lines = _page(description, width, height, options).cells.runs()
    if options.get("marker") != "ascii":
        return lines
    return [[run._replace(text=run.text.translate(_PLAIN)) for run in line] for line in lines]


def place_plot(
    description: Description, width: int, height: int, at: tuple[int, int] = (0, 0), **options: Unpack[DrawOptions]
) -> PlacedPlot | None:
    """Plot that `render_runs` draws with its upper left cell at (column, row); None without room for its axes."""
    page = _page(description, width, height, options)
    area = page.area
    if page.empty or not area.framed:
        return None
    header = [[TextRun(" " * at[0], ""), *line] for line in page.cells.runs()[: area.top]]
    return PlacedPlot(description, header, at[0] + area.left, at[1] + area.top, area.columns, area.rows)


def point_at(
    description: Description, width: int, height: int, place: tuple[int, int], **options: Unpack[DrawOptions]
) -> tuple[float, float] | None:
    """Values of x and y at a (column, row) of the plot drawn by `render_runs`; None outside the data."""
    column, row = place
    return _page(description, width, height, options).area.value(row, column)


def _page(description: Description, width: int, height: int, options: DrawOptions) -> PlotFrame:
    marker, colours, cross = options.get("marker", "braille"), options.get("colours", True), options.get("cross")
    reserve = options.get("reserve", False)
    cross = None if cross is None else move_crosshair(description, cross)
    if isinstance(description, HeatMap):
        coloured = colours and marker != "ascii"
        return heat_plot(description, width, height, GLYPHS[marker], colours=coloured, cross=cross, reserve=reserve)
    return curve_plot(description, width, height, GLYPHS[marker], colours=colours, cross=cross, reserve=reserve)


def render(
    description: Description, width: int, height: int, *, marker: MarkerName = "braille", colour: bool = True
) -> str:
    """Plot as a text of `height` lines of at most `width` cells, with or without ANSI colours."""
    lines = render_runs(description, width, height, marker=marker, colours=colour)
    return "\n".join(
        "".join(_ansi(run) if colour else visible(run.text, "") for run in line).rstrip() for line in lines
    )


def _ansi(run: TextRun) -> str:
    codes = [codes[name] for codes, name in ((_CODES, run.style), (_FILLS, run.fill)) if name in codes]
    text = visible(run.text, "")
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text


def terminal_picture(description: Description | Box | TileMap | LaneChart) -> str:
    """Plot as text, in the size of the terminal; boxes and lanes as high and maps as large as they are."""
    size = shutil.get_terminal_size((100, 30))
    if isinstance(description, TileMap):
        return tile_text(description)
    if isinstance(description, Box):
        lines = box_runs(description, max(size.columns, 40), sys.maxsize)
        return "\n".join("".join(map(_ansi, line)) for line in lines)
    if isinstance(description, LaneChart):
        return _lanes_text(description, max(size.columns, 40))
    return render(description, max(size.columns, 40), min(max(size.lines - 4, 12), 40))


def _lanes_text(chart: LaneChart, width: int) -> str:
    """Lanes as text, a line for each; letters in place of colours, which fill cells."""
    height = len(chart.lanes.node) + _AXIS_AND_LEGEND
    lines = lane_runs(chart.lanes, chart.lanes.first_rank, None, width, height, kinds=chart.kinds, colours=False)
    return "\n".join([visible(chart.title, ""), *("".join(map(_ansi, line)).rstrip() for line in lines)])
