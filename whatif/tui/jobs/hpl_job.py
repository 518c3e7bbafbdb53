"""Simulation of HPL for its page, in a worker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whatif.core.session import SessionInputs
from whatif.linpack.process_grids import Grid, Share, simulate_grids
from whatif.tui.jobs.job import sparingly
from whatif.tui.jobs.refusal import answer_or_refusal


@answer_or_refusal
def simulate_hpl(inputs: SessionInputs, known: frozenset[Grid], report: Callable[[Any], None]) -> None:
    """Report the run of a scenario and the rates on all other grids, and now and then the progress."""
    progress = sparingly(report)
    simulate_grids(inputs.program, known, lambda value: (progress if isinstance(value, Share) else report)(value))
