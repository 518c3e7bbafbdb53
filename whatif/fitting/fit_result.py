"""A fit: parameters with their covariance, the range they hold in, and how far the measurements lie from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.units import Dimension


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters of one model function, fitted."""

    path: str
    """Path of the parameters in a platform file: `network.inter_node.postal.eager`."""
    dimensions: Mapping[str, Dimension]
    """The parameters by name, in the order of `values`, with their dimensions."""
    values: FloatArray
    """Shape (parameters,), in base units, as the platform file has them (a bandwidth, not a time per byte)."""
    covariance: FloatArray
    """Shape (parameters, parameters), in base units; NaN without degrees of freedom."""
    ranges: Mapping[str, tuple[float, float]]
    """Least and largest value of each variable of the points, such as `message_size` and `process_count`."""
    point_count: int
    error: float
    """Root mean square of the relative residuals, (fitted - measured) / measured; NaN for a value measured once."""
    warnings: tuple[str, ...] = ()
    borrowed: str = ""
    """Protocol whose points were used, if this one was measured at too few."""
    undetermined: tuple[str, ...] = ()
    """Parameters known by a bound only, such as a node's bandwidth that no process count reached."""

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the parameters, in base units."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> FloatArray:
        """Correlation matrix of the parameters."""
        return correlation_of(self.covariance)


def correlation_of(covariance: FloatArray) -> FloatArray:
    """Correlation matrix of a covariance matrix, within -1 and 1; 0 with a value whose variance is 0 or NaN."""
    errors = np.sqrt(np.diag(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation: FloatArray = np.clip(np.nan_to_num(covariance / np.outer(errors, errors)), -1, 1)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def range_of(values: FloatArray) -> tuple[float, float]:
    """Least and largest of some values."""
    return float(values.min()), float(values.max())


def root_mean_square(residuals: FloatArray) -> float:
    """Root mean square of residuals, in their unit."""
    return float(np.sqrt(np.mean(residuals**2)))
