"""How far to go: strong and weak scaling, and fronts of what can be traded for what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.studies.pareto import Front, front
from whatif.studies.population import Objective
from whatif.studies.scaling import RANKS, Planner
from whatif.studies.scaling_tables import front_picture, front_table, places_in_words, places_table, scaling_picture
from whatif.studies.scaling_tables import scaling_table as plans_table
from whatif.studies.search_space import Varied, parse_varied
from whatif.tui.commands import EditAll
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.units import format_quantity

_EFFICIENCY: Final = 0.5
"""The efficiency that is still worth it, as `whatif scale` has it."""
_POINTS: Final = 200
"""Points of a front over a parameter that is no number of ranks."""
_SAME: Final = 1e-9
_PRICES: Final = ("total_energy", "total_cost")


def scaling(request: DecisionRequest) -> Decision:
    """The efficiency of strong and weak scaling over the nodes, and where the sweet spots are."""
    planner = Planner(request.scenario)
    plans = {mode: planner.scaling(mode, planner.doublings()) for mode in planner.modes()}
    title = "parallel efficiency over nodes"
    if not any(np.isfinite(plan.time).any() for plan in plans.values()):
        reasons = dict.fromkeys(reason for plan in plans.values() for reason in plan.reasons)
        return Decision(title, (f"No number of nodes has an answer: {'; '.join(reasons)}.",))
    said = places_in_words(places_table(planner, plans, _EFFICIENCY))
    return Decision(
        title,
        (*said, *planner.remarks),
        plans_table(plans),
        scaling_picture(plans),
        command=request.command("scale"),
    )


def pareto(request: DecisionRequest) -> Decision:
    """Total time against energy, cost or ranks, over the ranks or a parameter."""
    scenario, varied, said = _over(request)
    spec = f"{varied.path}={', '.join(f'{value:g}' for value in varied.values)}" if varied.values else varied.path
    names = ("total_time", _price(request))
    found = front(scenario, [varied], [Objective(name) for name in names], points=_POINTS)
    title = f"{names[0]} against {names[1]} over {varied.path}"
    if not found.choices:
        return Decision(title, (f"None of {found.points:,} points has a number.",))
    missing = f"; {found.missing:,} have no number" if found.missing else ""
    words = f"{len(found.choices):,} of {found.points:,} points are on the front{missing}: no other one beats them."
    options = ["--vary", spec, "--pareto", ",".join(names), "--points", str(_POINTS)]
    return Decision(
        title,
        (words, *_same(found), said),
        front_table(found, short=True),
        front_picture(found),
        tuple(_changes(found, request.scenario, scenario)),
        request.command("seek", *options, scenario=scenario),
    )


def _same(found: Front) -> Iterator[str]:
    """What to say where the points of a front do not differ in their results."""
    if len(found.choices) > 1 and all(np.ptp(array) <= _SAME * abs(array).max() for array in found.results.values()):
        yield "All of them come to the same: nothing is traded here."


def _price(request: DecisionRequest) -> str:
    """What time is paid with: the energy or the cost, as asked for and known, else ranks."""
    known = [name for name in _PRICES if name in request.program.columns]
    return request.result if request.result in known else next(iter(known), RANKS)


def _over(request: DecisionRequest) -> tuple[Scenario, Varied, str]:
    """The question, the parameter that it is asked over, and what there is to say of both."""
    parameter = request.front_over
    if parameter:
        return (
            request.scenario,
            parse_varied(parameter, request.program),
            "x on the same parameter: over the ranks again.",
        )
    planner = Planner(request.scenario)
    ranks = tuple(nodes * planner.ranks_per_node for nodes in planner.doublings())
    scenario = planner.of_any_ranks("strong")
    words = "The whole grid stays as it is here. " if planner.grid is not None else ""
    return scenario, Varied(RANKS, values=ranks), f"{words}x: over the parameter under the cursor of the tree (t)."


def _changes(found: Front, present: Scenario, inputs: Scenario) -> Iterator[EditAll]:
    """What leads from the present question to each point of the front."""
    worker = [(path, str(text)) for path, text in inputs.overrides.items() if present.overrides.get(path) != text]
    for at, choices in enumerate(found.choices):
        values = ((path, array[at]) for path, array in found.values.items() if np.isfinite(array[at]))
        texts = ((path, _text(inputs.program, path, float(value))) for path, value in values)
        yield EditAll((*worker, *choices.items(), *texts))


def _text(program: Program, path: str, value: float) -> str:
    parameter = program.parameters[path]
    whole = parameter.field is not None and parameter.field.domain.whole
    return f"{value:.0f}" if whole else format_quantity(value, parameter.dimension, 6)
