"""Simulation of HPL for its page, in a worker process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from whatif.core.session import SessionInputs
from whatif.errors import WhatifError
from whatif.linpack.process_grids import Grid, Share, simulate_grids
from whatif.tui.simulation_job import SimulationRefusal

_PAUSE_SECONDS: Final = 0.1


def simulate_hpl(
    inputs: SessionInputs, known: frozenset[Grid], report: Callable[[Any], None]
) -> SimulationRefusal | None:
    """Report the run of a scenario and the rates on all other grids; the reason if that is not possible."""
    try:
        simulate_grids(inputs.program, known, _sparingly(report))
    except WhatifError as problem:
        return SimulationRefusal(str(problem))
    except MemoryError:
        return SimulationRefusal("this needs more memory than is available")
    return None


def _sparingly(report: Callable[[Any], None]) -> Callable[[Any], None]:
    """Report progress no more often than anybody can see, and everything else."""
    last = time.monotonic()

    def reported(value: Any) -> None:
        nonlocal last
        if not isinstance(value, Share):
            report(value)
        elif time.monotonic() > last + _PAUSE_SECONDS:
            last = time.monotonic()
            report(value)

    return reported
