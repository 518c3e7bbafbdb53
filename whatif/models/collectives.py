"""Collective operations as rounds of point-to-point messages, over any point-to-point model.

An algorithm is two functions of the message size and the number of processes: `.._sizes`, the bytes of the largest
message of each kind of round, and `.._counts`, how often that kind of round occurs; `ALGORITHMS` has them by name.
The trailing axis "round" lists the kinds, as many as the largest process count needs; kinds that a smaller
one does not need have count 0. Pass the sizes to a point-to-point model (with the other arguments expanded by
a trailing axis of length 1) and the times to `rounds_time`. All processes enter at once, a round ends for all
when its largest message has arrived, and a process sends one message and receives one at a time. The arithmetic of
a reduction (the γ of the source) is in `whatif.models.reductions`. Valid for P ≥ 1 and n ≥ 0; all counts are zero
for P = 1.

Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005; dissemination: Hensgen, Finkel
and Manber, "Two algorithms for barrier synchronization", International Journal of Parallel Programming 17(1),
1988; ring allreduce: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np

from whatif import units
from whatif.models.quantities import Bytes, Core, Count, FloatArray, Seconds, model

RoundSizes = Annotated[FloatArray, units.BYTE, Core("round")]
RoundCounts = Annotated[FloatArray, units.ONE, Core("round")]
RoundTimes = Annotated[FloatArray, units.SECOND, Core("round")]

_THAKUR = "Thakur, Rabenseifner and Gropp 2005"
_RING = "Patarasuk and Yuan 2009"
_HENSGEN = "Hensgen, Finkel and Manber 1988"


@model("T = Σ_r c_r T(n_r)", _THAKUR)
def rounds_time(round_counts: RoundCounts, round_times: RoundTimes) -> Seconds:
    """Time of a collective: the sum over kinds of round of count times duration.

    Sums along the axis "round"; the other axes broadcast. Valid for finite times.
    """
    # A running sum adds from left to right, so that padding with zero counts never changes the last bit.
    running: Seconds = np.cumsum(round_counts * round_times, axis=-1)[..., -1]
    return running


def _floor_log2(process_count: Count) -> Count:
    """⌊lg P⌋ for P ≥ 1, exact where a rounded logarithm could be off by one."""
    mantissa, exponent = np.frexp(process_count)
    # Only the mantissa of NaN is NaN; an infeasible point must stay NaN.
    return exponent - 1.0 + 0.0 * mantissa


def _ceil_log2(process_count: Count) -> Count:
    """⌈lg P⌉ for P ≥ 1, exact."""
    return _floor_log2(process_count) + _is_no_power_of_two(process_count)


def _is_no_power_of_two(process_count: Count) -> Count:
    """1 where P is not a power of two, else 0."""
    mantissa = np.frexp(process_count)[0]
    return np.where(mantissa == 0.5, 0.0, 1.0) + 0.0 * mantissa


def _rounds(last_round: Count) -> RoundCounts:
    """Round numbers 1, 2, .. along a new trailing axis, as many as any point of the grid needs."""
    return np.arange(1.0, np.fmax.reduce(last_round, axis=None, initial=1.0) + 1)


def _one_round(sizes_or_counts: FloatArray) -> FloatArray:
    return np.expand_dims(sizes_or_counts, -1)


@model("n_r = n", _THAKUR)
def binomial_tree_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of a broadcast or reduce along a binomial tree, and of recursive doubling: the whole message."""
    return _one_round(message_size + np.zeros_like(process_count))


@model("c = ⌈lg P⌉", _THAKUR)
def binomial_tree_counts(process_count: Count) -> RoundCounts:
    """Rounds of a broadcast or reduce along a binomial tree; each doubles the processes that hold the message."""
    return _one_round(_ceil_log2(process_count))


@model("c = ⌊lg P⌋ + 2 [P ≠ 2^i]", _THAKUR)
def recursive_doubling_counts(process_count: Count) -> RoundCounts:
    """Rounds of an allreduce by recursive doubling.

    If P is not a power of two, MPICH adds two rounds: surplus processes first send their data to a neighbour
    and finally receive the result from it.
    """
    return _one_round(_floor_log2(process_count) + 2 * _is_no_power_of_two(process_count))


@model("n_r = n / P", _RING)
def ring_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of an allreduce around a ring: one block of n/P (blocks may be fractions)."""
    return _one_round(message_size / process_count)


@model("c = 2 (P − 1)", _RING)
def ring_counts(process_count: Count) -> RoundCounts:
    """Rounds of an allreduce around a ring: P - 1 for the reduce-scatter, P - 1 for the allgather."""
    return _one_round(2 * (process_count - 1))


@model("n_0 = n,  n_r = n / 2^r", _THAKUR)
def rabenseifner_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of Rabenseifner's allreduce: the whole message for surplus processes, then n/2, n/4, ..

    Kind 0 is the rounds of the surplus processes, kind r ≥ 1 those that exchange n / 2^r.
    """
    halvings = np.concatenate([[0.0], _rounds(_floor_log2(process_count))])
    shares: FloatArray = np.exp2(-halvings)
    return _one_round(message_size + np.zeros_like(process_count)) * shares


@model("c_0 = 2 [P ≠ 2^i],  c_r = 2 [r ≤ ⌊lg P⌋]", _THAKUR)
def rabenseifner_counts(process_count: Count) -> RoundCounts:
    """Rounds of Rabenseifner's allreduce: each size once in the reduce-scatter and once in the allgather.

    If P is not a power of two, as in MPICH: surplus processes send all their data to a neighbour before and
    receive the whole result afterwards. Rabenseifner's own variant splits the first step in two halves.
    """
    last_round = _floor_log2(process_count)
    surplus = _one_round(2 * _is_no_power_of_two(process_count))
    halvings = np.where(_rounds(last_round) <= _one_round(last_round), 2.0, 0.0)
    return np.concatenate([surplus, halvings], axis=-1)


@model("n_r = 0", _HENSGEN)
def dissemination_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of a dissemination barrier: 0, for any `message_size`."""
    return _one_round(np.zeros_like(message_size + process_count))


@model("c = ⌈lg P⌉", _HENSGEN)
def dissemination_counts(process_count: Count) -> RoundCounts:
    """Rounds of a dissemination barrier; in round r each process signals the one 2^r further on."""
    return _one_round(_ceil_log2(process_count))


@model("n_r = n / P", _THAKUR)
def ring_allgather_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of an allgather around a ring: n/P of the n = `message_size` bytes gathered in total.

    Also those of a pairwise all-to-all, where n is what one process sends to all, itself included.
    """
    return _one_round(message_size / process_count)


@model("c = P − 1", _THAKUR)
def ring_allgather_counts(process_count: Count) -> RoundCounts:
    """Rounds of an allgather around a ring, and of a pairwise all-to-all: in round r each process sends to the one r
    further on."""
    return _one_round(process_count - 1)


@model("n_r = min(2^(r−1), P − 2^(r−1)) n / P", _THAKUR)
def bruck_allgather_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of an allgather by Bruck's algorithm; `message_size` is the total gathered.

    Each round doubles the blocks that a process holds; the last one sends the rest. For a power of two the
    cost equals that of recursive doubling, which needs a power of two.
    """
    held = np.exp2(_rounds(_ceil_log2(process_count)) - 1)
    blocks = np.minimum(held, _one_round(process_count) - held)
    return np.maximum(blocks, 0.0) * _one_round(message_size / process_count)


@model("c_r = [r ≤ ⌈lg P⌉]", _THAKUR)
def bruck_allgather_counts(process_count: Count) -> RoundCounts:
    """Rounds of an allgather and of an all-to-all by Bruck's algorithm: one per size."""
    last_round = _ceil_log2(process_count)
    return np.where(_rounds(last_round) <= _one_round(last_round), 1.0, 0.0)


@model("n_r = Σ_(i<P) [bit r − 1 of i] n / P", _THAKUR)
def bruck_alltoall_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of an all-to-all by Bruck's algorithm: blocks travel by powers of two, half of them a round."""
    step = np.exp2(_rounds(_ceil_log2(process_count)) - 1)
    count = _one_round(process_count)
    whole, rest = np.divmod(count, 2 * step)
    blocks: FloatArray = whole * step + np.maximum(rest - step, 0.0)
    return blocks * _one_round(message_size / process_count)


@model("n_r = n / (2 P)", _RING)
def bidirectional_ring_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of an allreduce around a ring in both directions: half of a block."""
    return _one_round(message_size / (2 * process_count))


@model("c = 4 (P − 1)", _RING)
def bidirectional_ring_counts(process_count: Count) -> RoundCounts:
    """Rounds of an allreduce around a ring in both directions, one after the other."""
    return _one_round(4 * (process_count - 1))


@model("n_0 = n,  n_1 = n / P,  n_r = n / 2^(r−1)", _THAKUR)
def recursive_halving_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of a reduce-scatter by recursive halving; `message_size` is the buffer that is reduced.

    Kind 0 is what surplus processes send, kind 1 the block that they receive in the end.
    """
    whole, halves = np.split(rabenseifner_sizes(message_size, process_count), [1], axis=-1)
    block = _one_round(message_size / process_count)
    return np.concatenate([whole, np.broadcast_to(block, whole.shape), halves], axis=-1)


@model("c_0 = c_1 = [P ≠ 2^i],  c_r = [r − 1 ≤ ⌊lg P⌋]", _THAKUR)
def recursive_halving_counts(process_count: Count) -> RoundCounts:
    """Rounds of a reduce-scatter by recursive halving: each half once."""
    whole, halves = np.split(rabenseifner_counts(process_count) / 2, [1], axis=-1)
    return np.concatenate([whole, whole, halves], axis=-1)


@model("n_r = min(2^(r−1), P − 2^(r−1)) n / P,  n_0 = n / P", _THAKUR)
def scatter_ring_allgather_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of a long broadcast: the message is scattered along a tree, then gathered around a ring."""
    block = ring_allgather_sizes(message_size, process_count)
    return np.concatenate([block, bruck_allgather_sizes(message_size, process_count)], axis=-1)


@model("c_0 = P − 1,  c_r = [r ≤ ⌈lg P⌉]", _THAKUR)
def scatter_ring_allgather_counts(process_count: Count) -> RoundCounts:
    """Rounds of a long broadcast: the ring of the allgather, and those of the tree."""
    return np.concatenate([ring_allgather_counts(process_count), bruck_allgather_counts(process_count)], axis=-1)


@model("c = P − 1", "definition")
def linear_counts(process_count: Count) -> RoundCounts:
    """Messages between the root and all others, one after the other."""
    return _one_round(process_count - 1)


@model("T = min over algorithms of T_a", "definition")
def fastest_time(*times: Seconds) -> Seconds:
    """Time of the fastest algorithm. Elementwise."""
    return np.asarray(np.minimum.reduce(np.broadcast_arrays(*times)))


@model("n' = f n", "definition")
def largest_size(message_size: Bytes, imbalance: Count) -> Bytes:
    """Buffer of an all-to-all whose messages are all as large as the largest, f times the mean. Elementwise.

    Valid for f from 1 to the number of ranks P, where one of the P messages of a rank has all of its bytes.
    In every round of a pairwise exchange some rank sends to the busiest one, and the others wait for it.
    """
    return message_size * imbalance


SizesAndCounts = tuple[Callable[[Bytes, Count], RoundSizes], Callable[[Count], RoundCounts]]
_TREE: SizesAndCounts = bruck_allgather_sizes, bruck_allgather_counts
"""Gather and scatter along a binomial tree: the messages of the root are those of Bruck's allgather."""
_BLOCKS: SizesAndCounts = ring_allgather_sizes, linear_counts
_WHOLE: SizesAndCounts = binomial_tree_sizes, linear_counts
ALGORITHMS: Mapping[str, SizesAndCounts] = {
    "binomial_tree": (binomial_tree_sizes, binomial_tree_counts),
    "recursive_doubling": (binomial_tree_sizes, recursive_doubling_counts),
    "ring": (ring_sizes, ring_counts),
    "bidirectional_ring": (bidirectional_ring_sizes, bidirectional_ring_counts),
    "rabenseifner": (rabenseifner_sizes, rabenseifner_counts),
    "dissemination": (dissemination_sizes, dissemination_counts),
    "ring_allgather": (ring_allgather_sizes, ring_allgather_counts),
    "bruck_allgather": (bruck_allgather_sizes, bruck_allgather_counts),
    "pairwise": (ring_allgather_sizes, ring_allgather_counts),
    "bruck_alltoall": (bruck_alltoall_sizes, bruck_allgather_counts),
    "recursive_halving": (recursive_halving_sizes, recursive_halving_counts),
    "ring_reduce_scatter": _BLOCKS,
    "pairwise_reduce_scatter": _BLOCKS,
    "scatter_ring_allgather": (scatter_ring_allgather_sizes, scatter_ring_allgather_counts),
    "linear_broadcast": _WHOLE,
    "linear_reduce": _WHOLE,
    "binomial_gather": _TREE,
    "linear_gather": _BLOCKS,
    "binomial_scatter": _TREE,
    "linear_scatter": _BLOCKS,
}
"""Functions (bytes, counts) for each kind of round, by name of the algorithm."""
