"""Cores and memory bandwidth of sockets: limiting cases and hand arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.models.sockets import (
    active_bandwidth,
    active_cores,
    cached_bandwidth,
    rank_bandwidth,
    rank_cores,
    ranks_on_cores,
    reusing_bandwidth,
    socket_ranks,
)

CORES = np.arange(1.0, 49.0)


def saturated(active, cores=48.0, core_bandwidth=20e9, memory_bandwidth=200e9):
    return active_bandwidth(*map(np.asarray, (active, cores, core_bandwidth, memory_bandwidth)))


def test_one_core_has_its_own_bandwidth_and_all_have_that_of_the_memory():
    assert_allclose(saturated(1.0), 20e9, rtol=1e-12, atol=0)
    assert_allclose(saturated(48.0), 200e9, rtol=1e-12, atol=0)


def test_bandwidth_grows_with_the_cores_and_stays_below_both_limits():
    found = saturated(CORES)
    assert (np.diff(found) > 0).all()
    assert (found <= np.minimum(CORES * 20e9, 200e9) * (1 + 1e-12)).all()
    # At the knee of min(n b, B), the cube roots leave 2^(-1/3) of it.
    assert_allclose(saturated(10.0), 200e9 * 2 ** (-1 / 3), rtol=0.01, atol=0)


def test_cores_that_cannot_saturate_the_memory_are_linear():
    assert_allclose(saturated(CORES, memory_bandwidth=48 * 20e9), CORES * 20e9, rtol=1e-12, atol=0)
    assert_allclose(saturated(CORES, memory_bandwidth=1e15), CORES * 20e9, rtol=1e-12, atol=0)


def test_a_core_has_at_most_the_bandwidth_of_the_memory():
    assert_allclose(saturated(CORES, core_bandwidth=300e9), 200e9, rtol=1e-12, atol=0)
    assert_allclose(saturated(1.0, cores=1.0, core_bandwidth=300e9), 200e9, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("ranks_per_node", "cores"), [(48.0, 1.0), (1.0, 48.0), (4.0, 12.0), (5.0, 9.0), (96.0, 0.5), (47.0, 1.0)]
)
def test_cores_of_a_rank_are_whole_where_there_are_enough(ranks_per_node, cores):
    assert rank_cores(np.array(24.0), np.array(2.0), np.array(ranks_per_node)) == cores


def test_ranks_by_default_take_all_cores():
    assert ranks_on_cores(np.array(24.0), np.array(2.0), np.array(1.0)) == 48
    assert ranks_on_cores(np.array(24.0), np.array(2.0), np.array(5.0)) == 9
    assert ranks_on_cores(np.array(24.0), np.array(2.0), np.array(100.0)) == 1


def test_a_rank_on_two_sockets_keeps_both_busy():
    assert socket_ranks(np.array(1.0), np.array(2.0)) == 0.5
    assert socket_ranks(np.array(3.0), np.array(2.0)) == 2


def test_the_ranks_of_a_domain_share_its_bandwidth_evenly():
    active = active_cores(np.array(12.0), np.array(3.0), np.array(4.0))
    assert active == 12
    assert_allclose(rank_bandwidth(np.array(240e9), active, np.array(4.0)), 80e9, rtol=1e-12, atol=0)
    # A rank on four domains of 12 cores has all their bandwidths.
    spanning = active_cores(np.array(12.0), np.array(1.0), np.array(48.0))
    assert_allclose(rank_bandwidth(np.array(240e9), spanning, np.array(48.0)), 960e9, rtol=1e-12, atol=0)


def test_a_working_set_that_fits_has_the_bandwidth_of_the_cache():
    def found(working_set):
        counts = {"core_count": 48.0, "numa_domain_count": 4.0, "active_count": 12.0, "rank_core_count": 1.0}
        sizes = {"cache_size": 48e6, "cache_bandwidth": 4.8e12, "rank_bandwidth": 16e9, "working_set": working_set}
        return cached_bandwidth(**{name: np.asarray(value) for name, value in (counts | sizes).items()})

    # Each of 48 active cores has 1 MB of the cache.
    assert_allclose(found(1e6), 100e9, rtol=1e-12, atol=0)
    assert_allclose(found(1.01e6), 16e9, rtol=1e-12, atol=0)


def test_loads_from_the_first_cache_follow_those_from_memory():
    found = reusing_bandwidth(20e9, 16.0, 40.0, 100e9)
    assert_allclose(16.0 / found, 16.0 / 20e9 + 24.0 / 100e9, rtol=1e-12, atol=0)


def test_no_load_from_the_first_cache_changes_nothing():
    assert reusing_bandwidth(20e9, 16.0, 16.0, 100e9) == 20e9
    assert reusing_bandwidth(20e9, 16.0, 8.0, 100e9) == 20e9
