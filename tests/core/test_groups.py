"""Groups of ranks: placement of their collectives, sharing with groups that run at once, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.core.test_domains import collective, reason, scenario, time
from whatif.core.grid_run import run_whole
from whatif.core.scenario import Scenario
from whatif.core.sweep import grid_of
from whatif.errors import InvalidFileError
from whatif.models.patterns import GridPattern
from whatif.simulation.rank_programs import Kind
from whatif.simulation.round_patterns import grouped_rounds, rounds_of

GROUPS = """
[application.groups]
tensor = {{ size = {} }}
data = {{ size = {} }}
"""


def grouped(group: str, phase: str, sizes: tuple[int, int] = (8, 2), ranks: int = 16) -> Scenario:
    named = f'group = "{group}"\nchannel_count = 1\n' if group else "channel_count = 1\n"
    return scenario("dgx_h100", ranks, phase + named + GROUPS.format(*sizes))


def doubling(size: str = "1 MiB") -> str:
    return collective("recursive_doubling", size, "max_rate")


def test_groups_of_the_first_kind_are_consecutive_ranks() -> None:
    (only,) = grouped_rounds(Kind.ALLREDUCE, "ring", 6, 3, 1)
    assert_array_equal(only.sender, [0, 1, 2, 3, 4, 5])
    assert_array_equal(only.receiver, [1, 2, 0, 4, 5, 3])


def test_groups_of_the_next_kind_are_as_far_apart_as_the_first_one_is_large() -> None:
    (only,) = grouped_rounds(Kind.ALLREDUCE, "ring", 12, 2, 3)
    assert_array_equal(only.sender.reshape(-1, 2), [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8, 11]])
    assert_array_equal(only.receiver.reshape(-1, 2)[:, ::-1], only.sender.reshape(-1, 2))


@pytest.mark.parametrize("algorithm", ["recursive_doubling", "ring", "rabenseifner"])
def test_one_group_of_all_ranks_is_no_group(algorithm: str) -> None:
    plain = rounds_of(Kind.ALLREDUCE, algorithm, 12)
    one = grouped_rounds(Kind.ALLREDUCE, algorithm, 12, 12, 1)
    for expected, found in zip(plain, one, strict=True):
        for left, right in zip(expected, found, strict=True):
            assert_array_equal(left, right)
    assert time(grouped("tensor", doubling(), (16, 1))) == time(grouped("", doubling()))


def test_a_group_of_a_node_stays_in_it() -> None:
    for phase in (doubling(), collective("ring", model="nccl")):
        alone = scenario("dgx_h100", 8, phase + "channel_count = 1\n")
        assert time(grouped("tensor", phase)) == time(alone)


def test_groups_that_run_at_once_share_the_ports_of_their_nodes() -> None:
    """Eight groups of two ranks on two nodes, with eight ports of 50 GB/s; four on the ports of four."""
    question = grouped("data", doubling("64 MiB"))
    latency = float(question.program.parameters["platform.network.inter_node.max_rate.rendezvous.latency"].value)
    for ports in (8, 4, 1):
        found = time(question, platform__network__port_count=ports)
        assert_allclose(found, latency + 8 * 2**26 / (ports * 50e9), rtol=1e-9, atol=0)


def test_a_library_divides_the_ports_among_groups_of_single_ranks() -> None:
    phase = collective("hierarchical", "1 GiB", "nccl")
    crowded = time(grouped("data", phase))
    # One rank of a node sends through the port of its GPU; where the node has one port, through all of it.
    alone = scenario("dgx_h100", 2, phase + "channel_count = 1\n", "ranks_per_node = 1")
    assert_allclose(crowded / time(alone), 1, rtol=1e-9, atol=0)
    one_port = time(grouped("data", phase), platform__network__port_count=1)
    assert_allclose(one_port / time(alone, platform__network__port_count=1), 8, rtol=0.02, atol=0)


def test_domains_that_are_a_part_of_a_node_share_its_ports() -> None:
    """Two domains of four on each of two nodes, eight ports: half of the ports for each domain."""
    phase = collective("hierarchical", "16 GiB", "nccl")
    whole = scenario("dgx_h100", 16, phase)
    split = time(whole, platform__node__domain_gpu_count=4)
    # Each of four domains sends 2 (D - 1) / D of the buffer through four ports of 50 GB/s.
    assert_allclose(split, 2 * 3 / 4 * 16 * 2**30 / (4 * 50e9), rtol=0.01, atol=0)


def test_a_group_of_one_takes_no_time() -> None:
    for phase in (doubling(), collective("best", model="nccl")):
        assert time(grouped("data", phase, (16, 1))) == 0


def test_groups_that_do_not_divide_the_ranks_are_infeasible() -> None:
    assert "the groups do not divide the ranks" in reason(grouped("data", doubling(), (8, 3)))
    assert reason(grouped("data", doubling(), (4, 2))) == ""


def test_sizes_of_groups_are_swept() -> None:
    sizes = [time(grouped("tensor", doubling()), application__groups__tensor__size=size) for size in (2, 4, 8)]
    assert (np.diff(sizes) > 0).all()


def test_wrong_groups_are_named() -> None:
    text = doubling() + 'group = "tensors"\n' + GROUPS.format(8, 2)
    with pytest.raises(InvalidFileError, match="`tensors`: no such group; did you mean `tensor`"):
        _ = scenario("dgx_h100", 16, text).program


def test_a_group_needs_the_table_of_groups() -> None:
    with pytest.raises(InvalidFileError, match=r"state `\[application.groups\]`"):
        _ = scenario("dgx_h100", 16, doubling() + 'group = "tensor"\n').program


def ensemble(group: str, sizes: tuple[int, int], ranks: int, scaling: str = "weak", **grid: str) -> Scenario:
    keys = "".join(f'{key} = "{value}"\n' for key, value in {"scaling": scaling, "group": group, **grid}.items())
    text = GRID + keys + GROUPS.format(*sizes)
    return scenario("lassen", ranks, text.replace('group = ""\n', ""))


GRID = """
[application.phases.phase]
kind = "halo"
model = "k_model"
neighbours = "all"

[application.grid]
cells = { x = 1024, y = 1024 }
"""


def test_grids_of_groups_that_fill_nodes_are_as_fast_as_one_alone() -> None:
    assert time(ensemble("tensor", (16, 4), 64)) == time(ensemble("", (16, 1), 16))


def test_grids_of_groups_over_all_nodes_send_more_between_nodes() -> None:
    """Lassen: four ranks a node; of four groups of 16, 16 apart in turn, each node has one rank of each."""
    near, far = ensemble("tensor", (16, 4), 64), ensemble("data", (4, 16), 64)
    assert time(far) > 1.3 * time(near)
    counts = far.program.terms["phase.inter_node_count"]
    assert "group_count" in counts.inputs
    found = run_whole(far, grid_of([], 1))
    assert np.isfinite(float(found.columns["iteration_time"]))


@pytest.mark.parametrize("group", ["tensor", "data"])
@pytest.mark.parametrize("scaling", ["weak", "strong"])
def test_simulated_halos_of_groups_take_the_modelled_time(group: str, scaling: str) -> None:
    question = ensemble(group, (8, 6), 48, scaling)
    simulated = time(question, application__communication="simulated")
    assert_allclose(simulated, time(question), rtol=1e-9, atol=0)


def test_messages_of_groups_stay_in_their_group() -> None:
    pattern = GridPattern((2, 3), 4, 2, group_stride=4, group_count=8)
    messages = [(s, r) for _, sender, receiver in pattern.messages() for s, r in zip(sender, receiver, strict=True)]
    assert len(messages) == 8 * 14
    group = [(rank // 24, rank % 4) for rank in range(48)]
    assert all(group[sender] == group[receiver] for sender, receiver in messages)
    assert sorted(pattern.grid_of(45).ravel()) == [25, 29, 33, 37, 41, 45]


@pytest.mark.parametrize("choice", ["decomposition", "mapping"])
def test_choices_that_need_one_grid_of_all_ranks_are_refused_for_groups(choice: str) -> None:
    value = {"decomposition": "bisection", "mapping": "tiles"}[choice]
    with pytest.raises(InvalidFileError, match=f"application.grid.{choice}: does not apply to the grids of groups"):
        _ = ensemble("tensor", (8, 2), 16, "strong", **{choice: value}).program
