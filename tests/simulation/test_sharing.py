"""Max-min rates, routes through networks and links inside nodes, against hand-drawn cases and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.simulation.traces import contention_bound, link_loads
from whatif.errors import UsageError
from whatif.simulation.node_graph import NodeGraph, concurrent_bandwidths
from whatif.simulation.sharing import Routes, max_min, routes_from_lists
from whatif.simulation.topology import Topology, dragonfly, fat_tree, star, torus


@st.composite
def problems(draw: st.DrawFn) -> tuple[Routes, np.ndarray, np.ndarray]:
    """Random flows, some without links, some across a link twice, with capacities and limits."""
    link_count = draw(st.integers(1, 8))
    lists = draw(st.lists(st.lists(st.integers(0, link_count - 1), max_size=5), min_size=1, max_size=20))
    positive = st.floats(1e-3, 1e12)
    capacities = draw(st.lists(positive, min_size=link_count, max_size=link_count))
    limits = draw(st.lists(positive, min_size=len(lists), max_size=len(lists)))
    return routes_from_lists(lists), np.array(capacities), np.array(limits)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_no_link_is_overfull_and_every_flow_has_a_limit_or_a_full_link_where_none_has_more(problem):
    routes, capacities, limits = problem
    rates = max_min(routes, capacities, limits)
    loads = link_loads(routes, rates, len(capacities))
    assert (loads <= capacities * (1 + 1e-9)).all()
    assert (rates <= limits).all()
    highest = np.zeros(len(capacities))
    np.maximum.at(highest, routes.link, rates[routes.flow])
    for flow, rate in enumerate(rates):
        links = routes.link[routes.start[flow] : routes.start[flow + 1]]
        full = loads[links] >= capacities[links] * (1 - 1e-9)
        assert rate == limits[flow] or (full & (rate >= highest[links] * (1 - 1e-9))).any()
    assert_allclose(max_min(routes, 8 * capacities, 8 * limits), 8 * rates, rtol=1e-12, atol=0)


def test_flows_share_the_capacity_that_limited_flows_leave():
    # Three flows share the second link at 1/3 each; the others get the rest of the first and of the third.
    routes = routes_from_lists([[0, 1, 2], [1], [1], [0], [2], []])
    rates = max_min(routes, np.array([1.0, 1.0, 2.0]))
    assert_allclose(rates, [1 / 3, 1 / 3, 1 / 3, 2 / 3, 5 / 3, np.inf], rtol=1e-15, atol=0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_a_capacity_that_is_no_positive_number_is_refused(bad):
    with pytest.raises(UsageError, match=r"capacity 1 is .*: must be > 0"):
        max_min(routes_from_lists([[0]]), np.array([1.0, bad]))


def routes_of(topology: Topology, pairs: list[tuple[int, int]]) -> list[list[int]]:
    routes = topology.routes(*np.array(pairs).T)
    return [part.tolist() for part in np.split(routes.link, routes.start[1:-1])]


def test_a_star_has_a_link_to_the_switch_and_one_from_it_for_each_node():
    topology = star(4, 12.5e9, 1e-6)
    assert routes_of(topology, [(0, 1), (3, 2), (2, 2)]) == [[0, 5], [3, 6], []]
    routes = topology.routes(np.array([0, 1, 2]), np.array([3, 3, 3]))
    assert_allclose(routes.sums(topology.latencies), 2e-6, rtol=1e-15, atol=0)
    assert_allclose(contention_bound(routes, np.full(3, 1e6), topology.capacities), 3e6 / 12.5e9, rtol=1e-15, atol=0)


def test_the_routes_of_a_small_fat_tree_are_those_drawn_by_hand():
    # 2;2,2;1,2;1,1: nodes 0 to 3, switches a = {0, 1} and b = {2, 3} below, x and y above.
    # Up: node n → its switch 0 to 3, then a-x 4, a-y 5, b-x 6, b-y 7; down: the same + 8. Even destinations go by x.
    topology = fat_tree((2, 2), (1, 2), (1, 1), 1e9, 1e-6)
    assert len(topology.capacities) == 16
    drawn = {(0, 1): [0, 9], (0, 2): [0, 4, 14, 10], (1, 3): [1, 5, 15, 11], (3, 0): [3, 6, 12, 8], (2, 2): []}
    assert routes_of(topology, list(drawn)) == list(drawn.values())


def test_parallel_links_of_a_fat_tree_are_used_in_turn_by_destination():
    # One parent with three links to each of two switches of three nodes: destination d takes link d mod 3.
    topology = fat_tree((3, 2), (1, 1), (1, 3), 1e9, 0.0)
    ways = [route[1] for route in routes_of(topology, [(0, 3), (0, 4), (0, 5)])]
    assert ways == [6, 7, 8]


@pytest.mark.parametrize("shift", [1, 5, 16, 100])
def test_shifts_are_free_of_contention_in_a_full_fat_tree(shift):
    # What d-mod-k routing is made for (Zahavi); 8-port switches, 128 nodes.
    topology = fat_tree((4, 4, 8), (1, 4, 4), (1, 1, 1), 1.0, 0.0)
    nodes = np.arange(topology.node_count)
    routes = topology.routes(nodes, (nodes + shift) % topology.node_count)
    assert link_loads(routes, np.ones(len(routes)), len(topology.capacities)).max() == 1


def test_messages_climb_a_fat_tree_as_far_as_they_must():
    topology = fat_tree((4, 4, 8), (1, 4, 4), (1, 1, 1), 1.0, 0.0)
    counts = np.bincount(topology.routes(np.zeros(128, int), np.arange(128)).hop_count)
    assert counts.tolist() == [1, 0, 3, 0, 12, 0, 112]


def test_the_routes_of_a_small_dragonfly_are_those_drawn_by_hand():
    # 3 groups of 2 routers with 1 node and 1 global port each. Node links 0 to 5 and 6 to 11; router r of group g to
    # the other 12 + 2 g + r; ports of group 0 lead to 1, 2; of 1 to 0, 2; of 2 to 0, 1: global links 18 to 23.
    topology = dragonfly(3, 2, 1, 1, (1e9, 2e9, 3e9), (1e-6, 2e-6, 3e-6))
    assert len(topology.capacities) == 24
    drawn = {(0, 1): [0, 12, 7], (0, 2): [0, 18, 8], (1, 3): [1, 13, 18, 14, 9], (0, 5): [0, 12, 19, 16, 11]}
    assert routes_of(topology, list(drawn)) == list(drawn.values())
    latency = topology.routes(np.array([1]), np.array([3])).sums(topology.latencies)
    assert_allclose(latency, 2 * 1e-6 + 2 * 2e-6 + 3e-6, rtol=1e-12, atol=0)


def test_every_global_link_of_a_full_dragonfly_carries_the_traffic_of_one_pair_of_groups():
    # a = 4, h = 2, p = 2, g = a h + 1 = 9: all-to-all puts (a p)² messages on each link between groups.
    topology = dragonfly(9, 4, 2, 2, (1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    nodes = np.arange(72)
    routes = topology.routes(np.repeat(nodes, 72), np.tile(nodes, 72))
    loads = link_loads(routes, np.ones(len(routes)), len(topology.capacities))
    assert_array_equal(loads[-72:], 64)
    assert routes.hop_count.max() == 5
    with pytest.raises(UsageError, match="8 ports of a group cannot reach 9 other groups"):
        dragonfly(10, 4, 2, 2, (1.0, 1.0, 1.0), (0.0, 0.0, 0.0))


def test_a_torus_is_crossed_dimension_after_dimension_the_shorter_way():
    # 4 x 3, node x + 4 y; link (2 node + dimension) · 2 + (0 up, 1 down).
    topology = torus((4, 3), 1e9, 1e-6)
    drawn = {(0, 1): [0], (0, 3): [1], (0, 2): [0, 4], (0, 5): [0, 6], (1, 11): [4, 8, 15]}
    assert routes_of(topology, list(drawn)) == list(drawn.values())


@pytest.mark.parametrize("dims", [(4,), (5, 3), (4, 6, 3), (2, 1, 7)])
def test_the_mean_distance_in_a_torus_is_a_quarter_of_its_lengths(dims):
    topology = torus(dims, 1.0, 0.0)
    count = topology.node_count
    routes = topology.routes(np.repeat(np.arange(count), count), np.tile(np.arange(count), count))
    mean = sum(length / 4 if length % 2 == 0 else (length**2 - 1) / (4 * length) for length in dims)
    assert_allclose(routes.hop_count.mean(), mean, rtol=1e-12, atol=0)


def test_nodes_and_networks_that_cannot_exist_are_refused():
    with pytest.raises(UsageError, match="node 4 is not in the star of 4 nodes"):
        star(4, 1e9, 0.0).routes(np.array([0]), np.array([4]))
    with pytest.raises(UsageError, match=r"dims\[1\] is 0"):
        torus((4, 0), 1e9, 0.0)
    with pytest.raises(UsageError, match="2, 1, 2 levels"):
        fat_tree((2, 2), (1,), (1, 1), 1e9, 0.0)
    with pytest.raises(UsageError, match="too many"):
        torus((10_000, 10_000), 1e9, 0.0)
    with pytest.raises(UsageError, match="bandwidth 0 is nan"):
        star(4, np.nan, 0.0)


PCIE = NodeGraph({"up": ("cpu0", "switch0", 12e9), "a": ("switch0", "gpu0", 12e9), "b": ("switch0", "gpu1", 12e9)})
"""Two devices behind one switch with one link to the host."""


def summit() -> NodeGraph:
    links = {"x": ("cpu0", "cpu1", 64e9)}
    for socket, base in enumerate((0, 3)):
        for at in range(3):
            gpu, peer = f"gpu{base + at}", f"gpu{base + (at + 1) % 3}"
            links |= {f"cpu{socket} {gpu}": (f"cpu{socket}", gpu, 50e9), f"{gpu} {peer}": (gpu, peer, 50e9)}
    return NodeGraph(links)


SUMMIT = summit()
"""A node of Summit: per socket a processor and three devices, two NVLink 2 between any two; the X bus."""


@pytest.mark.parametrize(
    ("graph", "transfers", "bandwidths"),
    [
        (PCIE, [("cpu0", "gpu0")], [12e9]),
        (PCIE, [("cpu0", "gpu0"), ("cpu0", "gpu1")], [6e9, 6e9]),
        (PCIE, [("gpu0", "cpu0"), ("gpu1", "cpu0")], [6e9, 6e9]),
        (PCIE, [("cpu0", "gpu0"), ("gpu1", "cpu0")], [12e9, 12e9]),
        (PCIE, [("gpu0", "gpu1"), ("gpu1", "gpu0")], [12e9, 12e9]),
        # The copy between the devices takes what the one from the host parameters of gpu1's link.
        (PCIE, [("gpu0", "gpu1"), ("cpu0", "gpu1"), ("cpu0", "gpu0")], [6e9, 6e9, 6e9]),
        (SUMMIT, [("cpu0", f"gpu{at}") for at in range(3)], [50e9] * 3),
        (SUMMIT, [("gpu0", "gpu1"), ("gpu1", "gpu2"), ("gpu2", "gpu0"), ("cpu0", "gpu0")], [50e9] * 4),
        (SUMMIT, [(f"gpu{at}", f"gpu{at + 3}") for at in range(3)], [64e9 / 3] * 3),
        (SUMMIT, [("gpu0", "gpu3"), ("gpu4", "gpu1")], [50e9, 50e9]),
        (SUMMIT, [("cpu0", "gpu3"), ("cpu1", "gpu3")], [25e9, 25e9]),
    ],
)
def test_copies_that_share_a_link_share_its_bandwidth(graph, transfers, bandwidths):
    assert_allclose(concurrent_bandwidths(graph, transfers), bandwidths, rtol=1e-14, atol=0)


def test_a_copy_that_cannot_use_its_share_parameters_it_to_the_other():
    limits = np.array([2e9, np.inf])
    assert_array_equal(concurrent_bandwidths(PCIE, [("cpu0", "gpu0"), ("cpu0", "gpu1")], limits), [2e9, 10e9])


def test_devices_forward_no_messages_and_unknown_ends_are_refused():
    chain = NodeGraph({"a": ("gpu0", "gpu1", 1e9), "b": ("gpu1", "gpu2", 1e9)})
    with pytest.raises(UsageError, match="no links lead from `gpu0` to `gpu2`"):
        concurrent_bandwidths(chain, [("gpu0", "gpu2")])
    with pytest.raises(UsageError, match="`gpu3`; did you mean"):
        concurrent_bandwidths(chain, [("gpu0", "gpu3")])
    with pytest.raises(UsageError, match="bandwidth of link 0 is 0"):
        NodeGraph({"a": ("cpu0", "gpu0", 0.0)})
