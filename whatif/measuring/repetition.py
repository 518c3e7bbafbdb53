"""Repetition of measurements until their scatter is known well enough, or their time is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from whatif.models.quantities import FloatArray

TARGET: Final = 0.01
"""Relative standard error from which a measurement is known well enough."""
FEWEST: Final = 5
"""Repetitions without which no scatter is known."""
MAD_SCALE: Final = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
_MEDIAN: Final = float(np.sqrt(np.pi / 2))
"""Standard error of the median over that of the mean, of a normal distribution."""
Clock = Callable[[], float]


@dataclass(frozen=True)
class Task:
    """A measurement that can be repeated."""

    name: str
    run: Callable[[], float]
    """One repetition: a rate in base units."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Repetitions of one measurement."""

    name: str
    values: FloatArray
    """In base units."""

    @property
    def median(self) -> float:
        """Their median."""
        return float(np.median(self.values))

    @property
    def scatter(self) -> float:
        """Relative standard deviation of one repetition, from the median deviation; NaN for fewer than two."""
        if len(self.values) < 2:
            return float("nan")
        return float(MAD_SCALE * np.median(np.abs(self.values - self.median)) / self.median)

    @property
    def standard_error(self) -> float:
        """Standard error of the median, in base units; NaN for fewer than two repetitions."""
        return _MEDIAN * self.scatter * self.median / float(np.sqrt(len(self.values)))

    @property
    def known(self) -> bool:
        """Whether the median is known well enough."""
        return len(self.values) >= FEWEST and self.standard_error <= TARGET * self.median


def repeat(
    tasks: Sequence[Task], seconds: float, clock: Clock, progress: Callable[[float], None] = lambda share: None
) -> list[Sample]:
    """Samples of tasks, each run in turn until all are known, or `seconds` have passed; each runs at least once.

    Tasks take turns, so that a disturbance of some seconds meets all of them. `progress` receives the share of time.
    """
    if not tasks:
        return []
    values: list[list[float]] = [[] for _ in tasks]
    begin = clock()
    while True:
        for found, task in zip(values, tasks, strict=True):
            if found and clock() - begin >= seconds:
                break
            if not Sample(task.name, np.array(found)).known:
                found.append(task.run())
            progress(min((clock() - begin) / seconds, 1.0))
        samples = [Sample(task.name, np.array(found)) for found, task in zip(values, tasks, strict=True)]
        if clock() - begin >= seconds or all(sample.known for sample in samples):
            return samples
