"""Sampled steps of HPL against all steps, tiles of its products, and the memory that holds its matrix."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.errors import UsageError
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.scenario_writer import HPLPlacement, hpl_scenario_of
from whatif.linpack.simulation.configuration import Configuration
from whatif.linpack.simulation.costs import (
    DGEMM,
    DGEMM_LIMITS,
    KERNEL_COLUMNS,
    KERNELS,
    MULTIPROCESSORS,
    PER_MNK,
    TILE_EXTENT,
    matrix_mean,
)
from whatif.linpack.simulation.rolling import rolled_rows
from whatif.linpack.simulation.sampling import LEAST_WORK, simulated_steps, windows_of
from whatif.models.gemm import tile_efficiency


def runs_of(platform, configuration, steps="auto", **placement):
    overrides = {"application.steps": steps}
    return HPLRuns(hpl_scenario_of(configuration, platform, (), overrides, HPLPlacement(**placement))[0].program)


@pytest.mark.parametrize(
    ("platform", "grid", "n", "nb", "placement"),
    [
        ("frontier", (8, 8), 640_000, 256, {"panel_on": "device"}),
        ("frontier", (16, 12), 1_000_000, 256, {"panel_on": "host"}),
        ("jupiter", (8, 16), 1_000_000, 384, {}),
        ("theta", (7, 9), 1_000_000, 192, {"ranks_per_node": 1}),
    ],
)
def test_sampled_runs_take_as_long_as_whole_ones(platform, grid, n, nb, placement):
    configuration = Configuration(n, nb, *grid, recursion_minimum=32)
    whole, sampled = (
        runs_of(platform, configuration, steps, **placement).run(configuration, 0) for steps in ("all", "sampled")
    )
    assert whole.time != sampled.time
    assert_allclose(sampled.time, whole.time, rtol=3e-3, atol=0)
    assert_allclose(sampled.ends, whole.ends, rtol=0.02, atol=0)
    for name in ("update", "recursive_factorisation"):
        assert_allclose(sampled.components[name].mean(), whole.components[name].mean(), rtol=0.01, atol=0)


def test_long_runs_on_machines_without_noise_are_sampled():
    short, long = Configuration(64_000, 64, 8, 8), Configuration(64 * int(LEAST_WORK / 64), 64, 8, 8)
    assert [runs_of("frontier", short).plan.samples(each) for each in (short, long)] == [False, True]
    assert not runs_of("frontier", short, "all").plan.samples(long)
    assert not runs_of("dahu", short, noise="kernels").plan.samples(long)
    assert not runs_of("dahu", short).plan.samples(long)


@pytest.mark.parametrize(("depth", "sampled"), [(0, True), (1, False)])
def test_long_runs_on_processors_are_sampled_without_look_ahead_only(depth, sampled):
    long = Configuration(64 * int(LEAST_WORK / 64), 64, 8, 8, depth=depth)
    runs = runs_of("theta", Configuration(64_000, 64, 8, 8, depth=depth), ranks_per_node=1)
    assert runs.plan.samples(long) is sampled
    assert bool(runs.sampling(long)) is sampled
    wanted = runs_of("theta", Configuration(64_000, 64, 8, 8, depth=depth), "sampled", ranks_per_node=1)
    assert ("look-ahead" in wanted.sampling(long)) is not sampled


def test_sampling_is_refused_where_processors_differ_or_calls_deviate():
    configuration = Configuration(64_000, 64, 8, 8)
    with pytest.raises(UsageError, match="needs identical processors and no noise"):
        runs_of("dahu", configuration, "sampled").run(configuration, 0)


@pytest.mark.parametrize("case", [(42_000, 256, 294, 8), (22_857, 60, 73, 1), (1_660, 16, 12, 8), (9_882, 48, 66, 4)])
def test_windows_follow_one_another_by_whole_nodes_and_are_fewer_than_the_steps(case):
    windows = windows_of(*case)
    assert windows[0].first == 0
    for before, after in pairwise(windows):
        assert before.behind < after.first < after.settled < after.behind <= case[0]
        assert (after.first - before.behind) % case[3] == 0
    assert simulated_steps(windows, case[0]) < 0.5 * case[0]


def test_short_runs_have_no_windows():
    assert windows_of(300, 8, 8, 8) == []


def test_messages_of_equal_rows_roll_as_they_are():
    assert_allclose(rolled_rows(8, 64), 8.0, rtol=1e-12, atol=0)
    assert 2 < rolled_rows(8, 20) <= 3


@pytest.mark.parametrize("shape", [(100, 100), (1000, 333), (5000, 7000), (20000, 512)])
def test_products_have_the_efficiency_of_their_tiles(shape):
    table = np.zeros((len(KERNELS), KERNEL_COLUMNS))
    table[DGEMM_LIMITS], table[DGEMM, PER_MNK] = np.inf, 1e-12
    whole = matrix_mean(table, *shape, 256)
    table[DGEMM_LIMITS, [TILE_EXTENT, MULTIPROCESSORS]] = 128, 108
    share = tile_efficiency(*map(np.float64, shape), np.float64(1), np.float64(128), np.float64(108))
    assert 0 < share < 1
    assert_allclose(matrix_mean(table, *shape, 256), whole / share, rtol=1e-12, atol=0)


def test_the_matrix_must_fit_the_memory_of_the_gpus():
    configuration = Configuration(200_000, 512, 2, 2)
    runs = runs_of("leonardo", configuration)
    refusal = runs.refusal(configuration)
    assert refusal is not None
    found = re.search(r"256 GB of GPU memory.* largest N that fits is ([\d,]+)", refusal.message)
    assert found is not None
    largest = int(found[1].replace(",", ""))
    assert 8 * largest * (largest + 1) <= 4 * 64e9 < 8 * (largest + 1) * (largest + 2)
    assert runs.refusal(Configuration(largest, 512, 2, 2)) is None


def test_a_matrix_on_the_hosts_may_be_larger_than_the_memory_of_the_gpus():
    configuration = Configuration(200_000, 512, 2, 2)
    overrides = {"application.matrix_on": "host"}
    scenario = hpl_scenario_of(configuration, "leonardo", (), overrides, HPLPlacement())[0]
    assert HPLRuns(scenario.program).refusal(configuration) is None
    assert float(whatif.run(scenario)["total_time"]) > 0
