"""Refusal of phases whose time is infinite or not a number, with the parameters that are the cause."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.core.call import Values, call
from whatif.core.term import PhaseTerm, Program
from whatif.models.quantities import FloatArray
from whatif.units import format_quantity

Points = NDArray[np.bool_]


class Refusal(NamedTuple):
    """Points at which a phase has no finite time, and why."""

    points: Points
    reason: str


def refusal(program: Program, phase: PhaseTerm, values: Values, unexplained: Points) -> Refusal | None:
    """Refusal of a phase at points without another reason; None where its time is finite at all of them."""
    points = ~np.isfinite(values[phase.term]) & unexplained
    if not points.any():
        return None
    term = _first_without_number(program, phase.term, values)
    causes = dict.fromkeys(_causes(program, term, values))
    stated = ", ".join(_shown(program, key, values) for key in causes)
    return Refusal(points, f"the time of `{phase.phase}` is not finite{f': {stated}' if stated else ''}")


def _first_without_number(program: Program, term: str, values: Values) -> str:
    """Term upstream without a finite value whose inputs all have one."""
    for item in program.terms[term].references():
        if item in program.terms and not np.isfinite(values[item]).all():
            return _first_without_number(program, item, values)
    return term


def _causes(program: Program, term: str, values: Values) -> list[str]:
    """Parameters of which a change alone gives a term a finite value other than zero; all inputs if none does."""
    inputs = [item for item in program.terms[term].references() if item in values]
    cures = [item for item in inputs if _is_cured(program, term, {**values, item: np.ones_like(values[item])})]
    return [
        path
        for item in cures or inputs
        for path in (_causes(program, item, values) if item in program.terms else [item])
    ]


def _is_cured(program: Program, term: str, values: Values) -> bool:
    value: FloatArray = call(program, program.terms[term], values)
    return bool((np.isfinite(value) & (value != 0)).all())


def _shown(program: Program, path: str, values: Values) -> str:
    """Parameter with its value; a swept one without."""
    array = values[path]
    if array.size > 1:
        return path
    return f"{path} = {format_quantity(float(array.ravel()[0]), program.parameters[path].dimension)}"
