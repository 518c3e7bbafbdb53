"""Output of applications as runs: values by the documented patterns, own patterns, and expressions bounded in time."""

from __future__ import annotations

import csv
import io
import re
import sys

import pytest

from tests.paths import DATA, ROOT
from whatif.errors import InvalidFileError, UsageError
from whatif.extras import install_command
from whatif.importers.logs import LONGEST, Pattern, is_log, pattern_of, read_logs, shipped_patterns, user_expression

LOGS = DATA / "runs" / "logs"
OWN = """\
title = "Solver"
recognise = '^solver v\\d'
[columns]
time = { line = '^elapsed: (\\S+)', unit = "s" }
part = { line = '^part (\\S+) ms', unit = "ms", take = "sum" }
first = { line = '^part (\\S+) ms', unit = "ms", take = "first" }
nodes = { file_name = 'n(\\d+)' }
state = { line = '^state (\\w+)', text = true }
"""


def first_row(name, pattern=None):
    table = read_logs(sorted((LOGS / name).iterdir()), pattern)
    return {key: column.values[0] for key, column in table.columns.items() if key != "file"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "lammps",
            {"total_time": 42.8, "iterations": 1000, "atoms": 16384000, "processes": 512, "threads": 1, "nodes": 16},
        ),
        ("gromacs", {"total_time": 400.5, "iterations": 10000, "nodes": 4, "processes": 128, "ns_per_day": 4.315}),
        ("hpcg", {"total_time": 1830.2, "iterations": 4500, "processes": 256, "cells": 287965184, "rate": 305.25e9}),
        ("opensbli", {"total_time": 61.25, "iterations": 100, "iteration_time": 0.6125, "nodes": 16}),
        ("cloverleaf", {"total_time": 1.75, "iterations": 2, "processes": 176, "cells": 15360.0**2, "nodes": 4}),
        ("mlperf", {"total_time": 2125.525, "batch_size": 3072, "samples": 2800000, "status": "success"}),
    ],
)
def test_values_of_each_application_whether_it_is_recognised_or_named(name, expected):
    found = first_row(name)
    for key, value in expected.items():
        assert found[key] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12))
    assert first_row(name, name) == found


def test_a_real_output_of_hpl_has_a_run_for_each_line_of_results():
    table = read_logs([DATA / "hpl" / "hpccoutf.txt"])
    lines = [line.split() for line in (DATA / "hpl" / "hpccoutf.txt").read_text().splitlines() if line[:3] == "WC1"]
    assert len(table) == len(lines) == 2
    for at, (_, n, nb, p, q, time, rate) in enumerate(lines):
        row = {name: column.values[at] for name, column in table.columns.items()}
        expected = [float(text) for text in (n, nb, time)] + [float(rate) * 1e9, float(p) * float(q)]
        names = ("matrix_size", "block_size", "total_time", "rate", "processes")
        assert [row[name] for name in names] == pytest.approx(expected, rel=1e-12)


def test_an_output_of_hpl_without_its_banner_is_recognised_by_the_heading_of_its_results():
    path = ROOT / "validation" / "hpl_two_cores.out"
    assert "HPLinpack" not in path.read_text()
    assert is_log(path)
    assert read_logs([path]).columns["matrix_size"].values[0] == 2000


HPL_ROW = "WC10L2L4  {n}  80  1  1  1.31  8.575e+00\n"
CHECK = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=  0.0026933 ...... {result}\n"


def test_a_run_of_hpl_whose_residual_is_too_large_is_left_out(tmp_path):
    runs = {1000: "PASSED", 2000: "FAILED", 3000: "PASSED"}
    text = "".join(HPL_ROW.format(n=n) + CHECK.format(result=result) for n, result in runs.items())
    (tmp_path / "HPL.out").write_text(f"HPLinpack 2.3 -- December 2, 2018\n{text}")
    table = read_logs([tmp_path / "HPL.out"])
    assert table.columns["matrix_size"].values.tolist() == [1000, 3000]
    assert table.notes["warnings"] == f"{tmp_path / 'HPL.out'}: 1 run left out, reported as failed by the program"


@pytest.mark.parametrize(
    ("name", "good", "wrong"),
    [
        ("hpcg", "HPCG result is VALID with a GFLOP/s rating of=305.25", "HPCG result is=INVALID."),
        ("mlperf", '"status": "success"', '"status": "aborted"'),
    ],
)
def test_a_file_of_a_failed_run_holds_no_run(tmp_path, name, good, wrong):
    (whole,) = (LOGS / name).iterdir()
    (tmp_path / "a.txt").write_text(whole.read_text().replace(good, wrong))
    with pytest.raises(InvalidFileError, match=r"no runs; .*a\.txt: 1 run left out, reported as failed by the program"):
        read_logs([tmp_path / "a.txt"])


def test_a_difference_without_its_start_is_missing(tmp_path):
    (whole,) = (LOGS / "mlperf").iterdir()
    (tmp_path / "a.txt").write_text(whole.read_text().replace("run_start", "init_start"))
    table = read_logs([tmp_path / "a.txt"])
    assert "total_time" not in table.columns
    assert "no `total_time`" in table.notes["warnings"]


def test_runs_of_lammps_without_mpi_stay_apart(tmp_path):
    run = "Loop time of {} on 1 procs for 100 steps with 32000 atoms\n"
    run += "99.6% CPU use with no MPI tasks x 1 OpenMP threads\n"
    (tmp_path / "log.lammps").write_text("LAMMPS (16 Mar 2018)\n" + run.format(1.5) + run.format(2.5))
    assert read_logs([tmp_path / "log.lammps"]).columns["total_time"].values.tolist() == [1.5, 2.5]


def own(tmp_path, text=OWN):
    path = tmp_path / "solver.toml"
    path.write_text(text)
    return str(path)


def test_a_pattern_of_ones_own_sums_takes_the_first_and_reads_the_name_of_the_file(tmp_path):
    for nodes in (2, 4):
        text = f"solver v1\npart 250 ms\npart 500 ms\nelapsed: 0:01:0{nodes}\nstate ok\n"
        (tmp_path / f"out_n{nodes}.log").write_text(text)
    table = read_logs(sorted(tmp_path.glob("*.log")), own(tmp_path))
    got = {name: column.values.tolist() for name, column in table.columns.items() if name != "file"}
    assert got == {"time": [62, 64], "part": [0.75] * 2, "first": [0.25] * 2, "nodes": [2, 4], "state": ["ok"] * 2}


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [
        ("part", "", ""),
        ("part", 'take = "sum"', "since = '^start (\\S+)'"),
        ("both", "part =", "both = { product = ['part', 'nodes'] }\npart ="),
    ],
)
def test_a_value_that_is_no_plain_number_is_refused_however_it_is_taken(tmp_path, column, old, new):
    pattern = own(tmp_path, OWN.replace(old, new))
    (tmp_path / "n8.out").write_text("solver v2\nstart 5\npart 2 ms\npart 1,234.5 ms\n")
    with pytest.raises(InvalidFileError, match=rf"n8\.out: {column}: `1,234\.5` has a thousands separator"):
        read_logs([tmp_path / "n8.out"], pattern)


def test_what_a_file_lacks_is_missing_and_told(tmp_path):
    (tmp_path / "a_n1.log").write_text("solver v1\nelapsed: 3\nstate ok\n")
    (tmp_path / "b_n2.log").write_text("solver v1\nstate killed\n")
    (tmp_path / "c.txt").write_text("no log\n")
    table = read_logs(sorted(tmp_path.glob("*.*")), own(tmp_path))
    assert table.columns["time"].values.tolist()[0] == 3
    assert "b_n2.log: no `time`, taken as missing" in table.notes["warnings"]
    assert "c.txt: no run of Solver, left out" in table.notes["warnings"]


def test_the_log_of_a_run_that_did_not_end_is_told(tmp_path):
    whole = (LOGS / "gromacs" / "md_4nodes.log").read_text()
    paths = [tmp_path / name for name in ("a.log", "b.log")]
    for path in paths:
        path.write_text(whole[: whole.index(" Time: ")])
    warning = "no `total_time`: the run did not end, or writes its time in other words"
    assert read_logs(paths[:1]).notes["warnings"].splitlines()[0] == f"{paths[0]}: {warning}"
    assert f"{paths[0]} and 1 more: {warning}" in read_logs(paths).notes["warnings"]
    assert warning not in read_logs([LOGS / "gromacs" / "md_4nodes.log"]).notes.get("warnings", "")


def test_files_of_several_applications_or_of_none_are_refused(tmp_path):
    with pytest.raises(UsageError, match="output of gromacs and hpcg: choose one with --pattern"):
        read_logs([*(LOGS / "gromacs").iterdir(), *(LOGS / "hpcg").iterdir()])
    with pytest.raises(
        UsageError, match=r"README.md: not the output of a known application, .* known are cloverleaf, gromacs"
    ):
        read_logs([LOGS / "README.md"])
    with pytest.raises(UsageError, match="no such pattern; did you mean `lammps`"):
        pattern_of("lamps")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title", "titel", "titel"),
        ('unit = "s"', 'unit = "sec2"', "`sec2` is not a known unit"),
        (r"'^elapsed: (\\S+)'", r"'^elapsed: \\S+'", "columns.time.line: .* has no group"),
        (r"'^elapsed: (\\S+)'", r"'^(elapsed): (\\S+)'", "has 2 groups"),
        (r"'^elapsed: (\\S+)'", r"'^(elapsed: '", "is not a regular expression"),
        (r"'^elapsed: (\\S+)'", "'^((a+)+)$'", "has 2 groups"),
        (r"'^elapsed: (\\S+)'", r"'^(\\S+)(?= s)'", "invalid perl operator"),
        (r"file_name = 'n(\\d+)'", 'product = ["time", "tim"]', "columns.nodes.product: no column `tim`"),
        (r"file_name = 'n(\\d+)'", "", "one of `line`, `file_name` and `product`"),
    ],
)
def test_a_wrong_pattern_is_refused_with_its_key(tmp_path, old, new, message):
    text = OWN.replace(old.replace("\\\\", "\\"), new.replace("\\\\", "\\"))
    assert text != OWN
    with pytest.raises(InvalidFileError, match=message):
        Pattern.read(own(tmp_path, text) and tmp_path / "solver.toml")


@pytest.mark.parametrize("text", [r"(a)\1", r"(?=a)a", r"(?<!a)b", "x" * 501])
def test_expressions_that_could_take_long_are_refused(text):
    with pytest.raises(ValueError, match=r"not a regular expression of RE2|longer"):
        user_expression(text)


def test_an_expression_that_takes_python_for_ever_takes_re2_no_time():
    for text in (r"^(a+)+$", r"^(?:a|a?)+$", r"(a*)*b", r"(.*)(.*)(.*)(.*)(.*)x$"):
        assert user_expression(text).search("a" * LONGEST + "!") is None


def test_patterns_of_users_name_the_extra_that_they_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(UsageError, match=re.escape(install_command("logs"))):
        read_logs([LOGS / "README.md"], own(tmp_path))
    assert pattern_of("lammps").name == "lammps"


def test_shipped_expressions_are_fast_on_lines_made_to_be_slow():
    """Steps of the matcher cannot be counted: a line of each letter, and of the beginning of each expression."""
    for name in shipped_patterns():
        pattern = pattern_of(name)
        for expression in pattern.expressions.values():
            start = re.sub(r"\\(.)|[\^$()?:]", r"\1", expression.pattern)
            for text in (*"1 a.,:{", '"time_ms": 1, ', start):
                expression.search((text * LONGEST)[:LONGEST])


def test_logs_become_a_file_that_fits_and_validations_read(whatif_main, tmp_path):
    columns = "nodes=nodes,processes=processes,iterations=iterations,total_time=total_time"
    code, _, err = whatif_main("import", "logs", LOGS / "lammps", "--columns", columns, "-o", "runs.csv")
    assert code == 0, err
    code, out, _ = whatif_main("fit", "scaling", "runs.csv", "--predict", "nodes=64", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(out))
    assert code == 0
    assert 8 < float(row["fit [s]"]) < 30
    assert whatif_main("fit", "regression", "runs.csv", "--formula", "log(total_time) ~ log(nodes)")[0] == 0
    cells = "cells=atoms,processes=processes,iterations=iterations,total_time=total_time"
    assert whatif_main("import", "logs", LOGS / "lammps", "--columns", cells, "-o", "grid.csv")[0] == 0
    assert whatif_main("fit", "grid", "grid.csv")[0] == 0
    names = "rank_count=processes,iteration_count=iterations,total_time=total_time"
    assert whatif_main("import", "logs", LOGS / "lammps", "--columns", names, "-o", "measured.csv")[0] == 0
    (tmp_path / "s.toml").write_text(
        'platform = "lumi"\n[application]\nname = "x"\nrank_count = 32\nranks_per_node = 32\niteration_count = 1000\n'
        '[application.phases.step]\nkind = "overhead"\noverhead_time = "100 ms"\n'
    )
    code, out, _ = whatif_main("validate", "s.toml", "--runs", "measured.csv", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, len(rows)) == (0, 5)
    assert {float(row["measured [s]"]) for row in rows} == {42.8, 74.2, 137.9, 263.4, 512.6}


def test_the_pattern_in_the_documentation_is_valid(tmp_path):
    text = (ROOT / "docs" / "runs.md").read_text()
    (example,) = re.findall(r"```toml\n(title.*?)```", text, re.DOTALL)
    (tmp_path / "a_n4.txt").write_text(
        "solver v3\nrows 3\ncolumns 5\n100 ms: start\nwrote in 5 ms\nwrote in 7 ms\n"
        "350 ms: end\nelapsed: 0:02:00\nend of run\n"
    )
    table = read_logs([tmp_path / "a_n4.txt"], own(tmp_path, example))
    found = {name: column.values[0] for name, column in table.columns.items() if name != "file"}
    assert found == {
        "time": 120, "io_time": 0.012, "span": 0.25, "nodes": 4, "rows": 3, "columns": 5, "cells": 15, "version": "3",
    }  # fmt: skip
