"""Simulation of HPL for its page, in a worker process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from whatif.core.session import SessionInputs
from whatif.linpack.process_grids import Grid, Share, simulate_grids
from whatif.tui.jobs.refusal import answer_or_refusal

_PAUSE_SECONDS: Final = 0.1


@answer_or_refusal
def simulate_hpl(inputs: SessionInputs, known: frozenset[Grid], report: Callable[[Any], None]) -> None:
    """Report the run of a scenario and the rates on all other grids."""
    simulate_grids(inputs.program, known, _sparingly(report))


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
