"""The ladder of ideals: what the result would be with an infinitely fast part, then with the next one too.

A part is one rate of a node, all of one distance of the network, or the fixed time of a phase. Each rung makes that
part ideal which then saves most; what it saves is what the parts made ideal before have left of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.evaluate import Values, evaluate
from whatif.core.result import NO_NUMBER
from whatif.core.term import Program
from whatif.errors import ImpossiblePointError
from whatif.models.quantities import FloatArray
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.units import SECOND

_INFINITE: Final = 1e12
"""How many times as fast an ideal rate is."""
_NOTHING: Final = 1e-9
_LEAST: Final = 1e-3
"""A rung that saves less of the result as it stands is left out, and so are those behind it."""


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A part that is made ideal, after those of the rungs before."""

    part: str
    """A parameter, a distance of the network such as `platform.network.inter_node`, or a phase."""
    saved: float
    left: float
    """The result with this part and all before ideal."""


@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """The result as it stands, and what is left of it rung by rung."""

    result: str
    time: float
    rungs: tuple[Bottleneck, ...]


def ladder(program: Program, result: str = "iteration_time") -> Bottlenecks:
    """The rungs for a result column or phase (`terms.NAME`), until one saves less than 0.1 % of it.

    Rates become 10^12 times as high, times 0. Raise `UsageError` for an unknown result, `ImpossiblePointError` where it
    has no number as the values stand.
    """
    term = program.term_of(result)
    parts = ideal_parts(program, result)
    ideal: list[str] = []
    rungs: list[Bottleneck] = []
    first = left = float(_results(program, term, [[]], parts)[0])
    while len(ideal) < len(parts):
        candidates = [name for name in parts if name not in ideal]
        found = _results(program, term, [[*ideal, name] for name in candidates], parts)
        best = int(np.argmin(found))
        saved = left - float(found[best])
        if not saved > _LEAST * first:
            break
        # A trillionth of what it was is what is left of nothing.
        left = float(found[best]) if found[best] > _NOTHING * first else 0.0
        ideal.append(candidates[best])
        rungs.append(Bottleneck(candidates[best], saved, left))
    return Bottlenecks(result, first, tuple(rungs))


def ideal_parts(program: Program, result: str) -> dict[str, list[Parameter]]:
    """What a rung may make ideal, by name, with the parameters of each; raise `UsageError` for an unknown result."""
    parts: dict[str, list[Parameter]] = {}
    inputs = program.inputs_of(program.term_of(result))
    for path, parameter in program.parameters.items():
        stated = path in inputs and parameter.field is not None and not isinstance(parameter.value, Expression)
        if stated and (parameter.dimension == SECOND or _is_rate(parameter)):
            parts.setdefault(_part(path), []).append(parameter)
    return parts


def _is_rate(parameter: Parameter) -> bool:
    return str(parameter.dimension).endswith("/s")


def _part(path: str) -> str:
    """The distance of a network value, the phase of one of the application; every value of a node is a part."""
    if path.startswith(("platform.network.", "application.phases.")):
        return ".".join(path.split(".")[:3])
    return path


def _results(
    program: Program, term: str, ideals: Sequence[Sequence[str]], parts: Mapping[str, list[Parameter]]
) -> FloatArray:
    """[point]: the result with some parts ideal; infinity where it has none."""
    swept: Values = {}
    for name, parameters in parts.items():
        chosen = np.array([name in ideal for ideal in ideals])
        for parameter in parameters if chosen.any() else ():
            swept[parameter.path] = np.where(chosen, _ideal(parameter), float(parameter.value))
    evaluation = evaluate(program, swept)
    numbers = np.broadcast_to(evaluation.masked(evaluation.values[term]), len(ideals))
    if not swept and not np.isfinite(numbers).all():
        raise ImpossiblePointError(f"impossible: {'; '.join(evaluation.reasons()) or NO_NUMBER}")
    return np.where(np.isfinite(numbers), numbers, np.inf)


def _ideal(parameter: Parameter) -> float:
    if _is_rate(parameter):
        return float(parameter.value) * _INFINITE
    assert parameter.field is not None
    return 0.0 if parameter.field.domain.accepts(0.0) else float(parameter.value) / _INFINITE
