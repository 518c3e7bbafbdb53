"""HPL played beside for its page: the run of the study, then every other grid of as many processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, Final

from whatif.core.session import SessionInputs
from whatif.errors import WhatifError
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.simulation.simulator import HPLOutcome, rank_of_process
from whatif.models.quantities import IntArray
from whatif.tui.simulation_job import SimulationRefusal

MOST_PANELS: Final = 32
"""First panels that are written down for every process."""
_MOST_SEEN: Final = 2**18
"""Panels times processes that are written down: 10 MB."""
_PAUSE_SECONDS: Final = 0.1
Grid = tuple[int, int]
"""Process rows and columns."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of the run, or of the other grids, has been played."""

    of_grids: bool
    done: float


@dataclass(frozen=True, slots=True, eq=False)
class HPLRunView:
    """The run of the study."""

    outcome: HPLOutcome
    nodes: IntArray
    """[process row, process column]"""
    machine: str
    seed: int
    noise: str


@dataclass(frozen=True, slots=True)
class GridRate:
    """What HPL reaches on one grid, in operations a second."""

    grid: Grid
    rate: float


def played(asked: SessionInputs, known: frozenset[Grid], tell: Callable[[Any], None]) -> SimulationRefusal | None:
    """Tell the run of a study and the rates on all grids, but for those that are known; None when all is told."""
    try:
        runs = HPLRuns(asked.program)
        configuration = runs.configuration
        refusal = runs.refusal(configuration)
        if refusal is not None:
            return SimulationRefusal(refusal.message)
        if grid_of(configuration) not in known:
            _tell_run(runs, configuration, tell)
        _tell_grids(runs, configuration, known, tell)
    except WhatifError as problem:
        return SimulationRefusal(str(problem))
    except MemoryError:
        return SimulationRefusal("this needs more memory than there is")
    return None


def grid_of(configuration: Configuration) -> Grid:
    """Process rows and columns."""
    return configuration.process_rows, configuration.process_columns


def grids(process_count: int) -> list[Grid]:
    """All grids of so many processes, from one process row to one process column."""
    flat = [(rows, process_count // rows) for rows in range(1, isqrt(process_count) + 1) if process_count % rows == 0]
    return sorted({*flat, *((columns, rows) for rows, columns in flat)})


def _tell_run(runs: HPLRuns, configuration: Configuration, tell: Callable[[Any], None]) -> None:
    told = _sparingly(tell)
    count = min(MOST_PANELS, max(1, _MOST_SEEN // configuration.rank_count), configuration.step_count)
    outcome = runs.run(configuration, runs.seed, lambda done, steps: told(Share(False, done / steps)), count)
    nodes = (rank_of_process(configuration) // runs.ranks_per_node).reshape(grid_of(configuration))
    machine = runs.program.loaded.scenario.platform.name
    tell(HPLRunView(outcome, nodes, machine, runs.seed, runs.plan.noise))


def _tell_grids(
    runs: HPLRuns, configuration: Configuration, known: frozenset[Grid], tell: Callable[[Any], None]
) -> None:
    """Play the other grids, those first that are like the present one."""
    here, told = grid_of(configuration), _sparingly(tell)
    others = [grid for grid in grids(configuration.rank_count) if grid not in known and grid != here]
    others.sort(key=lambda grid: max(grid[0] / here[0], here[0] / grid[0]))
    shares = dict.fromkeys(range(len(others)), 0.0)

    def progress(number: int, share: float) -> None:
        shares[number] = share
        told(Share(True, sum(shares.values()) / len(shares)))

    tasks = (
        (replace(configuration, process_rows=rows, process_columns=columns), runs.seed) for rows, columns in others
    )
    for outcome in runs.in_order(tasks, progress):
        tell(GridRate(grid_of(outcome.configuration), outcome.rate))


def _sparingly(tell: Callable[[Any], None]) -> Callable[[Any], None]:
    """Tell no more often than anybody can see."""
    last = time.monotonic()

    def told(value: Any) -> None:
        nonlocal last
        if time.monotonic() > last + _PAUSE_SECONDS:
            last = time.monotonic()
            tell(value)

    return told
