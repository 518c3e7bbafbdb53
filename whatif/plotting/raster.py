"""Curves as dots, and dots as characters: eight per cell in braille, four in quadrant blocks, one in ASCII."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.plotting.axis_view import Points
from whatif.plotting.cells import Characters
from whatif.plotting.description import PlotLine

MarkerName = Literal["braille", "block", "ascii", "pixels"]
"""Marker of the cells: braille until a picture of pixels is drawn."""
Dots = NDArray[np.intp]


class Pen(NamedTuple):
    """Character for each combination of dots in a cell, sample for the legend, and dots drawn and left out in turn."""

    characters: Characters
    sample: str
    dashes: tuple[int, ...] = ()


class Glyphs(NamedTuple):
    """Characters of one marker: pens (first that of the baseline), the bit of each dot in a cell, line art."""

    pens: tuple[Pen, ...]
    bits: NDArray[np.uint8]
    point: str = "●"
    hollow: str = "○"
    measured: str = "⠶"
    """Sample of points that no line joins."""
    frame: str = "│─└┤┬┊├┴"
    """Axes and their corner, ticks with a label, a marker, and ticks without a label, which point inwards."""

    @property
    def columns(self) -> int:
        """Columns of dots per cell."""
        return int(self.bits.shape[1])

    @property
    def rows(self) -> int:
        """Rows of dots per cell."""
        return int(self.bits.shape[0])

    def pen(self, line: PlotLine, number: int) -> Pen:
        """Pen of a line; curves have numbers."""
        return self.pens[0 if line.style in ("baseline", "band") else 1 + number % (len(self.pens) - 1)]


def _pen(characters: str, sample: str, dashes: tuple[int, ...] = ()) -> Pen:
    return Pen(np.array(list(characters)), sample, dashes)


_DASHED = (
    ("━━", ()),
    ("━╸", (6, 2)),
    ("╺╺", (2, 2)),
    ("━╺", (8, 2, 2, 2)),
    ("╸╺", (4, 4)),
    ("━╴", (12, 4)),
)
"""Sample and dashes of the first curves, which differ where curves are close to each other."""


def _pens(characters: str) -> tuple[Pen, ...]:
    return _pen(characters, "╍╍", (4, 4)), *(_pen(characters, sample, dashes) for sample, dashes in _DASHED)


# Unicode numbers braille dots down the left column, down the right one, then along the lowest row.
_BRAILLE = "".join(chr(0x2800 + dots) for dots in range(256))
_HALVES = str.maketrans({"━": "▀", "╍": "▀", "╸": "▘", "╺": "▘", "╴": "▘"})
_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
GLYPHS: dict[MarkerName, Glyphs] = {
    "braille": Glyphs(
        _pens(_BRAILLE),
        np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint8),
    ),
    "block": Glyphs(
        tuple(pen._replace(sample=pen.sample.translate(_HALVES)) for pen in _pens(_QUADRANTS)),
        np.array([[1, 2], [4, 8]], dtype=np.uint8),
        measured="●",
    ),
    "ascii": Glyphs(
        (_pen(" .", ". ", (2, 2)), *(_pen(f" {dot}", dot * 2) for dot in "*+xo%@")),
        np.array([[1]], dtype=np.uint8),
        point="#",
        measured="#",
        frame="|-+++:+'",
    ),
}

GLYPHS["pixels"] = GLYPHS["braille"]


class Raster:
    """Dots of several curves in a rectangle of cells; the last curve determines the colour of a shared cell."""

    def __init__(self, columns: int, rows: int, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._bits = np.zeros((rows, columns), dtype=np.uint8)
        self.text: Characters = np.full((rows, columns), " ", dtype="U1")
        self.styles: NDArray[np.intp] = np.zeros((rows, columns), dtype=np.intp)

    def draw(self, dots: Dots, pen: Pen, style: int) -> None:
        """Draw dots (x, y) from the lower left with a pen in a numbered style."""
        across, down = self._glyphs.columns, self._glyphs.rows
        x, y = dots[0], self._bits.shape[0] * down - 1 - dots[1]
        row, column = y // down, x // across
        np.bitwise_or.at(self._bits, (row, column), self._glyphs.bits[y % down, x % across])
        self.text[row, column] = pen.characters[self._bits[row, column]]
        self.styles[row, column] = style


def walk(points: FloatArray) -> Dots:
    """Dots of the line through points, in steps of one, with gaps at NaN."""
    delta = np.diff(points, append=np.nan)
    # A point without a successor makes one step of length 0.
    length = np.nan_to_num(np.abs(delta).max(axis=0), nan=1.0)
    steps = np.where(np.isfinite(points[1]), length, 0).astype(np.intp)
    segment = np.repeat(np.arange(steps.size), steps)
    part = (np.arange(segment.size) - (np.cumsum(steps) - steps)[segment]) / steps[segment]
    dots = points[:, segment] + np.nan_to_num(part * delta[:, segment])
    return np.asarray(np.rint(dots), dtype=np.intp)


def dashed(dots: Dots, dashes: tuple[int, ...]) -> Dots:
    """Dots of a line with dashes: numbers of dots that are drawn and left out in turn."""
    if not dashes:
        return dots
    place = np.arange(dots.shape[1]) % sum(dashes)
    return dots[:, np.searchsorted(np.cumsum(dashes), place, side="right") % 2 == 0]


def block(dots: Dots, glyphs: Glyphs) -> Dots:
    """Dots of points; in cells with four rows of dots a point is as wide as its cell, and two dots high."""
    x, y = dots
    if glyphs.rows < 4:
        return dots
    left, base = x - x % glyphs.columns, y - y % glyphs.rows
    low = base + np.minimum(y - base, glyphs.rows - 2)
    across, up = np.meshgrid(np.arange(glyphs.columns), np.arange(2))
    return np.stack(((left[:, None] + across.ravel()).ravel(), (low[:, None] + up.ravel()).ravel()))


def isolated(y: FloatArray) -> NDArray[np.intp]:
    """Indices of points with a gap on both sides, as a single dot is hard to see."""
    known = np.r_[False, np.isfinite(y), False]
    return np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])


def thin(x: FloatArray, y: FloatArray, limit: int) -> Points:
    """At most `limit` points of a curve: both ends and, for each bucket along x, the extremes and one gap."""
    if x.size <= limit:
        return x, y
    bucket = _buckets(x, max(1, (limit - 2) // 3))
    starts = np.flatnonzero(np.r_[True, np.diff(bucket) > 0])
    gap = np.isnan(y)
    keys = (np.where(gap, np.inf, y), np.where(gap, np.inf, -y), np.where(gap, 0.0, 1.0)) if gap.any() else (y, -y)
    lowest, highest, *gaps = (_first_per_bucket(key, starts) for key in keys)
    keep = np.unique(np.r_[0, lowest, highest, *(found[gap[found]] for found in gaps), x.size - 1])
    return x[keep], y[keep]


def _buckets(x: FloatArray, count: int) -> NDArray[np.intp]:
    """Bucket number of each point: by x if x is ascending, else by index."""
    known = np.isfinite(x)
    steps = x[known]
    if steps.size < 2 or steps[0] == steps[-1] or np.any(np.diff(steps) < 0):
        return np.arange(x.size) * count // x.size
    along = (np.where(known, x, steps[0]) - steps[0]) / (steps[-1] - steps[0])
    return np.maximum.accumulate(np.minimum((along * count).astype(np.intp), count - 1))


def _first_per_bucket(key: FloatArray, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Index of the first smallest key of each bucket."""
    smallest = np.minimum.reduceat(key, starts)
    hits = np.flatnonzero(key == np.repeat(smallest, np.diff(np.r_[starts, key.size])))
    return np.asarray(hits[np.searchsorted(hits, starts)], dtype=np.intp)
