"""Kernels that do not fill a GPU, by hand and against measured kernels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import ROOT
from whatif.models.occupancy import filled_bandwidth, filled_rate, grown_blocks
from whatif.models.roofline import launched_time
from whatif.schema.gpu import GPU
from whatif.validation.tables import rows_of

N, FULL = np.float64(132), np.float64(384)
H100 = "h100-sxm5-80gb"


def share(blocks, threads=256.0):
    return filled_rate(np.float64(1), np.float64(blocks), np.float64(threads), N, FULL)


@pytest.mark.parametrize(
    ("blocks", "threads", "expected"),
    [
        (1, 1024, 1 / 132),
        (132, 1024, 1),
        (133, 1024, 133 / 264),
        (264, 256, 1),
        (132, 256, 256 / 384),
        (66, 128, 0.5 * 128 / 384),
        (13_200, 32, 1),
    ],
)
def test_the_multiprocessor_with_the_most_blocks_decides(blocks, threads, expected):
    assert_allclose(share(blocks, threads), expected, rtol=1e-14, atol=0)


def test_threads_have_their_bytes_in_flight_until_all_draw_the_bandwidth_of_the_device():
    drawn = filled_bandwidth(
        np.float64(3e12), np.float64(400e-9), np.float64(16), np.array([1.0, 100, 292, 293]), np.float64(256)
    )
    assert_allclose(drawn, [256 * 40e6, 100 * 256 * 40e6, 292 * 256 * 40e6, 3e12], rtol=1e-12, atol=0)


def test_blocks_grow_with_the_work_and_are_whole():
    assert_allclose(grown_blocks(np.float64(100), np.array([1e-6, 0.015, 1, 2.005])), [1, 2, 100, 201])


@pytest.mark.parametrize(("blocks", "growth", "grown"), [(84, 9 / 7, 108), (42, 36 / 14, 108), (100, 2.005, 201)])
def test_rounding_of_the_growth_adds_no_block(blocks, growth, grown):
    assert grown_blocks(np.float64(blocks), np.float64(growth)) == grown


def test_launches_take_their_time_or_the_interval_of_the_host():
    times = launched_time(
        np.array([0, 1e-6, 1e-3]), np.float64(1), np.float64(2), np.float64(10), np.float64(2e-6), np.float64(3e-6)
    )
    assert_allclose(times, [30e-6, 30e-6, 2e-3 + 20e-6], rtol=1e-14, atol=0)


def measured(program, gpu):
    rows = (row for row in rows_of("gpu_programs/times.csv") if (row["program"], row["gpu"]) == (program, gpu))
    return {int(row["size"]): float(row["time_us"]) for row in rows}


@pytest.mark.parametrize("gpu", [H100, "h200-sxm"])
@pytest.mark.parametrize(("few", "many"), [(33_792, 34_048), (67_584, 67_840)])
def test_one_more_block_than_multiprocessors_is_as_slow_as_measured(gpu, few, many):
    """132 and 133, 264 and 265 blocks: forces of all bodies on the bodies of a block."""
    times = measured("bodies", gpu)
    predicted = (many * many / share(many / 256)) / (few * few / share(few / 256))
    assert_allclose(predicted, times[many] / times[few], rtol=0.16, atol=0)
    assert times[many] / times[few] > 1.4


@pytest.mark.parametrize("gpu", [H100, "h200-sxm"])
def test_times_of_few_blocks_do_not_depend_on_their_number(gpu):
    """1 to 132 columns of 2 MiB: each thread has a load of 8 B in flight for 364 to 400 ns."""
    times = measured("sums", gpu)
    latencies = [8 * times[columns] * 1e-6 * 256 / 2**21 for columns in (1, 4, 16, 33, 66, 132)]
    assert_allclose(latencies, 381e-9, rtol=0.06, atol=0)


def test_threads_of_a_multiprocessor_decide_not_their_blocks():
    """Blocks of 32 to 1,024 threads: dependent multiply-adds, and columns of which each thread loads 8 B at a time."""
    errors = {"polynomial": [], "sums": []}
    for row in rows_of("gpu_programs/block_sizes.csv"):
        blocks, threads = np.float64(row["blocks"]), np.float64(row["threads"])
        if row["program"] == "sums":
            drawn = filled_bandwidth(np.float64(2.97e12), np.float64(381e-9), np.float64(8), blocks, threads)
            predicted = blocks * 2**21 / drawn
        else:
            rate = filled_rate(np.float64(34e12 * 0.9), blocks, threads, N, FULL)
            predicted = blocks * threads * 2048 / rate
        errors[row["program"]].append((predicted + 2e-6) / (float(row["time_us"]) * 1e-6) - 1)
    mean = {program: np.abs(found).mean() for program, found in errors.items()}
    assert mean["polynomial"] < 0.15
    assert mean["sums"] < 0.06
    assert max(map(abs, errors["sums"])) < 0.2
    assert max(map(abs, errors["polynomial"])) < 0.3


def test_bandwidth_of_few_threads_on_seven_gpus_is_that_of_the_page():
    """The default latency, and the highest bandwidth of each kernel and GPU."""
    rows = rows_of("gpu_streams.csv")
    highest: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["gpu"], row["kernel"]
        highest[key] = max(highest.get(key, 0.0), float(row["bandwidth_gb"]) * 1e9)
    latency, errors = np.float64(GPU.model_fields["dram_latency"].default), {}
    for row in rows:
        blocks, threads, flight = (np.float64(row[key]) for key in ("multiprocessors", "threads", "streams"))
        drawn = filled_bandwidth(np.float64(highest[row["gpu"], row["kernel"]]), latency, 8 * flight, blocks, threads)
        errors.setdefault(row["gpu"], []).append(float(drawn) / (float(row["bandwidth_gb"]) * 1e9) - 1)
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    everything = {
        **{f"`{gpu}`": found for gpu, found in errors.items()},
        "all": [error for found in errors.values() for error in found],
    }
    for name, found in everything.items():
        assert f"| {name} | {len(found)} | {np.abs(found).mean():.1%} | {np.mean(found):+.1%} |" in page
        assert np.abs(found).mean() < 0.15
