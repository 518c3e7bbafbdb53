"""Search over several parameters and choices: what meets all targets, and of that the best.

Every combination of choices is a program of its own and is searched by itself (`whatif.studies.population`): a global
method without a proof. The same seed gives the same answer, another one may find a better one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.schema.load import stated_platform
from whatif.studies.population import MISSED, Population, Wish, change_of, look, results_of
from whatif.studies.search_space import Combination, Span, Varied, is_played, phase_times, prepared
from whatif.studies.threshold import Target

POINTS, PLAYED_POINTS = 20_000, 200
"""Points that are evaluated for each combination of choices, and where each is played message by message."""
_BINDS: Final = 1e-6
"""A target binds where the result is so near to its bound, relative to it."""


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best point of one combination of choices, or the one that comes closest to the targets."""

    combination: Combination
    spans: tuple[Span, ...]
    values: Mapping[str, float]
    """Of the parameters that were moved, in base units."""
    before: Mapping[str, float]
    """The results that are asked about, as the question stands; NaN where there is none."""
    then: Mapping[str, float]
    change: float
    """The sum of the squared logarithms of the factors of all parameters."""
    worth: float
    """What answers are ranked by, the least first; from 2 on it misses a target."""
    phases: Mapping[str, float]
    points: int
    """How many were evaluated."""
    reason: str = ""
    """Why the point cannot exist; empty where it can."""
    ended: bool = True
    """Whether the search came to its end, and was not interrupted."""

    @property
    def is_met(self) -> bool:
        """Whether the point meets all targets."""
        return self.worth < MISSED

    def misses(self, target: Target) -> bool:
        """Whether it misses a target."""
        return not bool(target.met(np.array(self.then[target.result])))

    def binds(self, target: Target) -> bool:
        """Whether the result is at the bound of a target."""
        return abs(self.then[target.result] - target.bound) <= _BINDS * abs(target.bound)

    def at_end(self, path: str) -> str:
        """`lower` or `upper` where a parameter is at an end of its range or list, else empty."""
        span, value = next(span for span in self.spans if span.path == path), self.values[path]
        near = 1e-9 * (span.high - span.low)
        return "lower" if value <= span.low + near else "upper" if value >= span.high - near else ""


def search(
    question: Scenario, varied: Sequence[Varied], wish: Wish, seed: int = 0, points: int | None = None,
    progress: Callable[[Combination, int], None] = lambda combination, count: None,
) -> Iterator[Optimum | Combination]:  # fmt: skip
    """Answer of each combination of choices, or the combination if it is infeasible; ends after an interruption.

    `progress` receives each combination and its number of evaluated points. Raise `UsageError` for a parameter without
    any effect.
    """
    before = results_of(evaluate(question.program), wish.terms(question.program))
    for combination, within in prepared(question, varied, wish.names):
        program = combination.program
        if program is None:
            yield combination
            continue
        limit = points or (PLAYED_POINTS if is_played(program) else POINTS)
        population = Population(program, within, wish, before, partial(progress, combination))
        answer = _searched(combination, population, seed, limit)
        yield answer
        if not answer.ended:
            return


def ranked(answers: Sequence[Optimum], wish: Wish, question: Scenario) -> list[Optimum]:
    """The best first; without an objective, those with the fewest other choices."""

    def others(answer: Optimum) -> int:
        return sum(text != present_choice(question, path) for path, text in answer.combination.choices.items())

    def aim(answer: Optimum) -> float:
        # Where the objective has no number now, each combination's worths are in units of their own.
        if objective is None or not answer.is_met:
            return answer.worth
        return answer.then[objective.name] if objective.least else -answer.then[objective.name]

    objective = wish.objective
    if objective is not None:
        return sorted(answers, key=lambda answer: (not answer.is_met, aim(answer)))
    return sorted(answers, key=lambda answer: (not answer.is_met, others(answer) if answer.is_met else 0, answer.worth))


def present_choice(question: Scenario, path: str) -> str:
    """What a choice is as the question stands; empty where the files do not say it."""
    if path == PLATFORM_PARAMETER:
        return question.platform or stated_platform(question.document, question.folders) or ""
    if path in question.sets:
        return str(question.sets[path])
    parameter = question.program.parameters.get(path)
    if parameter is not None:
        return parameter.text()
    found: Any = question.program.loaded.layers.merged
    for key in path.split("."):
        found = found.get(key, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, str) else ""


def _searched(combination: Combination, population: Population, seed: int, limit: int) -> Optimum:
    ended = True
    try:
        look(population, seed, limit)
    except KeyboardInterrupt:
        if not population.count:
            raise
        ended = False
    return _answer(combination, population, ended)


def _answer(combination: Combination, population: Population, ended: bool) -> Optimum:
    worth, ways = population.best
    values = population.values(ways[None, :])
    evaluation = evaluate(population.program, values)
    return Optimum(
        combination,
        tuple(population.within),
        {path: float(array[0]) for path, array in values.items()},
        dict(zip(population.wish.names, population.before, strict=True)),
        dict(zip(population.wish.names, results_of(evaluation, population.terms), strict=True)),
        float(change_of(population.within, values)[0]),
        worth,
        phase_times(evaluation),
        population.count,
        "; ".join(evaluation.reasons()),
        ended,
    )
