"""Peaks and bandwidths of a GPU from measurements: synthetic roofs, real outputs, refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import ROOT, SHARED
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.fitting.gpu_rates import DIMENSIONS, fit_gpu
from whatif.importers.gpu_benchmarks import read_gpu
from whatif.table import Column, Table
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_BYTE, FLOP_PER_SECOND, SECOND

HERE = ROOT / "tests"
V100 = HERE / "data" / "gpuroofperf" / "gpu_params" / "tesla_v100.csv"
BABELSTREAM = HERE / "data" / "importers" / "gpu" / "babelstream"
MIXBENCH = SHARED / "gpu" / "mixbench"
INTENSITIES = np.array(
    [0.25 + 0.5 * n for n in (*range(19), 20, 22, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256)]
)


def roofline(peaks: dict[str, float], bandwidth: float, scatter: float = 0.0, seed: int = 0) -> Table:
    """Rows of a device whose two limits act partly at once, which no minimum of two lines describes exactly."""
    random = np.random.default_rng(seed)
    x = INTENSITIES
    rate = np.concatenate([((x * bandwidth) ** -8.0 + peak**-8.0) ** (-1 / 8) for peak in peaks.values()])
    rate *= 1 + scatter * random.standard_normal(len(rate))
    return mixbench(np.repeat(list(peaks), len(x)), np.tile(x, len(peaks)), rate)


def mixbench(precision: np.ndarray, x: np.ndarray, rate: np.ndarray, **notes: str) -> Table:
    columns = {
        "precision": Column(np.array(precision, dtype=object)),
        "operational_intensity": Column(x, FLOP_PER_BYTE),
        "time": Column(np.ones(len(x)), SECOND),
        "rate": Column(rate, FLOP_PER_SECOND),
        "bandwidth": Column(rate / x, BYTE_PER_SECOND),
    }
    return Table(columns, notes)


def streams(bandwidths: dict[str, float], size: float = 2e8, **notes: str) -> Table:
    columns = {
        "function": Column(np.array(list(bandwidths), dtype=object)),
        "array_size": Column(np.full(len(bandwidths), size), BYTE),
        "bandwidth": Column(np.array(list(bandwidths.values())), BYTE_PER_SECOND),
    }
    return Table(columns, notes)


def fit_of(fit, parameter: str):
    return next(one for one in fit.fits if parameter in one.dimensions)


@pytest.mark.parametrize("seed", range(5))
def test_roofs_are_found_under_scatter_with_an_honest_error(seed: int):
    """1 % of scatter: within 2 %; outliers far above and kernels that stay low do not move them."""
    peaks = {"single": 8e12, "double": 4e12, "integer": 2e12}
    table = roofline(peaks, 500e9, 0.01, seed)
    rate = table.columns["rate"].values
    rate[30] *= 2  # a row of single precision on the roof
    rate[[28, 31]] *= 0.7
    fit = fit_gpu([mixbench(table.columns["precision"].values, table.columns["operational_intensity"].values, rate)])
    expected = {"peak_single_rate": 8e12, "peak_double_rate": 4e12, "peak_integer_rate": 2e12, "dram_bandwidth": 500e9}
    assert fit.values.keys() == expected.keys()
    assert_allclose([fit.values[parameter] for parameter in expected], list(expected.values()), rtol=0.02, atol=0)
    relative = [float(one.standard_errors[0] / one.values[0]) for one in fit.fits]
    assert all(0.0003 < error < 0.01 for error in relative)


def test_standard_errors_are_those_of_repeated_measurements():
    """The spread of 200 fits of one device: a fit says no less of itself, and at most twice (rows near the ridge)."""
    fits = [fit_gpu([roofline({"double": 1e12}, 500e9, 0.01, seed)]) for seed in range(200)]
    for parameter in ("peak_double_rate", "dram_bandwidth"):
        spread = np.std([fit.values[parameter] for fit in fits])
        text = np.mean([fit_of(fit, parameter).standard_errors[0] for fit in fits])
        assert 0.9 < text / spread < 2


def test_points_lie_on_the_two_roofs():
    fit = fit_gpu([roofline({"single": 8e12, "half": 16e12}, 500e9)])
    half = next(points for points in fit.points if points.name == "mixbench half")
    assert half.variable == "operational_intensity"
    roofs = np.minimum(half.x * fit.values["dram_bandwidth"], 16e12)
    assert_allclose(half.fitted, roofs, rtol=1e-3, atol=0)
    assert np.all(half.measured <= half.fitted * 1.001)
    one = fit_of(fit, "peak_single_rate")
    assert (one.path, one.ranges) == ("node.gpu", {"operational_intensity": (0.25, 128.25)})
    # By hand: eleven intensities lie beyond 8e12 / 500e9 = 16.
    assert one.point_count == (INTENSITIES > 16).sum()


def test_a_slope_that_ends_before_the_ridge_is_no_peak():
    fit = fit_gpu([roofline({"single": 1e14, "double": 1e12}, 500e9)])
    assert "peak_single_rate" not in fit.values
    assert any("single: fewer than 3 rows where operations are the limit" in line for line in fit.warnings)
    assert_allclose(fit.values["dram_bandwidth"], 500e9, rtol=0.001, atol=0)


def test_operations_that_never_wait_for_memory_say_nothing_of_it():
    table = roofline({"double": 1e10}, 500e9)
    fit = fit_gpu([table])
    assert list(fit.values) == ["peak_double_rate"]
    assert any("no bandwidth" in line for line in fit.warnings)


def test_babelstream_is_the_mean_of_four_functions_with_their_spread():
    """By hand from the file: 433182.244, 431744.565, 436451.083 and 436491.299 MB/s."""
    fit = fit_gpu([read_gpu(BABELSTREAM / "v3.3-titanxp-cuda.txt")])
    assert fit.device == "TITAN Xp"
    assert_allclose(fit.values["dram_bandwidth"], 434467.29775e6, rtol=1e-12, atol=0)
    one = fit_of(fit, "dram_bandwidth")
    assert_allclose(one.standard_errors, 1193.6e6, rtol=1e-3, atol=0)
    assert one.point_count == 4
    assert [points.name for points in fit.points] == [f"BabelStream {f}" for f in ("copy", "mul", "add", "triad")]


def test_only_the_largest_arrays_count():
    small, large = streams({"copy": 3e12, "triad": 3e12}, 1e6), streams({"copy": 0.9e12, "triad": 1.1e12}, 1e9)
    fit = fit_gpu([small, large])
    assert_allclose(fit.values["dram_bandwidth"], 1e12, rtol=1e-15, atol=0)
    assert "BabelStream: only the largest arrays are used" in fit.warnings


def test_the_v100_file_gives_the_gpu_of_summit_exactly():
    stated = evaluate(Scenario.open("jacobi2d", platform="summit").program).values
    fit = fit_gpu([read_gpu(V100)])
    assert fit.values == {parameter: float(stated[f"platform.node.gpu.{parameter}"]) for parameter in DIMENSIONS}
    assert all(np.isnan(one.covariance).all() and np.isnan(one.error) for one in fit.fits)


def test_most_direct_tool_is_used_and_differences_are_reported():
    fit = fit_gpu([read_gpu(V100), roofline({"double": 7e12}, 900e9), streams({"copy": 8e11, "add": 8e11})])
    assert_allclose([fit.values["dram_bandwidth"], fit.values["peak_double_rate"]], [8e11, 7e12], rtol=0.001, atol=0)
    assert fit.values["l2_bandwidth"] == 2878.6151e9
    assert list(fit.values) == list(DIMENSIONS)
    message = [line for line in fit.warnings if "measurements differ" in line]
    assert message[0].startswith("dram_bandwidth: measurements differ; 800 GB/s is used, not 899")
    assert any(line == "peak_double_rate: measurements differ; 7 Tflop/s is used, not 6.34 Tflop/s" for line in message)


def test_excess_over_data_sheet_is_reported():
    tables = [streams({"copy": 1e12, "triad": 1e12}, device="A")]
    assert fit_gpu(tables, {"dram_bandwidth": 0.99e12}).warnings == ()
    (message,) = fit_gpu(tables, {"dram_bandwidth": 0.9e12}).warnings
    assert message == "dram_bandwidth: 1 TB/s measured, but 900 GB/s in the data sheet; do the arrays fit a cache?"
    printed = {"device": "A", "datasheet.peak_double_rate": "3.00 Tflop/s"}
    table = roofline({"double": 4e12}, 500e9)
    columns = (table.columns[name].values for name in ("precision", "operational_intensity", "rate"))
    message = fit_gpu([*tables, mixbench(*columns, **printed)]).warnings
    assert any("peak_double_rate: 4 Tflop/s measured, but 3 Tflop/s in the data sheet" in line for line in message)


@pytest.mark.parametrize("name", ["Tesla V100-SXM2-16GB", "NVIDIA V100-SXM2-16GB", "v100 SXM2", "V100 (Volta)"])
def test_one_device_may_be_named_in_several_ways(name: str):
    tables = [streams({"copy": 1e12, "triad": 1e12}, device=name) for name in ("V100-SXM2-16GB", name)]
    assert fit_gpu(tables, device="Tesla V100-SXM2-16GB").warnings == ()


@pytest.mark.parametrize("names", [("Tesla K20X", "Tesla K40m"), ("Tesla K20X", "K20X", "Xeon Phi 7250")])
def test_different_devices_are_not_averaged(names: tuple[str, ...]):
    tables = [streams({"copy": 1e12, "triad": 1e12}, device=name) for name in names]
    with pytest.raises(UsageError, match="different devices: " + ", ".join(names)):
        fit_gpu(tables)


def test_other_device_than_that_of_platform_is_reported():
    tables = [streams({"copy": 1e12, "triad": 1e12}, device="TITAN Xp")]
    (text,) = fit_gpu(tables, device="Tesla K20X").warnings
    assert text.startswith("the measurements are of TITAN Xp, the platform has Tesla K20X; ")
    assert text.endswith("(name, memory size, other rates) stays that of Tesla K20X")


@pytest.mark.parametrize(
    ("notes", "doubted"),
    [
        ({"device": "Intel(R) Xeon(R) Platinum 8168 CPU"}, True),
        ({"device": "AMD EPYC 7742 64-Core Processor"}, True),
        ({"implementation": "OpenMP"}, True),
        ({"implementation": "OpenMP", "device": "TITAN Xp"}, False),
        ({"implementation": "CUDA", "device": "Tesla K80"}, False),
    ],
)
def test_memory_of_a_processor_is_doubted(notes: dict[str, str], doubted: bool):
    fit = fit_gpu([streams({"copy": 1e12, "triad": 1e12}, file="a.txt", **notes)])
    assert any("a.txt: measured with" in text and "memory of a host" in text for text in fit.warnings) is doubted


def test_stream_of_a_host_is_refused():
    with pytest.raises(UsageError, match=r"a\.txt: STREAM measures the memory of a host"):
        fit_gpu([streams({"copy": 1e11, "triad": 1e11}, tool="STREAM", file="a.txt")])


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "no measurements of a GPU"),
        ([Table({"x": Column(np.ones(1))})], "not measurements of BabelStream, mixbench, gpuroofperf"),
        ([streams({})], "no rows"),
        ([streams({"dot": 1e12, "copy": 1e12})], "fewer than two of copy, mul, add, triad"),
        (
            [Table({**streams({"copy": 1.0}).columns, "bandwidth": Column(np.ones(1), BYTE)})],
            "must be in B/s, not in `B`",
        ),
    ],
)
def test_unsuitable_gpu_tables_are_refused_with_reason(tables: list[Table], message: str):
    with pytest.raises(UsageError, match=message):
        fit_gpu(tables)


def test_several_gpus_in_one_file_are_a_question_not_a_mean(tmp_path: Path):
    path = tmp_path / "gpus.csv"
    heading, row = V100.read_text().strip().split("\n")
    path.write_text("\n".join([heading, row, row.replace("V100", "P100")]))
    with pytest.raises(UsageError, match=r"several GPUs \(Tesla V100-SXM2-16GB, Tesla P100-SXM2-16GB\)"):
        fit_gpu([read_gpu(path)])


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # The mode of the printed GB/s is 422.81; the last rows print 224.9 to 225.02 and 8321.35 to 8414.49 GFLOPS.
        ("rtx2070_cuda", {"dram_bandwidth": 422.81e9, "peak_double_rate": 225e9, "peak_single_rate": 8.35e12}),
        # MI200: rows of double precision end between 19.66 and 20.14 Tflop/s, of integers between 9.96 and 10.28.
        ("hip", {"dram_bandwidth": 1.46e12, "peak_double_rate": 19e12, "peak_integer_rate": 10e12}),
    ],
)
def test_outputs_of_the_manual_of_mixbench(name: str, expected: dict[str, float]):
    fit = fit_gpu([read_gpu(MIXBENCH / f"{name}.txt")])
    assert_allclose([fit.values[parameter] for parameter in expected], list(expected.values()), rtol=0.025, atol=0)
