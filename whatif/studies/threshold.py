"""Targets of results, and the value of one parameter that meets one: the nearest to the present value, on either side.

A result need not increase or decrease steadily with the parameter, so that a grid over the whole range is evaluated
first; then the bracket between the last value that misses the target and the first that meets it is narrowed. Results
over whole numbers jump: a number of ranks that divides the grid has a result, the next one has none. Of these all that
are nearer are tried, too, as far as that takes seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.result import NO_NUMBER
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.quantities import FloatArray
from whatif.schema.parameters import Parameter
from whatif.studies.bracketing import narrowed
from whatif.studies.search_space import (
    ends,
    idle_parameter,
    own_number,
    phase_times,
    quantity_named,
    reached_by,
    term_named,
)
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, SECOND, Dimension, UnitError, customary_unit, format_quantity, parse_quantity, parse_share

Choices = NDArray[np.bool_]
_TARGET: Final = re.compile(r"\s*(?P<result>[\w.]+)\s*(?P<sense><=|>=|<|>)\s*(?P<bound>.+?)\s*")
_POINTS: Final = 2049
"""Points of the grid on which a target is looked for first."""
_PART: Final = 256
"""Values that are evaluated at a time; placing ranks takes about 10 ms for each number of them."""
_PARTS, _ROUNDS = 128, 6
"""Parts of a bracket in each round, and the rounds: to 10^-12 of a distance of the grid."""
_MOST_NUMBERS: Final = 20_000
_MOST_SUM: Final = 3e6
"""Largest sum of the whole numbers that are tried: placing ranks takes time by rank."""


@dataclass(frozen=True, slots=True)
class Target:
    """Upper or lower bound of a result, in base units."""

    result: str
    at_most: bool
    bound: float
    dimension: Dimension = SECOND

    def met(self, numbers: FloatArray) -> Choices:
        """Whether results meet the target, elementwise; NaN meets none."""
        return numbers <= self.bound if self.at_most else numbers >= self.bound

    def costs(self, numbers: FloatArray) -> FloatArray:
        """Numbers that are the less the better a result is, elementwise; infinite without a result."""
        return np.where(np.isfinite(numbers), numbers if self.at_most else -numbers, np.inf)

    def __str__(self) -> str:
        return f"{self.result} {'<=' if self.at_most else '>='} {format_quantity(self.bound, self.dimension, 4)}"


@dataclass(frozen=True, eq=False, repr=False)
class SeekResult(StudyResult):
    """Value of one parameter that meets a target, the nearest to the present one; else the closest to the target."""

    target: Target
    parameter: Parameter
    value: float
    """In base units."""
    now: float
    """Result at the present value; NaN without one."""
    then: float
    """Result at `value`."""
    is_met: bool
    phases: Mapping[str, float]
    """Times of the phases at `value`, the longest first: for a target that is not met, the obstacles."""
    ends: tuple[float, float]
    """Ends of the range that was searched, in base units."""
    tried_all: bool = True
    """Whether all whole numbers were tried that could be nearer, or could meet a target that is not met."""
    optional_columns = (["factor"],)

    @property
    def values(self) -> Mapping[str, float]:
        """The value by the path of its parameter, in base units."""
        return {self.parameter.path: self.value}

    def table(self) -> Table:
        """One row: the parameter with its present and its new value, their factor, and both results."""
        present, result = float(self.parameter.value), self.target.result
        unit = self.parameter.dimension
        columns = {"parameter": None, "now": unit, "sought": unit, "factor": ONE}
        columns |= dict.fromkeys((f"{result} now", f"{result} then"), self.target.dimension)
        factor = self.value / present if present else math.nan
        return Table.of_rows(columns, [[self.parameter.path, present, self.value, factor, self.now, self.then]])

    def summary(self) -> tuple[str, ...]:
        """Remark on a target that the present value meets, or on whole numbers that were not tried."""
        if not self.is_met:
            return ()
        unchanged = self.value == float(self.parameter.value)
        doubt = () if self.tried_all else (f"not all nearer values of {self.parameter.path} were tried",)
        return (f"{self.target} is already met",) if unchanged else doubt

    def obstacle(self) -> str:
        """Closest result to a target that is not met, and the longest phases there."""
        if self.is_met:
            return ""
        then = format_quantity(self.then, self.target.dimension, 4)
        value, *ends = (format_quantity(its, self.parameter.dimension, 4) for its in (self.value, *self.ends))
        doubt = "" if self.tried_all else "; not all whole numbers were tried"
        return (
            f"no value of {self.parameter.path} from {' to '.join(ends)} meets {self.target}: "
            f"at best it is {then}, at {value}; longest phases: {longest(self.phases)}{doubt}"
        )


def longest(phases: Mapping[str, float]) -> str:
    """Names and times of the two longest phases, the longest first."""
    return ", ".join(f"{name} {format_quantity(seconds, SECOND, 3)}" for name, seconds in list(phases.items())[:2])


def parse_target(text: str, program: Program) -> Target:
    """Target of a text: `iteration_time <= 5 ms`, `terms.halo < 80 %` (of the present result), `total_time >= 1 s`.

    Raise `UsageError` for any other text, `InfeasiblePointError` for a share of a result that has no number.
    """
    match = _TARGET.fullmatch(text)
    if match is None:
        raise UsageError(f"target `{text}`: expected RESULT <= TIME, such as `iteration_time <= 5 ms` or `<= 80 %`")
    term, dimension = quantity_named(match["result"], program)
    at_most = match["sense"] in ("<=", "<")
    if match["bound"].endswith("%"):
        share = parse_share(match["bound"])
        if share is None:
            raise UsageError(f"target `{text}`: `{match['bound']}` is not a share")
        now = float(evaluate(program).numbers(term))
        if not math.isfinite(now):
            raise InfeasiblePointError(f"infeasible: target `{text}`: {match['result']} has no number at present")
        return Target(match["result"], at_most, share * now, dimension)
    try:
        bound = parse_quantity(match["bound"])
    except UnitError as error:
        raise UsageError(f"target `{text}`: {error}") from None
    if bound.dimension != dimension:
        if bound.dimension == ONE:
            unit = customary_unit(0.0, dimension)[0]
            wanted = f"write a quantity in {unit}, such as `{match['bound']} {unit}`"
            raise UsageError(f"target `{text}`: `{match['bound']}` has no unit; {wanted}")
        raise UsageError(f"target `{text}`: {match['result']} is in {dimension}; `{match['bound']}` is not")
    return Target(match["result"], at_most, bound.value, dimension)


def seek(
    program: Program, path: str, target: Target, low: float | None = None, high: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> SeekResult:  # fmt: skip
    """Value of a parameter that meets a target, the nearest to the present one, between two ends in base units.

    Distances are factors, or differences if values may be 0 or less. By default the ends are a thousandth of the
    present value and a thousand times it, within the domain of the parameter. `progress` receives how many values are
    tried. Raise `UsageError` for a parameter that is not a number, is computed from others or has no effect, and for
    an empty range.
    """
    parameter = _parameter(program, path, target)
    term = term_named(target.result, program)
    first, last = ends(parameter, low, high)
    now = float(evaluate(program).numbers(term))
    present = float(parameter.value)
    if first <= present <= last and target.met(np.array(now)):
        return _sought(program, target, parameter, (first, last), present, now)
    grid = _grid(parameter, first, last)
    numbers, obstacle = _numbers(program, path, grid, term, progress)
    met = target.met(numbers)
    value = _closest(grid, numbers, obstacle, target, parameter) if not met.any() else None
    if value is None:
        at = int(np.where(met, _distance(grid, present), np.inf).argmin())
        value = _narrowed(program, target, parameter, _before(grid, at, present), float(grid[at]))
    assert parameter.field is not None
    found = _sought(program, target, parameter, (first, last), value, now)
    return _among_whole(program, found, progress) if parameter.field.domain.whole else found


def _numbers(
    program: Program, path: str, values: FloatArray, term: str, progress: Callable[[str], None] | None
) -> tuple[FloatArray, str]:
    """Results at values of a parameter, computed part by part, and why none of them is a number."""
    evaluations: list[Evaluation] = []
    numbers: list[FloatArray] = []
    for at in range(0, values.size, _PART):
        if progress is not None:
            progress(f"{at:,} of {values.size:,} values of {path} are tried")
        part = values[at : at + _PART]
        evaluations.append(evaluate(program, {path: part}))
        numbers.append(np.broadcast_to(evaluations[-1].numbers(term), part.shape))
    found = np.concatenate(numbers)
    reasons = () if np.isfinite(found).any() else dict.fromkeys(its.obstacle() for its in evaluations)
    return found, "; ".join(filter(None, reasons))


def _among_whole(program: Program, found: SeekResult, progress: Callable[[str], None] | None) -> SeekResult:
    """Nearest whole number that meets a target, or the one with the best result, if it is better than the one found."""
    target, parameter, (first, last) = found.target, found.parameter, found.ends
    present = float(parameter.value)
    if found.is_met:
        far = _distance(np.array([found.value, first]), present)[0]
        by_factor = min(first, present) > 0
        low, high = (present / np.exp(far), present * np.exp(far)) if by_factor else (present - far, present + far)
        first, last = max(first, low), min(last, high)
    near, is_all = near_numbers(present, first, last)
    candidates = np.append(near, found.value)
    numbers, _ = _numbers(program, parameter.path, candidates, term_named(target.result, program), progress)
    value = float(candidates[np.where(target.met(numbers), -np.inf, target.costs(numbers)).argmin()])
    return replace(_sought(program, target, parameter, found.ends, value, found.now), tried_all=is_all)


def _parameter(program: Program, path: str, target: Target) -> Parameter:
    from whatif.core.sweep import swept_parameter

    parameter = own_number(path, swept_parameter(path, program))
    if path not in reached_by(program, [target.result]):
        raise idle_parameter(path, [target.result])
    return parameter


def _grid(parameter: Parameter, first: float, last: float) -> FloatArray:
    """Values of the range in order, with a constant factor between neighbours; whole numbers if required."""
    assert parameter.field is not None
    domain = parameter.field.domain
    grid = np.geomspace(first, last, _POINTS) if first > 0 else np.linspace(first, last, _POINTS)
    if domain.whole:
        grid = np.append(np.round(grid), _spread_numbers(first, last))
    grid = np.unique(np.append(grid, np.clip(float(parameter.value), first, last)))
    return np.array(grid[domain.accepts(grid)])


def _before(grid: FloatArray, at: int, present: float) -> float:
    """Value of the grid next to a place, on the side of the present value; that of the place at an end of the grid."""
    neighbour = at + (1 if grid[at] < present else -1)
    return float(grid[min(max(neighbour, 0), len(grid) - 1)])


def _narrowed(program: Program, target: Target, parameter: Parameter, missing: float, meeting: float) -> float:
    """First value that meets a target, from one that misses it to one that meets it."""
    assert parameter.field is not None
    term = term_named(target.result, program)

    def met(places: FloatArray) -> Choices:
        numbers = evaluate(program, {parameter.path: places.ravel()}).numbers(term)
        return target.met(np.broadcast_to(numbers, places.size)).reshape(places.shape)

    rounding = np.round if parameter.field.domain.whole else None
    ends = np.array([missing]), np.array([meeting])
    return float(narrowed(*ends, met, parts=_PARTS, rounds=_ROUNDS, rounding=rounding)[1][0])


def _closest(grid: FloatArray, then: FloatArray, obstacle: str, target: Target, parameter: Parameter) -> float:
    if not np.isfinite(then).any():
        between = " and ".join(format_quantity(end, parameter.dimension, 4) for end in (grid[0], grid[-1]))
        why = obstacle or NO_NUMBER
        raise InfeasiblePointError(f"infeasible: no value of {parameter.path} between {between} has an answer: {why}")
    return float(grid[target.costs(then).argmin()])


def _sought(
    program: Program, target: Target, parameter: Parameter, ends: tuple[float, float], value: float, now: float
) -> SeekResult:
    evaluation = evaluate(program, {parameter.path: np.array([value])})
    then = float(evaluation.numbers(term_named(target.result, program))[0])
    met = bool(target.met(np.array(then)))
    return SeekResult(target, parameter, value, now, then, met, phase_times(evaluation), ends)


def _distance(numbers: FloatArray, present: float) -> FloatArray:
    """Distance from a present value: the logarithm of a factor, or a difference if any of the values is 0 or less."""
    by_factor = min(float(np.min(numbers, initial=np.inf)), present) > 0
    return np.abs(np.log(numbers / present) if by_factor else numbers - present)


def near_numbers(present: float, first: float, last: float) -> tuple[FloatArray, bool]:
    """Whole numbers from `first` to `last`, those that are nearest to `present` in factor or difference first, and
    whether none was left out."""
    middle = min(max(round(present), first), last)
    low, high = max(np.ceil(first), middle - _MOST_NUMBERS), min(np.floor(last), middle + _MOST_NUMBERS)
    numbers = np.arange(low, high + 1, dtype=np.float64)
    nearest = numbers[np.argsort(_distance(numbers, present), kind="stable")]
    tried = nearest[np.cumsum(np.abs(nearest)) <= _MOST_SUM][:_MOST_NUMBERS]
    return tried, tried.size == max(np.floor(last) - np.ceil(first) + 1, 0)


def _spread_numbers(first: float, last: float) -> FloatArray:
    """Powers of two of a range, and three times these: numbers that divide many others."""
    powers = 2.0 ** np.arange(1024)
    found = np.union1d(powers, 3 * powers[:1022])
    return found[(found >= first) & (found <= last)]
