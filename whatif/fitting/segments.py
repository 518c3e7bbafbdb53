"""Segmented regression: lines over consecutive ranges of x, with jumps between them, exact by dynamic programming.

The cost of a segment is the weighted sum of squared residuals of its own line, O(1) from prefix sums. The program
over all cuts is exact up to `MOST_CUTS` different x; beyond, cuts are first placed among as many quantiles of x
and then each is moved, in turn, to the best of all places between its neighbours until none moves.
Source: R. Bellman and R. Roth, "Curve fitting by segmented straight lines", J. Am. Stat. Assoc. 64, 1969; the
criterion is G. Schwarz, "Estimating the dimension of a model", Ann. Stat. 6, 1978.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.fitting.linear import bounded_line, moments
from whatif.models.quantities import FloatArray

MOST_CUTS: Final = 384
"""Places for a cut that the dynamic program looks at; all others are tried one by one afterwards."""
IntArray = NDArray[np.intp]
_MOST_ROUNDS: Final = 50


@dataclass(frozen=True, eq=False)
class Segments:
    """Lines `y = intercept + slope x` over consecutive ranges of x, neither of the two below 0."""

    breaks: FloatArray
    """Shape (segments - 1,): the largest x of each segment but the last."""
    next_values: FloatArray
    """Shape (segments - 1,): the smallest x of the segment that follows."""
    intercepts: FloatArray
    """Shape (groups, segments)."""
    slopes: FloatArray
    """Shape (groups, segments)."""
    rest: float
    """Weighted sum of squared residuals."""
    criterion: float
    """n ln(rest / n) + p ln n with p two for each line and one for each break; the least is the best."""

    def __len__(self) -> int:
        return len(self.breaks) + 1


def segmented(
    x: Any,
    y: Any,
    *,
    weights: Any = None,
    groups: Any = None,
    most_segments: int = 3,
    fewest: int = 2,
    floor: float = 0.0,
    effective_count: float | None = None,
) -> tuple[Segments, ...]:
    """Best divisions of x into 1, 2, .. `most_segments` segments with a line for each.

    `weights` are 1/σ² of each y, `groups` separates points into lines with common breaks, `fewest` is
    the number of different x in a segment, `floor` is added to rest / n in the criterion: a least variance,
    `effective_count` replaces n elsewhere in the criterion where residuals are not independent. Element i of the result
    has i + 1 segments; numbers of segments for which there are too few x are left out. Raises `UsageError` where x and
    y do not fit each other, are not finite, or have fewer than `fewest` different x.
    """
    values, prefix, count = _prefix(x, y, weights, groups)
    if len(values) < max(fewest, 1):
        raise UsageError(f"a segment needs {fewest} different x; there are {len(values)}")
    cuts = _cuts(len(values))
    costs = _costs(prefix, cuts, fewest)
    found = []
    best, steps = costs[0], list[IntArray]()
    for segments in range(1, min(most_segments, len(values) // fewest) + 1):
        if segments > 1:
            through = best[:, None] + costs
            steps.append(np.argmin(through, axis=0))
            best = np.min(through, axis=0)
        if not np.isfinite(best[-1]):
            break
        places = _traced(cuts, steps)
        if len(cuts) <= len(values):
            places = _refined(prefix, places, fewest)
        found.append(_described(values, prefix, places, count, floor, effective_count))
    return tuple(found)


def segments_at(
    x: Any,
    y: Any,
    breaks: Sequence[float],
    *,
    weights: Any = None,
    groups: Any = None,
    floor: float = 0.0,
    effective_count: float | None = None,
) -> Segments:
    """The segments between given breaks, which are inclusive; segments without any x are left out."""
    values, prefix, count = _prefix(x, y, weights, groups)
    inner = np.searchsorted(values, np.asarray(breaks, dtype=float), side="right")
    places = np.unique(np.concatenate(([0], inner, [len(values)])))
    return _described(values, prefix, places, count, floor, effective_count)


def _prefix(x: Any, y: Any, weights: Any, groups: Any) -> tuple[FloatArray, FloatArray, int]:
    """Different x ascending, sums over the points before each of shape (groups, x + 1, 6), number of points."""
    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    weight = np.ones_like(second) if weights is None else np.asarray(weights, dtype=float)
    if not first.shape == second.shape == weight.shape or first.ndim != 1:
        raise UsageError("x, y and weights must be lists of one length")
    if not (np.isfinite(first).all() and np.isfinite(second).all() and np.isfinite(weight).all()):
        raise UsageError("x, y and weights must be finite")
    values, place = np.unique(first, return_inverse=True)
    owners = np.zeros(len(first), dtype=np.intp) if groups is None else np.unique(groups, return_inverse=True)[1]
    group_count = int(owners.max(initial=0)) + 1
    flat = owners * len(values) + place
    size = group_count * len(values)
    columns = moments(first, second, weight)
    sums = np.stack([np.bincount(flat, column, size) for column in columns.T], axis=-1)
    prefix = np.zeros((group_count, len(values) + 1, columns.shape[1]))
    np.cumsum(sums.reshape(group_count, len(values), -1), axis=1, out=prefix[:, 1:])
    return values, prefix, len(first)


def _cuts(count: int) -> IntArray:
    """Candidate cuts before, between and after `count` values of x, at most `MOST_CUTS` intervals."""
    return np.unique(np.linspace(0, count, min(count, MOST_CUTS) + 1).round().astype(np.intp))


def _cost(prefix: FloatArray, start: IntArray, end: IntArray) -> FloatArray:
    """Rest of the segments from start to end, elementwise, over all groups."""
    total: FloatArray = sum((bounded_line(group[end] - group[start])[2] for group in prefix), start=np.zeros(1))
    return total


def _costs(prefix: FloatArray, cuts: IntArray, fewest: int) -> FloatArray:
    starts, ends = np.meshgrid(cuts, cuts, indexing="ij")
    costs = np.full(starts.shape, np.inf)
    possible = ends - starts >= fewest
    costs[possible] = _cost(prefix, starts[possible], ends[possible])
    return costs


def _traced(cuts: IntArray, steps: list[IntArray]) -> IntArray:
    """The places of the cuts, both ends included, from the best predecessors."""
    path = [len(cuts) - 1]
    for step in reversed(steps):
        path.append(int(step[path[-1]]))
    places: IntArray = cuts[np.array([*path, 0])[::-1]]
    return places


def _refined(prefix: FloatArray, places: IntArray, fewest: int) -> IntArray:
    """Each inner cut moved to the best place between its neighbours, until none moves."""
    places = places.copy()
    for _ in range(_MOST_ROUNDS):
        before = places.copy()
        for index in range(1, len(places) - 1):
            low, high = places[index - 1], places[index + 1]
            tried = np.arange(low + fewest, high - fewest + 1)
            costs = _cost(prefix, np.full_like(tried, low), tried)
            costs = costs + _cost(prefix, tried, np.full_like(tried, high))
            places[index] = tried[int(np.argmin(costs))]
        if (places == before).all():
            break
    return places


def _described(
    values: FloatArray, prefix: FloatArray, places: IntArray, count: int, floor: float, effective_count: float | None
) -> Segments:
    intercepts, slopes, rests = bounded_line(prefix[:, places[1:]] - prefix[:, places[:-1]])
    rest = float(rests.sum())
    variance, number = max(rest / count + floor, np.finfo(float).tiny), effective_count or count
    criterion = float(number * np.log(variance) + (2 * intercepts.size + len(places) - 2) * np.log(number))
    inner = places[1:-1]
    return Segments(values[inner - 1], values[inner], intercepts, slopes, rest, criterion)
