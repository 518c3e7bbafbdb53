"""Algorithms of collectives: closed forms, simulation of their messages, hierarchy, switches, the fastest one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.core.test_domains import HEAD, collective, reason, scenario, time
from tests.core.test_groups import GROUPS
from whatif.core.grid_run import run_whole
from whatif.core.phases.link_sharing import collective_round_loads
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of, parse_option
from whatif.errors import InvalidFileError
from whatif.models.collectives import ALGORITHMS
from whatif.models.decomposition import MOST_RANKS
from whatif.schema.collective_phase import CollectivePhase
from whatif.simulation.collective_stages import NESTED, stages
from whatif.simulation.round_patterns import collective_rounds
from whatif.vocabulary import IN_NETWORK, LIBRARY_ALGORITHMS, MESSAGE_ALGORITHMS

FLAT = sorted(ALGORITHMS)


def lassen(algorithm: str, ranks: int = 24, size: str = "1 MiB", more: str = "", head: str = "") -> Scenario:
    return scenario("lassen", ranks, collective(algorithm, size, "postal") + more, head)


@pytest.mark.parametrize("ranks", [2, 3, 8, 13, 64])
@pytest.mark.parametrize("algorithm", FLAT)
def test_closed_form_has_the_sizes_and_counts_of_the_rounds_of_the_schedule(algorithm: str, ranks: int) -> None:
    sizes_of, counts_of = ALGORITHMS[algorithm]
    sizes, counts = sizes_of(np.array(1e6), np.array(float(ranks))), counts_of(np.array(float(ranks)))
    rounds = collective_rounds(algorithm, ranks, ranks, 1, 4)
    expected = sum(item.repeats for item in rounds), sum(item.share * 1e6 * item.repeats for item in rounds)
    assert_allclose([counts.sum(), (sizes * counts).sum()], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("algorithm", [*FLAT, "hierarchical"])
@pytest.mark.parametrize("ranks", [16, 24])
def test_simulated_messages_take_the_modelled_time(algorithm: str, ranks: int) -> None:
    """One rank on a node: messages of one distance, so that ranks do not drift apart, by rendezvous: sends wait."""
    question = lassen(algorithm, ranks, "64 MiB", head="ranks_per_node = 1")
    simulated = time(question, application__communication="simulated")
    assert_allclose(simulated, time(question), rtol=1e-9, atol=0)


@pytest.mark.parametrize("ranks", [5, 32, 33])
@pytest.mark.parametrize("algorithm", [*(name for name in FLAT if "linear" not in name), "hierarchical"])
def test_simulated_messages_share_a_node_with_those_that_leave_it_in_the_same_round(algorithm: str, ranks: int) -> None:
    """Four ranks on a node of one port, the same charges at all distances: of a ring, one message leaves a node."""
    question = scenario("turin", ranks, collective(algorithm, "64 MiB"), "ranks_per_node = 4")
    modelled, simulated = (time(question, application__communication=way) for way in ("modelled", "simulated"))
    assert_allclose(simulated, modelled, rtol=1e-9, atol=0)


@pytest.mark.parametrize("platform", ["turin", "lassen"])
@pytest.mark.parametrize("algorithm", ["recursive_doubling", "pairwise", "hierarchical", "binomial_gather"])
def test_messages_over_fast_links_share_nodes_as_without_links(platform: str, algorithm: str) -> None:
    """Max-rate with ports, and with what each further rank adds."""
    star = '[platform.network.topology]\nkind = "star"\nbandwidth = "1000 TB/s"\nlatency = "0 s"\n'
    head = 'ranks_per_node = 4\nbuffers = "host"'
    question = scenario(platform, 40, f"{collective(algorithm, '64 MiB')}{star}", head)
    linked, alone = (time(question, application__communication=way) for way in ("shared_links", "simulated"))
    assert_allclose(linked, alone, rtol=1e-6, atol=0)


@pytest.mark.parametrize("algorithm", ["rabenseifner", "recursive_doubling", "ring_allgather", "linear_gather"])
@pytest.mark.parametrize("group", ["tensor", "data"])
def test_simulated_groups_take_the_modelled_time(algorithm: str, group: str) -> None:
    more = f'group = "{group}"\n' + GROUPS.format(4, 6)
    question = lassen(algorithm, 24, more=more)
    simulated = time(question, application__communication="simulated")
    assert_allclose(simulated, time(question), rtol=1e-9, atol=0)


def test_hierarchical_allreduce_sends_between_nodes_what_a_rank_reduced() -> None:
    """Nodes of four ranks: halves and quarters inside, a ring over six nodes of a quarter, and back."""
    rounds = collective_rounds("hierarchical", 24, 24, 1, 4)
    shares = [(item.share, item.repeats) for item in rounds]
    assert_allclose(shares, [(0.5, 1), (0.25, 1), (1 / 24, 10), (0.25, 1), (0.5, 1)], rtol=1e-12, atol=0)
    assert len(rounds[2].sender) == 24
    assert (abs(rounds[2].sender - rounds[2].receiver) % 4 == 0).all()


def test_ranks_of_a_domain_that_do_not_divide_the_group_are_taken_in_parts() -> None:
    assert [(stage.size, stage.stride) for stage in stages("hierarchical", 10, 1, 4)] == [(2, 1), (5, 2), (2, 1)]
    assert [stage.size for stage in stages("hierarchical", 7, 1, 4)] == [1, 7, 1]


def test_switches_that_reduce_send_the_buffer_once() -> None:
    reduces = lassen("switch_reduction", 64, "16 MiB", head="ranks_per_node = 1")
    once = lassen("linear_broadcast", 2, "16 MiB", head="ranks_per_node = 1")
    found = time(reduces, platform__network__switch_reduction="true")
    assert_allclose(found, time(once), rtol=1e-12, atol=0)
    with pytest.raises(InvalidFileError, match=r"Lassen does not state `\[network\] switch_reduction = true`"):
        _ = reduces.program


def test_multicast_takes_one_message_between_nodes_and_a_tree_inside() -> None:
    rounds = collective_rounds("switch_multicast", 32, 32, 1, 4)
    assert [item.share for item in rounds] == [1.0, 1.0, 1.0]
    assert [len(item.sender) for item in rounds] == [4, 8, 16]


@pytest.mark.parametrize("operation", [name for name in MESSAGE_ALGORITHMS if name != "barrier"])
@pytest.mark.parametrize("size", ["8 B", "64 MiB"])
def test_best_is_the_fastest_algorithm_of_the_operation(operation: str, size: str) -> None:
    names = [one for one in MESSAGE_ALGORITHMS[operation] if one not in IN_NETWORK]
    alone = [time(lassen(name, 32, size)) for name in names]
    best = lassen("best", 32, size, f'operation = "{operation}"\n')
    assert_allclose(time(best), min(alone), rtol=1e-12, atol=0)


def test_the_fastest_algorithm_is_named(whatif_main, tmp_path) -> None:
    for size, algorithm in (("8 B", "recursive_doubling"), ("64 MiB", "hierarchical")):
        path = tmp_path / "question.toml"
        path.write_text(HEAD.format(platform="lassen", ranks=24, more="") + collective("best", size, "postal"))
        assert f"phase: by {algorithm}, the fastest allreduce at the stated values" in whatif_main("run", path)[2]


def test_best_over_shared_links_counts_their_congestion() -> None:
    star = '[platform.network.topology]\nkind = "star"\nbandwidth = "1 GB/s"\nlatency = "1 us"\n'
    text = collective("{}", "16 MiB", "postal") + star
    alone = [
        time(scenario("lassen", 32, text.format(name)), application__congestion="modelled")
        for name in MESSAGE_ALGORITHMS["allreduce"]
        if name not in IN_NETWORK
    ]
    best = time(scenario("lassen", 32, text.format("best")), application__congestion="modelled")
    assert_allclose(best, min(alone), rtol=1e-12, atol=0)


def test_uneven_all_to_all_waits_for_its_largest_messages() -> None:
    even, larger = lassen("pairwise", size="1 MiB"), lassen("pairwise", size="3 MiB")
    uneven = time(even, application__phases__phase__imbalance=3)
    assert_allclose(uneven, time(larger), rtol=1e-12, atol=0)
    swept = run_whole(even, grid_of([parse_option("application.phases.phase.imbalance = 1, 3", even.program, 9)], 9))
    assert_allclose(swept.columns["iteration_time"], [time(even), uneven], rtol=1e-12, atol=0)
    library = scenario("dgx_h100", 16, collective("pairwise", "64 MiB", "nccl"))
    factor = time(library, application__phases__phase__imbalance=2) / time(library)
    assert 1.7 < factor < 2


@pytest.mark.parametrize("model", ["postal", "nccl"])
@pytest.mark.parametrize(
    ("group", "limit"), [("", "application.rank_count"), ("tensor", "application.groups.tensor.size")]
)
def test_no_message_of_an_all_to_all_exceeds_what_a_rank_sends(model: str, group: str, limit: str) -> None:
    more = f'group = "{group}"\n' + GROUPS.format(4, 6) if group else ""
    question = scenario("perlmutter", 24, collective("pairwise", "1 MiB", model) + more)
    most = 4 if group else 24
    found = [reason(question.changed({"application.phases.phase.imbalance": str(most + above)})) for above in (0, 1)]
    assert found[0] == ""
    assert f"application.phases.phase.imbalance exceeds {limit}: the largest message of a rank would" in found[1]


@pytest.mark.parametrize(
    ("algorithm", "more", "message"),
    [
        ("ring", "imbalance = 2", "applies to an all-to-all only"),
        ("ring", 'operation = "allgather"', "`ring` is of allreduce; allgather has bruck_allgather, ring_allgather"),
        ("double_binary_tree", "", '`postal` has no `double_binary_tree`; state `model = "nccl"`'),
        ("ring", 'channel_count = 4\ndistance = "inter_node"', "channel_count: not used with `distance`"),
        ("hierarchical", 'distance = "inter_node"', "leave out `distance`"),
    ],
)
def test_what_an_algorithm_cannot_do_is_said(algorithm: str, more: str, message: str) -> None:
    with pytest.raises(InvalidFileError, match=message):
        _ = lassen(algorithm, more=more).program


def test_best_cannot_be_simulated() -> None:
    with pytest.raises(InvalidFileError, match="name one of recursive_doubling, "):
        _ = lassen("best", head='communication = "simulated"').program


def test_an_operation_that_a_library_does_not_have_is_refused() -> None:
    text = collective("best", model="nccl") + 'operation = "scatter"\n'
    with pytest.raises(InvalidFileError, match="`nccl` has no `scatter`"):
        _ = scenario("dgx_h100", 8, text).program


def test_every_algorithm_of_a_file_is_one_of_an_operation() -> None:
    named = set(CollectivePhase.model_fields["algorithm"].annotation.__args__) - {"best", "measured"}  # type: ignore[union-attr]
    offered = [*MESSAGE_ALGORITHMS.values(), *LIBRARY_ALGORITHMS.values()]
    assert named == {one for names in offered for one in names}
    assert {one for names in MESSAGE_ALGORITHMS.values() for one in names} == set(ALGORITHMS) | NESTED


def test_many_ranks_of_a_linear_gather_are_a_sample_with_their_number() -> None:
    rounds = collective_rounds("linear_gather", 5000, 5000, 1, 4)
    assert len(rounds) < 600
    assert_allclose(sum(item.repeats for item in rounds), 4999, rtol=1e-12, atol=0)


def test_links_are_not_followed_for_more_ranks_than_are_counted() -> None:
    """All of them on one node of a star: it has such nodes."""
    ranks = MOST_RANKS + 1
    loads = collective_round_loads(ranks, ranks, 1, ranks, algorithm="ring", topology="star", spread=False)
    assert np.isnan(loads).all()


def test_groups_of_a_collective_that_do_not_divide_the_ranks_are_infeasible() -> None:
    more = 'group = "tensor"\n' + GROUPS.format(5, 2)
    assert "do not divide" in reason(lassen("hierarchical", 24, more=more))


@pytest.mark.parametrize(
    ("mapping", "more", "warned"),
    [("round_robin", "", True), ("tiles", "", True), ("block", "", False),
     ("round_robin", 'distance = "inter_node"\n', False)],
)  # fmt: skip
def test_collectives_that_do_not_follow_the_mapping_of_the_grid_are_reported(
    whatif_main, tmp_path, mapping: str, more: str, warned: bool
) -> None:
    path = tmp_path / "question.toml"
    grid = f'[application.grid]\nscaling = "weak"\ncells = {{ x = 9, y = 9 }}\nmapping = "{mapping}"\n'
    path.write_text(HEAD.format(platform="lassen", ranks=24, more="") + grid + collective("ring") + more)
    code, _, notes = whatif_main("run", path)
    assert code == 0
    assert ("warning: phase: placed as with `block` mapping" in notes) == warned


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("--set application.rank_count=72", ""),
        ("--set application.rank_count=144", ""),
        (
            "--set application.rank_count=73",
            "takes parts of 1 rank, not the 40 of a node or link domain, which 73 ranks",
        ),
        ("--set application.rank_count=100", "takes parts of 4 ranks, not the 52 of a node or link domain"),
        ("--sweep application.rank_count=72,84,120", "takes parts of 4 ranks, not the 44"),
        ("--set application.rank_count=84 --set application.communication=simulated", "takes parts of 4 ranks"),
        ("--set application.rank_count=73 --set application.phases.phase.algorithm=ring", ""),
    ],
)
def test_parts_of_domains_that_ranks_do_not_fill_are_reported(whatif_main, tmp_path, how: str, expected: str) -> None:
    path = tmp_path / "question.toml"
    phase = collective("hierarchical", "128 MiB") + "channel_count = 1\n"
    path.write_text(HEAD.format(platform="gb200_nvl72", ranks=72, more="") + phase)
    options = [word for part in how.split(" --") for word in f"--{part.removeprefix('--')}".split(" ", 1)]
    code, _, notes = whatif_main("run", path, *options)
    assert code == 0
    assert ("`hierarchical` takes parts" in notes) == bool(expected)
    assert expected in notes
