"""Timing, and rows of the result table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measurement and its alternative; `ratio` is the factor by which whatif is better."""

    what: str
    this: str
    other: str = ""
    ratio: float = 0.0
    alternative: str = ""


def median_seconds(action: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Median time of an action after one run to warm up."""
    action()
    times = []
    for _ in range(repeats):
        start = clock()
        action()
        times.append(clock() - start)
    return statistics.median(times)
