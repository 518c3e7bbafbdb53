"""Errors of predicted runs of HPL against measured ones: mean, bias, order, coverage, and the choice between runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.linpack.prediction_tables import LEVEL, HPLPrediction, in_short
from whatif.models.quantities import FloatArray

_FEWEST_RANKED: Final = 3
"""Least number of configurations of one N for a meaningful ranking."""


@dataclass(frozen=True, slots=True)
class HPLErrors:
    """Errors of predictions that were measured; times of repeated runs count by their mean, but for the coverage."""

    configuration_count: int
    run_count: int
    mean_error: float
    """Mean absolute relative error of the times."""
    bias: float
    """Mean relative error of the times: below 0 for predictions that are too fast."""
    rank_correlation: float
    """Spearman's, of predicted and measured times of one N, mean over N by their configurations; NaN for too few."""
    coverage: float
    """Share of the measured runs inside the interval; NaN without intervals."""
    chosen: tuple[HPLPrediction, ...]
    """Configuration with the least predicted time, for each N."""
    best: tuple[HPLPrediction, ...]
    """Configuration with the least measured time, for each N."""

    def lines(self) -> Iterator[str]:
        """Errors in words, and what the chosen configuration of each N loses."""
        text = f"{self.run_count} measured runs of {self.configuration_count} configurations: "
        text += f"mean error {self.mean_error:.1%}, bias {self.bias:+.1%}"
        if not math.isnan(self.rank_correlation):
            text += f", rank correlation {self.rank_correlation:.2f}"
        if not math.isnan(self.coverage):
            text += f"; {self.coverage:.0%} of the runs are in the {LEVEL:.0%} interval"
        yield text
        for chosen, best in zip(self.chosen, self.best, strict=True):
            rate = best.measured_time / chosen.measured_time
            words = f"N {chosen.row.configuration.matrix_size}: {in_short(chosen)} is predicted to be the fastest"
            yield f"{words} and was" if chosen is best else f"{words}; it reached {rate:.1%} of {in_short(best)}"


def errors_of(predictions: Sequence[HPLPrediction]) -> HPLErrors | None:
    """Errors of the predictions that were measured; None without any."""
    known = [item for item in predictions if item.measured]
    if not known:
        return None
    errors = np.array([item.error for item in known])
    inside = [low <= run.time <= high for item in known if item.row.interval is not None
              for low, high in [item.row.interval] for run in item.measured]  # fmt: skip
    sizes = dict.fromkeys(item.row.configuration.matrix_size for item in known)
    groups = [[item for item in known if item.row.configuration.matrix_size == size] for size in sizes]
    several = [group for group in groups if len(group) > 1]
    return HPLErrors(
        len(known),
        sum(len(item.measured) for item in known),
        float(np.abs(errors).mean()),
        float(errors.mean()),
        _rank_correlation([group for group in groups if len(group) >= _FEWEST_RANKED]),
        float(np.mean(inside)) if inside else math.nan,
        tuple(min(group, key=lambda item: item.row.time) for group in several),
        tuple(min(group, key=lambda item: item.measured_time) for group in several),
    )


def _rank_correlation(groups: Sequence[Sequence[HPLPrediction]]) -> float:
    if not groups:
        return math.nan
    found = []
    for group in groups:
        ours, theirs = (_ranks(times) for times in zip(*((it.row.time, it.measured_time) for it in group), strict=True))
        varied = min(np.ptp(ours), np.ptp(theirs)) > 0
        found.append(float(np.corrcoef(ours, theirs)[0, 1]) if varied else 0.0)
    return float(np.average(found, weights=[len(group) for group in groups]))


def _ranks(values: Sequence[float]) -> FloatArray:
    """Ranks from 1 on, equal values with the mean of theirs."""
    # Not those of `scipy.stats`, whose import takes a second.
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: FloatArray = (np.cumsum(counts) - (counts - 1) / 2)[places]
    return ranks
