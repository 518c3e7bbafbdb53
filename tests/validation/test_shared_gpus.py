"""Programs whose ranks share a GPU, under MPS and in time slices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.schema.load import load_part
from whatif.validation.tables import rows_of

HOW = ("at the same time", "in time slices")
PAGE = ROOT / "docs" / "devices.md"


@pytest.fixture(scope="module")
def table(compared):
    return compared("shared_gpus").to_pandas()


def test_errors_with_several_ranks_are_those_of_one_rank(table, compared):
    assert "beyond" not in compared("shared_gpus").notes
    errors = table["error"].abs().groupby(table["kind"]).mean()
    assert set(errors.index) == {"one rank", *(f"{gpu}, {how}" for gpu in ("H100", "H200") for how in HOW)}
    assert (errors < errors["one rank"] + 0.01).all()


def test_rows_of_the_page_are_those_of_the_program(table):
    turns = (table["in_turn"] / table["measured"] - 1).abs()
    lines = ["| runs | number | mean error | bias | in turn |", "|---|---:|---:|---:|---:|"]
    for (kind, waits), rows in table.groupby(["kind", "waits"], sort=True):
        when = "after each iteration" if waits == "yes" else "at the end"
        mean, bias, naive = rows["error"].abs().mean(), rows["error"].mean(), turns[rows.index].mean()
        lines.append(f"| {kind}, wait {when} | {len(rows)} | {mean:.1%} | {bias:+.1%} | {naive:.0%} |")
    assert_shown(PAGE, "shared", "".join(f"{line}\n" for line in lines))


def test_the_time_of_a_switch_is_that_of_waiting_ranks():
    """Empty kernels, with a copy of 8 B or without; two ranks switch in less time."""
    rows = [row for row in rows_of("gpu_programs/shared.csv") if row["gpu_sharing"] == "time_slices"]
    times = {(row["program"], row["gpu"], int(row["ranks"])): float(row["synchronised_time_us"]) * 1e-6 for row in rows}
    stated = load_part("h200-sxm").switch_time
    for key in (("wait", "h200-sxm", 8), ("empty", "h200-sxm", 8), ("empty", "h100-sxm5-80gb", 6)):
        assert_allclose(times[key] / key[2], stated, rtol=0.02, atol=0)
    assert times["wait", "h200-sxm", 2] / 2 < 0.8 * stated


def test_a_slice_is_the_switch_over_what_slices_cost_without_waits():
    rows = [row for row in rows_of("gpu_programs/shared.csv") if row["gpu"] == "h200-sxm"]
    rows = [row for row in rows if row["gpu_sharing"] == "time_slices"]
    alone = {(row["program"], row["size"]): float(row["time_us"]) for row in rows if row["ranks"] == "1"}
    eight = {
        (row["program"], row["size"]): float(row["time_us"])
        for row in rows
        if row["ranks"] == "8" and row["program"] not in ("cg", "empty", "wait")
    }
    cost = np.median([time / (8 * alone[key]) for key, time in eight.items()]) - 1
    gpu = load_part("h200-sxm")
    assert_allclose(gpu.switch_time / gpu.time_slice, cost, rtol=0.05, atol=0)
