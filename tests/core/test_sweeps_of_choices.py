"""Sweeps over choices of which some do not fit: these are infeasible points, as machines that do not fit are."""

import numpy as np
import pytest

import whatif
from whatif.errors import InvalidFileError, UsageError

PRODUCT = """platform = "dgx_h100"
[application]
name = "products"
iteration_count = 10
rank_count = 8
ranks_per_node = 8
[application.phases.product]
kind = "gemm"
m = 8192
n = 8192
k = 8192
precision = "bf16"
"""
HALO = """
[application.grid]
cells = { x = 64, y = 64, z = 64 }
scaling = "weak"
mapping = "file"
mapping_file = "ranks.txt"
[application.phases.exchange]
kind = "halo"
neighbours = "faces"
model = "postal"
message_size = "8 KiB"
"""
PRECISION = "application.phases.product.precision"


@pytest.fixture
def product(tmp_path):
    path = tmp_path / "product.toml"
    path.write_text(PRODUCT)
    return whatif.load(path)


def test_a_precision_without_a_rate_is_an_infeasible_point_with_the_reason(product):
    result = whatif.sweep(product, {PRECISION: ["fp64", "bf16", "fp4"]})
    alone = [whatif.run(product, overrides={PRECISION: name})["iteration_time"] for name in ("fp64", "bf16")]
    np.testing.assert_array_equal(result.columns["iteration_time"], [*alone, np.nan])
    assert list(result.reason[:2]) == ["", ""]
    assert result.reason[2].startswith("H100-SXM5-80GB states no peak rate of fp4; it has fp64")


def test_choices_and_numbers_are_swept_together(product):
    result = whatif.sweep(product, {PRECISION: ["fp4", "bf16"]}, {"application.phases.product.m": [4096, 8192]})
    assert np.isnan(result.columns["iteration_time"]).tolist() == [[True, True], [False, False]]


def test_an_error_is_raised_where_no_choice_fits(product):
    with pytest.raises(
        InvalidFileError, match=r"^--sweep application.phases.product.precision=fp4: .*no peak rate of fp4"
    ):
        whatif.sweep(product, {PRECISION: ["fp4"]})


@pytest.mark.parametrize(
    ("path", "values", "message"),
    [
        ("platform", ["dgx_h100", "dgx_h1000"], "^--sweep: platform: `dgx_h1000`: platform not found"),
        ("platform.node.gpu.extends", ["h200-sxm", "h2000-sxm"], "^--sweep .*=h2000-sxm: .*: part not found"),
        ("application.grid.mapping_file", ["ranks.txt", "nosuch.txt"], r"nosuch.txt"),
    ],
)
def test_names_of_files_that_do_not_exist_are_errors_of_the_sweep(tmp_path, path, values, message):
    (tmp_path / "ranks.txt").write_text("0\n" * 8)
    text = PRODUCT + HALO
    (tmp_path / "product.toml").write_text(text)
    with pytest.raises(InvalidFileError, match=message):
        whatif.sweep(whatif.load(tmp_path / "product.toml"), {path: values})


def test_a_word_that_is_no_choice_is_an_error_as_before(product):
    with pytest.raises(UsageError, match="`fp5` is not one of"):
        whatif.sweep(product, {PRECISION: ["fp64", "fp5"]})
