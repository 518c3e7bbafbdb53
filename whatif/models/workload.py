"""Work of a rank from its part of the grid: cells, surfaces, messages, kernel metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from whatif import units
from whatif.models.phase import KindSize
from whatif.models.placement import RankCounts
from whatif.models.quantities import Bytes, Core, Count, FloatArray, Fraction, Seconds, model

Cells = Annotated[FloatArray, units.ONE, Core("dimension")]


def along_dimensions(*extents: FloatArray) -> Cells:
    """Numbers of cells or ranks, one argument per dimension, joined along the trailing axis `dimension`."""
    return np.stack(np.broadcast_arrays(*extents), axis=-1)


@model("N = Π N_d", "definition")
def cell_count(cells: Cells) -> Count:
    """Number of cells of a box: the product over its dimensions, shape [..., dimension] -> [...]."""
    return np.asarray(np.prod(cells, axis=-1))


@model("M' = max(M, e Π N_d)", "definition")
def memory_with_cells(memory_size: Bytes, cells: Cells, element_size: Bytes) -> Bytes:
    """Memory of a rank, at least one copy of its cells of e bytes each: shapes [...], [..., dimension] -> [...]."""
    return np.asarray(np.maximum(memory_size, element_size * np.prod(cells, axis=-1)))


@model("N · P", "definition")
def repeated_cells(cell_count: Count, rank_count: Count) -> Count:
    """Number of cells of all ranks, each with a box of its own (weak scaling)."""
    return cell_count * rank_count


@model("N_d · P_d", "definition")
def joined_cells(cells: Cells, extents: Cells) -> Cells:
    """Extents of the whole grid, with one box of cells per rank of a grid of ranks (weak scaling)."""
    return cells * extents


@model("N = Π N_d / Π M_d", "definition; Choi et al. 2020, sec. 7 names the scaling of kernels as future work")
def volume_growth(cells: Cells, profiled_cells: Cells) -> Count:
    """Work of a kernel over all cells of the rank's box, relative to the box of the profiled run."""
    return np.asarray(np.prod(cells / profiled_cells, axis=-1))


def _surface(cells: FloatArray) -> FloatArray:
    return np.asarray(np.sum(np.prod(cells, axis=-1, keepdims=True) / cells, axis=-1))


@model("Σ_d Π_{e≠d} N_e / Σ_d Π_{e≠d} M_e", "definition")
def surface_growth(cells: Cells, profiled_cells: Cells) -> Count:
    """Work of a kernel over the faces of the rank's box (packing, unpacking), relative to the profiled run."""
    return _surface(cells) / _surface(profiled_cells)


@model("X' = X · scale", "definition")
def scaled(metric: FloatArray, scale_factor: Count) -> FloatArray:
    """A kernel metric for all launches of one iteration on one rank."""
    return metric * scale_factor


@model("launches / profiled launches · growth", "definition")
def launch_scale(launch_count: Count, profiled_launch_count: Count, growth_factor: Count) -> Count:
    """Factor from the metrics of a whole profile to those of one iteration."""
    return launch_count / profiled_launch_count * growth_factor


@model("n = e · w^|S| · Π_{d∉S} N_d", "definition: a halo w cells deep, displaced in the dimensions S")
def halo_sizes(cells: Cells, halo_width: Count, element_size: Bytes, *, kinds: Sequence[tuple[int, ...]]) -> KindSize:
    """Message size of each kind: a slab, an edge or a corner of the rank's box, `halo_width` cells deep."""
    sizes = [element_size * _shared_cells(cells, halo_width, kind) for kind in kinds]
    return np.stack(np.broadcast_arrays(*sizes), axis=-1)


def _shared_cells(cells: FloatArray, halo_width: FloatArray, kind: tuple[int, ...]) -> FloatArray:
    along = [cells[..., d] for d in range(cells.shape[-1]) if d not in kind]
    result = halo_width ** len(kind)
    for extent in along:
        result = result * extent
    return result


@model("w ≤ N_d where N_d < all cells along d", "definition: a rank has the cells that it sends")
def halo_fits(halo_width: Count, cells: Cells, all_cells: Cells) -> Count:
    """1 where the halo is at most as wide as the rank's box along every dimension that ranks share, else 0.

    Unknown extents (NaN) fit: another constraint refuses them.
    """
    exceeds = np.expand_dims(halo_width, -1) > cells
    return np.asarray(~np.any(exceeds & (cells < all_cells), axis=-1), dtype=np.float64)


def by_kind(*sizes: Bytes) -> KindSize:
    """Sizes stated by the file, one argument per kind of message, joined along the trailing axis `kind`."""
    return np.stack(np.broadcast_arrays(*sizes), axis=-1)


@model("x_c + x_m ≤ 1", "Konstantinidis and Cotronis 2017: shares of one instruction mix")
def mix_fits(compute_fraction: Fraction, load_store_fraction: Fraction) -> Count:
    """1 where the shares of an instruction mix sum to at most 1, else 0."""
    return np.asarray(compute_fraction + load_store_fraction <= 1 + 1e-12, dtype=np.float64)


@model("T = t_e + (T' - t_e) r R' / R,  t_e = min(T', t_l)", "definition: a kernel limited by one rate of the device")
def rescaled_time(
    kernel_time: Seconds, launch_time: Seconds, profiled_metric: FloatArray, present_metric: FloatArray,
    ranks_per_gpu: Count,
) -> Seconds:  # fmt: skip
    """Time of a kernel on this device, rescaled from the profiled one by the rate that limits it.

    `kernel_time` is T', of which `launch_time` (t_l) is that of a kernel that does nothing, the same on both devices;
    `profiled_metric` and `present_metric` are that rate of the two devices, in the same unit, and `ranks_per_gpu` (r)
    the ranks that share this device. Elementwise over any broadcastable shapes; valid for rates > 0. A bound, not a
    prediction: no kernel is limited by one rate alone.
    """
    fixed = np.minimum(kernel_time, launch_time)
    return fixed + (kernel_time - fixed) * ranks_per_gpu * profiled_metric / present_metric


@model("m · e", "definition")
def copy_count(transfer_count: Count, exchange_count: Count) -> Count:
    """Copies of a halo in one iteration: `transfer_count` per exchange."""
    return transfer_count * exchange_count


@model("T = m t", "definition")
def repeated(once_time: Seconds, repeat_count: Count) -> Seconds:
    """Time of an operation that is repeated `repeat_count` times in sequence."""
    return once_time * repeat_count


@model("S = max_r Σ_{d,m} c_{rdm} n_m", "definition")
def rank_size(rank_counts: RankCounts, message_sizes: KindSize) -> Bytes:
    """Bytes sent by the busiest rank in one exchange, over all distances."""
    sent = rank_counts.sum(axis=-2) * message_sizes[..., None, :]
    return np.asarray(sent.sum(axis=-1).max(axis=-1))
