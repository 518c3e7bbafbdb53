"""Search over several parameters and choices: points that meet all targets, and the best of them.

Every combination of choices is a program of its own with its own search (`whatif.studies.population`), a heuristic for
the global optimum. The same seed gives the same answer; another one may give a better one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.parts_in_use import parts_in_use
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.studies.population import MISSED, Population, SearchGoal, change_of, evaluate_points, results_of
from whatif.studies.search_space import Combination, Span, Varied, is_simulated, phase_times, prepared
from whatif.studies.threshold import Target

POINTS, SIMULATED_POINTS = 20_000, 200
"""Points of each combination of choices: computed, and simulated message by message."""
_BINDS: Final = 1e-6
"""Relative distance of a result from the bound of a target up to which the target binds."""


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Best point of one combination of choices, or the closest one to the targets."""

    combination: Combination
    spans: tuple[Span, ...]
    values: Mapping[str, float]
    """Parameters that were varied, in base units."""
    before: Mapping[str, float]
    """Results of the targets and the objective at the present values; NaN without one."""
    then: Mapping[str, float]
    """The same results at this point."""
    change: float
    """Sum of the squared logarithms of the factors of all parameters."""
    penalty: float
    """Rank of an answer, the least is the best; at least 2 if it misses a target."""
    phases: Mapping[str, float]
    """Times of the phases, the longest first."""
    points: int
    """Number of points evaluated."""
    reason: str = ""
    """Reason why the point is infeasible; empty if it is feasible."""
    ended: bool = True
    """Whether the search was complete, without an interruption."""

    @property
    def is_met(self) -> bool:
        """Whether the point meets all targets."""
        return self.penalty < MISSED

    def misses(self, target: Target) -> bool:
        """Whether the point misses a target."""
        return not bool(target.met(np.array(self.then[target.result])))

    def binds(self, target: Target) -> bool:
        """Whether the result is at the bound of a target."""
        return abs(self.then[target.result] - target.bound) <= _BINDS * abs(target.bound)

    def at_end(self, path: str) -> str:
        """`lower` or `upper` if a parameter is at an end of its range or list, else empty."""
        span, value = next(span for span in self.spans if span.path == path), self.values[path]
        near = 1e-9 * (value if span.low > 0 else span.high - span.low)
        return "lower" if value <= span.low + near else "upper" if value >= span.high - near else ""


def search(
    scenario: Scenario, varied: Sequence[Varied], goal: SearchGoal, seed: int = 0, points: int | None = None,
    progress: Callable[[Combination, int], None] = lambda combination, count: None,
) -> Iterator[Optimum | Combination]:  # fmt: skip
    """Answer of each combination of choices, or the combination if it is infeasible; ends after an interruption.

    `progress` receives each combination and its number of evaluated points. Raise `UsageError` for a parameter without
    any effect.
    """
    before = results_of(evaluate(scenario.program), goal.terms(scenario.program))
    for combination, within in prepared(scenario, varied, goal.names):
        program = combination.program
        if program is None:
            yield combination
            continue
        limit = points or (SIMULATED_POINTS if is_simulated(program) else POINTS)
        population = Population(program, within, goal, before, partial(progress, combination))
        answer = _searched(combination, population, seed, limit)
        yield answer
        if not answer.ended:
            return


def ranked(answers: Sequence[Optimum], goal: SearchGoal, scenario: Scenario) -> list[Optimum]:
    """Answers in order, the best first; without an objective, those with the fewest changed choices."""

    def others(answer: Optimum) -> int:
        return sum(text != present_choice(scenario, path) for path, text in answer.combination.choices.items())

    def aim(answer: Optimum) -> float:
        # If the objective has no present number, the penalties of combinations have different scales.
        if objective is None or not answer.is_met:
            return answer.penalty
        return answer.then[objective.name] if objective.least else -answer.then[objective.name]

    objective = goal.objective
    if objective is not None:
        return sorted(answers, key=lambda answer: (not answer.is_met, aim(answer)))
    return sorted(
        answers, key=lambda answer: (not answer.is_met, others(answer) if answer.is_met else 0, answer.penalty)
    )


def present_choice(scenario: Scenario, path: str) -> str:
    """Present text of a choice, such as the name of a part; empty if the files do not state it."""
    if path == PLATFORM_PARAMETER:
        return scenario.platform_name or ""
    if path in scenario.overrides:
        return str(scenario.overrides[path])
    program = scenario.program
    if path in program.parameters:
        return program.parameters[path].text()
    parts = parts_in_use(program.loaded)
    if path in parts:
        return parts[path]
    found: Any = program.loaded.layers.merged
    for key in path.split("."):
        found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, str) else ""


def _searched(combination: Combination, population: Population, seed: int, limit: int) -> Optimum:
    ended = True
    try:
        evaluate_points(population, seed, limit)
    except KeyboardInterrupt:
        if not population.count:
            raise
        ended = False
    return _answer(combination, population, ended)


def _answer(combination: Combination, population: Population, ended: bool) -> Optimum:
    penalty, coordinates = population.best
    values = population.values(coordinates[None, :])
    evaluation = evaluate(population.program, values)
    return Optimum(
        combination,
        tuple(population.within),
        {path: float(array[0]) for path, array in values.items()},
        dict(zip(population.goal.names, population.before, strict=True)),
        dict(zip(population.goal.names, results_of(evaluation, population.terms), strict=True)),
        float(change_of(population.within, values)[0]),
        penalty,
        phase_times(evaluation),
        population.count,
        evaluation.obstacle(),
        ended,
    )
