"""Answers a question of the page `decide`; what would take too long says so instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from whatif.engine.varied import is_played
from whatif.errors import WhatifError
from whatif.tui.decisions.answer import Decision, Request
from whatif.tui.decisions.causes import bottlenecks, uncertainty, why
from whatif.tui.decisions.choices import budget, layout, machines
from whatif.tui.decisions.plans import pareto, scaling
from whatif.tui.study import DECISIONS

_PATIENCE: Final = 60.0
"""The seconds that an answer may take where every point is played."""
_ANSWERS: Final[dict[str, tuple[Callable[[Request], Decision], int]]] = {
    "bottlenecks": (bottlenecks, 100),
    "why": (why, 500),
    "uncertain": (uncertainty, 2000),
    "machines": (machines, 30),
    "scaling": (scaling, 30),
    "layout": (layout, 200),
    "pareto": (pareto, 100),
    "budget": (budget, 30),
}
"""The function of each question, and about how many points it evaluates."""


def decide(request: Request) -> Decision:
    """The answer to the question of a view; where there is none, why."""
    name = request.view.decision
    answer, points = _ANSWERS[name]
    seconds = points * request.seconds
    if is_played(request.program) and seconds > _PATIENCE:
        words = f"Every point of this scenario is played, so this would take about {seconds / 60:,.0f} minutes."
        return Decision(DECISIONS[name], (words, "It is not started here; the verbs of the command line do it."))
    try:
        return answer(request)
    except WhatifError as problem:
        return Decision(DECISIONS[name], (f"There is no answer: {str(problem).removeprefix('impossible: ')}.",))
