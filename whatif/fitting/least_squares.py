"""Linear regressions of measured runs: coefficients with their covariance, and predictions with an interval.

Source: A. Sasidharan, Performance Models for Heterogeneous Iterative Programs, 2021, section 3; T. Hastie,
R. Tibshirani and J. Friedman, The Elements of Statistical Learning, 2009, section 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, listed
from whatif.fitting.formula import Formula, parse_formula
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.vocabulary import IntervalKind

_SINGULAR = 1e-9
"""Relative length of the part of a term that is independent of those before it, below which it is collinear."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of a regression at some points, in the unit of the response; arrays (points,)."""

    fit: FloatArray
    """The mean; for the regression of a logarithm the median."""
    lower: FloatArray
    upper: FloatArray

    def holds(self, measured: FloatArray) -> NDArray[np.bool_]:
        """Mask of the measured values between the ends."""
        return (self.lower <= measured) & (measured <= self.upper)


@dataclass(frozen=True, eq=False)
class RunsFit:
    """A regression of runs by ordinary least squares."""

    formula: Formula
    runs: Table
    kept: NDArray[np.intp]
    """The rows of `runs` that have a number wherever the formula reads one."""
    columns: Mapping[str, FloatArray]
    """The columns that the formula names, of the kept runs, in the units they were written in."""
    design: FloatArray
    """Shape (runs, terms)."""
    warnings: tuple[str, ...] = ()

    @property
    def measured(self) -> FloatArray:
        """The response of the kept runs, in the unit it was written in."""
        return self.columns[self.formula.response]

    @cached_property
    def response(self) -> FloatArray:
        """Sum of the terms: the response, or its logarithm."""
        return np.log(self.measured) if self.formula.link == "log" else self.measured

    @cached_property
    def lengths(self) -> FloatArray:
        """Lengths of the terms, by which they are divided in the fit: threads and bytes differ in scale."""
        return np.asarray(np.linalg.norm(self.design, axis=0))

    @cached_property
    def results(self) -> Any:
        """The regression of statsmodels, of terms of length 1."""
        from statsmodels.regression.linear_model import OLS

        return OLS(self.response, self.design / self.lengths).fit(method="qr")

    @cached_property
    def _inverse(self) -> FloatArray:
        """R^-1 of the design's terms of length 1: the covariance is s² R^-1 R^-T, without squaring their condition."""
        from scipy.linalg import solve_triangular

        triangle = np.linalg.qr(self.design / self.lengths, mode="r")
        return np.asarray(solve_triangular(triangle, np.eye(len(triangle))))

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients of the terms, of shape (terms,)."""
        return np.asarray(self.results.params) / self.lengths

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients, shape (terms, terms)."""
        pulls = self.residual_standard_error * self._inverse / self.lengths[:, None]
        return np.asarray(pulls @ pulls.T)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the coefficients, of shape (terms,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def t_values(self) -> FloatArray:
        """Each coefficient over its standard error, of shape (terms,)."""
        with np.errstate(divide="ignore"):
            return self.coefficients / self.standard_errors

    @property
    def p_values(self) -> FloatArray:
        """Probability of such a t if the coefficient were 0, of shape (terms,)."""
        from scipy.stats import t as student

        return np.asarray(2 * student.sf(np.abs(self.t_values), self.freedom))

    @property
    def residuals(self) -> FloatArray:
        """Response less fit, of shape (runs,)."""
        return np.asarray(self.results.resid)

    @property
    def freedom(self) -> int:
        """Runs beyond the terms."""
        return int(len(self.response) - self.design.shape[1])

    @property
    def residual_standard_error(self) -> float:
        """Root of the sum of squared residuals over the freedom, as R reports it."""
        return float(np.sqrt(self.residuals @ self.residuals / self.freedom))

    @property
    def unit(self) -> str:
        """The unit that the response was written in; empty for a pure number."""
        column = self.runs.columns[self.formula.response]
        return column.written or column.unit

    def predict(
        self, columns: Mapping[str, FloatArray], level: float = 0.95, interval: IntervalKind = "prediction"
    ) -> Predicted:
        """The response at points given in the units that the variables were written in.

        `prediction` is the interval of one more run, `confidence` that of the mean of many, each with probability
        `level`, from Student's t.
        """
        from scipy.stats import t as student

        design = self.formula.design(columns) / self.lengths
        mean = design @ np.asarray(self.results.params)
        variance = ((design @ self._inverse) ** 2).sum(axis=1) + (interval == "prediction")
        half = student.ppf((1 + level) / 2, self.freedom) * self.residual_standard_error * np.sqrt(variance)
        values = np.stack((mean, mean - half, mean + half))
        fit, lower, upper = np.exp(values) if self.formula.link == "log" else values
        return Predicted(fit, lower, upper)


def fit_runs(runs: Table, formula: str | Formula) -> RunsFit:
    """The regression of a table of runs by a formula; runs without a number that it reads are left out.

    Raise `UsageError` for fewer runs than terms and one more, a column that is the same in all runs, terms that are
    sums of others, and logarithms of numbers that are not positive.
    """
    named = {name: _numbers(runs, name) for name in runs.columns}
    read = parse_formula(formula, named) if isinstance(formula, str) else formula
    used = {name: values for name in (read.response, *read.variables) if (values := named.get(name)) is not None}
    whole = np.asarray(np.isfinite(np.column_stack(list(used.values()))).all(axis=1))
    kept = np.flatnonzero(whole)
    columns = {name: values[kept] for name, values in used.items()}
    design = read.design(columns) if len(kept) else np.empty((0, len(read.terms)))
    _refuse(read, columns, design)
    left = [f"{len(whole) - len(kept)} of {len(whole)} runs lack a number that the formula reads; they are left out"]
    return RunsFit(read, runs, kept, columns, design, tuple(left if len(kept) < len(whole) else ()))


def _numbers(runs: Table, name: str) -> FloatArray | None:
    """A column in the unit it was written in; None for texts."""
    column = runs.columns[name]
    return None if column.dimension is None else column.as_written()


def _refuse(formula: Formula, columns: Mapping[str, FloatArray], design: FloatArray) -> None:
    count, terms = design.shape
    if formula.response in formula.variables:
        raise UsageError(f"`{formula.response}` is on both sides of `{formula.text}`: it cannot explain itself")
    if count <= terms:
        raise UsageError(f"{count} runs for {terms} terms: a regression needs more runs than terms")
    for name, values in columns.items():
        if np.ptp(values) == 0 and name in formula.variables:
            raise UsageError(f"`{name}` is {values[0]:g} in all runs: its effect cannot be determined; leave it out")
    if formula.link == "log" and not (columns[formula.response] > 0).all():
        bad = int((columns[formula.response] <= 0).sum())
        raise UsageError(f"`{formula.response}` is not positive in {bad} runs: it has no logarithm there")
    for term, values in zip(formula.terms, design.T, strict=True):
        if not np.isfinite(values).all():
            bad = int((~np.isfinite(values)).sum())
            raise UsageError(
                f"`{term.name}` has no value in {bad} runs: a logarithm or root of a number that is not positive?"
            )
        if not np.any(values) or not np.isfinite(np.linalg.norm(values)):
            raise UsageError(f"`{term.name}` is {'too large to be squared' if np.any(values) else '0 in all runs'}")
    if np.ptp(columns[formula.response]) == 0:
        raise UsageError(f"`{formula.response}` is {columns[formula.response][0]:g} in all runs: nothing to explain")
    refuse_collinear(formula, design)


def refuse_collinear(formula: Formula, design: FloatArray) -> None:
    """Raise `UsageError` for a term that is a sum of those before it, with their names."""
    names = [term.name for term in formula.terms]
    scaled = design / np.linalg.norm(design, axis=0)
    triangle = np.linalg.qr(scaled, mode="r")
    at = next(iter(np.flatnonzero(np.abs(np.diag(triangle)) < _SINGULAR)), None)
    if at is None:
        return
    shares = np.linalg.lstsq(scaled[:, :at], scaled[:, at], rcond=None)[0]
    others = [name for name, share in zip(names, shares, strict=False) if abs(share) > 1e-6]
    raise UsageError(f"`{names[at]}` is a sum of {listed(others)} in all runs: leave one of them out")
