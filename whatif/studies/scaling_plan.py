"""Scaling plan of a scenario over numbers of nodes given as text: its tables, plot and summary."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from whatif.arguments import positive_share
from whatif.core.parameter_paths import NODE_COUNT
from whatif.core.scenario import Scenario
from whatif.core.sweep import parameter_points
from whatif.errors import InfeasiblePointError, UsageError, require_choice
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.studies.isoefficiency import Isoefficiency, isoefficiency
from whatif.studies.scaling import Mode, Planner, Scaling, answers
from whatif.studies.study_result import StudyResult, input_remarks
from whatif.table import Table
from whatif.table_writers import worth_showing
from whatif.units import BYTE, ONE, SECOND, counted, format_quantity
from whatif.vocabulary import SCALING_VIEWS, ScalingView

_MOST_POINTS: Final = 10_000
_MOST_NODES: Final = 2**53
_HOUR: Final = 3600.0


@dataclass(frozen=True, eq=False, repr=False)
class ScalingPlan(StudyResult):
    """Strong and weak scaling of a scenario, with the numbers of nodes that answer common questions."""

    plans: Mapping[Mode, Scaling]
    answers: Table
    """One row per question, e.g. the largest number of nodes with an efficiency, or the fewest node-hours."""
    show: Literal["scaling", "answers"] = "scaling"

    @property
    def optional_columns(self) -> tuple[list[str], ...]:
        """Groups of columns omitted on a narrow terminal."""
        return (["ranks"],) if self.show == "answers" else (["infeasible"], ["ranks"], ["speedup"])

    def table(self) -> Table:
        """One row per way to scale and number of nodes, or with `show="answers"` one per question."""
        return self.answers if self.show == "answers" else scaling_table(self.plans)

    def picture(self) -> PlotDescription:
        """Parallel efficiency over the nodes."""
        return scaling_picture(self.plans)

    def summary(self) -> tuple[str, ...]:
        """Infeasible points with reasons, extrapolations, answers unless they are the table, and those at the end."""
        reasons = [reason for plan in self.plans.values() for reason in plan.reasons]
        missing = [reason for reason in reasons if reason]
        lines = [f"{len(missing)} of {counted(len(reasons), 'point')} infeasible: {'; '.join(dict.fromkeys(missing))}"]
        beyond = dict.fromkeys(f"warning: {text}" for plan in self.plans.values() for text in plan.extrapolated)
        words = [] if self.show == "answers" else [*places_in_words(self.answers)]
        return (*(lines if missing else []), *beyond, *words, *end_in_words(self.answers, self.plans))


def scaling_study(
    scenario: Scenario, nodes: str | Sequence[float] | None, efficiency: str | float, show: ScalingView
) -> ScalingPlan | Isoefficiency:
    """Scaling plan, or how the grid must grow to keep an efficiency (`isoefficiency`).

    `nodes` are numbers, a range `1 .. 4096` (doubled from the first to the last), a list or range as in a sweep, or
    None for all powers of 2 up to the platform's nodes. `efficiency` is a share above 0, as `50%` or 0.5.
    Raise `InfeasiblePointError` if no number of nodes has an answer.
    """
    require_choice("show", show, SCALING_VIEWS)
    planner = Planner(scenario)
    share, counts = positive_share("--efficiency", efficiency), _counts(nodes, planner)
    remarks = (*input_remarks(scenario), *planner.remarks)
    if show == "isoefficiency":
        return replace(isoefficiency(planner, share, counts), remarks=remarks)
    plans = {mode: planner.scaling(mode, counts) for mode in planner.modes()}
    _refuse_infeasible(plans, planner)
    return ScalingPlan(plans, places_table(planner, plans, share), show, remarks=remarks)


def _refuse_infeasible(plans: Mapping[Mode, Scaling], planner: Planner) -> None:
    """Raise `InfeasiblePointError` if no point has an answer."""
    reasons = [reason for plan in plans.values() for reason in plan.reasons]
    if all(reasons):
        least = planner.least_nodes()
        room = f"; the whole grid has room on {least:,.0f} nodes or more" if least is not None else ""
        raise InfeasiblePointError(f"infeasible: {'; '.join(dict.fromkeys(reasons))}{room}")


def _counts(nodes: str | Sequence[float] | None, planner: Planner) -> list[float]:
    """Numbers of nodes in increasing order."""
    if nodes is None:
        return planner.doublings()
    ends = re.fullmatch(r"\s*([0-9_]+)\s*\.\.\s*([0-9_]+)\s*", nodes) if isinstance(nodes, str) else None
    if ends is not None:
        low, high = int(ends[1]), int(ends[2])
        if not 1 <= low <= high <= _MOST_NODES:
            raise UsageError(f"--nodes {nodes}: from at least 1 upwards")
        return [*(float(low << power) for power in range(54) if low << power < high), float(high)]
    try:
        points = parameter_points(NODE_COUNT, nodes, planner.scenario.program, _MOST_POINTS)
    except UsageError as error:
        raise UsageError(str(error).replace("sweep `platform.node_count`", f"--nodes {nodes}")) from None
    if not points.size:
        raise UsageError("--nodes: state at least one number of nodes")
    return sorted(set(points.tolist()))


def scaling_table(plans: Mapping[Mode, Scaling]) -> Table:
    """One row per way to scale and number of nodes; `communication` is its share in an iteration."""
    columns = {"scaling": None, "nodes": ONE, "ranks": ONE, "iteration_time": SECOND, "speedup": ONE, "efficiency": ONE}
    columns |= {"communication": ONE, "memory": BYTE, "node_hours": ONE, "infeasible": None}
    rows: list[list[Any]] = []
    for mode, plan in plans.items():
        arrays = (plan.nodes, plan.ranks, plan.time, plan.speedup, plan.efficiency, plan.communication, plan.memory)
        numbers = zip(*(array.tolist() for array in arrays), (plan.node_time / _HOUR).tolist(), strict=True)
        rows += [[mode, *row, reason] for row, reason in zip(numbers, plan.reasons, strict=True)]
    return worth_showing(Table.of_rows(columns, rows, shares=("efficiency", "communication")))


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
    return Table.of_rows({**columns, "node_hours": ONE}, rows, shares=("efficiency",))


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
