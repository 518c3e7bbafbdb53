"""The value of one parameter that meets a target: the one nearest to the present value, to either side.

The result need not follow the parameter in one direction only: it is looked for on a grid over the whole range first,
then between the last value that misses the target and the first that meets it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.result import NO_NUMBER
from whatif.core.term import Program
from whatif.errors import ImpossiblePointError, UsageError
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
from whatif.units import SECOND, Dimension, UnitError, format_quantity, parse_quantity, parse_share

Choices = NDArray[np.bool_]
_TARGET: Final = re.compile(r"\s*(?P<result>[\w.]+)\s*(?P<sense><=|>=|<|>)\s*(?P<bound>.+?)\s*")
_POINTS: Final = 2049
"""Points of the grid on which a target is looked for first."""
_PARTS, _ROUNDS = 128, 6
"""Parts of a bracket in each round, and the rounds: to 10^-12 of a distance of the grid."""


@dataclass(frozen=True, slots=True)
class Target:
    """A result that is to be at most, or at least, a bound in base units."""

    result: str
    at_most: bool
    bound: float
    dimension: Dimension = SECOND

    def met(self, numbers: FloatArray) -> Choices:
        """Elementwise; a point without a number meets no target."""
        return numbers <= self.bound if self.at_most else numbers >= self.bound

    def __str__(self) -> str:
        return f"{self.result} {'<=' if self.at_most else '>='} {format_quantity(self.bound, self.dimension, 4)}"


@dataclass(frozen=True, slots=True)
class SeekResult:
    """The nearest value that meets a target, or the one that comes closest to it."""

    target: Target
    parameter: Parameter
    value: float
    now: float
    """The result as the parameter stands; NaN where it has none."""
    then: float
    """The result at `value`."""
    is_met: bool
    phases: Mapping[str, float]
    """Times of the phases at `value`, the longest first: where the target is not met, what stands in its way."""

    def obstacle(self) -> str:
        """How close the parameter comes to a target that it does not meet, and what stands in the way."""
        then = format_quantity(self.then, self.target.dimension, 4)
        value = format_quantity(self.value, self.parameter.dimension, 4)
        return (
            f"no value of {self.parameter.path} in this range meets {self.target}: "
            f"at best it is {then}, at {value}; what stands in the way: {longest(self.phases)}"
        )


def longest(phases: Mapping[str, float]) -> str:
    """The two longest phases with their times, the longest first."""
    return ", ".join(f"{name} {format_quantity(seconds, SECOND, 3)}" for name, seconds in list(phases.items())[:2])


def parse_target(text: str, program: Program) -> Target:
    """`iteration_time <= 5 ms`, `terms.halo < 80 %` (of what it is now), `total_time >= 1 s`; raise `UsageError`."""
    match = _TARGET.fullmatch(text)
    if match is None:
        raise UsageError(f"target `{text}`: expected RESULT <= TIME, such as `iteration_time <= 5 ms` or `<= 80 %`")
    term, dimension = quantity_named(match["result"], program)
    at_most = match["sense"] in ("<=", "<")
    if match["bound"].endswith("%"):
        share = parse_share(match["bound"])
        if share is None:
            raise UsageError(f"target `{text}`: `{match['bound']}` is no share")
        now = float(evaluate(program).numbers(term))
        if not math.isfinite(now):
            raise ImpossiblePointError(f"impossible: target `{text}`: {match['result']} has no number as it stands")
        return Target(match["result"], at_most, share * now, dimension)
    try:
        bound = parse_quantity(match["bound"])
    except UnitError as error:
        raise UsageError(f"target `{text}`: {error}") from None
    if bound.dimension != dimension:
        raise UsageError(f"target `{text}`: {match['result']} is in {dimension}; `{match['bound']}` is not")
    return Target(match["result"], at_most, bound.value, dimension)


def seek(
    program: Program, path: str, target: Target, low: float | None = None, high: float | None = None
) -> SeekResult:
    """The value of a parameter nearest to the present one that meets a target, between two ends in base units.

    Near is by factor, or by difference where values may be 0 or less. Ends that are not given are a thousandth of the
    present value and a thousand times it, as far as the parameter may be. Raise `UsageError` for a parameter that is
    no number of its own, or has no effect, or a range that is none.
    """
    parameter = _parameter(program, path, target)
    term = term_named(target.result, program)
    first, last = ends(parameter, low, high)
    now = float(evaluate(program).numbers(term))
    present = float(parameter.value)
    if first <= present <= last and target.met(np.array(now)):
        return _sought(program, target, parameter, present, now)
    grid = _grid(parameter, first, last)
    evaluation = evaluate(program, {path: grid})
    met = target.met(evaluation.numbers(term))
    if not met.any():
        return _sought(program, target, parameter, _closest(grid, evaluation, target, parameter), now)
    at = _nearest(grid, met, present)
    value = _narrowed(program, target, parameter, _before(grid, at, present), float(grid[at]))
    return _sought(program, target, parameter, value, now)


def _parameter(program: Program, path: str, target: Target) -> Parameter:
    from whatif.core.sweep import swept_parameter

    parameter = own_number(path, swept_parameter(path, program))
    if path not in reached_by(program, [target.result]):
        raise idle_parameter(path, [target.result])
    return parameter


def _grid(parameter: Parameter, first: float, last: float) -> FloatArray:
    """Values of the range in order, each a constant factor from the next; whole where they have to be."""
    assert parameter.field is not None
    domain = parameter.field.domain
    grid = np.geomspace(first, last, _POINTS) if first > 0 else np.linspace(first, last, _POINTS)
    grid = np.unique(np.append(np.round(grid) if domain.whole else grid, np.clip(float(parameter.value), first, last)))
    return np.array(grid[domain.accepts(grid)])


def _nearest(grid: FloatArray, met: Choices, present: float) -> int:
    """The place of the value nearest to the present one of those that meet the target."""
    far = np.log(grid / present) if min(grid[0], present) > 0 else grid - present
    return int(np.where(met, np.abs(far), np.inf).argmin())


def _before(grid: FloatArray, at: int, present: float) -> float:
    """Value of the grid next to a place, on the side of the present value; that of the place at an end of the grid."""
    beside = at + (1 if grid[at] < present else -1)
    return float(grid[min(max(beside, 0), len(grid) - 1)])


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


def _closest(grid: FloatArray, evaluation: Evaluation, target: Target, parameter: Parameter) -> float:
    then = evaluation.numbers(term_named(target.result, evaluation.program))
    if not np.isfinite(then).any():
        between = " and ".join(format_quantity(end, parameter.dimension, 4) for end in (grid[0], grid[-1]))
        why = "; ".join(evaluation.reasons()) or NO_NUMBER
        raise ImpossiblePointError(f"impossible: no value of {parameter.path} between {between} has an answer: {why}")
    worth = np.where(np.isfinite(then), then if target.at_most else -then, np.inf)
    return float(grid[worth.argmin()])


def _sought(program: Program, target: Target, parameter: Parameter, value: float, now: float) -> SeekResult:
    evaluation = evaluate(program, {parameter.path: np.array([value])})
    then = float(evaluation.numbers(term_named(target.result, program))[0])
    met = bool(target.met(np.array(then)))
    return SeekResult(target, parameter, value, now, then, met, phase_times(evaluation))
