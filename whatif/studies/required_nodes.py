"""Fewest nodes of a platform on which a problem meets a target, by strong scaling of the whole problem of the file.

The nodes are doubled until the target is met, then the last interval is divided repeatedly. A time need not fall with
every node: fewer nodes than the answer may meet the target among numbers that were not tried.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError
from whatif.models.quantities import FloatArray
from whatif.studies.bracketing import narrowed
from whatif.studies.scaling import MEMORY, RANKS, Planner
from whatif.studies.threshold import parse_target
from whatif.units import SECOND

_PARTS, _ROUNDS = 32, 64


def required_nodes(scenario: Scenario, target: str, correction: float = 1.0) -> float:
    """Fewest nodes that meet a target, such as `total_time <= 60 s`, with the whole problem of a scenario.

    `correction` is a factor on times, such as measured / predicted.

    Raise `InfeasiblePointError` if all nodes of the platform are not enough, and for a scenario without a grid, which
    has no whole problem; `UsageError` for an invalid target.
    """
    planner = Planner(scenario)
    if "strong" not in planner.modes():
        raise InfeasiblePointError(
            "infeasible: without `[application.grid]` the scenario has no whole problem to spread"
        )
    program = planner.program("strong")
    wanted = parse_target(target, program)
    factor = correction if wanted.dimension == SECOND else 1.0
    available = float(planner.now.values["platform.node_count"])

    def met(places: FloatArray) -> NDArray[np.bool_]:
        nodes = places.ravel()
        ranks = nodes * planner.ranks_per_node
        follows_grid = planner.memory_size and planner.grid is not None
        memory = {MEMORY: planner.memory(ranks, planner.whole)} if follows_grid else {}
        swept = evaluate(program, {RANKS: ranks, **memory})
        numbers = swept.numbers(program.term_of(wanted.result))
        return wanted.met(numbers * factor).reshape(places.shape)

    low, high = 0.0, 1.0
    while not met(np.array([high])).all():
        if high >= available:
            raise InfeasiblePointError(f"infeasible: {wanted} is met on none of up to {available:,.0f} nodes")
        low, high = high, min(2 * high, available)
    if high - low <= 1:
        return high
    ends = narrowed(np.array([low]), np.array([high]), met, parts=_PARTS, rounds=_ROUNDS, rounding=np.ceil)
    return float(ends[1][0])
