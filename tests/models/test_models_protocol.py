from __future__ import annotations

import numpy as np

from whatif.models.protocol import by_protocol

TIMES = np.float64(1.0), np.float64(2.0), np.float64(3.0)


def test_protocol_limits_are_inclusive() -> None:
    sizes = np.array([0.0, 128.0, 129.0, 8192.0, 8193.0])
    chosen = by_protocol(sizes, np.float64(128), np.float64(8192), *TIMES)
    assert chosen.tolist() == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_equal_limits_disable_eager_and_infinite_limits_disable_rendezvous() -> None:
    sizes, limit, infinite = np.array([128.0, 129.0]), np.float64(128), np.float64(np.inf)
    assert by_protocol(sizes, limit, limit, *TIMES).tolist() == [1.0, 3.0]
    assert by_protocol(sizes, limit, infinite, *TIMES).tolist() == [1.0, 2.0]


def test_by_protocol_broadcasts_sizes_and_limits() -> None:
    sizes, limits = np.array([64.0, 4096.0]), np.array([[32.0], [64.0], [4096.0]])
    chosen = by_protocol(sizes, limits, 2 * limits, *TIMES)
    assert chosen.tolist() == [[2.0, 3.0], [1.0, 3.0], [1.0, 1.0]]
