"""Phases and estimates from regressions of measured runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.core.context import Context
from whatif.core.expression_terms import ExpressionFunction
from whatif.core.term import PhaseTerm, Reference
from whatif.errors import did_you_mean
from whatif.models.quantities import Citation, Count, FloatArray
from whatif.schema.application import RegressionPhase
from whatif.schema.expressions import Expression, ExpressionError, parse_expression
from whatif.units import SECOND, parse_unit

RESIDUAL: Final = "residual"


@dataclass(frozen=True)
class RegressionTerm:
    """`y = b_1 t_1(x) + b_2 t_2(x) + .. + e`, or its exponential if the logarithm was fitted.

    Called with the coefficients b, the residual e and the variables x in base units, all of shapes that broadcast.
    Source: Sasidharan 2021, Eq. 3.
    """

    formula: str
    terms: tuple[Expression, ...]
    sizes: tuple[tuple[str, float], ...]
    """Each variable, and its unit in base units where a term reads it."""
    link: str
    size: float
    """Unit of the response in base units."""

    @property
    def citation(self) -> Citation:
        """Citation of the fitted formula."""
        return Citation(self.formula, "regression of measured runs (Sasidharan 2021, Eq. 3)", verbatim=True)

    def __call__(self, *values: FloatArray) -> FloatArray:
        """Response in base units."""
        count = len(self.terms)
        given = zip(self.sizes, values[count + 1 :], strict=True)
        x = {name: value / size for (name, size), value in given}
        total = values[count]
        for coefficient, term in zip(values, self.terms, strict=False):
            total = total + coefficient * ExpressionFunction(term)(*(x[name] for name in term.names()))
        return self.size * (np.exp(total) if self.link == "log" else total)


def is_positive(time: FloatArray) -> Count:
    """1 where a predicted value is positive, else 0."""
    return np.asarray(time > 0, dtype=np.float64)


def wire_regression(context: Context, name: str, phase: RegressionPhase) -> list[PhaseTerm]:
    """Phase whose time is predicted by a regression; a point with a time that is not positive is infeasible."""
    path = f"application.phases.{name}"
    if parse_unit(phase.response_unit)[0] != SECOND:
        message = f"`{phase.response_unit}` is not a time: a regression of another quantity belongs in "
        context.wiring.refuse(f"{path}.response_unit", f"{message}`[application.estimates.{name}]`")
    return [PhaseTerm(name, wire_prediction(context, path, name, phase), phase.category)]


def wire_estimates(context: Context) -> dict[str, str]:
    """Terms of regressions of quantities other than times, by the name of their result."""
    stated: Mapping[str, RegressionPhase] = getattr(context.scenario.application, "estimates", {})
    return {name: wire_prediction(context, f"application.estimates.{name}", name, it) for name, it in stated.items()}


def wire_prediction(context: Context, path: str, name: str, phase: RegressionPhase) -> str:
    """Term of a regression at a path; problems of its file are reported with their line."""
    wiring = context.wiring
    terms = dict(_terms(context, path, phase))
    for key in phase.terms.keys() ^ phase.coefficients.keys():
        missing = "no coefficient" if key in phase.terms else "no term"
        wiring.problem(
            f"{path}.{'terms' if key in phase.terms else 'coefficients'}.{key}", f"`{key}` has {missing} of its name"
        )
    _check_variables(context, path, phase)
    wiring.raise_problems()
    dimension, size = parse_unit(phase.response_unit)
    sizes = tuple((variable, parse_unit(unit)[1]) for variable, unit in phase.units.items())
    function = RegressionTerm(phase.formula, tuple(terms.values()), sizes, phase.link, size)
    inputs: dict[str, Reference] = {f"coefficients.{key}": f"{path}.coefficients.{key}" for key in terms}
    inputs |= {RESIDUAL: f"{path}.residual"}
    inputs |= {variable: f"{path}.variables.{variable}" for variable in phase.units}
    term = wiring.add(name, function, inputs, dimension=dimension)
    reason = f"{name}: the regression gives a value that is not positive here ({path})"
    wiring.require(f"{name}.is positive", reason, is_positive, {"time": term})
    return term


def _terms(context: Context, path: str, phase: RegressionPhase) -> Iterator[tuple[str, Expression]]:
    for key, text in phase.terms.items():
        try:
            term = parse_expression(text)
        except ExpressionError as error:
            context.wiring.problem(f"{path}.terms.{key}", str(error))
            continue
        for variable in term.names():
            if variable not in phase.units:
                message = f"`{variable}` is not a variable of `units`{did_you_mean(variable, phase.units)}"
                context.wiring.problem(f"{path}.terms.{key}", message)
        yield key, term


def _check_variables(context: Context, path: str, phase: RegressionPhase) -> None:
    if RESIDUAL in phase.units:
        reason = f"`{RESIDUAL}` is the residual, which is added to the terms; it is not a variable"
        context.wiring.problem(f"{path}.units.{RESIDUAL}", reason)
    for variable, unit in phase.units.items():
        where = f"{path}.variables.{variable}"
        if variable not in phase.variables:
            context.wiring.problem(where, f"missing: the value of `{variable}`, in {unit}")
        elif context.wiring.dimension(where) != parse_unit(unit)[0]:
            found = context.wiring.dimension(where)
            context.wiring.problem(where, f"`{variable}` is in {found}; the regression was fitted in {unit}")
    for variable in phase.variables.keys() - phase.units.keys():
        hint = did_you_mean(variable, phase.units) or f"; its variables: {', '.join(phase.units)}"
        context.wiring.problem(f"{path}.variables.{variable}", f"the regression has no such variable{hint}")
