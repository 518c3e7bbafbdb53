"""Process grids and boxes: known values, brute force, and general properties."""

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from whatif.models import decomposition


@pytest.mark.parametrize(
    ("rank_count", "extents"),
    [
        (6, (3, 2)),  # the examples of MPI 4.1, section 8.5.2
        (7, (7, 1)),
        (6, (3, 2, 1)),
        (12, (4, 3)),  # the DUMPI trace of Jacobi2D on 12 ranks of Summit
        (48, (8, 6)),
        (1536, (48, 32)),  # Jacobi2D on Summit
        (72, (9, 8)),
        (1, (1, 1, 1)),
        (1_000_000, (100, 100, 100)),
    ],
)
def test_balanced_dimensions_of_known_grids(rank_count, extents):
    grid = decomposition.balanced_dimensions(np.float64(rank_count), dimension_count=len(extents))
    assert_array_equal(grid, extents)


@given(st.integers(1, 200), st.integers(1, 4))
def test_balanced_dimensions_equal_brute_force(rank_count, dimension_count):
    sides = [side for side in range(1, rank_count + 1) if rank_count % side == 0]
    grids = [
        grid
        for grid in itertools.combinations_with_replacement(sides[::-1], dimension_count)
        if prod(grid) == rank_count
    ]
    best = min(grids, key=lambda grid: (grid[0] - grid[-1], grid))
    assert decomposition.balanced_extents(rank_count, dimension_count) == best


def test_dimensions_of_invalid_rank_counts_are_nan_with_the_same_shape():
    counts = np.array([[6.0, 0.0, 2.5], [np.nan, np.inf, -4.0]])
    grids = decomposition.balanced_dimensions(counts, dimension_count=2)
    assert grids.shape == (2, 3, 2)
    assert_array_equal(grids[0, 0], [3, 2])
    assert np.isnan(grids.reshape(-1, 2)[1:]).all()


def test_local_cells_round_up_and_are_nan_for_fractions():
    cells = decomposition.local_cells(np.array([100.0, 100.0, 0.0, 100.0]), np.array([3.0, 4.0, 2.0, 2.5]))
    assert_allclose(cells, [34, 25, 0, np.nan], rtol=0, atol=0)


def box_partition(first, last, axis, box, boxes):
    """`box_partition` of miniFE, one call per box."""
    count = last - first
    if count == 1:
        boxes[first] = box
        return
    low = count // 2
    length = box[axis][1] - box[axis][0]
    cut = box[axis][1] - int(float(length) * (float(count - low) / float(count)))
    lower, upper = list(box), list(box)
    lower[axis], upper[axis] = (box[axis][0], cut), (cut, box[axis][1])
    box_partition(first, first + low, (axis + 1) % len(box), lower, boxes)
    box_partition(first + low, last, (axis + 1) % len(box), upper, boxes)


@given(st.integers(1, 60), st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_bisection_equals_the_recursion_of_minife(rank_count, cells):
    boxes = {}
    box_partition(0, rank_count, len(cells) - 1, [(0, extent) for extent in cells], boxes)
    expected = [boxes[rank] for rank in range(rank_count)]
    assert_array_equal(decomposition.bisection(rank_count, tuple(cells)), expected)


@given(
    st.integers(1, 40),
    st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.sampled_from(["cycle", "longest"]),
)
def test_boxes_of_a_bisection_cover_every_cell_once(rank_count, cells, rule):
    covered = np.zeros(cells, dtype=int)
    for box in decomposition.bisection(rank_count, tuple(cells), rule=rule):
        covered[tuple(slice(begin, end) for begin, end in box)] += 1
    assert (covered == 1).all()


def test_longest_rule_cuts_the_longest_axis_first():
    boxes = decomposition.bisection(2, (8, 4, 4), rule="longest")
    assert_array_equal(boxes[:, 0], [[0, 4], [4, 8]])
    assert_array_equal(decomposition.bisection(2, (8, 4, 4))[:, 2], [[0, 2], [2, 4]])


@given(st.integers(1, 40), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_touching_boxes_equal_brute_force(rank_count, cells):
    boxes = decomposition.bisection(rank_count, tuple(cells))
    first, second, displaced = decomposition.touching_boxes(boxes)
    found = sorted(zip(first.tolist(), second.tolist(), displaced.tolist(), strict=True))
    assert found == sorted(touching_pairs(boxes.tolist()))


def touching_pairs(boxes):
    for a, b in itertools.permutations(range(len(boxes)), 2):
        sides = list(zip(boxes[a], boxes[b], strict=True))
        filled = all(begin < end for side in sides for begin, end in side)
        if filled and all(p[0] <= q[1] and q[0] <= p[1] for p, q in sides):
            yield a, b, [p[1] == q[0] or q[1] == p[0] for p, q in sides]


@pytest.mark.parametrize(
    ("dims", "ranks_per_node", "shape"),
    [
        ((8, 8), 4, (2, 2)),
        ((12, 8), 6, (3, 2)),
        ((8, 12), 6, (2, 3)),
        ((8, 8, 8), 8, (2, 2, 2)),
        ((2, 64), 8, (2, 4)),  # spans the first dimension, along which nothing leaves
        ((5, 7), 6, (2, 3)),  # nothing divides the grid
        ((2, 2), 6, (2, 3)),  # nothing fits into it
    ],
)
def test_tile_shape(dims, ranks_per_node, shape):
    assert decomposition.tile_shape(dims, ranks_per_node) == shape


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 12), st.sampled_from("CF"))
def test_tiles_fill_all_nodes_except_the_last(dims, ranks_per_node, order):
    held = np.bincount(decomposition.tile_nodes(tuple(dims), ranks_per_node, order))
    assert (held[:-1] == ranks_per_node).all()
    assert 0 < held[-1] <= ranks_per_node


def test_largest_box_broadcasts_ranks_and_cells():
    ranks = np.array([[8.0], [12.0]])
    boxes = decomposition.largest_box(ranks, np.array([40.0, 40.0, 40.0]))
    assert boxes.shape == (2, 1, 3)
    assert_array_equal(boxes[0, 0], [20, 20, 20])
    assert boxes[1, 0].prod() * 12 >= 40**3
    assert np.isnan(decomposition.largest_box(np.nan, np.array([40.0, 40.0]))).all()
