"""CSV files with a mapping of columns: units from headings or mapping, refusals that say what to write instead."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from whatif.errors import InvalidFileError, UsageError
from whatif.importers.mapped_csv import read_columns
from whatif.importers.mapping import parse_mapping
from whatif.importers.message_files import read_network

DATA = TEST_DATA / "importers" / "network" / "fugaku"
SMALL = "size (bytes),time (us)\n8,1.5\n16,2.5\n"


def values(table, name):
    return table.columns[name].values.tolist()


def test_a_column_named_twice_is_refused():
    with pytest.raises(UsageError, match="`time` is given twice"):
        parse_mapping("message_size=size,time=a [us],time=b [us]")


@pytest.mark.parametrize(
    ("text", "mapping"),
    [
        ("message_size=size (bytes),time=time (seconds)", {"message_size": "size (bytes)", "time": "time (seconds)"}),
        (" a = b, c , d=e [MB/s] ", {"a": "b, c", "d": "e [MB/s]"}),
    ],
)
def test_a_mapping_is_read_from_one_line(text, mapping):
    assert parse_mapping(text) == mapping


@pytest.mark.parametrize("text", ["", "size", "=size", "size,time=t"])
def test_malformed_mappings_are_refused(text):
    with pytest.raises(UsageError, match="is not a list such as"):
        parse_mapping(text)


@pytest.mark.parametrize(
    ("name", "mapping", "time"),
    [
        (
            "riken_imb_pingpong",
            "message_size=size (bytes),time=time (seconds),bandwidth=throughput (MB/s)",
            "time (seconds)",
        ),
        ("julia_imb_pingpong", "message_size=size,time=time,repetition_count=iterations", "time (seconds)"),
        ("julia_osu_latency", "message_size=Size,time=latency (seconds)", "latency (seconds)"),
        (
            "julia_osu_allreduce",
            "message_size=size,time=avg_time,test=allreduce,maximum_time=max_time",
            "avg_time (seconds)",
        ),
    ],
)
def test_the_files_of_fugaku_are_read_as_by_the_csv_module(name, mapping, time):
    path = DATA / f"{name}.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    table = read_columns(path, parse_mapping(mapping))
    assert_allclose(values(table, "message_size"), [float(row["size (bytes)"]) for row in rows], rtol=0)
    assert_allclose(values(table, "time"), [float(row[time]) for row in rows], rtol=1e-15)
    assert set(values(table, "test")) == {"allreduce" if "allreduce" in name else "ping_pong"}


@pytest.mark.parametrize(
    ("text", "mapping", "time"),
    [
        (SMALL, "message_size=size,time=time", [1.5e-6, 2.5e-6]),
        ("size\ttime\n8\t1.5\n16\t2.5\n", "message_size=size [B],time=time [us]", [1.5e-6, 2.5e-6]),
        ("size;t [µs]\n8;1.5\n16;2.5\n", "message_size=size [bytes],time=t", [1.5e-6, 2.5e-6]),
        ("# a comment\n\n# another\n" + SMALL + "\n# the end\n", "message_size=size,time=time", [1.5e-6, 2.5e-6]),
        ('"size (bytes)","time (us)"\n"8","1.5"\n"16","2.5"\n', "message_size=size,time=time", [1.5e-6, 2.5e-6]),
        ("# size (B),bw (MB/s)\n1000,4\n2000,5\n", "message_size=size,bandwidth=bw", [250e-6, 400e-6]),
        ("# size (B),bw (MB/s)\n1000,4\n2000,5\n", "message_size=size,bandwidth=bw,pair_count=2", [500e-6, 800e-6]),
        ("size (B),bw (GBps)\n8,1\n", "message_size=size,bandwidth=bw", [8e-9]),
        ("size (B),bw (Gbps)\n8,1\n", "message_size=size,bandwidth=bw", [64e-9]),
        ("time (ms)\n1\n2\n", "message_size=4 KiB,time=time", [1e-3, 2e-3]),
        ("\ufeffsize (bytes),time (us)\r\n8,1.5\r\n16,2.5", "message_size=size,time=time", [1.5e-6, 2.5e-6]),
        ("message_size [B],time [s]\n8,1e-6\n", None, [1e-6]),
        ("size (B),time (s)\n8,1\n", "message_size=size,time=time (seconds)", [1.0]),
        ("size (B),time (mean)\n8,1\n", "message_size=size,time=time [us]", [1e-6]),
    ],
)
def test_separators_comments_quotes_and_units(text, mapping, time):
    table = read_columns(text, mapping and parse_mapping(mapping))
    assert_allclose(values(table, "time"), time, rtol=1e-12)


def test_a_value_replaces_a_missing_column():
    table = read_columns(
        SMALL, parse_mapping("message_size=size,time=time,pair_count=4,test=lat,buffers=host to device")
    )
    assert values(table, "pair_count") == [4, 4]
    assert values(table, "test") == ["ping_pong", "ping_pong"]
    assert values(table, "buffers") == ["host to device"] * 2
    assert "warnings" not in table.notes


@pytest.mark.parametrize(
    ("text", "mapping", "message"),
    [
        (
            "size,time\n8,1\n",
            "message_size=size [B],time=time",
            "`time` has no unit: write the unit behind the column, `time=time [us]`",
        ),
        ("size,time (ticks)\n8,1\n", "message_size=size [B],time=time", "unknown unit `ticks`"),
        ("size (KB),time (s)\n8,1\n", "message_size=size,time=time", "did you mean kB or KiB?"),
        ("size (B),bw (Gb/s)\n8,1\n", "message_size=size,bandwidth=bw", "did you mean Gbit or GB?"),
        ("size (us),time (s)\n8,1\n", "message_size=size,time=time", "message_size cannot be in us"),
        (SMALL, "message_size=size", "name the columns of `message_size` and `time` or `bandwidth`"),
        (SMALL, "message_size=size,time=tme", "no column `tme`"),
        (SMALL, "message_size=size,time=time,pair_count=pairs", "no column `pairs`; the columns are `size"),
        (SMALL, "message_size=sizes [B],time=time", "no column `sizes [B]`; did you mean `size`?"),
        (
            "size (B),time (seconds)\n8,1\n",
            "message_size=size,time=time (us)",
            "has the unit us, but the column's heading is",
        ),
        ("size (B),time (ms)\n8,1\n", "message_size=size [kB],time=time", "heading is `size (B)`"),
        (SMALL, "message_size=size,time=time,pairs=4", "`pairs` is not a column of measurements"),
        (SMALL, "message_size=size,time=time,test=Which Test", "no column `Which Test`"),
        ("t (s),t (s)\n1,2\n", "message_size=8 B,time=t", "`t` is the heading of 2 columns"),
        (SMALL, "message_size=3 us,time=time", "must be in B"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(text, mapping, message):
    with pytest.raises(UsageError) as caught:
        read_columns(text, parse_mapping(mapping), "m.csv")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (SMALL.replace("2.5", "=A1+B2"), "m.csv:3:1", "`=A1+B2` is a formula: save the values"),
        (SMALL.replace("2.5", '"2,5"'), "m.csv:3:1", "decimal comma"),
        (SMALL.replace("2.5", '"2,500"'), "m.csv:3:1", "thousands separator"),
        (SMALL.replace(",", ";").replace("2.5", "2,5"), "m.csv:3:1", "decimal comma"),
        (SMALL.replace("1.5", "1.5s"), "m.csv:2:1", "`1.5s` is not a number"),
        (SMALL.replace("1.5", "1.5,7"), "m.csv:2:1", "3 cells where the heading has 2; decimal commas?"),
        (SMALL.replace("8,1.5", "8"), "m.csv:2:1", "1 cells where the heading has 2"),
        ("# one\n" + SMALL.replace("16,", "\n# two\n16,").replace("2.5", "2x"), "m.csv:6:1", "`2x` is not a number"),
        ("1,2\n3,4\n", "m.csv:1:1", "a line of headings is missing"),
        ("", "m.csv", "it is empty"),
        ("size (bytes),time (us)\n", "m.csv", "no rows"),
    ],
)
def test_cells_that_are_no_numbers_are_refused_with_their_line(text, place, message):
    with pytest.raises(InvalidFileError) as caught:
        read_columns(text, {"message_size": "size", "time": "time"}, "m.csv")
    assert str(caught.value).startswith(place)
    assert message in str(caught.value)


def test_a_last_row_that_was_cut_off_and_empty_cells_are_left_out_with_a_warning():
    table = read_columns(SMALL + "32,\n64,nan\n128,0\n-8,1\n256", {"message_size": "size", "time": "time"}, "m.csv")
    assert values(table, "message_size") == [8, 16]
    assert "m.csv:8: a row that was cut off" in table.notes["warnings"]
    assert "m.csv:4: 4 rows, this and others, left out" in table.notes["warnings"]


def test_rows_are_chosen_by_the_values_of_other_columns():
    text = "machine,size (B),k,time (us)\nlassen,8,1,1\nsummit,8,1,2\nlassen,8,2,3\n"
    mapping = {"message_size": "size", "time": "time", "pair_count": "k"}
    table = read_columns(text, mapping, where={"machine": "lassen"})
    assert values(table, "pair_count") == [1, 2]
    assert_allclose(values(table, "time"), [1e-6, 3e-6], rtol=1e-12)
    assert len(read_columns(text, mapping, where={"k": "1.0"})) == 2
    with pytest.raises(InvalidFileError, match="no rows with machine=sierra"):
        read_columns(text, mapping, where={"machine": "sierra"})
    with pytest.raises(UsageError, match="no column `machin`; did you mean `machine`"):
        read_columns(text, mapping, where={"machin": "lassen"})


def test_a_csv_in_many_pieces_reads_as_the_whole(tmp_path, monkeypatch):
    path = tmp_path / "long.csv"
    path.write_text("size (B),time (us)\n" + "".join(f"{index},{index + 1}.25\n" for index in range(500)) + "7,0\n")
    mapping = {"message_size": "size", "time": "time"}
    whole = read_network(path, mapping)
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (100,))
    pieces = read_network(path, mapping)
    assert values(pieces, "time") == values(whole, "time")
    assert pieces.notes == whole.notes
    assert ":502: 1 row left out" in whole.notes["warnings"]


def test_rows_of_a_long_file_are_chosen_by_four_columns():
    mapping = parse_mapping("message_size=bytes [B],time=value [us],test=test,pair_count=1")
    where = {"site": "pleiades", "test": "lat", "stat": "mean", "mpi_case": "Native RDMA"}
    table = read_columns(DATA.parent / "pleiades_osu.csv", mapping, where=where)
    assert len(table) == 24
    assert set(values(table, "test")) == {"ping_pong"}
    assert np.all(np.diff(values(table, "message_size")) >= 0)


def test_pairs_of_a_node_are_read_from_their_column(tmp_path):
    path = tmp_path / "shared.csv"
    rows = ("a,inter-node,8,1,1.5", "a,intra-node,8,1,0.5", "b,inter-node,8,1,2.5", "a,inter-node,8,4,1.75")
    path.write_text("\n".join(("machine,mode,bytes,k_pairs_per_node,oneway_us", *rows, "")))
    mapping = parse_mapping("message_size=bytes [B],time=oneway_us [us],pair_count=k_pairs_per_node")
    table = read_columns(path, mapping, where={"machine": "a", "mode": "inter-node"})
    assert set(values(table, "test")) == {"ping_pong"}
    assert values(table, "pair_count") == [1, 4]
    assert_allclose(values(table, "time"), [1.5e-6, 1.75e-6], rtol=1e-12)


def test_a_last_row_without_a_line_end_is_left_out_with_its_line(tmp_path):
    path = tmp_path / "cut.csv"
    path.write_text(SMALL + "32,3")
    table = read_columns(path, parse_mapping("message_size=size,time=time"))
    assert values(table, "message_size") == [8, 16]
    assert "cut.csv:4: a last row without a line end may be cut off" in table.notes["warnings"]
    path.write_text("size (bytes),time (us)\n32,3")
    with pytest.raises(InvalidFileError, match=r"no rows; .*cut.csv:2: a last row without a line end"):
        read_columns(path, parse_mapping("message_size=size,time=time"))


@pytest.mark.parametrize(
    ("heading", "expected"), [("k_pairs", True), ("pairs", True), ("Pair_Count", True), ("repairs", False)]
)
def test_a_column_that_looks_like_pair_counts_is_named_where_none_was_given(heading, expected):
    text = f"size (B),time (us),{heading}\n8,1,2\n16,2,2\n"
    reported = read_columns(text, parse_mapping("message_size=size,time=time")).notes["warnings"]
    assert (
        f"no pair_count was given, but a column looks like it: `pair_count={heading}` uses it" in reported
    ) is expected
    if expected:
        given = read_columns(text, parse_mapping(f"message_size=size,time=time,pair_count={heading}"))
        assert "no pair_count" not in given.notes["warnings"]
