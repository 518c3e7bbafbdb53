"""The one evaluator: one call of a pure function per term, over parameters that are numbers or arrays on a grid."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.term import Program, Term, as_array, signature
from whatif.models.quantities import FloatArray
from whatif.schema.expressions import Expression
from whatif.units import Quantity

Values = dict[str, FloatArray]
Texts = NDArray[np.object_]
REFUSED: Final[ContextVar[list[Texts]]] = ContextVar("REFUSED")
"""Where a term that is being evaluated says why points have no number: texts [point], empty where they have one."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of every parameter and term; arrays have the grid's axes first, with size 1 where nothing varies.

    `seconds` is how long each term took at most, here or in the evaluations that this one makes use of; `refusals` are
    the texts of terms that have no number at some points.
    """

    program: Program
    values: Values
    possible: FloatArray | None
    swept: frozenset[str] = frozenset()
    seconds: Mapping[str, float] = field(default_factory=dict)
    refusals: Mapping[str, Texts] = field(default_factory=dict)

    def column(self, name: str) -> FloatArray:
        """A result column, NaN where the point cannot exist."""
        return self.masked(self.values[self.program.columns[name]])

    def masked(self, array: FloatArray) -> FloatArray:
        """An array with NaN where the point cannot exist."""
        return array if self.possible is None else np.where(self.possible > 0, array, np.nan)

    def masked_term(self, term: Term) -> FloatArray:
        """The value of a term; without core axes, NaN where the point cannot exist."""
        array = self.values[term.name]
        return array if term.core else self.masked(array)

    def numbers(self, term: str) -> FloatArray:
        """The value of a term without core axes at every swept point, NaN where the point cannot exist."""
        shape = np.broadcast_shapes(*(self.values[path].shape for path in self.swept))
        return np.broadcast_to(self.masked(self.values[term]), shape)

    def reason(self) -> Texts | None:
        """Why a point cannot exist, the first reason that applies, empty where it can; None where all can."""
        result: Texts | None = None
        for constraint in self.program.constraints:
            failed = ~(self.values[constraint.term] > 0)
            if np.any(failed):
                said = np.where(failed, np.array(constraint.reason, dtype=object), "")
                result = said if result is None else np.where(result == "", said, result)
        for said in self.refusals.values():
            result = said if result is None else np.where(result == "", said, result)
        return result

    def reasons(self) -> tuple[str, ...]:
        """What makes points impossible, each reason once."""
        failed = (c for c in self.program.constraints if not np.all(self.values[c.term] > 0))
        refused = (text for texts in self.refusals.values() for text in texts.ravel().tolist() if text)
        return tuple(dict.fromkeys([*(constraint.reason for constraint in failed), *refused]))


def parameter_values(program: Program) -> Values:
    """The numeric parameters as they stand in the files; expression parameters are terms."""
    return {
        path: as_array(parameter.value)
        for path, parameter in program.parameters.items()
        if parameter.field is not None and not isinstance(parameter.value, Expression)
    }


def evaluate(
    program: Program, swept: Mapping[str, FloatArray] | None = None, previous: Evaluation | None = None
) -> Evaluation:
    """Compute every term. With `previous`, only what lies downstream of the parameters that differ from it.

    `swept` gives parameters as arrays of shape (1, .., n, .., 1), one position for each axis of the grid; a swept
    expression parameter is replaced. Impossible points do not raise: their columns are NaN, with a reason.
    """
    values = parameter_values(program) | dict(swept or {})
    changed = {name for name, array in values.items() if previous is None or _differs(array, previous.values.get(name))}
    seconds = dict(previous.seconds) if previous is not None else {}
    refusals: dict[str, Texts] = {}
    # Points that cannot exist may divide by zero; they are masked, not warned about.
    with np.errstate(all="ignore"):
        for name, term in program.terms.items():
            if name in values:
                continue
            if previous is not None and name not in previous.swept and changed.isdisjoint(term.references()):
                values[name] = previous.values[name]
                refusals |= {key: texts for key, texts in previous.refusals.items() if key == name}
            else:
                began = time.perf_counter()
                values[name], said = _called(program, term, values)
                if said is not None:
                    refusals[name] = said
                seconds[name] = max(time.perf_counter() - began, seconds.get(name, 0.0))
                changed.add(name)
        return Evaluation(program, values, _possible(program, values), frozenset(swept or ()), seconds, refusals)


def _differs(array: FloatArray, before: FloatArray | None) -> bool:
    return before is None or (array is not before and not np.array_equal(array, before))


def _called(program: Program, term: Term, values: Values) -> tuple[FloatArray, Texts | None]:
    """The value of a term, and why it has none at some points, if it says so."""
    told: list[Texts] = []
    token = REFUSED.set(told)
    try:
        return _call(program, term, values), told[0] if told else None
    finally:
        REFUSED.reset(token)


def _call(program: Program, term: Term, values: Values) -> FloatArray:
    arrays = {key: _fetch(item, values) for key, item in term.inputs.items()}
    declared = signature(term.function)
    if declared.elementwise and term.core:
        arrays = {key: _aligned(array, _core(program, term.inputs[key]), term.core) for key, array in arrays.items()}
    if declared.variadic:
        result = term.function(*arrays.values(), **term.options)
    else:
        result = term.function(**arrays, **term.options)
    return as_array(result)


def _fetch(reference: str | Quantity, values: Values) -> FloatArray:
    return as_array(reference.value) if isinstance(reference, Quantity) else values[reference]


def _core(program: Program, reference: str | Quantity) -> tuple[str, ...]:
    return program.terms[reference].core if isinstance(reference, str) and reference in program.terms else ()


def _aligned(array: FloatArray, core: Collection[str], wanted: Collection[str]) -> FloatArray:
    """Give an array on the grid alone the size-1 core axes that it needs beside arrays that have them."""
    return array if core or array.ndim == 0 else array.reshape(array.shape + (1,) * len(wanted))


def _possible(program: Program, values: Values) -> FloatArray | None:
    """1 where every constraint holds; None where all of them hold everywhere."""
    result: FloatArray | None = None
    for constraint in program.constraints:
        fulfilled = values[constraint.term]
        if not np.all(fulfilled > 0):
            result = fulfilled if result is None else np.minimum(result, fulfilled)
    return result
