"""Whole numbers near a present one, as far as trying all of them takes seconds.

Results over whole numbers jump: a number of ranks that divides the grid has a result, the next one has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.models.quantities import FloatArray

MOST_NUMBERS: Final = 20_000
MOST_SUM: Final = 3e6
"""Largest sum of the numbers that are tried: placing ranks takes time by rank."""


@dataclass(frozen=True, eq=False)
class NearNumbers:
    """Whole numbers of a range, the nearest to a present one first."""

    numbers: FloatArray
    is_all: bool
    """Whether no number of the range was left out."""


def distance(numbers: FloatArray, present: float) -> FloatArray:
    """Distance from a present value: the logarithm of a factor, or a difference if any of the values is 0 or less."""
    by_factor = min(float(np.min(numbers, initial=np.inf)), present) > 0
    return np.abs(np.log(numbers / present) if by_factor else numbers - present)


def near_numbers(present: float, first: float, last: float) -> NearNumbers:
    """Whole numbers from `first` to `last`, those that are nearest to `present` in factor or difference first."""
    middle = min(max(round(present), first), last)
    low, high = max(np.ceil(first), middle - MOST_NUMBERS), min(np.floor(last), middle + MOST_NUMBERS)
    numbers = np.arange(low, high + 1, dtype=np.float64)
    nearest = numbers[np.argsort(distance(numbers, present), kind="stable")]
    tried = nearest[np.cumsum(np.abs(nearest)) <= MOST_SUM][:MOST_NUMBERS]
    return NearNumbers(tried, tried.size == max(np.floor(last) - np.ceil(first) + 1, 0))


def spread_numbers(first: float, last: float) -> FloatArray:
    """Powers of two of a range, and three times these: numbers that divide many others."""
    powers = 2.0 ** np.arange(1024)
    found = np.union1d(powers, 3 * powers[:1022])
    return found[(found >= first) & (found <= last)]
