"""HPL held to the emulator's runs of the real program, to real runs on Dahu, and to the emulator's what-ifs."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks import validation_fleets as fleets
from benchmarks import validation_hpl as tables
from tests.paths import DATA, ROOT
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, RowSwap
from whatif.linpack.simulation.costs import DTRSM, KERNELS, RENDEZVOUS, WHEN_RECEIVED, matrix_mean
from whatif.linpack.simulation.simulator import HPLMachine, simulate
from whatif.validation.hpl_runs import (
    MEASURED,
    Play,
    RunComparison,
    configuration_of,
    dahu_configuration,
    dahu_machine,
    dahu_runs,
    emulator_runs,
    summaries,
    times,
    tree_runs,
    what_if_runs,
)
from whatif.validation.hpl_settings import geometry_runs, settings_runs
from whatif.validation.tables import rows_of

DOCS = ROOT / "docs" / "validation.md"
LETTERS = ("A1", "C1", "D1", "A1_het", "C1_het")


@pytest.fixture(scope="module")
def emulated():
    rows = rows_of("hpl_emulator.csv")
    return list(zip(rows, emulator_runs(rows), strict=False))


@pytest.fixture(scope="module")
def dahu():
    """[letter]: beside the emulator, and beside the measured runs, at N = 50,000."""
    runs = [run for run in dahu_runs(rows_of("hpl_dahu.csv"), LETTERS, (50_000,)) if run.run == "50000"]
    return dict(zip(LETTERS, zip(runs[: len(LETTERS)], runs[len(LETTERS) :], strict=True), strict=True))


@pytest.fixture(scope="module")
def effects():
    return what_if_runs([row for row in rows_of("hpl_what_if.csv") if row["matrix_size"] == "50000"])


def errors(emulated, *origins):
    return np.abs([run.error for row, run in emulated if row["origin"] in origins and row["network"] != "dahu"])


def test_every_run_on_an_ideal_network_is_within_3_percent_of_the_emulator(emulated):
    clean, own = errors(emulated, "reference"), errors(emulated, "own")
    assert (len(clean), len(own)) == (17, 71)
    assert max(clean.max(), own.max()) < 0.03
    assert clean.mean() < 0.01
    assert own.mean() < 0.01


def test_without_look_ahead_nothing_is_left_to_chance(emulated):
    depth_0 = [run for row, run in emulated if row["depth"] == "0" and row["network"] != "dahu"]
    assert len(depth_0) > 40
    assert_allclose([run.time for run in depth_0], [run.reference_time for run in depth_0], rtol=0.002, atol=0)


def test_broadcasts_and_look_ahead_come_in_the_emulators_order(emulated):
    def scenario(row):
        return tuple(value for name, value in row.items() if name not in ("broadcast", "depth", "time_s"))

    pairs = [
        (one[1], other[1])
        for one, other in product(emulated, emulated)
        if scenario(one[0]) == scenario(other[0]) and one[1].reference_time > 1.01 * other[1].reference_time
    ]
    assert len(pairs) > 100
    assert all(slow.time > fast.time for slow, fast in pairs)


def test_ranks_that_share_a_node_are_within_2_percent_of_the_emulator(emulated):
    shared = [run.error for row, run in emulated if row["network"] == "dahu"]
    assert len(shared) == 4
    assert np.abs(shared).max() < 0.02


def test_the_reference_rows_are_those_of_the_emulators_file():
    path = DATA / "hpl" / "emulator" / "smpi_clean_polling.csv"
    heading, *lines = (line.split(",") for line in path.read_text().splitlines())
    theirs = [dict(zip(heading, line, strict=True)) for line in lines]
    ours = [row for row in rows_of("hpl_emulator.csv") if row["origin"] == "reference"]
    assert [row["time_s"] for row in ours] == [row["time_exact"] for row in theirs]
    for row, their in zip(ours, theirs, strict=True):
        run = configuration_of(row)
        sizes = (run.matrix_size, run.block_size, run.process_rows, run.process_columns, run.broadcast, run.depth)
        assert sizes == tuple(int(their[name]) for name in ("N", "NB", "P", "Q", "bcast", "depth"))


def test_costs_of_c1_are_the_published_ones():
    machine, linear = dahu_machine("C1"), dahu_machine("A1")
    assert (machine.factors == 1).all()
    m, n, k = 4096.0, 2048.0, 128.0
    published = 2.8447e-07 + 6.317136e-11 * m * n * k + 1.489053e-10 * m * n + (2.107985e-09 * m + 3.332944e-09 * n) * k
    assert_allclose(matrix_mean(machine.kernels, m, n, k), published, rtol=1e-12, atol=0)
    assert_allclose(matrix_mean(linear.kernels, m, n, k), 1e-6 + 6.484604e-11 * m * n * k, rtol=1e-12, atol=0)
    assert len(np.unique(dahu_machine("C1_het").factors)) > 32


def test_dahu_with_the_published_kernels_agrees_with_the_emulator(dahu):
    assert abs(dahu["C1"][0].error) < 0.03
    # Seeds of the noise are 1 % apart.
    assert abs(dahu["D1"][0].error) < 0.04


def test_the_detailed_model_is_within_3_percent_of_the_measured_runs():
    """Those up to N = 200,000, which are furthest off; `whatif validate hpl` plays all of them."""
    rows = [row for row in rows_of("hpl_dahu.csv") if row["origin"] == MEASURED and int(row["matrix_size"]) <= 200_000]
    sizes = [int(row["matrix_size"]) for row in rows]
    ours = times([Play(dahu_configuration(size), dahu_machine("D1_het"), noisy=True) for size in sizes])
    off = [time / float(row["time_s"]) - 1 for time, row in zip(ours, rows, strict=True)]
    assert len(off) == 7
    assert np.abs(off).mean() < 0.025
    assert np.abs(off).max() < 0.05


@pytest.mark.parametrize("grid", [("1", "960"), ("6", "160"), ("30", "32"), ("96", "10")])
def test_grids_of_960_processes_take_as_long_as_on_dahu_within_8_percent_and_as_documented(grid):
    """Four of the 28 grids, among them 1 x 960; `whatif validate hpl` simulates all of them."""
    rows = [row for row in rows_of("hpl_geometry.csv") if (row["process_rows"], row["process_columns"]) == grid]
    (run,) = geometry_runs(rows)[: len(rows)]
    assert abs(run.error) < 0.08
    *_, line = tables.settings_table([run])
    assert line in DOCS.read_text().splitlines()


def test_two_rings_with_binary_exchange_and_without_look_ahead_take_as_long_as_on_dahu_within_10_percent():
    """Both NB; these settings have the largest mean error of all 72, whose mean is 3.6 % (docs/validation.md)."""
    rows = [
        row for row in rows_of("hpl_settings.csv") if (row["broadcast"], row["depth"], row["swap"]) == ("2", "0", "0")
    ]
    found = settings_runs(rows)[: len(rows)]
    assert len(found) == 2
    assert max(abs(run.error) for run in found) < 0.1


def test_more_detail_takes_longer_as_in_figure_9(dahu):
    for simple, detailed in pairwise(("A1", "A1_het", "C1_het")):
        assert dahu[simple][1].time < dahu[detailed][1].time
        assert abs(dahu[detailed][1].error) < abs(dahu[simple][1].error)


def test_a_part_ten_times_as_fast_or_slow_does_to_hpl_what_it_does_in_the_emulator(effects):
    found = {run.run.removeprefix("50000 "): run for run in effects if run.time > 0}
    default = found.pop("default, the time itself")
    assert len(found) == 6
    for what, run in found.items():
        emulated, ours = run.reference_time / default.reference_time, run.time / default.time
        # The emulator's own probing hides what bandwidth does: both ways its effect is below 4 %.
        if "bandwidth" not in what:
            assert abs(run.error) < 0.1
            assert (emulated > 1) == (ours > 1)


@pytest.mark.parametrize(
    ("bandwidth", "emulated"), [(1.25e9, 3.721447858), (1.25e8, 4.610945712), (1.25e10, 3.633281592)]
)
def test_bandwidth_does_what_it_does_in_an_emulator_whose_probes_do_not_grow(bandwidth, emulated):
    """A switch of the what-ifs' links with 64 ranks, emulated for this project; a failed probe took 0.03 ms."""
    run = Configuration(6000, 120, 8, 8, Broadcast.RING, 0, RowSwap.MIX, 64, Looking.LEFT, 2, 2, Looking.LEFT)
    pieces = np.array([[0.0, 96e-6, 1 / bandwidth, 0.0, 0.0, 0.0, 0.0, WHEN_RECEIVED]] * 2)
    pieces[1, 0], pieces[1, 7] = 65536.0, RENDEZVOUS
    kernels = np.zeros((len(KERNELS), 5))
    kernels[0, 1], kernels[DTRSM, 1], kernels[4] = 1.083e-9, 5.53e-10, np.inf
    found = simulate(run, HPLMachine(kernels, np.stack([pieces, pieces]), np.arange(64), np.ones(64)))
    assert_allclose(found.time, emulated, rtol=0.015, atol=0)


def test_few_links_between_switches_slow_hpl_down_as_much_as_in_the_emulator():
    rows = [row for row in rows_of("hpl_trees.csv") if (row["rank_count"], row["depth"]) == ("64", "0")]
    found = [run for run in tree_runs(rows) if run.time > 0]
    assert len(found) == 8
    assert np.abs([run.time / run.reference_time - 1 for run in found]).max() < 0.07
    assert np.abs([run.error for run in found]).max() < 0.07
    documented = DOCS.read_text().splitlines()
    assert all(line in documented for line in list(tables.tree_table(found))[2:])
    # From as many links as a switch has nodes to one, their order by chance.
    assert max(run.time for run in found) > 3.4 * min(run.time for run in found)


def test_effects_of_fleets_are_those_of_the_emulator_and_documented():
    """N = 100,000; with one of four switches ours is a third of the emulator's 37 % (docs/validation.md)."""
    effects = fleets.fleet_effects((100_000,))
    pairs = {change: pair for change, (pair,) in effects.items()}
    starved = pairs.pop("1 of 4")
    assert len(pairs) == 4
    assert max(abs(ours - emulated) for ours, emulated in pairs.values()) < 0.02
    assert max(ours for ours, _ in pairs.values()) < starved[0] < starved[1]
    documented = DOCS.read_text().splitlines()
    for row in fleets.fleet_table(effects):
        assert any(line.startswith(row.removesuffix(" |")) for line in documented), row


def test_a_summary_has_the_mean_and_the_largest_absolute_error_of_its_kind():
    runs = [
        RunComparison("a", "1", 1.0, 1.1, 0.1, -0.3),
        RunComparison("b", "2", 1.0, 1.0, 0.0),
        RunComparison("a", "3", 1, 0.7, -0.3),
    ]
    found = list(summaries(runs))
    assert [run.reference for run in found] == ["a", "a", "b", "b"]
    assert_allclose([run.error for run in found], [0.2, 0.3, 0.0, 0.0], rtol=1e-12, atol=0)
    assert_allclose([run.emulator_error for run in found[:2]], [0.3, 0.3], rtol=1e-12, atol=0)


def test_the_documented_tables_are_those_of_today(emulated, dahu, effects):
    text = DOCS.read_text()
    assert "\n".join(tables.emulator_table([run for _, run in emulated])) in text
    assert "\n".join(list(tables.what_if_table(effects))[2:]) in text
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    heading = next(cells for cells in lines if cells[:3] == ["N", "measured", "A1"])
    row = next(cells for cells in lines if cells[0] == "50,000")
    cells = dict(zip(heading, row, strict=True))
    for letter, (run, _) in dahu.items():
        # Noise may be drawn in another order one day, which moves a small run by 1 %.
        tolerance = 0.02 if letter[0] in "BD" else 0.002
        assert_allclose(float(cells[letter].split()[0]), run.time, rtol=tolerance, atol=0)
