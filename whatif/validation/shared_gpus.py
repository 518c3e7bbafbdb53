"""Ranks that share a GPU, at the same time and in time slices: 16 programs on an H200 and an H100.

Programs and profiles are those of `whatif.validation.gpu_programs`; times of 1 to 8 ranks were recorded for this
project. `switch_time` and `time_slice` were chosen on the H200 with eight ranks.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.models.quantities import FloatArray
from whatif.units import ONE, SECOND, Dimension
from whatif.validation.gpu_programs import PROFILED, program_scenario, work_of
from whatif.validation.measured_kinds import ErrorTable, Rows, mean_errors, numbers, summarised_table

_NAMES: Final = {"mps": "at the same time", "time_slices": "in time slices"}
BOUNDS: Final = {
    "one rank": 0.12,
    **{f"{gpu}, {name}": bound for gpu, bound in (("H200", 0.1), ("H100", 0.12)) for name in _NAMES.values()},
}
"""Largest mean absolute error of each kind of runs."""
_UNPROFILED: Final = ("empty", "wait")
"""Programs of launches alone; `switch_time` is that of `wait`."""
_WAIT: Final = """
[application.phases.wait]
kind = "transfer"
direction = "device_to_host"
transfer_size = "8 B"
blocking = true
"""
"""End of an iteration that the host waits for."""


def shared_gpus(rows: Rows) -> ErrorTable:
    """One row per program, GPU, size, sharing, ranks and waiting: measured and predicted time of an iteration.

    `in_turn` is the prediction for one rank times the ranks, without switches.
    """
    columns: dict[str, Dimension | None] = {"program": None, "gpu": None, "size": ONE, "gpu_sharing": None}
    columns |= {"ranks": ONE, "waits": None, "kind": None}
    columns |= {"measured": SECOND, "in_turn": SECOND, "predicted": SECOND, "error": ONE}
    profiled = [row for row in rows if row["program"] not in _UNPROFILED]
    cells = [row for waits in ("no", "yes") for row in _compared(profiled, waits)]
    errors = np.array([row[-1] for row in cells])
    means = mean_errors(np.array([row[6] for row in cells]), errors, BOUNDS)
    return summarised_table(columns, cells, "programs whose ranks share a GPU", means)


def _compared(rows: Rows, waits: str) -> list[tuple[Any, ...]]:
    """Cells of the rows whose ranks wait for each other after each iteration, or only at the end."""
    measured = numbers(rows, "synchronised_time_us" if waits == "yes" else "time_us") * 1e-6
    ranks = numbers(rows, "ranks")
    predicted = predictions(rows, waits, ranks)
    times = (measured, ranks * predictions(rows, waits, np.ones(len(rows))), predicted, predicted / measured - 1)
    return [
        (row["program"], row["gpu"], float(row["size"]), row["gpu_sharing"], count, waits, kind_of(row), *cells)
        for row, count, *cells in zip(rows, ranks, *times, strict=True)
    ]


def kind_of(row: dict[str, str]) -> str:
    """Kind of a row: one rank, or the GPU and how ranks share it."""
    gpu = "H100" if row["gpu"] == PROFILED else "H200"
    return "one rank" if row["ranks"] == "1" else f"{gpu}, {_NAMES[row['gpu_sharing']]}"


def predictions(rows: Rows, waits: str, ranks: FloatArray) -> FloatArray:
    """Predicted times of an iteration in s by numbers of ranks that share the GPU."""
    found = np.empty(len(rows))
    keys = [(row["program"], row["gpu"], row["gpu_sharing"]) for row in rows]
    for program, gpu, sharing in dict.fromkeys(keys):
        chosen = [index for index, key in enumerate(keys) if key == (program, gpu, sharing)]
        scenario = program_scenario(program, gpu, more=_WAIT if waits == "yes" else "")
        values = work_of(program, numbers([rows[index] for index in chosen], "size"))
        values |= dict.fromkeys(("application.rank_count", "application.ranks_per_gpu"), ranks[chosen])
        shared = scenario.with_overrides({"application.gpu_sharing": sharing})
        found[chosen] = evaluate(shared.program, values).values["iteration.time"]
    return found
