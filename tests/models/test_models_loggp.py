from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from whatif.models.loggp import loggp

LATENCY, OVERHEAD, BANDWIDTH = np.float64(2.5e-6), np.float64(1.5e-6), np.float64(1 / 6e-9)


def test_loggp_equals_loggopsim_for_1024_bytes() -> None:
    # LogGOPSim, L = 2500, o = 1500, G = 6 ns: each of the P - 1 messages of an all-to-all takes 11,638 ns.
    assert_allclose(loggp(np.float64(1024), LATENCY, OVERHEAD, BANDWIDTH), 11638e-9, rtol=1e-14, atol=0)


def test_loggp_time_of_first_byte_is_zero() -> None:
    time = loggp(np.array([0.0, 1.0, 2.0]), LATENCY, OVERHEAD, BANDWIDTH)
    assert_allclose(time, [5.5e-6, 5.5e-6, 5.506e-6], rtol=1e-14, atol=0)


def test_infinite_bandwidth_leaves_latency_and_overheads() -> None:
    assert_allclose(loggp(np.float64(1e9), LATENCY, OVERHEAD, np.float64(np.inf)), 5.5e-6, rtol=1e-15, atol=0)
