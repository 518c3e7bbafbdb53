"""Fewest nodes of a platform on which a problem meets a target, by strong scaling of the whole problem of the file.

The nodes are doubled until the target is met, then the last interval is divided. A time need not fall with every node:
all smaller numbers are tried, too, where that takes seconds, else those just below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import evaluate
from whatif.core.parameter_paths import NODE_COUNT
from whatif.core.scenario import Scenario
from whatif.errors import InfeasiblePointError
from whatif.models.quantities import FloatArray
from whatif.studies.bracketing import narrowed
from whatif.studies.scaling import Planner
from whatif.studies.search_space import is_simulated
from whatif.studies.threshold import parse_target
from whatif.units import SECOND

_PARTS, _ROUNDS = 32, 64
_TRIED_RANKS: Final = 3e6
"""Sum of the ranks of the numbers of nodes that are tried below the first answer."""
Met = Callable[[FloatArray], NDArray[np.bool_]]
"""Whether numbers of nodes meet a target."""


@dataclass(frozen=True)
class RequiredNodes:
    """Nodes that meet a target."""

    count: float
    fewest: bool
    """Whether all smaller numbers were tried."""

    @property
    def doubt(self) -> str:
        """Remark if smaller numbers may meet the target; empty if all were tried."""
        return "" if self.fewest else f"not all smaller numbers than {self.count:,.0f} nodes were tried"


def required_nodes(scenario: Scenario, target: str, correction: float = 1.0) -> RequiredNodes:
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
    available = float(planner.now.values[NODE_COUNT])

    def met(places: FloatArray) -> NDArray[np.bool_]:
        nodes = places.ravel()
        swept = evaluate(program, planner.whole_on(nodes * planner.ranks_per_node))
        numbers = swept.numbers(program.term_of(wanted.result))
        return wanted.met(numbers * factor).reshape(places.shape)

    found = _between_powers(met, available)
    if found is None:
        raise InfeasiblePointError(f"infeasible: {wanted} is met on none of up to {available:,.0f} nodes")
    if is_simulated(program):
        return RequiredNodes(found, found == 1)
    # Sums of the ranks of n, n + 1, .., found - 1 nodes fall with n.
    smaller = np.arange(1, found)
    tried = smaller[np.cumsum(smaller[::-1])[::-1] * planner.ranks_per_node <= _TRIED_RANKS]
    good = tried[met(tried)] if tried.size else tried
    return RequiredNodes(float(good[0]) if good.size else found, tried.size == smaller.size)


def _between_powers(met: Met, available: float) -> float | None:
    """Nodes that meet the target where half of them do not, and one less does not; None if all nodes do not."""
    low, high = 0.0, 1.0
    while not met(np.array([high])).all():
        if high >= available:
            return None
        low, high = high, min(2 * high, available)
    if high - low <= 1:
        return high
    ends = narrowed(np.array([low]), np.array([high]), met, parts=_PARTS, rounds=_ROUNDS, rounding=np.ceil)
    return float(ends[1][0])
