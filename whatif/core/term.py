"""Terms: a name, a pure model function, and for each of its arguments the parameter or term that supplies it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
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

_PHASE: Final = "terms."
"""Before the name of a phase in that of its result."""

# Source of an argument: the name of a parameter or term, or a constant of the model.
Reference = str | Quantity


def parameters_in(table: str, *keys: str) -> dict[str, Reference]:
    """Parameters of a table by their keys: inputs of a function whose arguments have the same names."""
    return {key: f"{table}.{key}" for key in keys}


@dataclass(frozen=True, slots=True)
class Argument:
    """Unit and core axes of an argument or result, from the annotation; None if anything is accepted."""

    dimension: Dimension | None
    core: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Signature:
    """Annotations of a model function."""

    parameters: Mapping[str, Argument]
    result: Argument
    variadic: bool
    elementwise: bool
    """Whether the function has no core axes and broadcasts over all arguments."""


@lru_cache(maxsize=512)
def signature(function: Callable[..., Any]) -> Signature:
    """Units and core axes from a function's annotations."""
    routine = function if inspect.isroutine(function) else type(function).__call__
    hints = get_type_hints(routine, include_extras=True)
    parameters = inspect.signature(routine).parameters.values()
    variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    named = {p.name: _argument(hints.get(p.name)) for p in parameters if p.kind not in _OPTIONS}
    result = _argument(hints.get("return"))
    return Signature(named, result, variadic, all(item.core is None for item in (*named.values(), result)))


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
    """Model function wired to its inputs; `options` are its structural choices."""

    name: str
    function: Callable[..., Any]
    inputs: Mapping[str, Reference]
    dimension: Dimension
    core: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def citation(self) -> Citation | None:
        """Equation of the function and its source."""
        return getattr(self.function, "citation", None)

    def references(self) -> Iterator[str]:
        """Parameters and terms that supply its arguments."""
        return (item for item in self.inputs.values() if isinstance(item, str))


@dataclass(frozen=True)
class Constraint:
    """Condition of a feasible point: `term` is 1 where it holds, `reason` is the message where it does not."""

    term: str
    reason: str


@dataclass(frozen=True)
class PhaseTerm:
    """Phase of an iteration: its name, the term of its time, and its category."""

    phase: str
    term: str
    category: Category


@dataclass(frozen=True)
class Program:
    """Compiled scenario: parameters, terms in the order of evaluation, constraints, phases, results."""

    loaded: Loaded
    parameters: Mapping[str, Parameter]
    terms: Mapping[str, Term]
    constraints: tuple[Constraint, ...]
    phases: tuple[PhaseTerm, ...]
    columns: Mapping[str, str]
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Missing parameters by result that the platform cannot have, such as `total_energy`."""

    @property
    def parts(self) -> tuple[object, ...]:
        """Program and its immutable parts; programs with other numbers share most of them."""
        return (self, *(getattr(self, item.name) for item in fields(self)), *self.parameters.values())

    @cached_property
    def numbers(self) -> Mapping[str, FloatArray]:
        """Values of the numeric parameters as stated, by path; those with an expression are terms."""
        return {path: as_array(parameter.value) for path, parameter in self.parameters.items() if parameter.independent}

    @cached_property
    def reached(self) -> frozenset[str]:
        """Paths of the parameters that some result depends on."""
        return self._parameters_of([*self.columns.values(), *(constraint.term for constraint in self.constraints)])

    @cached_property
    def grade(self) -> str:
        """Lowest grade of the values that the times depend on."""
        return worst(self.parameters[path].grade for path in self.timed)

    @cached_property
    def timed(self) -> frozenset[str]:
        """Paths of the parameters that some time depends on; the others of `reached` affect energy and cost."""
        times = [term for term in self.columns.values() if self.terms[term].dimension == SECOND]
        return self._parameters_of([*times, *(constraint.term for constraint in self.constraints)])

    @cached_property
    def other_grades(self) -> Mapping[str, str]:
        """Lowest grades of the results that are not times: energy and cost."""
        others = {name: term for name, term in self.columns.items() if self.terms[term].dimension != SECOND}
        inputs = {name: self.inputs_of(term) for name, term in others.items()}
        return {name: worst(self.parameters[path].grade for path in paths) for name, paths in inputs.items()}

    @cached_property
    def results(self) -> Mapping[str, str]:
        """Terms of the result columns, and of the phases as `terms.NAME`."""
        return {**self.columns, **{f"{_PHASE}{phase.phase}": phase.term for phase in self.phases}}

    def result_name(self, name: str) -> str:
        """Name of a result: a column, or a phase as `terms.NAME`, which NAME alone means if no column has this name."""
        return result_name(name, {*self.results, *self.missing})

    def term_of(self, result: str) -> str:
        """Term of a result column or a phase (`terms.NAME` or NAME). Raise `UsageError` for any other name."""
        name = self.result_name(result)
        if name in self.missing:
            raise UsageError(self.lack(name))
        if name not in self.results:
            raise UsageError(no_result(result, self.results))
        return self.results[name]

    def lack(self, result: str) -> str:
        """Message on the values that this platform lacks for a result in `missing`."""
        name, unstated = self.loaded.scenario.platform.name, ", ".join(self.missing[result])
        return f"`{result}`: {name} does not state {unstated}; give values in its file, or with --set PATH=VALUE"

    def dimension_of(self, result: str) -> Dimension:
        """Unit of a result column or a phase (`terms.NAME` or NAME)."""
        return self.terms[self.term_of(result)].dimension

    def dimension(self, reference: Reference) -> Dimension:
        """Unit of a term, a parameter or a constant."""
        if isinstance(reference, Quantity):
            return reference.dimension
        return self.terms[reference].dimension if reference in self.terms else self.parameters[reference].dimension

    def inputs_of(self, name: str) -> frozenset[str]:
        """Paths of the parameters that a term depends on."""
        return self._parameters_of([name])

    def no_parameter(self, path: str) -> UsageError:
        """Error for a path that is no parameter, with those that may be meant: with its last key, or like it."""
        hint = self.hint(path, self.parameters)
        return UsageError(f"`{path}`: no such parameter{hint or '; see `whatif list parameters SCENARIO`'}")

    def hint(self, path: str, known: Iterable[str]) -> str:
        """Hint at the one parameter with the last key of a path, else at the known names like it."""
        ends = [name for name in self.parameters if name.endswith(f".{path.rpartition('.')[2]}")]
        return did_you_mean(ends[0], ends) if len(ends) == 1 else did_you_mean(path, known)

    def downstream(self, path: str) -> list[str]:
        """Terms that depend on a parameter, in the order of evaluation."""
        changed = {path}
        for name, term in self.terms.items():
            if not changed.isdisjoint(term.references()):
                changed.add(name)
        return [name for name in self.terms if name in changed]

    def upstream(self, names: Iterable[str]) -> set[str]:
        """Terms and parameters that some terms depend on, with themselves."""
        seen: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending.extend(self.terms[name].references() if name in self.terms else ())
        return seen

    def part(self, names: Iterable[str], phases: tuple[PhaseTerm, ...] = ()) -> Program:
        """Program of some terms and those that they depend on, without columns and constraints."""
        wanted = self.upstream(names)
        terms = {name: term for name, term in self.terms.items() if name in wanted}
        return replace(self, terms=terms, phases=phases, constraints=(), columns={})

    def _parameters_of(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(self.upstream(names) & self.parameters.keys())


def no_result(name: str, known: Iterable[str]) -> str:
    """Message on an unknown name of a result or phase."""
    names = [spelling for full in known for spelling in (full, full.removeprefix(_PHASE))]
    return f"`{name}`: no such result or phase{did_you_mean(name, dict.fromkeys(names))}"


def result_name(name: str, known: Collection[str]) -> str:
    """The known name of a result that a name means: itself, or that of the phase."""
    return name if name in known or f"{_PHASE}{name}" not in known else f"{_PHASE}{name}"


def as_array(value: float | FloatArray) -> FloatArray:
    """Value as float64: in formulas Python's integers raise, and numpy's overflow silently."""
    return np.asarray(value, dtype=np.float64)


def common_dimension(name: str, dimensions: Iterable[Dimension]) -> Dimension:
    """Unit of a result in several programs. Raise `UsageError` for several units, such as those of two currencies."""
    found = sorted(set(dimensions), key=str)
    if len(found) > 1:
        raise UsageError(f"`{name}` is in {' and '.join(map(str, found))}: nothing here converts them")
    return found[0]
