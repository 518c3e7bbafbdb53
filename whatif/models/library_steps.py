"""Collectives of GPU libraries with measured parameters: messages that follow each other on one connection.

A rank of a ring or an all-to-all sends one message after another. Each occupies its connection for the gap of its
protocol or for the time of its bytes, whichever is longer, as in LogGP:

    T = t_0 + m max(gap, b / (η B))

The protocol depends on the size b of a message, not on the buffer n: a ring of P ranks has m = P - 1 messages (twice as
many for an allreduce) of n / P. Hence a measurement on few ranks tells the time on many with the same b.

The double binary tree of an allreduce has depth log2 D; a rank has up to three neighbours. Short buffers are sent step
by step (LL), long ones in a pipeline (Simple):

    T_LL = t_0 + 2 log2 D (gap + min(n, c) / B_c) + max(n - c, 0) / B_c
    T_Simple = t_r + 2 log2 D min(3, D - 1) gap_r + 2 n / (0.92 η B_n)

with t_r, gap_r and η of the ring: a rank posts the messages to its neighbours one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from whatif.models.gpu_collectives import TREE_SHARE, Ranks, busy_time
from whatif.models.library_tuner import LONG_TREE_CHOSEN, SHORT_TREE_CHOSEN
from whatif.models.quantities import Bytes, BytesPerSecond, Count, FloatArray, Fraction, Seconds, model

_SOURCE: Final = "Alexandrov et al. 1997 (LogGP); derived from measured curves"
LL_CHUNK: Final = 2.0**17
"""Bytes that four channels hold in one step with LL, 32 KiB each: longer buffers are pipelined."""
_MOST_NEIGHBOURS: Final = 3.0


class Traffic(NamedTuple):
    """Messages that a rank sends in turn, and the least time in which links and ports carry their bytes."""

    message_count: FloatArray
    size: FloatArray
    busy_time: FloatArray


def _ring(message_size: FloatArray, group: Ranks, turns: int) -> Traffic:
    count, size = turns * (group.ranks - 1), message_size / group.ranks
    return Traffic(count, size, busy_time(group, count * size, count * size))


def _pairwise(message_size: FloatArray, group: Ranks) -> Traffic:
    """Messages to every other domain's ranks, or in one domain to its ranks."""
    far, size = group.ranks - group.least, message_size / group.ranks
    count = np.where(group.domains > 1, far, group.ranks - 1)
    return Traffic(count, size, busy_time(group, (group.in_domain - 1) * size, far * size * group.least))


def _switch(message_size: FloatArray, group: Ranks) -> Traffic:
    """The buffer once to the switches of the domain, which reduce, and as in a ring between domains."""
    leaving = 2 * (group.domains - 1) / group.domains * message_size
    return Traffic(np.ones_like(group.ranks), message_size, busy_time(group, message_size, leaving))


TRAFFIC: Final[Mapping[str, Callable[[FloatArray, Ranks], Traffic]]] = {
    "ring": lambda size, group: _ring(size, group, 2),
    "ring_allgather": lambda size, group: _ring(size, group, 1),
    "ring_reduce_scatter": lambda size, group: _ring(size, group, 1),
    "pairwise": _pairwise,
    "hierarchical": _switch,
}
"""Messages of algorithms by name."""


@model("T = t_0 + max(m gap, n_s / (η B)), by protocol of b", _SOURCE)
def library_steps_time(
    message_size: Bytes,
    rank_count: Count,
    domain_count: Count,
    domain_rank_count: Count,
    least_rank_count: Count,
    link_bandwidth: BytesPerSecond,
    network_bandwidth: BytesPerSecond,
    short_limit: Bytes,
    eager_limit: Bytes,
    short_start: Seconds,
    short_gap: Seconds,
    eager_start: Seconds,
    eager_gap: Seconds,
    rendezvous_start: Seconds,
    rendezvous_gap: Seconds,
    bandwidth_share: Fraction,
    *,
    algorithm: str,
) -> Seconds:
    """Time of a collective whose ranks send m messages of b bytes in turn, with measured gaps.

    `message_size` n is the buffer that is reduced or gathered, or what one rank sends to all; n_s / B is the time in
    which the slower of link and ports carries its bytes, η `bandwidth_share`. The gap is that of the first protocol
    whose limit is not less than b. Elementwise; 0 for one rank.
    """
    group = Ranks(rank_count, domain_count, domain_rank_count, least_rank_count, link_bandwidth, network_bandwidth)
    count, size, busy = TRAFFIC[algorithm](message_size, group)
    protocol = [size <= short_limit, size <= eager_limit]
    start = np.select(protocol, [short_start, eager_start], rendezvous_start)
    gap = np.select(protocol, [short_gap, eager_gap], rendezvous_gap)
    time = start + np.maximum(count * gap, busy / bandwidth_share)
    return np.asarray(np.where(rank_count > 1, time, 0.0))


@model("T = t_0 + 2 log2 D (gap + min(n, c) / B_c) + max(n − c, 0) / B_c", _SOURCE)
def short_tree_time(
    message_size: Bytes, domain_count: Count, start: Seconds, gap: Seconds, bandwidth: BytesPerSecond
) -> Seconds:
    """Time of an allreduce of a short buffer along trees of D domains, c bytes at once. Elementwise."""
    step = gap + np.minimum(message_size, LL_CHUNK) / bandwidth
    return start + 2 * np.log2(domain_count) * step + np.maximum(message_size - LL_CHUNK, 0.0) / bandwidth


@model("T = t_0 + 2 log2 D min(3, D − 1) gap + 2 n / (0.92 η B_n)", _SOURCE)
def long_tree_time(
    message_size: Bytes,
    domain_count: Count,
    network_bandwidth: BytesPerSecond,
    rendezvous_start: Seconds,
    rendezvous_gap: Seconds,
    bandwidth_share: Fraction,
) -> Seconds:
    """Time of an allreduce of a long buffer along double binary trees, with the gap of a ring's messages.

    Messages to a parent and two children follow each other. Elementwise.
    """
    messages = 2 * np.log2(domain_count) * np.minimum(_MOST_NEIGHBOURS, domain_count - 1)
    sent = 2 * message_size / (TREE_SHARE * bandwidth_share * network_bandwidth)
    return np.asarray(rendezvous_start + messages * rendezvous_gap + sent)


@model("T = T_ring, T_LL or T_Simple", "choice of the tuner")
def chosen_allreduce_time(
    choice: Count, ring_time: Seconds, short_tree_time: Seconds, long_tree_time: Seconds
) -> Seconds:
    """Time of an allreduce by the algorithm that the tuner chooses. Elementwise."""
    chosen = [choice == SHORT_TREE_CHOSEN, choice == LONG_TREE_CHOSEN]
    return np.select(chosen, [short_tree_time, long_tree_time], ring_time)


@model("T = T_in if D = 1, else T_between", "definition")
def by_domain_count(domain_count: Count, in_domain_time: Seconds, between_domains_time: Seconds) -> Seconds:
    """Time of a collective in one link domain, or over several. Elementwise."""
    return np.where(domain_count > 1, between_domains_time, in_domain_time)
