"""Selection of algorithms of collectives: rules of MPICH at their thresholds, and names."""

from __future__ import annotations

import numpy as np
import pytest

from tests.written_programs import op, program, trace
from whatif.errors import UsageError
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Step
from whatif.simulation.selection import Selection, parse_selection

MPICH = Selection(library="mpich")


def selected(selection: Selection, kind: Kind, size: float, process_count: int) -> str:
    (place,) = selection.places(np.array([kind], dtype=np.uint8), np.array([size]), process_count)
    return list(ALGORITHMS[kind])[place]


@pytest.mark.parametrize(
    ("kind", "size", "process_count", "name"),
    [
        (Kind.BROADCAST, 12_287, 64, "binomial_tree"),
        (Kind.BROADCAST, 12_288, 64, "scatter_bruck_allgather"),
        (Kind.BROADCAST, 12_288, 48, "scatter_ring_allgather"),
        (Kind.BROADCAST, 524_287, 64, "scatter_bruck_allgather"),
        (Kind.BROADCAST, 524_288, 64, "scatter_ring_allgather"),
        (Kind.BROADCAST, 524_288, 7, "binomial_tree"),
        (Kind.REDUCE, 2048, 64, "binomial_tree"),
        (Kind.REDUCE, 2049, 64, "rabenseifner"),
        (Kind.ALLREDUCE, 2048, 64, "recursive_doubling"),
        (Kind.ALLREDUCE, 2049, 64, "rabenseifner"),
        # Thresholds of the whole buffer, of which the trace gives the block of one rank.
        (Kind.ALLGATHER, 8191, 64, "bruck_allgather"),
        (Kind.ALLGATHER, 8192, 64, "ring_allgather"),
        (Kind.ALLGATHER, 8191, 10, "bruck_allgather"),
        (Kind.ALLGATHER, 8192, 10, "ring_allgather"),
        (Kind.ALLTOALL, 256, 8, "bruck"),
        (Kind.ALLTOALL, 256, 7, "linear"),
        (Kind.ALLTOALL, 257, 8, "linear"),
        (Kind.ALLTOALL, 32_768, 8, "linear"),
        (Kind.ALLTOALL, 32_769, 8, "pairwise"),
        (Kind.REDUCE_SCATTER, 8191, 64, "recursive_halving"),
        (Kind.REDUCE_SCATTER, 8192, 64, "pairwise"),
        (Kind.BARRIER, 0, 64, "dissemination"),
        (Kind.GATHER, 1e6, 64, "binomial_tree"),
        (Kind.SCATTER, 1e6, 64, "binomial_tree"),
    ],
)
def test_rules_of_mpich(kind, size, process_count, name):
    assert selected(MPICH, kind, float(size), process_count) == name


def test_a_named_algorithm_comes_before_the_rule_of_the_library():
    selection = parse_selection("mpich, allreduce=ring ,reduce_scatter = pairwise")
    assert selected(selection, Kind.ALLREDUCE, 8.0, 64) == "ring"
    assert selected(selection, Kind.REDUCE_SCATTER, 8.0, 64) == "pairwise"
    assert selected(selection, Kind.ALLTOALL, 8.0, 64) == "bruck"


def test_without_a_selection_the_first_algorithm_of_each_kind_is_taken():
    for kind, named in ALGORITHMS.items():
        assert selected(parse_selection(""), kind, 1e6, 64) == next(iter(named))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mpitch", "`mpitch` is not a library; did you mean `mpich`"),
        ("alreduce=ring", "`alreduce` is not a collective; did you mean `allreduce`"),
        ("allreduce=rings", "no algorithm `rings` for allreduce; did you mean `ring`"),
    ],
)
def test_unknown_names_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_selection(text)


def sent(size: float, selection: Selection) -> list[float]:
    """Sizes of the messages of an allreduce on 4 ranks."""
    schedule = lower(trace(program(op(Kind.ALLREDUCE, size=size)), program_of=[0] * 4), selection)
    return sorted(schedule.size[schedule.step == Step.SEND].tolist())


def test_calls_of_one_program_have_algorithms_by_their_size():
    both = program(op(Kind.ALLREDUCE, size=2048.0), op(Kind.ALLREDUCE, size=4096.0))
    schedule = lower(trace(both, program_of=[0] * 4), MPICH)
    sizes = sorted(schedule.size[schedule.step == Step.SEND].tolist())
    assert sizes == sorted([2048.0] * 8 + [2048.0] * 8 + [1024.0] * 8)
    assert sent(2048.0, MPICH) == [2048.0] * 8
    assert sent(4096.0, MPICH) == [1024.0] * 8 + [2048.0] * 8
    assert sent(4096.0, parse_selection("allreduce=recursive_doubling")) == [4096.0] * 8


def test_ranks_that_give_different_sizes_take_the_same_algorithm():
    """As in MPI_Allgatherv: one rank alone would have chosen another algorithm, and the others wait forever."""
    programs = [program(op(Kind.ALLGATHER, size=float(size))) for size in (8, 200_000, 8, 8)]
    schedule = lower(trace(*programs), MPICH)
    node = np.arange(4, dtype=np.int32)
    line = np.broadcast_to(np.array([1e-6, 1e-9]), (3, 3, 2))
    costs = Costs(0 * line, line, line, 0 * line, 0 * line, np.zeros(3), np.full(3, 8192.0))
    assert replay(schedule, Places(node, node), costs).time > 200_000e-9
    assert (schedule.step == Step.SEND).sum() == 4 * 3  # a ring
