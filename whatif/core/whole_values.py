"""Values of `[parameters]` from which whole numbers are computed, such as cells: they are whole numbers themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.term import Program
from whatif.core.wiring import Wiring
from whatif.models.quantities import FloatArray
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.units import ONE

_PARTS: Final = np.arange(1, 100) / 100
"""Parts that are added to a whole number: fractions that a user may state."""


def with_whole_values(wiring: Wiring) -> dict[str, Parameter]:
    """Parameters by path: a value of `[parameters]` is whole if each hundredth more would make another no whole number.

    Only terms of expressions are wired. `x` in `2 * x` may be 0.5, and in `ceil(x)` any number.
    """
    known = wiring.parameters
    stated = [parameter for parameter in known.values() if _may_be_whole(parameter)]
    made = [path for path, its in known.items() if path in wiring.terms and its.field and its.field.domain.whole]
    if not (stated and made):
        return known
    now, fractions = _fractions(wiring, stated, made)
    needs = ((fractions != 0) & (now[:, None, None] == 0)).any(axis=0).all(axis=1)
    whole = [parameter for parameter, yes in zip(stated, needs, strict=True) if yes]
    return known | {parameter.path: _whole(parameter) for parameter in whole}


def _may_be_whole(parameter: Parameter) -> bool:
    """Whether a parameter is a whole number of `[parameters]` without a unit, as are the ends of its distribution."""
    counted = parameter.path.startswith("parameters.") and parameter.dimension == ONE
    if not counted or isinstance(parameter.value, Expression):
        return False
    ends = () if parameter.distribution is None else parameter.distribution.ends
    return all(float(number) % 1 == 0 for number in (parameter.value, *ends))


def _fractions(wiring: Wiring, stated: list[Parameter], made: list[str]) -> tuple[FloatArray, FloatArray]:
    """Fractions [made] of whole parameters at present, and [made, stated, part] with parts added to a value in turn."""
    count = len(stated)
    added = np.hstack([np.zeros((count, 1)), np.kron(np.eye(count), _PARTS)])
    swept = {parameter.path: float(parameter.value) + row for parameter, row in zip(stated, added, strict=True)}
    values = evaluate(Program(wiring.loaded, wiring.parameters, wiring.terms, (), (), {}), swept).values
    with np.errstate(invalid="ignore"):  # An infinite number has no fraction, and is no whole number.
        found = np.stack([np.broadcast_to(values[path] % 1, added.shape[1]) for path in made])
    return found[:, 0], found[:, 1:].reshape(len(made), count, -1)


def _whole(parameter: Parameter) -> Parameter:
    assert parameter.field is not None
    field = replace(parameter.field, domain=replace(parameter.field.domain, whole=True))
    return replace(parameter, field=field)
