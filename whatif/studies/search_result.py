"""Result of a search over several parameters and choices: the best answer as a table, the others in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from whatif.core.scenario import Scenario
from whatif.studies.population import SearchGoal
from whatif.studies.search import Optimum, present_choice
from whatif.studies.search_space import Combination, quantity_named
from whatif.studies.study_result import StudyResult
from whatif.studies.threshold import longest
from whatif.table import Table
from whatif.units import ONE, Dimension, format_quantity

_DIGITS: Final = 5


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
