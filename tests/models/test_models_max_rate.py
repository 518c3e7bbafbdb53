from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from whatif.models.max_rate import max_rate, max_rate_injection, max_rate_short
from whatif.models.postal import postal

SIZES = np.array([0.0, 1.0, 8192.0, 1e9])
COUNTS = np.array([[1.0], [2.5], [6.0]])
LATENCY, BASE, ADDITIONAL = np.float64(9.33e-6), np.float64(1.23e10), np.float64(2.58e7)  # Table 4, Summit


def test_max_rate_with_one_sender_is_postal() -> None:
    one = np.float64(1.0)
    expected = postal(SIZES, LATENCY, BASE)
    assert_allclose(max_rate(SIZES, one, LATENCY, BASE, ADDITIONAL), expected, rtol=1e-15, atol=0)
    assert_allclose(max_rate_short(SIZES, one, LATENCY, BASE), expected, rtol=1e-15, atol=0)
    assert_allclose(max_rate_injection(SIZES, one, LATENCY, BASE, 2 * BASE), expected, rtol=1e-15, atol=0)


def test_one_sender_is_postal_for_any_additional_bandwidth() -> None:
    for additional in (0.0, np.inf):
        time = max_rate(SIZES, np.float64(1.0), LATENCY, BASE, np.float64(additional))
        assert_allclose(time, postal(SIZES, LATENCY, BASE), rtol=1e-15, atol=0)


def test_eq_2_equals_eq_3_without_additional_bandwidth() -> None:
    short = max_rate_short(SIZES, COUNTS, LATENCY, BASE)
    assert_allclose(max_rate(SIZES, COUNTS, LATENCY, BASE, np.float64(0.0)), short, rtol=1e-15, atol=0)


def test_equal_additional_bandwidth_gives_independent_processes() -> None:
    alone = np.broadcast_to(postal(SIZES, LATENCY, BASE), (3, 4))
    assert_allclose(max_rate(SIZES, COUNTS, LATENCY, BASE, BASE), alone, rtol=1e-14, atol=0)
    unlimited = max_rate_injection(SIZES, COUNTS, LATENCY, BASE, np.float64(np.inf))
    assert_allclose(unlimited, alone, rtol=1e-14, atol=0)


def test_injection_bandwidth_is_shared_beyond_saturation() -> None:
    time = max_rate_injection(np.float64(1e6), np.float64(8.0), np.float64(0.0), np.float64(3e9), np.float64(6e9))
    assert_allclose(time, 8e6 / 6e9, rtol=1e-15, atol=0)


def test_infinite_bandwidth_leaves_the_latency() -> None:
    infinite = np.float64(np.inf)
    latency = np.full((3, 4), LATENCY)
    assert_allclose(max_rate(SIZES, COUNTS, LATENCY, infinite, ADDITIONAL), latency, rtol=0, atol=0)
    assert_allclose(max_rate(SIZES, COUNTS, LATENCY, infinite, infinite), latency, rtol=0, atol=0)
    assert_allclose(max_rate_short(SIZES, COUNTS, LATENCY, infinite), latency, rtol=0, atol=0)
    assert_allclose(max_rate_injection(SIZES, COUNTS, LATENCY, infinite, infinite), latency, rtol=0, atol=0)


def test_jacobi2d_halo_on_summit() -> None:
    # Four messages of 128 KiB in turn, at Table 5's k = 3.5 and Table 4's inter-node rendezvous row: 186 us.
    time = 4 * max_rate(np.float64(131072), np.float64(3.5), LATENCY, BASE, ADDITIONAL)
    assert round(float(time) * 1e6) == 186
