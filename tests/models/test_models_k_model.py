from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from whatif.models.k_model import effective_process_count, k_factor
from whatif.models.max_rate import max_rate
from whatif.models.postal import postal

# Choi et al. 2020, Table 5: processes of a node, K_inter, K_total, k as printed.
TABLE_5 = {
    "Jacobi2D, Summit": (6, 14, 24, 3.50),
    "Jacobi2D, Lassen": (4, 10, 16, 2.50),
    "Jacobi2D, Bridges": (2, 4, 8, 1.00),
    "MiniFE, Summit": (6, 135, 156, 5.19),
    "MiniFE, Lassen": (4, 92, 104, 3.54),
    "MiniFE, Bridges": (2, 50, 52, 1.92),
    "MiniMD, Summit": (6, 28, 36, 4.67),
    "MiniMD, Lassen": (4, 18, 24, 3.00),
    "MiniMD, Bridges": (2, 10, 12, 1.67),
}


@pytest.mark.parametrize("case", TABLE_5)
def test_table_5(case: str) -> None:
    processes, inter_node, total, printed = map(np.float64, TABLE_5[case])
    assert round(float(k_factor(inter_node, total, processes)), 2) == printed


def test_figure_1_halo_exchange() -> None:
    assert k_factor(np.float64(12), np.float64(24), np.float64(6)) == 3


def test_k_factor_without_messages_is_zero() -> None:
    k = k_factor(np.array([0.0, 0.0, 6.0]), np.array([0.0, 8.0, 8.0]), np.float64(4))
    assert k.tolist() == [0.0, 0.0, 3.0]
    assert effective_process_count(k).tolist() == [1.0, 1.0, 3.0]


def test_k_model_with_k_of_one_equals_postal() -> None:
    k = k_factor(np.float64(3), np.float64(12), np.float64(4))
    arguments = np.float64(65536), np.float64(2.36e-6), np.float64(4.92e9)
    size, latency, bandwidth = arguments
    time = max_rate(size, effective_process_count(k), latency, bandwidth, np.float64(2.31e9))
    assert_allclose(time, postal(*arguments), rtol=1e-15, atol=0)
