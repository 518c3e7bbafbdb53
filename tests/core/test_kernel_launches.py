"""Kernel phases whose blocks do not fill a GPU, the time of their launches, and copies that a host waits for."""

from __future__ import annotations

import re

import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.core.kernel_notes import kernel_notes
from whatif.errors import InvalidFileError

GPU = """part = "gpu"
name = "GPU of 100 multiprocessors"
peak_single_rate = "20 Tflop/s"
peak_double_rate = "10 Tflop/s"
dram_bandwidth = "1 TB/s"
l2_bandwidth = "4 TB/s"
memory_size = "80 GB"
multiprocessor_count = 100
"""
KERNEL = {
    "kind": "kernel",
    "model": "roofline",
    "dominant_operation": "fp_64",
    "metrics_per": "launch",
    "operations": "10 Gflop",
    "dram_size": "0 B",
}


@pytest.fixture
def time(tmp_path):
    (tmp_path / "gpu.toml").write_text(GPU)
    (tmp_path / "mine.toml").write_text('extends = "dgx_h100"\nname = "Mine"\nnode.gpu.extends = "gpu"\n')

    def of(phase, overrides=None, **more):
        grid = {"cells": {"x": 1000}, "scaling": "weak"}
        phases = {"work": {**phase, **more}}
        about = {"name": "one", "rank_count": 1, "iteration_count": 1, "grid": grid, "phases": phases}
        built = whatif.Scenario.of(application=about, name="one", platform=tmp_path / "mine.toml")
        return float(whatif.run(whatif.load(built, overrides=overrides or {}))["terms.work"])

    return of


def test_blocks_that_fill_the_device_change_nothing(time):
    assert_allclose(time(KERNEL), 1e-3 + 2e-6, rtol=1e-12, atol=0)
    assert time(KERNEL, block_count=200, block_size=256) == time(KERNEL)


@pytest.mark.parametrize(
    ("blocks", "size", "slower"), [(100, 512, 1), (50, 512, 2), (101, 512, 200 / 101), (100, 192, 2), (1, 96, 400)]
)
def test_few_blocks_compute_on_their_multiprocessors_alone(time, blocks, size, slower):
    assert_allclose(time(KERNEL, block_count=blocks, block_size=size), slower * 1e-3 + 2e-6, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("model", "moved"), [("roofline", 1e9 / (4 * 256 * 16 / 360e-9)), ("roofline_l2", 9e9 / (4 * 256 * 16 / 154e-9))]
)
def test_few_threads_draw_their_own_bandwidth(time, model, moved):
    few = {"operations": "0 flop", "dram_size": "1 GB", "l2_size": "9 GB", "block_count": 4, "model": model}
    assert_allclose(time(KERNEL, **few), moved + 2e-6, rtol=1e-12, atol=0)


def test_roofs_of_two_kinds_add_up_with_the_exponent_of_the_phase(time):
    """1 ms of arithmetic and 1 ms of memory; the traffic of the cache counts where the model has it."""
    both = {"dram_size": "1 GB", "l2_size": "4 GB", "roof_exponent": 2}
    assert_allclose(time(KERNEL, **both), 2**0.5 * 1e-3 + 2e-6, rtol=1e-12, atol=0)
    assert_allclose(time(KERNEL, **both, model="roofline_l2"), 3**0.5 * 1e-3 + 2e-6, rtol=1e-12, atol=0)


def test_blocks_follow_the_work_unless_the_phase_says_otherwise(time):
    """At a tenth of the profiled cells 20 of 200 blocks are left, on 20 of 100 multiprocessors."""
    grown = {"block_count": 200, "block_size": 512, "follows": "cells", "profiled_cells": {"x": 10_000}}
    assert_allclose(time(KERNEL, **grown), 1e-4 / 0.2 + 2e-6, rtol=1e-12, atol=0)
    assert_allclose(time(KERNEL, **grown, blocks_follow="nothing"), 1e-4 + 2e-6, rtol=1e-12, atol=0)
    stated = {**grown, "block_count": "= application.grid.cells.x / 20", "blocks_follow": "nothing"}
    assert_allclose(time(KERNEL, **stated), 1e-4 / 0.5 + 2e-6, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("size", "expected"), [("40 MB", 1e9 / 4e12), ("41 MB", 1e9 / 1e12)])
def test_data_that_fit_the_second_level_cache_have_its_bandwidth(time, size, expected):
    cache = {"platform.node.gpu.l2_capacity": "40 MB"}
    moved = {"operations": "0 flop", "dram_size": "1 GB", "working_set": size}
    assert_allclose(time(KERNEL, cache, **moved), expected + 2e-6, rtol=1e-12, atol=0)
    assert_allclose(time(KERNEL, **moved), 1e-3 + 2e-6, rtol=1e-12, atol=0)
    few = {"block_count": 1, "block_size": 1000}
    latency = 154e-9 if expected < 1e-3 else 360e-9
    assert_allclose(time(KERNEL, cache, **moved, **few), 1e6 * latency / 16 + 2e-6, rtol=1e-12, atol=0)
    one = time(KERNEL, cache, **moved, **few, in_flight_size="8 B")
    assert_allclose(one, 1e6 * latency / 8 + 2e-6, rtol=1e-12, atol=0)


def test_launches_take_the_time_of_empty_kernels_or_the_interval_of_the_host(time):
    small = {"operations": "10 Mflop", "launch_count": 5}
    assert_allclose(time(KERNEL, **small), 5 * 3.3e-6, rtol=1e-12, atol=0)
    graph = {"platform.node.gpu.launch_interval": "0 s"}
    assert_allclose(time(KERNEL, graph, **small), 5 * 3e-6, rtol=1e-12, atol=0)
    assert_allclose(time(KERNEL, **small, launch_time="9 us"), 5 * 10e-6, rtol=1e-12, atol=0)


def test_a_run_says_that_assumed_launches_take_much_of_the_time(tmp_path):
    (tmp_path / "gpu.toml").write_text(GPU)
    (tmp_path / "mine.toml").write_text('extends = "dgx_h100"\nname = "Mine"\nnode.gpu.extends = "gpu"\n')

    def notes(operations, **gpu):
        phases = {"work": {**KERNEL, "operations": operations}}
        about = {"name": "one", "rank_count": 1, "iteration_count": 1, "phases": phases}
        built = whatif.Scenario.of(application=about, name="one", platform=tmp_path / "mine.toml")
        sets = {f"platform.node.gpu.{key}": value for key, value in gpu.items()}
        return [note for note in whatif.run(whatif.load(built, overrides=sets)).notes if "launches take" in note]

    (much,) = notes("80 Mflop")
    assert much.startswith("launches take 20% of the time of kernels: empty_kernel_time and launch_interval by rule")
    assert notes("800 Mflop") == []
    assert notes("80 Mflop", empty_kernel_time="2 us", launch_interval="3 us") == []


def test_a_copy_that_the_host_waits_for_takes_the_time_of_waiting_too(time):
    copy = {"kind": "transfer", "direction": "device_to_host", "transfer_size": "8 B", "transfer_count": 3}
    waiting = {"platform.node.gpu.synchronisation_time": "7 us"}
    assert_allclose(time(copy, waiting, blocking=True) - time(copy, waiting), 3 * 7e-6, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"block_count": 0}, "block_count"),
        ({"block_count": 10, "block_size": 0}, "block_size"),
        ({"block_count": 10, "blocks_follow": "cells"}, "blocks_follow.*work.*nothing"),
    ],
)
def test_impossible_blocks_are_refused_with_their_key(time, wrong, reason):
    with pytest.raises(InvalidFileError, match=reason):
        time(KERNEL, **wrong)


@pytest.mark.parametrize(
    ("platform", "phase", "note"),
    [
        (
            "dgx_a100",
            {"working_set": "1 MB"},
            "the working_set of work has no effect: .*node.gpu.l2_capacity",
        ),
        ("dgx_h100", {"working_set": "1 MB"}, ""),
        ("dgx_h100", {"follows": "cells", "profiled_cells": {"x": 9}}, ""),
        ("dgx_h100", {"follows": "cells", "metrics_per": "cell"}, "the follows of work has no effect: .* of a cell"),
        ("dgx_h100", {"follows": "surface", "metrics_per": "rank"}, "the follows of work has no effect: .* of a rank"),
    ],
)
def test_values_of_kernels_without_effect_are_told(platform, phase, note):
    grid = {"cells": {"x": 1000}, "scaling": "weak"}
    about = {"name": "one", "rank_count": 1, "iteration_count": 1, "grid": grid, "phases": {"work": KERNEL | phase}}
    built = whatif.Scenario.of(application=about, name="one", platform=platform)
    found = list(kernel_notes(built.program))
    assert bool(found) == bool(note)
    assert re.search(note, " ".join(found))
