"""Arithmetic of reductions: bytes combined by each algorithm, and their time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.models.collectives import ALGORITHMS, binomial_tree_sizes
from whatif.models.reductions import COMBINING, reduction_time
from whatif.models.sockets import near_bandwidth
from whatif.simulation.round_patterns import collective_rounds

RANKS = [1, 2, 3, 6, 8, 13, 64, 100]
SIZE = 1e6


def combined(algorithm: str, ranks: int) -> float:
    """Bytes that the busiest process combines, over the size of the buffer; Thakur et al. 2005, sections 4.3 to 4.5."""
    below, steps = 2 ** (ranks.bit_length() - 1), math.ceil(math.log2(ranks))
    halving = 1 - 1 / below + (ranks != below)
    return {
        "binomial_tree": steps,
        "linear_reduce": ranks - 1,
        "recursive_doubling": math.floor(math.log2(ranks)) + (ranks != below),
        "rabenseifner": halving,
        "recursive_halving": halving,
    }.get(algorithm, (ranks - 1) / ranks)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("algorithm", sorted(COMBINING))
def test_bytes_combined_are_those_of_the_source_and_of_the_schedule(algorithm: str, ranks: int) -> None:
    counts = COMBINING[algorithm](np.array(float(ranks)))
    sizes = ALGORITHMS[algorithm][0](np.array(SIZE), np.array(float(ranks)))
    scheduled = "binomial_reduce" if algorithm == "binomial_tree" else algorithm
    rounds = collective_rounds(scheduled, ranks, ranks, 1, 4)
    found = sum(item.share * item.repeats * item.combining for item in rounds)
    assert_allclose([(counts * sizes).sum() / SIZE, found], combined(algorithm, ranks), rtol=1e-12, atol=0)


def test_counts_on_a_grid_equal_single_points() -> None:
    ranks = np.array(RANKS, dtype=float)
    for algorithm, counts_of in COMBINING.items():
        sizes_of, bandwidth = ALGORITHMS[algorithm][0], np.array(2e9)
        together = reduction_time(counts_of(ranks), sizes_of(np.array(SIZE), ranks), bandwidth)
        alone = [reduction_time(counts_of(each), sizes_of(np.array(SIZE), each), bandwidth) for each in ranks]
        np.testing.assert_array_equal(together, alone)


def test_a_byte_combined_moves_three() -> None:
    counts, sizes = np.array([2.0]), binomial_tree_sizes(np.array(1e6), np.array(4.0))
    assert_allclose(reduction_time(counts, sizes, np.array([1e9, 2e9])), [6e-3, 3e-3], rtol=1e-15, atol=0)


def test_a_reduction_that_multicasts_or_switches_combines_inside_a_domain_only() -> None:
    rounds = collective_rounds("switch_reduction", 24, 24, 1, 4)
    assert [item.combining for item in rounds] == [1, 1, 0, 0, 0]
    nested = collective_rounds("hierarchical", 24, 24, 1, 4)
    assert_allclose(sum(item.share * item.repeats * item.combining for item in nested), 1 - 1 / 24, rtol=1e-12, atol=0)
    assert not any(item.combining for item in collective_rounds("switch_multicast", 32, 32, 1, 4))


def test_a_block_in_the_cache_of_a_core_has_the_bandwidth_of_one_core() -> None:
    sets = np.array([1.0, 256 * 1024, 256 * 1024 + 1])
    assert near_bandwidth(np.array(2e9), sets, np.array(2e10), np.array(1.0)).tolist() == [2e10, 2e10, 2e9]
    assert near_bandwidth(np.array(2e9), np.array(1.0), np.array(2e10), np.array(0.05)) == 2e9
