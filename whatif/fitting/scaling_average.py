"""Average of the candidates, weighted by how well each predicted larger counts from smaller ones, with an interval.

Rolling origin (L. J. Tashman, Int. J. Forecasting 16, 2000): the runs up to each count predict the next one. An error e
is the logarithm of predicted over measured, for each doubling between the runs and the target. Its mean square in a
series is shrunk towards q^2, the geometric mean of a constant and of the mean squares of all other series:

    s^2 = (K q^2 + sum of e^2) / (K + number of e)

A geometric mean, because errors of series of another kind may be many times as large. A candidate has the weight s^-8.
The average is a candidate itself: its own errors, each with the weights of earlier origins, give the interval, with the
spread of the candidates and that of repeated runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.fitting.hypotheses import IntArray
from whatif.fitting.scaling_fits import CANDIDATES, Problems, predictions
from whatif.models.quantities import FloatArray

CANDIDATE_PRIOR: Final = 0.1
"""Error of a candidate for a doubling, before any run; a third parameter doubles it, and a fourth again."""
GROWING_FACTOR: Final = 1.5
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
    """Shape (candidates, problems); their sum is 1."""

    def at(self, rows: IntArray) -> Averages:
        """Some of the predictions."""
        return Averages(self.centre[rows], self.deviation[rows], self.freedom[rows], self.weights[:, rows])

    def half_width(self, level: float) -> FloatArray:
        """Half-width of the interval that holds a share of runs, of the logarithm."""
        from scipy.stats import t as student

        half: FloatArray = student.ppf((1 + level) / 2, self.freedom) * self.deviation
        return half


@dataclass(frozen=True, eq=False)
class Origins:
    """Problems whose targets were measured, in the order of their series and counts."""

    problems: Problems
    series: IntArray
    """Number of the series of each problem, ascending."""
    length: IntArray
    """Number of counts that each problem has."""
    measured: FloatArray
    """Time at each target, of shape (problems,)."""
    known: IntArray
    """End of the origins of the same series whose targets are among the runs of each problem."""

    def errors(self, centres: FloatArray) -> FloatArray:
        """Logarithms of predicted over measured for a doubling, of the shape of the centres."""
        errors: FloatArray = (centres - np.log(self.measured)) / self.problems.doublings
        return errors


class Experience:
    """Errors at the origins of all series, from which the error of other predictions is estimated."""

    def __init__(self, origins: Origins, errors: FloatArray, prior: FloatArray, strength: float) -> None:
        """Errors of shape (.., origins), NaN without a prediction, and priors of shape (.., 1) with their K."""
        known = np.isfinite(errors)
        self._prior, self._strength, self._series = prior**2, strength, origins.series
        # Sums over the origins before each, so that those of a series are a difference.
        widths = [(0, 0)] * (errors.ndim - 1) + [(1, 0)]
        self._squares = np.pad(np.cumsum(np.where(known, errors, 0.0) ** 2, axis=-1), widths)
        self._counts = np.pad(np.cumsum(known, axis=-1), widths)
        logs, known = self._logs(np.unique(origins.series))
        self._total, self._number = logs.sum(axis=-1, keepdims=True), known.sum(axis=-1, keepdims=True)

    def mean_square(self, series: IntArray, before: IntArray | None = None) -> FloatArray:
        """s^2 of predictions for series, from the origins of a series `before` a position, or from all of them."""
        logs, known = self._logs(series)
        pooled = np.exp((np.log(self._prior) + self._total - logs) / (1 + self._number - known))
        squares, counts = self._own(series, before)
        found: FloatArray = (self._strength * pooled + squares) / (self._strength + counts)
        return found

    def freedom(self, series: IntArray, before: IntArray | None = None) -> FloatArray:
        """Degrees of freedom of `mean_square`: K, and the errors of the series itself."""
        freedom: FloatArray = self._strength + self._own(series, before)[1]
        return freedom

    def _own(self, series: IntArray, before: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Sum of the squared errors of each series before a position, or of all of them, and their number."""
        first = np.searchsorted(self._series, series)
        end = np.searchsorted(self._series, series, "right") if before is None else before
        squares, counts = (sums[..., end] - sums[..., first] for sums in (self._squares, self._counts))
        return squares, counts

    def _logs(self, series: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Logarithm of the mean square of each series with one error of the prior, 0 where no error is known."""
        squares, counts = self._own(series)
        return np.where(counts > 0, np.log((self._prior + squares) / (1 + counts)), 0.0), counts > 0


_PRIORS: Final = np.array(
    [[CANDIDATE_PRIOR * 2.0 ** max(it.parameters - 2, 0) * (GROWING_FACTOR if it.grows else 1.0)] for it in CANDIDATES]
)


class ScalingModel:
    """The average of the candidates, with weights and intervals learnt from the origins of series."""

    def __init__(self, origins: Origins) -> None:
        """A model of series; without any origin its weights and intervals are those of the priors."""
        found = predictions(origins.problems)
        self._origins, self._errors = origins, origins.errors(found)
        self._candidates = Experience(origins, self._errors, _PRIORS, _CANDIDATE_STRENGTH)
        centres = _mean(found, self._weights(found, origins.series, origins.known))[0]
        self._average = Experience(origins, origins.errors(centres), np.array(AVERAGE_PRIOR), _AVERAGE_STRENGTH)

    def predict(
        self, problems: Problems, series: IntArray, scatter: FloatArray, before: IntArray | None = None
    ) -> Averages:
        """Predictions for series, from their origins `before` a position, or from all of them.

        `scatter` is that of repeated runs, of the logarithm.
        """
        found = predictions(problems)
        weights = self._weights(found, series, before)
        centre, spread = _mean(found, weights)
        variance = self._average.mean_square(series, before) * problems.doublings**2 + spread + scatter**2
        return Averages(centre, np.sqrt(variance), self._average.freedom(series, before), weights)

    def at_origins(self, scatter: FloatArray) -> Averages:
        """Prediction of each origin from what was known before."""
        return self.predict(self._origins.problems, self._origins.series, scatter, self._origins.known)

    def candidate_errors(self) -> tuple[FloatArray, FloatArray]:
        """Root mean square error of each candidate for a doubling, NaN without any, and number of its errors."""
        counts = np.isfinite(self._errors).sum(axis=1).astype(float)
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.nansum(self._errors**2, axis=1) / counts), counts

    def _weights(self, found: FloatArray, series: IntArray, before: IntArray | None) -> FloatArray:
        raw = np.where(np.isfinite(found), self._candidates.mean_square(series, before) ** -_SHARPNESS, 0.0)
        weights: FloatArray = raw / raw.sum(axis=0)
        return weights


def _mean(found: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean of the candidates' logarithms, and their variance about it."""
    values = np.where(weights > 0, found, 0.0)
    centre = (weights * values).sum(axis=0)
    return centre, (weights * (values - centre) ** 2).sum(axis=0)
