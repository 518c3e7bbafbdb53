"""Checks of a regression of runs: analysis of variance, cross-validation, diagnostics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.fitting.least_squares import RunsFit
from whatif.models.quantities import FloatArray

CLEAR: Final = 0.05
"""Probability below which a test counts."""
_NESTED = 1e-8
"""Length of what a larger model misses of a term of a smaller one, relative to the term."""
_UNTOLD = 1e-10
_DEPENDENT = 1e-9
"""Share of a term that must be its own, or it is a sum of the others and a constant."""
_SINGULAR = 1e-12
"""Eigenvalue of a correlation matrix below which it counts as 0."""


@dataclass(frozen=True)
class ComparisonStep:
    """One model of a comparison, against the one before it."""

    formula: str
    freedom: int
    rss: float
    """Residual sum of squares."""
    rse: float
    f: float
    """Variance that the further terms explain, over that of the largest model's residuals; NaN for the first."""
    p: float
    """Probability of such an F if they explained nothing."""


def analysis_of_variance(rss: FloatArray, freedom: FloatArray) -> tuple[FloatArray, FloatArray]:
    """F and p of each model against the one before it, of shape (models,), the smallest first; NaN for the first.

    F = ((RSS_1 - RSS_2) / (d_1 - d_2)) / (RSS_L / d_L) with d the degrees of freedom and L the largest model, as R's
    `anova` of several models (Sasidharan 2021, Tables 2 and 9).
    """
    from scipy.stats import f as f_distribution

    counts = -np.diff(freedom)
    f = -np.diff(rss) / counts / (rss[-1] / freedom[-1])
    p = f_distribution.sf(f, counts, freedom[-1])
    return np.concatenate(([np.nan], f)), np.concatenate(([np.nan], p))


def compare(fits: Sequence[RunsFit]) -> list[ComparisonStep]:
    """Analysis of variance of nested models, the smallest first.

    Raise `UsageError` for models of other runs or another response, and where one does not hold the one before it.
    """
    ordered = sorted(fits, key=lambda fit: fit.design.shape[1])
    for smaller, larger in pairwise(ordered):
        _check_nested(smaller, larger)
    rss = np.array([fit.residuals @ fit.residuals for fit in ordered])
    f, p = analysis_of_variance(rss, np.array([float(fit.freedom) for fit in ordered]))
    return [
        ComparisonStep(
            fit.formula.text, fit.freedom, float(rss[at]), fit.residual_standard_error, float(f[at]), float(p[at])
        )
        for at, fit in enumerate(ordered)
    ]


def _check_nested(smaller: RunsFit, larger: RunsFit) -> None:
    names = f"`{smaller.formula.text}` and `{larger.formula.text}`"
    if not np.array_equal(smaller.kept, larger.kept) or not np.array_equal(smaller.response, larger.response):
        raise UsageError(f"{names} are fitted to different runs or responses: F compares models of the same ones")
    if smaller.design.shape[1] == larger.design.shape[1]:
        raise UsageError(f"{names} have equally many terms: neither holds the other; --folds compares them")
    directions = np.linalg.qr(larger.design / larger.lengths)[0]
    scaled = smaller.design / smaller.lengths
    missed = np.linalg.norm(scaled - directions @ (directions.T @ scaled), axis=0)
    if missed.max() > _NESTED:
        name = smaller.formula.terms[int(missed.argmax())].name
        raise UsageError(f"{names} are not nested: the larger one lacks `{name}`; --folds compares any two")


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Errors of runs that were left out of the fit, in the unit of the response."""

    predicted: FloatArray
    """Shape (repeats, runs): each run by the fit without its fold; NaN where that fit did not determine a term."""
    measured: FloatArray
    folds: int
    """Number of folds, at most that of different runs."""
    undetermined: int
    """Folds without which the other runs do not determine all terms."""

    @property
    def rmse(self) -> float:
        """Root mean square of the errors."""
        return float(np.sqrt(np.nanmean((self.predicted - self.measured) ** 2)))

    @property
    def rmse_spread(self) -> float:
        """Standard deviation over the repeats of the root mean square of their errors."""
        each = np.sqrt(np.nanmean((self.predicted - self.measured) ** 2, axis=1))
        return float(each.std(ddof=1)) if len(each) > 1 else np.nan

    @property
    def mape(self) -> float:
        """Mean of the errors relative to what was measured."""
        known = self.measured != 0
        return float(np.nanmean(np.abs(self.predicted[:, known] / self.measured[known] - 1)))

    @property
    def wmape(self) -> float:
        """Sum of the errors relative to the sum of what was measured."""
        errors = np.abs(self.predicted - self.measured)
        return float(np.nansum(errors) / np.where(np.isnan(errors), 0, np.abs(self.measured)).sum())


def cross_validate(fit: RunsFit, folds: int = 10, repeats: int = 1, seed: int = 0) -> CrossValidation:
    """Predictions of each run by fits without its fold, `repeats` times with other folds drawn by a seed.

    Repetitions are left out together, in at most as many folds as runs differ: with one of them in the fit the
    others would not test the model.

    The residuals of a fold S that is left out are `(I - H_SS)^-1 e_S`, with H the hat matrix and e the residuals of
    the whole fit (R. D. Cook and S. Weisberg, Residuals and Influence in Regression, 1982, section 3.6): exact, and no
    fit is made anew. Raise `UsageError` for folds that are no number from 2 to the runs.
    """
    count, points = len(fit.response), _points(fit)
    different = int(points.max()) + 1
    if not 2 <= folds <= count or different < 2 or repeats < 1:
        raise UsageError(f"{folds} folds of {count} runs, {different} of them different: from 2 folds to one a run")
    directions = np.linalg.qr(fit.design / fit.lengths)[0]
    rng = np.random.default_rng(seed)
    used = min(folds, different)
    left_out, undetermined = np.empty((repeats, count)), 0
    for row in left_out:
        for chosen in np.array_split(rng.permutation(different), used):
            part = np.flatnonzero(np.isin(points, chosen))
            basis = directions[part]
            # The small one of two equivalent forms: (I - Q Q^T)^-1 = I + Q (I - Q^T Q)^-1 Q^T.
            inner = np.eye(basis.shape[1]) - basis.T @ basis
            residuals = fit.residuals[part]
            if np.linalg.eigvalsh(inner)[0] < _UNTOLD:
                undetermined += 1
                row[part] = np.nan
            else:
                row[part] = residuals + basis @ np.linalg.solve(inner, basis.T @ residuals)
    predicted = fit.response - left_out
    shown = np.exp(predicted) if fit.formula.link == "log" else predicted
    return CrossValidation(shown, fit.measured, used, undetermined)


def _points(fit: RunsFit) -> NDArray[np.intp]:
    """Index of each run among the different ones, equal for repetitions, of shape (runs,)."""
    names = fit.formula.variables
    if not names:
        return np.arange(len(fit.response))
    return np.unique(np.stack([fit.columns[name] for name in names], axis=1), axis=0, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Diagnostics of a regression."""

    heteroscedasticity: float
    """p of the Breusch-Pagan test: small where the scatter depends on the variables."""
    normality: float
    """p of the Jarque-Bera test: small where the residuals are not normal."""
    inflation: FloatArray
    """Variance inflation factor of each term, of shape (terms,): above 10 it hardly differs from the others."""
    condition: float
    """Condition number of the terms, each of length 1."""
    leverage: FloatArray
    """Leverage of each run, its distance from the others, of shape (runs,): from 0 to 1."""
    distances: FloatArray
    """Cook's distance of each run: above 1 the fit would be another one without it."""
    studentised: FloatArray
    """Residual of each run over the deviation that the fit without it gives."""


def diagnose(fit: RunsFit) -> Diagnostics:
    """Scatter, influence and collinearity of a regression."""
    from statsmodels.stats.diagnostic import het_breuschpagan
    from statsmodels.stats.stattools import jarque_bera

    scaled = fit.design / fit.lengths
    varies = np.ptp(fit.design, axis=0) > 0
    constant = np.column_stack((np.ones(len(scaled)), scaled[:, varies]))
    # Shares that sum to one are independent terms without a constant, but not next to the constant of the test.
    constant = constant[:, np.abs(np.diag(np.linalg.qr(constant, mode="r"))) > _DEPENDENT]
    scatter = float(het_breuschpagan(fit.residuals, constant)[1]) if varies.any() else np.nan
    return Diagnostics(
        scatter,
        float(jarque_bera(fit.residuals)[1]),
        _inflation(fit.design, varies),
        float(np.linalg.cond(scaled)),
        *_influence(fit),
    )


def _influence(fit: RunsFit) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Leverage, Cook's distance and externally studentised residual of each run, without a fit for each.

    Cook and Weisberg 1982, sections 2.2.1 and 3.1; statsmodels refits for the last.
    """
    leverage = (np.linalg.qr(fit.design / fit.lengths)[0] ** 2).sum(axis=1)
    residuals, terms, square = fit.residuals, fit.design.shape[1], fit.residual_standard_error**2
    rest = np.maximum(1 - leverage, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = residuals**2 / (terms * square) * leverage / rest**2
        without = np.maximum(fit.freedom * square - residuals**2 / rest, 0) / (fit.freedom - 1)
        studentised = residuals / np.sqrt(without * rest)
    return leverage, distances, studentised


def _inflation(design: FloatArray, varies: NDArray[np.bool_]) -> FloatArray:
    """1 / (1 - R²) of each term by the others; NaN for a constant, infinite for a sum of the others and a constant."""
    result = np.full(design.shape[1], np.nan)
    if not varies.any():
        return result
    values, vectors = np.linalg.eigh(np.atleast_2d(np.corrcoef(design[:, varies].T)))
    lost, squares = values < _SINGULAR, vectors**2
    own = (squares[:, ~lost] / values[~lost]).sum(axis=1)
    result[varies] = np.where(squares[:, lost].sum(axis=1) > _DEPENDENT, np.inf, own)
    return result
