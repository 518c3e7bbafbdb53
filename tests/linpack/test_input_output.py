"""HPL.dat and HPL's output: real files, what HPL prints, and what is wrong with files that are none."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from tests.paths import SHARED
from whatif.errors import InvalidFileError, UsageError
from whatif.linpack.input_reader import parse_hpl_input, read_hpl_input
from whatif.linpack.output_reader import decoded_variant, parse_hpl_output, read_hpl_output, variant_code
from whatif.linpack.output_writer import HPLRow, hpl_table
from whatif.linpack.simulation.configuration import Broadcast, Configuration, Looking, Mapping, RowSwap

DATA = TEST_DATA / "hpl"
INPUT = (DATA / "HPL.dat.144").read_text()
BLOCK = "NB     :     192 \nPMAP   : Row-major process mapping\nSWAP   : {}\nL1     : transposed form\n"
ROW = "WR00C2R4      118848   192     4     4            3839.37              2.915e+02\n"
# Figures of a run on Etna at Berkeley (lbnl_hpl_doc, nb=192_n=118848): HPL 2.2 with detailed timing.
ETNA = (
    BLOCK.format("Mix (threshold = 64)")
    + """
Column=000000192 Fraction= 0.2% Gflops=5.020e+02
Column=000118656 Fraction=99.8% Gflops=7.296e+02
"""
    + ROW
    + """HPL_pdgesv() start time Wed Jan 10 17:01:08 2018

HPL_pdgesv() end time   Wed Jan 10 17:26:42 2018

--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV--VVV-
Max aggregated wall time rfact . . . :              20.21
+ Max aggregated wall time pfact . . :              11.47
+ Max aggregated wall time mxswp . . :               9.83
Max aggregated wall time update  . . :            3746.10
+ Max aggregated wall time laswp . . :             144.84
Max aggregated wall time up tr sv  . :               1.38
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0017150 ...... PASSED
"""
)


def with_line(number: int, line: str) -> str:
    lines = INPUT.split("\n")
    lines[number - 1] = line
    return "\n".join(lines)


def refused(read, text: str) -> str:
    with pytest.raises(InvalidFileError) as error:
        read(text, "FILE")
    return str(error.value)


def test_an_input_with_lists_is_every_combination_in_the_order_of_hpl():
    found = read_hpl_input(DATA / "HPL.dat.144")
    runs = list(found.configurations())
    # The order of the lines of an output of the same lists: PFACT within RFACT, NBMIN within PFACT.
    letters = itertools.product("LCR", "LCR", "24")
    assert [variant_code(run) for run in runs] == [f"WR00{rfact}2{pfact}{least}" for rfact, pfact, least in letters]
    assert found.configuration_count == len(runs) == 18
    assert {(run.matrix_size, run.block_size, run.rank_count) for run in runs} == {(20000, 120, 144)}
    assert (found.swap, found.swap_threshold, found.threshold, found.alignment) == (RowSwap.MIX, 64, 16.0, 8)
    assert (found.output_file, found.device, found.is_lower_transposed, found.is_equilibrated) == (
        "HPL.out",
        6,
        True,
        True,
    )


def test_grids_vary_slowest_and_depths_and_broadcasts_in_between():
    text = INPUT
    for number, line in {
        5: "2 Ns", 6: "1000 2000", 7: "2 NBs", 8: "64\t128", 10: "2 grids", 11: "2 4 Ps", 12: "8\t4\tQs",
        22: "2 BCASTs", 23: "5 3", 24: "2 DEPTHs", 25: "1 0",
    }.items():  # fmt: skip
        lines = text.split("\n")
        text = "\n".join([*lines[: number - 1], line, *lines[number:]])
    found = list(parse_hpl_input(text).configurations())
    varied = [(run.process_rows, run.matrix_size, run.block_size, run.depth, int(run.broadcast)) for run in found]
    assert varied[::18] == list(itertools.product((2, 4), (1000, 2000), (64, 128), (1, 0), (5, 3)))
    assert {(run.process_rows, run.process_columns) for run in found} == {(2, 8), (4, 4)}


def test_the_input_of_rochpl_is_read_and_names_its_only_run():
    (run,) = read_hpl_input(DATA / "HPL.dat.rocHPL").configurations()
    assert variant_code(run) == "WC10R2R32"
    assert (run.matrix_size, run.block_size, run.swap) == (45312, 384, RowSwap.SPREAD_ROLL)


@pytest.mark.parametrize(
    "text",
    [
        INPUT.replace("\n", "\r\n"),
        INPUT.rstrip("\n"),
        INPUT + "##### This line (no. 32) is ignored #####\n0  Number of additional problem sizes for PTRANS\n",
        with_line(6, "20000 7 7 Ns, of which HPL reads one"),
        re.sub(r" +", "\t", INPUT),
    ],
    ids=["windows", "no last line end", "more lines", "more values", "tabs"],
)
def test_an_input_may_be_written_in_other_ways(tmp_path, text):
    (tmp_path / "HPL.dat").write_bytes(text.encode())
    assert read_hpl_input(tmp_path / "HPL.dat") == parse_hpl_input(INPUT)


@pytest.mark.parametrize(
    ("line", "words", "message"),
    [
        (6, "-5 Ns", "FILE:6:1: N is -5 and must be at least 1"),
        (6, "99999999999 Ns", "FILE:6:1: N is 99999999999 and must be at most 2147483647"),
        (6, "20000.5 Ns", "expected 1 value of N, found 0, then `20000.5`"),
        (8, "0 NBs", "FILE:8:1: NB is 0 and must be at least 1"),
        (7, "0 NBs", "FILE:7:1: expected the number of NBs, 1 to 20"),
        (7, "21 NBs", "The line is `21 NBs`"),
        (9, "2 PMAP", "FILE:9:1: 2 is not a code of PMAP; expected 0 row, 1 column"),
        (11, "0 Ps", "P is 0"),
        (12, "  0 Qs", "FILE:12:3: Q is 0"),
        (10, "2 grids", "FILE:11:9: expected 2 values of P, found 1, then `Ps`"),
        (13, "nan", "FILE:13:1: `nan` is not a number; expected the threshold of the residual"),
        (15, "0 3 2", "3 is not a code of PFACT; expected 0 left, 1 crout, 2 right"),
        (19, "1 NDIVs", "NDIV is 1 and must be at least 2"),
        (23, "6 BCASTs", "6 is not a code of BCAST; expected 0 ring, 1 ring modified, 2 two ring"),
        (25, "-1 DEPTHs", "FILE:25:1: DEPTH is -1"),
        (26, "mix", "FILE:26:1: `mix` is not an integer; expected SWAP"),
        (31, "", "FILE:31:1: the line is empty; expected the memory alignment"),
    ],
)
def test_errors_in_an_input_name_the_line_and_the_expected_value(line, words, message):
    assert message in refused(parse_hpl_input, with_line(line, words))


def test_all_errors_in_an_input_are_reported_at_once():
    text = (
        with_line(8, "0 NBs").replace("12    Qs", "0    Qs").replace("64           swapping", "x            swapping")
    )
    assert re.findall(r"FILE:(\d+)", refused(parse_hpl_input, text)) == ["8", "12", "27"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE: the file is empty"),
        ("\n".join(INPUT.split("\n")[:27]), "FILE:27:1: the file ends after line 27 of 31; expected the form of L1"),
        ("\n".join(INPUT.split("\n")[:8] + INPUT.split("\n")[9:]), "FILE:9:1: the line PMAP is missing"),
        ("\n".join(INPUT.split("\n")[:6] + INPUT.split("\n")[7:]), "FILE:7:1: expected the number of NBs, 1 to 20"),
        ('{"N": 1}\n' * 40, "is a line above missing?"),
    ],
    ids=["empty", "cut off", "of HPL 1.0", "a line missing", "JSON"],
)
def test_an_input_with_missing_lines_is_refused_where_they_are_missing(text, message):
    assert message in refused(parse_hpl_input, text)


@pytest.mark.parametrize("read", [read_hpl_input, read_hpl_output])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"<!DOCTYPE html><html>", "web page"), (b"\0\1\2", "binary"), (None, "cannot be read")],
)
def test_files_that_are_no_text_are_refused(tmp_path, read, content, message):
    if content is not None:
        (tmp_path / "HPL.txt").write_bytes(content)
    with pytest.raises(InvalidFileError, match=message):
        read(tmp_path / "HPL.txt")


def test_an_input_larger_than_a_megabyte_is_refused(tmp_path):
    (tmp_path / "HPL.dat").write_text(INPUT + "#" * 2**20)
    with pytest.raises(InvalidFileError, match="larger than 1 MiB"):
        read_hpl_input(tmp_path / "HPL.dat")


def test_runs_of_hpcc_are_read_among_its_other_benchmarks():
    runs = read_hpl_output(DATA / "hpccoutf.txt")
    # HPCC prints its parameters and times a second time, with more digits, in its summary.
    summary = (DATA / "hpccoutf.txt").read_text()
    times = [float(time) for time in re.findall(r"^HPL_time=(\S+)", summary, re.MULTILINE)]
    rates = [float(rate) * 1e12 for rate in re.findall(r"^HPL_Tflops=(\S+)", summary, re.MULTILINE)]
    assert len(runs) == len(times) == 2
    assert_allclose([run.time for run in runs], times, rtol=1e-4, atol=0)
    assert_allclose([run.rate for run in runs], rates, rtol=1e-4, atol=0)
    assert {run.configuration for run in runs} == {
        Configuration(
            2560,
            80,
            1,
            1,
            Broadcast.RING_MODIFIED,
            1,
            RowSwap.MIX,
            64,
            Looking.RIGHT,
            4,
            2,
            Looking.CROUT,
            Mapping.COLUMN,
        )
    }
    assert [run.has_passed for run in runs] == [True] * 2
    assert [run.component_times for run in runs] == [{}, {}]


@pytest.mark.shared_data
def test_the_run_of_stampede_is_read_through_the_marks_of_its_paper():
    (run,) = read_hpl_output(SHARED / "hpl" / "stampede" / "fullrun_hpl.txt")
    assert variant_code(run.configuration) == "WC05C2R4"
    assert run.configuration.swap is RowSwap.BINARY_EXCHANGE
    assert (run.configuration.matrix_size, run.configuration.rank_count, run.configuration.depth) == (3875000, 6006, 0)
    assert (run.time, run.rate, run.has_passed) == (7505.72, 5.16811e15, True)


def test_components_belong_to_their_run():
    first, second = parse_hpl_output(ETNA + ROW + "Column=000000192 Fraction= 0.2% Gflops=5.020e+02\n")
    assert first.component_times == {
        "recursive_factorisation": 20.21,
        "panel_factorisation": 11.47,
        "pivot_exchange": 9.83,
        "update": 3746.10,
        "row_swap": 144.84,
        "back_substitution": 1.38,
    }
    # The dates are 25 min 34 s apart; the clock of HPL on that machine is the one that counts.
    assert first.time == 3839.37
    assert (second.component_times, second.has_passed) == ({}, None)


def test_a_run_that_was_cut_off_is_refused_with_its_progress_as_intel_prints_it():
    line = "z5-02           : Column=093312 Fraction=0.795 Kernel=6399710.25 Mflops=7305261.06\n"
    assert "the run was cut off at column 93312" in refused(parse_hpl_output, line)


@pytest.mark.parametrize(
    ("message", "swap", "threshold"),
    [
        ("Mix (threshold = 60)", RowSwap.MIX, 60),
        ("Spread-roll (long)", RowSwap.SPREAD_ROLL, 64),
        ("Binary-exchange", RowSwap.BINARY_EXCHANGE, 64),
    ],
)
def test_the_swap_of_the_parameters_is_that_of_the_runs(message, swap, threshold):
    (run,) = parse_hpl_output(BLOCK.format(message) + ROW)
    assert (run.configuration.swap, run.configuration.swap_threshold) == (swap, threshold)


def test_a_failed_check_stays_failed_after_passed_ones():
    # HPL 1.0 prints three residuals for a run.
    checks = "".join(f"||Ax-b||_oo / ( eps * N ) = {residual} ...... {result}\n" for residual, result in
                     [("0.5", "PASSED"), ("17.25", "FAILED"), ("0.1", "PASSED")])  # fmt: skip
    (run,) = parse_hpl_output(ROW + checks)
    assert run.has_passed is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE: not an output of HPL"),
        ("N,time\n5000,3.2\n", "not an output of HPL"),
        (INPUT, "this is an HPL.dat"),
        ("HPLinpack 2.3\n\nT/V     N    NB\n-----\n", "HPL started, but no run finished"),
        (ETNA[: ETNA.index("WR00")], "FILE:7:1: the run was cut off at column 118656"),
        (ROW[:-40], "FILE:1:1: `WR00C2R4` is not followed by N, NB, P, Q, Time and Gflops: cut off?"),
        (ROW.rstrip()[:-4], "N = 118848 at 2.915 Gflops takes 383932 s, but the line has 3839.37 s: cut off"),
        (ROW.replace("3839.37", "nan"), "`nan` is not a time"),
        (ROW.replace("2.915e+02", "1e-320"), "but the line has 3839.37 s"),
        (ROW.replace("2.915e+02", "0"), "the Gflops are 0"),
        (ROW.replace("192", "19x"), "`19x` is not an integer"),
        (ROW.replace("192", "0"), "block_size is 0"),
        (ROW.replace("WR00", "WR09"), "`WR09C2R4` names broadcast 9"),
        (ROW + "Max aggregated wall time update  . . :       -3\n", "FILE:2:1: `-3` is not a time"),
    ],
)
def test_an_output_without_a_whole_result_is_refused_with_the_reason(text, message):
    assert message in refused(parse_hpl_output, text)


def test_runs_before_an_interruption_are_kept():
    text = ROW + "[mpiexec] Sending Ctrl-C to processes as requested\nBAD TERMINATION\nWRONG\n"
    assert len(parse_hpl_output(text)) == 1


def test_every_code_of_a_run_is_read_as_it_was_written():
    sizes = (1000, 100, 2, 3)
    choices = itertools.product(
        Mapping, (0, 1, 12), Broadcast, Looking, (2, 16), Looking, (1, 4, 32)
    )  # fmt: skip
    names = ("mapping", "depth", "broadcast", "recursive_factorisation", "recursion_divisions", "panel_factorisation",
             "recursion_minimum")  # fmt: skip
    codes = set()
    for choice in choices:
        asked = Configuration(*sizes, **dict(zip(names, choice, strict=True)))
        code = variant_code(asked)
        assert Configuration(*sizes, **decoded_variant(code)) == asked
        codes.add(code)
    assert len(codes) == 2 * 3 * 6 * 3 * 2 * 3 * 3


@pytest.mark.parametrize("code", ["", "WR1", "XR11C2R4", "WR11C2R4 ", "WR18C2R4", "WR11C2R99999999999"])
def test_invalid_codes_are_refused(code):
    with pytest.raises(UsageError, match="`"):
        decoded_variant(code)


def test_the_table_is_hpls_to_the_letter():
    # Lines of an output of HPL 2.3 (234,240 unknowns on 64 processes).
    printed = """\
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11R2L4      234240   384     8     8            2420.15             3.5404e+03
================================================================================"""
    asked = Configuration(234240, 384, 8, 8, recursive_factorisation=Looking.RIGHT, panel_factorisation=Looking.LEFT)
    assert list(hpl_table([HPLRow(asked, 2420.15)])) == printed.split("\n")


@pytest.mark.parametrize("interval", ["", "95 % of times"])
def test_a_printed_table_reads_back(interval):
    asked = list(read_hpl_input(DATA / "HPL.dat.144").configurations())
    times = np.geomspace(0.0123, 98765.4, len(asked))
    rows = [HPLRow(run, float(time), (0.9 * time, 1.1 * time)) for run, time in zip(asked, times, strict=True)]
    lines = list(hpl_table(iter(rows), interval))
    assert len({len(line) for line in lines}) == 1
    runs = parse_hpl_output("\n".join(lines))
    assert [run.configuration for run in runs] == asked
    assert_allclose([run.time for run in runs], times, rtol=6e-4, atol=0)
    assert_allclose([run.rate for run in runs], [row.rate for row in rows], rtol=5.1e-5, atol=0)
