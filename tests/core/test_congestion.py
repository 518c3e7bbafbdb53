"""Congestion of modelled phases: against the link simulation, against results computed by hand, and in limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from benchmarks import congestion as tables
from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.core.grid_run import run_whole
from whatif.core.result import Result
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError
from whatif.schema.toml import parse_document
from whatif.simulation import link_loads as loads_of_links
from whatif.simulation.channel_nodes import between_nodes
from whatif.simulation.link_loads import Step, link_loads, peaks
from whatif.simulation.round_patterns import Round
from whatif.simulation.topology import dragonfly, star, torus
from whatif.simulation.torus_rings import Crossings

TOPOLOGIES = {
    "star": 'kind = "star"\nbandwidth = "10 GB/s"',
    # All keys: those of the fat tree of the platform would remain.
    "tree": 'kind = "fat_tree"\nlevel_count = 3\ndown_count = 4\nup_count = 2\nupper_up_count = 2\nrouting = "static"\n'
    'bandwidth = "10 GB/s"',
    "dragonfly": 'kind = "dragonfly"\ngroup_count = 9\nrouter_count = 4\nnodes_per_router = 2\nglobal_link_count = 2\n'
    'bandwidth = "10 GB/s"\nglobal_bandwidth = "5 GB/s"',
    "torus": 'kind = "torus"\nextents = { x = 4, y = 4, z = 4 }\nbandwidth = "10 GB/s"\nlatency = "10 ns"',
}
PATTERNS = {
    "3d": {"cells": "x = 9, y = 9, z = 9", "periodic": "true", "neighbours": "faces"},
    "corners": {"cells": "x = 9, y = 9", "periodic": "true", "neighbours": "all"},
}


def scenario(topology: str, ranks: int, per_node: int, phase: str) -> Scenario:
    return tables.scenario(TOPOLOGIES.get(topology, topology), tables.Case("", phase, ranks, per_node))


def solved(question: Scenario, **application: str) -> Result:
    overrides = {f"application.{name}": value for name, value in application.items()}
    return run_whole(question.changed({**question.overrides, **overrides}), grid_of([], 1))


def time(question: Scenario, **application: str) -> float:
    return float(solved(question, **application).columns["communication_time"])


def halo(pattern: str, size: str, model: str = "postal") -> str:
    return tables.HALO.format(size=size, model=model, **PATTERNS[pattern])


def collective(algorithm: str, size: str) -> str:
    return tables.COLLECTIVE.format(algorithm=algorithm, size=size, model="max_rate")


# Cases in which links are full, and cases in which they are not; on each topology, with one and with four ranks a node.
CASES = [
    *((halo(pattern, size), ranks, per_node)
      for pattern in PATTERNS for size in ("1 KiB", "1 MiB") for ranks, per_node in ((64, 1), (64, 4))),
    *((collective("pairwise", size), 64, 1) for size in ("64 B", "16 MiB")),
    *((collective(algorithm, size), 64, 1)
      for algorithm in ("recursive_doubling", "rabenseifner", "ring") for size in ("64 B", "16 MiB")),
]  # fmt: skip


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_closed_form_agrees_with_the_link_simulation(topology: str) -> None:
    errors, growth = [], []
    for phase, ranks, per_node in CASES:
        question = scenario(topology, ranks, per_node, phase)
        modelled = time(question)
        errors.append(modelled / time(question, communication="shared_links") - 1)
        growth.append(modelled / time(question, congestion="none"))
    assert np.abs(errors).max() < 0.1, list(zip(CASES, errors, strict=True))
    # The cases include phases that links make longer by half, and phases that they do not change by 2 %.
    assert max(growth) > 1.5
    assert min(growth) < 1.02


PLACED = """platform = "{platform}"
[application]
name = "Placed"
rank_count = {ranks}
iteration_count = 1
{more}
[application.phases.c]
kind = "collective"
algorithm = "{algorithm}"
model = "postal"
message_size = "{size}"
"""


def placed(platform: str, ranks: int, algorithm: str, size: str = "100 MB", more: str = 'buffers = "host"') -> Scenario:
    text = PLACED.format(platform=platform, ranks=ranks, algorithm=algorithm, size=size, more=more)
    return Scenario(parse_document(text, "placed.toml"))


ALGORITHMS = ("bruck_allgather", "pairwise", "ring", "recursive_doubling", "rabenseifner")
MACHINES = {"fugaku": 64, "lassen": 64, "frontier": 64, "dahu": 64, "summit": 48}


def error(platform: str, algorithm: str, size: str) -> float:
    """Error of the closed form against the simulation, with several ranks a node."""
    question = placed(platform, MACHINES[platform], algorithm, size)
    question = question.changed({"platform.network.topology.routing": "static"})
    return time(question) / time(question, communication="shared_links") - 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("platform", ["fugaku", "lassen", "frontier", "dahu"])
def test_rounds_of_several_ranks_a_node_take_the_longer_of_messages_and_links(platform: str, algorithm: str) -> None:
    assert abs(error(platform, algorithm, "100 MB")) < 1e-3


@pytest.mark.parametrize("algorithm", ["bruck_allgather", "pairwise", "recursive_doubling"])
def test_rounds_of_ranks_that_share_an_adapter_are_those_of_the_simulation(algorithm: str) -> None:
    question = placed("fugaku", 64, algorithm).changed({"application.phases.c.model": "injection"})
    assert_allclose(time(question), time(question, communication="shared_links"), rtol=1e-9, atol=0)


def test_errors_with_several_ranks_a_node_are_those_of_the_page() -> None:
    lines = ["| size | cases | mean error | largest | in |", "|---|---:|---:|---:|---|"]
    for size in ("1 kB", "1 MB", "100 MB"):
        errors = {case: error(*case, size) for case in product(MACHINES, ALGORITHMS)}
        worst = max(errors, key=lambda case: abs(errors[case]))
        mean = np.mean(np.abs(list(errors.values())))
        lines.append(f"| {size} | {len(errors)} | {mean:.1%} | {errors[worst]:+.0%} | {' '.join(worst)} |")
    assert_shown(ROOT / "docs" / "congestion.md", "placed", "".join(f"{line}\n" for line in lines))


def test_links_that_are_no_bottleneck_do_not_add_to_slower_messages_in_nodes() -> None:
    """Messages between the sockets of Summit are the slowest from 10 GB/s of the network on."""
    question = placed("summit", 48, "bruck_allgather", more="ranks_per_gpu = 4")
    path = "platform.network.inter_node.postal.rendezvous.bandwidth"
    found = [time(question.changed({path: f"{rate} GB/s"})) for rate in (5, 10, 20, 100)]
    assert found[0] > found[1] == found[2] == found[3]


@pytest.mark.parametrize("channels", [1, 2, 4, 8])
def test_channels_do_not_exceed_the_link_of_a_node(channels: int) -> None:
    """In round r of six, min(2^r, 8) ranks of a node send 2^r blocks each over the 400 GB/s of its ports."""
    question = placed("dgx_h100", 64, "bruck_allgather", more="").changed(
        {"application.phases.c.channel_count": channels}
    )
    busy = sum(min(2**number, 8) * 2**number * 100e6 / 64 for number in range(6)) / 400e9
    found = time(question)
    assert busy < found < 1.11 * busy
    assert channels == 1 or found < 1.05 * busy


@pytest.mark.parametrize("unused", [False, True])
def test_errors_of_a_sample_of_all_cases_of_the_documentation(unused: bool) -> None:
    topologies = (tables.UNUSED if unused else tables.CHOSEN_ON).values()
    sample = list(product(topologies, tables.cases(unused)))[::26]
    errors = np.abs([tables.error(*case) for case in sample])
    assert len(errors) == 30
    assert 0 < errors.mean() < 0.03
    assert (errors > 0.1).mean() < 0.1


def test_two_nodes_share_a_link_by_hand() -> None:
    phase = tables.HALO.format(size="1 MB", model="postal", cells="x = 9", periodic="true", neighbours="faces")
    question = scenario("star", 2, 1, phase)
    # Both messages of a rank go to the other node; the link carries them in 0.2 ms, 8.81 us after they start.
    assert_allclose(time(question), 8.81e-6 + 2e6 / 10e9, rtol=1e-12, atol=0)
    assert_allclose(time(question, congestion="none"), 2 * (8.81e-6 + 1e6 * 0.0718e-9), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("cells", "ranks"), [("x = 9", 2), ("x = 9, y = 9", 4), ("x = 9, y = 9, z = 9", 8)])
@pytest.mark.parametrize("neighbours", ["faces", "all"])
@pytest.mark.parametrize("size", ["8 B", "1 MB"])
def test_ranks_at_an_end_of_the_grid_send_without_waiting(cells: str, ranks: int, neighbours: str, size: str) -> None:
    """Two ranks along each axis: each has a neighbour at one side only, a message of its own on each link."""
    phase = tables.HALO.format(size=size, model="postal", cells=cells, periodic="false", neighbours=neighbours)
    question = scenario('kind = "star"\nbandwidth = "25 GB/s"', ranks, 1, phase)
    for other in ({"congestion": "none"}, {"communication": "shared_links"}):
        assert_allclose(time(question), time(question, **other), rtol=1e-12, atol=0)


@pytest.mark.parametrize("periodic", ["true", "false"])
@pytest.mark.parametrize("ranks", [(16, 16, 1), (16, 1, 16), (1, 16, 16)])
def test_dimensions_of_one_rank_take_no_part_of_the_time(ranks: tuple[int, ...], periodic: str) -> None:
    """A grid of 16 x 16 ranks with one rank along any axis, whose messages all have the same size, is the same grid."""
    shape = {f"grid.ranks.{axis}": str(count) for axis, count in zip("xyz", ranks, strict=True)}
    question = scenario("tree", 256, 4, halo("3d", "1 MiB"))
    given = {"grid.decomposition": "given", "grid.periodic": periodic}
    found = solved(question, **given, **shape).columns["communication_time"]
    plane = scenario("tree", 256, 4, halo("corners", "1 MiB").replace('"all"', '"faces"'))
    expected = solved(plane, **given, **{"grid.ranks.x": "16", "grid.ranks.y": "16"}).columns["communication_time"]
    assert_allclose(found, expected, rtol=1e-9, atol=0)


def test_congestion_is_a_term_that_follows_the_taper() -> None:
    question = scenario("tree", 64, 1, halo("3d", "1 MiB"))
    axis = parse_option("platform.network.topology.up_count = 1, 2, 4", question.program, 10)
    grid = grid_of([axis], 10)
    swept = run_whole(question, grid).columns["communication_time"]
    assert swept[0] > 1.5 * swept[1] > 1.5 * swept[2]
    for place, count in enumerate((1, 2, 4)):
        changed = question.changed({"platform.network.topology.up_count": str(count)})
        assert time(changed) == swept[place]


def test_adaptive_routing_spreads_messages() -> None:
    routing = {"platform.network.topology.routing": "adaptive"}
    even = scenario("tree", 64, 1, halo("3d", "1 MiB"))
    # Of a plane of 4 x 4 ranks on 4 switches, each node sends 4 messages out of its switch, which has 2 links for 4.
    assert_allclose(time(even.changed(routing)), 8.81e-6 + 4 * 4 / 2 * 2**20 / 10e9, rtol=1e-3, atol=0)
    for question in (
        scenario("tree", 48, 1, halo("3d", "1 MiB")),
        scenario("dragonfly", 64, 1, collective("ring", "1 GiB")),
    ):
        assert time(question, congestion="none") < time(question.changed(routing)) < 0.95 * time(question)


def test_adaptive_routing_spreads_over_the_links_of_a_router() -> None:
    # 12 messages from router 0 to router 1 of 4: 3 links of each lead away, and a detour crosses two of them.
    topology = dragonfly(2, 4, 12, 1, (1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    step = (np.arange(12), np.arange(12, 24), None)
    assert [link_loads(topology, [step], spread)[0].max() for spread in (False, True)] == [12, 2 * 12 / 3]


@pytest.mark.parametrize("spread", [False, True])
def test_loads_are_the_same_however_many_routes_are_held_at_a_time(
    monkeypatch: pytest.MonkeyPatch, spread: bool
) -> None:
    topology = torus((4, 3, 5), 1e9, 1e-6)
    random = np.random.default_rng(0)
    steps: list[Step] = [
        (random.integers(0, 60, count), random.integers(0, 60, count), random.random(count) if weighted else None)
        for count, weighted in ((50, False), (0, False), (7, True), (120, True), (3, False))
    ]
    whole = link_loads(topology, steps, spread)
    for most in (1, 16, 64):
        monkeypatch.setattr(loads_of_links, "MOST_AT_ONCE", most)
        for part, expected in zip(link_loads(topology, steps, spread), whole, strict=True):
            assert_allclose(part, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("dims", [(4, 3, 5), (1, 2, 7), (2, 2, 2, 2), (9,)])
def test_loads_of_rings_are_those_along_routes(dims: tuple[int, ...]) -> None:
    rings, random = torus(dims, 1e9, 1e-6), np.random.default_rng(1)
    steps: list[Step] = [
        (*random.integers(0, rings.node_count, (2, 90)), weights) for weights in (None, random.random(90))
    ]
    routed = replace(rings, crossings=None)
    for part, expected in zip(link_loads(rings, steps, False), link_loads(routed, steps, False), strict=True):
        assert_allclose(part, expected, rtol=1e-12, atol=0)


def test_alike_messages_of_a_node_and_recurring_rounds_are_routed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def crossings(source: NDArray[np.int32], *rest: Any) -> Crossings:
        sent.append(len(source))
        return Crossings(source, rest[1], rest[2], np.ones(len(source), int))

    topology = replace(star(8, 1.0, 0.0), crossings=crossings)
    step: Step = (np.repeat(np.arange(3), 4), np.repeat(np.arange(1, 4), 4), None)
    assert_allclose(link_loads(topology, [step], False).near, [[4], [4], [4]])
    rounds = [step, (step[1], step[0], None), step]
    monkeypatch.setattr(loads_of_links, "MOST_AT_ONCE", 3)
    assert_allclose(peaks(topology, rounds, False), [[4] * 3, [0] * 3, [1] * 3, [1] * 3])
    assert sent == [3] * 3


def test_more_nodes_than_the_topology_has_are_an_infeasible_point() -> None:
    result = solved(scenario("torus", 128, 1, halo("3d", "1 KiB")))
    assert "node 64 is not in the torus of 64 nodes (platform.network.topology)" in str(result.reason[()])
    # Also results that do not depend on the topology, and the power, whose energy and time are unknown.
    assert all(np.isnan(values).all() for values in (*result.columns.values(), *result.terms.values()))


def test_congestion_knows_two_values() -> None:
    with pytest.raises(InvalidFileError, match="congestion"):
        _ = solved(scenario("star", 8, 1, halo("3d", "1 KiB")), congestion="some")


def test_a_calibrated_congestion_scales_its_part_only() -> None:
    question = scenario("tree", 64, 1, halo("3d", "1 MiB"))
    plain, full = time(question, congestion="none"), time(question)
    factor = "\n[calibration.platforms.lassen]\ncongestion_factor = 3\n"
    corrected = scenario("tree", 64, 1, halo("3d", "1 MiB") + factor)
    assert_allclose(time(corrected), plain + 3 * (full - plain), rtol=1e-12, atol=0)


@pytest.mark.parametrize(("ranks", "most"), [(16, 0.7), (32, 1.0)])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_adaptive_routing_of_a_halo_is_not_slower_than_static(pattern: str, ranks: int, most: float) -> None:
    small = 'kind = "dragonfly"\ngroup_count = 4\nrouter_count = 3\nnodes_per_router = 3\nglobal_link_count = 1\n'
    ways = [f'{small}bandwidth = "5 GB/s"\nrouting = "{routing}"\n' for routing in ("static", "adaptive")]
    static, adaptive = (time(scenario(topology, ranks, 1, halo(pattern, "1 MiB"))) for topology in ways)
    assert adaptive <= most * static * (1 + 1e-12)


def racks(ranks: int, algorithm: str) -> Scenario:
    """GPUs of racks of 18 trays of four, without arithmetic and with links between GPUs that are no bottleneck."""
    question = placed("gb200_nvl72", ranks, algorithm, "1 GiB", more="")
    return question.changed(
        {
            "application.phases.c.model": "max_rate",
            "application.phases.c.arithmetic": "none",
            "platform.node.peer_link.lane_bandwidth": "500 GB/s",
        }
    )


@pytest.mark.parametrize("algorithm", ["ring", "rabenseifner", "hierarchical", "ring_allgather", "bruck_allgather"])
@pytest.mark.parametrize("gpus", [4, 8, 36, 72])
def test_channels_of_a_rack_leave_it_through_all_of_its_nodes(algorithm: str, gpus: int) -> None:
    """A tray's link has the rate of its ports, so that it is never slower than these."""
    changed = {"platform.node.domain_gpu_count": str(gpus)}
    question = racks(144, algorithm)
    question = question.changed({**question.overrides, **changed})
    assert_allclose(time(question), time(question, congestion="none"), rtol=1e-9, atol=0)


def test_a_rack_passes_its_block_of_a_ring_by_all_of_its_ports() -> None:
    """286 rounds of 1/144 of 1 GiB between racks of 72: by 18 trays of four ports of 50 GB/s."""
    busy, latency = 286 * 2**30 / 144 / (72 * 50e9), 286 * 6.24e-6
    assert_allclose(time(racks(144, "ring")), busy + latency, rtol=1e-3, atol=0)


@pytest.mark.parametrize("used", [1, 4, 18])
def test_messages_of_channels_are_divided_over_nodes(used: int) -> None:
    """A ring of 100 ranks in a rack of 18 trays and one of 7: two messages between racks, back and forth."""
    ranks = np.arange(100)
    ring = Round(ranks, (ranks + 1) % 100, np.ones(100), 0.01)
    start, end, weight = between_nodes(ring, 4, 25, (18, used))
    assert weight is not None
    for nodes in (start, end):
        sent = np.bincount(nodes, weight, 25)
        assert_allclose([sent[:18].sum(), sent[18:].sum()], [1, 1], rtol=1e-12, atol=0)
        assert_allclose(sent[:18].max(), 1 / used, rtol=1e-12, atol=0)
        assert sent[18:].max() < {1: 1.01, 4: 1.6 / 4, 18: 1.0001 / 7}[used]
    assert (start // 18 != end // 18).all()


@pytest.mark.parametrize("algorithm", ["bruck_allgather", "pairwise", "recursive_doubling", "ring"])
def test_links_of_a_rack_of_fewer_trays_carry_its_messages_evenly(algorithm: str) -> None:
    """76 ranks on ten and nine trays, whose links have the bandwidth of their ports: these alone limit the rounds."""
    question = racks(76, algorithm)
    assert_allclose(time(question), time(question, congestion="none"), rtol=1e-9, atol=0)


def test_ranks_of_a_rack_that_is_not_full_share_the_ports_of_their_nodes() -> None:
    """73 ranks: nine trays in the second rack, ten in the first one, whose channels they take."""
    full, one_more = (racks(ranks, "ring") for ranks in (144, 73))
    busy = [2 * (ranks - 1) * 2**30 / ranks / (ports * 50e9) for ranks, ports in ((144, 72), (73, 36))]
    alone = [time(one, congestion="none") for one in (full, one_more)]
    latencies = [2 * (ranks - 1) * 6.24e-6 for ranks in (144, 73)]
    assert_allclose(np.subtract(alone, latencies), busy, rtol=1e-3, atol=0)
