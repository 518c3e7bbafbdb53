"""Timing, and rows of the result table."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path


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


def peak_memory(action: Callable[[], object]) -> float:
    """Peak memory in bytes of a function of a module, run in a process of its own, with what it imports.

    Linux only. `ru_maxrss` of a new process begins with the memory of the process that started it.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_peak_after, action).result()


def _peak_after(action: Callable[[], object]) -> float:
    action()
    return memory("VmHWM")


def memory(name: str) -> float:
    """Memory of this process in bytes: `VmRSS`, or its peak `VmHWM`. Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name))) * 1024
