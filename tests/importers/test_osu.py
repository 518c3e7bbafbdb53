"""The OSU importer on real outputs and on texts of every layout: numbers against a plain loop, refusals by line."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from whatif.errors import InvalidFileError
from whatif.importers import numbers as bulk
from whatif.importers.message_tables import COLUMNS
from whatif.importers.osu import read_osu
from whatif.vocabulary import UNKNOWN_PAIRS

DATA = TEST_DATA / "importers" / "network" / "cscs"

OSU_V3 = """\
# OSU MPI Latency Test v3.1.1
# Size            Latency (us)
0                         1.21
1                         1.27
65536                    31.50
"""
OSU_V5_DEVICE = """\
# OSU MPI-CUDA Latency Test v5.6.2
# Send Buffer on DEVICE (D) and Receive Buffer on HOST (H)
# Size          Latency (us)
8                       9.75
"""
OSU_MULTIPLE = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.3
# [ pairs: 4 ] [ window size: 32 ]
# Size                  MB/s        Messages/s
1                       8.00        8000000.00
1048576             20000.00          19073.49
"""
OSU_BIDIRECTIONAL = """\
# OSU MPI Bi-Directional Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1048576             40000.00
"""
OSU_COLLECTIVE = """\
# OSU MPI Allgather Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       2.81              1.89              3.73          10
1048576               104.30            104.26            104.33          10
"""
OSU_NON_BLOCKING = """\
# OSU MPI-CUDA Non-blocking Allreduce Latency Test v7.5
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Datatype: MPI_INT.
# Size           Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)      MPI_Wait(us)    Pure Comm.(us)        Overlap(%)
4                       60.0              25.0               9.0               1.0               2.0              26.5              0.00
"""  # noqa: E501
OSU_BARRIER = """\
# OSU MPI Barrier Latency Test v5.8
# Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
             7.25              6.90              7.60        1000
"""


def values(table, name):
    return table.columns[name].values.tolist()


def lines_of(path):
    """The rows of a benchmark's output, by a plain loop."""
    words = (line.split() for line in path.read_text().splitlines() if line[:1].isdigit())
    return [[float(word) for word in row if word != "Pass"] for row in words]


@pytest.mark.parametrize(
    ("name", "test", "buffers", "processes"),
    [
        ("mpich_02", "bandwidth", "host", 2),
        ("openmpi_10", "bandwidth", "device", 2),
        ("resource-hook_16", "bandwidth", "host", 2),
        ("openmpi_11", "alltoall", "host", 8),
    ],
)
def test_osu_outputs_of_alps_are_read_as_by_a_plain_loop(name, test, buffers, processes):
    path = DATA / f"{name}.txt"
    table = read_osu(path)
    rows = np.array(lines_of(path))
    assert list(table.columns) == list(COLUMNS)
    assert_allclose(values(table, "message_size"), rows[:, 0], rtol=0)
    column, scale = ("bandwidth", 1e6) if test == "bandwidth" else ("time", 1e-6)
    assert_allclose(values(table, column), rows[:, 1] * scale, rtol=1e-15)
    assert set(values(table, "test")) == {test}
    assert set(values(table, "buffers")) == {buffers}
    assert set(values(table, "process_count")) == {processes}
    assert table.notes["command"].startswith("srun -N") or table.notes["command"].startswith("srun --mpi")


def test_the_time_of_a_message_in_a_stream_follows_from_pairs_and_bandwidth():
    table = read_osu(OSU_MULTIPLE)
    # A pair of four moves 5 GB/s: 1 MiB takes 209.7152 us; 8 MB/s of bytes among four pairs are 0.5 us a message.
    assert_allclose(values(table, "time"), [0.5e-6, 209.7152e-6], rtol=1e-12)
    assert values(table, "pair_count") == [4, 4]
    assert values(table, "window_size") == [32, 32]
    assert_allclose(values(table, "message_rate"), [8e6, 19073.49], rtol=1e-15)
    both_ways = read_osu(OSU_BIDIRECTIONAL)
    assert_allclose(values(both_ways, "time"), [2 * 1048576 / 40e9], rtol=1e-12)
    assert values(both_ways, "test") == ["bidirectional_bandwidth"]
    assert values(both_ways, "window_size") == [64]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OSU_V3, {"test": "ping_pong", "time": 1.21e-6, "message_size": 0, "pair_count": 1, "window_size": 1}),
        (OSU_V5_DEVICE, {"test": "ping_pong", "time": 9.75e-6, "buffers": "device to host"}),
        (OSU_COLLECTIVE, {"test": "allgather", "time": 2.81e-6, "minimum_time": 1.89e-6, "maximum_time": 3.73e-6}),
        (OSU_COLLECTIVE, {"repetition_count": 10, "pair_count": None, "process_count": None}),
        (OSU_NON_BLOCKING, {"test": "iallreduce", "time": 26.5e-6, "buffers": "device"}),
        (OSU_BARRIER, {"test": "barrier", "message_size": 0, "time": 7.25e-6, "repetition_count": 1000}),
        ("$ srun -n 16 ./osu_multi_lat\n" + OSU_V3.replace("Lat", "Multi Lat", 1), {"pair_count": 8, "time": 1.21e-6}),
        (OSU_V3.replace("Latency (us)", "Avg Latency(us)").replace("3.1.1", "7.5"), {"time": 1.21e-6}),
        (OSU_V3.replace("Latency (us)", "Latency (ms)"), {"time": 1.21e-3}),
    ],
)
def test_headings_of_all_versions_are_understood(text, expected):
    row = dict(zip(COLUMNS, next(read_osu(text).rows()), strict=True))
    for name, value in expected.items():
        assert row[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name


VARIED = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.2
# [ pairs: 2 ] [ window size: varied ]

# Uni-directional Bandwidth (MB/sec)
#               1           2          64         128
1              0.80        1.20        4.60        4.80
4096        2000.00     3000.00     9000.00     9100.00

# Message Rate Profile
#               1           2          64         128
1         800000.00  1200000.00  4600000.00  4800000.00
4096      488281.25   732421.88  2197265.62  2221679.69
"""


@pytest.mark.parametrize(("windows", "read", "rates"), [("64", 64, [4.6e6, 9e9]), ("32", 128, [4.8e6, 9.1e9])])
def test_of_varied_windows_the_usual_one_is_read_else_the_last(windows, read, rates):
    table = read_osu(VARIED.replace("  64 ", f"  {windows} "))
    assert_allclose(table.columns["bandwidth"].values, rates, rtol=1e-12)
    assert table.columns["window_size"].values.tolist() == [read, read]
    assert table.warnings == ("<text>:11: numbers under no heading that is known, left out (2 such rows)",)


@pytest.mark.parametrize("prefix", ["0: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", " 12: "])
def test_lines_that_name_their_process_are_read_as_others(prefix):
    text = "".join(prefix + line + "\n" for line in OSU_MULTIPLE.splitlines())
    assert values(read_osu(text), "time") == values(read_osu(OSU_MULTIPLE), "time")
    rows_only = "".join((prefix if line[0].isdigit() else "") + line + "\n" for line in OSU_MULTIPLE.splitlines())
    assert values(read_osu(rows_only), "time") == values(read_osu(OSU_MULTIPLE), "time")


@pytest.mark.parametrize(("end", "sizes"), [("\n", [0, 1, 65536]), ("", [0, 1])])
def test_a_last_row_without_a_line_end_is_left_out(tmp_path, end, sizes):
    path = tmp_path / "cut.txt"
    path.write_text(OSU_V3.rstrip("0\n") + end)
    table = read_osu(path)
    assert values(table, "message_size") == sizes
    assert ("cut.txt:5: a last row without a line end" in table.notes.get("warnings", "")) is (not end)


def test_several_pairs_without_their_number_are_noted():
    table = read_osu(OSU_V3.replace("Lat", "Multi Lat", 1), "multi.txt")
    assert table.notes[UNKNOWN_PAIRS] == "multi.txt"
    assert np.isnan(table.columns["pair_count"].values).all()
    assert UNKNOWN_PAIRS not in read_osu(OSU_V3).notes


def test_several_tests_in_one_file_with_noise_between_them_keep_their_order():
    noise = "Loading module mpi/4.1\nsrun: job 12 queued\n2024-05-01 12:00:00 WARN [rank 0] something\n\n-----\n"
    text = noise + OSU_V3 + noise + OSU_MULTIPLE + OSU_COLLECTIVE.replace("\n", "\r\n") + noise + OSU_V3
    table = read_osu(text, "job.out")
    assert values(table, "test") == ["ping_pong"] * 3 + ["bandwidth"] * 2 + ["allgather"] * 2 + ["ping_pong"] * 3
    assert table.notes["version"] == "3.1.1; 5.6.3; 7.4"
    assert set(values(table, "file")) == {"job.out"}
    assert "warnings" not in table.notes


def test_a_row_with_failed_validation_is_kept_with_a_warning():
    text = (DATA / "openmpi_10.txt").read_text()
    lines = text.splitlines()
    lines[6] = lines[6].replace("Pass", "Fail")
    table = read_osu("\n".join(lines), "o.txt")
    assert len(table) == len(read_osu(text))
    assert table.notes["warnings"] == "o.txt:7: the validation of this row failed"


def test_lines_that_only_look_like_rows_of_a_validated_run_are_no_rows():
    rows = "1    2.5    Pass\nPass 1 2\n12:30:11 Fail\n2    2.6    Fail\n3 nodes are left\n4    2.7    Pass \n"
    table = read_osu("# OSU MPI Latency Test v7.5\n# Size  Latency (us)  Validation\n" + rows, "o.txt")
    assert values(table, "message_size") == [1, 2, 4]
    assert table.notes["warnings"] == "o.txt:6: the validation of this row failed"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (OSU_V3.replace("1.27", "1.2x7"), 4, "`1.2x7` is not a number"),
        (OSU_V3.replace("1.27", "1,27"), 4, "`1,27` is not a number"),
        (OSU_V3.replace("1.27", "1.2.7"), 4, "`1.2.7` is not a number"),
        (OSU_V3.replace("1.27", "1.27  3"), 4, "3 values where the heading has 2 columns"),
        (OSU_V3.replace("1.27", "    "), 4, "1 values where the heading has 2 columns"),
        (OSU_V3.replace("1.27", "."), 4, "`.` is not a number"),
        (OSU_V3.replace("1.27", "1e"), 4, "`1e` is not a number"),
        (OSU_V3.replace("1.21", "2.5 Pass").replace("1.27", "1,27 Pass"), 4, "`1,27` is not a number"),
        (OSU_MULTIPLE.replace("8.00", "eight"), 4, "`eight` is not a number"),
    ],
)
def test_a_damaged_row_is_refused_with_its_line(text, line, message):
    with pytest.raises(InvalidFileError) as caught:
        read_osu(text, "o.txt")
    assert f"o.txt:{line}:1" in str(caught.value)
    assert message in str(caught.value)


def test_a_row_that_was_cut_off_is_left_out_with_a_warning():
    table = read_osu(OSU_MULTIPLE + "2097152      200\n", "o.txt")
    assert len(table) == 2
    assert table.notes["warnings"] == "o.txt:6: a row that was cut off, left out"


def test_rows_without_a_positive_time_are_left_out_and_counted():
    rows = "2    0.00\n4    nan\n8    -nan\n16    -1.5\n32    inf\n64    1e-3\n"
    table = read_osu(OSU_V3 + rows, "o.txt")
    assert values(table, "message_size") == [0, 1, 65536, 64]
    assert values(table, "time")[-1] == pytest.approx(1e-9, rel=1e-12)
    assert table.notes["warnings"].startswith("o.txt:6: 5 rows")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "nothing here\n", "# OSU MPI Latency Test v5\n# Size   Latency (us)\n", "1 2\n3 4\n"]
)
def test_a_text_without_results_is_refused(text):
    with pytest.raises(InvalidFileError, match="no measurements in this file"):
        read_osu(text)


@pytest.mark.parametrize("digits", range(1, 20))
def test_numbers_are_read_to_the_last_bit(digits):
    generator = np.random.default_rng(digits)
    words = ["".join(generator.choice(list("0123456789"), digits)) for _ in range(200)]
    words = [
        word[: index % digits] + "." + word[index % digits :] if index % 3 else word for index, word in enumerate(words)
    ]
    words[::50] = [f"{word}e-3" for word in words[::50]]  # these are read another way than their neighbours
    rows = [f"{index} {'0' if word.startswith('.') else ''}{word}" for index, word in enumerate(words)]
    heading = "# OSU MPI Latency Test v5\n# Size Latency (s)\n"
    seen = dict(
        zip(*(values(read_osu(heading + "\n".join(rows)), name) for name in ("message_size", "time")), strict=True)
    )
    assert seen == {index: float(word) for index, word in enumerate(words) if float(word) > 0}


def test_a_file_in_many_pieces_reads_as_the_whole(tmp_path, monkeypatch):
    text = "".join((OSU_V3, "srun: noise\n", OSU_MULTIPLE, OSU_COLLECTIVE) * 50) + OSU_V3.replace("1.27", "0.00")
    path = tmp_path / "long.txt"
    path.write_text(text)
    whole = read_osu(path)
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (200,))
    pieces = read_osu(path)
    assert values(pieces, "test") == values(whole, "test")
    assert values(pieces, "time") == values(whole, "time")
    assert pieces.notes == whole.notes


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    (tmp_path / "long.txt").write_text("1 " * 3000)
    monkeypatch.setattr("whatif.importers.text.chunks.__defaults__", (500,))
    monkeypatch.setattr("whatif.importers.text.LONGEST_LINE", 2000)
    with pytest.raises(InvalidFileError, match="a line is longer than"):
        read_osu(tmp_path / "long.txt")


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(bulk, "MOST_ROWS", 2)
    with pytest.raises(InvalidFileError, match="more than 2 rows"):
        read_osu(OSU_V3)
