"""Evaluator: one call of a pure function per term, on parameters that are numbers or arrays over a grid."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import first_number
from whatif.core.call import call
from whatif.core.refusals import refusal
from whatif.core.term import Program, Term
from whatif.models.quantities import FloatArray
from whatif.units import format_compared

Values = dict[str, FloatArray]
Texts = NDArray[np.object_]
Called = tuple[FloatArray, Texts | None]
"""Value of a term, and the reasons for points without a value, if it reports any."""
REFUSED: Final[ContextVar[list[Texts]]] = ContextVar("REFUSED")
"""Reasons why points have no number, from the term that is being evaluated: texts [point], empty for a number."""
_SHORTAGES: Final = {
    **{(f"needed_{kind}", f"available_{kind}"): "{} needed, {} available" for kind in ("count", "size", "rate")},
    ("count", "divisor"): "{} is not a multiple of {}",
    ("first_count", "second_count"): "{}, not {}",
}
"""Numbers of an infeasible point in words, by the two inputs of its constraint."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of all parameters and terms; arrays have the grid's axes first, with size 1 where nothing varies.

    `seconds` is the longest time of each term, here or in the evaluations that this one reuses; `refusals` are the
    reasons of terms that have no number at some points.
    """

    program: Program
    values: Values
    possible: FloatArray | None
    swept: frozenset[str] = frozenset()
    seconds: Mapping[str, float] = field(default_factory=dict)
    refusals: Mapping[str, Texts] = field(default_factory=dict)

    def column(self, name: str) -> FloatArray:
        """Result column, NaN at infeasible points."""
        return self.masked(self.program.columns[name])

    def masked(self, term: str) -> FloatArray:
        """Value of a term without core axes, NaN at infeasible points."""
        array = self.values[term]
        return array if self.possible is None else np.where(self.possible > 0, array, np.nan)

    def masked_term(self, term: Term) -> FloatArray:
        """Value of a term; without core axes, NaN at infeasible points."""
        return self.values[term.name] if term.core else self.masked(term.name)

    def numbers(self, term: str) -> FloatArray:
        """As `masked`, with the full shape of the swept points."""
        shape = np.broadcast_shapes(*(self.values[path].shape for path in self.swept))
        return np.broadcast_to(self.masked(term), shape)

    def reason(self) -> Texts | None:
        """First reason why each point is infeasible, empty at feasible points; None if all points are feasible."""
        result: Texts | None = None
        for constraint in self.program.constraints:
            failed = ~(self.values[constraint.term] > 0)
            if np.any(failed):
                texts = np.where(failed, np.array(constraint.reason, dtype=object), "")
                result = texts if result is None else np.where(result == "", texts, result)
        for texts in self.refusals.values():
            result = texts if result is None else np.where(result == "", texts, result)
        return result

    def shortage(self) -> str:
        """Numbers of the first reason at a single point, as `2048 needed, 576 available`, or nothing."""
        failed = [item.term for item in self.program.constraints if not np.all(self.values[item.term] > 0)]
        inputs = self.program.terms[failed[0]].inputs if failed else {}
        pair = next((pair for pair in _SHORTAGES if all(isinstance(inputs.get(name), str) for name in pair)), None)
        if pair is None:
            return ""
        names = [str(inputs[name]) for name in pair]
        arrays = [self.values[name] for name in names]
        if any(array.size != 1 for array in arrays):
            return ""
        numbers = [first_number(array) for array in arrays]
        return _SHORTAGES[pair].format(*format_compared(numbers, self.program.dimension(names[1])))

    def reasons(self) -> tuple[str, ...]:
        """First reasons why points are infeasible, each once: further ones may only follow from them."""
        reason = self.reason()
        return () if reason is None else tuple(text for text in dict.fromkeys(reason.ravel().tolist()) if text)

    def obstacle(self) -> str:
        """Reasons why points are infeasible, with the numbers of a single point."""
        return "; ".join(filter(None, (*self.reasons(), self.shortage())))


def evaluate(
    program: Program, swept: Mapping[str, FloatArray] | None = None, previous: Evaluation | None = None
) -> Evaluation:
    """Values of all terms. With `previous`, only terms downstream of changed parameters are computed.

    `swept` gives parameters as arrays of shape (1, .., n, .., 1), one position for each axis of the grid; a swept
    expression parameter is replaced. Infeasible points do not raise: their columns are NaN, with a reason.
    """
    value_of = VALUE_OF_TERM.get()
    values = {**program.numbers, **(swept or {})}
    changed = {name for name, array in values.items() if previous is None or _differs(array, previous.values.get(name))}
    seconds = dict(previous.seconds) if previous is not None else {}
    refusals: dict[str, Texts] = {}
    # Infeasible points may divide by zero; they are masked, without a warning.
    with np.errstate(all="ignore"):
        for name, term in program.terms.items():
            if name in values:
                continue
            if previous is not None and name not in previous.swept and changed.isdisjoint(term.references()):
                values[name] = previous.values[name]
                if name in previous.refusals:
                    refusals[name] = previous.refusals[name]
            else:
                began = time.perf_counter()
                values[name], reasons = value_of(program, term, values)
                if reasons is not None:
                    refusals[name] = reasons
                seconds[name] = max(time.perf_counter() - began, seconds.get(name, 0.0))
                changed.add(name)
        possible = _possible(program, values, refusals)
        found = Evaluation(program, values, possible, frozenset(swept or ()), seconds, refusals)
        return _without_overflows(_without_infinities(found))


def _differs(array: FloatArray, before: FloatArray | None) -> bool:
    return before is None or (array is not before and not np.array_equal(array, before))


def value_of_term(program: Program, term: Term, values: Values) -> Called:
    """Value of a term, computed."""
    reported: list[Texts] = []
    token = REFUSED.set(reported)
    try:
        return call(program, term, values), reported[0] if reported else None
    finally:
        REFUSED.reset(token)


VALUE_OF_TERM: Final[ContextVar[Callable[[Program, Term, Values], Called]]] = ContextVar(
    "VALUE_OF_TERM", default=value_of_term
)
"""Function that evaluates a term; another one may know values from an earlier run."""


def _possible(program: Program, values: Values, refusals: Mapping[str, Texts]) -> FloatArray | None:
    """1 where all constraints hold and no term is refused, else 0; None if that is everywhere."""
    result: FloatArray | None = None
    for constraint in program.constraints:
        fulfilled = values[constraint.term]
        if not np.all(fulfilled > 0):
            result = fulfilled if result is None else np.minimum(result, fulfilled)
    for texts in refusals.values():
        result = np.where(texts == "", 1.0 if result is None else result, 0.0)
    return result


def _without_infinities(evaluation: Evaluation) -> Evaluation:
    """Evaluation whose points with a phase that has no finite time are infeasible, each with the cause."""
    program, values = evaluation.program, evaluation.values
    for phase in program.phases:
        if np.isfinite(values[phase.term]).all():
            continue
        known = evaluation.reason()
        texts = refusal(program, phase, values, np.asarray("" if known is None else known) == "")
        if texts is not None:
            possible = np.where(texts == "", 1.0 if evaluation.possible is None else evaluation.possible, 0.0)
            refusals = {**evaluation.refusals, f"{phase.term} without a finite time": texts}
            evaluation = replace(evaluation, possible=possible, refusals=refusals)
    return evaluation


def _has_infinity(array: FloatArray) -> bool:
    return math.isinf(array.item()) if array.size == 1 else bool(np.isinf(array).any())


def _without_overflows(evaluation: Evaluation) -> Evaluation:
    """Evaluation whose points with an infinite result, for no other reason, are infeasible."""
    for name, term in evaluation.program.columns.items():
        if not _has_infinity(evaluation.values[term]):
            continue
        infinite = np.isinf(evaluation.masked(term))
        if infinite.any():
            texts = np.where(infinite, np.array(f"{name} is beyond the largest number", dtype=object), "")
            possible = np.where(infinite, 0.0, 1.0 if evaluation.possible is None else evaluation.possible)
            refusals = {**evaluation.refusals, f"{term} beyond the largest number": texts}
            evaluation = replace(evaluation, possible=possible, refusals=refusals)
    return evaluation
