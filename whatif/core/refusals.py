"""Refusal of phases whose time is infinite or not a number, with the parameters that are the cause."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whatif.core.call import Values, call
from whatif.core.term import PhaseTerm, Program
from whatif.models.quantities import FloatArray

Points = NDArray[np.bool_]
Texts = NDArray[np.object_]


def refusal(program: Program, phase: PhaseTerm, values: Values, unexplained: Points) -> Texts | None:
    """Reason at each point without a finite time of a phase and without another reason, empty elsewhere; None without
    such points."""
    points = ~_finite(program, phase.term, values[phase.term]) & unexplained
    if not points.any():
        return None
    keys = np.full(points.shape, "", dtype=object)
    for path, where in _causes(program, phase.term, values, points).items():
        keys = np.where(where, np.where(keys == "", path, keys + f", {path}"), keys)
    return np.where(points, f"the time of `{phase.phase}` is not finite because of " + keys, "")


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
    found = np.zeros_like(points)
    for mask in masks.values():
        found = found | mask
    return found


def _is_cured(program: Program, term: str, values: Values, item: str) -> Points:
    """Points at which a term has a finite value other than zero if one of its inputs is 1."""
    changed: FloatArray = call(program, program.terms[term], {**values, item: np.ones_like(values[item])})
    return _finite(program, term, np.where(changed == 0, np.nan, changed))


def _finite(program: Program, name: str, array: FloatArray) -> Points:
    """Points at which a term is finite, along all of its core axes."""
    core = program.terms[name].core
    finite = np.isfinite(array)
    return np.asarray(finite.all(axis=tuple(range(-len(core), 0))) if core else finite)
