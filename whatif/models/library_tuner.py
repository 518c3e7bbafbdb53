"""Choice between ring and tree of an allreduce, as the tuner of NCCL makes it.

The tuner counts with constants of its own, not with times of the machine, and may choose the slower one. Its protocols
here are LL and Simple: LL128 needs adapters next to the GPUs.
Source: NCCL, src/graph/tuning.cc @b6475625, with NVLink in a domain and hosts of AMD; share of LL of @5067397c.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from whatif.models.gpu_collectives import RING, TREE, TREE_SHARE
from whatif.models.quantities import Bytes, BytesPerSecond, Count, FloatArray, model
from whatif.units import MICROSECOND

CHANNEL_SHARE: Final = 0.8
"""Share of the ports' bandwidth that the tuner counts with: channels of 20 GB/s on ports of 25 GB/s."""
_SIMPLE: Final = 2
"""Place of Simple among the latencies of protocols; that of LL is 0."""
_LARGEST_LL: Final = (22.5e9, 19.0e9)
"""Largest bandwidth of LL in B/s over two nodes, and over more."""
_LL_RING_SHARE, _LL_TREE_SHARE = 0.5, 1 / 3.8
_POST_OVERHEAD: Final = 2.0
"""Least latency of a ring's step in us, to post a message; three times as much with Simple."""
_PLATEAU: Final = 1.4
"""Factor on the latency of rings with Simple."""
_TREE_CHUNK: Final = 28.0
"""Latency of a chunk of a tree with Simple in us, in a domain and between domains."""
_SMALLEST: Final = 64.0
_LL_CORRECTIONS: Final = (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
_SIMPLE_CORRECTIONS: Final = (*[0.9] * 7, 0.8, 0.7, 0.6, 0.6, *[0.5] * 4, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 1)
"""Factors on the bandwidth of trees by powers of two of the buffer, from 64 B on; the last one holds beyond."""
RING_CHOSEN, SHORT_TREE_CHOSEN, LONG_TREE_CHOSEN = 0.0, 1.0, 2.0


class _Operation(NamedTuple):
    """An allreduce, and the bandwidth of its channels."""

    size: FloatArray
    ranks: FloatArray
    in_domain: FloatArray
    domains: FloatArray
    bandwidth: FloatArray


@model("argmin over algorithms of s_d t_d + s_n t_n + n / B", "NCCL, tuning.cc @b6475625")
def tuner_choice(
    message_size: Bytes,
    rank_count: Count,
    domain_count: Count,
    domain_rank_count: Count,
    network_bandwidth: BytesPerSecond,
) -> Count:
    """Algorithm of an allreduce by NCCL's tuner: 0 a ring, 1 a tree with LL, 2 a tree with Simple.

    In one domain it is a ring. Elementwise; valid for counts ≥ 1 and bandwidths > 0.
    """
    bandwidth = CHANNEL_SHARE * network_bandwidth
    operation = _Operation(message_size, rank_count, domain_rank_count, domain_count, bandwidth)
    largest = np.where(domain_count > 2, _LARGEST_LL[1], _LARGEST_LL[0])
    ring, short, long = _ring(operation, largest), _short_tree(operation, largest), _long_tree(operation)
    tree = np.where(short <= long, SHORT_TREE_CHOSEN, LONG_TREE_CHOSEN)
    return np.where((domain_count == 1) | (ring < np.minimum(short, long)), RING_CHOSEN, tree)


def _ring(operation: _Operation, largest: FloatArray) -> FloatArray:
    """Least time of a ring, with LL or Simple."""
    far = 2 * (operation.domains - 1)
    near, sent = 2 * (operation.ranks - 1) - far, 2 * (operation.ranks - 1) / operation.ranks * operation.size
    low, high = (_ring_latency(near, far, at, posted) for at, posted in ((0, 1), (_SIMPLE, 3)))
    narrow = np.minimum(largest, _LL_RING_SHARE * operation.bandwidth)
    return np.minimum(low + sent / narrow, _PLATEAU * high + sent / operation.bandwidth)


def _ring_latency(near: FloatArray, far: FloatArray, protocol: int, posted: int) -> FloatArray:
    """Latency of a ring's steps; each one posts its messages, also inside a domain."""
    start, here, there = (column[protocol] for column in RING)
    return (start + near * max(here, posted * _POST_OVERHEAD) + far * there) * MICROSECOND


def _short_tree(operation: _Operation, largest: FloatArray) -> FloatArray:
    start, here, there = (column[0] * MICROSECOND for column in TREE)
    latency = start + _depth(operation, here, there)
    bandwidth = np.minimum(_LL_TREE_SHARE * TREE_SHARE * operation.bandwidth, largest)
    return latency + 2 * operation.size / (bandwidth * _corrected(operation.size, _LL_CORRECTIONS))


def _long_tree(operation: _Operation) -> FloatArray:
    latency = _depth(operation, _TREE_CHUNK * MICROSECOND, _TREE_CHUNK * MICROSECOND)
    bandwidth = TREE_SHARE * operation.bandwidth * _corrected(operation.size, _SIMPLE_CORRECTIONS)
    return latency + 2 * operation.size / bandwidth


def _depth(operation: _Operation, here: float, there: float) -> FloatArray:
    return 2 * ((operation.in_domain - 1) * here + np.log2(operation.domains) * there)


def _corrected(size: FloatArray, factors: tuple[float, ...]) -> FloatArray:
    starts = _SMALLEST * 2.0 ** np.arange(1, len(factors))
    return np.asarray(np.array(factors)[np.searchsorted(starts, size, side="right")])
