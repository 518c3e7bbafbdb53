"""The critical path adds up to the run time, and its slopes are those that small changes of the costs show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.simulation.traces import pipeline_trace, time_along
from whatif.models.patterns import GridPattern
from whatif.simulation.activity import GROUPS, activity
from whatif.simulation.critical import critical_path
from whatif.simulation.generate import (
    all_to_all_trace,
    collective_trace,
    concatenated,
    halo_trace,
    repeated,
    work_trace,
)
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind, Trace
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places

TRACES = {
    "halo": halo_trace(GridPattern((4, 3), 6, 3), np.array([3000.0, 90000.0]), iteration_count=3, compute_time=4e-5),
    "allreduce": repeated(concatenated([work_trace(1e-5, 11), collective_trace(Kind.ALLREDUCE, 11, 5000.0)]), 2),
    "all-to-all": all_to_all_trace(7, 20000.0),
    "pipeline": pipeline_trace(6, 700.0, 5),
}


def costs_of(seed: int, *, loggops: bool, node_gap: float) -> Costs:
    """Random costs of every distance and protocol; of one model's times, or of all five kinds."""
    generator = np.random.default_rng(seed)

    def line() -> np.ndarray:
        parts = generator.uniform(1e-6, 1e-5, (3, 3, 1)), generator.uniform(1e-11, 1e-9, (3, 3, 1))
        return np.concatenate(parts, axis=-1)

    none, time = np.zeros((3, 3, 2)), line()
    parts = [line() for _ in range(5)] if loggops else [none, time, time, none, none]
    return Costs(*parts, np.tile([512.0, 8192.0], (3, 1)), node_gap=node_gap, on_arrival=loggops)


def places_of(trace: Trace) -> Places:
    rank = np.arange(trace.rank_count, dtype=np.int32)
    return Places(rank // 4, rank // 2)


@pytest.mark.parametrize("node_gap", [0.0, 1e-9])
@pytest.mark.parametrize("loggops", [False, True])
@pytest.mark.parametrize("name", TRACES)
def test_the_path_adds_up_to_the_run_time(name: str, loggops: bool, node_gap: float) -> None:
    schedule, costs = lower(TRACES[name]), costs_of(7, loggops=loggops, node_gap=node_gap)
    replayed = replay(schedule, places_of(TRACES[name]), costs)
    path = critical_path(schedule, replayed, costs)
    np.testing.assert_allclose(time_along(path, costs), replayed.time, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", TRACES)
def test_the_slopes_are_those_of_small_changes(name: str) -> None:
    schedule, costs, places = lower(TRACES[name]), costs_of(3, loggops=False, node_gap=0.0), places_of(TRACES[name])
    replayed = replay(schedule, places, costs)
    path = critical_path(schedule, replayed, costs)
    for distance in range(3):
        for part, slopes, change in (
            (0, path.latency_slope.sum(axis=1), 1e-12),
            (1, path.byte_slope.sum(axis=1), 1e-17),
        ):
            more = costs.flight.copy()
            more[distance, :, part] += change
            changed = replay(schedule, places, replace(costs, flight=more, send_gap=more))
            # Times are whole multiples of 1e-15 s.
            assert abs(changed.time - replayed.time - slopes[distance] * change) < 2e-13


def test_the_slopes_are_large_enough_to_be_seen() -> None:
    schedule, costs = lower(TRACES["halo"]), costs_of(3, loggops=False, node_gap=0.0)
    path = critical_path(schedule, replay(schedule, places_of(TRACES["halo"]), costs), costs)
    assert path.latency_slope.sum(axis=1).sum() > 3
    assert path.byte_slope.sum(axis=1).sum() * 1e-17 > 2e-13


def test_times_of_the_calls_of_a_rank_sum_to_its_end() -> None:
    trace = TRACES["halo"]
    schedule, costs = lower(trace), costs_of(7, loggops=False, node_gap=0.0)
    replayed = replay(schedule, places_of(trace), costs)
    spent = activity(schedule, replayed.start, replayed.end, replayed.match)
    times = spent.rank_times()
    np.testing.assert_allclose(times.sum(axis=1), spent.rank_ends(), rtol=1e-12, atol=0)
    np.testing.assert_allclose(times[:, GROUPS.index("compute")], 3 * 4e-5, rtol=1e-12, atol=0)
    assert (times[:, GROUPS.index("wait")] > 0).all()
    assert spent.run_time == replayed.time
    assert len(spent.sent) == 3 * 2 * 17
