"""Call of one term's function with the values of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from whatif.core.term import Program, Term, as_array, signature
from whatif.models.quantities import FloatArray
from whatif.units import Quantity

Values = Mapping[str, FloatArray]


def call(program: Program, term: Term, values: Values) -> FloatArray:
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
