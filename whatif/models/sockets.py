"""Sockets: cores and memory bandwidth of one rank, by the number of cores that share a memory.

The bandwidth of a memory by active cores is fixed at its two ends, one core and all cores: linear in the cores at
first, then saturated. min(n b, B) is the limit of a large exponent; an exponent of 3 has a smaller error between the
ends (docs/processors.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import (
    Bytes,
    BytesPerSecond,
    Count,
    Fraction,
    Operations,
    OperationsPerSecond,
    PerSecond,
    model,
)

SATURATION_EXPONENT: Final = 3.0
"""Exponent of the saturation of a memory by cores."""

CORE_CACHE: Final = 256.0 * 1024
"""Cache in B that every core has for itself; assumed, as the second-level cache of most server processors is larger."""

_SATURATION: Final = "form fitted to triads by number of cores, docs/processors.md"


@model("p = ⌊S C / t⌋", "definition; HPL's rule: one rank for each core")
def ranks_on_cores(core_count: Count, socket_count: Count, threads_per_rank: Count) -> Count:
    """Ranks on a full node without GPUs: one for each core, or for each `threads_per_rank` cores; at least 1."""
    return np.maximum(np.floor(core_count * socket_count / threads_per_rank), 1.0)


@model("c = ⌊S C / p⌋, or S C / p where it is less than 1", "definition: cores are shared evenly")
def rank_cores(core_count: Count, socket_count: Count, ranks_per_node: Count) -> Count:
    """Cores of one rank on a full node; less than 1 where several ranks take turns on a core.

    Elementwise; valid for counts ≥ 1.
    """
    share = core_count * socket_count / ranks_per_node
    return np.where(share >= 1, np.floor(share), share)


@model("c' = min(c, t)", "definition")
def threaded_cores(core_count: Count, threads_per_rank: Count) -> Count:
    """Cores that the threads of one rank use, of those that it has."""
    return np.minimum(core_count, threads_per_rank)


@model("⌈p / S⌉, or p / S where a rank spans sockets", "definition")
def socket_ranks(ranks_per_node: Count, socket_count: Count) -> Count:
    """Ranks that keep one socket of a full node busy; less than 1 where a rank runs on several sockets."""
    share = ranks_per_node / socket_count
    return np.where(share >= 1, np.ceil(share), share)


@model("S D", "definition")
def domain_count(socket_count: Count, numa_domain_count: Count) -> Count:
    """NUMA domains of a node; `numa_domain_count` is that of one socket."""
    return socket_count * numa_domain_count


@model("C / D", "definition")
def domain_cores(core_count: Count, numa_domain_count: Count) -> Count:
    """Cores of one NUMA domain of a socket."""
    return core_count / numa_domain_count


@model("B / D", "definition")
def domain_bandwidth(memory_bandwidth: BytesPerSecond, numa_domain_count: Count) -> BytesPerSecond:
    """Sustained memory bandwidth of one NUMA domain of a socket."""
    return memory_bandwidth / numa_domain_count


@model("n = min(C, r c)", "definition: the fullest domain decides, as ranks have equal work")
def active_cores(core_count: Count, sharing_count: Count, rank_core_count: Count) -> Count:
    """Active cores of the fullest NUMA domain.

    `sharing_count` (r) are the ranks in it, `rank_core_count` (c) the cores of each, `core_count` (C) its own.
    Elementwise; valid for counts > 0.
    """
    return np.minimum(core_count, sharing_count * rank_core_count)


@model("B(n) = b / ((1 − w) / n^a + w)^(1/a),  w = max(0, (b / B)^a − C^-a) / (1 − C^-a),  a = 3", _SATURATION)
def active_bandwidth(
    active_count: Count, core_count: Count, core_bandwidth: BytesPerSecond, memory_bandwidth: BytesPerSecond
) -> BytesPerSecond:
    """Memory bandwidth of a NUMA domain with some of its cores active: b with one core, B with all C of them.

    `core_bandwidth` is b, `memory_bandwidth` B. Where all cores draw less than B, it is n b. Elementwise; valid for
    0 < `active_count` ≤ `core_count` and bandwidths > 0; b is at most B. Mean error between the ends: 1 % on Fugaku's
    A64FX, 12 % on two Xeon E5-2695 v4 (docs/processors.md).
    """
    one_core = np.minimum(core_bandwidth, memory_bandwidth)
    all_linear = core_count**-SATURATION_EXPONENT
    excess = np.maximum((one_core / memory_bandwidth) ** SATURATION_EXPONENT - all_linear, 0.0)
    weight = excess / np.where(core_count > 1, 1 - all_linear, 1.0)
    return one_core / ((1 - weight) * active_count**-SATURATION_EXPONENT + weight) ** (1 / SATURATION_EXPONENT)


@model("B c / n", "definition: active cores share a memory evenly")
def rank_bandwidth(active_bandwidth: BytesPerSecond, active_count: Count, rank_core_count: Count) -> BytesPerSecond:
    """Share of one rank in the memory bandwidth B that n active cores of a domain have together; c may span domains."""
    return active_bandwidth * rank_core_count / active_count


@model("B / r", "definition: ranks of a GPU share its memory evenly")
def device_bandwidth(dram_bandwidth: BytesPerSecond, ranks_per_gpu: Count) -> BytesPerSecond:
    """Memory bandwidth of one rank on a GPU while all ranks of the GPU use it. Elementwise; valid for counts > 0."""
    return dram_bandwidth / ranks_per_gpu


@model("B_cached = max(B, B_c c / C) where W ≤ S c / (D n), else B", "definition")
def cached_bandwidth(
    rank_bandwidth: BytesPerSecond,
    working_set: Bytes,
    cache_size: Bytes,
    cache_bandwidth: BytesPerSecond,
    core_count: Count,
    numa_domain_count: Count,
    active_count: Count,
    rank_core_count: Count,
) -> BytesPerSecond:
    """Bandwidth of one rank whose `working_set` (W) may fit into its share of the last-level caches of its domains.

    `cache_size` (S), `cache_bandwidth` (B_c), `core_count` (C) and `numa_domain_count` (D) are those of one socket;
    `active_count` (n) are the active cores of a domain, `rank_core_count` (c) those of this rank. Elementwise; valid
    for sizes ≥ 0, counts and bandwidths > 0.
    """
    fits = working_set <= cache_size * rank_core_count / (numa_domain_count * active_count)
    cached = np.maximum(rank_bandwidth, cache_bandwidth * rank_core_count / core_count)
    return np.where(fits, cached, rank_bandwidth)


@model("B' = max(B, b c) where W ≤ 256 KiB, else B", "assumed, docs/collectives.md")
def near_bandwidth(
    rank_bandwidth: BytesPerSecond, working_set: Bytes, core_bandwidth: BytesPerSecond, rank_core_count: Count
) -> BytesPerSecond:
    """Bandwidth of one rank whose `working_set` (W) may fit the cache of its core, which no other core slows down.

    `core_bandwidth` (b) is that of one core from memory, less than that from its cache; `rank_core_count` (c) its
    cores, at most one. Elementwise; valid for sizes ≥ 0 and bandwidths > 0.
    """
    alone = np.maximum(rank_bandwidth, core_bandwidth * np.asarray(rank_core_count))
    return np.where(np.asarray(working_set) <= CORE_CACHE, alone, rank_bandwidth)


@model("b' = b / (1 + (q / Q − 1) b / R)", "no overlap of the two transfers of a core, docs/processors.md")
def reusing_bandwidth(
    bandwidth: BytesPerSecond, dram_size: Bytes, load_store_size: Bytes, reuse_bandwidth: BytesPerSecond
) -> BytesPerSecond:
    """Bandwidth of cores for a kernel that loads data again from their first caches.

    The time of `dram_size` (Q) at `bandwidth` (b), and of the rest of what it loads and stores (`load_store_size`, q)
    at `reuse_bandwidth` (R), follow each other. Elementwise; valid for sizes ≥ 0 and bandwidths > 0; q < Q counts as
    Q, and without a stream (Q = 0) it is b.
    """
    streamed = np.where(np.asarray(dram_size) > 0, dram_size, np.inf)
    again = np.maximum(load_store_size - dram_size, 0.0) / streamed
    return bandwidth / (1.0 + again * bandwidth / reuse_bandwidth)


@model("φ B_peak", "rule sustained share, docs/machines.md")
def sustained_bandwidth(memory_bandwidth: BytesPerSecond, sustained_fraction: Fraction) -> BytesPerSecond:
    """Sustained memory bandwidth of a socket from its peak."""
    return memory_bandwidth * sustained_fraction


@model("b = max(f, 1 / C) B", "rule core share, docs/machines.md")
def typical_core_bandwidth(
    memory_bandwidth: BytesPerSecond, core_fraction: Fraction, core_count: Count
) -> BytesPerSecond:
    """Memory bandwidth of one core from that of its socket: a share f, at least that of all cores together."""
    return memory_bandwidth * np.maximum(core_fraction, 1 / core_count)


@model("R / C", "definition")
def core_rate(peak_rate: OperationsPerSecond, core_count: Count) -> OperationsPerSecond:
    """Peak rate of one core of a socket."""
    return peak_rate / core_count


@model("f w", "definition")
def clocked_rate(sustained_clock: PerSecond, operations_per_cycle: Operations) -> OperationsPerSecond:
    """Peak rate of one core at its sustained clock."""
    return sustained_clock * operations_per_cycle


@model("2 R", "rule vector, docs/machines.md")
def doubled_rate(double_rate: OperationsPerSecond) -> OperationsPerSecond:
    """Single-precision rate of a processor that states only its double-precision one: vectors hold twice as many."""
    return 2 * double_rate


@model("P = c R e_mix", "Williams et al. 2009, with the operation mix of gpuroofperf")
def rank_rate(
    rank_core_count: Count, core_rate: OperationsPerSecond, operation_mix_fraction: Fraction
) -> OperationsPerSecond:
    """Compute roof of a kernel on the cores of one rank; `operation_mix_fraction` as in `roofline.attainable_rate`."""
    return rank_core_count * core_rate * operation_mix_fraction
