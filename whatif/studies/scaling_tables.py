"""Plans of scale and Pareto fronts as tables, pictures and words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import suiting
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.studies.pareto import Front, excesses
from whatif.studies.population import Objective
from whatif.studies.scaling import Mode, Planner, Scaling, answers
from whatif.studies.search_space import quantity_named, tails
from whatif.table import Column, Table
from whatif.table_writers import worth_showing
from whatif.units import BYTE, ONE, SECOND, format_quantity

_HOUR: Final = 3600.0


def scaling_table(plans: Mapping[Mode, Scaling]) -> Table:
    """One row for each way to scale and number of nodes; of communication its share in an iteration."""
    columns = {"scaling": None, "nodes": ONE, "ranks": ONE, "iteration_time": SECOND, "speedup": ONE, "efficiency": ONE}
    columns |= {"communication": ONE, "memory": BYTE, "node_hours": ONE, "impossible": None}
    rows: list[list[Any]] = []
    for mode, plan in plans.items():
        arrays = (plan.nodes, plan.ranks, plan.time, plan.speedup, plan.efficiency, plan.communication, plan.memory)
        numbers = zip(*(array.tolist() for array in arrays), (plan.node_time / _HOUR).tolist(), strict=True)
        rows += [[mode, *row, reason] for row, reason in zip(numbers, plan.reasons, strict=True)]
    return worth_showing(Table.of_rows(columns, rows))


def places_table(planner: Planner, plans: Mapping[Mode, Scaling], efficiency: float) -> Table:
    """The places of a plan that are worth knowing."""
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
    """The places of `places_table`, a line each."""
    for name, nodes, _, seconds, efficiency, hours in places.rows():
        said = f"{name}: {nodes:,.0f} node{'s' * (nodes != 1)}"
        if seconds is not None:
            said += f", {format_quantity(seconds, SECOND, 4)}, efficiency {100 * efficiency:.4g}%"
            said += f", {format_quantity(hours, ONE, 4)} node-hours"
        yield said


def scaling_picture(plans: Mapping[Mode, Scaling]) -> PlotDescription:
    """The efficiency over the nodes, a curve for each way to scale."""
    lines = tuple(PlotLine(mode, plan.nodes, plan.efficiency) for mode, plan in plans.items())
    axes = AxisDescription("nodes", scale=Scale.LOG), AxisDescription("efficiency")
    return PlotDescription("parallel efficiency", *axes, lines)


def front_table(found: Front, question: Scenario, *, short: bool = False) -> Table:
    """One row a point: choices, parameters, results; `short`: by the ends of their paths."""
    chosen = list(dict.fromkeys(path for choices in found.choices for path in choices))
    names = [*chosen, *found.values, *found.results]
    heading = tails(names) if short else {name: name for name in names}
    columns = {heading[path]: Column(_texts(found, path)) for path in chosen}
    for name, array in {**found.values, **found.results}.items():
        columns[heading[name]] = Column(array, quantity_named(name, question.program)[1])
    return Table(columns, {"points": str(found.points)})


def operating_range(found: Front, question: Scenario, objectives: Sequence[Objective], within: float) -> list[str]:
    """Where no result of a front is further than a share from its best, and the best compromise, a line each."""
    excess = excesses(found, objectives)
    if np.isnan(excess).any() or not found.values:
        return []

    def shown(name: str, value: float) -> str:
        return format_quantity(value, quantity_named(name, question.program)[1])

    at = int(excess.argmin())
    best = ", ".join(f"{name} {shown(name, values[at])}" for name, values in found.values.items())
    lines = [f"best compromise: {best}, where each result is within {100 * excess[at]:.3g} % of its best"]
    near = excess <= within
    if near.any():
        ranges = ", ".join(
            f"{name} {shown(name, values[near].min())} to {shown(name, values[near].max())}"
            for name, values in found.values.items()
        )
        lines.append(f"operating range, within {100 * within:g} % of each best: {ranges}")
    return lines


def _texts(found: Front, path: str) -> Any:
    return np.array([choices.get(path, "") for choices in found.choices], dtype=object)


def front_picture(found: Front, question: Scenario) -> PlotDescription:
    """The first two objectives, one line for each combination of choices."""
    (x, across), (y, up) = list(found.results.items())[:2]
    of = np.array([", ".join(choices.values()) or "front" for choices in found.choices], dtype=object)
    lines = tuple(PlotLine(str(name), across[of == name], up[of == name]) for name in dict.fromkeys(of.tolist()))
    axes = [
        AxisDescription(name, quantity_named(name, question.program)[1], suiting([array]))
        for name, array in ((x, across), (y, up))
    ]
    return PlotDescription("Pareto front", axes[0], axes[1], lines)
