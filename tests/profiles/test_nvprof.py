"""Memory copies out of nvprof profiles and out of summaries, on what AHEAD's authors released."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA, SHARED
from whatif.errors import InvalidFileError
from whatif.profiles.nvprof import read_copies, read_copy_summary
from whatif.schema.toml import shown_path

SWEEP = DATA / "ahead" / "memcpy_sweep.csv"
PROFILE = DATA / "importers" / "transfer" / "titan_copies.nvvp"
READ, WRITE = "host_to_device", "device_to_host"


def test_the_copies_of_a_profile_have_direction_memory_size_and_time():
    table = read_copies(PROFILE)
    assert list(table.columns) == ["direction", "memory", "message_size", "start_time", "time", "stream", "device"]
    rows = list(table.rows())
    written = [row for row in rows if row[0] == WRITE]
    assert (len(rows), len(written)) == (87, 58)
    assert {row[1] for row in rows} == {"pageable"}
    assert sorted({row[2] for row in written}) == [2.0**power for power in range(29)]
    # 3.6 GB/s in the long run, from the released summary: 69.75 ms for 256 MiB.
    slowest = max(written, key=lambda row: row[2])
    assert_allclose(slowest[4], 69.75e-3, rtol=5e-3, atol=0)
    assert table.columns["start_time"].values.min() == 0
    assert table.notes == {"tool": "nvprof", "version": "11", "file": shown_path(PROFILE)}


@pytest.mark.shared_data
def test_every_released_profile_has_the_means_of_the_summary():
    with (SHARED / "profiles" / "ahead_memcpy_sweep_summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    spelled = {"HtoD": READ, "DtoH": WRITE, "DtoD": "device_to_device"}
    for source in sorted({row["source_file"] for row in rows}):
        table = read_copies(SHARED / "profiles" / "ahead" / source.removeprefix("data/"))
        for row in (row for row in rows if row["source_file"] == source):
            chosen = table.columns["message_size"].values == float(row["bytes"])
            chosen &= table.columns["direction"].values == spelled[row["direction"]]
            chosen &= table.columns["memory"].values == row["host_mem"]
            times = table.columns["time"].values[chosen]
            assert len(times) == int(row["n"])
            assert_allclose(times.mean() * 1e9, float(row["gpu_time_mean_ns"]), rtol=0, atol=0.051)


def database(path: Path, statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(statements)
    connection.close()
    return path


NVPROF = (
    "CREATE TABLE StringTable(_id_, value); CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(copyKind, srcKind, dstKind, bytes,"
    " start, end, streamId, deviceId);"
)


def inserted(*rows: str) -> str:
    return NVPROF + "".join(f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES({row});" for row in rows)


def test_kinds_are_numbered_as_nvprof_does_and_epochs_lose_no_nanosecond(tmp_path):
    epoch = 1544344586292108011
    rows = (
        f"1, 2, 3, 8, {epoch}, {epoch + 1}, 7, 0", f"2, 3, 1, 8, {epoch + 1}, {epoch + 4}, 7, 0",
        f"8, 3, 3, 8, {epoch + 5}, {epoch + 6}, 7, 1", f"1, 5, 3, 8, {epoch}, {epoch + 9}, 7, 0",
        f"10, 3, 3, 8, {epoch}, {epoch + 2}, 7, 0", f"9, 1, 1, 8, {epoch}, {epoch + 2}, 7, 0",
        f"1, 2, 3, 8, {epoch}, {epoch}, 7, 0", f"99, 2, 3, 8, {epoch}, {epoch + 1}, 7, 0",
    )  # fmt: skip
    table = read_copies(database(tmp_path / "p.nvvp", inserted(*rows)))
    found = [(row[0], row[1], round(row[3] * 1e9), round(row[4] * 1e9), row[6]) for row in table.rows()]
    assert found == [
        (READ, "pinned", 0, 1, 0), (WRITE, "pageable", 1, 3, 0), ("device_to_device", "device", 5, 1, 1),
        (READ, "managed", 0, 9, 0), ("peer_to_peer", "device", 0, 2, 0),
    ]  # fmt: skip
    assert table.notes["warnings"].endswith("3 of 8 copies left out: no direction, size or duration")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"<html><body>404</body></html>", "it is text or of another format"),
        (PROFILE.read_bytes()[:5000], "damaged or cut off"),
        (PROFILE.read_bytes()[:16], "damaged or cut off"),
        (NVPROF.replace("StringTable", "StringIds"), "an export of Nsight Systems"),
        ("CREATE TABLE a(b);", "no nvprof profile"),
        (NVPROF, "holds no memory copies"),
        (NVPROF.replace("bytes,", ""), "has no column bytes"),
        (inserted("1, 2, 3, NULL, 5, 6, 7, 0"), "a value that is not a whole number"),
        (inserted("1, 2, 3, 'many', 5, 6, 7, 0"), "a value that is not a whole number"),
        (inserted("0, 2, 3, 8, 5, 6, 7, 0"), "none of the memory copies has a direction"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, content, message):
    path = tmp_path / "p.nvvp"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        database(path, content)
    with pytest.raises(InvalidFileError, match=message):
        read_copies(path)


def test_more_copies_than_are_read_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("whatif.profiles.nvprof.MOST_COPIES", 1)
    path = database(tmp_path / "p.nvvp", inserted("1, 2, 3, 8, 5, 6, 7, 0", "1, 2, 3, 8, 5, 6, 7, 0"))
    with pytest.raises(InvalidFileError, match="more than 1 memory copies"):
        read_copies(path)


SUMMARY = "machine,direction,host_mem,copyKind,bytes,n,gpu_time_mean_ns,gpu_time_min_ns,gpu_time_max_ns"


def test_a_summary_is_read_by_the_names_of_its_columns():
    table = read_copy_summary(f"{SUMMARY}\nTitan,HtoD,pinned,1,4096,100,2471.4,1664,2752\n\n")
    (row,) = table.rows()
    assert row[:5] == ("Titan", READ, "pinned", 4096.0, 100.0)
    assert_allclose(row[5:], [2471.4e-9, 1664e-9, 2752e-9], rtol=1e-12, atol=0)
    assert len(read_copy_summary(SWEEP)) == 290


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column `direction`"),
        ("direction,host_mem,bytes\nHtoD,pinned,1", "no column `gpu_time_mean_ns` or `mean_time_ns`"),
        (SUMMARY, "no rows"),
        (f"{SUMMARY}\nTitan,HtoD,pinned,1,4096", "<text>:2:1: 5 values where the heading has 9 columns"),
        (f"{SUMMARY}\nTitan,up,pinned,1,1,1,1,1,1", "<text>:2:1: `up` is not a direction"),
        (f"{SUMMARY}\nTitan,HtoD,heap,1,1,1,1,1,1", "`heap` is not a kind of memory"),
        (f"{SUMMARY}\nTitan,HtoD,pinned,1,1,1,nan,1,1", "time: `nan` is not a positive number"),
        (f"{SUMMARY}\nTitan,HtoD,pinned,1,1,1,0,1,1", "time: `0` is not a positive number"),
        (f"{SUMMARY}\nTitan,HtoD,pinned,1,,1,1,1,1", "message_size: `` is not a positive number"),
        (f"{SUMMARY}\n{'x' * 200_000}", "no CSV: field larger"),
    ],
)
def test_errors_in_a_summary_name_the_line(text, message):
    with pytest.raises(InvalidFileError, match=message):
        read_copy_summary(text)
