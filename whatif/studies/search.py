"""Search over several parameters and choices: points that meet all targets, and the best of them as a table.

Every combination of choices is a program of its own with its own search (`whatif.studies.population`), a heuristic for
the global optimum. The same seed gives the same answer; another one may give a better one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.parts_in_use import parts_in_use
from whatif.core.scenario import Scenario
from whatif.core.sweep import PLATFORM_PARAMETER
from whatif.studies.population import MISSED, Population, SearchGoal, change_of, evaluate_points, results_of
from whatif.studies.search_space import Combination, Span, Varied, is_simulated, phase_times, prepared, quantity_named
from whatif.studies.study_result import StudyResult
from whatif.studies.threshold import Target, longest
from whatif.table import Table
from whatif.units import ONE, Dimension, format_quantity

POINTS, SIMULATED_POINTS = 20_000, 200
"""Points of each combination of choices: computed, and simulated message by message."""
_BINDS: Final = 1e-6
"""Relative distance of a result from the bound of a target up to which the target binds."""
_DIGITS: Final = 5


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


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult(StudyResult):
    """Answers of all combinations of choices, the best first."""

    scenario: Scenario
    goal: SearchGoal
    answers: tuple[Optimum, ...]
    """One per combination; empty if no combination is feasible."""
    infeasible: tuple[Combination, ...]
    """Combinations that do not compile, with their reasons."""
    seed: int
    optional_columns = (["factor"], ["now"])

    @property
    def best(self) -> Optimum | None:
        """The best answer; None if no combination is feasible."""
        return self.answers[0] if self.answers else None

    @property
    def values(self) -> Mapping[str, float]:
        """Parameters of the best answer by path, in base units."""
        return self.best.values if self.best is not None else {}

    @property
    def choices(self) -> Mapping[str, str]:
        """Choices of the best answer by path."""
        return self.best.combination.choices if self.best is not None else {}

    @property
    def is_met(self) -> bool:
        """Whether the best answer meets all targets."""
        return self.best is not None and self.best.is_met

    @property
    def points(self) -> int:
        """Number of points evaluated."""
        return sum(answer.points for answer in self.answers)

    def table(self) -> Table:
        """One row per choice, parameter and result of the best answer: present and new value, factor, remark."""
        return _table(self, readable=False)

    def readable_table(self) -> Table:
        """The table with values and their units as texts."""
        return _table(self, readable=True)

    def summary(self) -> tuple[str, ...]:
        """Infeasible combinations, the other answers, and the number of points."""
        lines = [f"{combination}: infeasible: {combination.reason}" for combination in self.infeasible]
        lines += [f"next best: {_in_words(answer, self)}" for answer in self.answers[1:]]
        count = len(self.answers)
        searches = f"{self.points:,} points in {count} search{'es' * (count > 1)}; seed {self.seed}"
        return (*lines, *([searches] if count else []))

    def obstacle(self) -> str:
        """Closest results to targets that are not met, and the longest phases there."""
        if self.best is None:
            return "infeasible: no combination of these choices is feasible"
        return "" if self.best.is_met else _obstacle(self.best, self)

    def interruption(self) -> str:
        """Remark on a search that ended early."""
        if all(answer.ended for answer in self.answers):
            return ""
        so_far = "this is" if self.is_met else "nothing met the targets as"
        return f"interrupted; {so_far} the best of the first {self.points:,} points"

    def dimensions(self, names: Iterable[str]) -> dict[str, Dimension]:
        """Dimensions of results, phases and parameters."""
        return {name: quantity_named(name, self.scenario.program)[1] for name in names}


def _obstacle(answer: Optimum, found: SearchResult) -> str:
    if not all(math.isfinite(number) for number in answer.then.values()):
        why = f": {answer.reason}" if answer.reason else ""
        return f"infeasible: no point of these ranges has a number for {' and '.join(answer.then)}{why}"
    wanted, where = " and ".join(map(str, found.goal.targets)), _values(answer)
    return (
        f"nothing in these ranges meets {wanted}: at best {_results(answer, found)}"
        f"{f', at {where}' if where else ''}; longest phases: {longest(answer.phases)}"
    )


def _in_words(answer: Optimum, found: SearchResult) -> str:
    missed = " and ".join(str(target) for target in found.goal.targets if answer.misses(target))
    results = _results(answer, found)
    return f"{_values(answer)}: {f'misses {missed}, at best {results}' if missed else results}"


def _values(answer: Optimum) -> str:
    """Choices and parameters of an answer in one line."""
    numbers = {
        span.path: format_quantity(answer.values[span.path], span.parameter.dimension, 4) for span in answer.spans
    }
    return ", ".join(f"{path}={text}" for path, text in {**answer.combination.choices, **numbers}.items())


def _results(answer: Optimum, found: SearchResult) -> str:
    dimensions = found.dimensions(answer.then)
    return ", ".join(f"{name} is {format_quantity(answer.then[name], dimensions[name], 4)}" for name in answer.then)


@dataclass(frozen=True, slots=True)
class _Row:
    """Present and new number of a parameter or result, or texts of a choice."""

    name: str
    now: float | str
    then: float | str
    dimension: Dimension | None = None
    note: str = ""

    @property
    def factor(self) -> float:
        """Quotient of the numbers; NaN without one."""
        if isinstance(self.now, str) or isinstance(self.then, str) or not self.now or not math.isfinite(self.now):
            return math.nan
        return self.then / self.now

    def cells(self, *, readable: bool) -> list[Any]:
        """Cells of the table: a readable one has units in its texts, the other one in a column."""
        values = [_cell(value, self.dimension, readable=readable) for value in (self.now, self.then)]
        unit = [] if readable else ["" if self.dimension is None else str(self.dimension)]
        return [self.name, *unit, *values, self.factor, self.note]


def _cell(value: float | str, dimension: Dimension | None, *, readable: bool) -> float | str | None:
    if isinstance(value, str) or dimension is None:
        return value
    if not math.isfinite(value):
        return None
    return format_quantity(value, dimension, _DIGITS) if readable else value


def _table(found: SearchResult, *, readable: bool) -> Table:
    unit = {} if readable else {"unit": None}
    columns = {"name": None, **unit, "now": None, "sought": None, "factor": ONE, "note": None}
    best = found.best
    if best is None:
        return Table.of_rows(columns, [])
    notes = {"change": format_quantity(best.change, ONE, 6), "points": str(best.points)}
    return Table.of_rows(columns, [row.cells(readable=readable) for row in _rows(best, found)], notes)


def _rows(answer: Optimum, found: SearchResult) -> Iterator[_Row]:
    """Choices, parameters and results of an answer."""
    program = found.scenario.program
    present = {path: float(array) for path, array in program.numbers.items()}
    for path, text in answer.combination.choices.items():
        yield _Row(path, present_choice(found.scenario, path), text)
    for span in answer.spans:
        end = answer.at_end(span.path)
        note = "; ".join([*([f"at its {end} end"] if end else []), *_notes(answer, found.goal, span.path)])
        now = present.get(span.path, math.nan)
        yield _Row(span.path, now, answer.values[span.path], span.parameter.dimension, note)
    for name, dimension in found.dimensions(answer.then).items():
        if name not in answer.values:
            note = "; ".join(_notes(answer, found.goal, name))
            yield _Row(name, answer.before[name], answer.then[name], dimension, note)


def _notes(answer: Optimum, goal: SearchGoal, name: str) -> list[str]:
    """Targets and objective of a parameter or result, and whether they bind."""
    targets = [target for target in goal.targets if target.result == name]
    notes = [f"{target}{', binds' * answer.binds(target)}".removeprefix(f"{name} ") for target in targets]
    if goal.objective is not None and goal.objective.name == name:
        notes.append("minimised" if goal.objective.least else "maximised")
    return notes
