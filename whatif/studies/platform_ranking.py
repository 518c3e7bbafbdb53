"""Ranking of platforms with weights and references given as text, and nodes required for targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from whatif.core.scenario import Scenario
from whatif.core.uncertainty import NOTHING_UNCERTAIN, Sampling
from whatif.errors import InfeasiblePointError, InvalidFileError, UsageError
from whatif.studies.ranking import Ranking, RankingView, ranking
from whatif.studies.required_nodes import required_nodes
from whatif.studies.study_result import values_on_all_platforms
from whatif.units import Quantity, UnitError, parse_quantity


def ranking_study(
    scenarios: Mapping[str, Scenario],
    platforms: Sequence[str],
    *,
    weights: Mapping[str, str | float],
    references: Mapping[str, str | float],
    within: Mapping[str, str],
    result: str,
    sampling: Sampling | None,
    show: RankingView,
) -> Ranking:
    """Ranking of platforms over applications by name.

    Weights and references are numbers, or texts such as `2` and `120 s`; `within` states a target per application,
    such as `total_time <= 1 s`, for which the nodes required on each platform are a column.
    Raise `UsageError` for a target with `show="commitment"`, where it has no effect.
    """
    if within and show != "ranking":
        raise UsageError(f"--within: no effect with --show {show}")
    for name in within:
        if name not in scenarios:
            raise UsageError(f"--within: `{name}` is not one of the applications {', '.join(scenarios)}")
    counted = {name: _weight(weight) for name, weight in weights.items()}
    given = {name: _reference(reference) for name, reference in references.items()}
    numbers = {name: item.value if isinstance(item, Quantity) else item for name, item in given.items()}
    found = ranking(scenarios, list(dict.fromkeys(platforms)), counted, numbers, result, sampling)
    for name, item in given.items():
        if isinstance(item, Quantity) and item.dimension != found.dimension:
            raise UsageError(f"--reference: that of {name} must be in {found.dimension}, as {result} is")
    remarks = [NOTHING_UNCERTAIN] if sampling is not None and not found.drawn else []
    required = {name: _required(scenarios[name], name, platforms, target, remarks) for name, target in within.items()}
    shared = values_on_all_platforms(*scenarios.values())
    return replace(found, show=show, required=required, remarks=(*remarks, *shared))


def _weight(weight: str | float) -> float:
    try:
        return float(weight)
    except ValueError:
        raise UsageError(f"--weight: `{weight}` is no number") from None


def _reference(reference: str | float) -> Quantity | float:
    """Reference as a quantity; a number is in the base unit of the result."""
    if not isinstance(reference, str):
        return reference
    try:
        quantity = parse_quantity(reference)
    except UnitError as error:
        raise UsageError(f"--reference: {error}") from None
    if not quantity.value > 0:
        raise UsageError(f"--reference: `{reference}` must be greater than 0, such as `120 s`")
    return quantity


def _required(
    scenario: Scenario, name: str, platforms: Sequence[str], target: str, remarks: list[str]
) -> dict[str, float]:
    """Nodes required on each platform; NaN, and a remark, if no number of nodes meets the target."""
    nodes: dict[str, float] = {}
    for platform in platforms:
        try:
            nodes[platform] = required_nodes(scenario.changed(scenario.overrides, platform), target)
        except (InfeasiblePointError, InvalidFileError) as problem:
            nodes[platform] = math.nan
            remarks.append(f"{name} on {platform}: {problem}")
    return nodes
