"""Files of SimGrid: measurements of its calibration, and platforms."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.paths import DATA as TEST_DATA
from whatif.errors import InvalidFileError
from whatif.importers.simgrid import is_platform, read_platform, read_simgrid

DATA = TEST_DATA / "importers" / "network"
PLATFORM = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <config id="General"><prop id="smpi/bw-factor" value="0:0.47;8133:0.68"/></config>
 <zone id="AS0" routing="Full">
  <cluster id="c" prefix="n-" suffix="" radical="0-3" speed="1Gf" bw="12.5GBps" lat="0.10us" loopback_bw="8Gbps"/>
 </zone>
</platform>
"""


def values(table, name):
    return table.columns[name].values.tolist()


def test_a_simgrid_ping_pong_is_half_the_sum_of_send_and_receive():
    table = read_simgrid(DATA / "simgrid" / "stampede_PingPong.csv")
    assert len(table) == 100
    assert set(values(table, "test")) == {"ping_pong"}
    assert values(table, "time")[0] == pytest.approx((2.060230e-04 + 1.817220e-04) / 2, rel=1e-12)
    # 766 kB over FDR InfiniBand, 6.8 GB/s at most: a round trip taken for one way would be below half of it.
    assert 3.4e9 < np.max(np.array(values(table, "message_size")) / values(table, "time")) < 6.8e9


def test_other_simgrid_operations_keep_their_name_and_duration():
    table = read_simgrid(DATA / "simgrid" / "stampede_Isend.csv")
    assert set(values(table, "test")) == {"isend"}
    assert values(table, "time")[0] == pytest.approx(5.0834e-05, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MPI_Send,8,1.0,1e-6\nMPI_Recv,8,1.0,abc\n", "f.csv:2:1: `MPI_Recv,8,1.0,abc` is not a row"),
        ("MPI_Send,8,1.0,1e-6\nMPI_Recv,8,1.0\nMPI_Send,8,2.0,1e-6\n", "f.csv:2:1"),
        ("", "no measurements in this file"),
    ],
)
def test_damaged_simgrid_rows_are_refused(text, message):
    with pytest.raises(InvalidFileError) as caught:
        read_simgrid(text, "f.csv")
    assert message in str(caught.value)


def test_a_simgrid_file_that_ends_within_a_row_keeps_the_whole_ping_pongs():
    table = read_simgrid("MPI_Send,8,1.0,1e-6\nMPI_Recv,8,1.0,3e-6\nMPI_Send,8,2.0,1e-6\nMPI_Re", "f.csv")
    assert values(table, "time") == [pytest.approx(2e-6)]
    assert "f.csv:4: a row that was cut off" in table.notes["warnings"]
    assert "1 sends or receives without the other half" in table.notes["warnings"]


def test_a_simgrid_platform_gives_its_piecewise_parameters():
    table = read_platform(DATA / "simgrid" / "taurus.xml")
    rows = defaultdict(list)
    for name, *numbers in table.rows():
        rows[name].append(numbers)
    assert [piece[0] for piece in rows["smpi/os"]] == [0, 1420, 33500, 65536, 320000]
    assert rows["smpi/os"][0][2:4] == [3.79946267082783e-06, 1.09809596167633e-10]
    assert rows["smpi/lat-factor"][1][1] == 5.19380442595492
    assert rows["AS_taurus1/bw"][0][5] == 6.875e8
    units = dict(
        zip(
            ("bandwidth", "latency"),
            (read_platform(PLATFORM).columns[name].values for name in ("bandwidth", "latency")),
            strict=True,
        )
    )
    assert units["bandwidth"][~np.isnan(units["bandwidth"])].tolist() == [12.5e9, 1e9]
    assert units["latency"][~np.isnan(units["latency"])].tolist() == [1e-7]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLATFORM.replace('"https://simgrid.org/simgrid.dtd"', '"x" [<!ENTITY a "b">]'), "p.xml:2:1"),
        (PLATFORM.replace("</zone>", ""), "is not XML"),
        (PLATFORM.replace("0:0.47", "0:x"), "`x` is not a number"),
        (PLATFORM.replace("0:0.47", "0.47"), "`0.47` must be `message_size:factor`"),
        (PLATFORM.replace("12.5GBps", "12.5us"), "must be in B/s"),
        ("<platform/>", "no network parameters"),
    ],
)
def test_damaged_platforms_are_refused(text, message):
    with pytest.raises(InvalidFileError) as caught:
        read_platform(text, "p.xml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "platform"),
    [
        (PLATFORM.encode(), True),
        (b"<platform/>", True),
        (b"MPI_Send,8,1.0,1e-6\n", False),
        (b"<!DOCTYPE html><html></html>", False),
        (b"\x7fELF\0\0", False),
        (b"", False),
    ],
)
def test_a_platform_is_known_by_its_start(tmp_path, content, platform):
    path = tmp_path / "x.xml"
    path.write_bytes(content)
    assert is_platform(path) is platform
    assert not is_platform(tmp_path)
