"""Link domains, ports of a node and device buffers: messages, collectives and what is reported of them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError
from whatif.schema.toml import parse_document

HEAD = """
[platform]
extends = "{platform}"

[application]
name = "phase"
rank_count = {ranks}
iteration_count = 1
congestion = "none"
{more}
"""
HALO = """
[application.grid]
scaling = "weak"
cells = {{ x = 100, y = 100 }}

[application.phases.phase]
kind = "halo"
model = "{model}"
neighbours = "faces"
message_size = "1 MiB"
"""
COLLECTIVE = """
[application.phases.phase]
kind = "collective"
algorithm = "{algorithm}"
model = "{model}"
message_size = "{size}"
arithmetic = "none"
"""
COPY = """
[application.phases.phase]
kind = "transfer"
direction = "{way}"
transfer_size = "1 MiB"
"""
# A copy over a peer link by AHEAD: one flit of 16 B for every 256 B, and the latency of a 1 B write.
LATENCY, SHARE = 1.7798e-6, 256 / 272


def scenario(platform: str, ranks: int, phase: str, more: str = "") -> Scenario:
    text = HEAD.format(platform=platform, ranks=ranks, more=more) + phase
    return Scenario(parse_document(text, "question.toml"))


def halo(model: str = "max_rate") -> str:
    return HALO.format(model=model)


def collective(algorithm: str, size: str = "1 GiB", model: str = "max_rate") -> str:
    """A collective whose messages alone count, as in times by hand."""
    return COLLECTIVE.format(algorithm=algorithm, size=size, model=model)


def time(question: Scenario, **overrides: object) -> float:
    changed = question.changed({key.replace("__", "."): str(value) for key, value in overrides.items()})
    result = run_whole(changed, grid_of([], 1))
    return float(result.columns["iteration_time"])


def reason(question: Scenario) -> str:
    found = run_whole(question, grid_of([], 1)).reason
    return "" if found is None else str(found[()])


@pytest.mark.parametrize("model", ["max_rate", "node_aware"])
def test_a_halo_between_the_gpus_of_a_node_takes_their_links(model: str) -> None:
    """Perlmutter: four GPUs, 100 GB/s between each pair; each of four ranks sends two messages."""
    question = scenario("perlmutter", 4, halo(model))
    assert_allclose(time(question), 2 * (LATENCY + 2**20 / (SHARE * 100e9)), rtol=1e-12, atol=0)
    assert time(question, application__buffers="host") > 3.5 * time(question)


@pytest.mark.parametrize("phase", [collective("ring"), collective("best", model="nccl")])
def test_an_allreduce_in_a_node_is_within_the_range_of_measured_ones(phase: str) -> None:
    """1 GiB on the eight GPUs of a DGX H100: 3.9 to 5.1 ms by nccl-tests."""
    assert 3.9e-3 < time(scenario("dgx_h100", 8, phase)) < 5.1e-3


@pytest.mark.parametrize("phase", [collective("ring"), collective("best", model="nccl"), halo()])
def test_larger_link_domains_are_faster(phase: str) -> None:
    question = scenario("gb200_nvl72", 72, phase)
    axis = parse_option("platform.node.domain_gpu_count = 4, 8, 36, 72", question.program, 10)
    swept = run_whole(question, grid_of([axis], 10)).columns["communication_time"]
    assert (np.diff(swept[:3]) <= 0).all()
    # A ring of 72 GPUs has more steps than two of 36.
    assert swept[3] < min(1.2 * swept[2], 0.8 * swept[0])


@pytest.mark.parametrize("model", ["max_rate", "node_aware", "k_model"])
def test_halos_are_never_slower_in_larger_link_domains(model: str) -> None:
    question = scenario("gb200_nvl72", 576, halo(model))
    axis = parse_option("platform.node.domain_gpu_count = 4, 8, 16, 36, 72, 144, 288, 576", question.program, 10)
    swept = run_whole(question, grid_of([axis], 10)).columns["communication_time"]
    assert (np.diff(swept) <= 0).all()
    assert swept[-1] < swept[4] < swept[0]


def test_bytes_that_leave_a_rack_use_the_ports_of_the_nodes_that_send_them() -> None:
    # 144 ranks in two racks of 72, a grid of 12 x 12: each rank of the sixth row sends three messages over links, which
    # carry 900 GB/s, and starts one down; a node has four of these, and four ports of 50 GB/s.
    links = 3 * (LATENCY + 2**20 / (SHARE * 900e9))
    found = time(scenario("gb200_nvl72", 144, halo("node_aware")))
    assert_allclose(found, links + 6.24e-6 + 4 * 2**20 / (4 * 50e9), rtol=1e-9, atol=0)


@pytest.mark.parametrize(("ranks", "least"), [(73, 33), (76, 36), (100, 48), (128, 64), (144, 72)])
def test_a_run_is_spread_evenly_over_the_fewest_racks_that_hold_it(ranks: int, least: int) -> None:
    # Whole nodes of four in two racks; what the ranks of the smaller part send to the others leaves by their ports.
    found = time(scenario("gb200_nvl72", ranks, collective("pairwise", "16 GiB", "nccl")))
    assert_allclose(found, (ranks - least) / ranks * 2**34 / 50e9, rtol=1e-3, atol=0)


def test_a_group_that_straddles_domains_sends_through_the_ports_of_its_fewest_ranks() -> None:
    # Groups of three on nodes of eight: one rank of the third group is alone in its node, with a port of 50 GB/s.
    phase = collective("ring", "16 GiB", "nccl") + 'group = "some"\n[application.groups]\nsome = { size = 3 }\n'
    found = time(scenario("dgx_h100", 24, phase))
    assert_allclose(found, 2 * 2 / 3 * 2**34 / 50e9, rtol=1e-3, atol=0)


def test_domains_must_consist_of_whole_nodes_or_divide_one() -> None:
    question = scenario("gb200_nvl72", 72, halo())
    changed = question.changed({"platform.node.domain_gpu_count": "6"})
    assert "link domains are neither a part of a node nor whole nodes" in reason(changed)
    assert reason(question.changed({"platform.node.domain_gpu_count": "2"})) == ""


def test_domains_smaller_than_a_node_send_to_each_other_through_main_memory() -> None:
    question = scenario("perlmutter", 4, halo())
    whole, host = time(question), time(question, application__buffers="host")
    split = time(question, platform__node__domain_gpu_count=2)
    # Each rank sends one message in its domain and one to the other domain.
    assert_allclose(split, whole / 2 + host / 2, rtol=1e-12, atol=0)


@pytest.mark.parametrize("model", ["postal", "node_aware"])
def test_staged_messages_are_copied_before_and_after(model: str) -> None:
    """One rank on a node of a grid of 3 x 3: the one in the middle sends four messages between nodes."""
    question = scenario("perlmutter", 9, halo(model), "ranks_per_node = 1")
    direct, staged = (time(question, application__buffers=how) for how in ("device", "staged"))
    ways = ("device_to_host", "host_to_device")
    copies = sum(time(scenario("perlmutter", 1, COPY.format(way=way))) for way in ways)
    assert_allclose(staged - direct, 4 * copies, rtol=1e-9, atol=0)


def test_staged_messages_of_ranks_of_a_gpu_share_its_link_to_the_host() -> None:
    """Sixteen ranks on each node of four GPUs: copies of four share a link, as those of a transfer."""
    question = scenario("perlmutter", 64, halo(), "ranks_per_gpu = 4")
    found = evaluate(question.changed({"application.buffers": "staged"}).program).values
    copy = scenario("perlmutter", 16, COPY.format(way="device_to_host"), "ranks_per_gpu = 4")
    assert_allclose(found["phase.inter_node.to_host.copy_time"], time(copy), rtol=1e-9, atol=0)


@pytest.mark.parametrize("platform", ["perlmutter", "dgx_h100", "gb200_nvl72"])
@pytest.mark.parametrize("phase", [halo("postal"), *(collective(name, "1 MiB", "postal") + "channel_count = 1\n"
                                                     for name in ("recursive_doubling", "rabenseifner"))])  # fmt: skip
def test_messages_of_device_memory_are_simulated_with_the_same_times(platform: str, phase: str) -> None:
    question = scenario(platform, 64, phase)
    assert_allclose(time(question, application__communication="simulated"), time(question), rtol=1e-4, atol=0)


def test_links_shared_by_the_nodes_of_a_domain_are_not_simulated() -> None:
    question = scenario("gb200_nvl72", 144, halo("postal"))
    changed = question.changed({"application.communication": "shared_links"})
    assert "nodes in one link domain are not simulated" in reason(changed)


@pytest.mark.parametrize(("ranks", "rate"), [(1, 1), (2, 1), (4, 1), (8, 0.5), (16, 0.25)])
def test_ports_of_a_node_work_together_up_to_their_rate(ranks: int, rate: float) -> None:
    """Perlmutter's four ports of 24.0371 GB/s, shared by all ranks of two nodes that exchange one message each."""
    more = f'ranks_per_node = {ranks}\nbuffers = "host"'
    phase = collective("recursive_doubling", "1 MiB") + 'distance = "inter_node"\n'
    question = scenario("perlmutter", 2 * ranks, phase, more)
    rounds = np.log2(2 * ranks)
    assert_allclose(time(question), rounds * (6.6e-6 + 2**20 / (24.0371e9 * rate)), rtol=1e-9, atol=0)


@pytest.mark.parametrize("platform", ["frontier", "gb200_nvl72", "dgx_h100"])
@pytest.mark.parametrize("algorithm", ["recursive_doubling", "hierarchical", "pairwise", "bruck_allgather"])
def test_more_ports_are_not_slower(platform: str, algorithm: str) -> None:
    """Up to 8 ports with as many channels, from 8 B to 4 GiB."""
    question = scenario(platform, 288, collective(algorithm))
    sizes = ", ".join(f"{2**power} B" for power in range(3, 33))
    texts = (f"application.phases.phase.message_size = {sizes}", "platform.network.port_count = 1, 2, 3, 4, 5, 6, 7, 8")
    axes = [parse_option(text, question.program, 1000) for text in texts]
    found = run_whole(question, grid_of(axes, 1000)).columns["communication_time"]
    slower = found[:, 1:] / found[:, :-1] - 1
    assert slower.max() <= 1e-9


@pytest.mark.parametrize("model", ["max_rate", "k_model", "node_aware", "injection"])
def test_short_messages_of_a_halo_share_all_ports(model: str) -> None:
    """Messages of 64 B of 64 ranks a node, by one port and by eight."""
    question = scenario("dgx_h100", 512, halo(model), 'buffers = "host"\nranks_per_node = 64')
    short = {"application__phases__phase__message_size": "64 B", "platform__network__inter_node__short_limit": "128 B"}
    ports = [time(question, **short, platform__network__port_count=count) for count in (1, 8)]
    assert ports[1] < ports[0]


def test_each_of_few_messages_that_leave_a_node_has_a_port() -> None:
    """A ring of 17 ranks, 16 of them on a node of Perlmutter, which sends two messages at 24.0371 GB/s a port."""
    more = 'buffers = "host"\nranks_per_node = 16'
    question, periodic = scenario("perlmutter", 17, halo("node_aware"), more), {"application__grid__periodic": "true"}
    one, two, four = (time(question, **periodic, platform__network__port_count=count) for count in (1, 2, 4))
    assert_allclose(two, four, rtol=1e-14, atol=0)
    assert_allclose(one - two, 2**20 / 24.0371e9, rtol=1e-9, atol=0)


@pytest.mark.parametrize("congestion", ["none", "modelled"])
def test_messages_of_node_aware_follow_one_another_whatever_the_concurrency(
    whatif_main, tmp_path, congestion: str
) -> None:
    slow = '[platform.network.topology]\nglobal_bandwidth = "1 GB/s"\n'
    question = scenario("perlmutter", 2048, halo("node_aware") + slow)
    serial, concurrent = (
        time(question, application__congestion=congestion, application__phases__phase__concurrency=way)
        for way in ("serialised", "concurrent")
    )
    assert concurrent == serial
    path = tmp_path / "question.toml"
    text = HEAD.format(platform="perlmutter", ranks=64, more="") + halo("node_aware")
    path.write_text(text + 'concurrency = "concurrent"\n')
    assert "phase: `concurrency` has no effect with `node_aware`" in whatif_main("run", path)[2]


def test_a_rank_more_adds_a_round_to_an_all_to_all_of_which_not_all_rounds_are_followed() -> None:
    """Blocks of 1 MiB of 65 and 66 ranks, six a node, which share its rate in all but the first and last rounds."""
    times = [time(scenario("summit", ranks, collective("pairwise", f"{ranks} MiB"))) for ranks in (65, 66)]
    rate = 12.3e9 + 5 * 25.8e6
    assert_allclose(times[1] - times[0], 9.33e-6 + 6 * 2**20 / rate, rtol=1e-9, atol=0)


def test_swapping_the_network_keeps_the_ports() -> None:
    """400 Gb/s InfiniBand in place of Slingshot 11 on the four ports of Perlmutter."""
    part = '\n[platform.network.inter_node]\nextends = "infiniband-400"\n'
    slingshot, infiniband = (time(scenario("perlmutter", 256, halo() + more)) for more in ("", part))
    assert infiniband < 0.7 * slingshot


def test_channels_leave_a_node_through_different_ports() -> None:
    question = scenario("dgx_h100", 16, collective("ring"))
    one, eight = (time(question, application__phases__phase__channel_count=count) for count in (1, 8))
    assert one > 4 * eight
    assert eight == time(question)


def test_channels_of_a_link_domain_do_not_help_where_every_rank_sends() -> None:
    """Recursive doubling between two domains of 16 nodes: four messages leave each node, with one channel or many."""
    one, all_ports = (
        time(
            scenario("gb200_nvl72", 128, collective("recursive_doubling", "64 MiB") + stated),
            platform__node__domain_gpu_count=64,
        )
        for stated in ("channel_count = 1\n", "")
    )
    assert_allclose(all_ports, one, rtol=0.01, atol=0)


def test_a_collective_takes_each_round_at_its_distance() -> None:
    """Recursive doubling on two nodes of four: two rounds in a domain, one between nodes, four messages at once."""
    question = scenario("perlmutter", 8, collective("recursive_doubling", "1 MiB") + "channel_count = 1\n")
    near = LATENCY + 2**20 / (SHARE * 100e9)
    far = 6.6e-6 + 4 * 2**20 / (4 * 24.0371e9)
    assert_allclose(time(question), 2 * near + far, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("platform", "phase", "more", "message"),
    [
        ("titan", halo(), 'buffers = "device"', "does not state GPUs with a `[node.peer_link]`"),
        ("fugaku", halo(), 'ranks_per_node = 4\nbuffers = "staged"', "does not state GPUs"),
        ("dgx_h100", collective("ring_broadcast"), "", 'no `ring_broadcast`; state `model = "nccl"`'),
        ("dgx_h100", collective("dissemination", model="nccl"), "", "`nccl` has no `dissemination`"),
        ("summit", collective("ring", model="nccl"), "", "`nccl` sends from the memory of GPUs"),
        ("dgx_h100", collective("ring", model="nccl"), 'communication = "simulated"', "cannot be simulated"),
        ("dgx_h100", collective("ring", model="nccl"), 'buffers = "staged"', "`staged` has no effect on `phase`"),
        (
            "dgx_h100",
            collective("ring"),
            'communication = "simulated"',
            "(platform.network.port_count) cannot be simulated",
        ),
    ],
)
def test_what_a_machine_or_a_model_cannot_do_is_named(platform: str, phase: str, more: str, message: str) -> None:
    with pytest.raises(InvalidFileError, match=re.escape(message)):
        _ = scenario(platform, 8, phase, more).program


def test_sizes_outside_a_fit_are_reported_in_a_sweep_of_ranks() -> None:
    question = scenario("polaris", 8, collective("ring", "10 GB", "nccl"))
    ranks = parse_option("application.rank_count=8, 16, 32", question.program, 10)
    result = run_whole(question, grid_of([ranks], 10))
    assert ["sizes of 10 GB lie outside" in text for text in result.extrapolated] == [True]


def test_congestion_of_a_reduction_is_that_of_the_messages_that_are_charged() -> None:
    """Routes towards the root differ from those away from it."""
    question = scenario("frontier", 700, collective("binomial_tree", "8 B") + 'operation = "reduce"\n')
    question = question.changed({"application.congestion": "modelled"})
    terms = question.program.terms
    loads, rounds = (terms[f"phase.{name}"].options["algorithm"] for name in ("round_loads", "rounds"))
    assert loads == rounds == "binomial_reduce"


def test_the_path_of_messages_is_reported(whatif_main, tmp_path) -> None:
    path = tmp_path / "question.toml"
    path.write_text(HEAD.format(platform="perlmutter", ranks=4, more="") + halo())
    found = whatif_main("run", path)[2]
    assert "messages between GPUs: GPU-aware, over peer links in a link domain, without copies between" in found
    assert "(assumed: application.buffers is not stated)" in found
    found = whatif_main("run", path, "--set", "application.buffers=staged")[2]
    assert "through main memory between domains" in found
    assert "(assumed:" not in found
    found = whatif_main("run", path, "--set", "application.buffers=host")[2]
    assert "the platform has no intra_socket parameters: those of inter_node are applied" in found


@pytest.mark.parametrize(("buffers", "copied"), [("host", False), ("staged", True), ("device", True)])
def test_copies_to_the_host_of_messages_that_leave_from_the_gpu_are_named(whatif_main, buffers, copied) -> None:
    options = ("--point", "--platform", "perlmutter", "--set", f"application.buffers={buffers}")
    notes = whatif_main("run", "jacobi2d_strong", *options)[2].splitlines()
    for name in ("device_to_host", "host_to_device"):
        without = f"`--set application.phases.{name}=none` removes the copies"
        text = f"warning: {name}: copies the messages of halo, which leave from the GPU; {without}"
        assert (text in notes) == copied


def test_a_trace_and_a_simulation_take_the_links_of_a_domain_that_spans_nodes(tmp_path: Path) -> None:
    """A message between two nodes of an NVL72 rack takes as long as one in a node."""
    ranks = (f"rank {rank} {{\n}}" for rank in (1, 2, 3, 5, 6, 7))
    sends = "rank 0 {\nl1: send 1000000b to 4 tag 0\n}", "rank 4 {\nl1: recv 1000000b from 0 tag 0\n}"
    (tmp_path / "far.goal").write_text("\n".join(["num_ranks 8", *sends, *ranks]))
    file = tmp_path / "question.toml"
    trace = '[application.phases.phase]\nkind = "trace"\nfile = "far.goal"\nmodel = "{}"\n'
    file.write_text(HEAD.format(platform="gb200_nvl72", ranks=8, more="") + trace.format("postal"))
    question = Scenario.open(file)
    linked, apart = (time(question, platform__node__domain_gpu_count=count) for count in (72, 4))
    assert_allclose(linked, time(question, platform__node__gpu_count=8), rtol=1e-12, atol=0)
    assert apart > 4 * linked
    simulated = whatif.simulate(file)
    assert_allclose(simulated.activity.run_time, linked, rtol=1e-9, atol=0)
    assert np.unique(simulated.node).tolist() == [0, 1]
    assert "2 nodes" in simulated.notes[0]


LIBRARY = (
    'platform = "{}"\n[application]\nname = "A"\nrank_count = {}\niteration_count = 1\n[application.phases.p]\n'
    'kind = "collective"\nalgorithm = "ring"\nmodel = "nccl"\nmessage_size = "1 GiB"\n'
)


@pytest.mark.parametrize(
    ("machine", "rate", "gpus"),
    [("perlmutter", 300e9, 4), ("alps", 450e9, 4), ("mi300x_node", 448e9, 8), ("el_capitan", 384e9, 4)],
)
def test_a_mesh_of_more_gpus_sends_no_faster_than_all_links_of_one(whatif_main, tmp_path, machine, rate, gpus) -> None:
    path = tmp_path / "sum.toml"
    for count, warns in ((gpus, False), (2 * gpus, True), (4 * gpus, True)):
        path.write_text(LIBRARY.format(machine, count))
        changes = {"platform.node.gpu_count": str(count)}
        time = float(whatif.run(path, overrides=changes)["iteration_time"])
        assert 2 * (count - 1) / count * 2**30 / time < rate
        options = [word for item in changes.items() for word in ("--set", "=".join(item))]
        assert (f"a mesh of {count} GPUs" in whatif_main("run", path, *options)[2]) is warns
