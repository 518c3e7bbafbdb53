"""Collectives of a library of GPUs from measured gaps, and the choice of its tuner."""

from __future__ import annotations

import numpy as np
import pytest

from whatif.models.library_steps import (
    LL_CHUNK,
    by_domain_count,
    chosen_allreduce_time,
    library_steps_time,
    long_tree_time,
    short_tree_time,
)
from whatif.models.library_tuner import LONG_TREE_CHOSEN, RING_CHOSEN, SHORT_TREE_CHOSEN, tuner_choice

LIMITS = 8192.0, 131072.0
STARTS_AND_GAPS = 10e-6, 8e-6, 20e-6, 30e-6, 100e-6, 50e-6
LINK, NETWORK, SHARE = 300e9, 50e9, 0.75


def steps(size, ranks, algorithm, domain=4.0):
    members = min(ranks, domain)
    group = map(np.array, (size, float(ranks), np.ceil(ranks / members), members, members, LINK, NETWORK))
    numbers = map(np.array, (*LIMITS, *STARTS_AND_GAPS, SHARE))
    return float(library_steps_time(*group, *numbers, algorithm=algorithm))


@pytest.mark.parametrize(
    ("size", "gap_or_bytes"),
    [(1024 * 64, (10e-6, 8e-6)), (1024 * 2**16, (20e-6, 30e-6)), (1024 * 2**18, (100e-6, 50e-6))],
)
def test_short_messages_of_a_ring_follow_each_other_by_the_gap_of_their_protocol(size, gap_or_bytes):
    start, gap = gap_or_bytes
    np.testing.assert_allclose(steps(size, 1024, "ring_allgather"), start + 1023 * gap, rtol=1e-12, atol=0)
    np.testing.assert_allclose(steps(size, 1024, "ring"), start + 2046 * gap, rtol=1e-12, atol=0)


def test_long_messages_of_a_ring_take_the_time_of_their_bytes():
    size = 8 * 2.0**27
    np.testing.assert_allclose(steps(size, 8, "ring"), 100e-6 + 14 * size / 8 / (SHARE * NETWORK), rtol=1e-12, atol=0)
    in_domain = 100e-6 + 3 * size / 4 / (SHARE * LINK)
    np.testing.assert_allclose(steps(size, 4, "ring_allgather"), in_domain, rtol=1e-12, atol=0)


def test_an_all_to_all_has_one_message_for_each_rank_of_other_domains():
    np.testing.assert_allclose(steps(32 * 64, 32, "pairwise"), 10e-6 + 28 * 8e-6, rtol=1e-12, atol=0)
    size = 32 * 2.0**24
    leaving = 28 / 32 * size * 4
    np.testing.assert_allclose(steps(size, 32, "pairwise"), 100e-6 + leaving / (SHARE * NETWORK), rtol=1e-12, atol=0)


def test_switches_take_the_buffer_once():
    size = 2.0**33
    in_domain = 100e-6 + size / (SHARE * LINK)
    np.testing.assert_allclose(steps(size, 4, "hierarchical"), in_domain, rtol=1e-12, atol=0)
    between = 100e-6 + 2 * 7 / 8 * size / (SHARE * NETWORK)
    np.testing.assert_allclose(steps(size, 32, "hierarchical"), between, rtol=1e-12, atol=0)


@pytest.mark.parametrize("algorithm", ["ring", "pairwise", "hierarchical"])
def test_one_rank_takes_no_time(algorithm):
    assert steps(2**20, 1, algorithm) == 0.0


def test_short_trees_wait_for_a_chunk_and_pipeline_the_rest():
    numbers = [np.array(value) for value in (10e-6, 12e-6, 4e9)]
    domains = np.array(256.0)
    once = 10e-6 + 16 * (12e-6 + LL_CHUNK / 4e9)
    sizes = np.array([LL_CHUNK, 3 * LL_CHUNK])
    expected = [once, once + 2 * LL_CHUNK / 4e9]
    np.testing.assert_allclose(short_tree_time(sizes, domains, *numbers), expected, rtol=1e-12, atol=0)


def test_vertices_of_long_trees_have_three_neighbours_from_four_domains_on():
    numbers = [np.array(value) for value in (100e-6, 50e-6, SHARE)]
    size = np.array(2.0**24)
    sent = 2 * 2**24 / (0.92 * SHARE * NETWORK)
    for domains, messages in ((2.0, 2.0), (4.0, 12.0), (256.0, 48.0)):
        time = long_tree_time(size, np.array(domains), np.array(NETWORK), *numbers)
        np.testing.assert_allclose(time, 100e-6 + messages * 50e-6 + sent, rtol=1e-12, atol=0)


def choice(sizes, ranks, domain, ports):
    """Choice for ranks that fill their domains."""
    return tuner_choice(sizes, *map(np.array, (float(ranks), ranks / domain, float(domain), ports)))


def test_the_tuner_chooses_on_polaris_what_the_measured_curves_show():
    """On 32 GPUs trees to 128 KiB and at 8 MiB, rings elsewhere; on 1,024 trees, short ones to 1 MiB."""
    sizes, ports = 2.0 ** np.arange(2, 31), 2 * 25e9
    middle = choice(sizes, 32, 4, ports)
    expected = np.where(sizes <= 2**17, SHORT_TREE_CHOSEN, RING_CHOSEN)
    expected[sizes == 2**23] = LONG_TREE_CHOSEN
    np.testing.assert_array_equal(middle, expected)
    large = choice(sizes, 1024, 4, ports)
    np.testing.assert_array_equal(large, np.where(sizes <= 2**20, SHORT_TREE_CHOSEN, LONG_TREE_CHOSEN))
    small = choice(sizes, 8, 4, ports)
    np.testing.assert_array_equal(small, np.where(sizes <= 2**15, SHORT_TREE_CHOSEN, RING_CHOSEN))


def test_the_tuner_chooses_rings_in_one_domain():
    sizes = 2.0 ** np.arange(2, 31)
    assert (choice(sizes, 8, 8, 200e9) == RING_CHOSEN).all()


def test_choices_take_the_time_of_the_chosen_one():
    times = [np.array(value) for value in (1.0, 2.0, 3.0)]
    chosen = chosen_allreduce_time(np.array([RING_CHOSEN, SHORT_TREE_CHOSEN, LONG_TREE_CHOSEN]), *times)
    np.testing.assert_array_equal(chosen, [1.0, 2.0, 3.0])
    scale = by_domain_count(np.array([1.0, 2.0]), np.array(1.0), np.array(2.0))
    np.testing.assert_array_equal(scale, [1.0, 2.0])


def test_tuner_chooses_for_sizes_without_a_number_or_a_limit():
    """Points of a sweep whose size is a quotient by 0 are infeasible, and must not end the sweep."""
    sizes = np.array([np.nan, np.inf, 2.0**40])
    chosen = choice(sizes, 16, 4, 25e9)
    assert chosen[2] == RING_CHOSEN
    assert np.isin(chosen, [RING_CHOSEN, SHORT_TREE_CHOSEN, LONG_TREE_CHOSEN]).all()
