"""Comparison of the power of machines with published figures, and of the power-cap model with measured slowdowns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from whatif.core.energy import BUSY_POWER, CAP, CLOCK, GPU
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.table import Table
from whatif.units import ONE, WATT, Dimension
from whatif.validation.measured_kinds import Rows

_MEASURED_ON: Final = "summit"
"""Platform with the GPU whose slowdowns were measured."""
# One node with more ranks than devices, so that a kernel runs on each of them; lists count no cooling.
_FULL_LOAD: Final = """
[platform.site]
power_usage_effectiveness = 1
[application]
name = "full load"
rank_count = 1024
ranks_per_node = 1024
iteration_count = 1
[application.phases.work]
kind = "overhead"
overhead_time = "1 s"
"""


def _at_full_load(machine: str, **sets: str) -> Program:
    return Scenario(parse_document(_FULL_LOAD, f"full load of {machine}"), machine, sets).program


def machine_power(rows: Rows) -> Table:
    """Power at full load of the nodes that ran HPL, and the power on the list."""
    columns: dict[str, Dimension | None] = dict.fromkeys(("machine", "list"))
    columns |= {"nodes": ONE, "published": WATT, "full load": WATT, "error": ONE}
    table, errors = [], []
    for row in rows:
        program = _at_full_load(row["platform"])
        nodes, published = float(row["nodes"]), 1e3 * float(row["power_kW"])
        ours = nodes * float(evaluate(program).values[BUSY_POWER])
        errors.append(ours / published - 1)
        table.append([program.loaded.scenario.platform.name, row["list"], nodes, published, ours, errors[-1]])
    mean = sum(map(abs, errors)) / len(errors)
    title = f"full load of the nodes that ran HPL, compared with TOP500; mean absolute error {mean:.1%}"
    return Table.of_rows(columns, table, {"title": title})


def power_caps(rows: Rows) -> Table:
    """Ratios of times with and without a limit: measured, and as if arithmetic limited all of the time.

    The uncapped power is the mean one under the highest limit; the idle power is that of the shipped V100.
    """
    uncapped = {row["application"]: row for row in rows if row["power_limit_W"] == "250"}
    columns: dict[str, Dimension | None] = {"application": None, "limit": WATT}
    columns |= {"measured": ONE, "predicted": ONE, "error": ONE}
    table = []
    for row, predicted in zip(rows, _slowdowns(rows, uncapped), strict=True):
        first = uncapped[row["application"]]
        measured, limit = float(row["time_s"]) / float(first["time_s"]), float(row["power_limit_W"])
        table.append([row["application"], limit, measured, predicted, predicted / measured - 1])
    return Table.of_rows(columns, table, {"title": "epochs of training on a V100 under a power limit (Zeus)"})


def _slowdowns(rows: Rows, uncapped: Mapping[str, Mapping[str, str]]) -> FloatArray:
    program = _at_full_load(_MEASURED_ON, **{CAP: "250 W"})
    mean = np.array([float(uncapped[row["application"]]["average_power_W"]) for row in rows])
    idle = float(program.parameters[f"{GPU}.idle_power"].value)
    swept = {CAP: np.array([float(row["power_limit_W"]) for row in rows]), f"{GPU}.dynamic_power": mean - idle}
    return 1 / evaluate(program, swept).numbers(CLOCK)
