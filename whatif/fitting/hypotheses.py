"""Sums of terms fitted to the same values, all of a kind at once: coefficients, F tests and leave-one-out errors.

A point left out needs no second fit: with the leverage h_i of point i, the fit without it misses it by e_i / (1 - h_i)
(D. M. Allen, "The relationship between variable selection and data augmentation and a method for prediction",
Technometrics 16, 1974).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

IntArray = NDArray[np.intp]
_SINGULAR: Final = 1e-9
"""Part of a column, relative to its length, that others leave over, below which it counts as one of them."""


@dataclass(frozen=True, eq=False)
class Fits:
    """Hypotheses with the same number of terms; NaN where the points do not separate the terms."""

    columns: FloatArray
    """Shape (points, columns): all terms there are."""
    chosen: IntArray
    """Shape (hypotheses, terms): which of the columns."""
    coefficients: FloatArray
    """Shape (hypotheses, 1 + terms), the constant first."""
    standard_errors: FloatArray
    """Standard errors, shaped as the coefficients."""
    values: FloatArray
    """Shape (points,)."""
    residuals: FloatArray
    """Measured - fitted, of shape (hypotheses, points)."""
    left_out: FloatArray
    """Shape (hypotheses, points): measured - fitted to all other points."""

    @property
    def freedom(self) -> int:
        """Points less coefficients."""
        return len(self.values) - 1 - int(self.chosen.shape[1])

    @property
    def squares(self) -> FloatArray:
        """Sum of the squared residuals, of shape (hypotheses,)."""
        total: FloatArray = (self.residuals**2).sum(axis=1)
        return total

    @property
    def squares_about_mean(self) -> float:
        """Sum of the squared residuals of the constant alone."""
        return float(((self.values - self.values.mean()) ** 2).sum())

    @property
    def term_f(self) -> FloatArray:
        """F of each term against the same model without it, of shape (hypotheses, terms), with 1 degree of freedom."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio: FloatArray = (self.coefficients[:, 1:] / self.standard_errors[:, 1:]) ** 2
        return ratio

    @property
    def f(self) -> FloatArray:
        """F of all terms against the constant alone, of shape (hypotheses,); NaN for the constant."""
        with np.errstate(divide="ignore", invalid="ignore"):
            explained: FloatArray = (self.squares_about_mean - self.squares) / np.float64(self.chosen.shape[1])
            return explained / (self.squares / self.freedom)

    def smape(self, residuals: FloatArray) -> FloatArray:
        """100 % mean of 2 |e| / (|y| + |y - e|), of shape (hypotheses,); NaN where a residual is."""
        both = np.abs(self.values) + np.abs(self.values - residuals)
        parts = 2 * np.abs(residuals) / np.where(both == 0, 1.0, both)
        mean: FloatArray = 100 * parts.mean(axis=1)
        return mean

    @property
    def largest_parts(self) -> FloatArray:
        """Largest share of each term in any measured value, of shape (hypotheses, terms)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.fmax.reduce(np.abs(self.columns / self.values[:, None]), axis=0)
            parts: FloatArray = np.abs(self.coefficients[:, 1:]) * ratios[self.chosen]
        return parts


def probability(f: FloatArray, terms: int, freedom: int) -> FloatArray:
    """Probability of an F as large as this or larger without any effect, with these degrees of freedom."""
    from scipy.special import fdtrc

    if not terms:
        return np.full_like(f, np.nan)
    tail: FloatArray = fdtrc(terms, freedom, f)
    return tail


def least_squares(columns: FloatArray, chosen: IntArray, values: FloatArray) -> Fits:
    """`values = c_0 + sum_k c_k columns[:, chosen[h, k]]` for each row h of `chosen`, by QR of centred columns.

    `columns` is of shape (points, columns), `chosen` of (hypotheses, terms), `values` of (points,); there must be more
    points than coefficients.
    """
    count, terms = len(values), chosen.shape[1]
    share = np.full(count, 1 / count)
    means, mean = share @ columns, share @ values
    centred = columns - means
    norms = np.linalg.norm(centred, axis=0)
    flat = norms <= _SINGULAR * np.linalg.norm(columns, axis=0)
    norms = np.where(flat, 1.0, norms)
    directions, triangle = np.linalg.qr((centred / norms)[:, chosen].transpose(1, 0, 2))
    diagonal = np.abs(np.diagonal(triangle, axis1=1, axis2=2))
    lost = flat[chosen].any(axis=1) | (diagonal <= _SINGULAR).any(axis=1)
    triangle[lost] = np.eye(terms)
    inverse = np.linalg.inv(triangle)

    about_mean = values - mean
    along = np.einsum("hnk,n->hk", directions, about_mean)
    residuals = about_mean - np.einsum("hnk,hk->hn", directions, along)
    variance = (residuals**2).sum(axis=1) / (count - terms - 1)
    slopes = np.einsum("hjk,hk->hj", inverse, along) / norms[chosen]
    constant = mean - (slopes * means[chosen]).sum(axis=1)
    to_origin = np.einsum("hj,hjk->hk", means[chosen] / norms[chosen], inverse)
    of_constant = 1 / count + (to_origin**2).sum(axis=1)
    spread = np.column_stack((of_constant, (inverse**2).sum(axis=2) / norms[chosen] ** 2))
    kept = 1 - share - (directions**2).sum(axis=2)
    # A point that alone determines a coefficient cannot be predicted from the others.
    left_out = residuals / np.where(kept > _SINGULAR, kept, np.nan)
    coefficients = np.column_stack((constant, slopes))
    errors = np.sqrt(variance[:, None] * spread)
    for result in (coefficients, errors, residuals, left_out):
        result[lost] = np.nan
    return Fits(columns, chosen, coefficients, errors, values, residuals, left_out)
