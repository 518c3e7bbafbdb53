"""Evaluator: one call of a pure function per term, on parameters that are numbers or arrays over a grid."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import first_number
from whatif.core.term import PhaseTerm, Program, Term, as_array, signature
from whatif.models.quantities import FloatArray
from whatif.units import Quantity, format_compared

Values = dict[str, FloatArray]
Points = NDArray[np.bool_] | np.bool_
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
        failed = ((item.reason, ~(self.values[item.term] > 0)) for item in self.program.constraints)
        texts = [np.where(where, np.array(reason, dtype=object), "") for reason, where in failed if where.any()]
        reasons = [*texts, *self.refusals.values()]
        return reduce(lambda first, other: np.where(first == "", other, first), reasons) if reasons else None

    def refused(self, name: str, texts: Texts) -> Evaluation:
        """Evaluation whose points with a text are infeasible; `name` is that of the refusal."""
        refusals = {**self.refusals, name: texts}
        return replace(self, possible=_with_refusal(self.possible, texts), refusals=refusals)

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
        return () if reason is None else distinct(reason)

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
        return _call(program, term, values), reported[0] if reported else None
    finally:
        REFUSED.reset(token)


VALUE_OF_TERM: Final[ContextVar[Callable[[Program, Term, Values], Called]]] = ContextVar(
    "VALUE_OF_TERM", default=value_of_term
)
"""Function that evaluates a term; another one may know values from an earlier run."""


def _call(program: Program, term: Term, values: Values) -> FloatArray:
    """Value of a term."""
    arrays = {key: values[item] if isinstance(item, str) else as_array(item.value) for key, item in term.inputs.items()}
    declared = signature(term.function)
    if term.core and declared.elementwise:
        arrays = {key: _aligned(array, _core(program, term.inputs[key]), term.core) for key, array in arrays.items()}
    if declared.variadic:
        result = term.function(*arrays.values(), **term.options)
    else:
        result = term.function(**arrays, **term.options)
    return as_array(result)


def _core(program: Program, reference: str | Quantity) -> tuple[str, ...]:
    return program.terms[reference].core if isinstance(reference, str) and reference in program.terms else ()


def _aligned(array: FloatArray, core: Collection[str], wanted: Collection[str]) -> FloatArray:
    """Array on the grid with the size-1 core axes that broadcasting with the other arrays needs."""
    return array if core or array.ndim == 0 else array.reshape(array.shape + (1,) * len(wanted))


def _possible(program: Program, values: Values, refusals: Mapping[str, Texts]) -> FloatArray | None:
    """1 where all constraints hold and no term is refused, else 0; None if that is everywhere."""
    result: FloatArray | None = None
    for constraint in program.constraints:
        fulfilled = values[constraint.term]
        if not np.all(fulfilled > 0):
            result = fulfilled if result is None else np.minimum(result, fulfilled)
    return reduce(_with_refusal, refusals.values(), result)


def _with_refusal(possible: FloatArray | None, texts: Texts) -> FloatArray:
    """0 at points with a text; elsewhere as before, 1 by default."""
    return np.where(texts == "", 1.0 if possible is None else possible, 0.0)


def _without_infinities(evaluation: Evaluation) -> Evaluation:
    """Evaluation whose points with a phase that has no finite time are infeasible, each with the cause."""
    program, values = evaluation.program, evaluation.values
    for phase in program.phases:
        if np.isfinite(values[phase.term]).all():
            continue
        known = evaluation.reason()
        texts = _refusal(program, phase, values, np.asarray("" if known is None else known) == "")
        if texts is not None:
            evaluation = evaluation.refused(f"{phase.term} without a finite time", texts)
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
            evaluation = evaluation.refused(f"{term} beyond the largest number", texts)
    return evaluation


def _refusal(program: Program, phase: PhaseTerm, values: Values, unexplained: Points) -> Texts | None:
    """Reason at each point without a finite time of a phase and without another reason, empty elsewhere; None without
    such points."""
    points = ~_finite(program, phase.term, values[phase.term]) & unexplained
    if not points.any():
        return None
    keys = listed_at(_causes(program, phase.term, values, points), points.shape)
    return np.where(points, f"the time of `{phase.phase}` is not finite because of " + keys, "")


def listed_at(names: Mapping[str, Points], shape: tuple[int, ...]) -> Texts:
    """Names at each point, as `a, b`, of those whose masks are true there."""
    listed = np.full(shape, "", dtype=object)
    for name, where in names.items():
        listed = np.where(where, np.where(listed == "", name, listed + f", {name}"), listed)
    return listed


def distinct(texts: Texts) -> tuple[str, ...]:
    """Texts that are not empty, each once, in order."""
    return tuple(text for text in dict.fromkeys(texts.ravel().tolist()) if text)


def _causes(program: Program, term: str, values: Values, points: Points) -> dict[str, Points]:
    """Parameters that, changed alone, make a term finite and not zero, each with its points; all where none does."""
    inputs = [item for item in program.terms[term].references() if item in values]
    lost = {item: points & ~_finite(program, item, values[item]) for item in inputs if item in program.terms}
    here = points & ~_any(lost, points)
    cured = {item: here & _is_cured(program, term, values, item) for item in inputs} if here.any() else {}
    nothing = here & ~_any(cured, points)
    found: dict[str, Points] = {}
    for item in inputs:
        where = lost.get(item, np.False_) | cured.get(item, np.False_) | nothing
        if where.any():
            below = _causes(program, item, values, where) if item in program.terms else {item: where}
            found |= {path: mask | found.get(path, np.False_) for path, mask in below.items()}
    return found


def _any(masks: dict[str, Points], points: Points) -> Points:
    """Points in any of some masks."""
    return reduce(np.logical_or, masks.values(), np.zeros_like(points))


def _is_cured(program: Program, term: str, values: Values, item: str) -> Points:
    """Points at which a term has a finite value other than zero if one of its inputs is 1."""
    changed: FloatArray = _call(program, program.terms[term], {**values, item: np.ones_like(values[item])})
    return _finite(program, term, np.where(changed == 0, np.nan, changed))


def _finite(program: Program, name: str, array: FloatArray) -> Points:
    """Points at which a term is finite, along all of its core axes."""
    core = program.terms[name].core
    finite = np.isfinite(array)
    return np.asarray(finite.all(axis=tuple(range(-len(core), 0))) if core else finite)
