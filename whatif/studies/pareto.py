"""Pareto fronts: the points of which no other one is better in one result and worse in none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.result import CHUNK_POINTS
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.studies.population import Objective, Told
from whatif.studies.search_space import Combination, Span, Varied, every_point, is_played, prepared, term_named
from whatif.studies.threshold import Target

POINTS, PLAYED_POINTS = 20_000, 100
"""Points of the grid of one combination of choices, and where each is played message by message."""
_BLOCK: Final = 512
_STRONG: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class Front:
    """The points of a front, in order of the first objective."""

    choices: tuple[Mapping[str, str], ...]
    """[point]"""
    values: Mapping[str, FloatArray]
    """The parameters [point] in base units; NaN where a combination does not depend on one."""
    results: Mapping[str, FloatArray]
    """The objectives [point] in base units."""
    points: int
    """How many were evaluated."""
    missing: int
    """How many of them have no number."""
    impossible: tuple[Combination, ...]
    """Combinations without a program."""
    ended: bool
    """Whether all points were evaluated, and nothing was interrupted."""


def excesses(found: Front, objectives: Sequence[Objective]) -> FloatArray:
    """How much worse than the best of each result every point of a front is, in that where it is worst, [point].

    A share: 0.1 where it takes 10 % more of what is to be small, or 1/1.1 of what is to be large. NaN where a result
    is not positive.
    """
    worse = []
    for objective in objectives:
        values = found.results[objective.name]
        positive = np.where(values > 0, values, np.nan)
        worse.append(positive / positive.min() - 1 if objective.least else positive.max() / positive - 1)
    return np.asarray(np.max(worse, axis=0))


def non_dominated(costs: FloatArray) -> NDArray[np.bool_]:
    """Which of some points [point, objective], all to be small, no other one dominates, [point].

    A point is dominated by one that is at most as large in every objective and smaller in one; equal points stand
    together. Points without finite numbers are never kept.
    """
    kept = np.zeros(len(costs), dtype=bool)
    left = np.flatnonzero(np.isfinite(costs).all(axis=1))
    # Most points fall to a few strong ones; shares of the range, for objectives have units of their own.
    size = np.ptp(costs[left], axis=0) if len(left) else np.ones(costs.shape[1])
    shares = (costs[left] / np.where(size > 0, size, 1.0)).sum(axis=1)
    for strong in left[np.argsort(shares, kind="stable")[:_STRONG]]:
        left = left[~_dominated(costs[left], costs[strong][None])]
    left = left[np.lexsort(costs[left].T[::-1])]
    kept[left] = _two(costs[left]) if costs.shape[1] == 2 else _many(costs[left])
    return kept


def _two(points: FloatArray) -> NDArray[np.bool_]:
    """For points in lexicographic order: those below all before them, and those equal to one that is."""
    least = np.minimum.accumulate(points[:, 1])
    first = np.flatnonzero(np.append(True, (np.diff(points, axis=0) != 0).any(axis=1)))[: len(points)]
    below = points[first, 1] < np.append(np.inf, least[first[1:] - 1])[: len(first)]
    return np.repeat(below, np.diff(np.append(first, len(points))))


def _many(points: FloatArray) -> NDArray[np.bool_]:
    """For points in lexicographic order: none is dominated by a later one, so that a front only grows."""
    front = np.empty((0, points.shape[1]))
    kept = np.zeros(len(points), dtype=bool)
    for start in range(0, len(points), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(points)))
        block = block[~_dominated(points[block], front)]
        block = block[~_dominated(points[block], points[block])]
        kept[block] = True
        front = np.concatenate([front, points[block]])
    return kept


def _dominated(points: FloatArray, by: FloatArray) -> NDArray[np.bool_]:
    """Which of some points [point, objective] are dominated by some others, or the same ones."""
    result = np.zeros(len(points), dtype=bool)
    for start in range(0, len(by), _BLOCK):
        some = by[start : start + _BLOCK]
        least, less = np.ones((len(points), len(some)), dtype=bool), np.zeros((len(points), len(some)), dtype=bool)
        for objective in range(points.shape[1]):
            here, there = points[:, objective, None], some[None, :, objective]
            least &= there <= here
            less |= there < here
        result |= (least & less).any(axis=1)
    return result


def front(
    question: Scenario, varied: Sequence[Varied], objectives: Sequence[Objective], targets: Sequence[Target] = (),
    points: int | None = None, told: Told = lambda count: None,
) -> Front:  # fmt: skip
    """The front over a grid of the parameters and all choices, of the points that meet all targets.

    Listed values and few whole numbers are taken as they are; ranges have so many values that a combination has at
    most `points` points. Raise `UsageError` for fewer than two objectives.
    """
    if len({item.name for item in objectives}) < 2:
        raise UsageError("a front needs at least two results, such as total_time,total_energy")
    names = [*(item.name for item in objectives), *(target.result for target in targets)]
    parts: list[_Part] = []
    impossible: list[Combination] = []
    ended = True
    try:
        for combination, within in prepared(question, varied, names):
            if combination.program is None:
                impossible.append(combination)
                continue
            for part in _grid_points(combination, combination.program, within, objectives, targets, points):
                parts.append(part)
                told(sum(part.count for part in parts))
    except KeyboardInterrupt:
        if not parts:
            raise
        ended = False
    return _joined(parts, objectives, tuple(impossible), ended)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The front of a chunk of the grid of a combination."""

    combination: Combination
    values: Mapping[str, FloatArray]
    costs: FloatArray
    count: int
    """Points that were evaluated for it."""
    missing: int
    """Those of them without a number."""


def _grid_points(
    combination: Combination, program: Program, within: Sequence[Span], objectives: Sequence[Objective],
    targets: Sequence[Target], points: int | None,
) -> Iterator[_Part]:  # fmt: skip
    """The front of each chunk of a grid; costs are [point, objective]."""
    names = [*(item.name for item in objectives), *(target.result for target in targets)]
    terms = {name: term_named(name, program) for name in names}
    most = points or (PLAYED_POINTS if is_played(program) else POINTS)
    grids = _grids(within, most)
    count = math.prod(map(len, grids))
    if count > most:
        raise UsageError(f"these values, and both ends of each range, make {count:,} points; --points is {most:,}")
    whole = every_point(grids)
    step = 1 if is_played(program) else CHUNK_POINTS
    for start in range(0, len(whole), step):
        chunk = whole[start : start + step]
        values = {span.path: chunk[:, at] for at, span in enumerate(within)}
        evaluation = evaluate(program, values)
        found = {name: np.broadcast_to(evaluation.numbers(term), len(chunk)) for name, term in terms.items()}
        costs = np.stack([found[item.name] if item.least else -found[item.name] for item in objectives], axis=1)
        missing = int((~np.isfinite(costs).all(axis=1)).sum())
        for target in targets:
            costs = np.where(target.met(found[target.result])[:, None], costs, np.nan)
        kept = non_dominated(costs)
        kept_values = {path: array[kept] for path, array in values.items()}
        yield _Part(combination, kept_values, costs[kept], len(chunk), missing)


def _grids(within: Sequence[Span], points: int) -> list[list[float]]:
    """The values of each span; those with few leave room for the others."""
    grids: dict[str, list[float]] = {}
    for span in sorted(within, key=lambda span: span.count):
        share = points ** (1 / (len(within) - len(grids)))
        grids[span.path] = span.grid(max(int(share + 1e-9), 2)).tolist()
        points = max(points // len(grids[span.path]), 1)
    return [grids[span.path] for span in within]


def _joined(
    parts: Sequence[_Part], objectives: Sequence[Objective], impossible: tuple[Combination, ...], ended: bool
) -> Front:
    """The front of the fronts."""
    costs = np.concatenate([part.costs for part in parts] or [np.empty((0, len(objectives)))])
    kept = np.flatnonzero(non_dominated(costs))
    kept = kept[np.lexsort(costs[kept].T[::-1])]
    paths = dict.fromkeys(path for part in parts for path in part.values)
    columns = {
        path: np.concatenate([part.values.get(path, np.full(len(part.costs), np.nan)) for part in parts])[kept]
        for path in paths
    }
    choices = [part.combination.choices for part in parts for _ in range(len(part.costs))]
    results = {item.name: costs[kept, at] * (1.0 if item.least else -1.0) for at, item in enumerate(objectives)}
    count, missing = sum(part.count for part in parts), sum(part.missing for part in parts)
    return Front(tuple(choices[at] for at in kept), columns, results, count, missing, impossible, ended)
