"""Tables of a regression of runs, as printed in papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from whatif.fitting.additive import Additive
from whatif.fitting.least_squares import Predicted, RunsFit
from whatif.fitting.model_checks import CLEAR, ComparisonStep, CrossValidation, Diagnostics
from whatif.fitting.normal_form import Normal
from whatif.models.quantities import FloatArray
from whatif.table import Column, Table
from whatif.units import ONE, parse_unit

_INFLUENTIAL: Final = 10
"""Runs that a table of influence shows."""


def coefficient_table(fit: RunsFit) -> Table:
    """A row a term: estimate, standard error, t and p, in the units that the columns were written in."""
    names = [term.name for term in fit.formula.terms]
    rows = zip(names, fit.coefficients, fit.standard_errors, fit.t_values, fit.p_values, strict=True)
    kinds = {"term": None, "estimate": ONE, "standard_error": ONE, "t_value": ONE, "p_value": ONE}
    return Table.of_rows(kinds, list(rows), _notes(fit))


def _notes(fit: RunsFit) -> dict[str, str]:
    return {
        "formula": fit.formula.text,
        "response_unit": fit.unit or "1",
        "link": fit.formula.link,
        "residual_standard_error": f"{fit.residual_standard_error:.7g}",
        "freedom": str(fit.freedom),
        "r_squared": f"{fit.results.rsquared:.6g}",
    }


def summary(fit: RunsFit) -> str:
    """Quality of a fit in one line, as printed by R."""
    results = fit.results
    unit = f" {fit.unit}" if fit.unit and fit.formula.link == "identity" else ""
    scatter = f"residual standard error {fit.residual_standard_error:.4g}{unit} on {fit.freedom} degrees of freedom"
    with np.errstate(divide="ignore"):  # F of an exact fit is infinite
        whole = (
            f"F {results.fvalue:.4g}, p {results.f_pvalue:.2g}"
            if results.df_model > 0
            else "no terms but the intercept"
        )
    return f"{scatter}; R² {results.rsquared:.4f}, adjusted {results.rsquared_adj:.4f}; {whole}"


def model_in_words(model: Normal) -> str:
    """`-0.8898 + 0.2017 x**2`: a model of the normal form with four digits of its coefficients."""
    first, *others = (f"{coefficient:.4g}" for coefficient in model.coefficients)
    return " + ".join([first, *(f"{number} {term}" for number, term in zip(others, model.terms, strict=True))])


def model_table(models: Sequence[Normal]) -> Table:
    """Models of the normal form, best first: errors relative to the runs, and the F test against a constant."""
    kinds = {"model": None, "cross_validated": ONE, "smape": ONE, "r_squared": ONE, "f": ONE, "p": ONE, "earned": ONE}
    rows = [
        (model_in_words(it), it.cross_validated, it.smape, it.r_squared, it.f, it.p, float(it.earned)) for it in models
    ]
    return Table.of_rows(kinds, rows)


def comparison_table(steps: Sequence[ComparisonStep]) -> Table:
    """Analysis of variance: a row a model, the smallest first."""
    kinds = {"model": None, "freedom": ONE, "rss": ONE, "residual_standard_error": ONE, "f": ONE, "p": ONE}
    return Table.of_rows(kinds, [(it.formula, it.freedom, it.rss, it.rse, it.f, it.p) for it in steps])


def cross_table(found: Mapping[str, CrossValidation], unit: str) -> Table:
    """Errors of runs that were left out, a row a model."""
    dimension, size = parse_unit(unit or "1")
    kinds = {"model": None, "rmse": dimension, "rmse_spread": dimension, "wmape": ONE, "mape": ONE, "folds": ONE}
    rows = [
        (name, it.rmse * size, it.rmse_spread * size, it.wmape, it.mape, it.folds, it.undetermined)
        for name, it in found.items()
    ]
    return Table.of_rows({**kinds, "undetermined_folds": ONE}, rows)


def validation_table(fit: RunsFit, runs: Table, measured: FloatArray, found: Predicted) -> Table:
    """Measured, fit, lower and upper end of each run, after the variables it was predicted from."""
    dimension, size = parse_unit(fit.unit or "1")
    columns = {name: runs.columns[name] for name in fit.formula.variables}
    values = {"measured": measured, "fit": found.fit, "lower": found.lower, "upper": found.upper}
    columns |= {name: Column(values * size, dimension) for name, values in values.items() if np.isfinite(values).any()}
    return Table({**columns, "inside": Column(found.holds(measured).astype(float), ONE)})


def coverage(measured: FloatArray, found: Predicted, level: float, interval: str) -> str:
    """Text with the number of measured values in an interval, and the error of the fit."""
    errors = np.abs(found.fit - measured)
    inside, count = int(found.holds(measured).sum()), len(measured)
    words = f"{inside} of {count} runs lie in the {100 * level:.4g} % {interval} interval"
    meant = "; it is of the mean, single runs scatter beyond it" if interval == "confidence" else ""
    return f"{words}{meant}; mean error {errors.sum() / np.abs(measured).sum():.1%} of what was measured"


def influence_table(fit: RunsFit, found: Diagnostics) -> Table:
    """The runs that the fit hangs on most, by Cook's distance."""
    dimension, size = parse_unit(fit.unit or "1")
    order = np.argsort(-found.distances)[:_INFLUENTIAL]
    at = fit.kept[order]
    columns = {"run": Column(at + 1.0, ONE)}
    columns |= {name: Column(fit.runs.columns[name].values[at], fit.runs.columns[name].dimension)
                for name in fit.formula.variables}  # fmt: skip
    columns["measured"] = Column(fit.measured[order] * size, dimension)
    numbers = {"leverage": found.leverage, "studentised": found.studentised, "cooks_distance": found.distances}
    return Table(columns | {name: Column(values[order], ONE) for name, values in numbers.items()})


def diagnostic_table(fit: RunsFit, found: Diagnostics) -> Table:
    """Variance inflation of each term."""
    names = [term.name for term in fit.formula.terms]
    return Table.of_rows({"term": None, "variance_inflation": ONE}, list(zip(names, found.inflation, strict=True)))


def diagnostics_in_words(fit: RunsFit, found: Diagnostics) -> list[str]:
    """Tests of the residuals in words, a line each."""
    scatter = found.heteroscedasticity
    lines = [f"Breusch-Pagan p {scatter:.2g}: the scatter {_depends(scatter)}"]
    if scatter < CLEAR and fit.formula.link == "identity":
        lines[0] += f"; a regression of log({fit.formula.response}) often evens it out"
    lines += [f"Jarque-Bera p {found.normality:.2g}: the residuals {_normal(found.normality)}"]
    lines += [f"condition of the terms {found.condition:.3g}; largest Cook's distance {found.distances.max():.3g}"]
    return lines


def _depends(p: float) -> str:
    return "depends on the variables" if p < CLEAR else "does not show to depend on the variables"


def _normal(p: float) -> str:
    return "are not normal: intervals are rough" if p < CLEAR else "may be normal"


def second_opinion(fit: RunsFit, other: Additive) -> str:
    """Comparison of an additive model with a regression in words, by an F test at 1 %."""
    unit = f" {fit.unit}" if fit.unit else ""
    own, smooth = fit.residual_standard_error, other.residual_standard_error
    return (
        f"additive model of smooth curves: residual standard error {smooth:.4g} on {other.freedom:.3g} effective "
        f"parameters, against {own:.4g} on {len(fit.formula.terms)} terms: {_verdict(fit, other)}; "
        f"they differ by {other.difference(fit):.4g}{unit} (root mean square over the runs)"
    )


def _verdict(fit: RunsFit, other: Additive) -> str:
    from scipy.stats import f as f_distribution

    free = np.array([float(fit.freedom), len(fit.measured) - other.freedom])
    rss = np.array([fit.residual_standard_error, other.residual_standard_error]) ** 2 * free
    larger = int(free.argmin())
    # A fraction of a parameter cannot be tested: the difference counts as one at least.
    steps = max(abs(free[0] - free[1]), 1.0)
    ratio = (rss[1 - larger] - rss[larger]) / steps / (rss[larger] / free[larger])
    if f_distribution.sf(ratio, steps, free[larger]) > 0.01:
        return "no clear difference"
    return "the curves explain more: the terms miss a bend" if larger == 1 else "the terms explain more"
