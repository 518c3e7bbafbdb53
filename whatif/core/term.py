"""Terms: a name, a pure model function, and for each of its parameters the parameter or the term it is fed from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, get_args, get_type_hints

import numpy as np

from whatif.errors import UsageError, did_you_mean
from whatif.models.quantities import Citation, Core, FloatArray
from whatif.schema.load import Loaded
from whatif.schema.parameters import Parameter, worst
from whatif.units import SECOND, Dimension, Quantity
from whatif.vocabulary import Category

# Parameters that hold structural choices, not quantities.
_OPTIONS: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)

# What feeds a parameter: the name of a parameter or term, or a constant of the model.
Reference = str | Quantity


@dataclass(frozen=True, slots=True)
class Argument:
    """What a function's annotation says of a parameter or of its result; None where it accepts anything."""

    dimension: Dimension | None
    core: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Signature:
    """The annotations of a model function, read once."""

    parameters: Mapping[str, Argument]
    result: Argument
    variadic: bool

    @property
    def elementwise(self) -> bool:
        """Whether the function knows no core axes and broadcasts over whatever it is given."""
        return all(argument.core is None for argument in (*self.parameters.values(), self.result))


@lru_cache(maxsize=512)
def signature(function: Callable[..., Any]) -> Signature:
    """Read the units and core axes from a function's annotations."""
    routine = function if inspect.isroutine(function) else type(function).__call__
    hints = get_type_hints(routine, include_extras=True)
    parameters = inspect.signature(routine).parameters.values()
    variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    named = {p.name: _argument(hints.get(p.name)) for p in parameters if p.kind not in _OPTIONS}
    return Signature(named, _argument(hints.get("return")), variadic)


def _argument(hint: Any) -> Argument:
    metadata = list(_metadata(hint))
    dimension = next((item for item in metadata if isinstance(item, Dimension)), None)
    core = next((item.axes for item in metadata if isinstance(item, Core)), None)
    return Argument(dimension, core)


def _metadata(hint: Any) -> Iterator[Any]:
    yield from getattr(hint, "__metadata__", ())
    for inner in get_args(hint):
        if hasattr(inner, "__metadata__"):
            yield from _metadata(inner)


@dataclass(frozen=True)
class Term:
    """One model function wired to its inputs; `options` are its structural choices."""

    name: str
    function: Callable[..., Any]
    inputs: Mapping[str, Reference]
    dimension: Dimension
    core: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def citation(self) -> Citation | None:
        """The equation the function computes and where it stands."""
        return getattr(self.function, "citation", None)

    def references(self) -> Iterator[str]:
        """The parameters and terms it is fed from."""
        return (item for item in self.inputs.values() if isinstance(item, str))


@dataclass(frozen=True)
class Constraint:
    """A condition a point must meet to exist: `term` is 1 where it does, `reason` says what is wrong elsewhere."""

    term: str
    reason: str


@dataclass(frozen=True)
class PhaseTerm:
    """A phase of an iteration: its name, the term with its time, and the kind of work it is."""

    phase: str
    term: str
    category: Category


@dataclass(frozen=True)
class Program:
    """A compiled scenario: parameters, terms in an order in which they can be computed, phases, constraints."""

    loaded: Loaded
    parameters: Mapping[str, Parameter]
    terms: Mapping[str, Term]
    constraints: tuple[Constraint, ...]
    phases: tuple[PhaseTerm, ...]
    columns: Mapping[str, str]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By result that this platform cannot have, such as `total_energy`: the parameters that would have to be stated."""

    @cached_property
    def reached(self) -> frozenset[str]:
        """The parameters that some result depends on."""
        return self._upstream([*self.columns.values(), *(constraint.term for constraint in self.constraints)])

    @cached_property
    def grade(self) -> str:
        """The worst grade of the values that the times depend on."""
        return worst(self.parameters[path].grade for path in self.timed)

    @cached_property
    def timed(self) -> frozenset[str]:
        """The parameters that some time depends on; the others of `reached` are those of energy and cost."""
        times = [term for term in self.columns.values() if self.terms[term].dimension == SECOND]
        return self._upstream([*times, *(constraint.term for constraint in self.constraints)])

    @cached_property
    def other_grades(self) -> Mapping[str, str]:
        """The worst grade behind each result that is no time: energy and cost."""
        others = {name: term for name, term in self.columns.items() if self.terms[term].dimension != SECOND}
        inputs = {name: self.inputs_of(term) for name, term in others.items()}
        return {name: worst(self.parameters[path].grade for path in paths) for name, paths in inputs.items()}

    @cached_property
    def results(self) -> Mapping[str, str]:
        """The terms behind the result columns and the phases, these as `terms.NAME`."""
        return {**self.columns, **{f"terms.{phase.phase}": phase.term for phase in self.phases}}

    def term_of(self, result: str) -> str:
        """The term behind a result column or a phase (`terms.NAME`); raise `UsageError` for any other name."""
        if result in self.missing:
            raise UsageError(self.lack(result))
        if result not in self.results:
            raise UsageError(f"`{result}`: there is no such result or phase{did_you_mean(result, self.results)}")
        return self.results[result]

    def lack(self, result: str) -> str:
        """What this platform would have to state for a result in `missing`."""
        name, unstated = self.loaded.scenario.platform.name, ", ".join(self.missing[result])
        return f"`{result}`: {name} does not state {unstated}; give values in its file, or with --set PATH=VALUE"

    def dimension_of(self, result: str) -> Dimension:
        """The unit of a result column or a phase (`terms.NAME`)."""
        return self.terms[self.term_of(result)].dimension

    def inputs_of(self, name: str) -> frozenset[str]:
        """The parameters that a term depends on."""
        return self._upstream([name])

    def downstream(self, path: str) -> list[str]:
        """The terms that depend on a parameter, in the order in which they are computed."""
        changed = {path}
        for name, term in self.terms.items():
            if not changed.isdisjoint(term.references()):
                changed.add(name)
        return [name for name in self.terms if name in changed]

    def _upstream(self, names: list[str]) -> frozenset[str]:
        seen: set[str] = set()
        while names:
            name = names.pop()
            if name not in seen:
                seen.add(name)
                names.extend(self.terms[name].references() if name in self.terms else ())
        return frozenset(seen & self.parameters.keys())


def as_array(value: float | FloatArray) -> FloatArray:
    """Every number is float64 before it meets a formula: Python's integers raise, numpy's overflow silently."""
    return np.asarray(value, dtype=np.float64)
