"""Products of matrices: the formulas against counts made by hand, and limiting cases."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.models.gemm import gemm_operations, gemm_size, gemm_time, tile_efficiency


def arrays(*values):
    return [np.float64(value) for value in values]


def efficiency(m, n, batch_count=1, tile_extent=128, multiprocessor_count=100):
    return float(tile_efficiency(*arrays(m, n, batch_count, tile_extent, multiprocessor_count)))


@pytest.mark.parametrize(
    ("m", "n", "batch", "expected"),
    [
        (1280, 1280, 1, 1.0),  # 100 tiles of 128 on 100 multiprocessors
        (128, 128, 1, 4 * 64**2 / (100 * 64**2)),  # 4 tiles of 64
        (128, 128, 100, 1.0),
        (1280, 1408, 1, 440 / 500),  # 110 tiles need two waves, 440 quarter tiles five
        (1, 128 * 100, 1, 1 / 64),  # one row of tiles of 64
    ],
)
def test_share_of_time_that_computes_elements(m, n, batch, expected):
    assert_allclose(efficiency(m, n, batch), expected, rtol=1e-12, atol=0)


def test_large_products_reach_the_whole_peak():
    assert_allclose(efficiency(1e6 // 128 * 128, 1e6 // 128 * 128), 1, rtol=2e-3, atol=0)


def test_operations_and_bytes():
    assert gemm_operations(*arrays(2, 3, 5, 7)) == 2 * 2 * 3 * 5 * 7
    assert gemm_size(*arrays(2, 3, 5, 7, 1, 2)) == ((10 + 15) * 1 + 6 * 2) * 7


@pytest.mark.parametrize(("bandwidth", "expected"), [(1e12, 1e-3), (1e9, 1.0)])
def test_time_is_that_of_the_slower_roof_plus_launches(bandwidth, expected):
    times = gemm_time(*arrays(1e9, 1e9, 2e12, 0.5, bandwidth, 1, 3, 1e-5))
    assert_allclose(times, 3 * (expected + 1e-5), rtol=1e-12, atol=0)
