"""The fewest nodes of a machine on which a problem meets a target: strong scaling of the whole problem of the file.

Twice as many nodes are tried until the target is met, then what lies between is looked at, ever closer. A time need not
fall with every node: fewer ones than the answer may meet the target among numbers that were not tried.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import ImpossiblePointError
from whatif.studies.scaling import MEMORY, RANKS, Planner
from whatif.studies.threshold import parse_target

_BETWEEN: Final = 33
"""Numbers of nodes that are tried between one that misses and one that meets the target."""


def required_nodes(question: Scenario, target: str) -> float:
    """The fewest nodes that meet a target, such as `total_time <= 60 s`, with the whole problem of a scenario.

    Raise `ImpossiblePointError` where no number of nodes that the machine has does, or where the scenario has no grid
    and so no whole problem; `UsageError` for a target that is none.
    """
    planner = Planner(question)
    if "strong" not in planner.modes():
        raise ImpossiblePointError(
            "impossible: without `[application.grid]` the scenario has no whole problem to spread"
        )
    program = planner.program("strong")
    wanted = parse_target(target, program)
    available = float(planner.now.values["platform.node_count"])

    def met(nodes: np.ndarray) -> np.ndarray:
        ranks = nodes * planner.ranks_per_node
        memory = {MEMORY: planner.memory(ranks, planner.whole)} if planner.memory_size else {}
        swept = evaluate(program, {RANKS: ranks, **memory})
        return np.asarray(wanted.met(swept.numbers(program.term_of(wanted.result))))

    low, high = 0.0, 1.0
    while not met(np.array([high]))[0]:
        if high >= available:
            raise ImpossiblePointError(f"impossible: {wanted} is met on none of up to {available:,.0f} nodes")
        low, high = high, min(2 * high, available)
    while high - low > 1:
        tried = np.unique(np.ceil(np.linspace(low, high, _BETWEEN)[1:]))
        at = int(met(tried).argmax())
        low, high = (low if at == 0 else float(tried[at - 1])), float(tried[at])
    return high
