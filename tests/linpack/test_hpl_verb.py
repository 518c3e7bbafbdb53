"""`whatif hpl`: what it prints against what the scenario says, beside measured runs, and for what cannot be run."""

from __future__ import annotations

import csv
import io
import json
import re
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.ended_processes import ended_process
from tests.paths import DATA as TEST_DATA
from whatif.linpack.input_reader import parse_hpl_input
from whatif.linpack.output_reader import parse_hpl_output

DATA = TEST_DATA / "hpl"
LINES = {"N": 6, "NB": 8, "P": 11, "Q": 12, "PFACT": 15, "NBMIN": 17, "NDIV": 19, "RFACT": 21, "BCAST": 23, "DEPTH": 25}
SMALL = {"N": "2000", "P": "2", "Q": "4", "PFACT": "2", "NBMIN": "4", "RFACT": "1"}


def hpl_input(**values: str) -> str:
    """The real file with other lists, of as many values as are given."""
    lines = (DATA / "HPL.dat.144").read_text().split("\n")
    for name, text in (SMALL | values).items():
        lines[LINES[name] - 1] = text
        if name != "Q":
            lines[LINES[name] - 2] = str(len(text.split()))
    return "\n".join(lines)


@pytest.fixture
def hpl(whatif_main, tmp_path):
    """`whatif hpl` on a file of such lists."""

    def run(*arguments, platform="dahu", **values):
        (tmp_path / "HPL.dat").write_text(hpl_input(**values))
        return whatif_main("hpl", "HPL.dat", "--platform", platform, *arguments)

    return run


def times(text: str) -> list[float]:
    return [float(row["time [s]"]) for row in csv.DictReader(io.StringIO(text))]


def test_every_combination_is_a_line_of_hpls_table_in_its_order(hpl):
    lists = {"N": "1500 3000", "P": "2 1", "Q": "4 8", "BCAST": "0 5", "DEPTH": "0 1"}
    code, out, error = hpl(**lists)
    runs = parse_hpl_output(out)
    assert (code, len(runs)) == (0, 16)
    assert [run.configuration for run in runs] == list(parse_hpl_input(hpl_input(**lists)).configurations())
    assert "16 runs; 32 ranks on a node; noise none; seed 0" in error
    assert "assumed: 32 ranks on a node, one for each core: 2 x 16" in error


@pytest.mark.parametrize(("platform", "arguments"), [("dahu", ["--binding", "by_socket"]), ("theta", []),
                                                     ("summit", ["--ranks-per-node", "6"])])  # fmt: skip
def test_a_saved_run_is_the_scenario_that_predicts_the_same_time(hpl, whatif_main, platform, arguments):
    code, out, _ = hpl("--format", "csv", *arguments, platform=platform, NB="64")
    assert code == 0
    assert hpl("--save", "run.toml", *arguments, platform=platform, NB="64")[0] == 0
    code, evaluated, _ = whatif_main("run", "run.toml", "--format", "json")
    assert code == 0
    assert_allclose(times(out), [json.loads(evaluated)["rows"][0]["total_time"]], rtol=1e-12, atol=0)


def test_overrides_apply_to_all_runs(hpl):
    _, plain, _ = hpl("--format", "csv", N="2000 4000")
    # dgemm at 100 ns for each of its products, N^3 / 3 over 8 processes, takes longer than anything else.
    slow = hpl("--format", "csv", "--set", "platform.kernels.dgemm.mnk=100 ns", N="2000 4000")[1]
    products = np.array([2000.0, 4000.0]) ** 3 / 3 / 8
    assert (np.array(times(slow)) > products * 100e-9).all()
    assert (np.array(times(slow)) > 10 * np.array(times(plain))).all()


def test_ranks_of_a_node_follow_overrides_of_its_cores(hpl):
    few = ("--set", "platform.node.cpu.core_count=4")
    code, out, error = hpl("--format", "csv", *few)
    assert code == 0
    assert "assumed: 8 ranks on a node, one for each core: 2 x 4" in error
    assert out == hpl("--format", "csv", "--ranks-per-node", "8")[1]


def test_noise_gives_the_mean_and_the_interval_of_runs_with_seeds_that_follow(hpl):
    noisy = ("--noise", "--format", "csv", "--set", "platform.kernels.dgemm.deviation.mnk=0.05 ns")
    _, out, error = hpl(*noisy, "--replicates", "3", "--seed", "7")
    assert "noise of the kernels; seeds 7 to 9" in error
    singles = [times(hpl(*noisy, "--replicates", "1", "--seed", seed)[1])[0] for seed in (7, 8, 9)]
    assert len(set(singles)) == 3
    (row,) = csv.DictReader(io.StringIO(out))
    assert_allclose(float(row["time [s]"]), np.mean(singles), rtol=1e-12, atol=0)
    bounds = [float(row["lower_time [s]"]), float(row["upper_time [s]"])]
    # Student's t with two degrees of freedom is 2.919986 at 95 %.
    logs, half = np.log(singles), 2.919986 * np.std(np.log(singles), ddof=1) * np.sqrt(1 + 1 / 3)
    assert_allclose(bounds, np.exp(logs.mean() + np.array([-half, half])), rtol=1e-6, atol=0)
    assert "90% of runs" in hpl("--noise", "--replicates", "3", "--seed", "7")[1]
    assert "no deviations" not in error
    assert "no deviations of its kernels" in hpl("--noise", "--replicates", "2", platform="summit")[2]


def test_measured_runs_and_components_follow_the_predicted_ones(hpl, tmp_path):
    measured = """\
WR00C2R4        2000   120     2     4               0.50              1.069e+01
Max aggregated wall time rfact . . . :               0.11
+ Max aggregated wall time laswp . . :               0.03
WR00C2R4        2000   120     2     4               1.00              5.34e+00
WR11C2R4        2000   120     2     4               0.24              2.22e+01
"""
    (tmp_path / "HPL.out").write_text(measured)
    arguments = ("--measured", "HPL.out", "--components")
    code, out, error = hpl(*arguments, "--format", "json")
    (row,) = json.loads(out)["rows"]
    assert code == 0
    # HPL prints two decimals: the times follow from the rates, 5.339e9 operations.
    operations = 2000**2 * (2 / 3 * 2000 + 1.5)
    mean = (operations / 10.69e9 + operations / 5.34e9) / 2
    assert_allclose(row["measured_time"], mean, rtol=1e-12, atol=0)
    assert_allclose(row["error"], row["time"] / mean - 1, rtol=1e-12, atol=0)
    assert (row["measured_recursive_factorisation_time"], row["measured_row_swap_time"]) == (0.11, 0.03)
    assert row["measured_update_time"] is None
    assert "1 of the measured runs are not a combination of HPL.dat, such as WR11C2R4 N 2000" in error
    assert row["row_swap_time"] < row["update_time"] < row["time"]

    printed = hpl(*arguments)[1]
    (run,) = parse_hpl_output(printed)
    assert "measured, mean of 2 runs" in printed
    for name, time in run.component_times.items():
        assert abs(time - row[f"{name}_time"]) <= 0.0051
    assert {"recursive_factorisation", "update", "row_swap", "back_substitution"} <= run.component_times.keys()


@pytest.mark.parametrize("file_format", ["table", "markdown"])
def test_rows_for_people_have_one_heading(hpl, file_format):
    code, out, _ = hpl("--format", file_format, NB="64 128")
    assert code == 0
    assert out.count("variant") == 1
    assert len(re.findall("WR00C2R4", out)) == 2


def test_sizes_and_grids_that_need_more_memory_are_refused_with_line_and_amount(hpl):
    code, out, error = hpl(N="2000 900000", P="4 40", Q="8 40")
    assert (code, out) == (3, "")
    # 8 N (N + 1) bytes on a node of 192 GiB; 8 N (N + 1) <= 2 ** 30 * 192 up to N = 160,529.
    assert "HPL.dat:6:1: N: N = 900,000 needs 6.48 TB on 1 node of 192 GiB (206 GB): 6.27 TB too much" in error
    assert "the largest N that fits is 160,529" in error
    assert 8 * 160_529 * 160_530 <= 192 * 2**30 < 8 * 160_530 * 160_531
    assert "HPL.dat:11:1: P x Q: 40 x 40 = 1,600 ranks need 50 nodes with 32 ranks each; Dahu has 32" in error


@pytest.mark.parametrize(
    ("arguments", "platform", "code", "message"),
    [
        ([], "dahuu", 3, "did you mean `dahu`?"),
        ([], "missing.toml", 3, "missing.toml"),
        (["--set", "application.block_size=5"], "dahu", 2, "--set application.block_size: HPL.dat, or the search"),
        (["--set", "application.rank_count=7"], "dahu", 2, "--set application.rank_count: HPL.dat, or the search"),
        (["--set", "application.blocks=5"], "dahu", 3, "unknown key"),
        (["--set", "platform.node_count=nan"], "dahu", 3, "platform.node_count"),
        (["--ranks-per-node", "0"], "dahu", 2, " 0: expected a whole number from 1 to "),
        (["--max-points", "0"], "dahu", 2, " 0: expected a whole number from 1 to "),
        (["--measured", "HPL.dat"], "dahu", 3, "this is an HPL.dat"),
        (["--measured", "HPL.da"], "dahu", 2, "--measured HPL.da: no such file; did you mean `HPL.dat`?"),
        (["--save", "run.toml", "--format", "csv"], "dahu", 2, "-o and --format: no effect with --save"),
        (["--save", "run.toml", "-o", "runs.csv"], "dahu", 2, "-o and --format: no effect with --save"),
        (["--save", "run.toml", "--replicates", "2"], "dahu", 2, "--replicates: no effect with --save"),
        (["--save", "none/run.toml"], "dahu", 2, "none/run.toml: cannot be written"),
    ],
)
def test_invalid_options_are_refused(hpl, arguments, platform, code, message):
    found, out, error = hpl(*arguments, platform=platform)
    assert (found, out) == (code, "")
    assert message in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (hpl_input().encode()[:300], "the file ends after line"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "HPL.dat"),
        (bytes(range(256)) * 8, "binary"),
        (hpl_input(N="nan").encode(), "HPL.dat:6:1"),
        (hpl_input(NB="0").encode(), "HPL.dat:8:1: NB is 0"),
    ],
)
def test_an_invalid_input_is_refused(whatif_main, tmp_path, text, message):
    (tmp_path / "HPL.dat").write_bytes(text)
    code, out, error = whatif_main("hpl", "HPL.dat", "--platform", "dahu")
    assert (code, out) == (3, "")
    assert message in error


def test_too_many_combinations_are_refused_before_a_simulation(hpl):
    code, out, error = hpl("--max-points", "5", N="2000 3000", BCAST="0 1 2")
    assert (code, out) == (2, "")
    assert "6 combinations, more than --max-points 5" in error


def test_calibrated_kernels_have_a_core_for_each_rank(hpl):
    code, out, error = hpl("--ranks-per-node", "33", P="1", Q="33", N="2000")
    assert (code, out) == (3, "")
    assert "more ranks than cores of a node, on which no kernel was calibrated" in error
    assert hpl("--ranks-per-node", "32", P="1", Q="32", N="2000")[0] == 0


def test_a_platform_without_required_parameters_is_refused(hpl, tmp_path):
    (tmp_path / "bare.toml").write_text(
        'name = "Bare"\nnode_count = 4\n[node]\nsocket_count = 2\n'
        "[network.inter_node]\nshort_limit = '128 B'\neager_limit = '8 KiB'\n"
        + "".join(f'postal.{name} = {{ latency = "1 us", bandwidth = "10 GB/s" }}\n'
                  for name in ("short", "eager", "rendezvous"))
    )  # fmt: skip
    code, _, error = hpl(platform="bare.toml")
    assert (code, "Bare states neither GPUs nor the cores of its processors" in error) == (2, True)
    code, _, error = hpl("--ranks-per-node", "8", platform="bare.toml")
    assert (code, "neither `[kernels.dgemm]` nor a data sheet of its processors" in error) == (3, True)


@pytest.fixture
def background():
    """Tests started in the background by a shell: SIGINT is ignored, also by the processes that they start."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("background")
def test_an_interrupted_list_keeps_the_lines_that_were_printed(tmp_path):
    (tmp_path / "HPL.dat").write_text(hpl_input(N="2000 2400 2800", P="4", Q="8"))
    done = ended_process(signal.SIGINT, tmp_path, ["hpl", "HPL.dat", "--platform", "dahu"], written="2000   120")
    assert done.returncode == 130
    assert "2000   120" in done.stdout
    assert "2400   120" not in done.stdout
    assert done.stderr.rstrip().endswith("whatif: interrupted")
