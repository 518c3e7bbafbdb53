"""Decisions about scale: strong and weak scaling, and Pareto fronts of time against its price."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from whatif.api.decisions import scale
from whatif.api.searches import pareto_front
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError
from whatif.studies.pareto import Front
from whatif.studies.scaling import Planner
from whatif.studies.scaling_plan import places_in_words
from whatif.tui.commands.adoption import text_of
from whatif.tui.commands.explorer_commands import EditAll
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.labels import reason_of

_POINTS: Final = 200
"""Points of a front over a parameter other than the number of ranks."""
_SAME: Final = 1e-9
_PRICES: Final = ("total_energy", "total_cost")


def scaling(request: DecisionRequest) -> Decision:
    """Parallel efficiency of strong and weak scaling over the nodes, with the recommended numbers of nodes."""
    title = "parallel efficiency over nodes"
    try:
        plan = scale(request.scenario)
    except InfeasiblePointError as problem:
        return Decision(title, (f"No number of nodes is feasible: {reason_of(problem)}.",))
    sentences = (*places_in_words(plan.answers), *Planner(request.scenario).remarks)
    return Decision(title, sentences, plan.table(), plan.picture(), command=request.command("scale"))


def pareto(request: DecisionRequest) -> Decision:
    """Pareto front of total time against energy, cost or ranks, over the ranks or a parameter."""
    scenario, vary, remark = _varied(request)
    names = ("total_time", _price(request))
    found = pareto_front(scenario, vary, names, points=_POINTS)
    title = f"{names[0]} against {names[1]} over {vary.partition('=')[0]}"
    if not found.choices:
        return Decision(title, (f"None of {found.points:,} points has a number.",))
    missing = f"; {found.missing:,} have no value" if found.missing else ""
    words = f"{len(found.choices):,} of {found.points:,} points are on the front{missing}: no other point beats them."
    options = ["--vary", vary, "--pareto", ",".join(names), "--points", str(_POINTS)]
    return Decision(
        title,
        (words, *_same(found), remark),
        found.readable_table(),
        found.picture(),
        tuple(_changes(found, request.scenario, scenario)),
        request.command("seek", *options, scenario=scenario),
    )


def _same(found: Front) -> Iterator[str]:
    """Remark on a front whose points do not differ in their results."""
    if len(found.choices) > 1 and all(np.ptp(array) <= _SAME * abs(array).max() for array in found.results.values()):
        yield "All of them have the same results: there is no trade-off."


def _price(request: DecisionRequest) -> str:
    """Second objective: the requested energy or cost, or the one that is known, else ranks."""
    known = [name for name in _PRICES if name in request.program.columns]
    return request.result if request.result in known else next(iter(known), RANK_COUNT)


def _varied(request: DecisionRequest) -> tuple[Scenario, str, str]:
    """Scenario of a front, the parameter that it varies with its values, and a remark on both."""
    parameter = request.front_over
    if parameter:
        return request.scenario, parameter, "x on the same parameter goes back to the number of ranks."
    planner = Planner(request.scenario)
    ranks = ", ".join(f"{nodes * planner.ranks_per_node:.0f}" for nodes in planner.doublings())
    words = "The global grid keeps its size. " if planner.grid is not None else ""
    remark = f"{words}x varies the parameter under the cursor of the tree instead; t shows the tree."
    return planner.of_any_ranks("strong"), f"{RANK_COUNT}={ranks}", remark


def _changes(found: Front, present: Scenario, inputs: Scenario) -> Iterator[EditAll]:
    """Changes of the present scenario that lead to each point of the front."""
    edits = [(path, str(text)) for path, text in inputs.overrides.items() if present.overrides.get(path) != text]
    for at, choices in enumerate(found.choices):
        values = ((path, array[at]) for path, array in found.values.items() if np.isfinite(array[at]))
        texts = ((path, text_of(inputs.program, path, value)) for path, value in values)
        yield EditAll((*edits, *choices.items(), *texts))
