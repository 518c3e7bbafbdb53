"""Elasticities of a result in its parameters, from one evaluation in which every parameter is varied alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.evaluate import Evaluation, Values, evaluate
from whatif.core.result import why_not
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError
from whatif.models.quantities import FloatArray
from whatif.plotting.bars import BarChart
from whatif.schema.parameters import Parameter
from whatif.studies.bar_charts import tornado_bars
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, SECOND


@dataclass(frozen=True, slots=True)
class Elasticity:
    """Elasticity of a result in one parameter: d log(result) / d log(value), without unit.

    -1 if doubling the value halves the result; NaN with a `reason` if the value cannot be changed.
    """

    path: str
    value: str
    """The value with its unit."""
    elasticity: float
    change: str
    """Change of the value: `±1 %`, `+1 %`, `-1 %`, `x2 and /2`, `x2` or `/2`; empty if it cannot be changed."""
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Elasticities(StudyResult):
    """Elasticities of one result in all parameters it depends on, largest first; a sequence of `Elasticity`."""

    result: str
    items: tuple[Elasticity, ...]
    program: Program
    everything: bool = False
    """Whether the table includes parameters without effect and those that cannot be changed."""
    optional_columns = (["tornado"], ["change"], ["now"])

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Elasticity]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Elasticity:
        return self.items[index]

    @property
    def effective(self) -> tuple[Elasticity, ...]:
        """The rows of the table: parameters with an effect, or all."""
        return tuple(item for item in self.items if self.everything or _has_effect(item))

    def table(self) -> Table:
        """One row per parameter: value, change and elasticity."""
        columns = {"value": None, "now": None, "change": None, "elasticity": ONE}
        rows = [[item.path, item.value, item.change or item.reason, item.elasticity] for item in self.effective]
        return Table.of_rows(columns, rows, {"result": self.result})

    def readable_table(self) -> Table:
        """The table with a bar per row."""
        most = max((abs(item.elasticity) for item in self.effective if not item.reason), default=1.0)
        return self.table().with_texts("tornado", (_arm(item, most) for item in self.effective))

    def picture(self) -> BarChart:
        """Tornado chart of the largest elasticities."""
        return tornado_bars(self.program, self.result, self.items)

    def summary(self) -> tuple[str, ...]:
        """Number of parameters with an effect."""
        count = sum(_has_effect(item) for item in self.items)
        return (f"{self.result}: depends on {count} of {len(self.items)} parameters",)


def _arm(item: Elasticity, most: float) -> str:
    """Bar to the left for a negative elasticity, to the right for a positive one."""
    length = 0 if item.reason or not most else max(round(abs(item.elasticity) / most * _ARM_WIDTH), 1)
    left, right = (length, 0) if item.elasticity < 0 else (0, length)
    return f"{'#' * left:>{_ARM_WIDTH}}|{'#' * right:<{_ARM_WIDTH}}"


_ARM_WIDTH: Final = 12
_ROUNDING: Final = 1e-9
"""Elasticities up to this are rounding errors of the differences."""


def _has_effect(item: Elasticity) -> bool:
    return abs(item.elasticity) > _ROUNDING and not item.reason


@dataclass(frozen=True, slots=True)
class _Steps:
    """Factors by which a kind of parameter moves up and down, with the names of the steps."""

    up: float
    down: float
    both_name: str
    up_name: str
    down_name: str


_RECORD: Final = ".profiled_"
_PERCENT: Final = _Steps(1.01, 0.99, "±1 %", "+1 %", "-1 %")
_OCTAVE: Final = _Steps(2.0, 0.5, "x2 and /2", "x2", "/2")


@dataclass(frozen=True, slots=True)
class _Move:
    """A parameter with its two steps; None for a value that the parameter may not have."""

    parameter: Parameter
    steps: _Steps
    up: float | None
    down: float | None


def elasticities(program: Program, result: str = "iteration_time") -> tuple[Elasticity, ...]:
    """Elasticities of a result column or phase (`terms.NAME`) in all parameters it may depend on, largest first.

    A continuous value moves by 1 % to both sides; a whole number, or one that a whole number is computed from, is
    doubled and halved. The elasticity is the difference of log(result) over that of log(value). A step to a value that
    is not allowed or has no result is left out, and the other one counts alone. Values of 0 and expressions have no
    elasticity, nor have the metadata of profiles (`profiled_cells`). Raise `UsageError` for an unknown result,
    `InfeasiblePointError` if the present result is 0 or missing.
    """
    term = program.term_of(result)
    inputs = program.timed if program.terms[term].dimension == SECOND else program.reached
    moves = [_move(program, parameter) for parameter in program.parameters.values() if _moves(parameter, inputs)]
    evaluation = evaluate(program, _perturbed(moves))
    shape = (2 * len(moves) + 1,)
    numbers = np.broadcast_to(evaluation.masked(term), shape)
    reasons = _reasons(evaluation, numbers, result)
    if reasons[0]:
        raise InfeasiblePointError(f"infeasible: {evaluate(program).obstacle() or reasons[0]}")
    found = [
        _elasticity(move, float(numbers[0]), numbers[1 + 2 * index :][:2], reasons[1 + 2 * index :][:2])
        for index, move in enumerate(moves)
    ]
    return tuple(sorted(found, key=lambda item: -1.0 if item.reason else abs(item.elasticity), reverse=True))


def _moves(parameter: Parameter, inputs: Collection[str]) -> bool:
    """Whether a parameter is a number other than 0, no expression, no record of a profile, and an input of the result.

    What a profile was taken with (`profiled_cells`, `profiled_launch_count`) cannot be changed afterwards.
    """
    return parameter.independent and parameter.path in inputs and parameter.value != 0 and _RECORD not in parameter.path


def _move(program: Program, parameter: Parameter) -> _Move:
    assert parameter.field is not None
    domain, value = parameter.field.domain, float(parameter.value)
    steps = _OCTAVE if domain.whole or _makes_whole(program, parameter.path) else _PERCENT
    up, down = (value * factor if domain.accepts(value * factor) else None for factor in (steps.up, steps.down))
    return _Move(parameter, steps, up, down)


def _makes_whole(program: Program, path: str) -> bool:
    """Whether a whole number is computed from a parameter: 1 % more `cells` would give a fraction of a cell."""
    fields = (program.parameters[name].field for name in program.downstream(path) if name in program.parameters)
    return any(field is not None and field.domain.whole for field in fields)


def _perturbed(moves: Sequence[_Move]) -> Values:
    """Every parameter along one axis: the present values, then one step up and one step down of each parameter."""
    swept: Values = {}
    for index, move in enumerate(moves):
        array = np.full(2 * len(moves) + 1, float(move.parameter.value))
        for place, step in enumerate((move.up, move.down), start=1 + 2 * index):
            array[place] = array[place] if step is None else step
        swept[move.parameter.path] = array
    return swept


def _reasons(evaluation: Evaluation, numbers: FloatArray, result: str) -> list[str]:
    """Reason why a point has no logarithm, for each point; empty if it has one."""
    reasons = why_not(evaluation.reason(), numbers)
    reasons[(numbers == 0) & (reasons == "")] = f"`{result}` is 0: it has no elasticity"
    return [str(reason) for reason in reasons]


def _elasticity(move: _Move, base: float, numbers: FloatArray, reasons: Sequence[str]) -> Elasticity:
    parameter, steps = move.parameter, move.steps
    up, down = (step is not None and not reason for step, reason in zip((move.up, move.down), reasons, strict=True))
    if not (up or down):
        return Elasticity(parameter.path, parameter.text(), math.nan, "", _why_not(parameter, reasons))
    high, low = numbers[0] if up else base, numbers[1] if down else base
    # Both steps have the sign of the value: the ratio of two negative ones is that of their sizes.
    moved = (steps.up if up else 1.0) / (steps.down if down else 1.0)
    change = steps.both_name if up and down else steps.up_name if up else steps.down_name
    return Elasticity(parameter.path, parameter.text(), math.log(high / low) / math.log(moved), change)


def _why_not(parameter: Parameter, reasons: Sequence[str]) -> str:
    assert parameter.field is not None
    allowed = f"it must be {parameter.field.domain.describe(parameter.dimension)}"
    return next((reason for reason in reasons if reason), allowed)
