"""The replay of schedules: LogGOPSim's times to the nanosecond, closed forms, causes, and what it says of bad input."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.paths import ROOT
from tests.simulation.traces import time_along
from whatif.errors import InfeasiblePointError, UsageError
from whatif.simulation import replay as replay_module
from whatif.simulation.activity import GROUPS, activity
from whatif.simulation.critical import critical_path
from whatif.simulation.jit import _jitted
from whatif.simulation.rank_programs import ANY, Kind
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs, Places, Schedule, Step
from whatif.validation.tables import loggops_costs, rows_of

COMPUTE, SEND, RECEIVE, JOIN = Step
NANOSECOND = 1e-9
EXAMPLE = (2500, 1500, 1000, 6, 0, 65535)


def build(ranks, kinds=None, processor=None):
    """A schedule of ranks of operations (step, peer, size, tag, dependencies in the rank; ~i for a start)."""
    operations = [operation for rank in ranks for operation in rank]
    first = np.concatenate([[0], np.cumsum([len(rank) for rank in ranks])])
    dependents = [[] for _ in operations]
    for rank, start in zip(ranks, first, strict=False):
        for number, operation in enumerate(rank):
            for needed in operation[4]:
                dependents[start + max(needed, ~needed)].append(start + number if needed >= 0 else -1 - start - number)
    columns = np.array([operation[:4] for operation in operations], dtype=float).reshape(-1, 4)
    step = columns[:, 0].astype(np.uint8)
    default = np.array([Kind.COMPUTE, Kind.ISEND, Kind.IRECEIVE, Kind.WAIT], dtype=np.uint8)
    return Schedule(
        rank_start=first.astype(np.int64),
        step=step,
        peer=columns[:, 1].astype(np.int32),
        size=columns[:, 2].copy(),
        tag=columns[:, 3].astype(np.int32),
        processor=processor,
        next_start=np.concatenate([[0], np.cumsum([len(one) for one in dependents])]).astype(np.int64),
        next=np.array([other for one in dependents for other in one], dtype=np.int32),
        need_count=np.array([len(operation[4]) for operation in operations], dtype=np.int32),
        origin=np.concatenate([np.arange(len(rank)) for rank in ranks]).astype(np.int32),
        origin_kind=default[step] if kinds is None else np.array(kinds, dtype=np.uint8),
    )


def broadcast(rank_count, size):
    """A binomial tree: a rank sends to those that differ from it in one bit above its highest."""

    def of(rank):
        source = [(RECEIVE, rank - (1 << rank.bit_length() - 1), size, 0, [])] if rank else []
        bits = range(rank.bit_length(), (rank_count - 1).bit_length())
        targets = [rank + (1 << bit) for bit in bits if rank + (1 << bit) < rank_count]
        return source + [(SEND, target, size, 0, [0] if rank else []) for target in targets]

    return build([of(rank) for rank in range(rank_count)])


def dissemination(rank_count, size):
    """Rounds of a send 1, 2, 4, .. ranks ahead, each after the receive of the round before."""

    def of(rank):
        operations = []
        for number in range((rank_count - 1).bit_length()):
            ahead, behind = (rank + (1 << number)) % rank_count, (rank - (1 << number)) % rank_count
            operations += [(SEND, ahead, size, 0, [2 * number - 1] if number else []), (RECEIVE, behind, size, 0, [])]
        return operations

    return build([of(rank) for rank in range(rank_count)])


def linear_alltoall(rank_count, size):
    """A send to and a receive from everybody, by distance, all at once."""
    step = np.tile(np.array([SEND, RECEIVE], dtype=np.uint8), rank_count * (rank_count - 1))
    rank, distance = np.arange(rank_count)[:, None], np.arange(1, rank_count)
    peer = np.stack([rank + distance, rank - distance], axis=-1).ravel() % rank_count
    none = np.zeros(len(step), dtype=np.int32)
    return Schedule(
        rank_start=np.arange(rank_count + 1) * 2 * (rank_count - 1),
        step=step,
        peer=peer.astype(np.int32),
        size=np.full(len(step), float(size)),
        tag=none,
        processor=None,
        next_start=np.zeros(len(step) + 1, dtype=np.int64),
        next=none[:0],
        need_count=none,
        origin=none,
        origin_kind=step,
    )


def halo(columns, rows, size, iteration_count, compute_time, periodic):
    """Per iteration a computation, then receives from and sends to the neighbours, all awaited by the next one."""

    def of(rank):
        x, y = rank % columns, rank // columns
        around = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
        near = [
            (tag, (a % columns) + (b % rows) * columns)
            for tag, (a, b) in enumerate(around)
            if periodic or (0 <= a < columns and 0 <= b < rows)
        ]
        operations, before = [], []
        for _ in range(iteration_count):
            operations.append((COMPUTE, 0, compute_time, 0, before))
            now = [len(operations) - 1]
            operations += [(RECEIVE, peer, size, tag ^ 1, now) for tag, peer in near]
            operations += [(SEND, peer, size, tag, now) for tag, peer in near]
            before = list(range(now[0] + 1, len(operations)))
        return operations

    return build([of(rank) for rank in range(columns * rows)])


def costs_of(parts, short_limit=0.0, eager_limit=np.inf, **others):
    """The same five lines (constant, per byte) for all distances and protocols."""
    lines = (np.broadcast_to(np.array(part, dtype=float), (3, 3, 2)) for part in parts)
    return Costs(*lines, np.tile([short_limit, eager_limit], (3, 1)), **others)


def loggops(latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit):
    """LogGOPS parameters in ns and B."""
    receive = max(overhead_per_byte, gap_per_byte)
    parts = [
        (overhead, overhead_per_byte),
        (gap, gap_per_byte),
        (overhead + latency, 0),
        (overhead, receive),
        (gap, gap_per_byte),
    ]
    return costs_of(np.array(parts) * NANOSECOND, eager_limit=eager_limit, free_size=1.0, on_arrival=True)


def postal(latency, byte_time, **others):
    """T(n) = latency + n · byte_time."""
    return costs_of([(0, 0), (latency, byte_time), (latency, byte_time), (0, 0), (0, 0)], **others)


def own_nodes(rank_count):
    rank = np.arange(rank_count, dtype=np.int32)
    return Places(rank, rank)


def replay_result(schedule, costs, places=None):
    return replay(schedule, places or own_nodes(schedule.rank_count), costs)


PATTERNS = {"binomialtreebcast": broadcast, "dissemination": dissemination, "linear_alltoall": linear_alltoall}


def row_schedules():
    """A schedule for each row of the tables, its LogGOPS parameters and LogGOPSim's time in ns."""
    made = {}
    for row in rows_of("loggopsim_patterns.csv"):
        key = (row["pattern"], int(row["rank_count"]), int(row["message_size_B"]))
        made.setdefault(key, PATTERNS[key[0]](*key[1:]))
        yield made[key], row
    for row in rows_of("loggopsim_halo.csv"):
        args = [int(row[key]) for key in ("x", "y", "message_size_B", "iteration_count")]
        yield halo(*args, int(row["compute_ns"]) * NANOSECOND, int(row["periodic"])), row


def test_loggopsim_rows_are_equal_to_the_nanosecond_also_compiled(monkeypatch):
    """A third of them: all 98 are simulated by `whatif validate schedules`, which test_simulate.py holds."""
    monkeypatch.setattr(replay_module, "SMALL", 1000)
    rows = list(row_schedules())
    assert len(rows) == 98
    for schedule, row in rows[::3]:
        monkeypatch.setattr(replay_module._Replayed, "operations", 0)
        assert round(replay_result(schedule, loggops_costs(row)).time / NANOSECOND, 6) == int(row["time_ns"]), row


def test_a_linear_all_to_all_of_1024_ranks_takes_its_closed_form():
    time = replay_result(linear_alltoall(1024, 1024), loggops(*EXAMPLE)).time
    assert round(time / NANOSECOND, 6) == 1023 * (2 * 1500 + 2500 + 1023 * 6)


def test_a_broadcast_beyond_the_peers_defect_takes_its_stable_time():
    # Of 262,144 ranks, which LogGOPSim with a stable order finishes at 209,484 ns.
    ranks, size = 1 << 18, 1024
    depth = 18
    time = replay_result(wide_broadcast(depth, size), loggops(*EXAMPLE)).time
    assert ranks == 262_144
    assert round(time / NANOSECOND, 6) == 209_484 == depth * (2 * 1500 + 2500 + 1023 * 6)


def wide_broadcast(depth, size):
    """`broadcast` of 2^depth ranks without a loop over them."""
    count = 1 << depth
    rank = np.arange(count)
    lowest = np.where(rank > 0, np.floor(np.log2(np.maximum(rank, 1))).astype(int) + 1, 0)
    sends = depth - lowest
    operations = sends + (rank > 0)
    start = np.concatenate([[0], np.cumsum(operations)])
    of = np.repeat(rank, operations)
    within = np.arange(start[-1]) - start[of]
    is_send = (within > 0) | (of == 0)
    bit = lowest[of] + within - (of > 0)
    peer = np.where(is_send, of + (1 << np.where(is_send, bit, 0)), of - (1 << np.maximum(lowest[of] - 1, 0)))
    dependent_count = np.where(is_send, 0, sends[of])
    step = np.where(is_send, SEND, RECEIVE).astype(np.uint8)
    return Schedule(
        rank_start=start,
        step=step,
        peer=peer.astype(np.int32),
        size=np.full(len(of), float(size)),
        tag=np.zeros(len(of), dtype=np.int32),
        processor=None,
        next_start=np.concatenate([[0], np.cumsum(dependent_count)]),
        next=np.flatnonzero(is_send & (of > 0)).astype(np.int32),
        need_count=(is_send & (of > 0)).astype(np.int32),
        origin=within.astype(np.int32),
        origin_kind=step,
    )


def jittered(schedule, seed):
    """The same with computations of different lengths, so that no two paths are equally long."""
    factors = np.random.default_rng(seed).uniform(0.5, 1.5, len(schedule.size))
    times = np.round(schedule.size * factors, 12)
    return replace(schedule, size=np.where(schedule.step == COMPUTE, times, schedule.size))


NEIGHBOURS = Places(np.arange(48, dtype=np.int32) // 8, np.arange(48, dtype=np.int32) // 4)
MODELS = {
    "loggops": loggops(*EXAMPLE),
    "loggops, rendezvous": loggops(1000, 200, 50, 1, 0, 1000),
    "postal": postal(2e-6, 1e-9),
    "postal, rendezvous": postal(2e-6, 1e-9, eager_limit=1000.0),
    "node adapters": postal(2e-6, 1e-9, node_gap=0.7e-9),
}


@pytest.mark.parametrize("costs", MODELS.values(), ids=MODELS)
def test_the_plain_and_the_compiled_kernel_agree_bit_for_bit(costs, monkeypatch):
    schedule = jittered(halo(6, 8, 5000, 6, 2e-5, 0), 1)
    monkeypatch.setattr(replay_module._Replayed, "operations", 0)
    plain = replay_result(schedule, costs, NEIGHBOURS)
    monkeypatch.setattr(replay_module, "SMALL", 0)
    compiled = replay_result(schedule, costs, NEIGHBOURS)
    for field in fields(plain):
        assert_array_equal(getattr(plain, field.name), getattr(compiled, field.name), err_msg=field.name)


@pytest.mark.parametrize("costs", MODELS.values(), ids=MODELS)
def test_the_critical_path_sums_up_to_the_run_time_and_its_slopes_are_finite_differences(costs):
    schedule = jittered(halo(6, 8, 5000, 6, 2e-5, 0), 2)
    result = replay_result(schedule, costs, NEIGHBOURS)
    path = critical_path(schedule, result, costs)
    assert_allclose(time_along(path, costs), result.time, rtol=1e-12, atol=0)
    latency, byte = path.latency_slope.sum(), path.byte_slope.sum()
    assert latency > 0
    assert byte > 0
    kept = (costs.send_gap == costs.flight).all()
    for change, slope in (((1e-11, 0.0), latency), ((0.0, 1e-15), byte)):
        step = np.array(change)
        # G is in every cost that has one already, L in the flight, and in the gap where that is the flight.
        touched = ("send_gap", "receive_gap", "receive_overhead", "flight", "send_overhead")
        if change[0]:
            touched = ("flight", "send_gap") if kept else ("flight",)
        changed = {name: getattr(costs, name) + step * (getattr(costs, name) > 0) for name in touched}
        other = replace(costs, **changed)
        difference = replay_result(schedule, other, NEIGHBOURS).time - result.time
        assert_allclose(difference, slope * max(change), rtol=1e-3, atol=0)
        assert_allclose(time_along(path, other), result.time + difference, rtol=1e-12, atol=0)


def test_every_operation_starts_when_its_cause_lets_it():
    schedule = jittered(halo(6, 8, 5000, 4, 2e-5, 0), 3)
    result = replay_result(schedule, postal(2e-6, 1e-9), NEIGHBOURS)
    caused = result.cause >= 0
    assert (result.start[~caused] == 0).all()
    after = np.where(result.why == 5, result.start[result.cause] + 7e-6, result.end[result.cause])
    assert_allclose(result.start[caused], after[caused], rtol=1e-12, atol=0)


def test_postal_sends_of_a_rank_follow_one_another():
    schedule = build([[(SEND, 1, 1000, 0, []), (SEND, 1, 500, 0, [])], 2 * [(RECEIVE, 0, 1000, 0, [])]])
    result = replay_result(schedule, postal(1e-6, 1e-9))
    assert_allclose(result.end, [2e-6, 3.5e-6, 2e-6, 3.5e-6], rtol=1e-12, atol=0)
    assert_array_equal(result.match, [2, 3, 0, 1])


def test_a_rendezvous_send_waits_for_its_receive_and_an_eager_one_does_not():
    late = [(COMPUTE, 0, 5e-6, 0, []), (RECEIVE, 0, 1000, 0, [0])]
    schedule = build([[(SEND, 1, 1000, 0, [])], late])
    assert_allclose(replay_result(schedule, postal(1e-6, 1e-9, eager_limit=999.0)).end, [7e-6, 5e-6, 7e-6], rtol=1e-12)
    assert_allclose(replay_result(schedule, postal(1e-6, 1e-9)).end, [2e-6, 5e-6, 5e-6], rtol=1e-12, atol=0)


def test_messages_that_leave_a_node_together_share_its_adapter_as_in_the_max_rate_model():
    ppn, size, latency, byte_time, node_gap = 6, 1e6, 1e-6, 1e-10, 4e-11
    senders = [[(SEND, ppn + rank, size, 0, [])] for rank in range(ppn)]
    schedule = build(senders + [[(RECEIVE, rank, size, 0, [])] for rank in range(ppn)])
    rank = np.arange(2 * ppn, dtype=np.int32)
    costs = postal(latency, byte_time, node_gap=node_gap)
    result = replay_result(schedule, costs, Places(rank // ppn, rank))
    assert_allclose(result.time, latency + size * max(ppn * node_gap, byte_time), rtol=1e-12, atol=0)
    inside = replay_result(schedule, costs, Places(0 * rank, rank))
    assert_allclose(inside.time, latency + size * byte_time, rtol=1e-12, atol=0)


def test_a_wildcard_takes_the_message_that_arrives_first():
    worker = [(COMPUTE, 0, 2e-6, 0, []), (SEND, 0, 10, 1, [0])]
    quick = [(SEND, 0, 2000, 2, []), (SEND, 0, 10, 3, [~0])]
    manager = [(RECEIVE, ANY, 5000, ANY, [])] + [(RECEIVE, ANY, 5000, ANY, [at]) for at in range(2)]
    result = replay_result(build([manager, worker, quick]), postal(1e-6, 1e-9, eager_limit=1000.0))
    assert_array_equal(result.match[:3], [5, 4, 6])
    assert_allclose(result.end[:3], [3e-6, 3.01e-6, 4.01e-6], rtol=1e-12, atol=0)


def test_no_message_overtakes_one_of_the_same_sender():
    flight_only = costs_of([(0, 0), (0, 0), (1e-6, 1e-9), (0, 0), (0, 0)])
    senders = [(SEND, 1, 1000, 0, []), (SEND, 1, 10, 0, [])]
    for peer, ends in ((ANY, [2e-6, 2e-6]), (0, [2e-6, 1.01e-6])):
        result = replay_result(build([senders, 2 * [(RECEIVE, peer, 1000, 0, [])]]), flight_only)
        assert_array_equal(result.match[2:], [0, 1])
        assert_allclose(result.end[2:], ends, rtol=1e-12, atol=0)


def test_a_wildcard_tag_takes_no_message_of_a_collective():
    collective = [(SEND, 1, 8, -2, []), (SEND, 1, 8, 5, [])]
    schedule = build([collective, [(RECEIVE, ANY, 8, ANY, []), (RECEIVE, 0, 8, -2, [])]])
    assert_array_equal(replay_result(schedule, postal(1e-6, 0.0)).match, [3, 2, 1, 0])


def test_two_processors_compute_at_once_and_a_start_may_be_enough():
    rank = [(COMPUTE, 0, 5e-6, 0, []), (COMPUTE, 0, 2e-6, 0, [~0]), (JOIN, 0, 0, 0, [0, 1])]
    one = replay_result(build([rank]), postal(1e-6, 0.0))
    two = replay_result(build([rank], processor=np.array([0, 1, 0], dtype=np.uint8)), postal(1e-6, 0.0))
    assert_allclose([one.time, two.time], [7e-6, 5e-6], rtol=1e-12, atol=0)


def test_operations_after_a_posted_receive_do_not_wait_for_its_message():
    rank = [(RECEIVE, 1, 8, 0, []), (COMPUTE, 0, 1e-6, 0, [~0])]
    schedule = build([rank, [(COMPUTE, 0, 9e-6, 0, []), (SEND, 0, 8, 0, [0])]])
    for costs in (postal(1e-6, 0.0), loggops(1000, 0, 0, 0, 0, 1000)):
        assert_allclose(replay_result(schedule, costs).end[1], 1e-6, rtol=1e-12, atol=0)


def test_times_are_counted_to_the_call_that_returns_with_them():
    first = [(COMPUTE, 0, 2e-6, 0, []), (SEND, 1, 1000, 0, [0]), (COMPUTE, 0, 1e-6, 0, [1])]
    second = [(RECEIVE, 0, 1000, 0, []), (COMPUTE, 0, 3e-6, 0, []), (JOIN, 0, 0, 0, [0, 1])]
    kinds = [Kind.COMPUTE, Kind.SEND, Kind.COMPUTE, Kind.IRECEIVE, Kind.COMPUTE, Kind.WAIT]
    schedule = build([first, second], kinds)
    found = replay_result(schedule, postal(1e-6, 1e-9))
    times = activity(schedule, found.start, found.end, found.match).rank_times()
    expected = np.zeros((2, len(GROUPS)))
    expected[0, [0, 1]], expected[1, [0, 3]] = [3e-6, 2e-6], [3e-6, 1e-6]
    assert_allclose(times, expected, rtol=0, atol=1e-18)


DEADLOCKS = {
    "a receive without a send": (
        [[(COMPUTE, 0, 1e-6, 0, [])], [(RECEIVE, 0, 8, 7, [])]],
        ["1 of 2 ranks", "rank 1, operation 0 (ireceive): receive of 8 B from rank 0, tag 7"],
    ),
    "an eager send without a receive": (
        [[(SEND, 1, 8, 3, [])], [(COMPUTE, 0, 1e-6, 0, [])]],
        ["1 messages are never received", "rank 0, operation 0 (isend): send of 8 B to rank 1, tag 3"],
    ),
    "two rendezvous sends, each before its receive": (
        [[(SEND, 1 - rank, 5000, 0, []), (RECEIVE, 1 - rank, 5000, 0, [0])] for rank in range(2)],
        ["2 of 2 ranks", "rank 0, operation 0", "rank 1, operation 0 (isend): send of 5000 B to rank 0"],
    ),
    "a circle": (
        [[(COMPUTE, 0, 1e-6, 0, [1]), (JOIN, 0, 0, 0, [0])]],
        ["depend on each other in a circle", "rank 0, operation 0"],
    ),
    "a message that is larger than its receive": (
        [[(SEND, 1, 64, 0, [])], [(RECEIVE, 0, 8, 0, [])]],
        ["receive of 8 B from rank 0", "gets a message of 64 B"],
    ),
    "a size that is not a number": ([[(COMPUTE, 0, np.nan, 0, [])]], ["rank 0, operation 0 (compute)", "nan s"]),
    "a time in the wrong unit": ([[(COMPUTE, 0, 1e12, 0, [])]], ["would take", "years", "1000000000000 s"]),
    "a rank that does not exist": ([[(SEND, 4, 8, 0, [])]], ["send of 8 B to rank 4", "the ranks are 0 to 0"]),
}


@pytest.mark.parametrize(("ranks", "words"), DEADLOCKS.values(), ids=DEADLOCKS)
def test_what_cannot_be_replayed_is_told_with_rank_and_call(ranks, words):
    with pytest.raises(InfeasiblePointError) as message:
        replay_result(build(ranks), postal(1e-6, 1e-9, eager_limit=1000.0))
    for word in words:
        assert word in str(message.value)


def test_a_deadlock_of_many_ranks_names_five():
    ring = [[(RECEIVE, (rank - 1) % 99, 8, 0, []), (SEND, (rank + 1) % 99, 8, 0, [0])] for rank in range(99)]
    with pytest.raises(InfeasiblePointError, match="99 of 99 ranks wait forever") as message:
        replay_result(build(ring), postal(1e-6, 0.0))
    assert str(message.value).count("receive of 8 B") == 5


def test_columns_that_do_not_belong_together_are_refused():
    schedule = build([[(COMPUTE, 0, 1e-6, 0, [])]])
    for broken in (replace(schedule, next_start=schedule.next_start + 1), replace(schedule, peer=schedule.peer[:0])):
        with pytest.raises(UsageError, match="columns of the schedule"):
            replay_result(broken, postal(1e-6, 0.0))
    with pytest.raises(UsageError, match="1 ranks take part, places are given for 2"):
        replay_result(schedule, postal(1e-6, 0.0), own_nodes(2))
    with pytest.raises(UsageError, match="finite and not negative"):
        replay_result(schedule, postal(-1e-6, 0.0))


def test_a_schedule_without_operations_takes_no_time():
    schedule = build([[], []])
    result = replay_result(schedule, postal(1e-6, 0.0))
    assert result.time == 0
    assert time_along(critical_path(schedule, result, postal(1e-6, 0.0)), postal(1e-6, 0.0)) == 0


def test_a_long_run_is_simulated_in_parts_with_the_same_times(monkeypatch):
    monkeypatch.setattr(replay_module, "SMALL", 0)
    schedule = halo(6, 8, 5000, 6, 2e-5, 0)
    whole = replay(schedule, NEIGHBOURS, postal(1e-6, 1e-9))
    monkeypatch.setattr(replay_module, "EVENTS_AT_A_TIME", 1000)
    assert_array_equal(replay(schedule, NEIGHBOURS, postal(1e-6, 1e-9)).end, whole.end)


def test_a_run_of_years_keeps_its_precision():
    rank = [(COMPUTE, 0, 1e8, 0, []), (COMPUTE, 0, 1e-6, 0, [0])]
    assert_allclose(replay_result(build([rank]), postal(1e-6, 0.0)).time, 1e8 + 1e-6, rtol=1e-15, atol=0)


def test_small_schedules_never_load_the_compiler():
    code = (
        "import sys, tests.simulation.test_replay as t;"
        "t.replay_result(t.halo(6, 8, 8, 2, 1e-6, 1), t.loggops(*t.EXAMPLE));"
        "print('numba' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_a_machine_without_a_folder_for_the_cache_compiles_all_the_same(monkeypatch):
    from numba.core.caching import CacheImpl

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])

    def twice(number):
        return 2 * number

    assert _jitted(twice, entry=True, borrowing=False, inlined=False, fused=False)(21) == 42
