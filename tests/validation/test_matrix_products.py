"""Products of matrices compared with measured rates; the table of docs/devices.md is that of the program."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import whatif
from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.validation.matrix_products import BEST, measured_ratios
from whatif.validation.tables import rows_of

PAGE = ROOT / "docs" / "devices.md"


@pytest.fixture(scope="module")
def table():
    return whatif.comparisons("gemm").table()


def test_held_out_devices_are_predicted_within_15_percent_the_gb200_within_25(table):
    held = {row[1:3]: row[3:] for row in table.rows() if row[0] == "held out"}
    latest = [held.pop(("gb200", kind)) for kind in ("fp8", "fp4")]
    assert [shapes for shapes, *_ in latest] == [9, 8]
    assert max(error for _, error, _ in latest) < 0.25
    own = {(gpu, kind) for gpu in ("h100-sxm5-80gb", "h200-sxm") for kind in ("bf16", "fp16", "tf32", "fp64")}
    assert held.keys() == {("h100-sxm5-80gb", "fp8"), *own}
    assert held["h100-sxm5-80gb", "fp8"][0] == 9
    assert all(shapes == 10 for gpu, (shapes, *_) in held.items() if gpu in own)
    assert max(error for _, error, _ in held.values()) < 0.15
    assert np.mean([error for _, error, _ in held.values()]) < 0.12


def test_ratios_of_the_accuracy_card_are_those_of_all_rows_but_the_best_of_many():
    rows = rows_of("gemm.csv")
    ratios = measured_ratios(rows)
    assert {gpu: len(its) for gpu, its in ratios.items()} == Counter(row["gpu"] for row in rows if row["use"] != BEST)


def test_errors_by_size_on_the_gb200_are_those_of_the_page():
    chosen = {kind: [row for row in rows_of("gemm.csv") if (row["gpu"], row["precision"]) == ("gb200", kind)]
              for kind in ("fp8", "fp4")}  # fmt: skip
    errors = {}
    for kind, rows in chosen.items():
        for row, ratio in zip(rows, measured_ratios(rows)["gb200"], strict=True):
            if row["m"] != "802816":
                errors.setdefault((kind, int(row["n"])), []).append(100 * (1 / float(ratio) - 1))

    def span(kind, low, high):
        found = [abs(error) for (its, size), all_errors in errors.items() if its == kind and low <= size < high
                 for error in all_errors]  # fmt: skip
        return f"{min(found):.0f} to {max(found):.0f} %"

    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{span('fp8', 4096, 1e9)} too fast from 4,096 on and {span('fp8', 0, 4096)} too slow below" in page
    assert f"{span('fp4', 0, 4096)} too fast below 4,096 and {span('fp4', 8192, 1e9)} too slow from 8,192 on" in page
    assert all((error < 0) == (size >= 4096) for (kind, size), its in errors.items() for error in its if kind == "fp8")


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
    assert_shown(PAGE, "gemm", f"{head}{rows}")
