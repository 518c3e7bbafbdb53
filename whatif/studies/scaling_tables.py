"""Tables, plots and summaries of scaling plans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.studies.scaling import Mode, Planner, Scaling, answers
from whatif.table import Table
from whatif.table_writers import worth_showing
from whatif.units import BYTE, ONE, SECOND, format_quantity

_HOUR: Final = 3600.0


def scaling_table(plans: Mapping[Mode, Scaling]) -> Table:
    """One row per way to scale and number of nodes; `communication` is its share in an iteration."""
    columns = {"scaling": None, "nodes": ONE, "ranks": ONE, "iteration_time": SECOND, "speedup": ONE, "efficiency": ONE}
    columns |= {"communication": ONE, "memory": BYTE, "node_hours": ONE, "infeasible": None}
    rows: list[list[Any]] = []
    for mode, plan in plans.items():
        arrays = (plan.nodes, plan.ranks, plan.time, plan.speedup, plan.efficiency, plan.communication, plan.memory)
        numbers = zip(*(array.tolist() for array in arrays), (plan.node_time / _HOUR).tolist(), strict=True)
        rows += [[mode, *row, reason] for row, reason in zip(numbers, plan.reasons, strict=True)]
    return worth_showing(Table.of_rows(columns, rows))


def places_table(planner: Planner, plans: Mapping[Mode, Scaling], efficiency: float) -> Table:
    """One row per question: the recommended number of nodes."""
    columns = {"question": None, "nodes": ONE, "ranks": ONE, "iteration_time": SECOND, "efficiency": ONE}
    rows: list[list[Any]] = []
    for name, (plan, at) in answers(plans, efficiency).items():
        numbers = (plan.nodes, plan.ranks, plan.time, plan.efficiency, plan.node_time / _HOUR)
        rows.append([name, *(float(array[at]) for array in numbers)])
    least = planner.least_nodes()
    if least is not None:
        rows.append(
            ["fewest nodes with room for the whole grid", least, least * planner.ranks_per_node, *[math.nan] * 3]
        )
    return Table.of_rows({**columns, "node_hours": ONE}, rows)


def places_in_words(places: Table) -> Iterator[str]:
    """Rows of `places_table` in words."""
    for name, nodes, _, seconds, efficiency, hours in places.rows():
        line = f"{name}: {nodes:,.0f} node{'s' * (nodes != 1)}"
        if seconds is not None:
            line += f", {format_quantity(seconds, SECOND, 4)}"
            # No time has no efficiency.
            line += "" if efficiency is None else f", efficiency {100 * efficiency:.4g}%"
            line += f", {format_quantity(hours, ONE, 4)} node-hours"
        yield line


def end_in_words(places: Table, plans: Mapping[Mode, Scaling]) -> Iterator[str]:
    """Remark on rows of `places_table` with the most nodes of the plan, beyond which there may be better ones."""
    most = max(plan.nodes.max() for plan in plans.values())
    names = [str(name) for name, nodes, _, seconds, *_ in places.rows() if nodes == most and seconds is not None]
    if names:
        yield f"{most:,.0f} nodes are the most that were evaluated; more may be better: {'; '.join(names)}"


def scaling_picture(plans: Mapping[Mode, Scaling]) -> PlotDescription:
    """Efficiency over the nodes, one curve per way to scale."""
    lines = tuple(PlotLine(mode, plan.nodes, plan.efficiency) for mode, plan in plans.items())
    axes = AxisDescription("nodes", scale=Scale.LOG, whole=True), AxisDescription("efficiency")
    return PlotDescription("parallel efficiency", *axes, lines)
