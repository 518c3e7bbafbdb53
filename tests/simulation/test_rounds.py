"""Patterns replay_result round by round, against LogGOPSim's times, closed forms and the replay of the same program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from whatif.errors import UsageError
from whatif.models import collectives
from whatif.models.patterns import GridPattern, message_counts, message_kinds
from whatif.models.phase import serialised_time
from whatif.simulation import generate, posted, rounds, steps
from whatif.simulation.lower import lower
from whatif.simulation.posted import halo_times, linear_alltoall_times
from whatif.simulation.rank_programs import Kind, Trace
from whatif.simulation.replay import replay
from whatif.simulation.schedule import Costs
from whatif.validation.tables import rows_of

ALGORITHMS = {
    "broadcast": rounds.broadcast_times,
    "reduce": rounds.reduce_times,
    "dissemination": rounds.dissemination_times,
    "recursive_doubling": rounds.recursive_doubling_times,
    "rabenseifner": rounds.rabenseifner_times,
    "ring_allreduce": rounds.ring_allreduce_times,
    "ring_allgather": rounds.ring_allgather_times,
    "bruck_allgather": rounds.bruck_allgather_times,
    "pairwise_alltoall": rounds.pairwise_alltoall_times,
    "linear_alltoall": linear_alltoall_times,
}
LOGGOPS = {"latency": 2500, "overhead": 1500, "gap": 1000, "byte_gap": 6, "byte_overhead": 0, "threshold": 65535}


def loggops_costs(latency, overhead, gap, byte_gap, byte_overhead, threshold, on_arrival=True):
    """Parameters in ns."""

    def linear(constant, per_byte):
        return np.broadcast_to(np.array([constant, per_byte]) * 1e-9, (3, 3, 2))

    limits = np.full((3, 2), float(threshold))
    sending, gap_time = linear(overhead, byte_overhead), linear(gap, byte_gap)
    flight, receiving = linear(overhead + latency, 0), linear(overhead, max(byte_overhead, byte_gap))
    return Costs(sending, gap_time, flight, receiving, gap_time, limits, free_size=1.0, on_arrival=on_arrival)


def postal_costs(latency, bandwidth, eager_limit=np.inf):
    """Latency and bandwidth by distance."""
    nothing, time = np.zeros((3, 3, 2)), np.zeros((3, 3, 2))
    time[..., 0], time[..., 1] = np.reshape(latency, (3, 1)), 1 / np.reshape(bandwidth, (3, 1))
    return Costs(nothing, time, time, nothing, nothing, np.tile([-1.0, eager_limit], (3, 1)))


SAME_POSTAL = postal_costs([1e-6] * 3, [1e9] * 3)


def placed(rank_count, ranks_per_node=4, ranks_per_socket=2):
    pattern = GridPattern((rank_count,), ranks_per_node, ranks_per_socket)
    return posted.grid_places(pattern)


def parameters(row):
    columns = ("L_ns", "o_ns", "g_ns", "G_ns_per_B", "O_ns_per_B", "S_B")
    return {name: int(row[column]) for name, column in zip(LOGGOPS, columns, strict=True)}


def replay_result(pattern, *arguments, **options):
    """Its times, or the reason for which it is refused."""
    try:
        return pattern(*arguments, **options)
    except UsageError as refusal:
        return str(refusal)


def nanoseconds(times):
    return int(np.round(times.max() * 1e9, 3))


REFERENCE_PATTERNS = {
    "binomialtreebcast": rounds.broadcast_times,
    "dissemination": rounds.dissemination_times,
    "linear_alltoall": linear_alltoall_times,
}


def test_times_of_patterns_are_those_of_loggopsim_to_the_nanosecond():
    rows = rows_of("loggopsim_patterns.csv")
    for row in rows:
        rank_count = int(row["rank_count"])
        times = REFERENCE_PATTERNS[row["pattern"]](
            rank_count, float(row["message_size_B"]), placed(rank_count), loggops_costs(**parameters(row))
        )
        assert nanoseconds(times) == int(row["time_ns"]), row
    assert {row["pattern"] for row in rows} == set(REFERENCE_PATTERNS)


def test_times_of_halos_are_those_of_loggopsim_to_the_nanosecond():
    refused = 0
    for row in rows_of("loggopsim_halo.csv"):
        pattern = GridPattern((int(row["x"]), int(row["y"])), 4, 2, periodic=row["periodic"] == "1", order="fortran")
        work, count = int(row["compute_ns"]) * 1e-9, int(row["iteration_count"])
        costs = loggops_costs(**parameters(row))
        times = replay_result(
            halo_times, pattern, float(row["message_size_B"]), costs, iteration_count=count, compute_time=work
        )
        if isinstance(times, str):
            refused += 1
            assert not pattern.periodic
            continue
        assert nanoseconds(times) == int(row["time_ns"]), row
    assert refused == 4


@pytest.mark.parametrize(("rank_count", "time"), [(131_072, 197_846), (262_144, 209_484), (1_048_576, 232_760)])
def test_a_broadcast_on_a_million_ranks_takes_as_many_messages_as_it_has_rounds(rank_count, time):
    times = rounds.broadcast_times(rank_count, 1024, placed(rank_count), loggops_costs(**LOGGOPS))
    assert nanoseconds(times) == time


@pytest.mark.parametrize("rank_count", [16, 64, 512, 1024])
def test_a_linear_all_to_all_has_its_closed_form(rank_count):
    times = linear_alltoall_times(rank_count, 1024, placed(rank_count), loggops_costs(**LOGGOPS))
    assert nanoseconds(times) == (rank_count - 1) * 11_638


CLOSED_FORMS = {
    "broadcast": ("binomial_tree", 1),
    "reduce": ("binomial_tree", 1),
    "dissemination": ("dissemination", 0),
    "recursive_doubling": ("recursive_doubling", 1),
    "rabenseifner": ("rabenseifner", 1),
    "ring_allreduce": ("ring", 1),
    "ring_allgather": ("ring_allgather", None),
    "bruck_allgather": ("bruck_allgather", None),
}


@pytest.mark.parametrize("rank_count", [1, 2, 3, 7, 16, 21, 64, 100])
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_with_postal_costs_collectives_take_the_sum_of_their_rounds(name, rank_count):
    model, factor = CLOSED_FORMS[name]
    size, whole = 5e4, 5e4 * (rank_count if factor is None else factor)
    sizes, counts = collectives.ALGORITHMS[model]
    each = 1e-6 + sizes(np.array(whole), np.array(float(rank_count))) / 1e9
    expected = float(collectives.rounds_time(counts(np.array(float(rank_count))), each))
    times = ALGORITHMS[name](rank_count, 0.0 if factor == 0 else size, placed(rank_count), SAME_POSTAL, None)
    if name == "reduce" and rank_count & (rank_count - 1):
        # A subtree that is not full sends before its round.
        assert expected * 0.5 - 1e-12 <= times.max() <= expected
        return
    assert_allclose(times.max(), expected, rtol=1e-10, atol=0)


GRIDS = [
    GridPattern((6, 8), 7, 3),
    GridPattern((5, 4, 3), 6, 3, periodic=True, neighbours="all"),
    GridPattern((4, 4, 4), 8, 4, neighbours="all", mapping="round_robin", order="fortran"),
    GridPattern((2, 1, 6), 5, 2, periodic=True),
]


@pytest.mark.parametrize("pattern", GRIDS, ids=lambda pattern: str(pattern.dims))
def test_with_postal_costs_a_halo_takes_the_serialised_time_of_its_slowest_rank(pattern):
    latency, bandwidth = [3e-7, 6e-7, 2e-6], [8e9, 6e9, 1e9]
    sizes = np.array([8192.0 / 32 ** len(kind) for kind in message_kinds(len(pattern.dims), pattern.neighbours)])
    times = [start + sizes / rate for start, rate in zip(latency, bandwidth, strict=True)]
    ends = halo_times(pattern, sizes, postal_costs(latency, bandwidth))
    assert_allclose(ends.max(), serialised_time(message_counts(pattern).rank_counts, *times), rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", ["linear_alltoall", "pairwise_alltoall"])
def test_with_postal_costs_an_all_to_all_takes_one_message_after_the_other(name):
    times = ALGORITHMS[name](37, 1000.0, placed(37), SAME_POSTAL, None)
    assert_allclose(times, 36 * 2e-6, rtol=1e-12, atol=0)


TRACED = {
    "broadcast": (Kind.BROADCAST, "binomial_tree"),
    "reduce": (Kind.REDUCE, "binomial_tree"),
    "dissemination": (Kind.BARRIER, "dissemination"),
    "recursive_doubling": (Kind.ALLREDUCE, "recursive_doubling"),
    "rabenseifner": (Kind.ALLREDUCE, "rabenseifner"),
    "ring_allreduce": (Kind.ALLREDUCE, "ring"),
    "ring_allgather": (Kind.ALLGATHER, "ring_allgather"),
    "bruck_allgather": (Kind.ALLGATHER, "bruck_allgather"),
    "pairwise_alltoall": (Kind.ALLTOALL, "pairwise"),
    "linear_alltoall": (Kind.ALLTOALL, "linear"),
}


REDUCING = {"reduce", "recursive_doubling", "rabenseifner", "ring_allreduce"}


def entering(trace, arrival):
    """The same trace where every rank works until its arrival first."""
    programs = []
    for rank, number in enumerate(trace.program_of):
        program = trace.programs[number]
        first = {"kind": np.uint8(Kind.COMPUTE), "peer": np.int32(0), "size": arrival[rank], "tag": np.int32(0)}
        columns = {name: np.append(value, getattr(program, name)) for name, value in first.items()}
        loops = tuple(replace(loop, first=loop.first + 1, last=loop.last + 1) for loop in program.loops)
        programs.append(replace(program, **columns, wait_start=np.append(0, program.wait_start), loops=loops))
    return Trace(tuple(programs), np.arange(len(arrival), dtype=np.int32))


def replayed(trace, places, costs, arrival, algorithms=None):
    """When each rank has finished."""
    schedule = lower(entering(trace, arrival), algorithms, costs.reduction_time)
    ends = replay(schedule, places, costs).end
    return np.maximum.reduceat(ends, schedule.rank_start[:-1])


@st.composite
def random_costs(draw, rendezvous=True):
    """Costs without ties: by distance and protocol, of one side or both, messages taken when asked for or at once."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    units = np.array([1e-6, 1e-9])
    tables = [np.round(random.uniform(0.1, top, (3, 3, 2)) * units, 15) for top in (0.5, 2, 3, 0.5, 1)]
    limits = np.sort(random.integers(1, 4000, (2, 3)), axis=0).T * (1.0 if rendezvous else 1e6)
    if draw(st.booleans()):
        nothing = np.zeros((3, 3, 2))
        return Costs(nothing, tables[1], tables[1], nothing, nothing, limits)
    return Costs(*tables, limits, free_size=1.0, on_arrival=draw(st.booleans()))


def random_arrival(seed, rank_count, spread):
    return np.round(np.random.default_rng(seed).uniform(0, spread, rank_count), 12)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(set(TRACED) - {"linear_alltoall"})),
    st.integers(2, 20),
    st.floats(0, 3000).map(round),
    st.integers(1, 6),
    random_costs(),
    st.integers(0, 99),
    st.sampled_from([0.0, 1e-7, 5e-6]),
    st.sampled_from([0.0, 3.7e-11, 2.3e-9]),
)
def test_rounds_end_when_the_replay_of_the_collective_does(name, count, size, per_node, costs, seed, spread, reduction):
    costs = replace(costs, reduction_time=reduction)
    places, arrival = placed(count, per_node, -(-per_node // 2)), random_arrival(seed, count, spread)
    size = 0 if name == "dissemination" else size
    times = replay_result(ALGORITHMS[name], count, size, places, costs, arrival)
    if isinstance(times, str):
        assert "simulate the trace" in times
        assert costs.receive_overhead.any()
        return
    assert not (reduction and costs.on_arrival and name in REDUCING)
    kind, algorithm = TRACED[name]
    expected = replayed(generate.collective_trace(kind, count, size), places, costs, arrival, {kind: algorithm})
    assert_allclose(times, expected, rtol=1e-7, atol=0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(["faces", "all"]),
    random_costs(rendezvous=False),
    st.integers(0, 99),
    st.sampled_from([0.0, 3e-6]),
    st.integers(1, 4),
    st.sampled_from([0.0, 4e-7]),
)
def test_halos_end_when_the_replay_does(dims, periodic, neighbours, costs, seed, spread, count, work):
    pattern = GridPattern(tuple(dims), 3, 2, periodic=periodic, neighbours=neighbours)
    arrival = random_arrival(seed, pattern.rank_count, spread)
    sizes = np.array([1500.0 / 16 ** len(kind) for kind in message_kinds(len(dims), neighbours)])
    options = {"iteration_count": count, "compute_time": work}
    times = replay_result(halo_times, pattern, sizes, costs, arrival, **options)
    if isinstance(times, str):
        assert "simulate the trace" in times
        assert costs.on_arrival
        return
    trace = generate.halo_trace(pattern, sizes, **options)
    expected = replayed(trace, posted.grid_places(pattern), costs, arrival)
    # Ranks in step may send and take a message at the same tick, in either order: see `halo_times`.
    in_step = not (spread or work or costs.on_arrival) and count > 1 and costs.receive_overhead.any()
    if in_step:
        assert abs(times - expected).max() <= (count - 1) * longest_message(costs, sizes.max())
    else:
        assert_allclose(times, expected, rtol=1e-7, atol=0)


def longest_message(costs, size):
    """From the start of a send to the end of its receive, over all distances and protocols without rendezvous."""
    return float(((costs.flight + costs.receive_overhead)[:, :2] @ [1.0, size]).max())


def test_ranks_in_step_send_and_take_at_the_same_tick_in_either_order():
    """Costs drawn with a seed in which both orders occur: a rank of a replay takes first, one of `halo_times` sends."""
    random = np.random.default_rng(1)
    tables = [np.round(random.uniform(0.1, top, (3, 3, 2)) * np.array([1e-6, 1e-9]), 15) for top in (0.5, 2, 3, 0.5, 1)]
    limits = np.sort(random.integers(1, 4000, (2, 3)), axis=0).T * 1e6
    costs, pattern = Costs(*tables, limits, free_size=1.0), GridPattern((3, 3, 4), 3, 2, neighbours="faces")
    sizes = np.array([1500.0 / 16 ** len(kind) for kind in message_kinds(3, "faces")])

    def both(arrival):
        trace = generate.halo_trace(pattern, sizes, iteration_count=2)
        times = halo_times(pattern, sizes, costs, arrival, iteration_count=2)
        return times, replayed(trace, posted.grid_places(pattern), costs, arrival)

    times, expected = both(np.zeros(36))
    assert (times < expected * 0.99).sum() == 7
    assert abs(times - expected).max() < longest_message(costs, sizes.max())
    assert_allclose(*both(random_arrival(1, 36, 1e-9)), rtol=1e-7, atol=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 9), random_costs(rendezvous=False), st.integers(0, 99), st.sampled_from([0.0, 3e-6]))
def test_linear_all_to_alls_end_when_the_replay_does(count, costs, seed, spread):
    places, arrival = placed(count, 3, 2), random_arrival(seed, count, spread)
    times = linear_alltoall_times(count, 700.0, places, costs, arrival)
    expected = replayed(generate.all_to_all_trace(count, 700.0), places, costs, arrival)
    assert_allclose(times, expected, rtol=1e-7, atol=0)


@pytest.mark.parametrize("rank_count", [1, 8, 100, 1000])
@pytest.mark.parametrize("name", ["broadcast", "reduce"])
@pytest.mark.parametrize(
    "costs",
    [
        loggops_costs(**LOGGOPS),
        loggops_costs(**LOGGOPS, on_arrival=False),
        loggops_costs(**{**LOGGOPS, "threshold": 100}),
        postal_costs([3e-7, 6e-7, 2e-6], [8e9, 6e9, 1e9], 100),
    ],
)
def test_a_tree_compiled_is_the_same_to_the_last_bit(name, rank_count, costs, monkeypatch):
    arguments = (rank_count, 1024.0, placed(rank_count), costs, random_arrival(1, rank_count, 1e-6))
    plain = replay_result(ALGORITHMS[name], *arguments)
    monkeypatch.setattr(steps, "COMPILED_FROM", 2)
    monkeypatch.setattr(steps, "BLOCK", 64)
    assert_array_equal(replay_result(ALGORITHMS[name], *arguments), plain)


@pytest.mark.parametrize("name", ["dissemination", "recursive_doubling", "pairwise_alltoall", "broadcast"])
def test_blocks_do_not_matter(name, monkeypatch):
    places, arrival = placed(300, 7, 3), random_arrival(2, 300, 1e-6)
    costs = postal_costs([3e-7, 6e-7, 2e-6], [8e9, 6e9, 1e9])
    whole = ALGORITHMS[name](300, 100.0, places, costs, arrival)
    monkeypatch.setattr(steps, "BLOCK", 16)
    assert_array_equal(ALGORITHMS[name](300, 100.0, places, costs, arrival), whole)


def test_messages_that_arrive_before_the_work_are_left_to_the_replay():
    pattern, costs = GridPattern((2,), 3, 2), loggops_costs(**LOGGOPS)
    with pytest.raises(UsageError, match="simulate the trace"):
        halo_times(pattern, 64.0, costs, np.array([0.0, 1e-3]), compute_time=1e-6)


def test_a_halo_compiled_is_the_same_to_the_last_bit(monkeypatch):
    pattern, costs = GRIDS[1], loggops_costs(**LOGGOPS, on_arrival=False)
    arrival = random_arrival(3, pattern.rank_count, 1e-5)
    plain = halo_times(pattern, 512.0, costs, arrival, iteration_count=3)
    monkeypatch.setattr(posted, "COMPILED_FROM", 0)
    assert_array_equal(halo_times(pattern, 512.0, costs, arrival, iteration_count=3), plain)


def test_a_million_iterations_of_a_halo_take_no_longer_than_a_few():
    pattern = GridPattern((64, 64), 16, 8, periodic=True)
    costs = loggops_costs(**LOGGOPS)
    one = halo_times(pattern, 1024.0, costs, compute_time=1e-6)
    many = halo_times(pattern, 1024.0, costs, iteration_count=1_000_000, compute_time=1e-6)
    assert_allclose(many, 1_000_000 * one, rtol=1e-12, atol=0)


def test_ranks_in_the_same_place_of_a_grid_share_a_program():
    trace = generate.halo_trace(GridPattern((50, 40), 4, 2), 8.0, iteration_count=10)
    assert len(trace.programs) == 9
    assert trace.rank_count == 2000
    assert len(generate.halo_trace(GridPattern((60,), 4, 2, periodic=True), 8.0).programs) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank_count": 0}, "take part"),
        ({"rank_count": 9}, "8 ranks are placed, but 9 take part"),
        ({"message_size": np.nan}, "size"),
        ({"message_size": -1.0}, "size"),
        ({"message_size": np.inf}, "size"),
        ({"arrival": np.zeros(7)}, "arrival"),
        ({"arrival": np.array([0.0] * 7 + [np.nan])}, "arrival"),
        ({"arrival": np.array([0.0] * 7 + [-1.0])}, "arrival"),
        ({"costs": replace(SAME_POSTAL, node_gap=1e-10)}, "share the network adapter"),
    ],
)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_invalid_arguments_of_patterns_are_refused_with_a_reason(name, change, message):
    given_values = {"rank_count": 8, "message_size": 8.0, "places": placed(8), "costs": SAME_POSTAL, "arrival": None}
    with pytest.raises(UsageError, match=message):
        ALGORITHMS[name](**{**given_values, **change})


def test_too_many_messages_are_refused():
    count = 400_000
    arrival = random_arrival(5, count, 1e-6)
    for name in ("ring_allgather", "pairwise_alltoall", "linear_alltoall"):
        with pytest.raises(UsageError, match="too many to simulate"):
            ALGORITHMS[name](count, 8.0, placed(count), SAME_POSTAL, arrival)
    with pytest.raises(UsageError, match="simulate the trace"):
        linear_alltoall_times(300, 8.0, placed(300), loggops_costs(**LOGGOPS), arrival[:300])


@pytest.mark.parametrize("size", [1e285, 1e300])
def test_messages_of_infinite_times_are_refused(size):
    """Clocks that become infinite would wait for messages without an end."""
    with pytest.raises(UsageError, match=r"a message of 1e\+(285|300) B takes too long to be simulated"):
        halo_times(GridPattern((2, 2), 1, 1), size, SAME_POSTAL)
