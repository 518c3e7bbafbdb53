"""Tables as people have them: missing cells, failed runs, decimal commas, durations, separators, encodings."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.paths import DATA
from whatif.errors import InvalidFileError, UsageError
from whatif.importers.run_files import read_runs
from whatif.importers.runs_csv import read_run_sheet, read_runs_csv

NAN = float("nan")


def values(table, name):
    return table.columns[name].values.tolist()


def warnings(table):
    return table.notes.get("warnings", "")


@pytest.mark.parametrize("cell", ["n/a", "N/A", "-", "--", "null", "None", "?", "NaN", "#N/A", "", "nil"])
def test_a_missing_cell_is_missing_without_a_word(cell):
    table = read_runs_csv(f"nodes,time [s]\n1,8\n2,{cell}\n4,2\n")
    assert_array_equal(table.columns["time"].values, [8, NAN, 2])
    assert warnings(table) == ""


@pytest.mark.parametrize("cell", ["TIMEOUT", "failed", "OUT_OF_MEMORY", "node fail", "x"])
def test_a_word_for_a_number_is_a_failed_run_that_is_counted(cell):
    table = read_runs_csv(f"nodes,time [s]\n1,8\n2,{cell}\n4,2\n8,{cell}\n", "f.csv")
    assert_array_equal(table.columns["time"].values, [8, NAN, 2, NAN])
    assert warnings(table) == f"f.csv:3: `time [s]`: 2 rows have `{cell}` for a number, taken as missing"


@pytest.mark.parametrize("cell", ["1O0", "12s", "1.2.3", "=A1", "1,5"])
def test_a_mistyped_number_leaves_its_column_as_texts_and_is_never_a_missing_value(cell):
    text = f'nodes,time [s]\n1,8\n2,"{cell}"\n4,2\n'
    table = read_runs_csv(text, "f.csv")
    assert table.columns["time"].dimension is None
    assert f"f.csv:3: `time [s]` is read as texts: `{cell}`" in warnings(table)
    with pytest.raises(InvalidFileError, match=r"f.csv:3:1: time \[s\]: "):
        read_runs_csv(text, "f.csv", columns={"time": "time"})


def test_rows_that_a_filter_excludes_may_hold_anything():
    text = "n,status,time [s]\n1,ok,10\n2,bad,3x\n3,bad,17:x\n"
    assert values(read_runs_csv(text, where={"status": "ok"}), "time") == [10.0]
    assert warnings(read_runs_csv(text, where={"status": "ok"})) == ""


def test_columns_that_a_formula_does_not_read_may_hold_anything(whatif_main, tmp_path):
    rows = "".join(f"{n},{100 / n + n % 3},{n}{'x' * (n == 4)}\n" for n in (1, 2, 4, 8, 16, 32))
    (tmp_path / "r.csv").write_text("nodes,time [s],seed\n" + rows)
    code, _, err = whatif_main("fit", "regression", "r.csv", "--formula", "log(time) ~ log(nodes)")
    assert (code, "`seed` is read as texts" in err) == (0, True)
    code, _, err = whatif_main("fit", "regression", "r.csv", "--formula", "time ~ seed")
    assert code == 2
    assert "r.csv:4: `seed` is read as texts: `4x` is not a number" in err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n;t [s]\n1;64,5\n2;30,25\n3;12,125\n", [64.5, 30.25, 12.125]),
        ("n;t [s]\n1;1,234\n2;2e3\n", [1.234, 2000]),
        ("n\tt [s]\n1\t64,5\n2\t1,250\n", [64.5, 1.25]),
        ("n|t [s]\n1|64,5\n2|NA\n", [64.5, NAN]),
    ],
)
def test_decimal_commas_are_read_where_commas_do_not_separate_columns(text, expected):
    table = read_runs_csv(text, "f")
    assert_array_equal(table.columns["t"].values, expected)
    assert warnings(table) == "f: commas are taken as decimal ones"


@pytest.mark.parametrize(
    "text", ["n;t\n1;64,5\n2;30.25\n3;1\n", "n\tt\n1\t1,234\n2\t2,345\n", "n;t\n1;1,234,567\n2;1\n"]
)
def test_commas_that_may_mean_two_things_are_refused_with_a_remedy(text):
    with pytest.raises(InvalidFileError, match=r"write (it|plain numbers) with a decimal point"):
        read_runs_csv(text, "f", columns={"t": "t"})


@pytest.mark.parametrize(
    ("heading", "cells", "seconds"),
    [
        ("Elapsed", ["01:48:11", "00:20:03"], [6491, 1203]),
        ("Elapsed", ["1-02:00:00", "20:03"], [93600, 1203]),
        ("Elapsed", ["20:03.5", "1:00"], [1203.5, 60]),
        ("Elapsed [mm:ss]", ["20:03", "120:00"], [1203, 7200]),
        ("Elapsed (hh:mm)", ["20:03", "1:30"], [72180, 5400]),
        ("Elapsed [h]", ["01:30:00", "00:45:00"], [5400, 2700]),
        ("Elapsed [min]", ["01:30:00", "45"], [5400, 2700]),
        ("Elapsed", ["01:30:00", "n/a"], [5400, NAN]),
    ],
)
def test_durations_are_seconds(heading, cells, seconds):
    column = read_runs_csv(f"n,{heading}\n1,{cells[0]}\n2,{cells[1]}\n").columns["Elapsed"]
    assert column.unit == "s"
    assert_array_equal(column.values, seconds)


def test_a_duration_of_two_parts_needs_something_that_tells_minutes_from_hours():
    text = "n,Elapsed\n1,20:03\n2,10:02\n"
    message = r"`20:03` is minutes and seconds, or hours and minutes: write `Elapsed \[mm:ss\]` or `Elapsed \[hh:mm\]`"
    with pytest.raises(InvalidFileError, match=message):
        read_runs_csv(text, columns={"time": "Elapsed"})
    assert values(read_runs_csv(text, columns={"time": "Elapsed [mm:ss]"}), "time") == [1203, 602]
    assert values(read_runs_csv(text, columns={"time": "Elapsed [hh:mm]"}), "time") == [72180, 36120]


@pytest.mark.parametrize(
    "text",
    [
        "nodes|time [s]\n1|12\n2|7\n",
        "nodes|time [s]|\n1|12|\n2|7|\n",
        "| nodes | time [s] |\n|---|---|\n| 1 | 12 |\n| 2 | 7 |\n",
        "nodes time [s]\n1 12\n2 7\n",
        "  nodes     time [s]\n-------- ----------\n     1         12\n     2          7\n",
        "# as printed\nnodes    time [s]\n\n1   12\n# a comment\n2\t 7\n",
    ],
)
def test_tables_of_job_accounting_and_between_blanks_are_read(text):
    table = read_runs_csv(text)
    assert (values(table, "nodes"), values(table, "time")) == ([1.0, 2.0], [12.0, 7.0])


@pytest.mark.parametrize("short", [300_000, 0])
@pytest.mark.parametrize(
    ("text", "notes", "times"),
    [
        ("n,note,time [s]\n1,attempt #1,2\n2,ok,3\n3,#2,4\n", ["attempt #1", "ok", "#2"], [2, 3, 4]),
        (
            "n,note,time [s]\n# below, above\n1,a,2 # a, b\n  # c\n\n2,b #,3#d\n3,c,NA # e\n",
            ["a", "b #", "c"],
            [2, 3, NAN],
        ),
        ("note #,time [s]\na,2\nb,3\n", None, [2, 3]),
        ("note time [s]\na 2 # fast\nb  3   # slow\n", ["a", "b"], [2, 3]),
    ],
)
def test_a_comment_begins_a_line_or_follows_a_complete_row(text, notes, times, short, monkeypatch):
    monkeypatch.setattr("whatif.importers.sheets._FEW_CHARACTERS", short)
    table = read_runs_csv(text)
    assert_array_equal(table.columns["time"].values, times)
    assert notes is None or values(table, "note") == notes
    assert warnings(table) == ""


def test_errors_in_tables_between_blanks_name_their_line_and_a_remedy():
    with pytest.raises(InvalidFileError, match=r"f:4:1: 1 cells where the heading has 2: a missing cell .* written NA"):
        read_runs_csv("nodes time [s]\n-- --\n1 12\n2\n4 3\n", "f")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("packed", [False, True])
def test_unicode_text_of_a_spreadsheet_is_read(tmp_path, encoding, packed, monkeypatch):
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (7,))
    text = "Knoten\tZeit µ [s]\r\n1\t64,5\r\n2\t30,2\r\n"
    mark = "" if encoding == "utf-16" else "\ufeff"
    data = (mark + text).encode(encoding)
    (tmp_path / "u.txt").write_bytes(gzip.compress(data) if packed else data)
    table = read_runs([tmp_path / "u.txt"])
    assert list(table.columns) == ["Knoten", "Zeit"]
    assert values(table, "Zeit") == [64.5, 30.2]


@pytest.mark.parametrize("size", [40, 2**20])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_line_ends_of_a_carriage_return_alone_are_read(tmp_path, encoding, size, monkeypatch):
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (size,))
    text = "nodes,time [s]\r1,64.5\r2,30.2\r"
    (tmp_path / "m.csv").write_bytes(text.encode(encoding))
    for table in (read_runs([tmp_path / "m.csv"]), read_runs_csv(text, "m.csv")):
        assert values(table, "nodes") == [1.0, 2.0]
        assert values(table, "time") == [64.5, 30.2]


LAMMPS = "LAMMPS (2 Aug 2023)\nunits\t\tlj\n\nLoop time of 1.2 on 4 procs for 100 steps with 32000 atoms\n"
TAU = '2 templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls #\n"main" 1 1 3 3000 0 GROUP="A"\n'


@pytest.mark.parametrize(
    "text",
    [
        LAMMPS,
        TAU,
        "HPCG-Benchmark\nversion=3.1\nMachine Summary=\n",
        "=====\nHPLinpack 2.0  --  benchmark  --   September 10, 2008\nWritten by A, B, C\n=====\n",
        "One line, with a comma.\nAnother line, and yet another, with two.\n",
    ],
)
def test_a_text_that_is_no_table_is_refused_with_the_way_to_read_it(tmp_path, text):
    (tmp_path / "t").write_text(text)
    with pytest.raises(InvalidFileError, match=r"is not a table .* `whatif import logs` reads the output of appl"):
        read_runs([tmp_path / "t"])


def test_a_real_output_of_hpcc_is_refused_at_once():
    """Its lines of `#` took an expression for texts of Extra-P longer than anyone waits."""
    with pytest.raises(InvalidFileError, match="is not a table"):
        read_runs([DATA / "hpl" / "hpccoutf.txt"])


def test_one_column_of_numbers_is_a_table():
    assert values(read_runs_csv("Wall time [s]\n1\nNA\n3\n"), "Wall_time")[::2] == [1.0, 3.0]


def test_measured_runs_of_a_scenario_are_read_alike(tmp_path):
    (tmp_path / "r.csv").write_text("rank_count;total_time\n1;01:00:00\n2;TIMEOUT\n4;00:20:00\n")
    sheet = read_run_sheet(tmp_path / "r.csv")
    assert_array_equal(sheet.values["total_time [s]"], [3600, NAN, 1200])
    (tmp_path / "r.csv").write_text("rank_count,total_time [s]\n1,3x\n2,4\n")
    with pytest.raises(InvalidFileError, match=r"r.csv:2:1: total_time \[s\]: `3x` is not a number"):
        read_run_sheet(tmp_path / "r.csv")


def test_many_rows_are_read_as_few(tmp_path, monkeypatch):
    rows = "".join(f"{n};{n},5;{'TIMEOUT' if n % 7 == 0 else n}\n" for n in range(1, 400))
    (tmp_path / "r.csv").write_text("n;t [s];u\n" + rows)
    few = read_runs_csv(tmp_path / "r.csv")
    monkeypatch.setattr("whatif.importers.sheets._FEW_CHARACTERS", 0)
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (500,))
    many = read_runs_csv(tmp_path / "r.csv")
    for name in ("n", "t", "u"):
        assert_array_equal(few.columns[name].values, many.columns[name].values)
    assert np.isnan(few.columns["u"].values).sum() == 57
    assert "57 rows have `TIMEOUT`" in warnings(many)


def test_an_unknown_column_of_a_filter_is_still_refused():
    with pytest.raises(UsageError, match="no column `state`"):
        read_runs_csv("n,t\n1,2\n", where={"state": "ok"})
