"""Replay with shared links, against SimGrid on one switch, closed forms and the message costs of a lone message."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import whatif
from whatif.errors import InfeasiblePointError, UsageError
from whatif.simulation import flows
from whatif.simulation.flows import replay_flows
from whatif.simulation.rank_programs import ANY, Kind
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Schedule
from whatif.simulation.sharing import Routes, max_min, routes_from_lists
from whatif.simulation.topology import Topology, dragonfly, fat_tree, star, torus
from whatif.validation.shared_links import (
    BANDWIDTH,
    HEADER,
    LATENCY,
    LOOPBACK,
    Call,
    as_seen_by_the_ranks,
    iteration,
    linear,
    machine_of_row,
    peers_of,
    schedule_of,
    schedule_of_row,
    simulated_time,
)
from whatif.validation.tables import rows_of

ROWS = rows_of("simgrid_flows.csv")


def row_name(row: dict[str, str]) -> str:
    return "-".join(list(row.values())[:9])


def places_of(rank_count: int, ranks_per_node: int) -> Places:
    node = np.arange(rank_count, dtype=np.int32) // ranks_per_node
    return Places(node, node)


def costs_of(flight: np.ndarray, gap: np.ndarray | None = None, eager_limit: float = np.inf, **others: object) -> Costs:
    none = linear(0.0, 0.0)
    limits = {"limits": np.tile([0.0, eager_limit], (3, 1))}
    fields = {"send_overhead": none, "send_gap": none if gap is None else gap, "flight": flight}
    return Costs(**{**fields, "receive_overhead": none, "receive_gap": none, **limits, **others})


@pytest.mark.parametrize("row", ROWS, ids=row_name)
def test_every_row_of_simgrid_is_reproduced(row):
    assert_allclose(simulated_time(row), float(row["sim_total_s"]), rtol=1e-9, atol=0)


@pytest.mark.parametrize("row", [row for row in ROWS if row["config"] == "crosstraffic"], ids=row_name)
def test_cross_traffic_in_the_compiled_loop_is_that_in_python(row):
    schedule, machine = schedule_of_row(row), machine_of_row(row)
    ends = [replay_flows(schedule, *machine, compiled_loop=compiled).end for compiled in (False, True)]
    np.testing.assert_array_equal(*ends)


def test_cross_traffic_of_a_platform_slows_messages_in_both_directions(tmp_path):
    times = []
    for share in ("0", "0.05"):
        overrides = {
            "application.communication": "shared_links", "application.rank_count": "24",
            "platform.network.topology.cross_traffic": share, "application.phases.halo.model": "postal",
            "platform.network.topology.bandwidth": "1 GB/s",
        }  # fmt: skip
        times.append(float(whatif.run("jacobi2d", overrides=overrides)["communication_time"]))
    assert 1 < times[1] / times[0] <= 1.05 * (1 + 1e-9)


@pytest.mark.parametrize("row", ROWS, ids=row_name)
def test_a_latency_counts_once_whether_links_or_the_message_model_state_it(row):
    schedule, (places, costs, links) = schedule_of_row(row), machine_of_row(row)
    stated = replace(costs, flight=linear(0.0, 1 / LOOPBACK, (2 * LATENCY, 0.0)))
    without = replace(star(links.node_count, BANDWIDTH, 0.0), cross_traffic=links.cross_traffic)
    replayed = replay_flows(schedule, places, stated, without, compiled_loop=False)
    assert_allclose(as_seen_by_the_ranks(schedule, replayed), float(row["sim_total_s"]), rtol=1e-9, atol=0)


def test_a_node_takes_its_latency_and_the_bytes_that_leave_it_over_its_bandwidth():
    # The law of the data's README: K of the placement, times the size over the bandwidth; once the barrier is over.
    row = next(row for row in ROWS if row["pattern"] == "halo2d" and row["bytes"] == "131072" and row["rpn"] == "4")
    places, costs, topology = machine_of_row(row)
    ranks = range(int(row["P"]))
    schedule = schedule_of([iteration(row, rank) for rank in ranks])
    node = places.node
    leaving = np.bincount(
        [node[rank] for rank in ranks for _, peer in peers_of(row, rank)[1] if node[peer] != node[rank]]
    )
    expected = 2e-6 + leaving.max() * (131072 + HEADER) / 12.5e9
    assert_allclose(replay_flows(schedule, places, costs, topology).run_time, expected, rtol=1e-12, atol=0)


def sent(sizes: list[float], delays: list[float]) -> Schedule:
    """Every message has two ranks: one computes until it starts, one receives; ranks 2 m and 2 m + 1."""
    ranks: list[list[Call]] = []
    for message, (size, delay) in enumerate(zip(sizes, delays, strict=True)):
        ranks.append([(Kind.COMPUTE, 0, delay, 0, []), (Kind.SEND, 2 * message + 1, size, 0, [])])
        ranks.append([(Kind.RECEIVE, 2 * message, size, 0, [])])
    return schedule_of(ranks)


def arrivals(
    sizes: list[float], delays: list[float], pairs: list[tuple[int, int]], costs: Costs, topology: Topology
) -> np.ndarray:
    """When messages between pairs of nodes have been received."""
    schedule = sent(sizes, delays)
    node = np.array([end for pair in pairs for end in pair], dtype=np.int32)
    return replay_flows(schedule, Places(node, node), costs, topology).end[2::3]


FREE = costs_of(linear(0.0, 0.0))


def test_a_flow_that_comes_later_halves_the_rate_of_the_first_until_that_ends():
    # 1 MB at 1 GB/s; at 0.5 ms half is left, for which it takes 1 ms; the other has then got half, too.
    ends = arrivals([1e6, 1e6], [0.0, 0.5e-3], [(0, 1), (0, 2)], FREE, star(3, 1e9, 0.0))
    assert_allclose(ends, [1.5e-3, 2e-3], rtol=1e-12, atol=0)


def test_flows_on_other_links_do_not_notice():
    ends = arrivals([1e6, 2e6], [0.0, 0.5e-3], [(0, 1), (2, 3)], FREE, star(4, 1e9, 1e-6))
    assert_allclose(ends, [1.002e-3, 2.502e-3], rtol=1e-12, atol=0)


def test_a_message_is_no_faster_than_it_is_alone_and_the_others_get_the_rest():
    costs = costs_of(linear(5e-6, 0.0, (5e-6, 1 / 0.25e9)))
    ends = arrivals([1e6, 1e6], [0.0, 0.0], [(0, 1), (0, 2)], costs, star(3, 1e9, 0.0))
    assert_allclose(ends, 5e-6 + 1e6 / 0.25e9, rtol=1e-12, atol=0)
    adapter = costs_of(linear(5e-6, 0.0), node_gap=1 / 0.5e9)
    ends = arrivals([1e6, 1e6], [0.0, 0.0], [(0, 1), (0, 2)], adapter, star(3, 1e9, 0.0))
    assert_allclose(ends, 5e-6 + 2e6 / 0.5e9, rtol=1e-12, atol=0)


UNLIMITED = star(2, np.inf, 0.0)
POSTAL = costs_of(linear(2e-6, 1e-10), linear(2e-6, 1e-10))
LOGGOPS = costs_of(
    linear(4e-6, 0.0),
    linear(1e-6, 6e-9),
    send_overhead=linear(1.5e-6, 1e-9),
    receive_overhead=linear(1.5e-6, 6e-9),
    receive_gap=linear(1e-6, 6e-9),
    free_size=1.0,
)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [(POSTAL, 2 * (2e-6 + 1e5 * 1e-10)), (LOGGOPS, 1e-6 + 99_999 * 6e-9 + 4e-6 + 99_999 * 6e-9 + 1.5e-6)],
)
def test_on_links_without_limits_two_messages_take_the_time_of_their_costs(costs, expected):
    schedule = schedule_of([[(Kind.SEND, 1, 1e5, 0, [])] * 2, [(Kind.RECEIVE, 0, 1e5, 0, [])] * 2])
    replayed = replay_flows(schedule, places_of(2, 1), costs, UNLIMITED)
    assert_allclose(replayed.run_time, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("row", [ROWS[4], ROWS[5], ROWS[6]], ids=["halo, node a rank", "ring", "ring, node a rank"])
def test_on_links_without_limits_a_replay_is_that_of_the_messages(row):
    schedule, places = schedule_of_row(row), places_of(int(row["P"]), int(row["rpn"]))
    flows = replay_flows(schedule, places, POSTAL, star(48, np.inf, 0.0))
    messages = replay(schedule, places, POSTAL)
    assert_array_equal(flows.match, messages.match)
    assert_allclose(flows.start, messages.start, rtol=1e-9, atol=0)
    assert_allclose(flows.end, messages.end, rtol=1e-9, atol=0)


def test_a_rendezvous_send_waits_for_its_receive_and_for_its_end():
    costs = costs_of(linear(1e-6, 0.0), eager_limit=100.0)
    schedule = schedule_of(
        [[(Kind.SEND, 1, 1e6, 0, [])], [(Kind.COMPUTE, 0, 1.0, 0, []), (Kind.RECEIVE, 0, 1e6, 0, [])]]
    )
    replayed = replay_flows(schedule, places_of(2, 1), costs, star(2, 1e9, 0.0))
    assert_allclose(replayed.start, [1.0, 0.0, 1.001001], rtol=1e-12, atol=0)
    assert_allclose(replayed.end, [1.001001, 1.0, 1.001001], rtol=1e-12, atol=0)


@pytest.mark.parametrize("eager_limit", [0.0, np.inf])
def test_a_receive_of_any_takes_the_message_that_comes_first(eager_limit):
    costs = costs_of(linear(1e-6, 0.0), eager_limit=eager_limit)
    wild: Call = (Kind.RECEIVE, ANY, 1e6, ANY, [])
    late: Call = (Kind.COMPUTE, 0, 0.01, 0, [])
    sends: list[Call] = [(Kind.SEND, 0, 1e6, tag, []) for tag in (5, 6, 7)]
    receiver: list[Call] = [(Kind.IRECEIVE, 3, 1e6, 7, []), wild, wild, (Kind.WAIT, 0, 0.0, 0, [3])]
    schedule = schedule_of([receiver, [late, sends[0]], [sends[1]], [sends[2], late]])
    replayed = replay_flows(schedule, places_of(4, 1), costs, star(4, 1e9, 0.0))
    assert replayed.match.tolist() == [7, 6, 5, -1, -1, 2, 1, 0, -1]


def fluid(sizes: np.ndarray, starts: np.ndarray, routes: Routes, capacities: np.ndarray) -> np.ndarray:
    """The ends of flows, all rates found anew whenever one comes or goes."""
    left, ends, now = sizes.copy(), np.full(len(sizes), np.nan), 0.0
    while np.isnan(ends).any():
        active = (starts <= now) & np.isnan(ends)
        rates = np.zeros(len(sizes))
        lists = [routes.link[routes.start[flow] : routes.start[flow + 1]].tolist() for flow in np.flatnonzero(active)]
        rates[active] = max_min(routes_from_lists(lists), capacities)
        due = np.full(len(sizes), np.inf)
        due[active] = now + left[active] / rates[active]
        coming = starts[starts > now]
        then = min(due.min(), coming.min(initial=np.inf))
        left -= rates * (then - now)
        ends[due <= then * (1 + 1e-12)] = then
        now = then
    return ends


@pytest.mark.parametrize(
    "topology",
    [
        star(6, 1e9, 0.0),
        torus((3, 4), 1e9, 0.0),
        fat_tree((2, 3), (1, 2), (1, 1), 1e9, 0.0),
        dragonfly(3, 2, 2, 1, (1e9, 2e9, 0.5e9), (0.0, 0.0, 0.0)),
    ],
    ids=lambda topology: topology.name,
)
def test_random_messages_end_when_the_rates_of_all_are_found_anew_at_every_event(topology):
    generator = np.random.default_rng(5)
    count = 120
    sizes, starts = generator.uniform(1e3, 1e6, count), generator.uniform(0, 5e-3, count)
    source = generator.integers(0, topology.node_count, count)
    destination = (source + generator.integers(1, topology.node_count, count)) % topology.node_count
    pairs = list(zip(source.tolist(), destination.tolist(), strict=True))
    ends = arrivals(sizes.tolist(), starts.tolist(), pairs, FREE, topology)
    expected = fluid(sizes, starts, topology.routes(source, destination), topology.capacities)
    assert_allclose(ends, expected, rtol=1e-9, atol=0)


def test_the_compiled_loop_does_the_same_to_the_last_bit():
    row = next(row for row in ROWS if row["pattern"] == "halo2d")
    schedule, places = schedule_of_row(row), places_of(48, 4)
    costs = replace(LOGGOPS, limits=np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 20.0]]), node_gap=1e-9)
    network = torus((4, 3), 2e9, 1e-7)
    plain, fast = (replay_flows(schedule, places, costs, network, compiled_loop=loop) for loop in (False, True))
    assert_array_equal(fast.start, plain.start)
    assert_array_equal(fast.end, plain.end)
    assert_array_equal(fast.match, plain.match)


def test_the_loop_is_compiled_when_many_operations_were_replayed(monkeypatch):
    chosen, final_state = [], flows._final_state

    def recorded(state, compiled_loop):
        chosen.append(compiled_loop)
        return final_state(state, False)

    monkeypatch.setattr(flows, "_final_state", recorded)
    monkeypatch.setattr(flows._Replayed, "operations", 0)
    schedule = schedule_of([[(Kind.SEND, 1, 1e6, 4, [])], [(Kind.RECEIVE, 0, 1e6, 4, [])]])
    monkeypatch.setattr(flows, "COMPILED_FROM", 3 * len(schedule.step))
    for _ in range(4):
        replay_flows(schedule, places_of(2, 1), costs_of(linear(1e-6, 0.0)), star(2, 1e9, 0.0))
    assert chosen == [False, False, True, True]


def test_a_deadlock_is_refused_with_the_ranks_and_calls_that_wait():
    costs = costs_of(linear(1e-6, 0.0), eager_limit=0.0)
    both = [[(Kind.SEND, 1 - rank, 1e6, 4, []), (Kind.RECEIVE, 1 - rank, 1e6, 4, [])] for rank in range(2)]
    waits = r"deadlock: 2 of 2 ranks .*\n.* rank 0, operation 0 \(send\): send of 1000000 B to rank 1"
    with pytest.raises(InfeasiblePointError, match=waits):
        replay_flows(schedule_of(both), places_of(2, 1), costs, star(2, 1e9, 0.0))


def test_ranks_and_nodes_that_do_not_exist_are_refused():
    schedule = schedule_of([[(Kind.SEND, 1, 1.0, 0, [])], [(Kind.RECEIVE, 0, 1.0, 0, [])]])
    with pytest.raises(UsageError, match="2 ranks take part, places are given for 1"):
        replay_flows(schedule, places_of(1, 1), FREE, star(2, 1e9, 0.0))
    with pytest.raises(UsageError, match="node 1 is not in the star of 1 nodes"):
        replay_flows(schedule, places_of(2, 1), FREE, star(1, 1e9, 0.0))
