"""Pictures of plots as SVG, PNG and PDF, through matplotlib (extra `report`).

With the same version of matplotlib, the same description gives the same SVG byte for byte.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from whatif.atomic import atomic_file
from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.limits import PICTURES
from whatif.plotting.axis_view import axes_of, points_of
from whatif.plotting.bars import BarChart
from whatif.plotting.boxes import Box
from whatif.plotting.description import Description, HeatMap, PlotDescription, PlotStack, StackedBar, shorten
from whatif.plotting.lanes import LaneChart
from whatif.plotting.picture_shapes import boxes_height, draw_boxes, draw_tiles, tiles_height
from whatif.plotting.picture_style import DARK, LIGHT, settings
from whatif.plotting.tiles import TileMap
from whatif.visible_text import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawable = Description | PlotStack | BarChart | StackedBar | TileMap | Box | LaneChart
"""Descriptions that can be drawn as pictures."""

_WIDTH: Final = 7.2
_HEIGHT: Final = 3.6
_LANE: Final = 0.19
"""Height of a lane."""
_RATIOS: Final = (2, 1)
"""Heights of two plots, one above the other."""
_TITLE_WIDTH: Final = 80
_OF_ITS_OWN: Final = re.compile(
    r'<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->| id="[A-Za-z0-9.]+_\d+"', re.DOTALL
)
"""Parts of an SVG file to remove from an element of a page, where they would apply to the whole page."""


def check_picture(path: Path) -> None:
    """Raise `UsageError` if the file type is unknown or matplotlib is missing; call it before computing."""
    if path.suffix.lower() not in PICTURES:
        raise UsageError(f"{path}: pictures must end in {', '.join(PICTURES)}; tables have --format")
    check_library()


def build_time() -> datetime | None:
    """Time of a reproducible build (SOURCE_DATE_EPOCH), which matplotlib reads, too; None if it is not stated.

    Raise `UsageError` for what matplotlib refuses: other texts than seconds since 1970, and times after the year 9999.
    """
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        return datetime.fromtimestamp(int(stated), UTC) if stated else None
    except (ValueError, OverflowError, OSError):
        message = f"SOURCE_DATE_EPOCH {shorten(stated or '', 40)}: expected seconds since 1970, up to the year 9999"
        raise UsageError(message) from None


def check_library() -> None:
    """Raise `UsageError` if matplotlib is missing, and as `build_time`."""
    build_time()
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(f"pictures need matplotlib (extra `report`): {install_command('report')}") from None


def write_picture(description: Drawable, path: Path) -> None:
    """Write a picture to a file `.svg`, `.png` or `.pdf`; raise `UsageError` if it cannot be written."""
    check_picture(path)
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        _save(description, file, path.suffix.lower().removeprefix("."))


def inline_svg(description: Drawable, name: str) -> str:
    """Picture as an element of an HTML page, coloured by variables of the page such as `--series-1`.

    `name` is the accessible label, and makes the identifiers of its parts unique on the page.
    """
    file = io.BytesIO()
    _save(description, file, "svg", salt=name)
    text = file.getvalue().decode()
    text = _OF_ITS_OWN.sub("", text[text.index("<svg ") :])
    colours = {colour: f"var(--{style})" for style, colour in LIGHT.items()}
    stated = f'(: |=")({"|".join(colours)})'
    text = re.sub(stated, lambda found: found[1] + colours[found[2]], text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(visible(name))}" ', 1)


def colour_variables(*, dark: bool) -> str:
    """CSS declarations of the variables of `inline_svg`."""
    return "; ".join(f"--{style}: {colour}" for style, colour in (DARK if dark else LIGHT).items())


def draw(description: Drawable) -> Figure:
    """Matplotlib figure of a description, made without pyplot; raise `UsageError` if matplotlib is missing."""
    check_library()
    with drawing():
        return _figure(description)


def _save(description: Drawable, file: IO[bytes], kind: str, salt: str = "whatif") -> None:
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}
    check_library()
    with drawing(salt):
        _figure(description).savefig(file, format=kind, metadata=dates[kind])


@contextmanager
def drawing(salt: str = "whatif") -> Iterator[None]:
    """Matplotlib with our settings instead of those of the user."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # Letters missing from the font are still readable in SVG, which uses the fonts of the viewer.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        values: Any = settings() | {"svg.hashsalt": salt}
        matplotlib.rcParams.update(values)
        yield


def _figure(description: Drawable) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _height(description)), layout="constrained")
    if isinstance(description, PlotStack):
        _draw_both(figure, description)
    else:
        _draw_one(figure.add_subplot(), description)
    # One layout is enough: saving would repeat it, including a full draw.
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    return figure


def _draw_one(axes: Axes, description: Description | BarChart | StackedBar | TileMap | Box | LaneChart) -> None:
    from whatif.plotting.picture_axes import draw_bars, draw_curves, draw_heat, draw_stack
    from whatif.plotting.picture_lanes import draw_lanes

    functions: dict[type, Callable[[Axes, Any], None]] = {
        PlotDescription: draw_curves, HeatMap: draw_heat, BarChart: draw_bars, TileMap: draw_tiles, Box: draw_boxes,
        LaneChart: draw_lanes, StackedBar: draw_stack,
    }  # fmt: skip
    functions[type(description)](axes, description)
    if not isinstance(description, StackedBar | Box) and description.title:
        above = (
            isinstance(description, LaneChart)
            or (isinstance(description, BarChart) and description.legend)
            or (isinstance(description, PlotDescription) and description.markers)
        )
        axes.set_title(shorten(description.title, _TITLE_WIDTH), pad=28 if above else 10)


def _draw_both(figure: Figure, stack: PlotStack) -> None:
    """Draw two plots; over the same values the lower one alone has their names."""
    upper, lower = figure.subplots(2, 1, height_ratios=_RATIOS)
    above, below = stack.above, stack.below
    if stack.shared:
        view = axes_of(above, points_of(above)).x
        below = replace(below, x=replace(above.x, limits=(view.low, view.high)))
        above = replace(above, x=replace(above.x, label=""))
        upper.tick_params(labelbottom=False)
    _draw_one(upper, above)
    _draw_one(lower, below)
    figure.align_ylabels()


def _height(description: Drawable) -> float:
    """Height of the figure in inches."""
    if isinstance(description, BarChart):
        return 0.9 + 0.24 * len(description.rows) + 0.25 * bool(description.title) + 0.25 * bool(description.legend)
    if isinstance(description, TileMap):
        return tiles_height(description)
    if isinstance(description, Box):
        return boxes_height(description)
    if isinstance(description, LaneChart):
        return 1.35 + _LANE * len(description.lanes.node)
    if isinstance(description, PlotStack):
        return _HEIGHT * sum(_RATIOS) / max(_RATIOS)
    return 0.75 if isinstance(description, StackedBar) else _HEIGHT
