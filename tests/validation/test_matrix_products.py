"""Products of matrices compared with measured rates; the table of docs/devices.md is that of the program."""

from __future__ import annotations

import os

import numpy as np
import pytest

import whatif
from tests.paths import ROOT

PAGE = ROOT / "docs" / "devices.md"
WRITE = os.environ.get("WHATIF_WRITE_MACHINES") == "1"


@pytest.fixture(scope="module")
def table():
    return whatif.comparisons("gemm").table()


def test_the_held_out_device_is_predicted_within_a_tenth(table):
    rows = {(row[0], row[1]): row for row in table.rows()}
    use, gpu, _, shapes, error, bias = rows["held out", "h100-sxm5-80gb"]
    assert (use, gpu, shapes) == ("held out", "h100-sxm5-80gb", 9)
    assert error < 0.1
    assert -0.1 < bias < 0


def test_fitted_devices_have_next_to_no_bias(table):
    biases = [row[5] for row in table.rows() if row[0] == "fitted"]
    assert len(biases) == 2
    assert np.abs(biases).max() < 0.02


def test_the_table_of_the_page_is_that_of_the_program(table):
    head = "| use | GPU | precision | shapes | mean absolute error | bias |\n|---|---|---|---:|---:|---:|\n"
    rows = "".join(
        f"| {use} | `{gpu}` | {precision} | {shapes:.0f} | {error:.1%} | {bias:+.1%} |\n"
        for use, gpu, precision, shapes, error, bias in table.rows()
    )
    before, start, rest = PAGE.read_text(encoding="utf-8").partition("<!-- gemm -->\n")
    _, end, after = rest.partition("<!-- end of gemm -->")
    written = f"{before}{start}\n{head}{rows}\n{end}{after}"
    if WRITE:
        PAGE.write_text(written, encoding="utf-8")
    assert written == PAGE.read_text(encoding="utf-8")
