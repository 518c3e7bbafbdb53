"""Times of kernels of linear algebra as sums of products with coefficients that are not negative, and their scatter.

Calibrations span decades of time (from microseconds to seconds): with equal weights the long calls
alone would decide, and a short one could come out as 0, or ten times too long. So the weights are 1/σ²
of a σ that grows with the time: the time itself (N-0), or the scatter that was found with these weights (N-2); N-1
has equal weights, as its σ is one for all. The names are those of Cornebize et al. 2019, section 6.1, where the mean is
fitted with equal weights, and the polynomial of N-2 is σ² in place of σ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.fit_result import root_mean_square
from whatif.fitting.linear import non_negative
from whatif.models.quantities import FloatArray

Noise = Literal["N-0", "N-1", "N-2"]
NOISES: Final[tuple[Noise, ...]] = ("N-0", "N-1", "N-2")
_FLOOR: Final = 1e-6
"""Standard deviation, relative to the time, below which scatter counts as none."""
_MEAN_DEVIATION: Final = 0.80065
"""Mean absolute deviation of a half-normal distribution in standard deviations; that of a normal is 0.79788."""
_ROUNDS: Final = 60
_QUICKEST: Final = 1.5
_ROBUST_ROUNDS: Final = 20
_LEAST_OFF: Final = 1e-3
"""Relative residual below which a point counts as met by the robust regression."""
_SETTLED: Final = 1e-7
_SINGULAR: Final = 1e-10


@dataclass(frozen=True, eq=False)
class Mean:
    """Mean times of the points."""

    coefficients: FloatArray
    """Shape (terms,), not negative."""
    factors: FloatArray
    """Shape (groups,), with mean 1: the time of a group relative to the coefficients."""
    weights: FloatArray
    """Shape (groups,): 1/σ² of the factors."""
    fitted: FloatArray
    """Shape (points,)."""

    @property
    def free(self) -> int:
        """Parameters that are not at their bound."""
        return int((self.coefficients > 0).sum()) + len(self.factors) - 1


@dataclass(frozen=True, eq=False)
class Regression:
    """Mean and standard deviation."""

    mean: Mean
    deviations: FloatArray
    """Coefficients of the standard deviation, of shape (deviation terms,), not negative; zero for N-0."""
    scale: FloatArray
    """Shape (points,): standard deviations."""
    time: FloatArray
    """Shape (points,): as measured."""
    terms: FloatArray
    """Shape (points, terms), with the factor of the group."""
    deviation_terms: FloatArray
    """Shape (points, deviation terms)."""
    free: int
    """Parameters that are not at their bound."""

    @property
    def residuals(self) -> FloatArray:
        """(fitted - measured) / measured, of shape (points,)."""
        return self.mean.fitted / self.time - 1

    @property
    def criterion(self) -> float:
        """-2 ln L + p ln n, with the likelihood of a normal distribution."""
        squares = ((self.time - self.mean.fitted) / self.scale) ** 2
        likelihood = float((squares + 2 * np.log(self.scale) + np.log(2 * np.pi)).sum())
        return likelihood + self.free * float(np.log(len(self.time)))

    @property
    def error(self) -> float:
        """Root mean square of the residuals."""
        return root_mean_square(self.residuals)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the coefficients; the factors of the groups count as exact. NaN for those at their bound."""
        return _robust_covariance(self.terms, self.scale, self.time - self.mean.fitted, self.mean.coefficients > 0)

    @property
    def deviation_covariance(self) -> FloatArray:
        """Covariance of the coefficients of the standard deviation, from the regression of the absolute residuals.

        The mean counts as known: in trials with known truth these standard errors were 10 to 50 % too small.
        """
        around = np.abs(self.time - self.mean.fitted) / _MEAN_DEVIATION - self.scale
        return _robust_covariance(self.deviation_terms, self.mean.fitted, around, self.deviations > 0)


def regression(
    terms: FloatArray,
    deviation_terms: FloatArray,
    time: FloatArray,
    noise: Noise,
    groups: NDArray[np.intp] | None = None,
) -> Regression:
    """Coefficients >= 0 of `time = factor of the group x terms . coefficients`, by reweighted least squares.

    `terms` is of shape (points, terms), `groups` numbers the group of each point from 0; without it all factors are 1.
    N-2: the standard deviation is a sum of `deviation_terms` with coefficients >= 0, fitted to the absolute residuals
    (M. Davidian and R. J. Carroll, "Variance function estimation", J. Am. Stat. Assoc. 82, 1987, section 3.2) and
    scaled so that the squared residuals have a mean of σ²; the mean is fitted anew with it, once: further rounds could
    take for scatter what a poor model misses of the short calls, and then miss all of them.
    """
    owner = np.zeros(len(time), dtype=np.intp) if groups is None else groups
    mean = _mean(terms, time, time, owner, grouped=groups is not None)
    if noise == "N-1":
        mean = _mean(terms, time, np.ones_like(time), owner, grouped=groups is not None)
    scale, deviations = _scatter(deviation_terms, time, mean, noise)
    if noise == "N-2":
        mean = _mean(terms, time, scale, owner, grouped=groups is not None)
        scale, deviations = _scatter(deviation_terms, time, mean, noise)
    free = int((deviations > 0).sum()) if noise == "N-2" else 1
    scaled = terms * mean.factors[owner][:, None]
    return Regression(mean, deviations, scale, time, scaled, deviation_terms, mean.free + free)


def costs(terms: FloatArray, time: FloatArray, scale: FloatArray) -> FloatArray:
    """`non_negative` coefficients of times, whose constant, the first, is at most `_QUICKEST` times the shortest time.

    Kernels are slower for small sizes than on the line through large ones: without the bound, the constant makes up for
    that at middle sizes, and the thousands of tiny calls of HPL's panels cost too much.
    """
    found = non_negative(terms, time, scale)
    bound = _QUICKEST * float(time.min())
    if found.size == 1 or found[0] <= bound or np.ptp(terms[:, 0]) > 0:
        return found
    return np.concatenate(([bound], non_negative(terms[:, 1:], time - bound, scale)))


def robust(terms: FloatArray, time: FloatArray) -> FloatArray:
    """Usual times of points: `terms` with coefficients >= 0 and the least sum of |time / usual time - 1|, about.

    Iteratively reweighted least squares, so that few points that take far longer do not count.
    """
    scale, fitted = time, time
    for _ in range(_ROBUST_ROUNDS):
        fitted = np.maximum(terms @ non_negative(terms, time, scale), np.finfo(float).tiny)
        scale = fitted * np.sqrt(np.maximum(np.abs(time / fitted - 1), _LEAST_OFF))
    return np.asarray(fitted)


def _mean(terms: FloatArray, time: FloatArray, scale: FloatArray, owner: NDArray[np.intp], *, grouped: bool) -> Mean:
    """Coefficients and factors in turn, each the best for the other, until neither moves."""
    factors: FloatArray = np.ones(int(owner.max()) + 1)
    weights: FloatArray = np.ones(int(owner.max()) + 1)
    coefficients, base = np.zeros(terms.shape[1]), time
    for _ in range(_ROUNDS if grouped else 1):
        before = np.concatenate((coefficients, factors))
        coefficients = costs(terms * factors[owner][:, None], time, scale)
        base = np.maximum(terms @ coefficients, np.finfo(float).tiny)
        if grouped:
            weights = np.bincount(owner, (base / scale) ** 2).astype(float)
            factors = np.bincount(owner, base * time / scale**2) / weights
            factors /= factors.mean()
        if np.allclose(np.concatenate((coefficients, factors)), before, rtol=_SETTLED, atol=0):
            break
    return Mean(coefficients, factors, weights, factors[owner] * base)


def _scatter(terms: FloatArray, time: FloatArray, mean: Mean, noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Standard deviation of each point, and the coefficients of it."""
    residuals, fitted = np.abs(time - mean.fitted), mean.fitted
    freedom = max(len(time) - mean.free, 1)
    if noise == "N-2":
        deviations = non_negative(terms, residuals / _MEAN_DEVIATION, fitted)
        shape = np.maximum(terms @ deviations, _FLOOR * fitted)
    else:
        deviations = np.eye(terms.shape[1])[0] if noise == "N-1" else np.zeros(terms.shape[1])
        shape = np.ones_like(time) if noise == "N-1" else fitted
    ratio = float(np.sqrt(((residuals / shape) ** 2).sum() / freedom))
    return np.maximum(ratio * shape, _FLOOR * fitted), ratio * deviations


def _robust_covariance(
    terms: FloatArray, scale: FloatArray, residuals: FloatArray, free: NDArray[np.bool_]
) -> FloatArray:
    """Covariance that holds whatever the true scatter is; a residual counts as if its point had been left out.

    HC3 of J. G. MacKinnon and H. White, J. Econometrics 29, 1985: residuals over 1 - leverage.
    """
    kept = np.flatnonzero(free)
    result = np.full((len(free), len(free)), np.nan)
    if len(residuals) <= len(kept) or not len(kept):
        return result
    weighted = terms[:, kept] / scale[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    directions, triangle = np.linalg.qr(weighted / norms)
    if np.abs(np.diag(triangle)).min() <= _SINGULAR:
        return result
    left_out = np.maximum(1.0 - (directions**2).sum(axis=1), _SINGULAR)
    pulls = np.linalg.solve(triangle, (directions * (residuals / scale / left_out)[:, None]).T)
    result[np.ix_(kept, kept)] = pulls @ pulls.T / np.outer(norms, norms)
    return result
