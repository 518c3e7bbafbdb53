from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from whatif.models.structured_grid import (
    communication_time,
    communication_time_with_reduction,
    computation_time,
    setup_time,
    total_time,
)

CELLS, HALO = np.float64(173_284_172), np.float64(2 * 16_000)  # Table II: Allatoona at 5 m, by rows
CELL_RATE, PACKING, OVERHEAD = np.float64(8e7), np.float64(3e-9), np.float64(4e-5)
HALO_RATE, LATENCY, REDUCTION = np.float64(4e8), np.float64(2e-5), np.float64(5e-6)
PROCESSES = np.array([1.0, 6.0, 64.0, 768.0])


def test_eq_5_is_eq_1_times_process_count() -> None:
    per_iteration = computation_time(CELLS, PROCESSES, HALO, CELL_RATE, PACKING, OVERHEAD)
    right_hand_side = CELLS / CELL_RATE + PROCESSES * HALO * PACKING + PROCESSES * OVERHEAD
    assert_allclose(PROCESSES * per_iteration, right_hand_side, rtol=1e-14, atol=0)


def test_eq_6_adds_the_levels_of_a_binary_tree_to_eq_2() -> None:
    halo = communication_time(HALO, HALO_RATE, LATENCY)
    reduced = communication_time_with_reduction(HALO, PROCESSES, HALO_RATE, LATENCY, REDUCTION)
    assert reduced[0] == halo
    assert_allclose(reduced[2], halo + 6 * REDUCTION, rtol=1e-15, atol=0)
    assert_allclose(reduced[3], halo + (8 + np.log2(3)) * REDUCTION, rtol=1e-14, atol=0)


def test_eq_4_is_the_sum_over_all_iterations() -> None:
    iterations, miscellaneous, cell_setup, startup = map(np.float64, (250, 1e-6, 5e-9, 3.5))
    computation = computation_time(CELLS, PROCESSES, HALO, CELL_RATE, PACKING, OVERHEAD)
    communication = communication_time(HALO, HALO_RATE, LATENCY)
    expected = np.full(4, CELLS * cell_setup + startup)
    for _ in range(250):
        expected += computation + communication + miscellaneous
    setup = setup_time(iterations, CELLS, miscellaneous, cell_setup, startup)
    assert_allclose(total_time(iterations, computation, communication, setup), expected, rtol=1e-12, atol=0)


def test_infinite_rates_leave_overhead_and_latency() -> None:
    infinite = np.float64(np.inf)
    assert computation_time(CELLS, np.float64(1), np.float64(0), infinite, PACKING, OVERHEAD) == OVERHEAD
    assert communication_time(HALO, infinite, LATENCY) == LATENCY
