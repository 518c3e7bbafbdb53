"""Attribution of the difference between two scenarios to the values that changed, independent of their order.

Any order of making the changes gives each one a step, and the steps add up to the difference; but the step of a change
depends on what was changed before. Its Shapley value is the mean over all orders (Shapley 1953, "A value for n-person
games", Eq. 13): phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S + i) - v(S)), where v(S) is the result of
the first scenario with the changes of S made. All v(S) are points of one or two evaluations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import factorial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Values, evaluate
from whatif.core.result import NO_NUMBER
from whatif.core.scenario import Scenario
from whatif.core.term import Program, common_dimension
from whatif.errors import InfeasiblePointError, abridged, require_choice, require_least
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import BarChart
from whatif.schema.parameters import Parameter
from whatif.studies.bar_charts import names_of, waterfall_bars
from whatif.studies.study_result import StudyResult
from whatif.table import Table, names_share, number_text, text_column
from whatif.units import ONE, SECOND, Dimension, format_quantity
from whatif.vocabulary import GROUPINGS, Grouping

Choices = NDArray[np.bool_]
Indices = NDArray[np.intp]
STRUCTURE: Final = "structure"
_MOST_EXACT: Final = 14
"""Most changes whose combinations are all evaluated: 16,384 points."""
_PAIRS: Final = 256
"""Orders drawn if there are more changes, each with its reverse, which lowers the variance."""
_CHUNK: Final = 16_384
"""Points evaluated at a time."""
_BAR_WIDTH, _CELL_WIDTH = 24, 20
_MOST_SHARE: Final = 5.0
"""Largest share of the difference, of a single change, that has a meaning."""
_SAME: Final = 1e-12
"""Relative difference up to which two results count as equal."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change and its contribution to the difference."""

    name: str
    """A parameter, a table of parameters, or `structure`: all that is not a number, such as a model or a phase."""
    before: str
    after: str
    contribution: float
    """In the result's unit; all contributions add up to the difference."""
    standard_error: float = 0.0
    """Standard error of the contribution from the orders drawn; 0 if it is exact."""


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(StudyResult):
    """Difference of a result between two scenarios, and the contribution of each change, largest first."""

    result: str
    before: float
    after: float
    changes: tuple[Change, ...]
    without_effect: tuple[str, ...]
    """Parameters, or tables of them, that differ and have no effect."""
    exact: bool
    """Whether every combination of changes was evaluated."""
    dimension: Dimension = SECOND
    seed: int = 0
    names: tuple[str, str] = ("before", "after")
    """Labels of the two scenarios in the picture."""
    optional_columns = (["waterfall"], ["then"], ["before", "after"])

    def table(self) -> Table:
        """One row per change: both values, contribution, share of the difference, and the result after it."""
        columns = {"change": None, "before": None, "after": None, "contribution": self.dimension}
        columns |= {} if self.exact else {"standard_error": self.dimension}
        total, rows = self.after - self.before, []
        for change, end in zip(self.changes, self._ends()[1:], strict=True):
            error = [] if self.exact else [change.standard_error]
            share = change.contribution / total if total else np.nan
            rows.append([change.name, change.before, change.after, change.contribution, *error, share, end])
        notes = {"before": f"{self.before!r}", "after": f"{self.after!r}"}
        shares = ("share", *(("contribution", "standard_error", "then") if names_share(self.result) else ()))
        return Table.of_rows({**columns, "share": ONE, "then": self.dimension}, rows, notes, shares)

    def readable_table(self) -> Table:
        """The table with short texts and a waterfall."""
        table = self.table()
        texts = {name: text_column(map(_short, table.columns[name].values)) for name in ("before", "after")}
        return replace(table, columns={**table.columns, **texts}).with_texts("waterfall", _waterfall(self._ends()))

    def _ends(self) -> list[float]:
        """Result before the first change, and after each change."""
        return list(accumulate((change.contribution for change in self.changes), initial=self.before))

    def picture(self) -> BarChart:
        """Waterfall from one result to the other."""
        return waterfall_bars(self, self.names)

    def summary(self) -> tuple[str, ...]:
        """Both results, and how the contributions were computed."""
        before, after = (number_text(self.result, number, self.dimension) for number in (self.before, self.after))
        moved = self.after - self.before
        points = f"{100 * moved:+.3g} points"
        difference = points if names_share(self.result) else format_quantity(moved, self.dimension, 4)
        change = f"{self.after / self.before - 1:+.1%}" if self.before else "from nothing"
        lines = [f"{self.result}: {before} -> {after} ({difference}, {change})"]
        if not self.exact:
            lines.append(f"{len(self.changes)} changes: mean over {2 * _PAIRS} orders, seed {self.seed}")
        if not self.changes:
            lines.append("nothing that differs has an effect")
        if self.without_effect:
            lines.append(f"{len(self.without_effect)} other values differ and have no effect")
        return tuple(lines)


def _short(text: str) -> str:
    return text if len(text) <= _CELL_WIDTH else f"{text[: _CELL_WIDTH - 2]}.."


def _waterfall(ends: list[float]) -> Iterator[str]:
    """Bar per change from the result before it to the result after it, all on one scale."""
    least, most = min(ends), max(ends)
    scale = _BAR_WIDTH / (most - least) if most > least else 0.0
    for start, end in pairwise(ends):
        left, right = sorted((round((start - least) * scale), round((end - least) * scale)))
        yield (" " * left + ("+" if end > start else "-") * max(right - left, 1)).ljust(_BAR_WIDTH + 1)


@dataclass(frozen=True, slots=True)
class _Group:
    """Parameters that change together; none for the structure."""

    name: str
    parameters: tuple[tuple[Parameter, Parameter], ...]
    before: str
    after: str


def attribute(
    first: Program, second: Program, result: str = "iteration_time", *, by_table: bool = False, seed: int = 0
) -> Attribution:
    """Contribution of each change to the difference in a result column or phase (`terms.NAME`).

    `by_table`: parameters of one table, such as `platform.node.gpu`, change together. Exact if up to 14 changes have an
    effect; else the mean over 512 orders drawn with `seed`. All that is not a number in both scenarios is one change,
    `structure`. Raise `UsageError` for an unknown result and for costs in two currencies, `InfeasiblePointError` if a
    scenario, or one between the two, has no result.
    """
    dimension = common_dimension(result, (program.dimension_of(result) for program in (first, second)))
    pairs, idle = _changed(first, second, result)
    groups = _tables(pairs) if by_table else [_group(a.path, [(a, b)]) for a, b in pairs]
    numbers = _Numbers(first, second, result, groups)
    before, after = numbers.at(np.array([[False] * (len(groups) + 1), [True] * (len(groups) + 1)])).tolist()
    moved = float(numbers.at(np.array([[True] * len(groups) + [False]]))[0])
    if abs(moved - after) > _SAME * abs(after):
        groups = [*groups, _structure(first, second, result)]
    contributions, errors, exact = _contributions(numbers, len(groups), before, after, seed)
    parts = zip(groups, contributions.tolist(), errors.tolist(), strict=True)
    changes = [Change(group.name, group.before, group.after, *part) for group, *part in parts]
    idle += tuple(change.name for change in changes if change.contribution == 0 and change.name != STRUCTURE)
    kept = (change for change in changes if change.contribution != 0)
    ordered = tuple(sorted(kept, key=lambda c: -abs(c.contribution)))
    return Attribution(result, before, after, ordered, idle, exact, dimension, seed)


def finest_attribution(first: Program, second: Program, result: str = "iteration_time") -> Attribution:
    """Attribution to parameters, or to whole tables if a value is infeasible without the others of its table."""
    try:
        return attribute(first, second, result)
    except InfeasiblePointError:
        return attribute(first, second, result, by_table=True)


def _contributions(
    numbers: _Numbers, count: int, before: float, after: float, seed: int
) -> tuple[FloatArray, FloatArray, bool]:
    """Contributions of all changes and their standard errors [change], and whether they are exact.

    Between two platforms many values change and few have an effect. If few enough changes contribute in the orders
    drawn, and their exact contributions add up to the difference, the others have no effect.
    """
    if count <= _MOST_EXACT:
        return _exact(numbers, np.arange(count), count), np.zeros(count), True
    contributions, errors = _drawn(numbers, count, seed)
    nothing = _SAME * max(abs(before), abs(after))
    active = np.flatnonzero(np.abs(contributions) + errors > nothing)
    if len(active) <= _MOST_EXACT:
        found = _exact(numbers, active, count)
        if abs(found.sum() - (after - before)) <= count * nothing:
            return found, np.zeros(count), True
    return contributions, errors, False


def _changed(first: Program, second: Program, result: str) -> tuple[list[tuple[Parameter, Parameter]], tuple[str, ...]]:
    """Numbers of both scenarios that differ: inputs of the result, and the paths of the others."""
    reached = first.inputs_of(first.term_of(result)) | second.inputs_of(second.term_of(result))
    both = [
        (parameter, second.parameters[path])
        for path, parameter in first.parameters.items()
        if path in second.parameters
    ]
    pairs = [(a, b) for a, b in both if a.independent and b.independent and float(a.value) != float(b.value)]
    idle = tuple(a.path for a, _ in pairs if a.path not in reached)
    return [(a, b) for a, b in pairs if a.path in reached], idle


def _group(name: str, parameters: Sequence[tuple[Parameter, Parameter]]) -> _Group:
    texts = [(a.text(4), b.text(4)) for a, b in parameters]
    if len(parameters) == 1:
        return _Group(name, tuple(parameters), *texts[0])
    return _Group(name, tuple(parameters), f"{len(parameters)} values", f"{len(parameters)} values")


def _tables(pairs: Sequence[tuple[Parameter, Parameter]]) -> list[_Group]:
    tables: dict[str, list[tuple[Parameter, Parameter]]] = {}
    for a, b in pairs:
        tables.setdefault(a.path.rpartition(".")[0] or a.path, []).append((a, b))
    return [_group(name, parameters) for name, parameters in tables.items()]


def _structure(first: Program, second: Program, result: str) -> _Group:
    """Differences other than numbers: choices, and values that only one scenario has."""
    texts = [_stated(program, other, result) for program, other in ((first, second), (second, first))]
    return _Group(STRUCTURE, (), *(abridged(text, 2) for text in texts))


def _stated(program: Program, other: Program, result: str) -> list[str]:
    """Choices and expressions that differ from the other scenario, and tables that it does not have."""
    inputs, found = program.inputs_of(program.term_of(result)), []
    for path, parameter in program.parameters.items():
        theirs = other.parameters.get(path)
        if theirs is None and path in inputs:
            found.append(path.rpartition(".")[0])
        elif (
            theirs is not None
            and (parameter.choices or parameter.field)
            and not (parameter.independent and theirs.independent)
        ):
            found.extend([f"{path}: {parameter.text()}"] if parameter.text() != theirs.text() else [])
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class _Numbers:
    """Evaluation of the result between both scenarios."""

    first: Program
    second: Program
    result: str
    groups: Sequence[_Group]

    def at(self, made: Choices) -> FloatArray:
        """Result [point] with the changes `made` [point, group]; a last column is the structure."""
        if made.shape[1] == len(self.groups):
            made = np.column_stack([made, np.zeros(len(made), dtype=bool)])
        found = np.empty(len(made))
        for program, chosen in ((self.first, ~made[:, -1]), (self.second, made[:, -1])):
            if chosen.any():
                found[chosen] = self._of(program, made[chosen])
        return found

    def _of(self, program: Program, made: Choices) -> FloatArray:
        parts = [self._chunk(program, made[at : at + _CHUNK]) for at in range(0, len(made), _CHUNK)]
        return np.concatenate(parts)

    def _chunk(self, program: Program, made: Choices) -> FloatArray:
        swept: Values = {
            a.path: np.where(made[:, at], float(b.value), float(a.value))
            for at, group in enumerate(self.groups)
            for a, b in group.parameters
        }
        evaluation = evaluate(program, swept)
        numbers = np.broadcast_to(evaluation.masked(program.term_of(self.result)), len(made))
        missing = ~np.isfinite(numbers)
        if missing.any():
            at = int(missing.argmax())
            reasons = evaluation.reason()
            reason = ("" if reasons is None else np.broadcast_to(reasons, len(made))[at]) or NO_NUMBER
            names = [group.name for group, yes in zip(self.groups, made[at], strict=False) if yes]
            raise InfeasiblePointError(f"infeasible with {_list(names)}: {reason}{_advice(names, self.groups)}")
        return numbers


def _list(names: Sequence[str]) -> str:
    if len(names) > 3:
        return f"{len(names)} of the changes, among them {', '.join(names[:2])}"
    return f"the changes of {', '.join(names)}" if names else "no change"


def _advice(names: Sequence[str], groups: Sequence[_Group]) -> str:
    between = 0 < len(names) < len(groups)
    return "; to make dependent changes together: --by table" if between else ""


def _exact(numbers: _Numbers, which: Indices, of: int) -> FloatArray:
    """Shapley values of some changes from all their combinations, without the others, whose values are 0."""
    count = len(which)
    codes = np.arange(1 << count)
    chosen = (codes[:, None] >> np.arange(count)) & 1 == 1
    made = np.zeros((len(codes), of), dtype=bool)
    made[:, which] = chosen
    found, sizes = numbers.at(made), chosen.sum(axis=1)
    weights = np.array([factorial(s) * factorial(count - s - 1) / factorial(count) for s in range(count)])
    contributions = np.zeros(of)
    for at, change in enumerate(which.tolist()):
        without = codes[~chosen[:, at]]
        contributions[change] = weights[sizes[without]] @ (found[without | 1 << at] - found[without])
    return contributions


def _drawn(numbers: _Numbers, count: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Mean contributions over random orders, each with its reverse, and their standard errors."""
    random = np.random.default_rng(seed)
    forward = np.array([random.permutation(count) for _ in range(_PAIRS)])
    orders = np.stack([forward, forward[:, ::-1]], axis=1).reshape(-1, count)
    places = np.argsort(orders, axis=1)
    made = places[:, None, :] < np.arange(count + 1)[:, None]
    found = numbers.at(made.reshape(-1, count)).reshape(len(orders), count + 1)
    steps = np.take_along_axis(np.diff(found, axis=1), places, axis=1)
    pairs = steps.reshape(_PAIRS, 2, count).mean(axis=1)
    return pairs.mean(axis=0), pairs.std(axis=0, ddof=1) / np.sqrt(_PAIRS)


def difference_study(first: Scenario, second: Scenario, result: str, by: Grouping, seed: int) -> Attribution:
    """Attribution of the difference in a result to the parameters, or tables of parameters, that changed."""
    require_choice("by", by, GROUPINGS)
    require_least("seed", seed, 0)
    name = first.program.result_name(result)
    found = attribute(first.program, second.program, name, by_table=by == "table", seed=seed)
    found = replace(found, names=names_of(first, second)).about(first, second)
    return replace(found, remarks=(*found.remarks, *_without_meaning(found, first, second)))


def _without_meaning(found: Attribution, first: Scenario, second: Scenario) -> Iterator[str]:
    """Warning about shares without meaning: of different applications, or of contributions that cancel."""
    one, other = (scenario.program.loaded.scenario.application.name for scenario in (first, second))
    largest = max((abs(change.contribution) for change in found.changes), default=0.0)
    total = abs(found.after - found.before)
    reason = f"{one} and {other} are different applications" if one != other else ""
    if not reason and total and largest > _MOST_SHARE * total:
        reason = f"contributions of up to {largest / total:,.3g} times the difference cancel each other"
    if reason and found.changes:
        advice = "`whatif differences` shows results and values side by side"
        yield f"warning: {reason}, so that shares of the difference have no meaning; {advice}"
