"""Comparison of the power of machines with published figures, and of the power-cap model with measured slowdowns."""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.core.energy import BUSY_POWER, CAP, CLOCK
from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import GPU
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.models.quantities import FloatArray
from whatif.schema.toml import parse_document
from whatif.units import ONE, WATT, Dimension
from whatif.validation.measured_kinds import ErrorTable, Rows, mean_error, mean_errors, numbers, summarised_table

_MEASURED_ON: Final = "summit"
"""Platform with one of the GPUs whose slowdowns were measured."""
_LIMIT: Final = "power_limit_W"
_IDLE_SHARE: Final = 1 / 8
"""Idle power by the thermal design power of a GPU: rule *idle share* of docs/machines.md."""
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


def machine_power(rows: Rows) -> ErrorTable:
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
    title, means = "full load of the nodes that ran HPL, compared with TOP500", [mean_error("all", np.array(errors))]
    return summarised_table(columns, table, title, means, "machines")


def power_caps(rows: Rows) -> ErrorTable:
    """Ratios of times with and without a limit: measured, and as if arithmetic limited all of the time.

    The uncapped power is the mean one under the highest limit, the idle power follows from that limit by rule *idle
    share*.
    """
    uncapped = _uncapped(rows)
    columns: dict[str, Dimension | None] = {"gpu": None, "application": None, "limit": WATT}
    columns |= {"measured": ONE, "predicted": ONE, "error": ONE}
    table = []
    for row, first, predicted in zip(rows, uncapped, _slowdowns(rows, uncapped), strict=True):
        measured, limit = float(row["time_s"]) / float(first["time_s"]), float(row[_LIMIT])
        table.append([row["gpu"], row["application"], limit, measured, predicted, predicted / measured - 1])
    gpus, errors = np.array([row[0] for row in table]), np.array([row[-1] for row in table])
    means = mean_errors(gpus, errors)
    return summarised_table(columns, table, "epochs of training under a power limit (Zeus)", means, "epochs")


def _uncapped(rows: Rows) -> Rows:
    """The row with the highest limit of the same training on the same GPU, for each row."""
    highest: dict[tuple[str, str], dict[str, str]] = {}
    for row in sorted(rows, key=lambda row: float(row[_LIMIT])):
        highest[row["gpu"], row["application"]] = row
    return [highest[row["gpu"], row["application"]] for row in rows]


def _slowdowns(rows: Rows, uncapped: Rows) -> FloatArray:
    mean, full = numbers(uncapped, "average_power_W"), numbers(uncapped, _LIMIT)
    idle, limits = _IDLE_SHARE * full, numbers(rows, _LIMIT)
    swept = {CAP: limits, f"{GPU}.idle_power": idle, f"{GPU}.dynamic_power": mean - idle}
    return 1 / evaluate(_at_full_load(_MEASURED_ON, **{CAP: "250 W"}), swept).numbers(CLOCK)
