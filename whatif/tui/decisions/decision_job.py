"""Answers a question of the page `decide`, or refuses one that would take too long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.errors import WhatifError
from whatif.studies.bottlenecks import ideal_parts
from whatif.studies.search_space import is_simulated
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.decisions.choices import budget, layout, machines
from whatif.tui.decisions.explanations import bottlenecks, uncertainty, why
from whatif.tui.decisions.scale_plans import pareto, scaling
from whatif.tui.decisions.titles import DECISIONS
from whatif.tui.labels import reason_of

_PATIENCE: Final = 60.0
"""Most seconds of an answer whose points are simulated."""
_SAMPLED: Final = ("uncertain", "machines")
"""Questions that evaluate many points for each sample."""
_WARM, _TIMED = 1.01, 1.02
"""Two points besides the present one, which may be known already."""
_ANSWERS: Final[dict[str, tuple[Callable[[DecisionRequest], Decision], int, str]]] = {
    "bottlenecks": (bottlenecks, 100, "sensitivity --show ladder"),
    "why": (why, 500, "diff"),
    "uncertain": (uncertainty, 10, "sensitivity --show sobol"),
    "machines": (machines, 30, "compare"),
    "scaling": (scaling, 30, "scale"),
    "layout": (layout, 200, "tune grid"),
    "pareto": (pareto, 100, "seek --pareto"),
    "budget": (budget, 30, "budget"),
}
"""The function of each question, about how many points it evaluates, and the verb that does the same."""


def decide(request: DecisionRequest) -> Decision:
    """Answer to the question of a view, or the reason for its absence."""
    name = request.decision
    answer, points, verb = _ANSWERS[name]
    if name in _SAMPLED and request.view.samples is not None:
        points *= request.view.samples
    try:
        seconds = 0.0 if request.patient or _is_refused(request) else points * _seconds(request, points)
        if seconds > _PATIENCE:
            words = f"Every point of this scenario is simulated, which would take about {seconds / 60:,.0f} min."
            start = f"& computes it in the background; `whatif {verb}` does the same."
            return Decision(DECISIONS[name], (words, start), seconds=seconds)
        return answer(request)
    except WhatifError as problem:
        return Decision(DECISIONS[name], (f"There is no answer: {reason_of(problem)}.",))


def _is_refused(request: DecisionRequest) -> bool:
    """Whether a question does not apply to HPL, which its answer states immediately."""
    planned = request.decision in ("scaling", "layout") or (request.decision == "pareto" and not request.front_over)
    return planned and bool(request.program.loaded.scenario.application.refused_studies)


def _seconds(request: DecisionRequest, points: int) -> float:
    """Seconds of a further point; 0 if points are not simulated.

    What the present one took has loading and compiling in it: where that would be too long, another one is timed.
    """
    program = request.program
    if not is_simulated(program) or points * request.seconds <= _PATIENCE:
        return 0.0
    parameter = next(
        parameter for parameters in ideal_parts(program, request.result).values() for parameter in parameters
    )
    for factor in (_WARM, _TIMED):
        evaluation = evaluate(program, {parameter.path: np.array([factor * float(parameter.value)])})
    return sum(evaluation.seconds.values())
