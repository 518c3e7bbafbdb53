"""Least squares: lines `y = a + b x` from sums, so that a fit costs the same for any number of points, coefficients
that are not negative, and positive parameters of nonlinear residuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

_SINGULAR: Final = 1e-13


def moments(x: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
    """The sums a line needs, one row a point: of shape (points, 6), `w, w x, w y, w x², w x y, w y²`."""
    weighted_x, weighted_y = weights * x, weights * y
    columns = (weights, weighted_x, weighted_y, weighted_x * x, weighted_x * y, weighted_y * y)
    return np.stack(columns, axis=-1)


def bounded_line(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Intercept, slope and weighted sum of squared residuals of y ≥ 0 for sums of shape (..., 6).

    Neither intercept nor slope is below 0, as for times of messages; one x alone gives slope 0.
    """
    w, wx, wy, wxx, wxy, _ = np.moveaxis(sums, -1, 0)
    spread = w * wxx - wx * wx
    single = spread <= _SINGULAR * w * wxx
    slope = np.where(single, 0.0, (w * wxy - wx * wy) / np.where(single, 1.0, spread))
    intercept = (wy - slope * wx) / np.where(w > 0, w, 1.0)
    level, ray = slope < 0, (slope >= 0) & (intercept < 0)
    slope = np.where(level, 0.0, np.where(ray, wxy / np.where(wxx > 0, wxx, 1.0), slope))
    intercept = np.where(level, wy / np.where(w > 0, w, 1.0), np.where(ray, 0.0, intercept))
    return intercept, slope, _rest(sums, intercept, slope)


def _rest(sums: FloatArray, intercept: FloatArray, slope: FloatArray) -> FloatArray:
    w, wx, wy, wxx, wxy, wyy = np.moveaxis(sums, -1, 0)
    along = 2 * intercept * (slope * wx - wy) - 2 * slope * wxy
    rest: FloatArray = np.maximum(wyy + along + intercept**2 * w + slope**2 * wxx, 0.0)
    return rest


def non_negative(terms: FloatArray, values: FloatArray, scale: FloatArray) -> FloatArray:
    """Coefficients >= 0 with the least sum of ((values - terms . coefficients) / scale)²."""
    from scipy.optimize import nnls

    weighted = terms / scale[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    norms[norms == 0] = 1.0
    # The triangle of a decomposition has the same least squares as the many points, in as many rows as columns.
    triangle: FloatArray = np.asarray(np.linalg.qr(np.column_stack((weighted / norms, values / scale)), mode="r"))
    solution: FloatArray = nnls(triangle[:, :-1], triangle[:, -1])[0] / norms
    return solution


def positive_values(
    residuals: Callable[[FloatArray], FloatArray], start: FloatArray, least_slope: float
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Least-squares estimates of positive parameters, their covariance, and which of them the residuals determine.

    Determined is a parameter by whose logarithm some residual has a slope of more than `least_slope`.
    """
    from scipy.optimize import least_squares

    def by_logarithms(logarithms: FloatArray) -> FloatArray:
        return residuals(np.exp(logarithms))

    solution = least_squares(by_logarithms, np.log(start))
    values, jacobian = np.exp(solution.x), np.asarray(solution.jac)
    free = np.abs(jacobian).max(axis=0) > least_slope
    return values, covariance(jacobian / values, np.ones(len(solution.fun)), solution.fun, free), free


def covariance(jacobian: FloatArray, weights: FloatArray, residuals: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
    """Covariance of parameters, `s² (Jᵀ W J)⁻¹` with s² the weighted residual variance.

    `jacobian` is of shape (points, parameters), `free` masks the parameters that the points determine; the others
    have NaN, and so do all if there are no more points than free parameters, or where they are inseparable.
    """
    kept = np.flatnonzero(free)
    result = np.full((len(free), len(free)), np.nan)
    freedom = len(residuals) - len(kept)
    if freedom <= 0 or not len(kept):
        return result
    scaled = jacobian[:, kept] * np.sqrt(weights)[:, None]
    scale = np.linalg.norm(scaled, axis=0)
    variance = float(weights @ residuals**2) / freedom
    try:
        inverse = np.linalg.inv((scaled / scale).T @ (scaled / scale))
    except np.linalg.LinAlgError:
        return result
    result[np.ix_(kept, kept)] = variance * inverse / np.outer(scale, scale)
    return result
