"""Points of a search over several parameters: their penalty, and the evolution of a population of them.

If all parameters together have few values, all points are evaluated. Otherwise a population evolves over the ranges by
differential evolution (Storn and Price 1997, scipy), evaluated as a whole; from its best point, sequential quadratic
programming (SLSQP) finds where the targets bind, and of the points on the line to there the best that meets all is
kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from whatif.axes import first_number
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.grid_run import CHUNK_POINTS
from whatif.core.term import Program
from whatif.models.quantities import FloatArray
from whatif.studies.search_space import Span, every_point, is_simulated, term_named
from whatif.studies.threshold import Target

MISSED: Final = 2.0
"""Least penalty of a point that misses a target; that of others is less than 1, and the least is the best."""
_MOST_CORNERS: Final = 8
_POLISHES: Final = 3
_WALK: Final = np.concatenate([np.linspace(0.0, 1.2, 121), 1.0 - np.geomspace(1e-15, 0.1, 80)])
"""Shares of the line to where targets bind at which a polish evaluates points."""
_GENERATIONS, _BATCH = 25, 8
"""Least number of generations of an evolution; points of a round if fewer fit."""
Progress = Callable[[int], None]
"""Receiver of the number of points evaluated so far."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Result, phase or parameter to minimise, or to maximise."""

    name: str
    least: bool = True


@dataclass(frozen=True, slots=True)
class SearchGoal:
    """Targets and objective of a search; by default the change, the sum of the squared logarithms of the factors."""

    targets: tuple[Target, ...]
    objective: Objective | None = None

    @property
    def names(self) -> list[str]:
        """Names of the results of the targets, then of the objective."""
        return [*(target.result for target in self.targets), *([self.objective.name] if self.objective else [])]

    def terms(self, program: Program) -> list[str]:
        """Terms of these results in a program."""
        return [term_named(name, program) for name in self.names]


def results_of(evaluation: Evaluation, terms: Sequence[str]) -> list[float]:
    """Values of terms at the first point, NaN if it is infeasible."""
    return [first_number(evaluation.numbers(term)) for term in terms]


class Population:
    """Points of the unit cube of the coordinates of all spans, evaluated; the best of all is kept.

    `before` are the present results of the targets and the objective, the scale of all penalties; if the objective has
    none, the first one that is found.
    """

    def __init__(
        self, program: Program, within: Sequence[Span], goal: SearchGoal, before: Sequence[float], progress: Progress
    ) -> None:
        self.program, self.within, self.goal, self.progress = program, within, goal, progress
        self.terms = goal.terms(program)
        self.chunk = 1 if is_simulated(program) else CHUNK_POINTS
        self.before = before
        self.size = 0.0
        self.count = 0
        self.best: tuple[float, FloatArray] = (np.inf, np.full(len(within), 0.5))

    def values(self, coordinates: FloatArray) -> dict[str, FloatArray]:
        """Parameters at points `coordinates` [point, span]."""
        return {span.path: span.at(coordinates[:, at]) for at, span in enumerate(self.within)}

    def penalties(self, coordinates: FloatArray) -> FloatArray:
        """Penalties [point] of points [point, span]."""
        return np.concatenate(
            [self._penalties(coordinates[at : at + self.chunk]) for at in range(0, len(coordinates), self.chunk)]
        )

    def _penalties(self, coordinates: FloatArray) -> FloatArray:
        aim, excess = self.aims(coordinates)
        missed = np.nan_to_num(np.maximum(excess, 0.0), nan=np.inf).sum(axis=1)
        missed[~np.isfinite(aim)] = np.inf
        found = np.where(missed > 0, MISSED + _squashed(missed), _squashed(aim))
        at = int(found.argmin())
        self.count += len(coordinates)
        if found[at] < self.best[0]:
            self.best = (float(found[at]), coordinates[at].copy())
        self.progress(self.count)
        return found

    def aims(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Objective [point], to minimise, and relative excess over the targets [point, target]."""
        values = self.values(coordinates)
        evaluation = evaluate(self.program, values)
        results = [np.broadcast_to(evaluation.numbers(term), len(coordinates)) for term in self.terms]
        excess = np.empty((len(coordinates), len(self.goal.targets)))
        for at, target in enumerate(self.goal.targets):
            beyond = results[at] - target.bound if target.at_most else target.bound - results[at]
            excess[:, at] = beyond / _scale(target.bound, self.before[at])
        if self.goal.objective is None:
            return change_of(self.within, values, len(coordinates)), excess
        self.size = self.size or _scale(self.before[-1], *results[-1].tolist(), default=0.0)
        aim = results[-1] / (self.size or 1.0)
        return aim if self.goal.objective.least else -aim, excess


def _scale(*sizes: float, default: float = 1.0) -> float:
    """First of some sizes that is finite and not 0."""
    return next((abs(size) for size in sizes if np.isfinite(size) and size != 0), default)


def _squashed(number: FloatArray) -> FloatArray:
    """Numbers mapped to -1 .. 1, in the same order."""
    finite = np.clip(number, -1e300, 1e300)
    return np.asarray(finite / (1.0 + np.abs(finite)))


def change_of(within: Sequence[Span], values: Mapping[str, FloatArray], count: int = 1) -> FloatArray:
    """Sum of the squared logarithms of the factors from the present values; for a parameter that can be 0 or less,
    of the squared differences, as shares of its range."""
    total = np.zeros(count)
    for span in within:
        value = values[span.path]
        if span.present > 0 and span.low > 0:
            total = total + np.log(value / span.present) ** 2
        else:
            total = total + ((value - span.present) / ((span.high - span.low) or 1.0)) ** 2
    return total


def evaluate_points(population: Population, seed: int, limit: int) -> None:
    """Evaluate all points if they are few; else a population that evolves, then the line to where targets bind."""
    within = population.within
    if np.prod([span.count for span in within]) <= limit:
        grids = [[span.coordinate(value) for value in span.grid(limit).tolist()] for span in within]
        population.penalties(every_point(grids))
        return
    first = _first(within, seed, limit)
    room = limit - _GENERATIONS * len(first)
    if room < 0:
        _close_in(population, first, seed, limit)
        return
    polishes = min(_POLISHES, room // len(_WALK))
    _evolve(population, first, seed, (limit - polishes * len(_WALK)) // len(first) - 1)
    if population.best[0] < MISSED:
        for _ in range(polishes):
            _polish(population)


def _first(within: Sequence[Span], seed: int, limit: int) -> FloatArray:
    """First population: the present point, the corners, and a Latin hypercube."""
    from scipy.stats import qmc

    size = len(within)
    count = min(max(15 * size, 40), max(limit // 5, 8), limit)
    present = np.array([[span.coordinate(span.present) for span in within]])
    corners = np.array(list(product((0.0, 1.0), repeat=min(size, _MOST_CORNERS))))
    # Of more parameters than that, the others are at one end together.
    corners = np.hstack([corners, np.repeat(corners[:, :1], size - corners.shape[1], axis=1)])
    drawn = qmc.LatinHypercube(size, seed=seed).random(count)
    return np.vstack([present, corners[: max(count // 2, 2)], drawn])[:count]


def _close_in(population: Population, first: FloatArray, seed: int, limit: int) -> None:
    """Evaluate few points: in each round some around the best one, ever closer to it."""
    population.penalties(first)
    random, rounds = np.random.default_rng(seed), (limit - len(first)) // _BATCH
    for side in np.geomspace(0.5, 1e-3, max(rounds, 0)):
        drawn = random.random((_BATCH, len(population.within))) - 0.5
        population.penalties(np.clip(population.best[1] + side * drawn, 0.0, 1.0))


def _evolve(population: Population, first: FloatArray, seed: int, generations: int) -> None:
    from scipy.optimize import differential_evolution

    def penalties(coordinates: Any) -> Any:
        return population.penalties(coordinates.T)

    ranges: Any = [(0.0, 1.0)] * len(population.within)
    differential_evolution(
        penalties, ranges, init=first, seed=seed, maxiter=generations, tol=0.0, atol=1e-13, polish=False,
        vectorized=True, updating="deferred",
    )  # fmt: skip


class _Section:
    """Continuous coordinates of the best point, for SLSQP; the whole and listed ones stay constant."""

    def __init__(self, population: Population) -> None:
        self.population, self.start = population, population.best[1]
        self.free = np.array([np.isinf(span.count) for span in population.within])

    def points(self, parts: FloatArray) -> FloatArray:
        """Points of free coordinates [point, coordinate], with the others."""
        whole = np.repeat(self.start[None, :], len(parts), axis=0)
        whole[:, self.free] = np.clip(parts, 0.0, 1.0)
        return whole

    def aims(self, parts: FloatArray) -> FloatArray:
        """Objective to minimise, [point]."""
        return self.population.aims(self.points(parts))[0]

    def aim(self, part: FloatArray) -> float:
        """Objective of one point."""
        return float(self.aims(part[None])[0])

    def rooms(self, parts: FloatArray) -> FloatArray:
        """Distances to the bounds of targets, negative if one is missed, [point, target]."""
        return -self.population.aims(self.points(parts))[1]

    def slopes(self, of: Callable[[FloatArray], FloatArray], part: FloatArray) -> FloatArray:
        """Derivatives by the free coordinates, [coordinate] or [target, coordinate], from one evaluation."""
        step = np.where(part > 0.5, -1e-7, 1e-7)
        found = of(np.vstack([part, part + np.diag(step)]))
        return np.asarray((found[1:] - found[0]).T / step)

    def best(self) -> FloatArray:
        """Point at which SLSQP ends; not finite if it fails."""
        from scipy.optimize import minimize

        limits = {
            "type": "ineq",
            "fun": lambda part: self.rooms(part[None])[0],
            "jac": lambda part: self.slopes(self.rooms, part),
        }
        options: dict[str, Any] = {"constraints": limits} if self.population.goal.targets else {}
        options |= {"method": "SLSQP", "options": {"ftol": 1e-14, "maxiter": 100}}
        options |= {"bounds": [(0.0, 1.0)] * int(self.free.sum()), "jac": lambda part: self.slopes(self.aims, part)}
        found = minimize(self.aim, self.start[self.free], **options)
        end: FloatArray = self.points(np.asarray(found.x, dtype=np.float64)[None])[0]
        return end


def _polish(population: Population) -> None:
    """Evaluate the line from the best point to where targets bind."""
    section = _Section(population)
    if not section.free.any():
        return
    end = section.best()
    if np.isfinite(end).all():
        population.penalties(np.clip(section.start + _WALK[:, None] * (end - section.start), 0.0, 1.0))
