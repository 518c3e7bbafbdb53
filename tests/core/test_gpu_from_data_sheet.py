"""A GPU from its data sheet: rates by rule, kernels without a mix of instructions, products of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from whatif.errors import InvalidFileError, UsageError
from whatif.schema.gpu import GPU
from whatif.schema.load import load_part

SHEET = """part = "gpu"
name = "GPU of a data sheet"
peak_single_rate = "75 Tflop/s"
peak_double_rate = "37 Tflop/s"
dram_bandwidth = "8 TB/s"
memory_size = "180 GB"
matrix_rates.bf16 = "2250 Tflop/s"
empty_kernel_time = "0 s"
launch_interval = "0 s"
"""
KERNEL = {
    "kind": "kernel",
    "model": "roofline_l2",
    "dominant_operation": "fp_64",
    "metrics_per": "rank",
    "operations": "1 Tflop",
    "dram_size": "1 MB",
}
PRODUCT = {"kind": "gemm", "m": 8192, "n": 8192, "k": 8192, "precision": "bf16"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "sheet.toml").write_text(SHEET)
    (tmp_path / "mine.toml").write_text('extends = "dgx_h100"\nname = "Mine"\nnode.gpu.extends = "sheet"\n')
    return tmp_path


def scenario(folder, phase, **gpu):
    application = {"name": "one", "rank_count": 1, "iteration_count": 1, "phases": {"work": phase}}
    overrides = {f"platform.node.gpu.{key}": value for key, value in gpu.items()}
    built = whatif.Scenario.of(application=application, name="one", platform=folder / "mine.toml")
    return whatif.load(built, overrides=overrides)


def time(folder, phase, **gpu):
    return float(whatif.run(scenario(folder, phase, **gpu))["terms.work"])


def test_every_shipped_scenario_runs_on_it(folder):
    for name in ("jacobi2d", "minimd", "minife"):
        assert np.isfinite(whatif.run(name, platform=folder / "mine.toml")["total_time"])


def test_a_kernel_without_a_mix_of_instructions_runs_at_its_peak(folder):
    assert_allclose(time(folder, KERNEL), 1 / 37, rtol=1e-12, atol=0)
    mix = {**KERNEL, "compute_fraction": 1, "load_store_fraction": 0}
    assert_allclose(time(folder, mix), 1 / 37, rtol=1e-12, atol=0)
    with pytest.raises(InvalidFileError, match="load_store_fraction: missing key, needed by `compute_fraction`"):
        time(folder, {**KERNEL, "compute_fraction": 1})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"dominant_operation": "integer"}, 1 / (0.465 * 75)),
        ({"l2_size": "3.3 TB"}, 3.3 / (3.3 * 8)),
    ],
)
def test_rates_follow_by_rule_and_are_named_where_they_bind(folder, change, expected):
    kernel = {**KERNEL, **change}
    assert_allclose(time(folder, kernel), expected, rtol=1e-12, atol=0)
    notes = [note for note in whatif.run(scenario(folder, kernel)).notes if "by rule" in note]
    assert len(notes) == 1
    assert ("l2_bandwidth" in notes[0]) == ("l2_size" in change)


def test_a_rate_that_binds_nothing_is_not_named(folder):
    mixed = {**KERNEL, "dram_size": "1 TB", "compute_fraction": 0.2, "load_store_fraction": 0.2}
    assert not any("by rule" in note for note in whatif.run(scenario(folder, mixed)).notes)


def test_a_part_alone_knows_its_rates_by_rule():
    gpu = load_part("b200-sxm")
    assert isinstance(gpu, GPU)
    assert_allclose(gpu.number("l2_bandwidth"), 3.3 * 7.04e12, rtol=1e-12, atol=0)
    assert gpu.number("peak_double_rate") == 37e12


@pytest.fixture
def own_gpu(tmp_path):
    """Part of a GPU with one value replaced."""

    def part(**values):
        stated = {
            "peak_single_rate": "60 Tflop/s",
            "peak_double_rate": "30 Tflop/s",
            "dram_bandwidth": "4 TB/s",
        } | values
        lines = [f'{key} = "{value}"' for key, value in {"part": "gpu", "name": "Own", **stated}.items()]
        (tmp_path / "own.toml").write_text("\n".join(lines))
        return load_part(tmp_path / "own.toml")

    return part


@pytest.mark.parametrize(
    ("key", "expression", "value"),
    [
        ("peak_double_rate", "= platform.node.gpu.peak_single_rate / 4", 15e12),
        ("peak_add_rate", "= 0.7 * platform.node.gpu.peak_single_rate", 42e12),
        ("l2_bandwidth", "= min(2 * platform.node.gpu.dram_bandwidth, 9 TB/s)", 8e12),
        ("multiprocessor_count", "= ceil(platform.node.gpu.peak_add_rate / 100 Gflop/s)", 294.0),
    ],
)
def test_an_expression_of_a_part_replaces_its_rule(own_gpu, key, expression, value):
    assert_allclose(own_gpu(**{key: expression}).number(key), value, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("= 2 * platform.node.gpu.dram_bandwidth", "needs itself"),
        ("= platform.network.bandwidth", "needs `platform.network.bandwidth`, which is not a number of the GPU"),
    ],
)
def test_an_expression_that_a_part_alone_cannot_compute_is_refused(own_gpu, expression, reason):
    with pytest.raises(UsageError, match=f"Own: the expression of `dram_bandwidth` {reason}"):
        own_gpu(dram_bandwidth=expression).number("dram_bandwidth")


def test_a_product_of_matrices_runs_at_the_peak_of_its_precision(folder):
    tiles = 16384 / (np.ceil(16384 / 157) * 157)
    expected = 2 * 8192**3 / (2250e12 * 0.72 * tiles) + 5e-6
    assert_allclose(time(folder, PRODUCT), expected, rtol=1e-12, atol=0)
    measured = {**PRODUCT, "efficiency": 0.5, "launch_time": "0 s", "launch_count": 3}
    assert_allclose(time(folder, measured), 3 * 2 * 8192**3 / (2250e12 * 0.5), rtol=1e-12, atol=0)


def test_without_matrix_units_the_vector_peak_counts_with_a_note(folder):
    double = {**PRODUCT, "precision": "fp64", "efficiency": 1, "launch_time": "0 s"}
    assert_allclose(time(folder, double), 2 * 8192**3 / 37e12, rtol=1e-12, atol=0)
    notes = whatif.run(scenario(folder, double)).notes
    assert "work: no matrix units for fp64: the peak of the vector units" in notes


def test_without_matrix_units_the_efficiency_is_that_of_the_vectors(folder):
    """A share of matrix units, here as on AMD's devices, says nothing about vectors."""
    tiles = 16384 / (np.ceil(16384 / 157) * 157)
    double = {**PRODUCT, "precision": "fp64", "launch_time": "0 s"}
    expected = 2 * 8192**3 / (37e12 * tiles)
    assert_allclose(time(folder, double, matrix_efficiency=0.4), expected / 0.91, rtol=1e-12, atol=0)
    assert_allclose(time(folder, double, vector_efficiency=0.5), expected / 0.5, rtol=1e-12, atol=0)


# Peaks of one die or tile, and the share that large products reach; products of 8192 fill all but 4 % of the tiles.
PRODUCTS = [
    ("frontier", "fp32", 47.85e12, 0.4),
    ("frontier", "int8", 191.5e12, 0.4),
    ("mi300x_node", "fp32", 163.4e12, 0.4),
    ("aurora", "tf32", 209.5e12, 0.62),
    ("aurora", "bf16", 419.5e12, 0.62),
    ("aurora", "fp16", 419.5e12, 0.62),
    ("aurora", "int8", 839e12, 0.62),
    ("aurora", "fp32", 21e12, 0.91),
    ("aurora", "fp64", 11e12, 0.91),
    ("perlmutter", "fp32", 19.5e12, 0.91),
]


@pytest.mark.parametrize(("machine", "precision", "peak", "share"), PRODUCTS)
def test_products_on_shipped_machines_run_on_the_units_of_their_precision(machine, precision, peak, share):
    product = {**PRODUCT, "precision": precision, "launch_time": "0 s"}
    alone = {"rank_count": 1, "iteration_count": 1, "name": "one", "phases": {"work": product}}
    reached = 2 * 8192**3 / float(whatif.run(whatif.Scenario.of(application=alone, platform=machine))["total_time"])
    assert 0.9 * share * peak < reached <= share * peak


# Products measured on one tile of Aurora in Tflop/s (argonne-lcf/user-guides @f0a33231), and how far off we are.
@pytest.mark.parametrize(
    ("precision", "measured", "tolerance"),
    [("tf32", 110, 0.2), ("bf16", 273, 0.1), ("fp16", 263, 0.05), ("int8", 577, 0.15), ("fp32", 22, 0.2)],
)
def test_products_on_a_tile_of_aurora_are_as_measured(precision, measured, tolerance):
    gpu = load_part("max-1550-tile")
    peak, share = getattr(gpu.matrix_rates, precision), gpu.matrix_efficiency
    if peak is None:
        peak, share = gpu.peak_single_rate, gpu.vector_efficiency
    assert_allclose(peak * share, measured * 1e12, rtol=tolerance, atol=0)


def test_a_precision_that_a_device_does_not_have_is_an_error_with_those_that_it_has(folder):
    with pytest.raises(
        InvalidFileError, match=r"work.precision: .* states no peak rate of fp8; it has fp64, fp32, bf16"
    ):
        time(folder, {**PRODUCT, "precision": "fp8"})


def test_a_power_cap_slows_a_product_down(folder):
    powers = {"idle_power": "100 W", "dynamic_power": "900 W"}
    assert time(folder, PRODUCT, **powers, power_cap="500 W") > 1.2 * time(folder, PRODUCT, **powers)
