"""Selection of algorithms of collectives: rules of MPICH at their thresholds, and names."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

import whatif
from tests.paths import DATA, ROOT
from tests.written_programs import op, program, trace
from whatif.errors import UsageError
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Kind
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Step
from whatif.simulation.selection import LIBRARIES, Selection, parse_selection

MPICH = Selection(library="mpich")
PAGE = ROOT / "docs" / "how-to" / "traces.md"


def selected(selection: Selection, kind: Kind, size: float, process_count: int) -> str:
    (place,) = selection.places(np.array([kind], dtype=np.uint8), np.array([size]), process_count)
    return list(ALGORITHMS[kind])[place]


@pytest.mark.parametrize(
    ("kind", "size", "process_count", "name"),
    [
        (Kind.BROADCAST, 12_287, 64, "binomial_tree"),
        (Kind.BROADCAST, 12_288, 64, "scatter_doubling_allgather"),
        (Kind.BROADCAST, 12_288, 48, "scatter_ring_allgather"),
        (Kind.BROADCAST, 524_287, 64, "scatter_doubling_allgather"),
        (Kind.BROADCAST, 524_288, 64, "scatter_ring_allgather"),
        (Kind.BROADCAST, 524_288, 7, "binomial_tree"),
        (Kind.REDUCE, 2048, 64, "binomial_tree"),
        (Kind.REDUCE, 2049, 64, "rabenseifner"),
        (Kind.ALLREDUCE, 2048, 64, "recursive_doubling"),
        (Kind.ALLREDUCE, 2049, 64, "rabenseifner"),
        # Thresholds of the whole buffer, of which the trace gives the block of one rank.
        (Kind.ALLGATHER, 8191, 64, "doubling_allgather"),
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


@pytest.mark.parametrize(
    ("kind", "size", "process_count", "name"),
    [
        (Kind.BROADCAST, 31, 3, "chain"),
        (Kind.BROADCAST, 32, 3, "binary_tree"),
        (Kind.BROADCAST, 1_048_575, 31, "doubling_tree"),
        (Kind.BROADCAST, 1_048_576, 31, "scatter_doubling_allgather"),
        (Kind.BROADCAST, 1e9, 100, "knomial_tree"),
        (Kind.REDUCE, 8191, 15, "binary_tree"),
        (Kind.REDUCE, 8192, 15, "binomial_tree"),
        (Kind.ALLREDUCE, 8191, 8, "recursive_doubling"),
        (Kind.ALLREDUCE, 8192, 8, "halved_rabenseifner"),
        (Kind.ALLREDUCE, 2047, 1024, "reduce_knomial_tree"),
        (Kind.ALLREDUCE, 32_767, 1 << 20, "recursive_doubling"),
        (Kind.ALLGATHER, 1e9, 31, "doubling_allgather"),
        (Kind.ALLGATHER, 1024, 32, "neighbour_exchange"),
        (Kind.ALLGATHER, 65_536, 32, "ring_allgather"),
        (Kind.ALLTOALL, 511, 32, "bruck"),
        (Kind.ALLTOALL, 512, 32, "linear"),
        (Kind.ALLTOALL, 262_144, 64, "pairwise"),
        (Kind.GATHER, 131_072, 3, "signalled"),
        (Kind.SCATTER, 511, 100, "binomial_tree"),
        (Kind.SCATTER, 512, 100, "linear"),
        # Thresholds of all blocks, of which the trace gives that of one rank.
        (Kind.REDUCE_SCATTER, 63, 32, "recursive_halving"),
        (Kind.REDUCE_SCATTER, 64, 32, "butterfly"),
        (Kind.REDUCE_SCATTER, 16_383, 32, "butterfly"),
        (Kind.REDUCE_SCATTER, 16_384, 32, "ring"),
        (Kind.BARRIER, 0, 4, "linear"),
        (Kind.BARRIER, 0, 64, "dissemination"),
        (Kind.SCAN, 8, 64, "linear"),
    ],
)
def test_rules_of_open_mpi(kind, size, process_count, name):
    assert selected(parse_selection("openmpi"), kind, float(size), process_count) == name


@pytest.mark.parametrize("library", LIBRARIES)
def test_rules_name_algorithms_for_all_sizes_and_numbers_of_ranks(library):
    counts = sorted({count + step for count in 2 ** np.arange(1, 14) for step in (-1, 0, 1)} - {0, 1})
    for kind in LIBRARIES[library]:
        names = {selected(Selection(library=library), kind, float(size), int(count))
                 for size in 2.0 ** np.arange(25) for count in counts}  # fmt: skip
        assert names <= set(ALGORITHMS[kind])


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
        ("mpitch", "`mpitch` is not a library: mpich, openmpi; did you mean `mpich`"),
        ("alreduce=ring", "`alreduce` is not a collective: barrier, .*; did you mean `allreduce`"),
        ("allreduce=rings", "no algorithm `rings` for allreduce; there are .*; did you mean `ring`"),
        ("alltoall=foo", "no algorithm `foo` for alltoall; there are pairwise, bruck, linear"),
        ("mpich, openmpi", "`openmpi`: a library is given already"),
        ("allreduce=ring, mpich, allreduce=rabenseifner", "`allreduce=rabenseifner`: allreduce is given already"),
    ],
)
def test_unknown_names_and_names_given_twice_are_refused(text, message):
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
    costs = Costs(0 * line, line, line, 0 * line, 0 * line, np.tile([0.0, 8192.0], (3, 1)))
    assert replay(schedule, Places(node, node), costs).time > 200_000e-9
    assert (schedule.step == Step.SEND).sum() == 4 * 3  # a ring


def test_times_of_a_measured_allreduce(tmp_path):
    """Fugaku, 1,536 ranks, four on a node; its library is derived from Open MPI and has rules of its own."""
    with (DATA / "importers" / "network" / "fugaku" / "julia_osu_allreduce.csv").open() as file:
        measured = {int(row["size (bytes)"]): float(row["avg_time (seconds)"]) for row in csv.DictReader(file)}
    errors = []
    for size in (2**power for power in range(4, 17)):
        calls = "".join(f"{rank} init\n{rank} allreduce {size} 0 0\n{rank} finalize\n" for rank in range(1536))
        (tmp_path / "allreduce.txt").write_text(calls)
        found = whatif.simulate(
            tmp_path / "allreduce.txt", platform="fugaku", model="max_rate", collectives=["openmpi"],
            overrides={"application.ranks_per_node": 4},
        )  # fmt: skip
        errors.append(found.activity.run_time / measured[size] - 1)
    prose = " ".join(PAGE.read_text(encoding="utf-8").split())
    stated = re.search(r"mean absolute error of (\d+) % and a bias of ([+-]\d+) %", prose)
    assert np.abs(errors).mean() == pytest.approx(float(stated[1]) / 100, abs=0.005)
    assert np.mean(errors) == pytest.approx(float(stated[2]) / 100, abs=0.005)
