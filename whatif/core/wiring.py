"""Wiring: builds terms from parameters and model functions, and checks their units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, Final, NoReturn

import numpy as np

from whatif.core.expression_terms import ExpressionFunction
from whatif.core.term import Argument, Constraint, Reference, Signature, Term, signature
from whatif.errors import InvalidFileError, Problem, did_you_mean
from whatif.models.quantities import Count, FloatArray, Seconds, model
from whatif.models.ranks import fits
from whatif.models.workload import repeated
from whatif.schema.expressions import Expression, ExpressionError, dimension_of
from whatif.schema.fields import MoneyField, QuantityField
from whatif.schema.load import Loaded
from whatif.schema.parameters import DEFAULT, Parameter
from whatif.schema.toml import key_path
from whatif.units import Dimension, Quantity

MAXIMUM_CHAIN = 100

_ANYTHING: Final = Argument(None, None)


class WiringError(TypeError):
    """Term whose inputs have wrong units: an error of the program, not of a file."""


@model("Σ", "definition")
def total(*times: Seconds) -> Seconds:
    """Sum of times in s, in the order given: the order determines the last bit."""
    return reduce(np.add, times, np.zeros(()))


def within(value: FloatArray, *, accepts: Callable[[FloatArray], Any]) -> Count:
    """1 where a computed parameter is in its domain, else 0."""
    return np.asarray(accepts(value), dtype=np.float64)


class Wiring:
    """Builder of the terms and constraints of one scenario.

    `problems` are the errors in its files, `setups` the terms of phases that run once.
    """

    def __init__(self, loaded: Loaded, parameters: Mapping[str, Parameter]) -> None:
        self.loaded = loaded
        self.parameters = dict(parameters)
        self.terms: dict[str, Term] = {}
        self.constraints: list[Constraint] = []
        self.problems: list[Problem] = []
        self.setups: list[str] = []

    def add(
        self,
        name: str,
        function: Callable[..., Any],
        inputs: Mapping[str, Reference],
        *,
        options: Mapping[str, Any] | None = None,
        note: str = "",
        dimension: Dimension | None = None,
    ) -> str:
        """Name of an added term. Its inputs must exist and have the units that the function declares.

        `dimension` is that of the result where the function's annotations leave it open: money of some currency.
        """
        declared = signature(function)
        for parameter, reference in inputs.items():
            self._check(name, parameter, declared.parameters.get(parameter, _ANYTHING).dimension, reference)
        core = self._core(inputs) if declared.elementwise else declared.result.core or ()
        dimension = dimension or declared.result.dimension or self._inherited(declared, inputs)
        self.terms[name] = Term(name, function, dict(inputs), dimension, core, dict(options or {}), note)
        return name

    def sum(self, name: str, parts: list[str]) -> str:
        """Name of an added term: the sum of others."""
        return self.add(name, total, {part: part for part in parts})

    def repeat(self, name: str, once: Reference, count: Reference) -> str:
        """Name of an added term: a time that occurs some number of times."""
        return self.add(name, repeated, {"once_time": once, "repeat_count": count})

    def require(
        self,
        name: str,
        reason: str,
        function: Callable[..., Any],
        inputs: Mapping[str, Reference],
        *,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a constraint: the function is 1 at feasible points."""
        self.constraints.append(Constraint(self.add(name, function, inputs, options=options), reason))

    def require_fit(self, subject: str, reason: str, needed: Reference, available: Reference) -> None:
        """Add the constraint that a required number is available."""
        self.require(f"{subject} fits", reason, fits, {"needed_count": needed, "available_count": available})

    def problem(self, path: str, message: str) -> None:
        """Record a problem of the files at a path."""
        self.problems.append(self.loaded.layers.problem(key_path(path), message))

    def raise_problems(self) -> None:
        """Raise `InvalidFileError` with all recorded problems, if any."""
        if self.problems:
            raise InvalidFileError(self.problems)

    def refuse(self, path: str, message: str) -> NoReturn:
        """Raise `InvalidFileError` with all recorded problems and one more, after which nothing can be wired."""
        self.problem(path, message)
        raise InvalidFileError(self.problems)

    def dimension(self, reference: Reference) -> Dimension:
        """Dimension of a parameter, a term or a constant."""
        if isinstance(reference, Quantity):
            return reference.dimension
        term = self.terms.get(reference)
        return self.parameters[reference].dimension if term is None else term.dimension

    def _inherited(self, declared: Signature, inputs: Mapping[str, Reference]) -> Dimension:
        """Dimension of a result without a fixed unit: that of its generic inputs, which must agree."""
        free = [self.dimension(item) for key, item in inputs.items() if declared.parameters[key].dimension is None]
        if len(set(free)) != 1:
            raise WiringError(f"inputs of different units where they must agree: {', '.join(map(str, free))}")
        return free[0]

    def _core(self, inputs: Mapping[str, Reference]) -> tuple[str, ...]:
        terms = [term for item in inputs.values() if isinstance(item, str) and (term := self.terms.get(item))]
        cores = {term.core for term in terms if term.core}
        if len(cores) > 1:
            raise WiringError(f"inputs with different core axes: {cores}")
        return cores.pop() if cores else ()

    def _check(self, name: str, parameter: str, wanted: Dimension | None, reference: Reference) -> None:
        try:
            actual = self.dimension(reference)
        except KeyError:
            raise WiringError(f"{name}: `{parameter}` is fed from `{reference}`, which does not exist") from None
        # Most dimensions are the same object, and equality of others takes most of the time.
        if wanted is not actual and wanted is not None and wanted != actual:
            raise WiringError(f"{name}: `{parameter}` wants {wanted}, `{reference}` is {actual}")

    def expressions(self) -> None:
        """Add a term for every expression parameter, inputs first; record unknown names, cycles and wrong units."""
        done: set[str] = set()
        for path, parameter in self.parameters.items():
            if isinstance(parameter.value, Expression):
                self._expression(path, (), done)
        self.raise_problems()

    def _expression(self, path: str, asking: tuple[str, ...], done: set[str]) -> None:
        parameter = self.parameters[path]
        if path in done or not isinstance(parameter.value, Expression):
            return
        if len(asking) > MAXIMUM_CHAIN:
            self.refuse(path, f"expressions that refer to expressions, more than {MAXIMUM_CHAIN} deep")
        if path in asking:
            loop = " -> ".join([*asking[asking.index(path) :], path])
            self.problem(path, f"the expression depends on itself: {loop}")
            return
        inputs = self._resolve(path, parameter.value)
        for reference in inputs.values():
            self._expression(reference, (*asking, path), done)
        wrong = {problem.key for problem in self.problems}
        if path not in done and wrong.isdisjoint((path, *inputs.values())):
            self._add_expression(parameter, parameter.value, inputs)
        done.add(path)

    def _resolve(self, path: str, expression: Expression) -> dict[str, str]:
        """Path of each name of an expression; a bare name is one of `[parameters]`."""
        inputs: dict[str, str] = {}
        for name in expression.names():
            target = name if "." in name else f"parameters.{name}"
            if target in self.parameters and self.parameters[target].field is not None:
                inputs[name] = target
            else:
                self.problem(path, f"`{name}`: {self._unresolved(name)}")
        return inputs

    def _unresolved(self, name: str) -> str:
        """Reason why a name of an expression has no value."""
        if lack := self.loaded.scenario.platform.lack(name):
            return lack
        numbers = (key for key, parameter in self.parameters.items() if parameter.field is not None)
        hint = did_you_mean(name, (key.removeprefix("parameters.") for key in numbers))
        return f"neither a value of `[parameters]` nor the path of a number{hint}"

    def _add_expression(self, parameter: Parameter, expression: Expression, inputs: Mapping[str, str]) -> None:
        try:
            dimension = dimension_of(expression.tree, lambda name: self.dimension(inputs[name]))
        except ExpressionError as error:
            self.problem(parameter.path, str(error))
            return
        assert parameter.field is not None
        is_open = parameter.field.dimension is None
        if isinstance(parameter.field, MoneyField) and (wrong := parameter.field.problem_of(dimension)):
            self.problem(parameter.path, f"`{expression.text}` {wrong}")
            return
        if not is_open and dimension != parameter.dimension:
            self.problem(parameter.path, f"`{expression.text}` is in {dimension}; it must be in {parameter.dimension}")
            return
        by_rule = parameter.source == DEFAULT
        function = (
            ExpressionFunction(expression, "rule for values without a source")
            if by_rule
            else ExpressionFunction(expression)
        )
        self.terms[parameter.path] = Term(
            parameter.path, function, {k: inputs[k] for k in expression.names()}, dimension
        )
        if is_open:
            # The unit of a parameter, or the currency, is only known now; sweeps and edits must use the same one.
            field = QuantityField(dimension, parameter.field.domain)
            self.parameters[parameter.path] = replace(parameter, dimension=dimension, field=field)
        # A default keeps to its domain, and would be an input of every result as a constraint.
        if not parameter.path.startswith("parameters.") and not by_rule:
            reason = f"{parameter.path} {expression.text} must be {parameter.field.domain.describe(dimension)}"
            options = {"accepts": parameter.field.domain.accepts}
            self.require(f"{parameter.path} domain", reason, within, {"value": parameter.path}, options=options)
