"""HPCG: its operations and bytes, and the rates of whole machines (docs/validation.md).

`WHATIF_WRITE_MACHINES=1 pytest tests/validation/test_hpcg.py` writes the table of the page.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import whatif
from tests.page_tables import assert_shown
from tests.paths import ROOT
from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.schema.load import load_part
from whatif.validation.tables import TABLES, rows_of

PAGE = ROOT / "docs" / "validation.md"
# An output of HPCG 3.1 on the cluster Yoltla (UAM): 20 ranks of 144^3 rows, 22 sets of 50 iterations, 1873.42 s.
ROWS, ROW_SIZE = 20 * 144**3, 715.141
ITERATIONS, SETS = 1100, 22
COUNTED = {"vectors": 2 * 3.96778e11, "product": 3.59823e12, "levels": 2.01152e13}
READ = 80.5824e9 * 1873.42


@cache
def compared():
    return TABLES["hpcg"]().columns


def table():
    head = "| machine | list | nodes | published | predicted | error | iteration |\n"
    names = ("machine", "list", "nodes", "published", "predicted", "error", "iteration_time")
    form = "| {} | {} | {:,.0f} | {:.2f} | {:.2f} | {:+.1%} | {:.1f} ms |\n"
    units = np.array([1, 1e-15, 1e-15, 1, 1e3])
    lines = (
        form.format(machine, when, *(np.array(numbers) * units))
        for machine, when, *numbers in zip(*(compared()[name].values.tolist() for name in names), strict=True)
    )
    return f"{head}|---|---|{'---:|' * 5}\n" + "".join(lines)


def test_operations_and_reads_are_those_that_the_benchmark_counts():
    """Within the rows at the ends of the grid, which have fewer than 27 nonzeros."""
    program = Scenario.open("hpcg").program
    values, rows = evaluate(program).values, 256**3
    found = {name: float(values[f"{name}.operations"]) / rows for name in ("vectors", "product")}
    levels = [name for name in program.loaded.scenario.application.phases if name.startswith("level")]
    found["levels"] = sum(float(values[f"{name}.operations"]) for name in levels) / rows
    applied = {"vectors": ITERATIONS + SETS / 3, "product": ITERATIONS + SETS, "levels": ITERATIONS}
    for name, count in found.items():
        assert count == pytest.approx(COUNTED[name] / ROWS / applied[name], rel=0.007)
    assert sum(found.values()) == pytest.approx(374.2, abs=0.05)
    bytes_moved = sum(float(values[f"{name}.dram_size"]) for name in (*levels, "product", "vectors")) / rows
    # Each product, sweep and sum writes a vector; the correction of a coarser level is written and read.
    assert 1.02 < bytes_moved / (READ / ROWS / ITERATIONS) < 1.08
    assert float(values["application.memory_size"]) / rows == pytest.approx(ROW_SIZE, rel=1e-3)


def test_a_rating_of_the_comment_is_that_of_the_comparison():
    result = whatif.run("hpcg")
    rate = 374.2 * 256**3 * 8192 / float(result["iteration_time"])
    frontier = next(row for row in rows_of("hpcg.csv") if row["platform"] == "frontier")
    share = 8192 / (int(frontier["nodes"]) * 8)
    predicted = dict(zip(compared()["machine"].values, compared()["predicted"].values, strict=True))["Frontier"]
    assert rate == pytest.approx(share * predicted, rel=0.002)


def test_mean_errors_are_those_of_the_page():
    columns = compared()
    errors, doubt, machines = (columns[key].values for key in ("error", "doubt", "machine"))
    bandwidth = np.array(
        [not word and name not in ("Perlmutter", "DGX A100") for word, name in zip(doubt, machines, strict=True)]
    )
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"**Mean absolute error {np.abs(errors).mean():.1%}, bias {errors.mean():+.1%}**".replace("%", " %") in page
    chosen = errors[bandwidth]
    assert len(chosen) == 6
    words = f"machines without A100 or doubt {np.abs(chosen).mean():.1%} and {chosen.mean():+.1%}.".replace("%", " %")
    assert words in page


def test_published_rates_of_a100_need_more_bandwidth_than_it_has():
    program = Scenario.open("hpcg").program
    values = evaluate(program).values
    kernels = ("product", "level_1", "level_2", "level_3", "level_4", "vectors")
    moved, computed = (sum(float(values[f"{name}.{key}"]) for name in kernels) for key in ("dram_size", "operations"))
    needed = [
        1e15 * float(row["HPCG_Pflop/s"]) * moved / computed / (int(row["nodes"]) * int(row["ranks_per_node"]))
        for row in rows_of("hpcg.csv")
        if row["platform"] in ("perlmutter", "dgx_a100")
    ]
    peaks = [load_part(name).dram_peak_bandwidth for name in ("a100-sxm4-40gb", "a100-sxm4-80gb")]
    assert all(bandwidth > peak for bandwidth, peak in zip(needed, peaks, strict=True))
    words = "would need {:.1f} and {:.1f} TB/s of each GPU".format(*(bandwidth / 1e12 for bandwidth in needed))
    assert words in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_shares_of_exchanges_and_sums_are_those_of_the_page():
    shares = compared()["communication"].values
    words = f"Exchanges and sums take {100 * shares.min():.0f} to {100 * shares.max():.0f} % of an iteration"
    assert words in " ".join(PAGE.read_text(encoding="utf-8").split())


def test_card_is_that_of_the_runs_without_doubt():
    columns, rows = compared(), rows_of("hpcg.csv")
    certain = np.array([not row["doubt"] for row in rows])
    # Times are inverse rates.
    logarithms = np.log1p(columns["error"].values[certain])
    card = Scenario.open("hpcg").program.loaded.scenario.accuracy["iteration"]
    assert card.ratio == pytest.approx(np.exp(logarithms.mean()), rel=1e-3)
    assert card.scatter == pytest.approx(np.exp(logarithms.std(ddof=1)), rel=1e-3)
    assert card.mean_absolute_error == pytest.approx(np.abs(np.expm1(-logarithms)).mean(), rel=1e-3)
    assert card.bias == pytest.approx(np.expm1(-logarithms).mean(), rel=1e-3)
    assert card.run_count == certain.sum()
    assert card.platforms == sorted(row["platform"] for row in rows if not row["doubt"])


def test_the_table_of_the_page_is_that_of_the_runs():
    assert_shown(PAGE, "hpcg", table())
