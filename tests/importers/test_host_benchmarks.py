"""Outputs of STREAM and likwid-bench, and CSV files, as bandwidths by active cores."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA
from whatif.errors import InvalidFileError
from whatif.importers.host_benchmarks import parse_host, read_host

HOST = DATA / "importers" / "host"
STREAM, LIKWID = HOST / "stream_e5_2695v4.txt", HOST / "likwid_bench.txt"


def columns(table):
    return [table.columns[name].values.tolist() for name in ("function", "cores", "bandwidth")]


def test_stream_with_several_runs_in_one_file():
    table = read_host(STREAM)
    names, cores, bandwidths = columns(table)
    assert table.notes["tool"] == "STREAM"
    assert set(names) == {"triad"}
    assert cores == [1, 2, 4, 8, 16]
    assert_allclose(bandwidths, [10.69e9, 21.403e9, 37.266e9, 63.076e9, 123.96e9], rtol=1e-12, atol=0)


def test_likwid_bench_with_several_runs_in_one_file():
    table = read_host(LIKWID)
    names, cores, bandwidths = columns(table)
    assert table.notes["tool"] == "likwid-bench"
    assert set(names) == {"triad"}
    assert cores == [1, 2, 4, 8, 12]
    assert_allclose(bandwidths[0], 56e9, rtol=1e-6, atol=0)


def test_csv_with_a_unit():
    text = "# measured by hand\ncores,bandwidth [GB/s]\n1,10\n36,115.5\n"
    assert columns(parse_host(text)) == [["", ""], [1, 36], [10e9, 115.5e9]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("Hello\n", "neither STREAM, likwid-bench, nor CSV with columns `cores` and `bandwidth [GB/s]`"),
        ("cores,rate\n1,2\n", "no column bandwidth"),
        ("cores,bandwidth\n1,2\n", "`bandwidth` must be in B/s: write the unit behind it"),
        (STREAM.read_text().replace("Number of Threads counted", "Threads"), "without `Number of Threads counted = N`"),
        (LIKWID.read_text().partition("MByte/s")[0], "without `MByte/s: NUMBER`; is the file cut off?"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(InvalidFileError) as refused:
        parse_host(text, "host.txt")
    assert message in str(refused.value)
    assert str(refused.value).startswith("host.txt")


@pytest.mark.parametrize("cell", ["inf", "nan", "", "0", "-3", "1e300", "1e-320"])
def test_rows_without_a_bandwidth_are_left_out_with_a_warning(cell):
    table = parse_host(f"cores,bandwidth [GB/s]\n1,10\n2,{cell}\n4,40\n", "host.csv")
    assert columns(table) == [["", ""], [1, 4], [10e9, 40e9]]
    assert "host.csv: 1 row left out, row 2 is the first: 2 cores, " in table.notes["warnings"]
    with pytest.raises(InvalidFileError, match=r"host.csv: no row has a number of cores and a bandwidth from 1 kB/s"):
        parse_host(f"cores,bandwidth [GB/s]\n2,{cell}\n", "host.csv")


def test_an_edited_bandwidth_is_told():
    table = parse_host(STREAM.read_text().replace("10690.0", "20690.0"))
    assert "do not agree for triad; was the file edited?" in table.notes["warnings"]
