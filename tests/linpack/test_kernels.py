"""HPL's compiled loops against plain Python, brute-force counts and sums by hand."""

from __future__ import annotations

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.errors import UsageError
from whatif.linpack.simulation import layout, loop_kernel, sharing_kernel, solve_kernel
from whatif.linpack.simulation import simulator as simulation
from whatif.linpack.simulation.broadcasts import paths_of
from whatif.linpack.simulation.configuration import Broadcast, Configuration, RowSwap
from whatif.linpack.simulation.costs import KERNELS, mode_factor
from whatif.linpack.simulation.panel import PIVOT, panel_calls
from whatif.linpack.simulation.rolling import roll_pairs, spread_pairs
from whatif.linpack.simulation.simulator import HPLMachine, simulate


def kernels(constant=1e-7, spread=0.0):
    """Every kernel linear, no two alike, with a deviation in proportion."""
    table = np.zeros((len(KERNELS), 5))
    table[0], table[4] = [constant, 1e-11, 1e-10, 2e-10, 3e-10], np.inf
    table[1] = table[0] * spread
    for row in range(5, len(KERNELS)):
        table[row, :2] = constant, row * 1e-10
        table[row, 2:4] = table[row, :2] * spread
    return table


def machine(rank_count, spread=0.1, ranks_per_node=2):
    """Three protocols, and nodes whose ranks share an adapter."""
    row = np.array([0.0, 1e-6, 1e-10, 1e-7, 1e-11, 2e-7, 2e-11, 0.0])
    near = np.array([row, row, row])
    near[:, 0], near[:, 7] = [0.0, 2000.0, 8000.0], [0, 1, 2]
    far = near.copy()
    far[:, 1:3] *= 3
    factors = 1 + 0.01 * np.arange(rank_count)
    return HPLMachine(
        kernels(spread=spread), np.array([near, far]), np.arange(rank_count) // ranks_per_node, factors, 4e-10
    )


def with_modes(other, modes):
    """The machine with so many modes, of a share and a factor each, for messages of every size."""
    cells = np.array([[sum(share for share, _ in modes[: at + 1]), factor] for at, (_, factor) in enumerate(modes)])
    row = np.broadcast_to(cells.ravel(), (*other.pieces.shape[:2], cells.size))
    return dataclasses.replace(other, pieces=np.concatenate([other.pieces, row], axis=2))


def configuration(broadcast=Broadcast.RING, depth=1, swap=RowSwap.MIX, rows=3, columns=2, size=150):
    return Configuration(size, 16, rows, columns, broadcast, depth, swap, 30)


@pytest.mark.parametrize(("broadcast", "depth"), list(itertools.product(Broadcast, (0, 1, 2))))
def test_compiled_runs_are_those_of_plain_python(broadcast, depth, monkeypatch):
    runs = [configuration(broadcast, depth, swap) for swap in RowSwap]
    runs.append(configuration(broadcast, depth, RowSwap.MIX, rows=2, columns=5))
    modes = [(0.7, 1.0), (0.3, 2.5)]
    machines = [with_modes(machine(each.rank_count), modes[: 2 * (at % 2)]) for at, each in enumerate(runs)]
    compiled = [simulate(*each, seed=5, noisy=True, panels_seen=3) for each in zip(runs, machines, strict=True)]
    plain = (loop_kernel.steps, solve_kernel.back_substitute)
    monkeypatch.setattr(simulation, "jitted_or_plain", lambda *_, **__: plain)
    for each, its, found in zip(runs, machines, compiled, strict=True):
        expected = simulate(each, its, seed=5, noisy=True, panels_seen=3)
        assert_allclose(found.ends, expected.ends, rtol=1e-12, atol=0)
        assert_allclose(found.seen, expected.seen, rtol=1e-12, atol=0)
        assert_allclose(found.time, expected.time, rtol=1e-12, atol=0)
        for name, part in expected.components.items():
            assert_allclose(found.components[name], part, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("size", "block", "count"), [(1, 1, 1), (100, 7, 3), (64, 16, 4), (65, 16, 5), (10, 16, 3)])
def test_block_cyclic_sizes_are_those_counted_index_by_index(size, block, count):
    for start, place in itertools.product(range(size + 2), range(count)):
        owned = sum(index // block % count == place for index in range(start, size))
        assert layout.owned_from(start, size, block, place, count) == owned


@pytest.mark.parametrize(("broadcast", "count"), list(itertools.product(Broadcast, range(1, 10))))
def test_every_process_gets_the_whole_panel_and_in_a_ring_once(broadcast, count):
    paths = paths_of(broadcast, count)
    has = [set(range(max(paths.chunk_count, 1))) if place == 0 else set() for place in range(count)]
    received = [0] * count
    for place in range(count):
        for target in (target for target in paths.targets[place] if target >= 0):
            assert has[place], "a process sends what it has not got"
            assert paths.sources[target] == place
            has[target] |= has[place]
            received[target] += 1
    for sender, receiver, first, behind in paths.spread:
        assert has[sender] >= set(range(first, behind))
        has[receiver] |= set(range(first, behind))
    for a, b, there, back in paths.roll:
        assert there in has[a]
        assert back in has[b]
        has[a], has[b] = has[a] | {back}, has[b] | {there}
    assert all(len(its) == max(paths.chunk_count, 1) for its in has)
    if paths.chunk_count == 0:
        assert received == [0] + [1] * (count - 1)


@pytest.mark.parametrize("count", range(1, 12))
def test_spreading_and_rolling_bring_each_chunk_to_each_process_once(count):
    has = [set(range(count)) if place == 0 else set() for place in range(count)]
    for sender, receiver, first, behind in spread_pairs(count):
        assert has[sender] >= set(range(first, behind))
        has[receiver] |= set(range(first, behind))
    has = [{place} for place in range(count)]
    for a, b, there, back in roll_pairs(count):
        assert there in has[a]
        assert back in has[b]
        assert there not in has[b]
        assert back not in has[a]
        has[a].add(back)
        has[b].add(there)
    assert has == [set(range(count))] * count


def test_one_process_takes_the_sum_of_its_kernels():
    size, block = 96, 16
    its = Configuration(size, block, 1, 1)
    table = kernels(constant=0.0)
    slopes = {name: table[row, 1] for row, name in enumerate(KERNELS) if name}

    def product(m, n, k):
        return 1e-11 * m * n * k + 1e-10 * m * n + (2e-10 * m + 3e-10 * n) * k

    expected = 0.0
    for start in range(0, size, block):
        width = min(block, size - start)
        for call in (call for call in panel_calls(its, width) if call is not PIVOT):
            extent = call.fixed + call.each * (size - start - call.done)
            if call.kernel == "dgemm":
                expected += product(extent, call.columns, call.depth)
            else:
                expected += slopes[call.kernel] * extent
        behind = size - start - width
        expected += slopes["dtrsm"] * width**2 * (behind + 1) + slopes["dlaswp00n"] * width * (behind + 1)
        expected += product(behind, behind + 1, width) + slopes["dtrsv"] * width + slopes["dgemv"] * start * width
    assert_allclose(simulate(its, alone(table)).time, expected, rtol=1e-9, atol=0)


def alone(table):
    """A machine of one rank."""
    other = machine(1)
    return HPLMachine(table, other.pieces, other.nodes, np.ones(1))


def test_noise_keeps_the_mean_and_its_lower_bound():
    its = Configuration(200, 16, 1, 1)
    exact = simulate(its, alone(kernels(spread=0.05))).time
    drawn = np.array([simulate(its, alone(kernels(spread=0.05)), seed=seed, noisy=True).time for seed in range(60)])
    assert abs(drawn.mean() - exact) < 4 * drawn.std() / np.sqrt(len(drawn))
    assert drawn.std() > 1e-4 * exact
    assert drawn.min() > exact * (1 - 0.05 * 1.3237)


def test_the_same_seed_gives_the_same_run_on_any_thread():
    its = configuration(Broadcast.TWO_RING, rows=4, columns=4)
    with ThreadPoolExecutor(3) as pool:
        times = list(pool.map(lambda seed: simulate(its, machine(16), seed=seed, noisy=True).time, [1, 2, 3, 1, 2, 3]))
    assert times[:3] == times[3:]
    assert times[:3] == [simulate(its, machine(16), seed=seed, noisy=True).time for seed in (1, 2, 3)]
    assert len(set(times)) == 3


def test_an_exception_of_the_progress_callback_ends_the_run():
    reported = []

    def stop(done, count):
        reported.append((done, count))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(configuration(size=16 * 100), machine(6), progress=stop)
    assert reported == [(64, 100)]


def test_a_machine_with_other_ranks_than_the_grid_is_refused():
    with pytest.raises(UsageError, match="3 x 2 = 6 ranks; the machine has 4"):
        simulate(configuration(), machine(4))


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_pivot_is_searched_in_every_column_however_the_panels_end(depth):
    """The last panel is narrow, and may be among those that are factored ahead of all."""
    table = np.zeros((len(KERNELS), 5))
    table[4], table[KERNELS.index("idamax"), 0] = np.inf, 1.0
    other = machine(2)
    its = Configuration(100, 64, 1, 2, depth=depth)
    found = simulate(its, HPLMachine(table, np.zeros_like(other.pieces), other.nodes, np.ones(2)))
    assert_allclose(found.components["recursive_factorisation"], [[64.0, 36.0]], rtol=1e-12, atol=0)


def test_noise_of_blocks_that_are_taken_together_keeps_the_mean():
    """As far as a process does not wait for others, and takes the longest of several times."""
    its = Configuration(1600, 16, 2, 2, Broadcast.RING)
    other = machine(4)
    still = HPLMachine(kernels(spread=0.02), other.pieces, other.nodes, np.ones(4))
    exact = simulate(its, still).time
    drawn = np.array([simulate(its, still, seed=seed, noisy=True).time for seed in range(30)])
    assert abs(drawn.mean() - exact) < 0.005 * exact
    assert drawn.std() < 0.005 * exact


@pytest.mark.parametrize(("broadcast", "depth"), [(Broadcast.RING, 0), (Broadcast.TWO_RING, 1), (Broadcast.LONG, 1)])
def test_messages_that_all_take_twice_as_long_are_those_of_a_network_half_as_fast(broadcast, depth):
    its = configuration(broadcast, depth, RowSwap.MIX, rows=3, columns=5)
    usual = machine(its.rank_count)
    slow = usual.pieces.copy()
    slow[:, :, 1:3] *= 2
    # With as many draws for messages, so that both have the same pivots.
    half = with_modes(dataclasses.replace(usual, pieces=slow, adapter_gap=2 * usual.adapter_gap), [(1.0, 1.0)])
    drawn = with_modes(usual, [(1.0, 2.0)])
    assert_allclose(simulate(its, drawn, seed=3).time, simulate(its, half, seed=3).time, rtol=1e-12, atol=0)
    assert simulate(its, half, seed=3).time > 1.1 * simulate(its, usual, seed=3).time


def test_frequency_of_a_mode_is_its_share():
    pieces = with_modes(machine(2), [(0.5, 1.0), (0.3, 2.0), (0.2, 10.0)]).pieces
    random = np.random.Generator(np.random.PCG64(1))
    drawn = np.array([mode_factor(pieces, 1, 2, random) for _ in range(20_000)])
    for share, factor in ((0.5, 1.0), (0.3, 2.0), (0.2, 10.0)):
        # Four standard deviations of a count of 20,000.
        assert abs((drawn == factor).mean() - share) < 4 * np.sqrt(share * (1 - share) / 20_000)


def crowds(messages, period, link_count=1, groups=(0, 1), links=(0, 0), is_harmonic=False):
    """Of (begun, ended, sender, receiver, both ways), when every step is like this one."""
    count = len(messages)
    adapters = sharing_kernel.Adapters(
        1.0, link_count, np.ones(4 * link_count), np.ones(count), count, count, np.zeros((count, 7)),
        np.zeros(1, np.int64), is_harmonic, 1, np.zeros(4 * link_count + 1, np.int64), np.zeros(4 * count, np.int64),
        np.zeros(count), np.zeros((4, count)), np.zeros((3, count + 1), np.int64),
    )  # fmt: skip
    marks = np.zeros((len(groups), layout.MARK_COLUMNS), np.int64)
    marks[:, layout.GROUP], marks[:, layout.LINK] = groups, links
    for step in range(600):
        adapters.noted_count[0] = 0
        for place, (begun, ended, *way) in enumerate(messages):
            sharing_kernel.note(adapters, begun + step * period, ended + step * period, *way, place, marks)
        sharing_kernel.settle(adapters, period)
    return [sharing_kernel.crowd_of(adapters, *way, place, marks) for place, (_, _, *way) in enumerate(messages)]


@pytest.mark.parametrize(
    ("messages", "period", "expected"),
    [
        # Together for one of two seconds each; apart; and in opposite directions.
        ([(0, 2, 0, 1, False), (1, 3, 0, 1, False)], 100.0, [1.5, 1.5]),
        ([(0, 2, 0, 1, False), (2, 3, 0, 1, False)], 100.0, [1.0, 1.0]),
        ([(0, 2, 0, 1, False), (0, 2, 1, 0, False)], 100.0, [1.0, 1.0]),
        # An exchange meets both.
        ([(0, 2, 0, 1, False), (0, 2, 1, 0, False), (0, 1, 0, 1, True)], 100.0, [1.5, 1.5, 2.0]),
        # A period later the first is there again, for half of the second.
        ([(0, 1, 0, 1, False), (3, 5, 0, 1, False)], 4.0, [2.0, 1.5]),
    ],
)
def test_messages_are_counted_that_go_the_same_way_in_this_step_or_another(messages, period, expected):
    assert_allclose(crowds(messages, period), expected, rtol=1e-9, atol=0)
    # Half of the time alone, half in two: 2 / (1 + 1/2) where each gets an equal share.
    shared = [4 / 3 if crowd == 1.5 else crowd for crowd in expected]
    assert_allclose(crowds(messages, period, is_harmonic=True), shared, rtol=1e-9, atol=0)


def test_crowds_of_many_messages_are_those_counted_one_by_one():
    random = np.random.default_rng(4)
    begun = random.uniform(0, 100, 60)
    ended = begun + random.uniform(1, 30, 60)
    found = crowds([(*span, 0, 1, False) for span in zip(begun, ended, strict=True)], 100.0, is_harmonic=True)
    times = np.linspace(0, 100, 200_001)[:-1]
    folded = [
        (times + turn > at) & (times + turn < end) for at, end in zip(begun, ended, strict=True) for turn in (0, 100)
    ]
    present = np.sum(folded, axis=0)
    for place in range(60):
        there = folded[2 * place] | folded[2 * place + 1]
        assert_allclose(found[place], 1 / np.mean(1 / present[there]), rtol=1e-3, atol=0)


def test_messages_to_places_that_different_links_lead_to_do_not_meet():
    """Processes 0 and 1 at one switch, 2 and 3 at the other, whose first and second link lead to them."""
    messages = [(0, 2, 0, 2, False), (0, 2, 1, 3, False), (0, 2, 1, 2, False)]
    apart = crowds(messages, 100.0, 2, (0, 0, 1, 1), (0, 1, 0, 1))
    assert_allclose(apart, [2.0, 1.0, 2.0], rtol=1e-9, atol=0)
    assert_allclose(crowds(messages, 100.0, 1, (0, 0, 1, 1), (0, 0, 0, 0)), [3.0, 3.0, 3.0], rtol=1e-9, atol=0)
