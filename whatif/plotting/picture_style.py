"""Style of pictures: colours for light and dark backgrounds, lines, and matplotlib settings.

The colours of curves are distinct on both backgrounds with any colour-vision deficiency; dashes and markers distinguish
curves without colour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from whatif.plotting.description import SERIES_STYLES

TILES: Final = tuple(f"tile-{number}" for number in range(1, 6))

COLOUR_NAMES: Final = ("ground", "ink", "muted", "faint", "rule", "baseline", *SERIES_STYLES, *TILES)
"""Names of the colours of `LIGHT` and `DARK`, in their order."""


def _colours(text: str) -> dict[str, str]:
    return dict(zip(COLOUR_NAMES, text.split(), strict=True))


LIGHT: Final = _colours("""
    #ffffff #1c2430 #505b6a #9aa3af #dfe3e8 #6e7683
    #0074c6 #ba4e0a #187159 #8f388b #684904 #2b313b
    #cfe3f6 #fbe3cc #d3eadf #f0daee #e8e6d5
""")
DARK: Final = _colours("""
    #14181d #e6e9ee #aeb6c1 #717b88 #2b323b #8d96a3
    #52baf6 #ff862a #91c27f #e490c5 #f0e442 #c6ccd6
    #173a56 #53351a #1e4436 #4b2b48 #42402a
""")
LINES: Final = (
    "solid",
    (0, (6, 2)),
    (0, (2, 1.5)),
    (0, (7, 2, 1.5, 2)),
    (0, (4, 1.5, 1.5, 1.5, 1.5, 1.5)),
    (0, (10, 3)),
)
POINTS: Final = ("o", "s", "^", "D", "v", "P")
HATCHES: Final = dict(zip(SERIES_STYLES, ("", "//", "||", "\\\\", "xx", "--"), strict=True))
"""Patterns of bars, which distinguish them without colour."""
HEAT: Final = "viridis"
FONT_SIZE: Final = 9.0
_INK: Final[ContextVar[Mapping[str, str]]] = ContextVar("ink", default=LIGHT)


def ink(name: str) -> str:
    """Colour of a name in the picture that is being drawn."""
    return _INK.get()[name]


@contextmanager
def inked(colours: Mapping[str, str]) -> Iterator[None]:
    """Pictures in other colours than those on white."""
    token = _INK.set(colours)
    try:
        yield
    finally:
        _INK.reset(token)


def settings() -> dict[str, Any]:
    """Settings of matplotlib, in the colours of the picture that is being drawn."""
    return {
        "font.size": FONT_SIZE,
        "font.family": "sans-serif",
        # A name may contain a dollar sign, which must not start a formula.
        "text.parse_math": False,
        "svg.fonttype": "none",
        "svg.hashsalt": "whatif",
        "pdf.fonttype": 42,
        "savefig.dpi": 160,
        "figure.dpi": 160,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": FONT_SIZE + 1,
        "axes.titlepad": 10,
        "axes.unicode_minus": True,
        "axes.edgecolor": ink("faint"),
        "axes.facecolor": "none",
        "axes.labelcolor": ink("muted"),
        "axes.titlecolor": ink("ink"),
        "text.color": ink("ink"),
        "xtick.color": ink("faint"),
        "ytick.color": ink("faint"),
        "xtick.labelcolor": ink("muted"),
        "ytick.labelcolor": ink("muted"),
        "figure.facecolor": ink("ground"),
        "legend.frameon": False,
        "legend.labelcolor": ink("muted"),
        "lines.linewidth": 1.8,
        "lines.markersize": 4.5,
    }


def typographic(text: str) -> str:
    """Text with typographic minus and micro signs: `-3 us` is `−3 µs`."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", re.sub(r"(?<=[\d(])( ?)u(?=(?:s|J|W|Wh)\b)", r"\1µ", text))
