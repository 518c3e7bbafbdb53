"""Arithmetic of reductions by messages: how often a process combines a block that it receives, and the time of it.

The source charges γ for each byte that is combined. A byte needs `TRAFFIC` bytes of memory traffic, at the bandwidth of
the core that runs the library, while the other ranks of the node do the same; an addition takes a core less time than
its operands take to arrive, from a memory as well as from a last-level cache. `COMBINING` has the counts of each kind
of round in the order of `whatif.models.collectives`; like those, they are zero for P = 1.

Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", International
Journal of High Performance Computing Applications 19(1), 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from whatif.models.collectives import (
    RoundCounts,
    RoundSizes,
    bidirectional_ring_counts,
    binomial_tree_counts,
    linear_counts,
    rabenseifner_counts,
    recursive_doubling_counts,
    recursive_halving_counts,
    ring_counts,
)
from whatif.models.quantities import Bytes, BytesPerSecond, Count, Seconds, model

SOURCE: Final = "Thakur, Rabenseifner and Gropp 2005"
TRAFFIC: Final = 3.0
"""Bytes through memory for each byte combined: the received one and the own one are read, the result is written."""


@model("T = Σ_r g_r 3 n_r / B", f"{SOURCE}: γ n, with γ = 3 / B by the bytes through memory")
def reduction_time(
    combining_counts: RoundCounts, round_sizes: RoundSizes, reducing_bandwidth: BytesPerSecond
) -> Seconds:
    """Time in which a process combines the blocks that it receives with its own.

    `combining_counts` (g) is how often a kind of round ends with a combination of its n_r bytes, `reducing_bandwidth`
    (B) the memory bandwidth of the one core that a process combines with, while all others do. A combination of
    doubles by a core takes less arithmetic than traffic by an order of magnitude, so that flops do not count. Sums
    along the axis "round"; the other axes broadcast. Valid for B > 0.
    """
    combined = np.cumsum(combining_counts * round_sizes, axis=-1)[..., -1]
    return np.asarray(TRAFFIC * combined / reducing_bandwidth)


@model("T = T_messages + T_reduction", SOURCE)
def operation_time(rounds_time: Seconds, reduction_time: Seconds) -> Seconds:
    """Time of a reduction whose messages and arithmetic do not overlap. Elementwise."""
    return rounds_time + reduction_time


@model("W = 2 n", "definition")
def reduced_set(message_size: Bytes) -> Bytes:
    """Data that a reduction reuses: the buffer, and what is received to combine with it. Elementwise."""
    return 2 * np.asarray(message_size)


@model("g_0 = [P ≠ 2^i],  g_r = [r ≤ ⌊lg P⌋]", SOURCE)
def rabenseifner_combinations(process_count: Count) -> RoundCounts:
    """Combinations of Rabenseifner's allreduce: each size once, in the reduce-scatter."""
    return rabenseifner_counts(process_count) / 2


@model("g = P − 1", SOURCE)
def ring_combinations(process_count: Count) -> RoundCounts:
    """Combinations of an allreduce around a ring: those of the reduce-scatter."""
    return ring_counts(process_count) / 2


@model("g = 2 (P − 1)", SOURCE)
def bidirectional_ring_combinations(process_count: Count) -> RoundCounts:
    """Combinations of half blocks of an allreduce around a ring in both directions."""
    return bidirectional_ring_counts(process_count) / 2


@model("g = ⌈lg P⌉", SOURCE)
def recursive_doubling_combinations(process_count: Count) -> RoundCounts:
    """Combinations of an allreduce by recursive doubling: surplus processes receive the result in the last round."""
    return recursive_doubling_counts(process_count) - rabenseifner_combinations(process_count)[..., :1]


@model("g_0 = [P ≠ 2^i],  g_1 = 0,  g_r = [r − 1 ≤ ⌊lg P⌋]", SOURCE)
def recursive_halving_combinations(process_count: Count) -> RoundCounts:
    """Combinations of a reduce-scatter by recursive halving: none of the block of surplus processes."""
    counts = recursive_halving_counts(process_count)
    return counts * np.where(np.arange(counts.shape[-1]) == 1, 0.0, 1.0)


COMBINING: Final[Mapping[str, Callable[[Count], RoundCounts]]] = {
    "binomial_tree": binomial_tree_counts,
    "linear_reduce": linear_counts,
    "recursive_doubling": recursive_doubling_combinations,
    "rabenseifner": rabenseifner_combinations,
    "ring": ring_combinations,
    "bidirectional_ring": bidirectional_ring_combinations,
    "recursive_halving": recursive_halving_combinations,
    "ring_reduce_scatter": linear_counts,
    "pairwise_reduce_scatter": linear_counts,
}
"""Number of combinations of each kind of round, by algorithm of a reduction at one distance."""
