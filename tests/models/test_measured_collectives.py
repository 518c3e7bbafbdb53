"""Tables of measured collectives, interpolated in size."""

from __future__ import annotations

import numpy as np

from whatif.models.measured_collectives import TimesBySize, is_tabulated, tabulated_time

SMALL = TimesBySize(8.0, 4.0, (8.0, 1024.0, 2**20), (10e-6, 20e-6, 500e-6))
LARGE = TimesBySize(64.0, 0.0, (8.0, 2**20), (40e-6, 900e-6))
TABLES = SMALL, LARGE


def time(size, ranks=8.0, node=4.0):
    return tabulated_time(np.asarray(size), np.asarray(ranks), np.asarray(node), tables=TABLES)


def test_measured_sizes_have_their_times():
    np.testing.assert_allclose(time(SMALL.sizes), SMALL.times, rtol=1e-12, atol=0)


def test_logarithms_are_interpolated_between_sizes():
    np.testing.assert_allclose(time(2**15), np.sqrt(20e-6 * 500e-6), rtol=1e-12, atol=0)


def test_times_ascend_where_measured_times_do():
    assert (np.diff(time(np.geomspace(1, 2**24, 500))) >= 0).all()


def test_sizes_beyond_the_table_are_in_proportion_and_below_it_as_the_smallest():
    np.testing.assert_allclose(time([0.0, 1.0, 2**22]), [10e-6, 10e-6, 2e-3], rtol=1e-12, atol=0)


def test_each_number_of_ranks_has_its_own_table():
    np.testing.assert_allclose(time(8.0, [8.0, 64.0, 1.0]), [10e-6, 40e-6, 0.0], rtol=1e-12, atol=0)
    assert np.isnan(time(8.0, 16.0))


def test_only_measured_ranks_in_their_placement_are_known():
    ranks, node = np.array([8.0, 8.0, 64.0, 64.0, 16.0, 1.0]), np.array([4.0, 8.0, 4.0, 8.0, 4.0, 1.0])
    np.testing.assert_array_equal(is_tabulated(ranks, node, tables=TABLES), [1, 0, 1, 1, 0, 1])


def test_a_table_of_size_0_has_one_time():
    barrier = TimesBySize(8.0, 0.0, (0.0,), (5e-6,))
    found = tabulated_time(np.array(0.0), np.array(8.0), np.array(4.0), tables=(barrier,))
    np.testing.assert_allclose(found, 5e-6, rtol=1e-12, atol=0)
