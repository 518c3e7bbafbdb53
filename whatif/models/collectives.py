"""Collective operations as rounds of point-to-point messages, over any point-to-point model.

An algorithm is two functions of the message size and the number of processes: `<algorithm>_sizes`, the bytes
of the largest message of each kind of round, and `<algorithm>_counts`, how often that kind of round occurs.
The trailing axis "round" lists the kinds, as many as the largest process count needs; kinds that a smaller
one does not need have count 0. Pass the sizes to a point-to-point model (with the other arguments expanded by
a trailing axis of length 1) and the times to `rounds_time`. All processes enter at once, a round ends for all
when its largest message has arrived, a process sends one message and receives one at a time, and computation
(the γ of the source) is not counted. Valid for P ≥ 1 and n ≥ 0; all counts are zero for P = 1.

Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
International Journal of High Performance Computing Applications 19(1), 2005; dissemination: Hensgen, Finkel
and Manber, "Two algorithms for barrier synchronization", International Journal of Parallel Programming 17(1),
1988; ring allreduce: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", Journal of Parallel and Distributed Computing 69(2), 2009.
"""

from __future__ import annotations

from collections.abc import Callable
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
    """Bytes per round of a broadcast or reduce along a binomial tree: the whole message."""
    return _one_round(message_size + np.zeros_like(process_count))


@model("c = ⌈lg P⌉", _THAKUR)
def binomial_tree_counts(process_count: Count) -> RoundCounts:
    """Rounds of a broadcast or reduce along a binomial tree; each doubles the processes that hold the message."""
    return _one_round(_ceil_log2(process_count))


@model("n_r = n", _THAKUR)
def recursive_doubling_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of an allreduce by recursive doubling: the whole message."""
    return _one_round(message_size + np.zeros_like(process_count))


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
    """Bytes per round of an allgather around a ring: n/P of the n = `message_size` bytes gathered in total."""
    return _one_round(message_size / process_count)


@model("c = P − 1", _THAKUR)
def ring_allgather_counts(process_count: Count) -> RoundCounts:
    """Rounds of an allgather around a ring."""
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
    """Rounds of an allgather by Bruck's algorithm: one per size."""
    last_round = _ceil_log2(process_count)
    return np.where(_rounds(last_round) <= _one_round(last_round), 1.0, 0.0)


@model("n_r = n / P", _THAKUR)
def pairwise_sizes(message_size: Bytes, process_count: Count) -> RoundSizes:
    """Bytes per round of a pairwise all-to-all; `message_size` is what one process sends to all, itself included."""
    return _one_round(message_size / process_count)


@model("c = P − 1", _THAKUR)
def pairwise_counts(process_count: Count) -> RoundCounts:
    """Rounds of a pairwise all-to-all: in round r each process sends to the one r further on."""
    return _one_round(process_count - 1)


ALGORITHMS: dict[str, tuple[Callable[[Bytes, Count], RoundSizes], Callable[[Count], RoundCounts]]] = {
    "binomial_tree": (binomial_tree_sizes, binomial_tree_counts),
    "recursive_doubling": (recursive_doubling_sizes, recursive_doubling_counts),
    "ring": (ring_sizes, ring_counts),
    "rabenseifner": (rabenseifner_sizes, rabenseifner_counts),
    "dissemination": (dissemination_sizes, dissemination_counts),
    "ring_allgather": (ring_allgather_sizes, ring_allgather_counts),
    "bruck_allgather": (bruck_allgather_sizes, bruck_allgather_counts),
    "pairwise": (pairwise_sizes, pairwise_counts),
}
"""Functions (bytes, counts) for each kind of round, by name of the algorithm."""
