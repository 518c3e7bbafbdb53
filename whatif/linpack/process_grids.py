"""Simulation of one run of HPL and of the same run on every other grid P x Q of as many processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.simulation.simulator import HPLOutcome, rank_of_process
from whatif.linpack.threads import in_total
from whatif.linpack.tuning import factorisations
from whatif.models.quantities import IntArray

MOST_PANELS: Final = 32
"""Most first panels that are recorded for every process."""
_MOST_SEEN: Final = 2**18
"""Most panels times processes that are recorded: 10 MB."""
Grid = tuple[int, int]
"""Process rows and columns."""
Report = Callable[[Any], None]
"""Receiver of `Share`, `HPLRunView` and `GridRate`."""


@dataclass(frozen=True, slots=True)
class Share:
    """Finished share of the run, or of the other grids."""

    of_grids: bool
    done: float


@dataclass(frozen=True, slots=True, eq=False)
class HPLRunView:
    """Outcome of the run of a scenario, with its first panels."""

    outcome: HPLOutcome
    nodes: IntArray
    """[process row, process column]"""
    machine: str
    seed: int
    noise: str


@dataclass(frozen=True, slots=True)
class GridRate:
    """Rate on one grid, in flop/s."""

    grid: Grid
    rate: float


def simulate_grids(program: Program, known: frozenset[Grid], report: Report) -> None:
    """Report the run of a scenario, then the rates on all other grids but the known ones, similar grids first.

    Raise `UsageError` for an infeasible run.
    """
    runs = HPLRuns(program)
    configuration = runs.configuration
    refusal = runs.refusal(configuration)
    if refusal is not None:
        raise UsageError(refusal.message)
    if grid_of(configuration) not in known:
        _report_run(runs, configuration, report)
    _report_grids(runs, configuration, known, report)


def grid_of(configuration: Configuration) -> Grid:
    """Process rows and columns."""
    return configuration.process_rows, configuration.process_columns


def grids(process_count: int) -> list[Grid]:
    """All grids of a number of processes, from one process row to one process column."""
    return sorted(factorisations(process_count))


def _report_run(runs: HPLRuns, configuration: Configuration, report: Report) -> None:
    count = min(MOST_PANELS, max(1, _MOST_SEEN // configuration.rank_count), configuration.step_count)
    outcome = runs.run(configuration, runs.seed, lambda done, steps: report(Share(False, done / steps)), count)
    nodes = (rank_of_process(configuration) // runs.ranks_per_node).reshape(grid_of(configuration))
    machine = runs.program.loaded.scenario.platform.name
    report(HPLRunView(outcome, nodes, machine, runs.seed, runs.plan.noise))


def _report_grids(runs: HPLRuns, configuration: Configuration, known: frozenset[Grid], report: Report) -> None:
    here = grid_of(configuration)
    others = [grid for grid in grids(configuration.rank_count) if grid not in known and grid != here]
    others.sort(key=lambda grid: max(grid[0] / here[0], here[0] / grid[0]))
    tasks = (
        (replace(configuration, process_rows=rows, process_columns=columns), runs.seed) for rows, columns in others
    )
    progress = in_total(len(others), lambda share: report(Share(True, share)))
    for outcome in runs.in_order(tasks, progress):
        report(GridRate(grid_of(outcome.configuration), outcome.rate))
