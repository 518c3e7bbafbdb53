"""Traces of few ranks as those of many: equal to what is written down rank by rank for the many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.jacobi2d_trace import write_jacobi2d
from tests.simulation.test_lower import assert_same
from tests.written_programs import halo, op, program, trace
from whatif.errors import UsageError
from whatif.importers.dumpi import read_dumpi
from whatif.simulation.extrapolate import extrapolate
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import ANY, Kind, Loop, Trace


@pytest.mark.parametrize(
    ("traced", "wanted", "how"),
    [
        ((4, 3), (8, 6), {}),
        ((4, 3), (8, 6), {"order": "F"}),
        ((4, 3), (7, 4), {"diagonals": True}),
        ((4, 4), (6, 4), {"periodic": True}),
        ((3, 3), (6, 4), {}),
        ((12,), (48,), {"periodic": True}),
        ((3,), (5,), {}),
        ((3, 3, 3), (4, 4, 3), {}),
        ((4, 3, 3), (5, 4, 3), {"periodic": True, "order": "F"}),
        ((3, 3, 3), (5, 3, 3), {"periodic": True, "diagonals": True}),
    ],
)
def test_an_extrapolated_grid_is_the_larger_grid_written_down(traced, wanted, how):
    found = extrapolate(halo(traced, **how), int(np.prod(wanted)))
    assert_same(lower(found), lower(halo(wanted, **how)))
    assert len(found.programs) <= 3 ** len(traced)


def test_a_trace_whose_ranks_share_programs_extrapolates_like_the_one_that_was_written():
    small = extrapolate(halo((4, 3), iteration_count=9), 12)
    assert len(small.programs) == 9
    assert_same(lower(extrapolate(small, 48)), lower(halo((8, 6), iteration_count=9)))


def test_loops_are_extrapolated_as_they_are():
    step = [op(Kind.IRECEIVE, 1, 8.0), op(Kind.ISEND, -1, 8.0), op(Kind.WAIT, waits=(1, 2))]
    looped = program(*step, relative=True, loops=(Loop(0, 3, 9),))
    found = extrapolate(trace(looped, program_of=[0] * 4), 12)
    assert [one.loops for one in found.programs] == [looped.loops] * len(found.programs)
    assert_same(lower(found), lower(trace(looped, program_of=[0] * 12)))


def test_collectives_alone_extrapolate_from_two_ranks():
    steps = [op(Kind.COMPUTE, size=1.0), op(Kind.ALLTOALL, size=64.0), op(Kind.BROADCAST, 0, 8.0)]
    found = extrapolate(trace(program(*steps), program(*steps)), 7)
    assert_same(lower(found), lower(trace(program(*steps), program_of=[0] * 7)))


def test_computations_get_the_mean_of_their_class():
    small = halo((6,))
    programs = [
        replace(one, size=np.where(one.kind == Kind.COMPUTE, 1.0 + rank, one.size))
        for rank, one in enumerate(small.programs)
    ]
    found = extrapolate(trace(*programs), 9)
    times = [one.size[one.kind == Kind.COMPUTE] for one in (found.programs[which] for which in found.program_of)]
    assert_allclose(times, np.repeat([[1.0, 1.0]], 9, axis=0) * np.array([1, *[3.5] * 7, 6])[:, np.newaxis], rtol=1e-15)


def changed(small: Trace, rank: int, **columns) -> Trace:
    """The trace with the first entries of columns of one rank's program replaced."""
    programs = list(small.programs)
    own = {name: getattr(programs[rank], name).copy() for name in columns}
    for name, (place, value) in columns.items():
        own[name][place] = value
    programs[rank] = replace(programs[rank], **own)
    return Trace(tuple(programs), small.program_of, small.communicators)


GRID = halo((4, 3))
EVERYONE = [program(*(op(Kind.SEND, peer, 8.0) for peer in range(8) if peer != rank)) for rank in range(8)]


@pytest.mark.parametrize(
    ("small", "rank_count", "reason"),
    [
        (
            changed(GRID, 7, size=(1, 5.0)),
            48,
            r"rank 7, operation 1 \(IRECEIVE 5 B, rank 4\) differs from rank 4, oper",
        ),
        (changed(GRID, 7, peer=(1, 0)), 48, r"rank 7, operation 1 \(IRECEIVE 4096 B, rank 0\): on no grid of up to 3"),
        (changed(GRID, 7, tag=(0, 1)), 48, r"rank 7, operation 0 \(BARRIER\) is a collective of some ranks only"),
        (changed(GRID, 7, peer=(1, ANY)), 48, r"rank 7, operation 1 \(IRECEIVE\) receives from any rank"),
        (trace(*EVERYONE), 16, "rank .*, operation .* on no grid of up to 3 dimensions are all messages between neigh"),
        (trace(program(op(Kind.REDUCE, 1, 8.0)), program_of=[0, 0]), 4, "root other than rank 0"),
        (halo((4, 2)), 48, "a grid of 4 x 2 to 8 x 6: no traced rank .* at least 3 ranks along each dimension"),
        (GRID, 7, "7 ranks make a grid of 7 x 1"),
        (trace(), 48, "cannot extrapolate 0 ranks to 48"),
        (GRID, 0, "cannot extrapolate 12 ranks to 0"),
        (GRID, 10**9, "cannot extrapolate 12 ranks to 1000000000"),
    ],
)
def test_irregular_traces_are_refused_with_the_rank_and_the_operation(small: Trace, rank_count: int, reason: str):
    with pytest.raises(UsageError, match=reason):
        extrapolate(small, rank_count)


def test_the_traced_jacobi2d_extrapolates_from_summit_s_two_nodes_to_eight(tmp_path):
    small = read_dumpi(write_jacobi2d(tmp_path))
    found = extrapolate(small, 48)
    assert found.notes["extrapolated"] == "from 12 ranks (4 x 3) to 48 (8 x 6)"
    messages = [np.count_nonzero(one.kind == Kind.ISEND) for one in (found.programs[at] for at in found.program_of)]
    # 100 exchanges, and a message each way over every inner edge of the grid.
    assert sum(messages) == 100 * 2 * (7 * 6 + 8 * 5)
    assert {size for one in found.programs for size in one.size[one.kind == Kind.ISEND]} == {131072.0}
    assert_array_equal(np.bincount(np.array(messages) // 100), [0, 0, 4, 20, 24])
