"""Correction of a platform by measured runs of HPL: a factor of the time of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.errors import UsageError
from whatif.files.platform_file import PlatformChange, change_of
from whatif.fitting.fit_result import Fit, root_mean_square
from whatif.linpack.prediction_tables import HPLPrediction
from whatif.models.quantities import FloatArray
from whatif.units import ONE

FEWEST: Final = 3
"""Least number of measured configurations for a correction."""
_SAME: Final = 0.01
"""Least change of the kernels, as logarithm, by which their share in the time is found."""

Predict = Callable[[Sequence[HPLPrediction], float], Sequence[float]]
"""Times of predictions with the time of all kernels multiplied by a factor."""


@dataclass(frozen=True, slots=True)
class LearntCorrection:
    """Factor of the time of kernels, relative to their calibration."""

    factor: float
    """Estimate for all configurations."""
    deviation: float
    """Standard deviation of the factor of another configuration."""
    run_deviation: float | None
    """Standard deviation of the time of kernels from run to run, relative; None if no run was repeated."""
    configuration_count: int
    run_count: int
    sizes: tuple[float, float]
    """Smallest and largest N."""

    def change(self, present: float, files: Sequence[str]) -> PlatformChange:
        """Change of a platform whose correction is `present`."""
        value = present * self.factor
        spread = np.array([[(value * self.deviation) ** 2]])
        fit = Fit("kernels", {"correction": ONE}, np.array([value]), spread, {"matrix_size": self.sizes},
                  self.run_count, self.deviation)  # fmt: skip
        source = f"learnt from {self.run_count} runs of {self.configuration_count} configurations of HPL"
        values = {} if self.run_deviation is None else {"kernels.run_deviation": f"{self.run_deviation:.4g}"}
        return change_of([fit], f"{source} ({', '.join(files)})", values)


def learnt_correction(predictions: Sequence[HPLPrediction], predict: Predict) -> LearntCorrection:
    """Factor of the kernels with which predictions meet the measured times.

    The times of messages stay. With the share e of the kernels in a time t, d ln t = e d ln f. The factor f is the
    least-squares solution of ln(measured / predicted) = e ln f, so that configurations have weights e^2. The scatter s
    of n repeated runs explains s^2 / (n e^2) of the variance of ln f between configurations; as a deviation of the
    kernels it is s / e. Raise `UsageError` for fewer than `FEWEST` configurations, and without a share of the kernels.
    """
    known = [item for item in predictions if item.measured]
    if len(known) < FEWEST:
        raise UsageError(f"a correction needs at least {FEWEST} measured configurations; there are {len(known)}")
    off = np.log([item.measured_time / item.row.time for item in known])
    shares = _shares(known, off, predict)
    if (shares > 0).sum() < 2:
        raise UsageError("a correction needs at least 2 measured configurations whose times depend on the kernels")
    log_factor = float(shares @ off / (shares @ shares))
    runs = np.array([len(item.measured) for item in known])
    scatter = _scatter(known)
    deviation = _deviation(off - shares * log_factor, shares, (scatter or 0.0) ** 2 / runs)
    of_kernels = None if scatter is None else scatter / root_mean_square(shares)
    sizes = [float(item.row.configuration.matrix_size) for item in known]
    return LearntCorrection(
        float(np.exp(log_factor)), deviation, of_kernels, len(known), int(runs.sum()), (min(sizes), max(sizes))
    )


def _shares(known: Sequence[HPLPrediction], off: FloatArray, predict: Predict) -> FloatArray:
    """Share of the kernels in each time, from predictions with kernels slower by about what is to be learnt."""
    change = float(off.mean()) if abs(off.mean()) > _SAME else _SAME
    slower = np.log(predict(known, float(np.exp(change)))) - np.log([item.row.time for item in known])
    return np.clip(slower / change, 0.0, 1.0)


def _deviation(residuals: FloatArray, shares: FloatArray, run_variances: FloatArray) -> float:
    """Standard deviation of the factor of another configuration: between configurations, and that of the mean."""
    squares = float(shares @ shares)
    of_mean = float((shares**4).sum()) / squares**2
    total = float(residuals @ residuals) / squares / (1 - of_mean)
    between = max(total - float(run_variances.sum()) / squares, 0.0)
    return float(np.sqrt(between + total * of_mean))


def _scatter(known: Sequence[HPLPrediction]) -> float | None:
    """Standard deviation of the logarithm of the time of repeated runs, about the mean of their configuration."""
    logs = [np.log([run.time for run in item.measured]) for item in known]
    freedom = sum(len(times) - 1 for times in logs)
    return float(np.sqrt(sum(((times - times.mean()) ** 2).sum() for times in logs) / freedom)) if freedom else None
