"""Pictures of plots for papers and pages: SVG, PNG and PDF, through matplotlib, an extra.

The same description gives the same SVG to the byte, for the same matplotlib.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from whatif.atomic import atomic_file
from whatif.errors import UsageError
from whatif.limits import PICTURES
from whatif.plotting.bars import BarChart
from whatif.plotting.description import Description, HeatMap, PlotDescription, StackedBar, shorten
from whatif.plotting.picture_style import DARK, LIGHT, SETTINGS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawable = Description | BarChart | StackedBar
"""What there can be a picture of."""

_WIDTH: Final = 7.2
_HEIGHT: Final = 3.6
_TITLE_WIDTH: Final = 80
_OF_ITS_OWN: Final = re.compile(
    r'<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->| id="[A-Za-z0-9.]+_\d+"', re.DOTALL
)
"""What an SVG has as a file, and as a part of a page would say of all of it."""


def check_picture(path: Path) -> None:
    """Refuse, before anything is computed, a picture that cannot be: `UsageError`."""
    if path.suffix.lower() not in PICTURES:
        raise UsageError(f"{path}: a picture is a file {', '.join(PICTURES)}; tables have --format")
    check_library()


def check_library() -> None:
    """Raise `UsageError` where there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("pictures need matplotlib: pip install 'whatif[report]'") from None


def write_picture(description: Drawable, path: Path) -> None:
    """Draw into a file of the kind its name says, `.svg`, `.png` or `.pdf`; raise `UsageError` where it cannot be."""
    check_picture(path)
    with atomic_file(path) as temporary, temporary.open("wb") as file:
        _save(description, file, path.suffix.lower().removeprefix("."))


def inline_svg(description: Drawable, name: str) -> str:
    """The picture as an element of an HTML page; its colours are the page's variables, such as `--series-1`.

    `name` tells it to those who cannot see it, and keeps its parts from those of other pictures.
    """
    file = io.BytesIO()
    _save(description, file, "svg", salt=name)
    text = file.getvalue().decode()
    text = _OF_ITS_OWN.sub("", text[text.index("<svg ") :])
    colours = {colour: f"var(--{style})" for style, colour in LIGHT.items()}
    stated = f'(: |=")({"|".join(colours)})'
    text = re.sub(stated, lambda found: found[1] + colours[found[2]], text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(name)}" ', 1)


def colour_variables(*, dark: bool) -> str:
    """The variables of `inline_svg` as CSS declarations."""
    return "; ".join(f"--{style}: {colour}" for style, colour in (DARK if dark else LIGHT).items())


def draw(description: Drawable) -> Figure:
    """A figure of matplotlib without pyplot, to be saved or shown by the caller; raise `UsageError` without it."""
    check_library()
    with _settings():
        return _figure(description)


def _save(description: Drawable, file: IO[bytes], kind: str, salt: str = "whatif") -> None:
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}
    check_library()
    with _settings(salt):
        _figure(description).savefig(file, format=kind, metadata=dates[kind])


@contextmanager
def _settings(salt: str = "whatif") -> Iterator[None]:
    """Matplotlib as we want it, whatever a person's own settings are."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in letters that the font does not have is still read in SVG, where the reader's fonts are used.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        settings: Any = SETTINGS | {"svg.hashsalt": salt}
        matplotlib.rcParams.update(settings)
        yield


def _figure(description: Drawable) -> Figure:
    from matplotlib.figure import Figure

    from whatif.plotting.picture_axes import draw_bars, draw_curves, draw_heat, draw_stack

    figure = Figure(figsize=(_WIDTH, _height(description)), layout="constrained")
    axes = figure.add_subplot()
    if isinstance(description, PlotDescription):
        draw_curves(axes, description)
    elif isinstance(description, HeatMap):
        draw_heat(axes, description)
    elif isinstance(description, BarChart):
        draw_bars(axes, description)
    else:
        draw_stack(axes, description)
    if not isinstance(description, StackedBar) and description.title:
        above = isinstance(description, BarChart) and description.legend
        axes.set_title(shorten(description.title, _TITLE_WIDTH), pad=26 if above else 10)
    # Once is enough: saving would lay it out, and draw it for nothing, again.
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    return figure


def _height(description: Drawable) -> float:
    """In inches."""
    if isinstance(description, BarChart):
        return 0.9 + 0.24 * len(description.rows) + 0.25 * bool(description.title) + 0.25 * bool(description.legend)
    return 0.75 if isinstance(description, StackedBar) else _HEIGHT
