"""Domain decomposition: process grids for a rank count, and one box of cells per rank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import isqrt, prod
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from whatif import units
from whatif.models.quantities import Core, Count, FloatArray, model

PerDimension = Annotated[FloatArray, units.ONE, Core("dimension")]
AxisRule = Literal["cycle", "longest"]
Boxes = NDArray[np.int64]
Ranks = NDArray[np.int32]

MOST_CELLS = 2**31 - 1
MOST_RANKS = 2**24
"""Largest rank count whose messages are counted; larger ones give NaN, as counting would take minutes."""


def is_count(values: FloatArray, least: int = 1, most: int = MOST_RANKS) -> NDArray[np.bool_]:
    """Mask of the values that are whole numbers from `least` to `most`, elementwise; False for NaN."""
    inside = (values >= least) & (values <= most)
    return np.asarray(inside & (np.where(inside, values, 0.5) % 1 == 0))


@model("d_1·…·d_D = P,  d_1 − d_D least", "MPI 4.1, section 8.5.2 (MPI_Dims_create)")
def balanced_dimensions(rank_count: Count, *, dimension_count: int) -> PerDimension:
    """Process grid of MPI_Dims_create: non-increasing extents as close to each other as possible.

    `rank_count` [...] gives [..., dimension]. "Close" follows Träff and Lübbe (EuroMPI 2015): the smallest
    difference between the largest and the smallest extent, ties broken by the smaller first extent that
    differs. The standard leaves this open: a library that assigns prime factors greedily, largest first to
    the smallest extent, gives (12, 6) for 72 where this function gives (9, 8). The result matches the grids
    of Jacobi2D in Choi et al. 2020: 48 ranks in Figure 1, 12 in a trace, and the K_inter of Table 5.
    NaN where `rank_count` is not a whole number from 1 to `MOST_RANKS`.
    """
    count = np.asarray(rank_count, dtype=np.float64)
    distinct, place = np.unique(count.ravel(), return_inverse=True)
    result = np.full((distinct.size, dimension_count), np.nan)
    for row in np.flatnonzero(is_count(distinct)):
        result[row] = balanced_extents(int(distinct[row]), dimension_count)
    return result[place.reshape(count.shape)]


@model("d_1·…·d_D = P,  d_1 ≤ … ≤ d_D", "MiniMD: the grids that give Choi et al. 2020, Table 5")
def ascending_dimensions(rank_count: Count, *, dimension_count: int) -> PerDimension:
    """Process grid of `balanced_dimensions` in ascending order, the largest extent last, as in MiniMD."""
    return balanced_dimensions(rank_count, dimension_count=dimension_count)[..., ::-1]


@model("d_D ≥ d_1 ≥ … ≥ d_{D−1}", "the order of the cuts of Mantevo MiniFE, utils/BoxPartition.cpp")
def bisection_dimensions(rank_count: Count, *, dimension_count: int) -> PerDimension:
    """Process grid of `balanced_dimensions` in the order of bisection cuts: the last dimension most often.

    A grid of these extents times the cells of a rank is cut into equal boxes if the rank count is a power of 2.
    """
    return np.roll(balanced_dimensions(rank_count, dimension_count=dimension_count), -1, axis=-1)


@lru_cache(maxsize=65536)
def balanced_extents(rank_count: int, dimension_count: int) -> tuple[int, ...]:
    """Extents of `balanced_dimensions` for one rank count."""
    grids = factorisations(rank_count, dimension_count, rank_count)
    return min(grids, key=lambda extents: (extents[0] - extents[-1], extents))


def factorisations(number: int, count: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Factorisations of `number` into `count` non-increasing factors, none above `limit`."""
    if count == 1:
        if number <= limit:
            yield (number,)
        return
    for factor in divisors(number):
        if factor <= limit and factor**count >= number:
            for rest in factorisations(number // factor, count - 1, factor):
                yield (factor, *rest)


@lru_cache(maxsize=65536)
def divisors(number: int) -> tuple[int, ...]:
    """Divisors of a positive integer in increasing order."""
    small = [factor for factor in range(1, isqrt(number) + 1) if number % factor == 0]
    return tuple(sorted({*small, *(number // factor for factor in small)}))


@model("cells per rank = ⌈N_d / d_d⌉", "block distribution, as the largest block of MPI_Type_create_darray")
def local_cells(cell_count: Count, extent: Count) -> Count:
    """Most cells that one of `extent` ranks holds along a dimension: ⌈`cell_count` / `extent`⌉.

    Elementwise over any broadcastable shapes, including [..., dimension]. Valid for whole `cell_count` ≥ 0 and
    `extent` ≥ 1; NaN elsewhere.
    """
    cells = np.asarray(cell_count, dtype=np.float64)
    ranks = np.asarray(extent, dtype=np.float64)
    valid = is_count(cells, least=0, most=2**53) & is_count(ranks, most=2**53)
    return np.where(valid, np.ceil(np.where(valid, cells, 0.0) / np.where(valid, ranks, 1.0)), np.nan)


@model("box of the rank with the most cells", "Mantevo MiniFE, utils/BoxPartition.cpp")
def largest_box(rank_count: Count, cells: PerDimension) -> PerDimension:
    """Extents of the largest box of a bisection: `rank_count` [...] and global `cells` [..., dimension].

    NaN where no such bisection exists.
    """
    whole = np.asarray(cells, dtype=np.float64)
    ranks = np.asarray(rank_count, dtype=np.float64)
    shape = np.broadcast_shapes(ranks.shape, whole.shape[:-1])
    columns = [np.broadcast_to(ranks, shape), *(np.broadcast_to(extent, shape) for extent in np.moveaxis(whole, -1, 0))]
    points = np.stack(columns, axis=-1)
    rows, place = np.unique(points.reshape(-1, points.shape[-1]), axis=0, return_inverse=True)
    valid = is_count(rows, most=MOST_CELLS).all(axis=1) & (rows[:, 0] <= MOST_RANKS)
    boxes = [_largest(row) if ok else np.full(row.size - 1, np.nan) for row, ok in zip(rows, valid, strict=True)]
    return np.stack(boxes)[place.reshape(points.shape[:-1])]


def _largest(row: FloatArray) -> FloatArray:
    boxes = bisection(int(row[0]), tuple(int(extent) for extent in row[1:]))
    extents = boxes[:, :, 1] - boxes[:, :, 0]
    return np.asarray(extents[extents.prod(axis=1).argmax()], dtype=np.float64)


@lru_cache(maxsize=64)
def bisection(rank_count: int, cells: tuple[int, ...], *, rule: AxisRule = "cycle") -> Boxes:
    """Recursive coordinate bisection of a grid of cells: the box [begin, end) of each rank.

    Each step halves the ranks (the lower half rounded down) and cuts the cells in proportion, the upper part
    rounded down. The result is int64 [rank, dimension, 2], with ranks in the order of the recursion, which is
    not Cartesian: consecutive ranks share a compact block. `rule` selects the axis of a cut:

    - "cycle" is miniFE's `box_partition` (Mantevo, utils/BoxPartition.cpp): the last dimension first,
      then cyclically the next one, (z, x, y, z, ...) in 3D, whatever the extents;
    - "longest" is the longest axis of the current box, the last one among equals.

    With more ranks than cells some boxes are empty. The array is cached and therefore read-only.
    """
    boxes = np.empty((1, len(cells), 2), dtype=np.int64)
    boxes[0, :, 0], boxes[0, :, 1] = 0, cells
    ranks = np.array([rank_count], dtype=np.int64)
    axes = np.array([len(cells) - 1], dtype=np.int64)
    while ranks.max() > 1:
        boxes, ranks, axes = _halve(boxes, ranks, axes, rule)
    boxes.setflags(write=False)
    return boxes


def _halve(boxes: Boxes, ranks: Boxes, axes: Boxes, rule: AxisRule) -> tuple[Boxes, Boxes, Boxes]:
    """Boxes after one more level of the recursion, in rank order: each box with several ranks is split in two."""
    size = boxes[:, :, 1] - boxes[:, :, 0]
    if rule == "longest":
        axes = size.shape[1] - 1 - np.argmax(size[:, ::-1], axis=1)
    low = ranks // 2
    row = np.arange(len(boxes))
    upper = (size[row, axes] * ((ranks - low) / ranks)).astype(np.int64)  # as in the C source: double, truncated
    pair = np.repeat(boxes[:, np.newaxis], 2, axis=1)
    cut = boxes[row, axes, 1] - upper
    several = ranks > 1
    pair[row[several], 0, axes[several], 1] = cut[several]
    pair[row[several], 1, axes[several], 0] = cut[several]
    keep = np.stack([several, np.ones_like(several)], axis=1).ravel()
    halves = np.stack([low, ranks - low], axis=1).ravel()[keep]
    return pair.reshape(-1, *boxes.shape[1:])[keep], halves, np.repeat((axes + 1) % size.shape[1], 2)[keep]


def touching_boxes(boxes: Boxes) -> tuple[Ranks, Ranks, NDArray[np.bool_]]:
    """Ordered pairs of boxes that share a face, an edge or a corner, and the dimensions that separate them.

    Disjoint `boxes` [rank, dimension, 2] give (first [pair], second [pair], displaced [pair, dimension]).
    A box without cells touches nothing. Runs of 2, 4, 8, .. consecutive boxes are compared by their bounding
    boxes before their members, which is fast if consecutive boxes are neighbours, as after a bisection.
    """
    levels = _bounding_levels(boxes)
    first = second = np.zeros(1, dtype=np.int32)
    for begin, end in levels:
        # A dimension at a time: a reduction over an axis of two or three places would take most of the time.
        for low, high in zip(begin, end, strict=True):
            near = (low[first] <= high[second]) & (low[second] <= high[first])
            first, second = first[near], second[near]
        if begin.shape[1] < levels[-1][0].shape[1]:
            first, second = _children(first, second)
    apart = first < second
    first, second = first[apart], second[apart]
    begin, end = levels[-1]
    displaced = np.array(
        [(high[first] == low[second]) | (high[second] == low[first]) for low, high in zip(begin, end, strict=True)]
    ).T
    return np.append(first, second), np.append(second, first), np.concatenate([displaced, displaced])


def _bounding_levels(boxes: Boxes) -> list[tuple[Boxes, Boxes]]:
    """Bounding boxes (begin, end) [dimension, run] of runs of boxes, longest runs first, single boxes last."""
    far = np.iinfo(np.int64).max
    begin = np.full((boxes.shape[1], 1 << (len(boxes) - 1).bit_length()), far)
    end = -begin
    filled = np.flatnonzero((boxes[:, :, 1] > boxes[:, :, 0]).all(axis=1))
    begin[:, filled], end[:, filled] = boxes[filled, :, 0].T, boxes[filled, :, 1].T
    levels = [(begin, end)]
    while begin.shape[1] > 1:
        begin, end = np.minimum(begin[:, ::2], begin[:, 1::2]), np.maximum(end[:, ::2], end[:, 1::2])
        levels.append((begin, end))
    return levels[::-1]


def _children(first: Ranks, second: Ranks) -> tuple[Ranks, Ranks]:
    """Pairs of halves of pairs of runs, each pair once (first ≤ second)."""
    left = (2 * first[:, np.newaxis] + np.array([0, 0, 1, 1], dtype=np.int32)).ravel()
    right = (2 * second[:, np.newaxis] + np.array([0, 1, 0, 1], dtype=np.int32)).ravel()
    once = left <= right
    return left[once], right[once]


def rank_grid(boxes: Boxes) -> Ranks | None:
    """Grid of rank numbers that the boxes form; None if their cuts do not line up."""
    begins = [np.unique(boxes[:, dimension, 0], return_inverse=True) for dimension in range(boxes.shape[1])]
    extents = tuple(len(places) for places, _ in begins)
    if prod(extents) != len(boxes) or (boxes[:, :, 0] == boxes[:, :, 1]).any():
        return None
    ranks = np.full(extents, -1, dtype=np.int32)
    ranks[tuple(place for _, place in begins)] = np.arange(len(boxes), dtype=np.int32)
    return None if (ranks < 0).any() else ranks


def shifted(ranks: Ranks, shift: dict[int, int], periodic: bool) -> tuple[Ranks, Ranks]:
    """Senders and receivers for one neighbour offset {dimension: -1 or 1}."""
    if periodic:
        return ranks, np.roll(ranks, [-step for step in shift.values()], axis=tuple(shift))
    here, there = [slice(None)] * ranks.ndim, [slice(None)] * ranks.ndim
    for dimension, step in shift.items():
        low, high = slice(None, -1), slice(1, None)
        here[dimension], there[dimension] = (low, high) if step > 0 else (high, low)
    return ranks[tuple(here)], ranks[tuple(there)]


def tile_nodes(dims: tuple[int, ...], ranks_per_node: int, order: Literal["C", "F"]) -> Ranks:
    """Node of each rank [rank], with nodes filled along a walk over the tiles of `tile_shape`."""
    place = tile_walk(dims, tile_shape(dims, ranks_per_node))
    walk = np.argsort(place.ravel(order=order))
    node = np.empty(walk.size, dtype=np.int32)
    node[walk] = np.arange(walk.size, dtype=np.int32) // np.int32(ranks_per_node)
    return node


def tile_walk(dims: tuple[int, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Position of each cell of a grid `dims` on a walk tile by tile: increasing numbers, with gaps."""
    place = np.zeros(dims, dtype=np.int64)
    index = [
        np.arange(extent).reshape(np.where(np.eye(len(dims))[axis], -1, 1).astype(int))
        for axis, extent in enumerate(dims)
    ]
    for cell, extent, edge in zip(index, dims, shape, strict=True):
        place = place * -(-extent // edge) + cell // edge
    for cell, edge in zip(index, shape, strict=True):
        place = place * edge + cell % edge
    return place


def tile_shape(dims: tuple[int, ...], ranks_per_node: int) -> tuple[int, ...]:
    """Shape of the tile of `ranks_per_node` ranks that sends the fewest face messages; ties: the smallest shape.

    A tile that spans a dimension sends no messages along it. Shapes whose extents divide the grid are
    preferred, then shapes that fit into it, then any. A tile that does not divide the grid is cut off at its
    edge, and nodes are filled from the walk over the tiles without a gap.
    """
    shapes = list(ordered_factorisations(ranks_per_node, len(dims)))
    pairs = [(shape, list(zip(shape, dims, strict=True))) for shape in shapes]
    dividing = [shape for shape, pair in pairs if all(extent % edge == 0 for edge, extent in pair)]
    fitting = [shape for shape, pair in pairs if all(edge <= extent for edge, extent in pair)]
    return min(dividing or fitting or shapes, key=lambda shape: (_leaving(shape, dims, ranks_per_node), shape))


def _leaving(shape: tuple[int, ...], dims: tuple[int, ...], ranks_per_node: int) -> int:
    """Face messages that leave a tile, counted in one direction per dimension."""
    return sum(ranks_per_node // edge for edge, extent in zip(shape, dims, strict=True) if edge < extent)


def ordered_factorisations(number: int, count: int) -> Iterator[tuple[int, ...]]:
    """Ordered factorisations of `number` into `count` factors."""
    if count == 1:
        yield (number,)
        return
    for factor in divisors(number):
        for rest in ordered_factorisations(number // factor, count - 1):
            yield (factor, *rest)
