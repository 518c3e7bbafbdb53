"""Calls of HPL's kernels with all cores busy, with the sizes that HPL calls them with, as a table of calibrations."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from whatif.importers.rows import row_table
from whatif.measuring.hardware import Machine
from whatif.measuring.loops import spans
from whatif.measuring.repetition import Clock
from whatif.measuring.routines import BLAS, OWN
from whatif.measuring.team import Timer
from whatif.table import Table
from whatif.units import ONE, SECOND

KERNELS: Final = (*BLAS, *OWN)
COLUMNS: Final = {"kernel": None, "m": ONE, "n": ONE, "k": ONE, "time": SECOND, "busy_cores": ONE}
LARGEST: Final = 4000
"""Largest M and N that are timed."""
SMALLEST: Final = 256
_WIDEST: Final = 256
"""Largest K: the block size of HPL."""
_CALLS: Final = 30
"""Calls of one command: a turn of dgemm and each kernel."""
_RECORDED: Final = 4
"""Workers whose times of a call are kept: those of all would be too many rows on a large node."""
_LONGEST: Final = 0.01
"""Share of the time that the longest call may take."""
_MEMORY: Final = 0.25
"""Share of the memory that the matrices of all workers may fill."""


def time_kernels(
    timer: Timer, machine: Machine, seconds: float, clock: Clock, progress: Callable[[float], None] = lambda share: None
) -> Table:
    """Times of single calls of all kernels for `seconds`, with the columns of `fit kernel`."""
    every, begin = len(machine.cores), clock()
    largest = largest_size(timer, machine, seconds)
    chosen = random.Random(1)  # noqa: S311
    rows: list[dict[str, Any]] = []
    turn = 0
    while turn == 0 or clock() - begin < seconds:
        plan = [_drawn(chosen, turn + at, largest) for at in range(_CALLS)]
        times = timer.rounds(every, _CALLS, do="hpl", plan=plan, largest=largest)
        taken = times[:, :, 1] - times[:, :, 0]
        rows += [
            {"kernel": KERNELS[kernel], "m": m, "n": n, "k": k, "time": taken[at, worker], "busy_cores": every}
            for at, (kernel, m, n, k, _) in enumerate(plan)
            for worker in sorted(chosen.sample(range(every), min(every, _RECORDED)))
            if taken[at, worker] > 0
        ]
        turn += _CALLS
        progress(min((clock() - begin) / seconds, 1.0))
    return row_table(rows, COLUMNS, {"kind": "samples"})


def largest_size(timer: Timer, machine: Machine, seconds: float) -> int:
    """Largest M and N: a square dgemm takes at most a hundredth of the time, and the matrices a quarter of memory."""
    every = len(machine.cores)
    shape = (SMALLEST, SMALLEST, _WIDEST)
    times = timer.rounds(every, 3, do="gemm", shape=shape, precision="float64", sweeps=1)
    rate = SMALLEST**2 / float(np.median(spans(times)))
    room = _MEMORY * machine.memory_size / (8 * every) if machine.memory_size else float(LARGEST) ** 2
    return int(np.clip(min(rate * _LONGEST * seconds, room) ** 0.5, SMALLEST, LARGEST))


def _drawn(chosen: random.Random, turn: int, largest: int) -> list[int]:
    """Kernel and sizes of a call: updates with K = NB or M = NB, and small calls within a panel, as HPL makes them.

    A panel stays in the caches from call to call (the last value is 1), the rest of the matrix does not.
    """
    kernel = 0 if turn % 2 else turn // 2 % len(KERNELS)
    name, small = KERNELS[kernel], chosen.random() < 0.5
    m, n, k = chosen.randint(1, largest), chosen.randint(1, largest), chosen.randint(32, _WIDEST)
    if name == "dgemm" and small:
        n, k = chosen.randint(1, 64), chosen.randint(1, 64)
    elif name == "dtrsm":
        m, n = (chosen.randint(1, 64), chosen.randint(1, 64)) if small else (chosen.randint(32, _WIDEST), n)
    elif name in ("dlacpy", "dlatcpy"):
        n = chosen.randint(1, _WIDEST)
    elif name in OWN:
        m = chosen.randint(1, _WIDEST)
    elif name in ("dtrsv", "dgemv", "dger"):
        n = chosen.randint(1, 16)
    in_cache = name in BLAS and (small or name not in ("dgemm", "dtrsm"))
    return [kernel, m, n, k, int(in_cache)]
