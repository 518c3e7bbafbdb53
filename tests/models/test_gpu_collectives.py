"""Collectives of GPU libraries: limits, and times computed by hand from the constants of the tuner."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.models.gpu_collectives import LIBRARY_ALGORITHMS, domain_link_bandwidth, group_bandwidth, library_time

LINK, NETWORK = np.array(400e9), np.array(200e9)


def time(size, ranks, domain, algorithm, **options):
    """Time on ranks that fill their domains evenly."""
    members = min(ranks, domain)
    numbers = (np.array(float(number)) for number in (size, ranks, -(-ranks // domain), members, members))
    return float(library_time(*numbers, LINK, NETWORK, algorithm=algorithm, **options))


@pytest.mark.parametrize("algorithm", [*LIBRARY_ALGORITHMS, "best"])
def test_one_rank_takes_no_time_and_more_bytes_never_less(algorithm):
    assert time(1e9, 1, 8, algorithm) == 0
    times = [time(2.0**exponent, 32, 8, algorithm) for exponent in range(0, 34, 3)]
    assert (np.diff(times) >= 0).all()
    assert times[0] > 0


def test_a_ring_in_one_domain_by_hand():
    # LL: 6.6 us and 14 steps of 0.6 us; Simple: 8.4 us, 14 steps of 3.4 us, and 14/8 of the buffer over the link.
    assert_allclose(time(0, 8, 8, "ring"), 15e-6, rtol=1e-12, atol=0)
    assert_allclose(time(1e9, 8, 8, "ring"), 8.4e-6 + 14 * 3.4e-6 + 1.75e9 / 400e9, rtol=1e-12, atol=0)


def test_a_ring_over_domains_by_hand():
    # Of 30 steps 3.75 are between the two domains of 8; latencies are 1.7 times those of the tuner.
    assert_allclose(time(0, 16, 8, "ring"), 1.7 * (6.6e-6 + 26.25 * 0.6e-6 + 3.75 * 2.7e-6), rtol=1e-12, atol=0)
    expected = 1.7 * (8.4e-6 + 26.25 * 3.4e-6 + 3.75 * 14e-6) + 30 / 16 * 1e9 / 200e9
    assert_allclose(time(1e9, 16, 8, "ring"), expected, rtol=1e-12, atol=0)


def test_a_broadcast_sends_the_buffer_once_by_hand():
    # Sixteen ranks in two domains: 14 steps in domains, one between them.
    expected = 1.7 * (8.4e-6 + 14 * 3.4e-6 + 14e-6) + 1e9 / 200e9
    assert_allclose(time(1e9, 16, 8, "ring_broadcast"), expected, rtol=1e-12, atol=0)
    assert time(1e9, 16, 8, "ring_reduce_scatter") == time(1e9, 16, 8, "ring_allgather") < time(1e9, 16, 8, "ring")


def test_a_tree_needs_fewer_steps_and_the_hierarchy_fewer_bytes_between_domains():
    assert time(8, 1024, 8, "double_binary_tree") < time(8, 1024, 8, "ring") / 10
    # Between two domains the buffer crosses once instead of 30/16 times.
    assert_allclose(time(1e11, 16, 8, "hierarchical") / time(1e11, 16, 8, "ring"), 16 / 30, rtol=1e-3, atol=0)


def test_all_to_all_by_hand():
    # 12 of 16 parts of each of 4 ranks leave the domain.
    leaving = 12 / 16 * 1e9 * 4
    expected = 1.7 * (8.4e-6 + 3.4e-6 + 14e-6) + leaving / 200e9
    assert_allclose(time(1e9, 16, 4, "pairwise"), expected, rtol=1e-12, atol=0)


def test_best_is_the_fastest_that_the_library_chooses():
    for size in (8.0, 1e6, 1e9):
        times = {name: time(size, 64, 8, name) for name in ("ring", "double_binary_tree", "hierarchical")}
        assert time(size, 64, 8, "best") == min(times["ring"], times["double_binary_tree"])
        assert time(size, 64, 8, "best", switch_reduction=True) == min(times.values())


@pytest.mark.parametrize(("topology", "links"), [("mesh", 7), ("ring", 2), ("switch", 1)])
def test_links_of_a_domain_work_together(topology, links):
    found = domain_link_bandwidth(np.array(50e9), np.array([8.0, 2.0]), topology=topology)
    assert_allclose(found, [links * 50e9, 50e9], rtol=1e-15, atol=0)


def test_a_device_of_a_mesh_shares_out_its_links_among_more_than_it_has_links_for():
    found = domain_link_bandwidth(np.array(100e9), np.array([2.0, 4.0, 8.0]), np.array(3.0), topology="mesh")
    assert_allclose(found, [100e9, 300e9, 300e9], rtol=1e-15, atol=0)


def test_an_all_to_all_of_uneven_domains_waits_for_the_ports_of_the_smallest():
    # 72 ranks and one: 72/73 of the buffer leave the domain of one rank, through its own port of 50 GB/s.
    counts = (np.array(number) for number in (1e9, 73.0, 2.0, 72.0, 1.0))
    found = float(library_time(*counts, LINK, np.array(50e9), algorithm="pairwise"))
    latency = 1.7 * (8.4e-6 + 3.4e-6 + 14e-6)
    assert_allclose(found, latency + 72 / 73 * 1e9 / 50e9, rtol=1e-12, atol=0)


def test_ranks_share_the_ports_of_a_node_and_one_reaches_those_of_its_gpu():
    # 400 GB/s of eight GPUs: an eighth for one rank, with or without others; of 32 ports four are a GPU's own.
    ports, gpus = np.array([8.0, 8.0, 8.0, 32.0, 4.0, 4.0]), np.full(6, 8.0)
    ranks, members = np.array([1.0, 2.0, 8.0, 1.0, 1.0, 8.0]), np.array([1.0, 2.0, 8.0, 1.0, 1.0, 8.0])
    found = group_bandwidth(np.full(6, 400e9), members, ranks, ports, gpus)
    assert_allclose(found, [50e9, 100e9, 400e9, 50e9, 100e9, 400e9], rtol=1e-15, atol=0)
