"""Lowering of traces: dependencies by hand, collectives by what ranks come to know and by their closed forms."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.written_programs import halo, op, program, trace
from whatif.errors import UsageError
from whatif.models import collectives as closed_forms
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.extrapolate import extrapolate
from whatif.simulation.joined import joined
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import ANY, Kind, Loop, Trace, executed_count, unrolled
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Schedule, Step

LATENCY, TIME_PER_BYTE = 1e-6, 1e-9
COLUMNS = ("rank_start", "step", "peer", "size", "tag", "next_start", "next", "need_count", "origin", "origin_kind")


def assert_same(one: Schedule, other: Schedule) -> None:
    for name in COLUMNS:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def needs(schedule: Schedule) -> dict[int, set[int]]:
    """What each operation needs: the operations whose end, and -1 - those whose start."""
    found = defaultdict(set)
    for source in range(len(schedule.step)):
        for target in schedule.next[schedule.next_start[source] : schedule.next_start[source + 1]].tolist():
            found[target if target >= 0 else -1 - target].add(source if target >= 0 else -1 - source)
    assert_array_equal(schedule.need_count, [len(found[target]) for target in range(len(schedule.step))])
    return {target: sources for target, sources in found.items() if sources}


def collective(kind: Kind, rank_count: int, size: float = 1.0, root: int = 0, **how) -> Trace:
    return trace(program(op(kind, root, size)), program_of=[0] * rank_count, **how)


# Program order.


def test_nonblocking_operations_delay_nothing_until_a_wait():
    order = program(
        op(Kind.COMPUTE, size=1.0),
        op(Kind.IRECEIVE, 1, 8.0, 5),
        op(Kind.ISEND, 1, 8.0, 6),
        op(Kind.COMPUTE, size=2.0),
        op(Kind.SEND, 1, 4.0),
        op(Kind.WAIT, waits=(4, 3)),
        op(Kind.RECEIVE, 1, 4.0),
    )
    schedule = lower(trace(order, program()))
    assert schedule.step.tolist() == [Step.COMPUTE, Step.RECEIVE, Step.SEND, Step.COMPUTE, Step.SEND, Step.JOIN, 2]
    assert needs(schedule) == {1: {0}, 2: {0}, 3: {0}, 4: {3}, 5: {4, 1, 2}, 6: {5}}
    assert schedule.origin.tolist() == list(range(7))
    assert_array_equal(schedule.origin_kind, order.kind)
    assert schedule.tag.tolist() == [0, 5, 6, 0, 0, 0, 0]
    assert schedule.rank_start.tolist() == [0, 7, 7]


def test_a_graph_keeps_its_ends_and_starts_and_processors():
    graph = program(
        op(Kind.RECEIVE, 1, 8.0),
        op(Kind.COMPUTE, size=1.0, waits=(1,)),
        op(Kind.SEND, 1, 8.0, waits=(-1,)),
        op(Kind.COMPUTE, size=2.0),
        sequential=False,
        started_start=np.array([0, 0, 0, 0, 1]),
        started=np.array([3], dtype=np.int32),
        processor=np.array([0, 0, 0, 1], dtype=np.uint8),
    )
    schedule = lower(trace(program(), graph))
    assert needs(schedule) == {1: {0}, 2: {3}, 3: {-1}}
    assert schedule.processor.tolist() == [0, 0, 0, 1]


def test_the_first_blocking_operation_of_a_rank_needs_nothing_of_the_rank_before():
    schedule = lower(trace(program(op(Kind.COMPUTE, size=1.0)), program(op(Kind.COMPUTE, size=1.0))))
    assert needs(schedule) == {}


def test_loops_and_relative_peers_are_the_same_program_written_out():
    body = [op(Kind.COMPUTE, size=1.0), op(Kind.ISEND, 1, 8.0), op(Kind.RECEIVE, -1, 8.0), op(Kind.WAIT, waits=(2,))]
    looped = program(*body, op(Kind.BARRIER), loops=(Loop(0, 4, 3),), relative=True)
    written = [
        program(
            *(
                op(kind, (rank + peer) % 4 if kind in {Kind.ISEND, Kind.RECEIVE} else 0, size, tag, waits)
                for kind, peer, size, tag, waits in body * 3
            ),
            op(Kind.BARRIER),
        )
        for rank in range(4)
    ]
    assert executed_count(looped) == len(unrolled(looped)) == 13
    assert_same(lower(trace(looped, program_of=[0] * 4)), lower(trace(*written)))


def test_many_ranks_of_one_program_are_lowered_in_pieces_to_the_same_schedule(monkeypatch: pytest.MonkeyPatch):
    whole = extrapolate(halo((4, 3)), 12)
    expected = lower(whole)
    monkeypatch.setattr("whatif.simulation.lower._BATCH", 10)
    assert_same(lower(whole), expected)


def test_ranks_with_programs_of_their_own_are_lowered_together_to_the_same_schedule(monkeypatch: pytest.MonkeyPatch):
    whole = halo((4, 3))
    assert len(whole.programs) == 12
    parts = []
    monkeypatch.setattr("whatif.simulation.lower.joined", lambda *given: parts.append(given) or joined(*given))
    expected = lower(whole)
    assert len(parts) == 1
    monkeypatch.setattr("whatif.simulation.lower._BATCH", 10)
    assert_same(lower(whole), expected)
    assert len(parts) == 1 + 12


# Collectives.


def knowledge(schedule: Schedule) -> list[set[int]]:
    """Whose data each rank may have in the end, when messages carry all that their sender has heard of by then."""
    rank_of = np.repeat(np.arange(schedule.rank_count), np.diff(schedule.rank_start))
    sent, received = defaultdict(list), defaultdict(list)
    for place, (step, peer, tag) in enumerate(zip(schedule.step, schedule.peer, schedule.tag, strict=True)):
        if step == Step.SEND:
            sent[int(rank_of[place]), int(peer), int(tag)].append(place)
        elif step == Step.RECEIVE:
            received[int(peer), int(rank_of[place]), int(tag)].append(place)
    assert {key: len(places) for key, places in sent.items()} == {key: len(places) for key, places in received.items()}
    before = defaultdict(set, needs(schedule))
    for key, places in received.items():
        for place, message in zip(places, sent[key], strict=True):
            assert schedule.size[place] == schedule.size[message]
            before[place] = before[place] | {message}
    known: dict[int, set[int]] = {}
    waiting = list(range(len(schedule.step)))
    while waiting:
        ready = [place for place in waiting if before[place] <= known.keys()]
        assert ready, "deadlock"
        known |= {place: {int(rank_of[place])}.union(*(known[other] for other in before[place])) for place in ready}
        waiting = [place for place in waiting if place not in known]
    return [
        {rank}.union(*(known[place] for place in np.flatnonzero(rank_of == rank)))
        for rank in range(schedule.rank_count)
    ]


EVERY_ALGORITHM = [(kind, name) for kind, named in ALGORITHMS.items() for name in named]
ROOTED = {Kind.BROADCAST, Kind.REDUCE, Kind.GATHER, Kind.SCATTER}


@pytest.mark.parametrize(("kind", "name"), EVERY_ALGORITHM)
@pytest.mark.parametrize("rank_count", [1, 2, 3, 5, 6, 8, 11])
def test_a_collective_passes_every_contribution_to_its_ranks(kind: Kind, name: str, rank_count: int):
    everyone = set(range(rank_count))
    for root in {0, rank_count // 2, rank_count - 1} if kind in ROOTED else {0}:
        known = knowledge(lower(collective(kind, rank_count, 64.0, root), {kind: name}))
        for rank in range(rank_count):
            due = {
                Kind.BROADCAST: {root},
                Kind.SCATTER: {root},
                Kind.REDUCE: everyone if rank == root else set(),
                Kind.GATHER: everyone if rank == root else set(),
                Kind.SCAN: set(range(rank + 1)),
            }.get(kind, everyone)
            assert due <= known[rank]


@pytest.mark.parametrize("rank_count", [2, 5, 8])
@pytest.mark.parametrize(
    ("kind", "name", "blocks"),
    [
        # Received by the root (rank 1), and by every other rank where that is the same for all, in blocks.
        (Kind.GATHER, "binomial_tree", "P-1"),
        (Kind.GATHER, "linear", "P-1"),
        (Kind.REDUCE, "linear", "P-1"),
        (Kind.ALLGATHER, "ring_allgather", "P-1"),
        (Kind.ALLGATHER, "bruck_allgather", "P-1"),
        (Kind.ALLTOALL, "pairwise", "P-1"),
        (Kind.ALLTOALL, "linear", "P-1"),
        (Kind.REDUCE_SCATTER, "pairwise", "P-1"),
        (Kind.REDUCE_SCATTER, "ring", "P-1"),
        (Kind.ALLREDUCE, "ring", "2(P-1)/P"),
        (Kind.BARRIER, "dissemination", "0"),
    ],
)
def test_a_rank_receives_the_bytes_that_the_collective_needs(kind: Kind, name: str, blocks: str, rank_count: int):
    root = 1 if kind in ROOTED else 0
    schedule = lower(collective(kind, rank_count, 64.0, root), {kind: name})
    of_root = slice(schedule.rank_start[root], schedule.rank_start[root + 1])
    received = schedule.size[of_root][schedule.step[of_root] == Step.RECEIVE].sum()
    expected = {"P-1": rank_count - 1, "2(P-1)/P": 2 * (rank_count - 1) / rank_count, "0": 0}[blocks]
    assert_allclose(received, 64.0 * expected, rtol=1e-12, atol=0)


REDUCTIONS = [
    (kind, name) for kind, name in EVERY_ALGORITHM if kind in {Kind.REDUCE, Kind.ALLREDUCE, Kind.REDUCE_SCATTER}
]


@pytest.mark.parametrize("rank_count", [1, 2, 5, 8])
@pytest.mark.parametrize(("kind", "name"), REDUCTIONS)
def test_a_reduction_combines_every_contribution_once(kind: Kind, name: str, rank_count: int):
    """P - 1 buffers together; in recursive doubling every rank of a power of two combines in each round."""
    contributed, below = 64.0, 1 << (rank_count.bit_length() - 1)
    buffer = contributed * rank_count if kind is Kind.REDUCE_SCATTER else contributed
    schedule = lower(collective(kind, rank_count, contributed), {kind: name}, reduction_time=0.5)
    plain = lower(collective(kind, rank_count, contributed), {kind: name})
    combined = schedule.size[schedule.step == Step.COMPUTE].sum() / (0.5 * buffer)
    doubling = below * (below.bit_length() - 1) + rank_count - below
    assert_allclose(combined, doubling if name == "recursive_doubling" else rank_count - 1, rtol=1e-12, atol=0)
    others = schedule.step != Step.COMPUTE
    assert_array_equal(schedule.size[others], plain.size)
    assert not (plain.step == Step.COMPUTE).any()


@pytest.mark.parametrize("name", ["linear", "recursive_doubling"])
def test_a_scan_combines_every_message_that_is_received(name: str):
    schedule = lower(collective(Kind.SCAN, 6, 64.0), {Kind.SCAN: name}, reduction_time=0.5)
    combined = schedule.size[schedule.step == Step.COMPUTE]
    assert_array_equal(combined, np.full(np.count_nonzero(schedule.step == Step.RECEIVE), 32.0))


@pytest.mark.parametrize("kind", [Kind.ALLGATHER, Kind.GATHER, Kind.ALLTOALL, Kind.BROADCAST, Kind.BARRIER])
def test_other_collectives_have_no_arithmetic(kind: Kind):
    assert_same(lower(collective(kind, 6, 64.0), reduction_time=0.5), lower(collective(kind, 6, 64.0)))


def postal_time(schedule: Schedule) -> float:
    free, linear = np.zeros((3, 3, 2)), np.broadcast_to([LATENCY, TIME_PER_BYTE], (3, 3, 2)).copy()
    costs = Costs(free, linear, linear, free, free, np.full((3, 2), 1e30))
    ranks = np.arange(schedule.rank_count, dtype=np.int32)
    return replay(schedule, Places(ranks, ranks), costs).time


# A reduction and its like end earlier than rounds of all ranks where P is no power of two: a receive is free here.
EXACT_FOR_ANY = [
    (Kind.BROADCAST, "binomial_tree", "binomial_tree", False),
    (Kind.ALLREDUCE, "recursive_doubling", "recursive_doubling", False),
    (Kind.ALLREDUCE, "ring", "ring", False),
    (Kind.ALLREDUCE, "rabenseifner", "rabenseifner", False),
    (Kind.BARRIER, "dissemination", "dissemination", False),
    (Kind.ALLGATHER, "ring_allgather", "ring_allgather", True),
    (Kind.ALLGATHER, "bruck_allgather", "bruck_allgather", True),
]
EXACT_FOR_POWERS = [(Kind.REDUCE, "binomial_tree", "binomial_tree", False)]


@pytest.mark.parametrize(
    ("kind", "name", "form", "gathers", "rank_count"),
    [
        *((*case, rank_count) for case in EXACT_FOR_ANY for rank_count in (2, 7, 8, 12, 13, 32)),
        *((*case, rank_count) for case in EXACT_FOR_POWERS for rank_count in (2, 8, 32)),
    ],
)
def test_a_collective_takes_the_time_of_its_closed_form(kind, name, form, gathers, rank_count):
    size, process_count = np.array(96_000.0), np.array(float(rank_count))
    sizes, counts = closed_forms.ALGORITHMS[form]
    round_times = LATENCY + TIME_PER_BYTE * sizes(size, process_count)
    expected = closed_forms.rounds_time(counts(process_count), round_times)
    contributed = float(size) / rank_count if gathers else float(size)
    found = postal_time(lower(collective(kind, rank_count, contributed), {kind: name}))
    assert_allclose(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", [Kind.GATHER, Kind.SCATTER])
def test_a_binomial_gather_of_a_power_of_two_costs_lg_p_latencies_and_all_bytes_once(kind):
    found = postal_time(lower(collective(kind, 16, 1e4)))
    assert_allclose(found, 4 * LATENCY + 15e4 * TIME_PER_BYTE, rtol=1e-6, atol=0)


def test_successive_collectives_and_those_of_other_communicators_have_tags_of_their_own():
    communicators = ([], [0, 2], [3, 1])
    even = program(op(Kind.BARRIER, tag=1), op(Kind.BARRIER), op(Kind.BROADCAST, 2, 8.0, 1), op(Kind.BARRIER))
    odd = program(op(Kind.BARRIER), op(Kind.BROADCAST, 3, 8.0, 2), op(Kind.BARRIER))
    schedule = lower(trace(even, odd, communicators=communicators, program_of=[0, 1, 0, 1]))
    calls = defaultdict(set)
    messages = schedule.step != Step.JOIN
    rank_of = np.repeat(np.arange(4), np.diff(schedule.rank_start))
    for rank, tag, origin in np.stack([rank_of, schedule.tag, schedule.origin])[:, messages].T.tolist():
        calls[tag].add((rank % 2, origin))
    assert max(calls) < ANY
    assert sorted(map(sorted, calls.values())) == [[(0, 0)], [(0, 1), (1, 0)], [(0, 2)], [(0, 3), (1, 2)], [(1, 1)]]
    root = slice(schedule.rank_start[3], schedule.rank_start[4])
    sent = schedule.origin_kind[root] == Kind.BROADCAST
    assert schedule.peer[root][sent].tolist() == [1]
    assert [len(known) for known in knowledge(schedule)] == [4] * 4


def test_ranks_that_give_different_sizes_send_their_own_and_receive_any():
    programs = [program(op(Kind.ALLGATHER, 0, size)) for size in (10.0, 20.0, 30.0)]
    schedule = lower(trace(*programs), {Kind.ALLGATHER: "ring_allgather"})
    assert schedule.size[schedule.step == Step.SEND].tolist() == [10.0, 10.0, 20.0, 20.0, 30.0, 30.0]
    assert_allclose(postal_time(schedule), 2 * LATENCY + 60 * TIME_PER_BYTE, rtol=1e-6, atol=0)


# What cannot be lowered.

BARRIER = program(op(Kind.BARRIER))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            trace(program(op(Kind.SEND, 7, 8.0)), program()),
            r"rank 0, operation 0 \(SEND\): its peer is 7, but the ranks",
        ),
        (trace(program(op(Kind.SEND, ANY, 8.0)), program()), r"\(SEND\): its peer is -1"),
        (trace(program(op(Kind.WAIT, waits=(3,)))), "rank 0, operation 0: it waits for operation -3"),
        (trace(program(op(Kind.COMPUTE, waits=(0,)), sequential=False)), "operation 0: it waits for operation 0"),
        (trace(BARRIER, program()), "rank 1 is in communicator 0, but calls no collective of it"),
        (trace(BARRIER, program(op(Kind.ALLREDUCE))), "collective 1 of .* rank 0 calls BARRIER .* rank 1 calls ALLRED"),
        (trace(BARRIER, program(op(Kind.BARRIER), op(Kind.BARRIER))), "rank 0 calls only 1, rank 1 calls BARRIER"),
        (trace(program(op(Kind.BROADCAST, 0)), program(op(Kind.BROADCAST, 1))), "with root 0, .* with root 1"),
        (trace(program(op(Kind.BROADCAST, 5)), program_of=[0, 0]), "rank 5 is a root outside of communicator 0"),
        (trace(program(op(Kind.BARRIER, tag=4)), program_of=[0]), "no communicator 4: the trace has 0"),
        (
            trace(program(op(Kind.BARRIER, tag=1)), communicators=([], [1])),
            "rank 1 is in communicator 1, but calls no collective",
        ),
        (
            trace(program(op(Kind.BARRIER, tag=1)), communicators=([], [])),
            "rank 0 calls collectives of communicator 1, but",
        ),
        (trace(replace(BARRIER, sequential=False)), "a graph has no collectives"),
        (trace(program(op(Kind.COMPUTE), loops=(Loop(0, 1, 10**10),))), "more than 134217728 operations"),
        (trace(program(op(Kind.ALLTOALL), loops=(Loop(0, 1, 10**6),)), program_of=[0] * 999), "more than 134217728"),
    ],
)
def test_invalid_traces_are_refused_with_rank_and_operation(wrong: Trace, reason: str):
    with pytest.raises(UsageError, match=reason):
        lower(wrong)


def test_an_unknown_algorithm_is_refused_with_those_that_there_are():
    with pytest.raises(
        UsageError, match=r"`rabenseifer` for allreduce; there are recurs.*; did you mean `rabenseifner` or "
    ):
        lower(collective(Kind.ALLREDUCE, 2), {Kind.ALLREDUCE: "rabenseifer"})


def test_a_long_loop_is_lowered_to_all_of_its_operations():
    step = [op(Kind.IRECEIVE, 1, 8.0), op(Kind.ISEND, -1, 8.0), op(Kind.WAIT, waits=(1, 2)), op(Kind.COMPUTE, size=1.0)]
    count = 100_000
    looped = program(*step, relative=True, loops=(Loop(0, 4, count),))
    schedule = lower(trace(looped, program_of=[0, 0]))
    assert len(schedule.step) == 2 * 4 * count
    # The operations of the first iteration up to its wait have none before them that blocks.
    assert schedule.need_count.sum() == len(schedule.next) == 2 * (6 * count - 3)
