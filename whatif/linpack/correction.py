"""Correction of a machine learnt from runs of HPL: the time of its kernels relative to their calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.errors import UsageError
from whatif.files.platform_file import PlatformChange, change_of
from whatif.fitting.fit_result import Fit
from whatif.linpack.prediction_tables import HPLPrediction
from whatif.units import ONE

FEWEST: Final = 3
"""Measured configurations without which nothing is learnt."""
_SAME: Final = 0.01
"""Change of the time below which kernels count as all of it."""
_LEAST_SHARE: Final = 0.2
"""Least share of the kernels in the time that a run says something about them."""

Predict = Callable[[Sequence[HPLPrediction], float], Sequence[float]]
"""Times of predictions with all kernels so many times as slow."""


@dataclass(frozen=True, slots=True)
class LearntCorrection:
    """Relative time of kernels."""

    factor: float
    """Geometric mean over the configurations."""
    deviation: float
    """Standard deviation of the factor of another configuration."""
    run_deviation: float | None
    """Standard deviation of the time from run to run, relative; None where nothing was repeated."""
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

    Messages keep their times: the logarithm of a run's factor is that of measured over predicted time, divided by the
    elasticity of the time to the kernels, which a second prediction with slower kernels shows. The deviation is that
    between configurations less the scatter of their runs. Raise `UsageError` for fewer than `FEWEST` of them.
    """
    known = [item for item in predictions if item.measured]
    if len(known) < FEWEST:
        raise UsageError(f"a correction needs at least {FEWEST} measured configurations; there are {len(known)}")
    off = np.log([item.measured_time / item.row.time for item in known])
    change = off.mean() if abs(off.mean()) > _SAME else _SAME
    times = np.log(predict(known, float(np.exp(change)))) - np.log([item.row.time for item in known])
    logs = off / np.clip(times / change, _LEAST_SHARE, 1.0)
    runs = np.array([len(item.measured) for item in known])
    scatter = _scatter(known)
    between = float(np.var(logs, ddof=1)) - (scatter or 0.0) ** 2 * float(np.mean(1 / runs))
    sizes = [float(item.row.configuration.matrix_size) for item in known]
    return LearntCorrection(
        float(np.exp(logs.mean())), float(np.sqrt(max(between, 0.0) * (1 + 1 / len(known)))), scatter, len(known),
        int(runs.sum()), (min(sizes), max(sizes)),
    )  # fmt: skip


def _scatter(known: Sequence[HPLPrediction]) -> float | None:
    """Standard deviation of the logarithm of the time of repeated runs, about the mean of their configuration."""
    logs = [np.log([run.time for run in item.measured]) for item in known]
    freedom = sum(len(times) - 1 for times in logs)
    return float(np.sqrt(sum(((times - times.mean()) ** 2).sum() for times in logs) / freedom)) if freedom else None
