"""Programs measured on one processor and predicted on others: CloverLeaf and OpenSBLI on four nodes with Aries.

One run on the fewest nodes gives the time of the kernels; on another processor they take it in the ratio of the memory
bandwidths. Halos and reductions are those of the models, and nothing was fitted to a run on the other processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.shipped import shipped_folder
from whatif.units import ONE, SECOND, Dimension
from whatif.validation.measured_kinds import ErrorTable, Row, Rows, mean_errors, summarised_table

_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "program": None, "measured_on": None, "processor": None, "nodes": ONE, "measured": SECOND, "predicted": SECOND,
    "error": ONE, "by_triads": ONE, "by_perfect_scaling": ONE,
}  # fmt: skip
_BOUNDS: Final = {
    "cloverleaf, Xeon to Xeon": 0.05,
    "cloverleaf, to ThunderX2": 0.25,
    "cloverleaf, from ThunderX2": 0.25,
    "opensbli, Xeon to Xeon": 0.1,
    "opensbli, to ThunderX2": 0.25,
    "opensbli, from ThunderX2": 0.25,
}
"""Largest mean absolute error of each kind of pairs."""


class _Run(NamedTuple):
    """A measured run, the time of its kernels with 1 kB for each cell, and that of all else, in s."""

    processor: str
    nodes: float
    measured: float
    kernels: float
    rest: float
    bandwidth: float


def cpu_programs(rows: Rows) -> ErrorTable:
    """One row per program, processor that it was measured on, other processor and number of nodes.

    `by_triads` is the error of a run on as many nodes times the ratio of the bandwidths, `by_perfect_scaling` that of
    the run on the fewest nodes times the ratio, over the nodes.
    """
    table = [cells for program in dict.fromkeys(row["program"] for row in rows) for cells in _predicted(program, rows)]
    errors = np.array([cells[6] for cells in table])
    kinds = np.array([_kind(*map(str, cells[:3])) for cells in table])
    title = "programs on processors that they were not measured on"
    return summarised_table(_COLUMNS, table, title, mean_errors(kinds, errors, _BOUNDS))


def _kind(program: str, measured_on: str, processor: str) -> str:
    ways = {measured_on: "from ThunderX2", processor: "to ThunderX2"}
    return f"{program}, {ways.get('thunderx2-32c', 'Xeon to Xeon')}"


def _predicted(program: str, rows: Rows) -> Iterator[tuple[str | float, ...]]:
    runs = [_evaluated(row) for row in rows if row["program"] == program]
    for known in dict.fromkeys(run.processor for run in runs):
        there = {run.nodes: run for run in runs if run.processor == known}
        anchor = there[min(there)]
        factor = (anchor.measured - anchor.rest) / anchor.kernels
        for run in runs:
            if run.processor != known and run.nodes in there:
                ratio = anchor.bandwidth / run.bandwidth
                others = there[run.nodes].measured * ratio, anchor.measured * anchor.nodes / run.nodes * ratio
                times = np.array([factor * run.kernels + run.rest, *others])
                errors = (times / run.measured - 1).tolist()
                yield program, known, run.processor, run.nodes, run.measured, float(times[0]), *errors


def _evaluated(row: Row) -> _Run:
    overrides = {"platform.node.cpu.extends": row["processor"], "application.rank_count": row["ranks"]}
    scenario = Scenario.open(shipped_folder("validation") / f"{row['program']}.toml", overrides=overrides)
    evaluation = evaluate(scenario.program)
    steps, bandwidth = (
        float(evaluation.values[path]) for path in ("application.iteration_count", "platform.node.cpu.memory_bandwidth")
    )
    kernels, rest = (steps * float(evaluation.column(name)) for name in ("kernel_time", "communication_time"))
    return _Run(row["processor"], float(row["nodes"]), float(row["time_s"]), kernels, rest, bandwidth)
