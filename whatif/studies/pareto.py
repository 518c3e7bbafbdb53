"""Pareto fronts: points that no other point beats in one result without being worse in another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.grid_run import CHUNK_POINTS
from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import suiting
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine
from whatif.studies.population import Objective, Progress
from whatif.studies.search_space import (
    Combination,
    Span,
    Varied,
    every_point,
    headings,
    is_simulated,
    prepared,
    quantity_named,
    term_named,
)
from whatif.studies.study_result import StudyResult
from whatif.studies.threshold import Target
from whatif.table import Column, Table, text_column
from whatif.units import Dimension, format_quantity

POINTS, SIMULATED_POINTS = 20_000, 100
"""Points of the grid of one combination of choices: computed, and simulated message by message."""
_BLOCK: Final = 512
_STRONG: Final = 32


@dataclass(frozen=True, eq=False, repr=False)
class Front(StudyResult):
    """Points of a Pareto front, in order of the first objective."""

    choices: tuple[Mapping[str, str], ...]
    """[point]"""
    values: Mapping[str, FloatArray]
    """Parameters [point] in base units; NaN if a combination does not depend on one."""
    results: Mapping[str, FloatArray]
    """Objectives [point] in base units."""
    points: int
    """Number of points evaluated."""
    missing: int
    """Number of points without a result."""
    infeasible: tuple[Combination, ...]
    """Combinations that do not compile, with their reasons."""
    ended: bool
    """Whether all points were evaluated, without an interruption."""
    objectives: tuple[Objective, ...]
    targets: tuple[Target, ...]
    dimensions: Mapping[str, Dimension]
    """Dimensions of the parameters and objectives."""
    within: float = 0.1
    """Share of the best of each objective that the operating range may lose."""

    def table(self, *, short: bool = False) -> Table:
        """One row per point: choices, parameters and objectives."""
        chosen = list(dict.fromkeys(path for choices in self.choices for path in choices))
        heading = headings([*chosen, *self.values, *self.results], short=short)
        columns = {heading[path]: text_column(its.get(path, "") for its in self.choices) for path in chosen}
        for name, array in {**self.values, **self.results}.items():
            columns[heading[name]] = Column(array, self.dimensions[name])
        return Table(columns, {"points": str(self.points)})

    def readable_table(self) -> Table:
        """The table with short headings."""
        return self.table(short=True)

    def picture(self) -> PlotDescription:
        """The first two objectives, one line per combination of choices."""
        (x, across), (y, up) = list(self.results.items())[:2]
        of = np.array([", ".join(choices.values()) or "front" for choices in self.choices], dtype=object)
        lines = tuple(PlotLine(name, across[of == name], up[of == name]) for name in dict.fromkeys(of.tolist()))
        axes = [AxisDescription(name, self.dimensions[name], suiting([its])) for name, its in ((x, across), (y, up))]
        return PlotDescription("Pareto front", axes[0], axes[1], lines)

    def summary(self) -> tuple[str, ...]:
        """Infeasible combinations, the number of points, the best compromise and the operating range."""
        missing = f"; {self.missing:,} have no number" if self.missing else ""
        return (
            *(f"{combination}: infeasible: {combination.reason}" for combination in self.infeasible),
            f"{len(self.choices):,} of {self.points:,} points are on the front{missing}",
            *(_operating_range(self, self.within) if self.choices else ()),
        )

    def obstacle(self) -> str:
        """Reason why no point is on the front."""
        if self.choices:
            return ""
        met = f" meets {' and '.join(map(str, self.targets))}" if self.targets else " has a number"
        return f"infeasible: none of {self.points:,} points{met}"

    def interruption(self) -> str:
        """Remark on a search that ended early."""
        return "" if self.ended else f"interrupted; this is the front of the first {self.points:,} points"


def _excesses(found: Front) -> FloatArray:
    """Largest relative distance of every point of a front from the best of a result, [point].

    0.1 for 10 % more of a result to minimise, or 1/1.1 of one to maximise; NaN if a result is not positive.
    """
    worse = []
    for objective in found.objectives:
        values = found.results[objective.name]
        positive = np.where(values > 0, values, np.nan)
        worse.append(positive / positive.min() - 1 if objective.least else positive.max() / positive - 1)
    return np.asarray(np.max(worse, axis=0))


def _operating_range(found: Front, within: float) -> list[str]:
    """Best compromise of a front, and the range in which every objective is close to its best, as text."""
    excess = _excesses(found)
    at, near = int(excess.argmin()), np.flatnonzero(excess <= within)
    best = _in_words(found, np.array([at]))
    if np.isnan(excess).any() or not best:
        return []
    lines = [f"best compromise: {best}, where each result is within {100 * excess[at]:.3g} % of its best"]
    if near.size:
        lines.append(f"operating range, within {100 * within:g} % of each best: {_in_words(found, near, ' to ')}")
    return lines


def _in_words(found: Front, points: NDArray[np.intp], between: str = "") -> str:
    """Choices and parameters of some points of a front, the parameters from least to greatest if `between` is given.

    A parameter that none of them depends on is left out.
    """
    chosen: dict[str, dict[str, None]] = {}
    for at in points.tolist():
        for path, text in found.choices[at].items():
            chosen.setdefault(path, {})[text] = None
    words = [f"{path} {' or '.join(texts)}" for path, texts in chosen.items()]
    for name, values in found.values.items():
        known = values[points][np.isfinite(values[points])]
        ends = (known.min(), known.max())[: 2 if between else 1] if known.size else ()
        texts = (format_quantity(float(end), found.dimensions[name]) for end in ends)
        text = between.join(dict.fromkeys(texts))
        words += [f"{name} {text}"] if text else []
    return ", ".join(words)


def non_dominated(costs: FloatArray) -> NDArray[np.bool_]:
    """Whether a point of costs [point, objective] is not dominated by another one, [point].

    A point dominates another one if it is at most as large in every objective and smaller in one; of equal points all
    are kept. Points without finite numbers are never kept.
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
    """Mask of the points, in lexicographic order, that are below all before them or equal to such a point."""
    least = np.minimum.accumulate(points[:, 1])
    first = np.flatnonzero(np.append(True, (np.diff(points, axis=0) != 0).any(axis=1)))[: len(points)]
    below = points[first, 1] < np.append(np.inf, least[first[1:] - 1])[: len(first)]
    return np.repeat(below, np.diff(np.append(first, len(points))))


def _many(points: FloatArray) -> NDArray[np.bool_]:
    """Front of points in lexicographic order: no later point dominates an earlier one, so that it only grows."""
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
    """Whether points [point, objective] are dominated by points of another set, or of the same one."""
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
    scenario: Scenario, varied: Sequence[Varied], objectives: Sequence[Objective], targets: Sequence[Target] = (),
    points: int | None = None, progress: Progress = lambda count: None,
) -> Front:  # fmt: skip
    """Pareto front over a grid of the parameters and all choices, of the points that meet all targets.

    Listed values, and ranges of few whole numbers, are used in full; other ranges have as many values as `points`
    points per combination allow. Raise `UsageError` for fewer than two objectives.
    """
    if len({item.name for item in objectives}) < 2:
        raise UsageError("a front needs at least two results, such as total_time,total_energy")
    names = [*(item.name for item in objectives), *(target.result for target in targets)]
    parts: list[_Part] = []
    infeasible: list[Combination] = []
    ended = True
    try:
        for combination, within in prepared(scenario, varied, names):
            if combination.program is None:
                infeasible.append(combination)
                continue
            for part in _grid_points(combination, combination.program, within, objectives, targets, points):
                parts.append(part)
                progress(sum(part.count for part in parts))
    except KeyboardInterrupt:
        if not parts:
            raise
        ended = False
    used = [*(item.path for item in varied if not item.choices), *names]
    dimensions = {name: quantity_named(name, scenario.program)[1] for name in used}
    return _joined(parts, objectives, targets, dimensions, tuple(infeasible), ended)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Front of a chunk of the grid of a combination."""

    combination: Combination
    values: Mapping[str, FloatArray]
    costs: FloatArray
    count: int
    """Number of points evaluated."""
    missing: int
    """Number of points without a result."""


def _grid_points(
    combination: Combination, program: Program, within: Sequence[Span], objectives: Sequence[Objective],
    targets: Sequence[Target], points: int | None,
) -> Iterator[_Part]:  # fmt: skip
    """Front of each chunk of a grid; costs are [point, objective]."""
    names = [*(item.name for item in objectives), *(target.result for target in targets)]
    terms = {name: term_named(name, program) for name in names}
    most = points or (SIMULATED_POINTS if is_simulated(program) else POINTS)
    grids = _grids(within, most)
    count = math.prod(map(len, grids))
    if count > most:
        raise UsageError(f"these values, and both ends of each range, make {count:,} points; --points is {most:,}")
    whole = every_point(grids)
    step = 1 if is_simulated(program) else CHUNK_POINTS
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
    """Values of each span; spans with few values leave more points to the others."""
    grids: dict[str, list[float]] = {}
    for span in sorted(within, key=lambda span: span.count):
        share = points ** (1 / (len(within) - len(grids)))
        grids[span.path] = span.grid(max(int(share + 1e-9), 2)).tolist()
        points = max(points // len(grids[span.path]), 1)
    return [grids[span.path] for span in within]


def _joined(
    parts: Sequence[_Part], objectives: Sequence[Objective], targets: Sequence[Target],
    dimensions: Mapping[str, Dimension], infeasible: tuple[Combination, ...], ended: bool,
) -> Front:  # fmt: skip
    """Front of the fronts of all chunks."""
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
    return Front(
        tuple(choices[at] for at in kept), columns, results, count, missing, infeasible, ended,
        tuple(objectives), tuple(targets), dimensions,
    )  # fmt: skip
