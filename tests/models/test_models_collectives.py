"""Collective models against simulated ranks that exchange their blocks; one element represents one byte."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from whatif.models.collectives import ALGORITHMS, rounds_time
from whatif.models.postal import postal

Data = NDArray[np.int64]
PROCESS_COUNTS = range(1, 34)
LATENCY, BANDWIDTH = np.float64(2e-6), np.float64(1e9)


class Network:
    """Network that moves the messages of one round at a time and records the size of the largest."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def exchange(self, messages: dict[tuple[int, int], Data]) -> dict[int, Data]:
        senders, receivers = zip(*messages, strict=True)
        assert len(set(senders)) == len(senders), "a rank sends one message in a round"
        assert len(set(receivers)) == len(receivers), "a rank receives one message in a round"
        self.rounds.append(max(len(data) for data in messages.values()))
        return {receiver: data.copy() for (_, receiver), data in messages.items()}


def contributions(ranks: int, length: int) -> list[Data]:
    return list(np.random.default_rng(ranks).integers(1, 1000, (ranks, length)))


def power_of_two_below(ranks: int) -> int:
    return 2 ** (ranks.bit_length() - 1)


def binomial_tree(network: Network, ranks: int, length: int) -> None:
    message = contributions(1, length)[0]
    held = {0: message}
    while len(held) < ranks:
        targets = {rank: rank + len(held) for rank in held if rank + len(held) < ranks}
        held |= network.exchange({(rank, target): held[rank] for rank, target in targets.items()})
    assert all(np.array_equal(data, message) for data in held.values())


def fold_surplus(network: Network, data: list[Data]) -> list[int]:
    """Send the data of surplus even ranks to their odd neighbours; return the remaining ranks."""
    surplus = len(data) - power_of_two_below(len(data))
    if surplus:
        received = network.exchange({(2 * i, 2 * i + 1): data[2 * i] for i in range(surplus)})
        for rank, message in received.items():
            data[rank] = data[rank] + message
    return [2 * i + 1 for i in range(surplus)] + list(range(2 * surplus, len(data)))


def unfold_surplus(network: Network, data: list[Data]) -> None:
    surplus = len(data) - power_of_two_below(len(data))
    if surplus:
        for rank, message in network.exchange({(2 * i + 1, 2 * i): data[2 * i + 1] for i in range(surplus)}).items():
            data[rank] = message


def recursive_doubling(network: Network, ranks: int, length: int) -> None:
    data = contributions(ranks, length)
    total = sum(data)
    group = fold_surplus(network, data)
    distance = 1
    while distance < len(group):
        pairs = {(rank, group[i ^ distance]): data[rank] for i, rank in enumerate(group)}
        for rank, message in network.exchange(pairs).items():
            data[rank] = data[rank] + message
        distance *= 2
    unfold_surplus(network, data)
    assert all(np.array_equal(result, total) for result in data)


def rabenseifner(network: Network, ranks: int, length: int) -> None:
    data = contributions(ranks, length)
    total = sum(data)
    group = fold_surplus(network, data)
    segments = dict.fromkeys(group, (0, length))
    distance = len(group) // 2
    while distance:
        kept, messages = {}, {}
        for i, rank in enumerate(group):
            start, stop = segments[rank]
            halves = (start, (start + stop) // 2), ((start + stop) // 2, stop)
            upper = bool(i & distance)
            kept[rank], given = halves[upper], halves[not upper]
            messages[rank, group[i ^ distance]] = data[rank][slice(*given)]
        segments = kept
        for rank, message in network.exchange(messages).items():
            data[rank][slice(*segments[rank])] += message
        distance //= 2
    distance = 1
    while distance < len(group):
        partner = {rank: group[i ^ distance] for i, rank in enumerate(group)}
        received = network.exchange({(r, partner[r]): data[r][slice(*segments[r])] for r in group})
        for rank, message in received.items():
            data[rank][slice(*segments[partner[rank]])] = message
        segments = {
            rank: (min(a, b), max(c, d))
            for rank in group
            for (a, c), (b, d) in [(segments[rank], segments[partner[rank]])]
        }
        distance *= 2
    unfold_surplus(network, data)
    assert all(np.array_equal(result, total) for result in data)


def ring(network: Network, ranks: int, length: int) -> None:
    data = [list(vector.reshape(ranks, -1)) for vector in contributions(ranks, length)]
    total = np.sum(data, axis=0)
    for step in range(ranks - 1):
        sent = {(r, (r + 1) % ranks): data[r][(r - step) % ranks] for r in range(ranks)}
        for rank, block in network.exchange(sent).items():
            data[rank][(rank - 1 - step) % ranks] = data[rank][(rank - 1 - step) % ranks] + block
    for step in range(ranks - 1):
        sent = {(r, (r + 1) % ranks): data[r][(r + 1 - step) % ranks] for r in range(ranks)}
        for rank, block in network.exchange(sent).items():
            data[rank][(rank - step) % ranks] = block
    assert all(np.array_equal(np.array(blocks), total) for blocks in data)


def dissemination(network: Network, ranks: int, _length: int) -> None:
    heard = [{rank} for rank in range(ranks)]
    distance = 1
    while any(len(others) < ranks for others in heard):
        network.exchange({(r, (r + distance) % ranks): np.empty(0, np.int64) for r in range(ranks)})
        heard = [heard[rank] | heard[rank - distance] for rank in range(ranks)]
        distance *= 2


def ring_allgather(network: Network, ranks: int, length: int) -> None:
    blocks = contributions(ranks, length // ranks)
    held = [{rank: block} for rank, block in enumerate(blocks)]
    for step in range(ranks - 1):
        sent = {(r, (r + 1) % ranks): held[r][(r - step) % ranks] for r in range(ranks)}
        for rank, block in network.exchange(sent).items():
            held[rank][(rank - 1 - step) % ranks] = block
    assert all(np.array_equal(h[i], blocks[i]) for h in held for i in range(ranks))


def bruck_allgather(network: Network, ranks: int, length: int) -> None:
    size = length // ranks
    blocks = contributions(ranks, size)
    held = list(blocks)
    count = 1
    while count < ranks:
        given = min(count, ranks - count) * size
        received = network.exchange({(r, (r - count) % ranks): held[r][:given] for r in range(ranks)})
        held = [np.concatenate([held[rank], received[rank]]) for rank in range(ranks)]
        count = min(2 * count, ranks)
    gathered = np.concatenate(blocks)
    assert all(np.array_equal(np.roll(data, rank * size), gathered) for rank, data in enumerate(held))


def pairwise(network: Network, ranks: int, length: int) -> None:
    blocks = [data.reshape(ranks, -1) for data in contributions(ranks, length // ranks * ranks)]
    held = [{rank: blocks[rank][rank]} for rank in range(ranks)]
    for step in range(1, ranks):
        sent = {(rank, (rank + step) % ranks): blocks[rank][(rank + step) % ranks] for rank in range(ranks)}
        for rank, block in network.exchange(sent).items():
            held[rank][(rank - step) % ranks] = block
    assert all(np.array_equal(h[i], blocks[i][rank]) for rank, h in enumerate(held) for i in range(ranks))


def bruck_alltoall(network: Network, ranks: int, length: int) -> None:
    """Blocks by their way still to go; those whose way has the bit of a round are sent by it."""
    size = length // ranks
    blocks = [data.reshape(ranks, -1) for data in contributions(ranks, size * ranks)]
    held = [{way: blocks[rank][(rank + way) % ranks] for way in range(ranks)} for rank in range(ranks)]
    step = 1
    while step < ranks:
        ways = [way for way in range(ranks) if way & step]
        sent = {(r, (r + step) % ranks): np.concatenate([held[r][way] for way in ways]) for r in range(ranks)}
        for rank, data in network.exchange(sent).items():
            held[rank] |= dict(zip(ways, data.reshape(len(ways), -1), strict=True))
        step *= 2
    for rank in range(ranks):
        for way, block in held[rank].items():
            assert np.array_equal(block, blocks[(rank - way) % ranks][rank])


def binomial_gather(network: Network, ranks: int, length: int) -> None:
    blocks = contributions(ranks, length // ranks)
    held = {rank: [block] for rank, block in enumerate(blocks)}
    step = 1
    while step < ranks:
        senders = [rank for rank in held if rank % (2 * step) == step]
        sent = {(rank, rank - step): np.concatenate(held.pop(rank)) for rank in senders}
        for rank, data in network.exchange(sent).items():
            held[rank].append(data)
        step *= 2
    assert np.array_equal(np.concatenate(held[0]), np.concatenate(blocks))


def recursive_halving(network: Network, ranks: int, length: int) -> None:
    data = contributions(ranks, length)
    total = sum(data)
    group = fold_surplus(network, data)
    segments = dict.fromkeys(group, (0, length))
    distance = len(group) // 2
    while distance:
        messages = {}
        for i, rank in enumerate(group):
            start, stop = segments[rank]
            halves = (start, (start + stop) // 2), ((start + stop) // 2, stop)
            segments[rank], given = halves[bool(i & distance)], halves[not i & distance]
            messages[rank, group[i ^ distance]] = data[rank][slice(*given)]
        for rank, message in network.exchange(messages).items():
            data[rank][slice(*segments[rank])] += message
        distance //= 2
    assert all(np.array_equal(data[rank][slice(*part)], total[slice(*part)]) for rank, part in segments.items())
    surplus = ranks - len(group)
    if surplus:
        # The block of a surplus rank is in the segment of its neighbour.
        network.exchange({(2 * i + 1, 2 * i): data[2 * i + 1][: length // ranks] for i in range(surplus)})


SIMULATIONS: dict[str, Callable[[Network, int, int], None]] = {
    simulation.__name__: simulation
    for simulation in (
        binomial_tree,
        recursive_doubling,
        ring,
        rabenseifner,
        dissemination,
        ring_allgather,
        bruck_allgather,
        pairwise,
        bruck_alltoall,
        binomial_gather,
        recursive_halving,
    )
}


def modelled_rounds(algorithm: str, ranks: int, length: int) -> list[float]:
    sizes, counts = ALGORITHMS[algorithm]
    per_kind = zip(
        sizes(np.float64(length), np.float64(ranks)).tolist(), counts(np.float64(ranks)).tolist(), strict=True
    )
    return [size for size, count in per_kind for _ in range(int(count))]


@pytest.mark.parametrize("ranks", PROCESS_COUNTS)
@pytest.mark.parametrize("algorithm", SIMULATIONS)
def test_rounds_and_bytes_of_the_simulated_exchange(algorithm: str, ranks: int) -> None:
    length = 2 * math.lcm(ranks, power_of_two_below(ranks))
    network = Network()
    SIMULATIONS[algorithm](network, ranks, length)
    assert sorted(modelled_rounds(algorithm, ranks, length)) == sorted(network.rounds)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_collectives_on_a_grid_equal_single_points(algorithm: str) -> None:
    sizes, counts = ALGORITHMS[algorithm]
    processes, message = np.arange(1.0, 2000.0)[:, np.newaxis], np.array([0.0, 8.0, 1e7 / 3])
    grid = rounds_time(counts(processes), postal(sizes(message, processes), LATENCY, BANDWIDTH))
    assert grid.shape == (1999, 3)
    for row in (*range(130), 1022, 1023, 1024, 1998):
        for column in range(3):
            point = processes[row, 0], message[column]
            times = postal(sizes(point[1], point[0]), LATENCY, BANDWIDTH)
            assert rounds_time(counts(point[0]), times) == grid[row, column]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_collective_of_one_process_takes_no_time(algorithm: str) -> None:
    sizes, counts = ALGORITHMS[algorithm]
    one = np.float64(1.0)
    assert rounds_time(counts(one), postal(sizes(np.float64(1e6), one), LATENCY, BANDWIDTH)) == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_invalid_process_count_gives_nan(algorithm: str) -> None:
    sizes, counts = ALGORITHMS[algorithm]
    processes = np.array([np.nan, 24.0])
    times = rounds_time(counts(processes), postal(sizes(np.float64(1e6), processes), LATENCY, BANDWIDTH))
    assert np.isnan(times).tolist() == [True, False]


def test_round_counts_are_exact_near_large_powers_of_two() -> None:
    _, counts = ALGORITHMS["binomial_tree"]
    processes = np.array([2.0**50 - 1, 2.0**50, 2.0**50 + 1])
    assert counts(processes)[:, 0].tolist() == [50.0, 50.0, 51.0]


@pytest.mark.parametrize("ranks", [2, 16, 1024, 24, 1023])
def test_rabenseifner_cost_equals_mpich(ranks: int) -> None:
    # (2 ⌊lg p⌋) α + 2 (p' - 1)/p' n β, and 2 α + 2 n β more where p is no power of two p'.
    below = power_of_two_below(ranks)
    surplus = 2 * (ranks != below)
    sizes, counts = ALGORITHMS["rabenseifner"]
    times = postal(sizes(np.float64(1e6), np.float64(ranks)), LATENCY, BANDWIDTH)
    expected = (2 * math.log2(below) + surplus) * 2e-6 + (2 * (below - 1) / below + surplus) * 1e-3
    assert_allclose(rounds_time(counts(np.float64(ranks)), times), expected, rtol=1e-13, atol=0)


def test_bruck_equals_recursive_doubling_for_powers_of_two() -> None:
    # Thakur et al. 2005: lg p α + (p - 1)/p n β.
    sizes, counts = ALGORITHMS["bruck_allgather"]
    times = postal(sizes(np.float64(1e6), np.float64(64)), LATENCY, BANDWIDTH)
    assert_allclose(rounds_time(counts(np.float64(64)), times), 6 * 2e-6 + 63 / 64 * 1e-3, rtol=1e-14, atol=0)
