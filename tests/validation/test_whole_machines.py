"""HPL on whole machines against TOP500: errors of the runs that take seconds, and the table of the docs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import whatif
from tests.linpack.test_hpl_verb import hpl_input
from tests.paths import ROOT
from whatif.validation.tables import rows_of
from whatif.validation.whole_machines import about_square, held_out_errors, whole_machines

PAGE = ROOT / "docs" / "validation.md"
QUICK = {
    ("lassen", "June 2021"),
    ("theta", "November 2017"),
    ("alps", "November 2024"),
    ("perlmutter", "November 2024"),
}
"""Platforms and lists of the runs that take a few seconds; all others together take minutes."""


@pytest.fixture(scope="module")
def table(once):
    rows = [row for row in rows_of("top500.csv") if (row["platform"], row["list"]) in QUICK]
    return once("whole_machines", lambda: whole_machines(rows))


def test_the_mean_error_is_bounded(table):
    errors = table.columns["error"].values
    assert len(errors) == len(QUICK)
    assert 0.05 < np.abs(errors).mean() < 0.18
    consistent = errors[table.columns["doubt"].values == ""]
    assert 0.05 < np.abs(consistent).mean() < 0.12
    assert np.abs(consistent.mean()) < 0.03


def test_errors_are_those_of_the_columns(table):
    expected = table.columns["predicted"].values / table.columns["published"].values - 1
    assert_allclose(table.columns["error"].values, expected, rtol=1e-12, atol=0)
    assert f"{np.abs(expected).mean():.1%}" in table.notes["title"]


def test_the_mean_without_rows_in_doubt_is_stated_beside_that_of_all(table):
    doubts, errors = table.columns["doubt"].values, table.columns["error"].values
    found = {(name, listed) for name, listed, *_, doubt in table.rows() if doubt}
    assert found == {("Theta", "November 2017")}
    certain = errors[doubts == ""]
    words = f"without rows in doubt: {len(certain)} machines, mean error {np.abs(certain).mean():.1%}"
    assert words in table.notes["title"]


def test_rows_of_the_page_are_those_of_the_program(table):
    page = PAGE.read_text(encoding="utf-8")
    for name, listed, _, size, _, published, predicted, error, *_ in table.rows():
        assert (
            f"| {name} | {listed} | {size:,.0f} | {published / 1e15:,.2f} | {predicted / 1e15:,.2f} | {error:+.1%} |"
            in page
        )


def test_one_node_of_grace_is_as_fast_as_its_data_sheet(tmp_path):
    """NVIDIA's guide states N, NB, the grid and the time; the rest are defaults."""
    file, measured = tmp_path / "HPL.dat", 616.41
    file.write_text(hpl_input(N="168880", NB="448", P="1", Q="2"))
    errors = []
    for share in (1.0, 0.73):
        peak = {"platform.node.cpu.peak_double_rate": f"{share * 3571.2} Gflop/s"}
        (run,) = whatif.hpl(file, platform="grace_grace", ranks_per_node=2, overrides=peak)
        errors.append(measured / run.row.time - 1)
    assert f"`grace_grace` is {errors[0]:.0%} too fast".replace("%", " %") in PAGE.read_text(encoding="utf-8")
    assert abs(errors[1]) < 0.02


def test_the_factor_of_a_machine_is_learnt_on_the_others():
    published, predicted = np.array([1.0, 2.0, 4.0]), np.array([2.0, 2.0, 2.0])
    found = held_out_errors(["a", "a", "b"], published, predicted)
    assert_allclose(found, [2 * 2 / 1 - 1, 2 * 2 / 2 - 1, 2 * 0.5**0.5 / 4 - 1], rtol=1e-12, atol=0)


@pytest.mark.parametrize(("most", "grid"), [(7168, (64, 112)), (23_536, (148, 159)), (1, (1, 1)), (7, (2, 3))])
def test_grids_are_about_square_and_have_nearly_all_processes(most, grid):
    assert about_square(most) == grid
    assert grid[0] <= grid[1] <= 2 * grid[0]
