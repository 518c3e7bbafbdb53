"""Collectives of GPU libraries (NCCL, RCCL) between link domains: latencies by protocol, bandwidths of links and ports.

A library sends by one of three protocols: LL (flags next to the data, half the bandwidth, least latency), LL128 and
Simple (whole buffers). It pipelines the buffer, so that latencies and bandwidths add up over an operation:

    T = min over protocols of φ (t_0 + steps in domains · t_d + steps between domains · t_n) + bytes / (η B)

Constants: default tuner of NCCL, src/graph/tuning.cc at 5067397c (Apache-2.0), for InfiniBand. Over several domains
they are too short by the factor φ, which is from measured allreduces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Count, FloatArray, Seconds, model
from whatif.units import MICROSECOND

_SOURCE: Final = "NCCL, src/graph/tuning.cc @5067397c"


class Latencies(NamedTuple):
    """Latencies in us by protocol: LL, LL128, Simple."""

    start: tuple[float, float, float]
    in_domain: tuple[float, float, float]
    between_domains: tuple[float, float, float]


RING: Final = Latencies((6.6, 14.0, 8.4), (0.6, 1.9, 3.4), (2.7, 4.0, 14.0))
TREE: Final = Latencies((6.8, 14.0, 8.4), (0.6, 1.25, 4.0), (5.0, 8.5, 14.0))
PROTOCOL_SHARES: Final = (0.5, 0.92, 1.0)
"""Share of the bandwidth that carries data."""
LL_SHARES: Final = (0.3, 0.09, 0.075)
"""Largest rate of LL as a share of the link's bandwidth, in one domain, over two, over more: the tuner's figures for
NVLink 2 to 5 are 0.26 to 0.31, 0.075 to 0.1 and 0.063 to 0.078."""
BETWEEN_DOMAINS: Final = 1.7
"""Factor φ on the latencies of an operation over several domains: that of allreduces below 1 MiB on 16 GPUs of three
machines with InfiniBand or RoCE (validation/gpu_collectives.csv). With the factor of the two others, the times of each
are off by a factor of 1.1 to 1.3. Over Slingshot and EFA latencies may be two to four times as long."""
TREE_SHARE: Final = 0.92
"""Share of the bandwidth that a tree reaches."""


class Ranks(NamedTuple):
    """Ranks of a collective, and the bandwidths at which one sends in its domain and its domain sends to others.

    `in_domain` is the largest number of ranks in a domain, `least` the smallest; `network` is of the smallest domain.
    """

    ranks: FloatArray
    domains: FloatArray
    in_domain: FloatArray
    least: FloatArray
    link: FloatArray
    network: FloatArray


def busy_time(group: Ranks, sent: FloatArray, leaving: FloatArray) -> Seconds:
    """Time of the slower of the links, which carry what a rank sends, and the ports, what leaves its domain."""
    return np.maximum(sent / group.link, np.where(group.domains > 1, leaving / group.network, 0.0))


def _ring(n: Bytes, group: Ranks, turns: int) -> Seconds:
    """Blocks around one ring of all ranks, `turns` times."""
    steps = turns * (group.ranks - 1)
    far = np.where(group.domains > 1, steps * group.domains / group.ranks, 0.0)
    sent = steps / group.ranks * n
    return _fastest(group, RING, steps - far, far, sent, sent)


def _chain(n: Bytes, group: Ranks) -> Seconds:
    """The whole buffer from rank to rank in a pipeline, as it is broadcast or reduced."""
    far = np.where(group.domains > 1, group.domains - 1, 0.0)
    return _fastest(group, RING, group.ranks - 1 - far, far, n, n)


def _tree(n: Bytes, group: Ranks) -> Seconds:
    """Two binary trees over domains, chains inside: every rank, and every domain, sends 2 n, up and down.

    Each tree has half the buffer; a domain is a leaf of one and an inner vertex, with two children, of the other.
    """
    near, far = 2 * (group.in_domain - 1), 2 * np.log2(group.domains)
    sent = 2 * n / TREE_SHARE
    return _fastest(group, TREE, near, far, sent, sent)


def _hierarchical(n: Bytes, group: Ranks) -> Seconds:
    """Reduce-scatter in domains, rings between them on all ports at once, allgather in domains, in a pipeline."""
    near, far = 2 * (group.in_domain - 1), 2 * (group.domains - 1)
    return _fastest(group, RING, near, far, near / group.in_domain * n, far / group.domains * n)


def _pairwise(n: Bytes, group: Ranks) -> Seconds:
    """Messages from every rank to every other one, all at once."""
    near, far = group.in_domain - 1, group.ranks - group.in_domain
    leaving = (group.ranks - group.least) / group.ranks * n * group.least
    return _fastest(group, RING, np.minimum(near, 1.0), np.minimum(far, 1.0), near / group.ranks * n, leaving)


def _fastest(
    group: Ranks, latencies: Latencies, near: FloatArray, far: FloatArray, sent: Bytes, leaving: Bytes
) -> Seconds:
    """Time by the fastest protocol, of steps in and between domains and bytes that a rank and a domain send."""
    ceiling = np.where(group.domains > 2, LL_SHARES[2], np.where(group.domains > 1, LL_SHARES[1], LL_SHARES[0]))
    factor = np.where(group.domains > 1, BETWEEN_DOMAINS, 1.0)
    best: FloatArray = np.full((), np.inf)
    for at, share in enumerate(PROTOCOL_SHARES):
        busy = busy_time(group, sent, leaving) / share
        busy = np.maximum(busy, sent / (ceiling * group.link)) if at == 0 else busy
        start, here, there = (column[at] * MICROSECOND for column in latencies)
        best = np.fmin(best, factor * (start + near * here + far * there) + busy)
    return np.where(group.ranks > 1, best, 0.0)


_CHOSEN: Final = ("ring", "double_binary_tree")
LIBRARY_ALGORITHMS: Final[Mapping[str, Callable[[Bytes, Ranks], Seconds]]] = {
    "ring": lambda n, group: _ring(n, group, 2),
    "double_binary_tree": _tree,
    "hierarchical": _hierarchical,
    "ring_allgather": lambda n, group: _ring(n, group, 1),
    "ring_reduce_scatter": lambda n, group: _ring(n, group, 1),
    "ring_broadcast": _chain,
    "pairwise": _pairwise,
}
"""Algorithms of a library by name."""


@model("T = min over protocols of φ (t_0 + s_d t_d + s_n t_n) + max(n_d / B_d, n_n / B_n) / η", _SOURCE)
def library_time(
    message_size: Bytes,
    rank_count: Count,
    domain_count: Count,
    domain_rank_count: Count,
    least_rank_count: Count,
    link_bandwidth: BytesPerSecond,
    network_bandwidth: BytesPerSecond,
    *,
    algorithm: str,
    switch_reduction: bool = False,
) -> Seconds:
    """Time of a collective of a GPU library on P ranks in D link domains (`domain_count`).

    The domain with the most ranks has `domain_rank_count`, the one with the fewest `least_rank_count`.
    `message_size` n is the buffer that is reduced, gathered or broadcast, or what one rank sends to all;
    `link_bandwidth` B_d that of a rank in its domain, `network_bandwidth` B_n that of the domain with the fewest ranks
    to the others. s_d and s_n are the steps in and between domains, n_d and n_n the bytes that a rank and a domain
    send; φ is `BETWEEN_DOMAINS`, in one domain 1. `best` is the faster allreduce of ring and tree, and of the
    hierarchical one where switches reduce. Elementwise; 0 for one rank; valid for counts ≥ 1 and bandwidths > 0.
    """
    group = Ranks(rank_count, domain_count, domain_rank_count, least_rank_count, link_bandwidth, network_bandwidth)
    chosen = [algorithm] if algorithm != "best" else [*_CHOSEN, *(["hierarchical"] if switch_reduction else [])]
    return np.asarray(np.minimum.reduce([LIBRARY_ALGORITHMS[name](message_size, group) for name in chosen]))


@model("B_d = min(d − 1, q) B in a mesh, 2 B in a ring, B at a switch", "definition")
def domain_link_bandwidth(
    link_bandwidth: BytesPerSecond,
    domain_rank_count: Count,
    peer_count: Count = np.asarray(np.inf),  # noqa: B008 - never changed
    *,
    topology: Literal["mesh", "ring", "switch"],
) -> BytesPerSecond:
    """Bandwidth at which a GPU sends to all others of its domain of d, over links of bandwidth B. Elementwise.

    A device of a mesh has links for q others (`peer_count`), which it shares out among more.
    """
    others = np.maximum(domain_rank_count - 1, 1.0)
    links = {"mesh": np.minimum(others, peer_count), "ring": np.minimum(others, 2.0), "switch": np.ones_like(others)}
    return link_bandwidth * links[topology]


@model("B_n = m_0 B_N / max(p, min(C, g))", "definition")
def group_bandwidth(
    injection_bandwidth: BytesPerSecond,
    least_rank_count: Count,
    ranks_per_node: Count,
    port_count: Count,
    gpu_count: Count,
) -> BytesPerSecond:
    """Bandwidth at which the domain with the fewest ranks m_0 of a group sends to the others.

    p ranks of a node share its C ports evenly, whether all send or not; a rank alone reaches the ports of its own GPU,
    of g in the node, or one. Elementwise; m_0 may be more than p where a domain has several nodes.
    """
    own = np.minimum(port_count, gpu_count)
    return injection_bandwidth * least_rank_count / np.maximum(ranks_per_node, own)
