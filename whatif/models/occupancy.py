"""Rates of a GPU that a kernel with few blocks does not fill.

Blocks are distributed evenly over the multiprocessors; the one with the most blocks decides. A multiprocessor reaches
its rates only with enough threads to hide latencies. Derivation and errors: docs/devices.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from whatif.models.quantities import Bytes, BytesPerSecond, Count, OperationsPerSecond, Seconds, model

_ROUNDING: Final = 1e-12
"""Relative error of a growth factor, at most."""
_SOURCE = "whatif, from kernels with 1 to 16,384 blocks on an H100"


@model("n_b = ⌈n_p g⌉", "definition")
def grown_blocks(block_count: Count, growth_factor: Count) -> Count:
    """Blocks of a launch with `growth_factor` (g) times the work of the profiled one with n_p blocks; at least one."""
    # Rounding of g must not add a block, which may be a wave of its own: 84 blocks times 9/7 are 108, not 109.
    return np.maximum(np.ceil(block_count * growth_factor * (1 - _ROUNDING)), 1.0)


@model("P_b = P n_b / (N c) min(1, c τ / τ_c),  c = ⌈n_b / N⌉", _SOURCE)
def filled_rate(
    rate: OperationsPerSecond,
    block_count: Count,
    block_size: Count,
    multiprocessor_count: Count,
    full_threads: Count,
) -> OperationsPerSecond:
    """Compute rate of a device on which a launch has `block_count` (n_b) blocks of `block_size` (τ) threads.

    `rate` is P, that of all multiprocessors (N) if they are full; c is the largest number of blocks on one, and
    `full_threads` (τ_c) are the threads that reach its rate. Elementwise over any broadcastable shapes; valid for
    counts ≥ 1.
    """
    largest = np.ceil(block_count / multiprocessor_count)
    busy = block_count / (multiprocessor_count * largest)
    return rate * busy * np.minimum(1.0, largest * block_size / full_threads)


@model("BW_b = min(BW, n_b τ q / L)", "Little 1961; streams on seven GPUs, docs/devices.md")
def filled_bandwidth(
    bandwidth: BytesPerSecond, latency: Seconds, in_flight_size: Bytes, block_count: Count, block_size: Count
) -> BytesPerSecond:
    """Bandwidth of device memory or a cache that `block_count` (n_b) blocks of `block_size` (τ) threads draw.

    `bandwidth` is BW, that of many threads; each thread has `in_flight_size` (q) in flight during the `latency` (L).
    Elementwise over any broadcastable shapes; valid for counts ≥ 1, `latency` ≥ 0.
    """
    flight = block_count * block_size * in_flight_size
    # min(BW, flight / L), also without a latency.
    return flight / np.maximum(latency, flight / bandwidth)
