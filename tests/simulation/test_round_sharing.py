"""Messages that leave a node in the same round: counts by hand, and charges of the max-rate model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.core.message_simulation import block_places, costs_of
from whatif.models.charges import LONG, serial_charges
from whatif.models.max_rate import max_rate
from whatif.simulation.collective_stages import schedules_of, stages
from whatif.simulation.generate import staged_trace
from whatif.simulation.lower import lower
from whatif.simulation.round_sharing import with_sharing
from whatif.simulation.schedule import Costs, Step

BASE, ADDITIONAL = 10e9, 2e9


def costs(most: float = np.inf, latency: float = 1e-6) -> Costs:
    """Messages of max-rate at all distances and protocols."""
    one = serial_charges(np.array(latency), np.array(latency + LONG / BASE))
    charged = costs_of(np.broadcast_to(one, (9, 5, 2)), np.array([1e3, 1e4] * 3))
    return replace(charged, sharing=np.array([[BASE, ADDITIONAL, most]] * 3))


@pytest.mark.parametrize("leaving", [1, 2, 4, 7])
def test_bytes_of_shared_nodes_are_stretched_to_the_time_of_max_rate(leaving: int) -> None:
    size = 1e6
    expected = max_rate(*(np.array(value) for value in (size, leaving, 1e-6, BASE, ADDITIONAL)))
    assert_allclose(1e-6 + size * costs().stretch(2, leaving) / BASE, expected, rtol=1e-12, atol=0)
    assert_allclose(costs(most=BASE).stretch(2, leaving), leaving, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("ring", {1}),
        ("recursive_doubling", {4}),
        ("binomial_tree", {1}),
        ("linear_gather", {1}),
        ("linear_scatter", {1}),
        ("hierarchical", {4}),
        ("pairwise", {1, 2, 3, 4}),
    ],
)
def test_messages_that_leave_a_node_together_are_counted_by_round(algorithm: str, expected: set[int]) -> None:
    """16 ranks on nodes of four, with links that a further message does not make faster: k times the bytes."""
    parts, places = stages(algorithm, 16, 1, 4), block_places(16, 4, 2)
    schedule = with_sharing(lower(staged_trace(parts, 16, 1e6), schedules_of(parts)), parts, places, costs(most=BASE))
    assert schedule.stretch is not None
    sends = np.flatnonzero(schedule.step == Step.SEND)
    sender = np.repeat(np.arange(16), np.diff(schedule.rank_start))[sends]
    away = places.node[sender] != places.node[schedule.peer[sends]]
    assert set(np.round(schedule.stretch[sends[away]], 12).tolist()) == expected
    assert (np.delete(schedule.stretch, sends[away]) == 1).all()
