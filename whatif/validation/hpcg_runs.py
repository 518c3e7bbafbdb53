"""HPCG on whole machines by the shipped scenario `hpcg`, compared with the rates of TOP500's HPCG lists.

Nothing is fitted: the scenario has the operations that the benchmark counts, and the fewest bytes that they can move.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.kernel_phase import KernelPhase
from whatif.units import FLOP_PER_SECOND, ONE, SECOND, Dimension
from whatif.validation.measured_kinds import ErrorTable, Row, Rows, mean_error, summarised_table

_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "machine": None, "list": None, "nodes": ONE, "n": ONE, "iteration_time": SECOND, "communication": ONE,
    "published": FLOP_PER_SECOND, "predicted": FLOP_PER_SECOND, "error": ONE, "doubt": None,
}  # fmt: skip


def hpcg_runs(rows: Rows) -> ErrorTable:
    """Rates of HPCG, published and predicted; the title has the mean error of all, and of those without doubt."""
    table = [_compared(row) for row in rows]
    errors = np.array([line[-2] for line in table])
    certain = errors[[not row["doubt"] for row in rows]]
    means = mean_error("all", errors), mean_error("without rows in doubt", certain)
    return summarised_table(_COLUMNS, table, "HPCG on whole machines, compared with TOP500", means, "machines")


def _compared(row: Row) -> tuple[str | float, ...]:
    ranks = int(row["nodes"]) * int(row["ranks_per_node"])
    overrides = {
        "platform.node_count": row["nodes"],
        "application.rank_count": str(ranks),
        "application.ranks_per_node": row["ranks_per_node"],
        "parameters.n": row["n"],
    }
    program = Scenario.open("hpcg", platform=row["platform"], overrides=overrides).program
    evaluation, application = evaluate(program), program.loaded.scenario.application
    kernels = [name for name, phase in application.phases.items() if isinstance(phase, KernelPhase)]
    time = float(evaluation.column("iteration_time"))
    rate = ranks * sum(float(evaluation.values[f"{name}.operations"]) for name in kernels) / time
    published, machine = 1e15 * float(row["HPCG_Pflop/s"]), program.loaded.scenario.platform.name
    numbers = time, float(evaluation.column("communication_time")) / time, published, rate, rate / published - 1
    return machine, row["list"], float(row["nodes"]), float(row["n"]), *numbers, row["doubt"]
