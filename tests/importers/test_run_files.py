"""Measured runs: one row a run, whatever the file; repetitions kept, units converted, bad cells told by their place."""

from __future__ import annotations

import contextlib
import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.paths import DATA as TEST_DATA
from whatif.errors import InvalidFileError, UsageError, WhatifError
from whatif.importers.caliper import read_caliper
from whatif.importers.caliper_json import caliper_document
from whatif.importers.extrap import read_extrap
from whatif.importers.mapping import parse_mapping
from whatif.importers.nvidia_smi import read_nvidia_smi
from whatif.importers.run_files import read_runs
from whatif.importers.runs_csv import read_run_sheet, read_runs_csv
from whatif.units import ONE, SECOND, WATT

DATA = TEST_DATA / "runs"
EXTRAP = DATA / "extrap"
NAN = float("nan")
SMALL = "ranks,Wall time [ms],gpu\n1,20,V100\n2,NA,K80\n"
LONG = "n,metric,value\n1,time [ms],3\n1,power [W],100\n1,time [ms],4\n2,time [ms],9\n"
QUERY = (
    "timestamp, index, name, power.draw [W], temperature.gpu, utilization.gpu [%], clocks.sm [MHz]\n"
    "2026/03/01 12:00:00.100, 0, Tesla V100, 68.50 W, 45, 45 %, 1380 MHz\n"
    "2026/03/01 12:00:01.350, 0, Tesla V100, [N/A], 46, [Not Supported], 1380 MHz\n"
)
MONITOR = (
    "#Time        gpu   pwr gtemp    sm  mclk\n#HH:MM:SS    Idx     W     C     %   MHz\n"
    " 23:59:59      0    43    35     -  2505\n"
    "#Time        gpu   pwr gtemp    sm  mclk\n#HH:MM:SS    Idx     W     C     %   MHz\n"
    " 00:00:01      0    44    35     7  2505\n"
)
SPLIT = {
    "data": [[0, 0.25, None], [0, 1.5, 0], [0, 1.25, 1]],
    "columns": ["mpi.rank", "sum#time", "path"],
    "column_metadata": [
        {"is_value": True},
        {"is_value": True, "attribute.alias": "Time (exc)", "attribute.unit": "sec"},
        {"is_value": False},
    ],
    "nodes": [{"label": "main", "column": "path"}, {"label": "loop", "column": "path", "parent": 0}],
    "jobsize": "27",
    "cluster": "opal",
    "libraries": "[a.so,b.so]",
    "cali.channel": "spot",
}
THICKET = {
    "graph": [
        {
            "0": {"data": {"name": "main", "type": "function"}, "children": [1], "parents": []},
            "1": {"data": {"name": "loop", "type": "function"}, "children": [], "parents": [0]},
        }
    ],
    "dataframe_indices": ["node", "profile"],
    "dataframe": [
        {"node": 1, "profile": -9218294338049403620, "nid": 3, "name": "loop", "time": 1.5},
        {"node": 0, "profile": 8974478453301104361, "nid": 0, "name": "main", "time": None},
    ],
    "metadata": [
        {"profile": -9218294338049403620, "jobsize": "27", "compilerversion": "8.1.0"},
        {"profile": 8974478453301104361, "jobsize": "64", "compilerversion": "1910.2"},
    ],
}


def values(table, name):
    return table.columns[name].values.tolist()


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_headings_become_names_and_their_units_base_units():
    table = read_runs_csv(SMALL)
    time = table.columns["Wall_time"]
    assert (time.dimension, time.written, time.values.dtype) == (SECOND, "ms", np.float64)
    assert_array_equal(time.values, [0.02, NAN])
    assert_array_equal(time.as_written(), [20.0, NAN])
    assert table.notes["columns"] == "Wall_time is `Wall time [ms]`"
    assert (table.columns["ranks"].dimension, table.columns["gpu"].dimension) == (ONE, None)
    assert values(table, "gpu") == ["V100", "K80"]


@pytest.mark.parametrize(
    ("heading", "name", "value", "unit"),
    [
        ("time (seconds)", "time", 4.0, "s"),
        ("power.draw [W]", "power_draw", 4.0, "W"),
        ("sm clock (MHz)", "sm_clock", 4e6, "1/s"),
        ("load [%]", "load", 0.04, ""),
        ("2nd", "_2nd", 4.0, ""),
        ("lambda", "lambda_", 4.0, ""),
        ("", "column_2", 4.0, ""),
    ],
)
def test_any_heading_is_a_name_that_a_formula_can_use(heading, name, value, unit):
    column = read_runs_csv(f"n,{heading}\n1,4\n").columns[name]
    assert (column.values.tolist(), column.unit) == ([value], unit)


def test_a_column_is_one_of_numbers_where_most_of_its_cells_are():
    assert values(read_runs_csv("n,t\n1,x\n2,y\n3,4\n4,5\n"), "t") == ["x", "y", "4", "5"]
    assert_array_equal(read_runs_csv("n,t\n1,NA\n").columns["t"].values, [NAN])


def test_separators_at_the_end_of_lines_are_no_column():
    assert list(read_runs_csv("n,t,\n1,2,\n").columns) == ["n", "t"]


def test_a_mapping_names_the_columns_that_are_kept():
    table = read_runs_csv(SMALL, columns=parse_mapping("time=Wall time,p=ranks"))
    assert list(table.columns) == ["time", "p"]
    assert_array_equal(table.columns["time"].values, [0.02, NAN])


def test_a_mapping_gives_the_unit_that_a_heading_lacks():
    column = read_runs_csv("n,t\n1,2\n", columns={"time": "t [us]"}).columns["time"]
    assert (column.values.tolist(), column.written) == ([2e-6], "us")


def test_repetitions_in_several_columns_are_rows_of_their_own():
    table = read_runs_csv("x,run 1,run 2\n1,2,3\n2,5,\n", columns=parse_mapping("x=x,time=run 1|run 2 [ms]"))
    assert values(table, "x") == [1.0, 1.0, 2.0, 2.0]
    assert_array_equal(table.columns["time"].values, [0.002, 0.003, 0.005, NAN])
    assert values(table, "repetition") == [1.0, 2.0, 1.0, 2.0]


def test_long_form_has_a_column_a_metric_and_keeps_repetitions():
    table = read_runs_csv(LONG, long=("metric", "value"))
    assert (values(table, "n"), values(table, "repetition")) == ([1.0, 1.0, 2.0], [1.0, 2.0, 1.0])
    assert_allclose(table.columns["time"].values, [0.003, 0.004, 0.009], rtol=1e-15)
    assert_array_equal(table.columns["power"].values, [100.0, NAN, NAN])
    assert (table.columns["time"].written, table.columns["power"].dimension) == ("ms", WATT)


def test_a_long_file_may_number_its_own_repetitions():
    rows = "1,1,time,1\n2,1,time,2\n1,2,time,3\n2,2,time,4\n2,2,time,5\n"
    table = read_runs_csv(f"repetition,nodes,metric,value\n{rows}", long=("metric", "value"))
    assert values(table, "time") == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert values(table, "repetition") == [1.0, 2.0, 1.0, 2.0, 2.0]


def test_a_mapping_names_metrics_of_the_long_form():
    table = read_runs_csv(LONG, long=("metric", "value"), columns={"n": "n", "t": "time"})
    assert list(table.columns) == ["n", "t", "repetition"]


def test_a_column_of_row_numbers_in_long_form_is_a_warning():
    text = "id,metric,value\n1,time,3\n2,power,100\n"
    assert "no run has two metrics" in read_runs_csv(text, long=("metric", "value")).notes["warnings"]
    table = read_runs_csv(text, long=("metric", "value"), columns={"time": "time", "power": "power"})
    assert (values(table, "time"), values(table, "power")) == ([3.0], [100.0])


def test_rows_are_chosen_by_the_values_of_a_column():
    assert values(read_runs_csv(SMALL, where={"gpu": "K80"}), "ranks") == [2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("n,t\n", "no rows"),
        ("1,2\n", "a line of headings is missing"),
        ("1 0.97\n2 1.95\n4 3.91\n", "a line of headings is missing"),
        ("n,t\n1,2,3\n4,5\n", r"f.csv:2:1: 3 cells where the heading has 2"),
        ("n,t\n1,2\n2,4x\n3,4\n", r"f.csv:3:1: t: `4x` is not a number"),
        ("n,t [s]\n1,2\n2,1 234.5\n", r"f.csv:3:1: t .s.: `1 234.5` has a thousands separator"),
        ("n,t [s]\n1,2\n2,1'234.5\n", r"f.csv:3:1: t .s.: `1'234.5` has a thousands separator"),
        ("n;t [s]\n1;2\n2;1.234,5\n", r"f.csv:3:1: t .s.: `1.234,5` has a thousands separator"),
        ("n,t [s]\n1,2\n2,1.5 ms\n", r"f.csv:3:1: t .s.: `1.5 ms` is not a number; a unit belongs into the heading"),
        ('n,t\n1,2\n2,"1,234.5"\n', r"f.csv:3:1: t: `1,234.5` has a thousands separator"),
        ('n,t\n1,"2,5"\n', "has a decimal comma"),
        ("n,t\n1,=A1\n", "is a formula"),
        ("n,n\n1,2\n", "n: the heading of 2 columns"),
        (",".join(f"c{i}" for i in range(2001)) + "\n", "more than 2,000 columns"),
    ],
)
def test_errors_name_the_line_and_column_of_a_wrong_cell(text, message):
    with pytest.raises(InvalidFileError, match=message):
        read_runs_csv(text, "f.csv", columns={"n": "n", "t": "t"})


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("n,price (apples)\n1,2\n", {}, r"--columns 'price=price \(apples\) \[1\]'` reads it as"),
        ("t [s],t [ms]\n1,2\n", {}, r"both `t`: .*--columns 't_1=t \[s\],t_2=t \[ms\]'`$"),
        ("t 1 [s],t.1 [s]\n1,2\n", {}, r"--columns 't_1=t 1 \[s\]\|t.1 \[s\]'`$"),
        ("t [s],t [ms]\n1,2\n", {"columns": {"t": "t [s]|t [ms]"}}, "repetitions in several units"),
        (SMALL, {"columns": {"t": "Wall time [V]"}}, r"--columns 't=Wall time \[ms\]'` reads it in its own unit"),
        ("a b,c\n1,2\n", {"columns": {"t": "a b [V]"}}, r"--columns 't=a b \[1\]'` reads it as"),
        ("a (V),c\n1,2\n", {"columns": {"t": "a (V)"}}, r"--columns 't=a \(V\) \[1\]'` reads it as"),
        (SMALL, {"columns": {"t": "tim"}}, "no column `tim`"),
        (SMALL, {"columns": {"t": "Wall time [s]"}}, r"has the unit s, but the column's heading is `Wall time \[ms\]`"),
        ("a [s],b [ms]\n1,2\n", {"columns": {"t": "a|b"}}, "repetitions in several units"),
        ("a,b,c\n1,2,3\n", {"columns": {"t": "a|b", "u": "a|b|c"}}, "2 and 3 repetitions"),
        (SMALL, {"where": {"cpu": "x"}}, "no column `cpu`"),
        (SMALL, {"long": ("metric", "gpu")}, "no column `metric`"),
    ],
)
def test_headings_that_do_not_fit_are_refused_with_a_hint(text, options, message):
    with pytest.raises(UsageError, match=message):
        read_runs_csv(text, "f.csv", **options)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("n,price (apples)\n1,2\n", None),
        ("t [s],t [ms]\n1,2\n", None),
        ("t 1 [s],t.1 [s]\n1,2\n", None),
        (SMALL, {"t": "Wall time [V]"}),
        ("a,b\n1,2\n", {"t": "a|b [V]"}),
        ("a (V),b (V)\n1,2\n", {"t": "a|b"}),
    ],
)
def test_every_mapping_that_a_message_offers_is_read(text, columns):
    with pytest.raises(UsageError) as refused:
        read_runs_csv(text, columns=columns)
    offers = re.findall("--columns '(.*?)'", str(refused.value))
    assert offers
    assert all(len(read_runs_csv(text, columns=parse_mapping(offer))) for offer in offers)


def test_a_mapping_to_a_pure_number_overrides_an_unknown_unit():
    assert values(read_runs_csv("n,price (apples)\n1,2\n", columns={"price": "price [1]"}), "price") == [2.0]


def test_files_in_other_units_are_one_table_in_the_unit_of_the_first(tmp_path):
    paths = [written(tmp_path, "a.csv", "n,t [ms]\n1,20\n"), written(tmp_path, "b.csv", "t [s],n\n3,2\n")]
    table = read_runs(paths)
    assert (values(table, "t"), table.columns["t"].written) == ([0.02, 3.0], "ms")
    assert [Path(name).name for name in values(table, "file")] == ["a.csv", "b.csv"]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("n,t [W]\n1,2\n", "`t` is in s in .*a.csv, but in W in .*b.csv"),
        ("n,t\n1,2\n", "`t` is in s in .*a.csv, but a number without a unit in .*b.csv"),
        ("n,t\n1,fast\n", "`t` is in s in .*a.csv, but a text in .*b.csv"),
        ("n\n1\n", "b.csv has no column `t`, which .*a.csv has"),
        ("n,t [s],u\n1,2,3\n", "a.csv has no column `u`, which .*b.csv has"),
    ],
)
def test_files_that_do_not_agree_are_both_named(tmp_path, other, message):
    paths = [written(tmp_path, "a.csv", "n,t [s]\n1,20\n"), written(tmp_path, "b.csv", other)]
    with pytest.raises(UsageError, match=message):
        read_runs(paths)


def test_a_row_that_was_cut_off_is_left_out_with_a_warning(tmp_path):
    table = read_runs_csv(written(tmp_path, "a.csv", "n,t\n1,2\n3,4"))
    assert values(table, "n") == [1.0]
    assert "a.csv:3: a last row without a line end" in table.notes["warnings"]


@pytest.mark.parametrize(
    ("name", "columns", "rows", "first"),
    [
        ("text/one_parameter_6.txt", ["p", "region", "value", "repetition"], 89, [1000.0, "met1", 4.1, 1.0]),
        (
            "text/mpa/3_param_base.txt",
            ["p", "n", "s", "region", "time", "repetition"],
            20,
            [32, 5000, 10, "main()", 406.498, 1],
        ),
        (
            "text/mpa/gpr_test_data_1.txt",
            ["x", "region", "time", "maxtime", "repetition"],
            44,
            [20, "compute", 82.00848518948744],
        ),
        ("json/input2.json", ["x", "y", "region", "time", "visits", "repetition"], 50, [4, 10, "sweep", 3.5, 5, 1]),
        ("json/input_1.JSON", ["x", "region", "time", "repetition"], 25, [4, "sweep", 3.5, 1]),
        (
            "jsonlines/cross_matrix_2p.jsonl",
            ["x", "y", "region", "metr", "repetition"],
            45,
            [40, 3, "", 504.63767808259195, 1],
        ),
        ("talpas/talpas_1.txt", ["x", "region", "time", "repetition"], 25, [20, "compute", 82.00848518948744, 1]),
    ],
)
def test_files_of_extra_p_have_a_row_for_each_repetition(name, columns, rows, first):
    table = read_runs([EXTRAP / name])
    assert (list(table.columns), len(table), table.notes["tool"]) == (columns, rows, "Extra-P")
    assert list(next(table.rows()))[: len(first)] == first


def test_a_metric_that_was_not_measured_everywhere_is_missing_there():
    frame = read_extrap(EXTRAP / "text/mpa/gpr_test_data_1.txt").to_pandas()
    assert frame.groupby("region").maxtime.count().to_dict() == {"compute": 0, "scatter": 20}


def test_runs_of_extra_p_take_names_units_and_choices():
    table = read_runs([EXTRAP / "json/input2.json"], {"ranks": "x", "time": "time [ms]"}, {"region": "sweep", "x": "8"})
    assert (values(table, "ranks"), values(table, "time")) == ([8.0] * 5, [0.0055] * 5)


def test_every_file_of_extra_p_is_read():
    files = [path for path in EXTRAP.rglob("*") if path.suffix in (".txt", ".json", ".jsonl")]
    assert len(files) > 40
    assert all(len(read_runs([path])) >= 6 for path in files)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PARAMETER x\nPOINTS (1)\nDATA a\n", "f:3:1: `a` is not a number"),
        ("PARAMETER x\nPOINTS (1)\nDATA 1\nDATA 2\n", "f:4:1: more lines of DATA than the 1 points"),
        ("PARAMETER x y\nPOINTS (1)\n", "f:2:1: a point of 1 values with 2 parameters"),
        ("POINTS (1)\n", "POINTS before any PARAMETER"),
        ("PARAMETER x\nRUNS 1\n", "`RUNS` is not one of"),
        ("PARAMETER x\nPOINTS (1)\n", "no measurements"),
        ("PARAMETER x\nPOINTS (1)\nMETRIC x\nDATA 1\n", "`x` is the name of two columns"),
        ('{"params":{"x":1},"value":1}\n{"params":{"y":1},"value":1}\n', "f:2:1: other parameters than above"),
        ('{"params":{"x":"a"},"value":1}\n', "f:1:1: params.x: Input should be a valid number"),
        (
            '{"parameters":["x"],"measurements":{"r":{"m":[{"point":[1,2],"values":[1]}]}}}',
            "2 values with 1 parameters",
        ),
        ('{"parameters":["x"],"measurements":{"r":', "is the file cut off"),
    ],
)
def test_malformed_files_of_extra_p_are_refused(text, message):
    with pytest.raises(InvalidFileError, match=message):
        read_extrap(text, "f")


def test_points_without_data_are_a_warning():
    table = read_extrap("PARAMETER x\nPOINTS (1) (2)\nREGION a\nDATA 1 2\n", "f")
    assert (len(table), table.notes["warnings"]) == (2, "f:4: a value has DATA for 1 of 2 points")


def test_profiles_of_caliper_have_the_times_that_another_reader_found():
    with (DATA / "caliper" / "lulesh_weak_scaling.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = read_runs([DATA / "caliper" / "27_cores.cali", DATA / "caliper" / "64_cores.cali"])
    assert values(table, "region") == [row["region"] for row in rows]
    known = {
        "jobsize": "ranks",
        "Min_time_rank": "min_s_per_rank",
        "Avg_time_rank": "avg_s_per_rank",
        "Total_time": "total_s",
        "figure_of_merit": "fom_zones_per_s",
        "problem_size": "problem_size",
        "iterations": "iterations",
    }
    for name, heading in known.items():
        assert_array_equal(table.columns[name].values, [float(row[heading]) for row in rows])
    assert (table.columns["Total_time"].dimension, table.columns["jobsize"].dimension) == (SECOND, ONE)


def test_short_run_attributes_of_caliper_are_columns():
    table = read_caliper(DATA / "caliper" / "27_cores.cali")
    assert set(values(table, "compilerversion")) == {"1910.2"}
    assert table.columns["cluster"].dimension is None
    assert not {"libraries", "executablepath", "cali_channel", "spot_options", "spot_channel"} & table.columns.keys()


def test_commas_and_equal_signs_in_a_profile_of_caliper_are_read():
    head = "__rec=node,id=30,attr=10,data=268,parent=3\n__rec=node,id=31,attr=8,data=function,parent=30\n"
    names = "__rec=node,id=32,attr=31,data=f(a\\,b\\=1)\n__rec=node,id=40,attr=8,data=n,parent=5\n"
    table = read_caliper(head + names + "__rec=ctx,ref=32,attr=40,data=2\n")
    assert (values(table, "region"), values(table, "n")) == (["f(a,b=1)"], [2.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__rec=node,id=x\n", "f:1:1: `x` is not the number of a node"),
        ("__rec=ctx,ref=99\n", "f:1:1: node 99 is not defined above"),
        ("__rec=ctx,attr=8=9,data=1\n", "1 values of 2 attributes"),
        ("__rec=node,id=20,attr=8,data=a\nnonsense\n", "f:2:1: no record of Caliper"),
        ("__rec=node,id=20,attr=8,data=a\n", "no measurements"),
        ("".join(f"__rec=node,id={20 + i},attr=8,data=a,parent={19 + i if i else 3}\n" for i in range(600)), "deeper"),
    ],
)
def test_malformed_profiles_of_caliper_are_refused(text, message):
    with pytest.raises(InvalidFileError, match=message):
        read_caliper(text, "f")


@pytest.mark.parametrize("lost", [1, 30, 6000])
def test_a_profile_of_caliper_that_was_cut_off_is_a_warning(tmp_path, lost):
    text = (DATA / "caliper" / "27_cores.cali").read_text()
    table = read_runs([written(tmp_path, "cut.cali", text[:-lost])])
    assert f"cut.cali:{text[:-lost].count(chr(10)) + 1}: a last row without a line end" in table.notes["warnings"]
    lines = text[:-lost].rpartition("\n")[0] + "\n"
    table = read_runs([written(tmp_path, "cut.cali", lines)])
    assert table.notes["warnings"].endswith("the closing record, of globals, is missing; the file may be cut off")
    assert "warnings" not in read_runs([written(tmp_path, "whole.cali", text)]).notes


def caliper_json(text, file="<text>"):
    return caliper_document(json.loads(text), file)


def test_json_split_of_caliper_has_paths_units_and_run_attributes():
    table = caliper_json(json.dumps(SPLIT))
    assert values(table, "region") == ["", "main", "main/loop"]
    assert (values(table, "Time_exc"), table.columns["Time_exc"].dimension) == ([0.25, 1.5, 1.25], SECOND)
    assert (values(table, "jobsize"), values(table, "cluster")) == ([27.0] * 3, ["opal"] * 3)
    assert not {"libraries", "cali_channel"} & table.columns.keys()


def test_plain_json_of_caliper_is_a_list_of_runs():
    table = caliper_json('[{"time":0.1},{"path":"main","time":0.2},{"path":"main/x","time":null}]')
    assert values(table, "region") == ["", "main", "main/x"]
    assert_array_equal(table.columns["time"].values, [0.1, 0.2, NAN])


def test_a_thicket_has_the_metadata_of_each_profile():
    table = caliper_json(json.dumps(THICKET))
    assert (values(table, "region"), values(table, "jobsize")) == (["main/loop", "main"], [27.0, 64.0])
    assert values(table, "compilerversion") == ["8.1.0", "1910.2"]
    assert values(table, "profile") == ["-9218294338049403620", "8974478453301104361"]
    assert_array_equal(table.columns["time"].values, [1.5, NAN])


def test_json_lines_of_any_program_are_runs(tmp_path):
    table = read_runs([written(tmp_path, "a.jsonl", '{"n":1,"t":2.5,"gpu":"a"}\n{"n":2,"t":3}\n')])
    assert (values(table, "t"), values(table, "gpu")) == ([2.5, 3.0], ["a", ""])


def test_json_lines_of_one_line_are_one_run(tmp_path):
    assert values(read_runs([written(tmp_path, "a.jsonl", '{"t":1,"gpu":"a"}\n')]), "t") == [1.0]


def test_a_key_may_end_with_a_unit_that_is_known():
    table = caliper_json('[{"time [ms]":1,"price [apples]":2}]')
    assert (values(table, "time"), table.columns["time"].written) == ([0.001], "ms")
    assert values(table, "price_apples") == [2.0]
    table = caliper_json('{"records":[{"time [ms]":1}],"attributes":{"time [ms]":{"attribute.unit":"sec"}}}')
    assert values(table, "time_ms") == [1.0]


def test_a_unit_that_is_not_known_belongs_to_the_name_of_a_metric():
    assert values(read_extrap("PARAMETER x\nPOINTS (1)\nMETRIC price (apples)\nDATA 2\n"), "price_apples") == [2.0]


@pytest.mark.parametrize(
    ("cell", "message"),
    [("true", "f: `t` is read as texts: `true` is not a number"), ('"a"', '`"a"` is not'), ("1e999", "infinite")],
)
def test_texts_among_numbers_are_a_warning(cell, message):
    assert message in caliper_json(f'[{{"t":1}},{{"t":{cell}}},{{"t":null}}]', "f").notes["warnings"]


def test_two_keys_of_one_name_are_refused():
    with pytest.raises(UsageError, match=r"`a b` and `a\.b` are both `a_b`: rename one in the file"):
        caliper_json('[{"a b":1,"a.b":2}]')


def test_columns_of_texts_cause_no_warning():
    assert "warnings" not in caliper_json('[{"on":true,"v":"1.0"},{"on":false,"v":"1.0.1"}]').notes


def test_infinite_numbers_of_a_sheet_are_a_warning():
    table = read_runs_csv("n,t [s]\n1,inf\n2,3\n")
    assert "`t [s]` holds infinite numbers, which are taken as missing" in table.notes["warnings"]
    assert_array_equal(table.columns["t"].values, [np.nan, 3])


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"a": "x" * 100},
        {"a": 1, "b": {}},
        [1, 2],
        [],
        [{}],
        [{"a": [1]}],
        SPLIT | {"nodes": [{"label": "a", "column": "path", "parent": 0}]},
        SPLIT | {"nodes": []},
        SPLIT | {"data": [[1]]},
        SPLIT | {"column_metadata": []},
        SPLIT | {"columns": "path"},
        THICKET | {"graph": []},
        THICKET | {"dataframe": [{"node": [1]}]},
        {"records": 1},
        [{"n": 10**400}],
        {"parameters": ["x"], "measurements": {"r": {"m": [{"point": [10**400], "values": [1]}]}}},
        {"parameters": [1], "measurements": {}},
        {"parameters": ["x"], "measurements": []},
    ],
)
def test_json_of_another_shape_is_refused(tmp_path, document):
    with pytest.raises(InvalidFileError):
        read_runs([written(tmp_path, "a.json", json.dumps(document))])


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b"{" * 9, b"\x00\x01", b"\xff\xfea", b"<html>", b"", b"\n\n", b"a"]
)
def test_a_file_of_nothing_that_is_known_is_refused(tmp_path, content):
    path = tmp_path / "junk"
    path.write_bytes(content)
    with pytest.raises(InvalidFileError):
        read_runs([path])


def test_a_log_of_nvidia_smi_has_power_in_watt_and_seconds_since_its_start():
    table = read_nvidia_smi(QUERY)
    assert_allclose(table.columns["timestamp"].values, [0.0, 1.25])
    assert_array_equal(table.columns["power_draw"].values, [68.5, NAN])
    assert_array_equal(table.columns["utilization_gpu"].values, [0.45, NAN])
    assert (table.columns["power_draw"].dimension, table.columns["timestamp"].dimension) == (WATT, SECOND)
    assert (table.columns["clocks_sm"].written, values(table, "name")) == ("MHz", ["Tesla V100"] * 2)
    assert (table.notes["tool"], table.notes["date"]) == ("nvidia-smi", "2026-03-01 12:00:00.100000")


def test_a_log_without_units_in_its_cells_has_the_same_values():
    plain = QUERY.replace(" W,", ",").replace(" %,", ",").replace(" MHz\n", "\n")
    assert list(read_nvidia_smi(plain).rows()) == list(read_nvidia_smi(QUERY).rows())


def test_a_log_that_was_started_twice_is_one_log():
    assert len(read_nvidia_smi(QUERY + QUERY)) == 4


def test_a_monitor_of_nvidia_smi_counts_its_seconds_over_midnight():
    table = read_nvidia_smi(MONITOR)
    assert (values(table, "timestamp"), values(table, "pwr")) == ([0.0, 2.0], [43.0, 44.0])
    assert_array_equal(table.columns["sm"].values, [NAN, 0.07])


def test_logs_are_recognised_by_content_and_take_columns_and_filters(tmp_path):
    path = written(tmp_path, "power.log", QUERY)
    table = read_runs([path], {"t": "timestamp", "power": "power.draw"}, {"temperature.gpu": "46"})
    assert (list(table.columns), values(table, "t")) == (["t", "power"], [1.25])
    assert len(read_runs([written(tmp_path, "dmon.txt", MONITOR)])) == 2


@pytest.mark.parametrize(
    ("text", "is_log"),
    [
        (QUERY, True),
        ("timestamp, memory.used [MiB], fan.speed [%]\n2024/01/01 12:00:00.000, 5 MiB, 30 %\n", True),
        ("timestamp, power.draw [W], node\n2024/01/01 12:00:00.000, 5 W, a\n", True),
        ("index, name, power.draw [W]\n0, V100, 50 W\n", True),
        ("power.draw [W], utilization.gpu [%]\n5 W, 7 %\n", True),
        ("ranks,clocks.sm,time [s]\n4,1,3\n", False),
        ("clocks.sm,ranks\n4,1\n", False),
        ("time [ms],power.draw\n12,3\n", False),
        ("timestamp,my power.draw [W],cpu\n1.5,3,4\n", False),
        ("timestamp,cpu.load\n1.5,3\n", False),
    ],
)
def test_logs_and_sheets_are_distinguished_by_their_headings(tmp_path, text, is_log):
    assert (read_runs([written(tmp_path, "a", text)]).notes.get("tool") == "nvidia-smi") is is_log


def test_errors_name_the_line_and_column_of_a_wrong_cell_of_a_log():
    with pytest.raises(InvalidFileError, match="f:3:1: timestamp: `yesterday` is not a time such as"):
        read_nvidia_smi(QUERY.replace("2026/03/01 12:00:01.350", "yesterday"), "f")
    warnings = read_nvidia_smi(QUERY.replace("68.50 W", "68.50 kW"), "f").notes["warnings"]
    assert "f:2: `power.draw [W]` is read as texts: `68.50 kW` is not a number" in warnings


def test_long_form_is_for_csv_files():
    with pytest.raises(UsageError, match="--long applies to CSV files only"):
        read_runs([EXTRAP / "json/input2.json"], long=("a", "b"))


def test_runs_are_printed_with_their_units(whatif_main, tmp_path):
    path = written(tmp_path, "a.csv", LONG)
    code, out, err = whatif_main("import", "runs", path, "--long", "metric=value", "--format", "csv")
    assert (code, out.splitlines()[0]) == (0, "n,repetition,time [s],power [W]")
    code, out, err = whatif_main(
        "import", "runs", EXTRAP / "json/input2.json", "--where", "region=sweep", "--columns", "t=time [ms]"
    )
    assert (code, out.split()[:3]) == (0, ["t", "3.5", "ms"])
    assert "tool Extra-P" in err


def test_options_that_do_not_fit_are_refused_without_a_traceback(whatif_main, tmp_path):
    path = written(tmp_path, "a.csv", SMALL)
    assert whatif_main("import", "runs", path, "--long", "metric")[0] == 2
    (tmp_path / "empty").mkdir()
    assert whatif_main("import", "runs", tmp_path / "empty")[0] == 2


@pytest.mark.parametrize("name", ["text/one_parameter_6.txt", "json/input2.json", "talpas/talpas_1.txt"])
def test_a_file_that_ends_anywhere_is_read_or_refused(tmp_path, name):
    text = (EXTRAP / name).read_text()
    for end in range(0, len(text), max(1, len(text) // 25)):
        with contextlib.suppress(WhatifError):
            read_runs([written(tmp_path, "cut", text[:end])])


@pytest.mark.parametrize("path", sorted(DATA.glob("**/*.csv")), ids=lambda path: path.name)
def test_short_and_long_texts_are_read_alike(path, monkeypatch):
    short = read_run_sheet(path)
    monkeypatch.setattr("whatif.importers.sheets._FEW_CHARACTERS", 0)
    long = read_run_sheet(path)
    assert short.values.keys() == long.values.keys()
    assert np.array_equal(short.lines, long.lines)
    for name, values in short.values.items():
        if values.dtype == object:
            assert values.tolist() == long.values[name].tolist()
        else:
            np.testing.assert_allclose(values, long.values[name], rtol=1e-14, atol=0)
