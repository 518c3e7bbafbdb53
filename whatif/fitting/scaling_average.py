"""Average of the candidates, weighted by how well each predicted larger counts from smaller ones, with an interval.

Rolling origin (L. J. Tashman, Int. J. Forecasting 16, 2000): the runs up to each count predict the next one. Errors
are logarithms of predicted over measured, for each doubling between the runs and the target; those of the series itself
are shrunk towards those of all other series, and these towards constants:

    s^2 = (K q^2 + sum of own e^2) / (K + own errors),   q^2 = (K prior^2 + sum of others' e^2) / (K + others' errors)

A candidate has the weight s^-8. The average is a candidate itself: its own errors, each with the weights of earlier
origins, give the interval, with the spread between candidates and that of repeated runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.scaling_candidates import CANDIDATES
from whatif.fitting.scaling_fits import Problems, predictions
from whatif.models.quantities import FloatArray

CANDIDATE_PRIOR: Final = 0.1
"""Error of a candidate for a doubling, before any run; a third parameter doubles it, and a fourth again."""
GROWING: Final = 1.5
"""Factor of the prior where a term grows with the count: most programs run where these terms are still small."""
AVERAGE_PRIOR: Final = 0.05
"""Error of the average for a doubling, before any run: its median on half of 64 published series (docs/scaling.md)."""
_CANDIDATE_STRENGTH: Final = 2.0
"""K of the candidates: number of errors for which the prior counts."""
_AVERAGE_STRENGTH: Final = 4.0
"""K of the average."""
_SHARPNESS: Final = 4.0
"""Power of 1/s^2 in a weight."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Averaged predictions, an element or column for each problem."""

    centre: FloatArray
    """Logarithm of the time."""
    deviation: FloatArray
    """Standard deviation of that logarithm."""
    freedom: FloatArray
    """Degrees of freedom of the deviation."""
    weights: FloatArray
    """Of shape (candidates, problems); their sum is 1."""

    def at(self, rows: NDArray[np.intp]) -> Averages:
        """Some of the predictions."""
        return Averages(self.centre[rows], self.deviation[rows], self.freedom[rows], self.weights[:, rows])

    def quantile(self, level: float) -> FloatArray:
        """Half-width of the interval that holds a share of runs, of the logarithm."""
        from scipy.stats import t as student

        half: FloatArray = student.ppf((1 + level) / 2, self.freedom) * self.deviation
        return half


@dataclass(frozen=True, eq=False)
class Origins:
    """Problems whose targets were measured, in the order of their series and counts."""

    problems: Problems
    series: NDArray[np.intp]
    """Number of the series of each problem, ascending."""
    length: NDArray[np.intp]
    """Number of counts that each problem has."""
    measured: FloatArray
    """Time at each target, of shape (problems,)."""

    def errors(self, centres: FloatArray) -> FloatArray:
        """Logarithms of predicted over measured for a doubling, of the shape of the centres."""
        errors: FloatArray = (centres - np.log(self.measured)) / self.problems.doublings
        return errors


class Experience:
    """Errors at the origins of all series, from which the error of other predictions is estimated."""

    def __init__(self, origins: Origins, errors: FloatArray, prior: FloatArray, strength: float) -> None:
        """Errors of shape (.., origins), NaN where there is none, and priors of shape (.., 1) with their K."""
        known = np.isfinite(errors)
        squares = np.where(known, errors, 0.0) ** 2
        self.prior, self.strength = prior, strength
        self._series = origins.series
        # Sums over the origins before each, so that those of a series are a difference.
        self._sums = [np.pad(np.cumsum(it, axis=-1), [(0, 0)] * (it.ndim - 1) + [(1, 0)]) for it in (squares, known)]

    def mean_square(self, series: NDArray[np.intp], before: NDArray[np.intp] | None = None) -> FloatArray:
        """s^2 of predictions for series, from the origins of a series `before` a position, or from all of them."""
        (own, all_own, total), (number, all_number, count) = (self._parts(it, series, before) for it in self._sums)
        pooled = (self.strength * self.prior**2 + total - all_own) / (self.strength + count - all_number)
        found: FloatArray = (self.strength * pooled + own) / (self.strength + number)
        return found

    def freedom(self, series: NDArray[np.intp], before: NDArray[np.intp] | None = None) -> FloatArray:
        """Degrees of freedom of `mean_square`: K, and the errors of the series itself."""
        freedom: FloatArray = self.strength + self._parts(self._sums[1], series, before)[0]
        return freedom

    def _parts(
        self, sums: FloatArray, series: NDArray[np.intp], before: NDArray[np.intp] | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A sum over the origins of a series before a position, over all of its origins, and over those of all."""
        first, end = (np.searchsorted(self._series, series, side) for side in ("left", "right"))
        upto = end if before is None else before
        return sums[..., upto] - sums[..., first], sums[..., end] - sums[..., first], sums[..., -1:]


_PRIORS: Final = np.array(
    [[CANDIDATE_PRIOR * 2.0 ** max(it.parameters - 2, 0) * (GROWING if it.grows else 1.0)] for it in CANDIDATES]
)


class ScalingModel:
    """The average of the candidates, with weights and intervals learnt from the origins of series."""

    def __init__(self, origins: Origins) -> None:
        """A model of series; without any origin its weights and intervals are those of the priors."""
        self._origins, self._found = origins, predictions(origins.problems)
        found = self._found
        self._candidates = Experience(origins, origins.errors(found), _PRIORS, _CANDIDATE_STRENGTH)
        self._before = np.arange(len(origins.series))
        centres = _mean(found, self._weights(found, origins.series, self._before))[0]
        self._average = Experience(origins, origins.errors(centres), np.array(AVERAGE_PRIOR), _AVERAGE_STRENGTH)

    def predict(self, problems: Problems, series: NDArray[np.intp], scatter: FloatArray) -> Averages:
        """Predictions for series, from all their origins; `scatter` is that of repeated runs, of the logarithm."""
        return self._averages(problems, series, scatter, None)

    def at_origins(self, scatter: FloatArray) -> Averages:
        """Prediction of each origin from what was known before."""
        return self._averages(self._origins.problems, self._origins.series, scatter, self._before)

    def candidate_errors(self) -> tuple[FloatArray, FloatArray]:
        """Root mean square error of each candidate for a doubling, NaN without any, and number of its errors."""
        errors = self._origins.errors(self._found)
        counts = np.isfinite(errors).sum(axis=1).astype(float)
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.nansum(errors**2, axis=1) / counts), counts

    def _averages(
        self, problems: Problems, series: NDArray[np.intp], scatter: FloatArray, before: NDArray[np.intp] | None
    ) -> Averages:
        found = predictions(problems)
        weights = self._weights(found, series, before)
        centre, spread = _mean(found, weights)
        variance = self._average.mean_square(series, before) * problems.doublings**2 + spread + scatter**2
        return Averages(centre, np.sqrt(variance), self._average.freedom(series, before), weights)

    def _weights(self, found: FloatArray, series: NDArray[np.intp], before: NDArray[np.intp] | None) -> FloatArray:
        raw = np.where(np.isfinite(found), self._candidates.mean_square(series, before) ** -_SHARPNESS, 0.0)
        weights: FloatArray = raw / raw.sum(axis=0)
        return weights


def _mean(found: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean of the candidates' logarithms, and their variance about it."""
    values = np.where(weights > 0, found, 0.0)
    centre = (weights * values).sum(axis=0)
    return centre, (weights * (values - centre) ** 2).sum(axis=0)
