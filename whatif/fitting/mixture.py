"""Mixtures of normals by expectation and maximisation, with as many modes as the information criterion finds.

Source: A. P. Dempster, N. M. Laird and D. B. Rubin, "Maximum likelihood from incomplete data via the EM algorithm",
J. R. Stat. Soc. B 39, 1977; the criterion is G. Schwarz, "Estimating the dimension of a model", Ann. Stat. 6, 1978.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray

FEWEST_OF_MODE: Final = 4
"""Values that each mode needs on the average."""
_LEAST_WIDTH: Final = 0.02
"""Least standard deviation of a mode, relative to that of all values: no mode may shrink to one value."""
_MOST_ROUNDS: Final = 500
_SETTLED: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Mixture:
    """Normals with weights, the lowest mean first; arrays of shape (modes,)."""

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    criterion: float
    """-2 ln L + p ln n with p = 3 modes - 1."""

    def __len__(self) -> int:
        return len(self.weights)


def mixture(values: Any, most_modes: int = 4) -> Mixture:
    """The mixture with the least criterion, of 1, 2, .. `most_modes` normals.

    Each mode has at least `FEWEST_OF_MODE` values on the average, and each mixture starts from equal parts of the
    sorted values. Raise `UsageError` for no values, or values that are not finite.
    """
    sample = np.sort(np.asarray(values, dtype=float).ravel())
    if not len(sample) or not np.isfinite(sample).all():
        raise UsageError("a mixture needs values, all of them finite")
    most = max(min(most_modes, len(sample) // FEWEST_OF_MODE), 1)
    return min((_settled(sample, count) for count in range(1, most + 1)), key=lambda found: found.criterion)


def _settled(sample: FloatArray, count: int) -> Mixture:
    floor = max(_LEAST_WIDTH * float(np.std(sample)), np.finfo(float).tiny ** 0.5)
    parts = np.array_split(sample, count)
    weights = np.array([len(part) / len(sample) for part in parts])
    means = np.array([part.mean() for part in parts])
    deviations = np.maximum([np.std(part) for part in parts], floor)
    before = -np.inf
    for _ in range(_MOST_ROUNDS):
        shares, likelihood = _shares(sample, weights, means, deviations)
        if likelihood - before <= _SETTLED * max(abs(likelihood), 1.0):
            break
        before = likelihood
        totals = np.maximum(shares.sum(axis=0), np.finfo(float).tiny)
        weights, means = totals / len(sample), shares.T @ sample / totals
        squares = (shares * (sample[:, None] - means) ** 2).sum(axis=0) / totals
        deviations = np.maximum(np.sqrt(squares), floor)
    order = np.argsort(means)
    criterion = float(-2 * likelihood + (3 * count - 1) * np.log(len(sample)))
    return Mixture(weights[order], means[order], deviations[order], criterion)


def _shares(
    sample: FloatArray, weights: FloatArray, means: FloatArray, deviations: FloatArray
) -> tuple[FloatArray, float]:
    """Share of each mode in each value, of shape (values, modes), and the logarithm of the likelihood."""
    scaled = (sample[:, None] - means) / deviations
    with np.errstate(divide="ignore"):
        logs = np.log(weights) - np.log(deviations * np.sqrt(2 * np.pi)) - 0.5 * scaled**2
    largest = logs.max(axis=1, keepdims=True)
    density = np.exp(logs - largest)
    total = density.sum(axis=1, keepdims=True)
    return density / total, float((np.log(total) + largest).sum())
