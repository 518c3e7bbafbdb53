"""Predictions of HPL against measured runs: errors, intervals, corrections, and kernels without a calibration."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr

import whatif
from tests.linpack.test_hpl_verb import hpl_input
from whatif.linpack.kernel_correction import learnt_correction
from whatif.linpack.output_reader import HPLRun
from whatif.linpack.output_writer import HPLRow
from whatif.linpack.prediction_errors import errors_of
from whatif.linpack.prediction_tables import HPLPrediction
from whatif.linpack.simulation.configuration import Configuration

PLATFORM = """
extends = "generic_cpu"
name = "Own"
node.cpu.core_count = 8
[kernels.dgemm]
mnk = "0.05 ns"
[sources]
kernels = { grade = "measured", source = "calibrated" }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with an HPL.dat of four runs on 2 x 4 ranks and a platform `own`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "HPL.dat").write_text(hpl_input(N="2000 3000", NB="64 128"))
    (tmp_path / "own.toml").write_text(PLATFORM)
    return tmp_path


def predicted(**options):
    return whatif.hpl("HPL.dat", platform="own.toml", **options)


def write_output(path, times):
    """Output of HPL for times by N and NB."""
    lines = ["T/V                N    NB     P     Q               Time                 Gflops"]
    for (n, nb), time in times:
        rate = Configuration(n, nb, 2, 4).operations / time / 1e9
        lines.append(f"WR00C2R4 {n:11d} {nb:5d}     2     4 {time:18.2f} {rate:23.6e}")
    path.write_text("\n".join(lines) + "\n")
    return path


def times_of(result):
    return [((it.row.configuration.matrix_size, it.row.configuration.block_size), it.row.time) for it in result]


def prediction(nb, time, measured, interval=None):
    run = Configuration(1000, nb, 1, 1)
    return HPLPrediction(HPLRow(run, time, interval), measured=[HPLRun(run, it, math.nan) for it in measured])


def test_errors_are_those_computed_by_hand():
    found = errors_of([
        prediction(32, 1.1, [1.0, 1.0], (0.9, 1.05)),
        prediction(64, 0.9, [1.2], (0.8, 1.1)),
        prediction(128, 2.0, [1.6, 2.4], (1.7, 2.5)),
        prediction(256, 5.0, []),
    ])  # fmt: skip
    assert (found.configuration_count, found.run_count) == (3, 5)
    assert_allclose([found.mean_error, found.bias], [(0.1 + 0.25 + 0) / 3, (0.1 - 0.25) / 3], rtol=1e-12, atol=0)
    assert_allclose(found.coverage, 3 / 5, rtol=1e-12, atol=0)
    assert_allclose(found.rank_correlation, spearmanr([1.1, 0.9, 2.0], [1.0, 1.2, 2.0])[0], rtol=1e-12, atol=0)
    assert list(found.lines())[1].endswith("it reached 83.3% of WR11C2R4 NB 32 1 x 1")


@pytest.mark.parametrize("ours", [[1.1, 0.9, 2.0, 3.0], [1.0, 1.0, 2.0, 0.5], [2.0, 1.0, 1.0, 1.0]])
def test_equal_times_share_their_ranks(ours):
    measured = [1.0, 1.2, 2.0, 1.2]
    found = errors_of(
        [prediction(32 * at, *times) for at, times in enumerate(zip(ours, [[t] for t in measured], strict=True), 1)]
    )
    assert_allclose(found.rank_correlation, spearmanr(ours, measured)[0], rtol=1e-12, atol=0)


def test_errors_and_intervals_do_without_the_slow_import_of_scipy_stats():
    code = """if True:
        import math, sys
        from whatif.linpack.output_reader import HPLRun
        from whatif.linpack.output_writer import HPLRow
        from whatif.linpack.prediction_errors import errors_of
        from whatif.linpack.prediction_tables import HPLPrediction, interval_of
        from whatif.linpack.simulation.configuration import Configuration
        runs = [Configuration(1000, nb, 1, 1) for nb in (32, 64, 128)]
        measured = [HPLRun(run, 1.0, math.nan) for run in runs]
        errors_of([HPLPrediction(HPLRow(run, 2.0, interval_of([1.9, 2.1])), measured=measured[:1]) for run in runs])
        assert "scipy.special" in sys.modules
        assert "scipy.stats" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_measured_runs_there_are_no_errors():
    assert errors_of([prediction(32, 1.0, [])]) is None


def test_kernels_without_a_calibration_are_listed_and_cost_memory_bandwidth(folder):
    result = predicted()
    assert any("not calibrated, by the memory bandwidth: dgemv, dger, daxpy" in it for it in result.notes)
    assert "assumed: not calibrated, an operation as long as one of dgemm: dtrsm (platform.kernels)" in result.notes
    assert "assumed: not calibrated, free, as the vectors stay in caches: dtrsv (platform.kernels)" in result.notes
    slow = predicted(overrides={"platform.node.host.memory_bandwidth": "1 GB/s"}, components=True)
    fast = predicted(overrides={"platform.node.host.memory_bandwidth": "1 PB/s"}, components=True)
    swaps = [next(iter(it)).components["row_swap"] for it in (slow, fast)]
    # At least one process gathers N / NB rows of its N / 4 columns, half of them in the mean: 80 B each at 1/8 GB/s.
    assert swaps[0] - swaps[1] > 2000**2 / 2 / 4 * 80 * 8 / 1e9 / 2


def test_explain_lists_kernels_without_a_calibration(folder, whatif_main):
    assert whatif_main("hpl", "HPL.dat", "--platform", "own.toml", "--save", "run.toml")[0] == 0
    code, out, _ = whatif_main("explain", "run.toml", "total_time", "--depth", "4")
    assert code == 0
    assert "not calibrated, by the memory bandwidth: dgemv" in out


def test_correction_gives_back_the_factor_that_made_the_runs(folder):
    slower = {"platform.kernels.correction": 1.3}
    output = write_output(folder / "HPL.out", times_of(predicted(overrides=slower)))
    found = predicted(measured=[output]).correction()
    assert_allclose(found.factor, 1.3, rtol=0.01, atol=0)
    assert found.deviation < 0.01
    assert found.run_deviation is None


def test_written_correction_is_that_of_the_platform_and_applies_to_the_next_prediction(folder):
    truth = times_of(predicted(overrides={"platform.kernels.correction": 1.3}))
    output = write_output(folder / "HPL.out", [(key, time * factor) for key, time in truth for factor in (0.98, 1.02)])
    predicted(measured=[output]).write("corrected.toml")
    again = whatif.hpl("HPL.dat", platform="corrected.toml", measured=[output])
    assert again.errors().mean_error < 0.01
    parameters = again.runs.program.parameters
    assert "learnt from 8 runs of 4 configurations of HPL (HPL.out)" in parameters["platform.kernels.correction"].source
    # The scatter of whole times, over the share of the kernels in them.
    before = [time for _, time in times_of(predicted())]
    shares = np.log([time for _, time in truth] / np.array(before)) / np.log(1.3)
    deviation = np.std([-0.02, 0.02], ddof=1) / np.sqrt(np.mean(shares**2))
    assert shares.max() < 0.95
    assert_allclose(parameters["platform.kernels.run_deviation"].value, deviation, rtol=0.01, atol=0)
    # Learnt once more, from the corrected platform, it stays.
    again.write("corrected.toml")
    third = whatif.hpl("HPL.dat", platform="corrected.toml").runs.program.parameters
    assert_allclose(third["platform.kernels.correction"].value, 1.3, rtol=0.01, atol=0)


def test_correction_by_the_command_line_needs_measured_runs(folder, whatif_main):
    code, out, error = whatif_main("hpl", "HPL.dat", "--platform", "own.toml", "-o", "corrected.toml")
    assert (code, out) == (2, "")
    assert "state --measured HPL.out" in error
    assert not (folder / "corrected.toml").exists()


def test_too_few_measured_configurations_teach_nothing(folder):
    output = write_output(folder / "HPL.out", times_of(predicted())[:2])
    with pytest.raises(whatif.WhatifError, match="at least 3 measured configurations; there are 2"):
        predicted(measured=[output]).write("corrected.toml")
    assert not (folder / "corrected.toml").exists()


def test_intervals_contain_runs_of_the_machine_that_made_them(folder):
    """Correction and scatter of runs are drawn as `generic_cpu` states them; at least four in five runs are inside."""
    drawn = predicted(noise=True, replicates=20, seed=1000)
    inside = 0
    for item in drawn:
        runs = [drawn.runs.run(item.row.configuration, seed).time for seed in range(40)]
        low, high = item.row.interval
        inside += sum(low <= time <= high for time in runs)
    assert inside >= 0.8 * 4 * 40
    assert inside < 4 * 40


def test_interval_widens_with_the_uncertainty_of_the_fit_and_the_scatter_of_runs(folder):
    def width(**kernels):
        overrides = {"platform.kernels.correction": 1.0, "platform.kernels.run_deviation": 0.0} | kernels
        low, high = next(iter(predicted(noise=True, overrides=overrides))).row.interval
        return high / low - 1

    assert width() < 0.01
    assert width(**{"platform.kernels.run_deviation": 0.1}) > 0.15
    assert width(**{"platform.kernels.correction": "1 +- 0.1"}) > 0.15
    assert width(**{"platform.kernels.dgemm.mnk": "0.05 ns +- 0.01 ns"}) > 0.15


def test_fewer_busy_cores_than_ranks_are_a_warning(folder):
    found = predicted(overrides={"platform.kernels.busy_cores": 1}).notes
    assert any("timed with 1 busy core, 8 ranks run on a node" in note for note in found)
    assert not any("busy" in note for note in predicted(overrides={"platform.kernels.busy_cores": 8}).notes)


def test_fewer_busy_cores_than_ranks_are_a_warning_of_a_search(folder, whatif_main):
    few = ("--grid", "1x1", "--matrix-sizes", "500", "--candidates", "1", "--set", "platform.kernels.busy_cores=1")
    code, _, error = whatif_main("tune", "hpl", "--platform", "own.toml", *few)
    assert code == 0
    assert "timed with 1 busy core, 8 ranks run on a node" in error


def test_correction_weights_configurations_by_the_share_of_their_kernels():
    """Runs of known factor, scatter and shares: kernels are 90 % of one half of the times, 30 % of the other."""
    random = np.random.default_rng(6)
    shares = np.repeat([0.9, 0.3], 500)
    factors = np.exp(random.normal(np.log(1.2), 0.05, 1000))
    times = (factors**shares)[:, None] * np.exp(random.normal(0, 0.02, (1000, 4)))
    known = [prediction(at + 1, 1.0, list(row)) for at, row in enumerate(times)]
    found = learnt_correction(known, lambda items, factor: list(factor**shares))
    assert_allclose(found.factor, 1.2, rtol=0.01, atol=0)
    assert_allclose(found.deviation, 0.05, rtol=0.1, atol=0)
    # Of the kernels: more than 0.02, the scatter of the whole times.
    assert_allclose(found.run_deviation, 0.02 / np.sqrt((0.9**2 + 0.3**2) / 2), rtol=0.05, atol=0)


def test_correction_of_a_changed_platform_is_not_written(folder, whatif_main):
    write_output(folder / "HPL.out", times_of(predicted()))
    arguments = ("hpl", "HPL.dat", "--platform", "own.toml", "--measured", "HPL.out", "-o", "corrected.toml")
    for change in (("--set", "platform.kernels.dgemm.mnk=0.06 ns"), ("--cluster", "4")):
        code, out, error = whatif_main(*arguments, *change)
        assert (code, out) == (2, "")
        assert "a correction is written without `platform." in error
        assert not (folder / "corrected.toml").exists()
    # The ranks of a node are no part of the platform file.
    assert whatif_main(*arguments, "--ranks-per-node", "8")[0] == 0


def test_correction_in_another_folder_names_the_folder_of_its_platform(folder, whatif_main):
    write_output(folder / "HPL.out", times_of(predicted()))
    (folder / "q").mkdir()
    arguments = ("hpl", "HPL.dat", "--measured", "HPL.out")
    code, _, error = whatif_main(*arguments, "--platform", "own.toml", "-o", "q/corrected.toml")
    assert code == 0
    options = error.split("use it with `")[1].split("`")[0].split()
    assert options[:3] == ["--platform", "q/corrected.toml", "--platform-dir"]
    assert whatif_main(*arguments, *options)[0] == 0


def test_correction_and_deviation_of_runs_reach_panels_on_the_host(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "HPL.dat").write_text(hpl_input(N="4000", NB="256", P="1", Q="2"))

    def part(**kernels):
        overrides = {f"platform.kernels.{name}": value for name, value in kernels.items()}
        found = whatif.hpl("HPL.dat", platform="frontier", panel_on="host", components=True, overrides=overrides,
                           noise="run_deviation" in kernels, replicates=1)  # fmt: skip
        return next(iter(found)).components["recursive_factorisation"]

    assert_allclose(part(correction=3), 3 * part(), rtol=0.01, atol=0)
    assert part(run_deviation=0.5) != pytest.approx(part(), rel=0.01)


def test_kernels_with_a_deviation_of_runs_are_not_said_to_have_none(folder):
    def warns(**kernels):
        overrides = {"platform.kernels.correction": 1, "platform.kernels.run_deviation": 0}
        overrides |= {f"platform.kernels.{name}": value for name, value in kernels.items()}
        return any("no deviations of its kernels" in note for note in predicted(noise=True, overrides=overrides).notes)

    assert warns()
    assert not warns(run_deviation=0.03)
    assert not warns(correction="1 +- 0.1")


def test_runs_that_failed_the_check_of_the_residual_are_left_out_and_counted(folder):
    truth = times_of(predicted(overrides={"platform.kernels.correction": 1.3}))
    good = write_output(folder / "good.out", truth)
    bad = write_output(folder / "bad.out", [(key, time / 4) for key, time in truth])
    failed = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.0e+09 ...... FAILED"
    lines = (f"{line}\n{failed}" if line.startswith("WR") else line for line in bad.read_text().splitlines())
    bad.write_text("\n".join(lines) + "\n")
    result = predicted(measured=[good, bad])
    assert "warning: 4 of 8 measured runs failed HPL's check of the residual and are left out" in result.notes
    assert_allclose(result.correction().factor, 1.3, rtol=0.01, atol=0)
    assert not any("failed" in note for note in predicted(measured=[good]).notes)
