"""Review of a regression in sentences: errors on runs left out, doubts about the fit, and rival models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from whatif.errors import UsageError, WhatifError
from whatif.fitting.formula_edits import compact
from whatif.fitting.least_squares import RunsFit
from whatif.fitting.model_checks import CLEAR, CrossValidation, Diagnostics, compare
from whatif.units import format_quantity

_INFLATED: Final = 10.0
_HEAVY: Final = 1.0
"""Cook's distance above which a single run changes the fit."""
_NOTHING: Final = "–"
_LEAST_SPREAD: Final = 1e-6
"""Least scatter of an error that is shown, as a share of it: less is rounding."""


class ModelComparison(NamedTuple):
    """A model compared with the present one, in words."""

    name: str
    """present, pinned or last."""
    formula: str
    term_count: int
    residual: str
    left_out: str
    """Error of runs that were left out."""
    verdict: str
    """Against the present one, by F where one holds the other."""


def quality_in_words(fit: RunsFit) -> tuple[str, ...]:
    """Residual standard error and R², a sentence each."""
    return (
        f"residual standard error {residual_in_words(fit)}, {fit.freedom} degrees of freedom",
        f"R² {fit.results.rsquared:.4f}, adjusted {fit.results.rsquared_adj:.4f}",
    )


def residual_in_words(fit: RunsFit) -> str:
    """Residual standard error with its unit."""
    error = fit.residual_standard_error
    return f"{error:.3g} of the log" if fit.formula.link == "log" else _in_unit(fit, error)


def _in_unit(fit: RunsFit, value: float) -> str:
    column = fit.runs.columns[fit.formula.response]
    if column.dimension is None or not np.isfinite(value):
        return _NOTHING
    return format_quantity(value * column.size, column.dimension, 3)


def left_out_in_words(
    fit: RunsFit, left_out: CrossValidation, repeats: int, checks: Diagnostics, level: float
) -> Iterator[str]:
    """Errors of a fit on runs that are left out, a sentence each."""
    from scipy.stats import t as student

    count = len(fit.measured)
    scatters = left_out.rmse_spread > _LEAST_SPREAD * left_out.rmse
    spread = f" ± {_in_unit(fit, left_out.rmse_spread)}" if scatters else ""
    folds = f"{left_out.folds} folds, {repeats} times"
    share = f"{left_out.wmape:.1%}" if np.isfinite(left_out.wmape) else _NOTHING
    yield f"left out ({folds}): off by {_in_unit(fit, left_out.rmse)}{spread}, {share}"
    if left_out.undetermined:
        yield f"{left_out.undetermined} folds left out all runs that determine a term"
    if fit.freedom > 1:
        # A run lies in the interval of the fit without it where its studentised residual is within the quantile.
        within = np.abs(checks.studentised) <= student.ppf((1 + level) / 2, fit.freedom - 1)
        yield f"{level:.0%} interval holds {int(within.sum())} of {count} left out ({within.mean():.0%})"


def doubts_in_words(fit: RunsFit, checks: Diagnostics, remedy: str = "") -> Iterator[str]:
    """Doubts about a fit, a sentence each; `remedy` is added where the logarithm may even out the scatter."""
    if checks.heteroscedasticity < CLEAR:
        hint = "" if fit.formula.link == "log" else remedy
        yield f"the scatter depends on the variables (Breusch-Pagan p {checks.heteroscedasticity:.2g}){hint}"
    if checks.normality < CLEAR:
        yield f"residuals are not normal (Jarque-Bera p {checks.normality:.2g}): intervals are rough"
    inflation = np.nan_to_num(checks.inflation, posinf=np.inf)
    if inflation.max(initial=0.0) > _INFLATED:
        name = compact(fit.formula.terms[int(inflation.argmax())].name)
        yield f"{name} hardly differs from other terms: variance inflation {inflation.max():.3g}"
    distances = np.nan_to_num(checks.distances)
    if distances.max() > _HEAVY:
        run = int(fit.kept[distances.argmax()]) + 1
        yield f"run {run} weighs most: without it the fit is another one (Cook's distance {distances.max():.2g})"


class ModelRace(NamedTuple):
    """Functions that fit and validate models of the same runs, which a caller may cache."""

    fit: Callable[[str], RunsFit]
    left_out: Callable[[str], CrossValidation]

    def compared(self, fit: RunsFit, others: Mapping[str, str]) -> Iterator[ModelComparison]:
        """The present model and others by name; a formula that the runs do not allow has the reason as its verdict."""
        yield self._comparison("present", fit, "")
        seen = {fit.formula.text}
        for name, formula in others.items():
            if formula and formula not in seen:
                seen.add(formula)
                try:
                    other = self.fit(formula)
                    yield self._comparison(name, other, self._verdict(fit, other))
                except WhatifError as problem:
                    yield ModelComparison(name, formula, 0, _NOTHING, _NOTHING, str(problem))

    def _comparison(self, name: str, fit: RunsFit, verdict: str) -> ModelComparison:
        formula = fit.formula
        error = self._error(fit, formula.text)
        return ModelComparison(name, formula.text, len(formula.terms), residual_in_words(fit), error, verdict)

    def _error(self, fit: RunsFit, formula: str) -> str:
        return _in_unit(fit, self.left_out(formula).rmse)

    def _verdict(self, fit: RunsFit, other: RunsFit) -> str:
        """The present model against another one: by analysis of variance, or by the runs that are left out."""
        try:
            step = compare([fit, other])[1]
        except UsageError:
            now, then = self._error(fit, fit.formula.text), self._error(fit, other.formula.text)
            return f"neither holds the other; left out the present one is off by {now}, that one by {then}"
        larger = "the present one" if len(fit.formula.terms) > len(other.formula.terms) else "that one"
        better = f"{larger} explains more" if step.p < CLEAR else f"the further terms of {larger} explain nothing"
        return f"F {step.f:.3g}, p {step.p:.2g}: {better}"
