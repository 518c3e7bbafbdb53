"""Drawn axes: axis space, limits, units and ticks.

Axis space holds the values of a linear axis and the decimal logarithms of a logarithmic one. Values that cannot be
drawn are NaN there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from whatif import units
from whatif.models.quantities import FloatArray
from whatif.plotting.description import (
    LARGEST,
    SMALLEST,
    AxisDescription,
    HeatMap,
    PlotDescription,
    PlotLine,
    Scale,
    shorten,
)
from whatif.units import Dimension

_LITTLE = 1.25
"""Ratio of the largest to the smallest value of a curve below which it would look flat on an axis from zero."""


@dataclass(frozen=True, slots=True)
class AxisUnit:
    """Unit of an axis, and its size in base units."""

    name: str
    size: float


@dataclass(frozen=True, slots=True)
class Tick:
    """Labelled position in axis space."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class AxisView:
    """Axis with its limits in axis space and its unit."""

    description: AxisDescription
    low: float
    high: float
    unit: AxisUnit

    def label(self, width: int) -> str:
        """Axis label with the unit in parentheses; only its last part if it is too wide.

        Square brackets would be markup in a terminal UI.
        """
        axis, unit = self.description, f"({self.unit.name})" if self.unit.name else ""
        whole = f"{axis.label} {unit}".strip()
        return whole if len(whole) <= width else f"{axis.name} {unit}".strip()

    def fraction(self, positions: FloatArray) -> FloatArray:
        """Fractions of the axis, 0 at the low end and 1 at the high end, of positions in axis space."""
        span = self.high - self.low
        # Points far outside a categorical axis stay outside, but must not overflow.
        near = np.clip(positions, self.low - 1e6 * span, self.high + 1e6 * span)
        return np.asarray((near - self.low) / span)

    def value(self, fraction: float) -> float:
        """Value in base units, or number of a category, at a fraction of the axis."""
        return from_axis_space(self.low + fraction * (self.high - self.low), self.description)


def axis_space(values: FloatArray, axis: AxisDescription) -> FloatArray:
    """Values in axis space: logarithms on a logarithmic axis, NaN for values that cannot be drawn."""
    values = np.asarray(values, dtype=np.float64)
    drawable = np.abs(values) <= LARGEST
    if axis.ticks:
        return np.where((values > -0.5) & (values < len(axis.ticks) - 0.5), values, np.nan)
    if axis.scale is Scale.LINEAR:
        return np.where(drawable, np.where(np.abs(values) < SMALLEST, 0.0, values), np.nan)
    drawable &= values >= SMALLEST
    return np.where(drawable, np.log10(np.where(drawable, values, 1.0)), np.nan)


def from_axis_space(position: float, axis: AxisDescription) -> float:
    """Value at a position in axis space."""
    return 10.0**position if axis.scale is Scale.LOG and not axis.ticks else position


Points = tuple[FloatArray, FloatArray]


class Axes(NamedTuple):
    """Both axes of a plot."""

    x: AxisView
    y: AxisView


def axes_of(description: PlotDescription, points: Sequence[Points]) -> Axes:
    """Axes with limits and units from the drawn points; the y axis has a margin."""
    x_view = view_of(description.x, [x[np.isfinite(y)] for x, y in points], roomy=False)
    ranges = [bars_of(line, description) for line in description.lines if line.error is not None]
    spans = [*points, *((x, end) for x, low, high in ranges for end in (low, high))]
    visible = (y if description.x.limits is None else y[(x >= x_view.low) & (x <= x_view.high)] for x, y in spans)
    return Axes(x_view, view_of(description.y, list(visible), roomy=True))


def points_of(description: PlotDescription) -> list[Points]:
    """Points (x, y) of every line in axis space, with NaN for gaps and for curves below a close-up."""
    points = [_points(line, description) for line in description.lines]
    if not description.y.close_up or description.y.scale is Scale.LOG or not points:
        return points
    lowest = _lowest_drawn(points[0][1])
    return [
        (x, np.full_like(y, np.nan)) if line.style != "baseline" and not np.any(y >= lowest) else (x, y)
        for line, (x, y) in zip(description.lines, points, strict=True)
    ]


def _lowest_drawn(leading: FloatArray) -> float:
    """Value below which curves are left out, half of a leading curve that varies by little; else none is."""
    known = leading[np.isfinite(leading)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    return low / 2 if 0 < low < high < _LITTLE * low else -math.inf


def bars_of(line: PlotLine, description: PlotDescription) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Error bars in axis space: x, lower end and upper end; a logarithmic axis has none to zero or below."""
    x, _ = _points(line, description)
    error = np.full(line.y.shape, np.nan) if line.error is None else line.error
    low, high = (axis_space(line.y + sign * error, description.y) for sign in (-1, 1))
    return x, low, high


def _points(line: PlotLine, description: PlotDescription) -> Points:
    x = axis_space(line.x, description.x)
    y = axis_space(line.y, description.y)
    return x, np.where(np.isfinite(x), y, np.nan)


def heat_axes(description: HeatMap) -> Axes:
    """Axes of a heat map, with space around every value; a single value fills its axis."""
    return Axes(*(_tiled(*axis) for axis in ((description.x, description.xs), (description.y, description.ys))))


def _tiled(axis: AxisDescription, values: FloatArray) -> AxisView:
    places = np.unique(axis_space(values, axis))
    places = places[np.isfinite(places)]
    if places.size < 2:
        return view_of(axis, [places], roomy=False)
    first, last = places[1] - places[0], places[-1] - places[-2]
    most = math.log10(LARGEST) if axis.scale is Scale.LOG else LARGEST
    return view_of(axis, [np.clip([places[0] - first / 2, places[-1] + last / 2], -most, most)], roomy=False)


def view_of(axis: AxisDescription, values: Sequence[FloatArray], *, roomy: bool) -> AxisView:
    """Axis over values in axis space; a roomy axis has a margin and prefers to start at zero."""
    if axis.ticks:
        return AxisView(axis, *(axis.limits or (-0.5, len(axis.ticks) - 0.5)), AxisUnit("", 1.0))
    low, high = axis.limits or limits(values, axis.scale, roomy=roomy)
    reference = max(abs(low), abs(high))
    if axis.scale is Scale.LOG:
        # The lowest decade shown is 0.1, 1 or 10 in its unit: 0.1 ms to 10 ms, not 100 us to 10k us.
        lowest = math.ceil(low - 1e-9)
        reference = 10.0 ** (lowest + 1 if lowest < high else low)
    return AxisView(axis, low, high, axis_unit(reference, axis.dimension))


def limits(values: Sequence[FloatArray], scale: Scale, *, roomy: bool) -> tuple[float, float]:
    """Limits of the finite values in axis space, never of zero length; a roomy axis prefers to start at zero."""
    finite = [array[np.isfinite(array)] for array in values]
    present = [array for array in finite if array.size]
    if not present:
        return 0.0, 1.0
    low, high = min(float(array.min()) for array in present), max(float(array.max()) for array in present)
    linear = scale is Scale.LINEAR
    if high - low <= (1e-9 * max(abs(low), abs(high)) if linear else 1e-6):
        pad = (0.1 * abs(low) or 1.0) if linear else 0.5
        return low - pad, high + pad
    if not roomy:
        return low, high
    if linear and 0 <= low < high / 2:
        step = round_step(high / 8)
        return 0.0, math.ceil(high / step - 1e-9) * step
    pad = 0.03 * (high - low)
    if linear:
        step = round_step((high - low) / 8)
        return math.floor((low - pad) / step) * step, math.ceil((high + pad) / step) * step
    return low - pad, high + pad


@lru_cache(maxsize=512)
def axis_unit(reference: float, dimension: Dimension) -> AxisUnit:
    """Largest prefixed unit that is not larger than the reference (in base units)."""
    if dimension == units.ONE:
        return AxisUnit("", 1.0)
    name, size = units.customary_unit(reference, dimension)
    known = list(_prefixed(name))
    fitting = [unit for unit in known if unit.size <= abs(reference) * (1 + 1e-9)]
    if reference == 0 or not known:
        return AxisUnit(name, size)
    return max(fitting, key=lambda unit: unit.size) if fitting else min(known, key=lambda unit: unit.size)


def _prefixed(name: str) -> Iterator[AxisUnit]:
    for prefix in ("", "k", "M", "G", "T", "P", "E", "m", "u", "n"):
        try:
            yield AxisUnit(prefix + name, units.parse_unit(prefix + name)[1])
        except units.UnitError:
            continue


def ticks(view: AxisView, fits: Callable[[Sequence[Tick]], bool]) -> tuple[Tick, ...]:
    """Densest reasonable ticks that `fits` accepts; empty if there are none."""
    for candidate in _candidates(view):
        labels = [tick.label for tick in candidate]
        if candidate and len(set(labels)) == len(labels) and fits(candidate):
            return tuple(candidate)
    return ()


def labels_apart(found: Sequence[Tick], columns: Sequence[int], gap: int) -> bool:
    """Whether the columns of ticks are farther apart than the longest label by a gap, in cells."""
    size = max(len(tick.label) for tick in found) + gap
    return all(after - before >= size for before, after in itertools.pairwise(columns))


def _candidates(view: AxisView) -> Iterator[list[Tick]]:
    if view.description.ticks:
        every = _category_candidates(view.description.ticks)
        return ([tick for tick in some if view.low <= tick.position <= view.high] for some in every)
    if view.description.scale is Scale.LOG:
        return _log_candidates(view)
    return _linear_candidates(view.low, view.high, view.unit.size)


def _category_candidates(names: Sequence[str]) -> Iterator[list[Tick]]:
    # Equal names are numbered, as duplicate labels would be rejected.
    unique = [name if name not in names[:place] else f"{name} #{place + 1}" for place, name in enumerate(names)]
    for stride, length in itertools.product((1, 2, 3, 5, 10, 20, 50, 100), (24, 16, 12, 8)):
        yield [Tick(float(i), shorten(unique[i], length)) for i in range(0, len(unique), stride)]


def _log_candidates(view: AxisView) -> Iterator[list[Tick]]:
    size, span = view.unit.size, view.high - view.low
    fine = _decades(view, 1, (1, 2, 5))
    if span < 3 and len(fine) >= 3:
        yield _log_ticks(fine, size)
    elif span < 2:
        for ticks_ in _linear_candidates(10**view.low, 10**view.high, size):
            yield [Tick(math.log10(t.position), t.label) for t in ticks_ if t.position > 0]
    if len(_decades(view, 1, (1,))) < 2:
        # One label alone would not state the scale.
        some = (_decades(view, 1, factors) for factors in ((1, 5), (1, 2), (2, 5)))
        yield from (_log_ticks(positions, size) for positions in some if len(positions) >= 2)
    for stride in (1, 2, 3, 5, 10, 20, 50, 100, 200):
        yield _log_ticks(_decades(view, stride, (1,)), size)


def _decades(view: AxisView, stride: int, factors: Iterable[int]) -> list[float]:
    """Positions on the axis of powers of ten, multiplied by each factor."""
    base = round(math.log10(view.unit.size) / stride) * stride
    first = math.floor((view.low - base) / stride) * stride + base
    exponents = range(first, math.ceil(view.high) + 1, stride)
    offsets = [math.log10(factor) for factor in factors]
    positions = (exponent + offset for exponent in exponents for offset in offsets)
    return [p for p in positions if view.low - 1e-9 <= p <= view.high + 1e-9]


def minor_ticks(view: AxisView, apart: Callable[[Sequence[float]], bool]) -> Sequence[float]:
    """Positions of ticks without labels on a logarithmic axis: as many of each decade as are `apart`."""
    if view.description.scale is Scale.LOG and not view.description.ticks:
        for factors in (range(1, 10), (1, 2, 5), (1,)):
            positions = _decades(view, 1, factors)
            if apart(positions):
                return positions
    return ()


def _log_ticks(positions: Iterable[float], size: float) -> list[Tick]:
    return [Tick(position, short_number(10**position / size)) for position in positions]


def _linear_candidates(low: float, high: float, size: float) -> Iterator[list[Tick]]:
    for count in (9, 7, 5, 4, 3, 2, 1):
        step = round_step((high - low) / size / count)
        first, last = math.ceil(low / size / step - 1e-9), math.floor(high / size / step + 1e-9)
        numbers = [number * step for number in range(first, last + 1)]
        labels = _linear_labels(numbers, step)
        yield [Tick(number * size, label) for number, label in zip(numbers, labels, strict=True)]
    if low < 0 < high:
        yield [Tick(number, short_number(number / size)) for number in (low, 0.0, high)]


def round_step(step: float) -> float:
    """Step rounded up to 1, 2 or 5 times a power of ten."""
    decade = 10.0 ** math.floor(math.log10(step))
    return next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= step * (1 - 1e-9))


def _linear_labels(numbers: Sequence[float], step: float) -> list[str]:
    largest = max((abs(number) for number in numbers), default=0.0)
    scale, suffix = _suffix(largest) if largest >= 1e4 else (1.0, "")
    decimals = max(0, -math.floor(math.log10(step / scale) + 1e-9))
    if decimals > 9 or largest / scale >= 1e6:
        return [short_number(number) for number in numbers]
    # Zero has no suffix, and `+ 0.0` removes the sign of a negative zero.
    return [f"{n / scale + 0.0:.{decimals}f}{suffix}" if abs(n) > step / 2 else "0" for n in numbers]


def _suffix(number: float) -> tuple[float, str]:
    large = [(size, prefix) for prefix, size in units.DECIMAL_PREFIXES.items() if size <= number * (1 + 1e-9)]
    return max(large, default=(1.0, ""))


def short_number(number: float) -> str:
    """Short text of a number, `1`, `0.05`, `20k` or `1e-9`: at most four digits, suffixes from a thousand."""
    size, suffix = _suffix(abs(number))
    text = f"{number / size:.4g}{suffix}"
    if number and (abs(number) < 1e-3 or "e" in text):
        mantissa, _, exponent = f"{number:.3e}".partition("e")
        text = f"{float(mantissa):g}e{int(exponent)}"
    return text
