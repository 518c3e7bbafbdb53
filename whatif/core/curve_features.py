"""Features of curves as indices and positions: optima, knees, changes of the lead, infeasible stretches.

Positions are in axis space, where an axis is drawn linearly (`plotting.axis_view.axis_space`); NaN is a point without
a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

_ROUNDING: Final = 1e-9
"""Relative difference of equal values."""
_KNEE_POINTS: Final = 4
_KNEE: Final = 0.1
"""Fewest points of a curve with a knee, and its least distance from the chord, as a share of the axes."""


class Lead(NamedTuple):
    """Change of the lead between two neighbouring points of curves: the indices of both points and both curves.

    `x` and `y` are the position where the curves cross if they are straight between the points. Both points are the
    same one where the curves are equal there.
    """

    last: int
    first: int
    before: int
    after: int
    x: float
    y: float


def same(values: FloatArray, wanted: float) -> NDArray[np.bool_]:
    """Whether values are equal to another one but for rounding."""
    return np.asarray(np.abs(values - wanted) <= _ROUNDING * abs(wanted))


def best(values: FloatArray, *, most: bool) -> NDArray[np.intp]:
    """Indices of the least or the greatest of the finite values, more than one for a tie; empty if there are none."""
    known = values[np.isfinite(values)]
    return np.flatnonzero(same(values, known.max() if most else known.min())) if known.size else np.array([], np.intp)


def runner_up(values: FloatArray, *, most: bool) -> int | None:
    """Index of the best value that is not the best one; None if all finite values are equal."""
    others = values.copy()
    others[best(values, most=most)] = np.nan
    second = best(others, most=most)
    return int(second[0]) if second.size else None


def knee(x: FloatArray, y: FloatArray, *, most: bool) -> int | None:
    """Index of the knee of a curve that rises or falls throughout: the point furthest from the chord of its ends.

    Both axes are scaled from 0 to 1 first, so this is the greatest value of the difference curve of Kneedle (Satopaa
    et al., Finding a "Kneedle" in a Haystack, ICDCSW 2011, section III) without smoothing. The knee lies on the better
    side of the chord, below it for a result to minimise, at least a tenth of an axis away. None without one.
    """
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    known = known[np.argsort(x[known], kind="stable")]
    across, up = x[known], y[known]
    steps = np.diff(up)
    if known.size < _KNEE_POINTS or np.any(np.diff(across) <= 0) or not (np.all(steps >= 0) or np.all(steps <= 0)):
        return None
    if up[0] == up[-1]:
        return None
    along = (across - across[0]) / (across[-1] - across[0])
    chord = up[0] + along * (up[-1] - up[0])
    distance = (up - chord if most else chord - up) / abs(up[-1] - up[0])
    at = int(distance.argmax())
    return int(known[at]) if distance[at] >= _KNEE else None


def leads(x: FloatArray, curves: FloatArray, *, most: bool) -> Iterator[Lead]:
    """Changes of the curve with the best value along ascending x, for curves [curve, point].

    A curve that ends or begins changes no lead; equal values change none until another curve is ahead.
    """
    values = np.where(np.isfinite(x), -curves if most else curves, np.nan)
    known = np.isfinite(values)
    least = np.where(known, values, np.inf).min(axis=0, initial=np.inf)
    alike = known & (np.abs(values - least) <= _ROUNDING * np.abs(np.where(np.isfinite(least), least, 0.0)))
    order = np.argsort(x, kind="stable")
    alone = order[alike[:, order].sum(axis=0) == 1]
    leader = alike.argmax(axis=0)
    place = np.empty(x.size, np.intp)
    place[order] = np.arange(x.size)
    for i in np.flatnonzero(np.diff(leader[alone])):
        last, first = int(alone[i]), int(alone[i + 1])
        one, other = int(leader[last]), int(leader[first])
        between = order[place[last] + 1 : place[first]]
        if not known[np.ix_([one, other], [last, *between, first])].all():
            continue
        if between.size:
            middle = int(between[0])
            yield Lead(middle, middle, one, other, float(x[middle]), float(curves[one, middle]))
            continue
        gaps = curves[one, [last, first]] - curves[other, [last, first]]
        share = float(gaps[0] / (gaps[0] - gaps[1]))
        y = curves[one, last] + share * (curves[one, first] - curves[one, last])
        yield Lead(last, first, one, other, float(x[last] + share * (x[first] - x[last])), float(y))


def level_stretch(values: FloatArray, at: int, share: float) -> tuple[int, int]:
    """First and last index around one within which no value differs from it by more than a share."""
    near = np.abs(values - values[at]) <= share * abs(values[at])
    below, above = np.flatnonzero(~near[: at + 1]), np.flatnonzero(~near[at:])
    return (int(below[-1]) + 1 if below.size else 0), (at + int(above[0]) - 1 if above.size else values.size - 1)
