"""Number of simulated points, reported while they are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from whatif.core.message_simulation import SIMULATED
from whatif.units import counted


@contextmanager
def simulations_counted(progress: Callable[[str], None]) -> Iterator[None]:
    """Report of the number of simulated points, after each one."""
    numbers = count(1)
    token = SIMULATED.set(lambda: progress(counted(next(numbers), "simulation")))
    try:
        yield
    finally:
        SIMULATED.reset(token)
