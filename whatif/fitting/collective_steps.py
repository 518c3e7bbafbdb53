"""Messages of collectives of a GPU library, fitted: starts and gaps by protocol, limits, and the share of bandwidth.

The residuals are logarithms of times. Protocols (one to three) and their limits have the least BIC. Starts and gaps
that no point shows stay near the constants of NCCL's tuner: a factor of e from them weighs as much as the scatter of
one point, at most as 10 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.fit_result import Fit, range_of, root_mean_square
from whatif.fitting.library_points import (
    SCALES,
    CollectivePoints,
    LibrarySheet,
    Scale,
    choices,
    points_by_algorithm,
    short_tree_points,
    traffic_of,
)
from whatif.models.gpu_collectives import RING, TREE
from whatif.models.library_steps import Traffic, chosen_allreduce_time, long_tree_time, short_tree_time
from whatif.models.quantities import FloatArray
from whatif.units import BYTE_PER_SECOND, MICROSECOND, ONE, SECOND, Dimension
from whatif.vocabulary import PROTOCOLS

PATH: Final = "network.collectives"
_SCATTER: Final = 0.1
"""Largest weight of the tuner's constants, that of the search of limits; a fit that scatters less takes its scatter."""
_LEAST_SCATTER: Final = 1e-4
_REFINEMENTS: Final = 3
_FEWEST: Final = 3
"""Points of a protocol."""
_MOST_LIMITS: Final = 32
"""Sizes that are tried as limits."""
_UNSEEN: Final = 1e-3
"""Largest slope of a residual by the logarithm of a parameter that the points do not show."""
_PER_LIMIT: Final = 3
"""Parameters of one more protocol: its limit, start and gap."""
_MOST_STEPS: Final = 60
_MOSTLY: Final = 0.8
_LEAST_COST: Final = 1e-12
_GAPS: Final[Mapping[Scale, tuple[float, ...]]] = {
    "in_domain": RING.in_domain,
    "between_domains": RING.between_domains,
}
_TREE_PRIOR: Final = np.array([TREE.start[0] * MICROSECOND, TREE.between_domains[0] * MICROSECOND, np.nan])
_TREE_START: Final = np.array([*_TREE_PRIOR[:2], 1e10])
Residuals = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class Solution:
    """Parameters by least squares of logarithms, with their covariance and how far the points show them."""

    values: FloatArray
    covariance: FloatArray
    """NaN without more points than parameters."""
    seen: NDArray[np.bool_]
    cost: float
    scatter: float
    """Standard deviation of the residuals."""
    error: float
    """Root mean square of (fitted - measured) / measured."""


@dataclass(frozen=True, eq=False)
class StepsFit:
    """Messages of one algorithm at one scale."""

    path: str
    limits: FloatArray
    """Shape (protocols - 1,)."""
    solution: Solution
    points: CollectivePoints

    @property
    def protocol_count(self) -> int:
        """Protocols that the points show."""
        return len(self.limits) + 1

    def time(self, traffic: Traffic) -> FloatArray:
        """Times in s."""
        return _times(np.log(self.solution.values), traffic, self.limits)[0]

    def of_last(self) -> tuple[float, float, float]:
        """Start and gap of the longest messages, and the share of the bandwidth."""
        count, values = self.protocol_count, self.solution.values
        return float(values[count - 1]), float(values[2 * count - 1]), float(values[-1])

    def fits(self) -> Iterator[Fit]:
        """Parameters for a platform file; protocols without points are as the next longer one."""
        count, missing = self.protocol_count, len(PROTOCOLS) - self.protocol_count
        for place, protocol in enumerate(PROTOCOLS):
            at = max(place - missing, 0)
            borrowed = PROTOCOLS[missing] if place < missing else ""
            path = f"{self.path}.{protocol}"
            dimensions = {"start": SECOND, "gap": SECOND}
            yield _fit_of(path, dimensions, [at, count + at], self.solution, self.points, borrowed)
        yield _fit_of(self.path, {"bandwidth_share": ONE}, [-1], self.solution, self.points)

    def limits_by_path(self) -> dict[str, float]:
        """Limits in B by their paths; 0 for a protocol without points."""
        limits = [0.0] * (2 - len(self.limits)) + list(self.limits)
        return {
            f"{self.path}.{name}": limit for name, limit in zip(("short_limit", "eager_limit"), limits, strict=True)
        }


@dataclass(frozen=True, eq=False)
class TreeFit:
    """Short trees of an allreduce."""

    path: str
    solution: Solution
    points: CollectivePoints

    def fits(self) -> Iterator[Fit]:
        """Parameters for a platform file."""
        dimensions = {"start": SECOND, "gap": SECOND, "bandwidth": BYTE_PER_SECOND}
        fit = _fit_of(self.path, dimensions, [0, 1, 2], self.solution, self.points)
        # The tuner chooses the sizes.
        yield replace(fit, ranges={"rank_count": fit.ranges["rank_count"]})


def _fit_of(
    path: str,
    dimensions: Mapping[str, Dimension],
    at: list[int],
    solution: Solution,
    points: CollectivePoints,
    borrowed: str = "",
) -> Fit:
    ranges = {name: range_of(values) for name, values in (("message_size", points.sizes), ("rank_count", points.ranks))}
    unseen = tuple(name for name, place in zip(dimensions, at, strict=True) if not (borrowed or solution.seen[place]))
    return Fit(
        path, dimensions, solution.values[at], solution.covariance[np.ix_(at, at)],
        ranges, len(points), solution.error, borrowed=borrowed, undetermined=unseen,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LibraryFit:
    """Fitted collectives of a machine; what was not measured follows from its data sheet."""

    sheet: LibrarySheet
    steps: Mapping[tuple[Scale, str], StepsFit]
    trees: Mapping[Scale, TreeFit]

    def fits(self) -> Iterator[Fit]:
        """Parameters for a platform file."""
        for steps in self.steps.values():
            yield from steps.fits()
        for tree in self.trees.values():
            yield from tree.fits()

    def limits(self) -> dict[str, float]:
        """Limits of protocols in B, by their paths."""
        return {path: limit for part in self.steps.values() for path, limit in part.limits_by_path().items()}

    def time(self, points: CollectivePoints) -> FloatArray:
        """Times in s of the operations, sizes and ranks of points."""
        found = np.empty(len(points))
        far = points.ranks > self.sheet.domain_rank_count
        for operation in dict.fromkeys(points.operations):
            for scale in SCALES:
                rows = (far if scale == "between_domains" else ~far) & (points.operations == operation)
                if rows.any():
                    found[rows] = self._time(operation, scale, points.at(rows))
        return found

    def _time(self, operation: str, scale: Scale, points: CollectivePoints) -> FloatArray:
        name = "pairwise" if operation == "alltoall" else "ring"
        if operation == "allreduce" and self.sheet.switch_reduction:
            name = "switch"
        steps, tree = self.steps.get((scale, name)), self.trees.get(scale)
        if steps is None:
            return self.sheet.time(points)
        once = steps.time(traffic_of(name, points, self.sheet))
        if operation != "allreduce" or name == "switch" or tree is None:
            return once
        short, long = self._tree_times(steps, tree, points)
        return chosen_allreduce_time(choices(points, self.sheet), once, short, long)

    def _tree_times(self, ring: StepsFit, tree: TreeFit, points: CollectivePoints) -> tuple[FloatArray, FloatArray]:
        group = self.sheet.groups(points.ranks)
        short = short_tree_time(points.sizes, group.domains, *map(np.asarray, tree.solution.values))
        return short, long_tree_time(points.sizes, group.domains, group.network, *map(np.asarray, ring.of_last()))


def fit_library(points: CollectivePoints, sheet: LibrarySheet) -> LibraryFit:
    """Messages of all algorithms that the points show, in a link domain and between domains."""
    steps: dict[tuple[Scale, str], StepsFit] = {}
    trees: dict[Scale, TreeFit] = {}
    for scale in SCALES:
        own = points.at_scale(sheet, scale)
        for name, (shown, traffic) in points_by_algorithm(own, sheet).items():
            steps[scale, name] = _fit_steps(f"{PATH}.{scale}.{name}", shown, traffic, _GAPS[scale])
        if len(short := short_tree_points(own, sheet)) >= _FEWEST:
            trees[scale] = TreeFit(f"{PATH}.{scale}.tree", _solve_tree(short, sheet), short)
    return LibraryFit(sheet, steps, trees)


def relative_errors(model: LibraryFit | LibrarySheet, points: CollectivePoints) -> FloatArray:
    """(predicted - measured) / measured of points."""
    return model.time(points) / points.times - 1


def held_out_errors(points: CollectivePoints, sheet: LibrarySheet) -> FloatArray:
    """Errors at the largest number of ranks of each operation that has several, of a fit to the others; else NaN."""
    held, errors = points.largest_scales(), np.full(len(points), np.nan)
    if held.any():
        errors[held] = relative_errors(fit_library(points.at(~held), sheet), points.at(held))
    return errors


def _fit_steps(path: str, points: CollectivePoints, traffic: Traffic, gaps: tuple[float, ...]) -> StepsFit:
    """Protocols and limits of the least BIC."""
    found = [_with_limits(points, traffic, limits, gaps) for limits in _divisions(traffic.size)]
    _, limits, solution = min(found, key=lambda item: item[0])
    residuals, prior = _residuals(traffic, points.times, limits), _prior(gaps, len(limits) + 1)
    other = _solve(residuals, _mostly_starts(solution, traffic, points.times, limits), prior)
    refined = min((_refined(residuals, found, prior) for found in (solution, other)), key=lambda item: item.scatter)
    return StepsFit(path, limits, refined, points)


def _with_limits(
    points: CollectivePoints, traffic: Traffic, limits: FloatArray, gaps: tuple[float, ...]
) -> tuple[float, FloatArray, Solution]:
    """BIC, limits, and parameters of protocols with given limits."""
    prior = _prior(gaps, len(limits) + 1)
    start = _start(traffic, points.times, limits, prior)
    solution, count = _solve(_residuals(traffic, points.times, limits), start, prior), len(points)
    score = count * np.log(max(solution.cost, _LEAST_COST) / count) + np.log(count) * _PER_LIMIT * len(limits)
    return float(score), limits, solution


def _divisions(sizes: FloatArray) -> Iterator[FloatArray]:
    """Limits of one, two and three protocols with enough points each."""
    yield np.empty(0)
    known = np.unique(sizes)[:-1]
    tried = known[np.unique(np.linspace(0, len(known) - 1, _MOST_LIMITS).astype(int))] if len(known) else known
    for count in (1, 2):
        for limits in combinations(tried, count):
            if np.bincount(np.searchsorted(limits, sizes), minlength=count + 1).min() >= _FEWEST:
                yield np.array(limits)


def _prior(gaps: tuple[float, ...], count: int) -> FloatArray:
    """Starts and gaps of NCCL's tuner for the longest `count` protocols, and the whole bandwidth."""
    return np.array([*RING.start[-count:], *gaps[-count:], 1 / MICROSECOND]) * MICROSECOND


def _start(traffic: Traffic, times: FloatArray, limits: FloatArray, prior: FloatArray) -> FloatArray:
    """Values from which the fit starts: gaps of the fast points, and the rate of the longest messages."""
    protocol, count = np.searchsorted(limits, traffic.size), len(limits) + 1
    gaps = [np.quantile((times / traffic.message_count)[protocol == at], 0.3) for at in range(count)]
    longest = traffic.size >= np.sort(traffic.size)[-min(4, len(times))]
    share = np.median((traffic.busy_time / times)[longest])
    return np.array([*prior[:count], *gaps, share])


def _mostly_starts(solution: Solution, traffic: Traffic, times: FloatArray, limits: FloatArray) -> FloatArray:
    """Values of a solution with nearly all of the least time of each protocol as its start: gaps and starts compete."""
    protocol, count = np.searchsorted(limits, traffic.size), len(limits) + 1
    least = np.array([times[protocol == at].min() for at in range(count)])
    messages = np.array([traffic.message_count[protocol == at].max() for at in range(count)])
    return np.array([*(_MOSTLY * least), *((1 - _MOSTLY) * least / messages), solution.values[-1]])


def _times(logarithms: FloatArray, traffic: Traffic, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Times, and their slopes by the logarithms of starts, gaps and the share."""
    count, values = len(limits) + 1, np.exp(np.clip(logarithms, -60, 60))
    protocol = np.searchsorted(limits, traffic.size)
    waiting, busy = traffic.message_count * values[count + protocol], traffic.busy_time / values[-1]
    slopes, rows = np.zeros((len(protocol), 2 * count + 1)), np.arange(len(protocol))
    slopes[rows, protocol] = values[protocol]
    slopes[rows, count + protocol] = np.where(waiting >= busy, waiting, 0.0)
    slopes[:, -1] = np.where(waiting >= busy, 0.0, -busy)
    return values[protocol] + np.maximum(waiting, busy), slopes


def _residuals(traffic: Traffic, measured: FloatArray, limits: FloatArray) -> Residuals:
    def residuals(logarithms: FloatArray) -> tuple[FloatArray, FloatArray]:
        times, slopes = _times(logarithms, traffic, limits)
        return np.log(times / measured), slopes / times[:, None]

    return residuals


def _refined(residuals: Residuals, solution: Solution, prior: FloatArray) -> Solution:
    """Solution with the weight of `prior` that the scatter of its own residuals has."""
    for _ in range(_REFINEMENTS):
        solution = _solve(residuals, solution.values, prior, float(np.clip(solution.scatter, _LEAST_SCATTER, _SCATTER)))
    return solution


def _solve(residuals: Residuals, start: FloatArray, prior: FloatArray, scatter: float = _SCATTER) -> Solution:
    """Least squares of logarithms, with those of `prior` as further points of the weight `scatter`; NaN: without one.

    Points of short messages alone do not show the bandwidth: its share stays near that of the prior.
    """
    from scipy.optimize import least_squares

    stated = np.isfinite(prior)
    pull, towards = scatter * np.diag(stated.astype(float)), np.log(np.where(stated, prior, 1.0))

    def values_at(x: FloatArray) -> FloatArray:
        return np.concatenate([residuals(x)[0], pull @ (x - towards)])

    def slopes_at(x: FloatArray) -> FloatArray:
        return np.vstack([residuals(x)[1], pull])

    found = least_squares(values_at, np.log(start), slopes_at, method="lm", max_nfev=_MOST_STEPS)
    rest, slopes = residuals(found.x)
    values, freedom = np.exp(found.x), len(rest) - len(prior)
    curvature = slopes.T @ slopes + pull.T @ pull
    variance = float(rest @ rest) / max(freedom, 1)
    known = variance if freedom > 0 else np.nan
    covariance = np.linalg.pinv(curvature) * known * np.outer(values, values)
    seen = np.abs(slopes).max(axis=0) > _UNSEEN
    error = root_mean_square(np.exp(rest) - 1)
    return Solution(values, covariance, seen, float(2 * found.cost), variance**0.5, error)


def _solve_tree(points: CollectivePoints, sheet: LibrarySheet) -> Solution:
    domains, step = sheet.groups(points.ranks).domains, 1e-6

    def ratios(logarithms: FloatArray) -> FloatArray:
        values = map(np.asarray, np.exp(logarithms))
        return np.log(short_tree_time(points.sizes, domains, *values) / points.times)

    def residuals(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Residuals, and their slopes by differences."""
        found = ratios(at)
        return found, np.array([(ratios(at + step * unit) - found) / step for unit in np.eye(len(at))]).T

    return _refined(residuals, _solve(residuals, _TREE_START, _TREE_PRIOR), _TREE_PRIOR)
