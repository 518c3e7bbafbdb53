"""Traces and bounds that only tests need."""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.simulation.critical import CriticalPath
from whatif.simulation.generate import _program
from whatif.simulation.rank_programs import Kind, Trace
from whatif.simulation.schedule import Costs
from whatif.simulation.schedule_checks import cost_table
from whatif.simulation.sharing import Routes


def pipeline_trace(rank_count: int, message_size: float, block_count: int = 1) -> Trace:
    """Trace of a chain: each rank passes on what it receives, block by block."""
    receive, send = (Kind.RECEIVE, -1, message_size, 0), (Kind.SEND, 1, message_size, 0)
    programs = [_program(steps, block_count) for steps in ([send], [receive, send], [receive])]
    which = np.full(rank_count, 1, dtype=np.int32)
    which[0], which[-1] = 0, 2
    if rank_count == 1:
        return Trace((_program([], 1),), np.zeros(1, dtype=np.int32))
    return Trace(tuple(programs), which)


def time_along(path: CriticalPath, costs: Costs) -> float:
    """The run time in s at some costs, were this the critical path."""
    constants, slopes = np.moveaxis(cost_table(costs), -1, 0)
    messages = float((path.message_count * constants + path.byte_count * slopes).sum())
    return path.compute_time + messages + path.adapter_byte_count * costs.node_gap


def link_loads(routes: Routes, sizes: FloatArray, link_count: int) -> FloatArray:
    """[link]: bytes that cross each link, for `sizes` [flow] in B."""
    loads: FloatArray = np.bincount(routes.link, weights=sizes[routes.flow], minlength=link_count).astype(np.float64)
    return loads


def contention_bound(routes: Routes, sizes: FloatArray, capacities: FloatArray) -> float:
    """Least time in s in which the flows can cross all links: `T ≥ max_l load_l / capacity_l`.

    `sizes` [flow] in B ≥ 0, `capacities` [link] in B/s > 0. The time of equal flows that all start together and are
    held up by one link is equal to it, without latencies.
    """
    loads = link_loads(routes, sizes, len(capacities))
    return float(np.max(loads / capacities, initial=0.0))
