"""Scaling plan of a scenario over numbers of nodes given as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from whatif.arguments import positive_share
from whatif.core.scenario import Scenario
from whatif.core.sweep import parameter_points
from whatif.errors import InfeasiblePointError, UsageError, require_choice
from whatif.plotting.description import PlotDescription
from whatif.studies.isoefficiency import Isoefficiency, isoefficiency
from whatif.studies.scaling import Mode, Planner, Scaling
from whatif.studies.scaling_tables import end_in_words, places_in_words, places_table, scaling_picture, scaling_table
from whatif.studies.study_result import StudyResult, input_remarks
from whatif.table import Table
from whatif.units import counted
from whatif.vocabulary import SCALING_VIEWS, ScalingView

_MOST_POINTS: Final = 10_000
_MOST_NODES: Final = 2**53


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
        points = parameter_points("platform.node_count", nodes, planner.scenario.program, _MOST_POINTS)
    except UsageError as error:
        raise UsageError(str(error).replace("sweep `platform.node_count`", f"--nodes {nodes}")) from None
    if not points.size:
        raise UsageError("--nodes: state at least one number of nodes")
    return sorted(set(points.tolist()))
