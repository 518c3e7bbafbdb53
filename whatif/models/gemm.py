"""Products of matrices on a GPU: tiles, waves of tiles, and the memory that the matrices move through.

A product C = A B of m x k and k x n matrices, `batch_count` times, is computed in square tiles of C, one on each
multiprocessor at a time. Tiles at the edges and the last wave of tiles are not full.
"""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import (
    Bytes,
    BytesPerSecond,
    Count,
    Fraction,
    Operations,
    OperationsPerSecond,
    Seconds,
    model,
)

_SOURCE = "NVIDIA, Matrix Multiplication Background User's Guide: tile and wave quantisation"


@model("W = 2 m n k b", "definition")
def gemm_operations(m: Count, n: Count, k: Count, batch_count: Count) -> Operations:
    """Operations of a product of matrices; a multiply-add counts as two.

    Elementwise over any broadcastable shapes; valid for counts ≥ 0.
    """
    return 2 * m * n * k * batch_count


@model("Q = ((m k + k n) s + m n s_C) b", "definition")
def gemm_size(
    m: Count, n: Count, k: Count, batch_count: Count, element_size: Bytes, result_element_size: Bytes
) -> Bytes:
    """Bytes of A and B, read once, and of C, written once.

    `element_size` is s, `result_element_size` s_C. Elementwise over any broadcastable shapes; valid for counts ≥ 0.
    """
    return ((m * k + k * n) * element_size + m * n * result_element_size) * batch_count


def _filled(m: Count, n: Count, batch_count: Count, tile_extent: Count, multiprocessor_count: Count) -> Fraction:
    """Share of the multiprocessors' time in which they compute elements of C, with tiles of one size."""
    tiles = np.ceil(m / tile_extent) * np.ceil(n / tile_extent) * batch_count
    waves = np.ceil(tiles / multiprocessor_count)
    filled: Fraction = m * n * batch_count / (waves * multiprocessor_count * tile_extent**2)
    return filled


@model("e = max(e(t), e(t / 2)),  e(t) = m n b / (⌈⌈m / t⌉ ⌈n / t⌉ b / N⌉ N t²)", _SOURCE)
def tile_efficiency(
    m: Count, n: Count, batch_count: Count, tile_extent: Count, multiprocessor_count: Count
) -> Fraction:
    """Share of the multiprocessors' time in which they compute elements of C.

    `tile_extent` is t, the rows and columns of a tile; `multiprocessor_count` is N. Libraries choose smaller tiles for
    small matrices: the better of tiles of t and t / 2 counts. Elementwise over any broadcastable shapes; valid for
    counts ≥ 1. Source: NVIDIA, Matrix Multiplication Background User's Guide.
    """
    sizes = (tile_extent, tile_extent / 2)
    efficiency: Fraction = np.maximum(*(_filled(m, n, batch_count, size, multiprocessor_count) for size in sizes))
    return efficiency


@model("e = e_m e_tile", "definition")
def gemm_efficiency(large_efficiency: Fraction, tile_efficiency: Fraction) -> Fraction:
    """Share of the peak that a product reaches: that of large matrices times that of its tiles.

    Elementwise over any broadcastable shapes; valid for fractions from 0 to 1.
    """
    return large_efficiency * tile_efficiency


@model("T = n (r max(W / (P e), Q / BW) + t_l)", "roofline with the efficiency of tiles and waves")
def gemm_time(
    operations: Operations,
    operand_size: Bytes,
    peak_rate: OperationsPerSecond,
    efficiency: Fraction,
    dram_bandwidth: BytesPerSecond,
    ranks_per_gpu: Count,
    launch_count: Count,
    launch_time: Seconds,
) -> Seconds:
    """Time of all launches of a product of matrices on a device that `ranks_per_gpu` (r) ranks share.

    `operations` is W and `operand_size` Q, of one launch; `peak_rate` is P of the precision, `efficiency` e,
    `launch_count` n, `launch_time` t_l. Elementwise over any broadcastable shapes; valid for `peak_rate` > 0,
    `dram_bandwidth` > 0, `efficiency` > 0.
    """
    compute_time = operations / (peak_rate * efficiency)
    time: Seconds = launch_count * (
        ranks_per_gpu * np.maximum(compute_time, operand_size / dram_bandwidth) + launch_time
    )
    return time
