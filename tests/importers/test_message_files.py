"""Importers of IMB, Netgauge, ping-pong logs and SimGrid files, and the one that finds out what a file is."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from tests.paths import SHARED
from whatif.errors import InvalidFileError, UsageError, WhatifError
from whatif.importers.imb import read_imb
from whatif.importers.mapped_csv import read_columns
from whatif.importers.message_files import FORMATS, read_network, read_networks
from whatif.importers.netgauge import read_netgauge
from whatif.importers.osu import read_osu
from whatif.importers.ping_pong_log import read_ping_pong_log
from whatif.importers.simgrid import read_platform, read_simgrid

DATA = TEST_DATA / "importers" / "network"

OSU_V3 = """\
# OSU MPI Latency Test v3.1.1
# Size            Latency (us)
0                         1.21
1                         1.27
65536                    31.50
"""
IMB_OLD = """\
#---------------------------------------------------
#    Intel (R) MPI Benchmark Suite V3.2, MPI-1 part
#---------------------------------------------------
# Date                  : Thu Feb 28 10:34:08 2013
# Version               : #1 SMP
# MPI Version           : 2.1

# Calling sequence was:

# ./IMB-MPI1 pingpong -msglog 22

#---------------------------------------------------
# Benchmarking PingPong
# #processes = 2
# ( 62 additional processes waiting in MPI_Barrier)
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.19         0.00
            1         1000         1.20         0.79
      1048576           40       178.65      5597.63
      2097152           20       351.31      5692.98
      4194304           10       701.69      5700.53
"""
IMB_NEW = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.2, MPI-1 part
#----------------------------------------------------------------
#---------------------------------------------------
# Benchmarking Sendrecv
# #processes = 4
#-----------------------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec
            0         1000         2.00         2.20         2.10         0.00
        65536          640        20.00        20.00        20.00      6553.60
       131072          320        40.00        40.00        40.00      6553.60
       262144          160        80.00        80.00        80.00      6553.60
#----------------------------------------------------------------
# Benchmarking Alltoall
# #processes = 8
#----------------------------------------------------------------
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            1         1000         0.65         6.07         3.36
      4194304   out-of-mem.
#---------------------------------------------------
# Benchmarking Barrier
# #processes = 6
#---------------------------------------------------
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000        22.93        22.95        22.94
"""
IMB_GROUPS = """\
# Benchmarking Multi-PingPong
# ( 2 groups of 2 processes each running simultaneous )
# Group    0                     : 0 1
# Group    1                     : 2 3
#----------------------------------------------------------------
        Group       #bytes #repetitions      t[usec]   Mbytes/sec

            0            1         1000         7.28         0.13
            1            1         1000         7.13         0.13

# Benchmarking Multi-PingPong
# ( 4 groups of 2 processes each running simultaneous )
#bytes #repetitions t[usec] Mbytes/sec
8 1000 9.25 0.86
# Benchmarking Uniband
# #processes = 8
#---------------------------------------------------
       #bytes #repetitions   Mbytes/sec      Msg/sec
            0         1000         0.00      2000000
         1000         1000      4000.00      4000000
"""
NETGAUGE = """\
## Netgauge v2.4.6 - mode mpi - 2 processes
##
## A  -  B  C  D  E  (F G) - H  I  J  K  (L M)  -  N  O  P  Q
1 - 0.40 0.46 0.45 0.73 (0.05 4) - 1.33 1.43 1.39 2.04 (0.11 2) - 3.93 5.58 5.75 6.02
4096 - 3.08 3.15 3.13 3.79 (0.11 4) - 3.22 3.49 3.43 5.92 (0.29 1) - 5536.49 9390.97 9563.02 10177.94
"""
LOGGP = """\
# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)
1 10 2.80 5.72 30.61 1.40 0.28 0.32 -nan nan nan
2 10 2.78 5.55 30.32 1.40 0.27 0.29 0.34 -0.016926 nan
"""


def values(table, name):
    return table.columns[name].values.tolist()


def test_an_old_imb_output_counts_mbytes_of_two_to_the_twenty():
    table = read_imb(IMB_OLD, "i.txt")
    assert_allclose(values(table, "time"), [1.19e-6, 1.2e-6, 178.65e-6, 351.31e-6, 701.69e-6], rtol=1e-12)
    # The bandwidth of a ping-pong is size / time: printed and recomputed agree to the printed digits.
    size, time = (np.array(values(table, name))[2:] for name in ("message_size", "time"))
    assert_allclose(values(table, "bandwidth")[2:], size / time, rtol=1e-4)
    assert set(values(table, "process_count")) == {2}
    assert table.notes["version"] == "3.2"
    assert table.notes["date"] == "Thu Feb 28 10:34:08 2013"
    assert table.notes["command"] == "./IMB-MPI1 pingpong -msglog 22"
    assert "warnings" not in table.notes


def test_size_of_a_mbyte_follows_from_the_times_despite_the_version():
    table = read_imb(IMB_OLD.replace("Suite V3.2", "Suite V2018"), "i.txt")
    assert values(table, "bandwidth") == values(read_imb(IMB_OLD), "bandwidth")
    assert (
        "by its times a Mbyte of this file is 1,048,576 B, but 1,000,000 B in version 2018" in table.notes["warnings"]
    )


def test_a_new_imb_output_with_collectives_and_a_barrier():
    table = read_imb(IMB_NEW)
    assert values(table, "test") == ["sendrecv"] * 4 + ["alltoall", "barrier"]
    assert values(table, "process_count") == [4] * 4 + [8, 6]
    assert_allclose(values(table, "bandwidth")[1:4], [6553.6e6] * 3, rtol=1e-12)
    assert_allclose(values(table, "time"), [2.1e-6, 20e-6, 40e-6, 80e-6, 3.36e-6, 22.94e-6], rtol=1e-12)
    assert_allclose(values(table, "maximum_time")[-2:], [6.07e-6, 22.95e-6], rtol=1e-12)
    assert values(table, "message_size")[-1] == 0
    assert "warnings" not in table.notes


def test_imb_of_nonblocking_collectives_has_the_time_without_computation():
    heading = "#bytes #repetitions t_ovrl[usec] t_pure[usec] t_CPU[usec] overlap[%]\n"
    table = read_imb(f"# Benchmarking Ibcast\n# #processes = 4\n{heading} 1024 1000 10.0 6.2 5.1 74.51\n")
    assert (values(table, "test"), values(table, "process_count")) == (["ibcast"], [4])
    assert_allclose(values(table, "time"), [6.2e-6], rtol=1e-12)


def test_imb_modes_of_one_sided_transfers_are_tests_of_their_own():
    rows = {"AGGREGATE": "0.20", "NON-AGGREGATE": "1.20"}
    heading = "#bytes #repetitions t[usec] Mbytes/sec\n"
    modes = "".join(f"#\n#    MODE: {mode}\n#\n{heading} 1024 1000 {time} 0.00\n" for mode, time in rows.items())
    table = read_imb(f"# Benchmarking Unidir_Put\n# #processes = 2\n{modes}")
    assert values(table, "test") == ["unidir_put_aggregate", "unidir_put"]
    assert_allclose(values(table, "time"), [0.2e-6, 1.2e-6], rtol=1e-12)


def test_defects_that_imb_counts_are_a_warning():
    heading = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] defects\n"
    text = f"# Benchmarking Allreduce\n# #processes = 4\n{heading} 4 1000 1.0 1.0 1.0 0.00\n 8 1000 1.0 1.0 1.0 3.00\n"
    assert read_imb(text, "i.txt").notes["warnings"] == "i.txt:5: 1 row with wrong results (defects)"


def test_groups_that_run_at_the_same_time_are_pairs():
    table = read_imb(IMB_GROUPS)
    assert values(table, "pair_count") == [2, 2, 4, 4, 4]
    assert values(table, "process_count") == [4, 4, 8, 8, 8]
    assert values(table, "test") == ["ping_pong"] * 3 + ["bandwidth"] * 2
    # Uniband: 4 pairs with 4 M messages/s of 1000 B together are 1 us a message of a pair; 2 M/s of 0 B are 2 us.
    assert_allclose(values(table, "time"), [7.28e-6, 7.13e-6, 9.25e-6, 2e-6, 1e-6], rtol=1e-12)
    assert_allclose(values(table, "bandwidth")[-1], 4e9, rtol=1e-12)


def test_a_damaged_imb_row_is_refused_with_its_line():
    with pytest.raises(InvalidFileError, match=r"i\.txt:19:1: `1\.2o` is not a number"):
        read_imb(IMB_OLD.replace("1.20 ", "1.2o "), "i.txt")


def test_netgauge_gives_average_half_round_trips():
    table = read_netgauge(NETGAUGE)
    assert_allclose(values(table, "time"), [1.43e-6, 3.49e-6], rtol=1e-12)
    assert_allclose(values(table, "minimum_time"), [1.33e-6, 3.22e-6], rtol=1e-12)
    # Its throughput is its size over its time, to the digits that are printed.
    assert_allclose(values(table, "bandwidth"), np.array([1, 4096]) / values(table, "time"), rtol=4e-3)
    assert table.notes["version"] == "2.4.6"


def test_loggp_rows_with_nan_parameters_give_half_their_round_trip():
    assert_allclose(values(read_netgauge(LOGGP), "time"), [1.4e-6, 1.39e-6], rtol=1e-12)


@pytest.mark.shared_data
@pytest.mark.parametrize(("name", "count", "last"), [("one_one", 52, 67108864), ("loggp", 27, 67108864)])
def test_netgauge_on_summit(name, count, last):
    table = read_netgauge(SHARED / f"network/netgauge/netgauge-summit-{name}.out")
    assert len(table) == count
    assert values(table, "message_size")[-1] == last
    assert values(table, "time")[0] == pytest.approx(1.42e-6, rel=0.02)


@pytest.mark.shared_data
def test_the_logs_of_paper_1_give_half_the_round_trips_of_both_ranks():
    with (SHARED / "choi/network/pingpong_oneway.csv").open() as file:
        rows = {(row["mode"], row["bytes"]): row for row in csv.DictReader(file) if row["machine"] == "lassen"}
    for mode in ("inter-socket", "intra-socket"):
        for path in (SHARED / f"choi/network/raw/lassen-{mode}").iterdir():
            # The summary has the means of the slower rank and the least time of both.
            row = rows[mode, path.stem.removesuffix("b")]
            table = read_ping_pong_log(path)
            least, mean, greatest = (
                np.array(values(table, f"{name}time")) * 1e6 for name in ("minimum_", "", "maximum_")
            )
            assert greatest.mean() == pytest.approx(float(row["oneway_us_maxrank_mean"]), rel=2e-3)
            assert least.min() == pytest.approx(float(row["oneway_us_min"]), abs=6e-5)
            assert_allclose(mean, (least + greatest) / 2, rtol=1e-12)


def test_a_log_without_its_size_in_the_name_is_refused():
    text = (
        "[Rank 0] comp time: 1.0 us, comm time: 4.0 us, total\n[Rank 1] comp time: 1.0 us, comm time: 8.0 us, total\n"
    )
    assert values(read_ping_pong_log(text, "runs/64b.out"), "time") == pytest.approx([3e-6])
    with pytest.raises(InvalidFileError, match="the message size must be in the name"):
        read_ping_pong_log(text, "runs/log.out")


def test_a_cut_row_of_a_ping_pong_log_is_left_out():
    text = (DATA / "blue_waters" / "ppn2_max_rate1.txt").read_text()
    cut = text.index("\n2\t") + 5
    table = read_ping_pong_log(text[:cut])
    assert set(values(table, "message_size")) == {4.0}
    assert "<text>:5: a last row without a line end" in table.notes["warnings"]


def test_blue_waters_logs_count_integers_and_round_trips():
    table = read_ping_pong_log(DATA / "blue_waters" / "ppn2_max_rate1.txt")
    rows = list(zip(*(values(table, name) for name in ("message_size", "pair_count", "time")), strict=True))
    assert len(rows) == 136
    assert rows[:3] == [(4, 1, pytest.approx(1.63e-6)), (4, 2, pytest.approx(1.79e-6)), (8, 1, pytest.approx(1.61e-6))]
    assert "4 sets of partners (from rank 256, 2976, 32, 16)" in table.notes["warnings"]


def test_blue_waters_logs_agree_with_their_summary():
    with (DATA / "blue_waters" / "orig_max_rate1.csv").open() as file:
        rows = list(csv.DictReader(file))
    table = read_network(DATA / "blue_waters" / "orig_max_rate1.txt")
    for name, column in (("message_size", "bytes"), ("pair_count", "k_pairs"), ("time", "oneway_s")):
        assert_allclose(values(table, name), [float(row[column]) for row in rows], rtol=1e-12)


def test_the_format_is_found_from_the_text(tmp_path):
    texts = {"a.out": OSU_V3, "b.out": IMB_OLD, "c.out": NETGAUGE, "d.csv": "MPI_Isend,8,1.0,1e-6\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    tools = [read_network(tmp_path / name).notes["tool"] for name in texts]
    assert tools == ["OSU micro-benchmarks", "Intel MPI Benchmarks", "Netgauge", "SimGrid platform-calibration"]


def test_a_folder_is_read_as_its_files_with_a_warning_for_others(tmp_path):
    (tmp_path / "b.txt").write_text(OSU_V3)
    (tmp_path / "a.txt").write_text(IMB_OLD)
    (tmp_path / "notes.md").write_text("About these runs.\n")
    table = read_networks([tmp_path])
    assert len(table) == 8
    assert [Path(name).name for name in dict.fromkeys(values(table, "file"))] == ["a.txt", "b.txt"]
    assert table.notes["tool"] == "Intel MPI Benchmarks; OSU micro-benchmarks"
    assert "notes.md: no known format" in table.notes["warnings"]
    (tmp_path / "a.txt").unlink()
    (tmp_path / "b.txt").unlink()
    with pytest.raises(UsageError, match="no measurements in this folder"):
        read_networks([tmp_path])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"About these runs.\n", "no known format"),
        (b"size;time\n1;2\n", "for a CSV file, name its columns"),
        (b"# from a, b\nsize,time\n1,2\n", "name its columns (`size`, `time`): "),
        (b"HPL, block sizes\n======\n", "name its columns: --columns"),
        (b'{"app": "miniFE", "version": 1}\n', "name its columns: --columns"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "web page"),
        (b"SQLite format 3\0\0\0", "binary file"),
        ("# OSU MPI Latency Test v5\n".encode("utf-16"), "no measurements in this file"),
        (b'<?xml version="1.0"?>\n<platform version="4.1"/>\n', "parameters, no measurements"),
    ],
)
def test_other_files_are_refused_with_a_list_of_known_formats(tmp_path, content, message):
    path = tmp_path / "x.txt"
    path.write_bytes(content)
    with pytest.raises(InvalidFileError) as caught:
        read_network(path)
    assert message in str(caught.value)
    if "known" in message:
        assert all(name in str(caught.value) for name in FORMATS)


def test_more_rows_than_fit_together_are_refused(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(OSU_V3)
    (tmp_path / "b.txt").write_text(OSU_V3)
    monkeypatch.setattr("whatif.importers.message_files.MOST_ROWS", 5)
    with pytest.raises(UsageError, match="more than 5 rows together"):
        read_networks([tmp_path])


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidFileError, match="cannot be read: No such file"):
        read_networks([tmp_path / "none.txt"])


def test_every_output_of_osu_on_alps_is_read():
    table = read_networks([DATA / "cscs"])
    assert len(table) == 12 * 23 + 4 * 21
    assert all(math.isfinite(time) and time > 0 for time in values(table, "time"))


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (read_osu, OSU_V3),
        (read_imb, IMB_OLD + IMB_GROUPS),
        (read_netgauge, NETGAUGE + LOGGP),
        (read_simgrid, "MPI_Send,8,1.0,1e-6\nMPI_Recv,8,1.0,3e-6\nMPI_Send,8,2.0,1e-6\n" * 5),
        (read_platform, (DATA / "simgrid" / "taurus.xml").read_text()),
        (
            read_ping_pong_log,
            "Pingpong for\nmaster:  0, 1\npartner: 256, 257\n1\t3.2e-06\t3.5e-06\n2\t3.2e-06\t3.5e-06\n",
        ),
        (
            lambda text: read_columns(text, {"message_size": "size", "time": "time"}),
            "size (B),time (us)\n8,1.5\n16,2.5\n" * 3,
        ),
    ],
)
def test_a_damaged_text_is_read_or_refused_and_never_a_traceback(parse, text):
    generator = random.Random(7)  # noqa: S311
    damage = [*"0123456789.,;-+eE#\n\t '\"nN:=[]()/<>&%\0é_", "nan", "1e308", "1e999", "\n\n", "Fail", ""]
    outcomes = set()
    for _ in range(400):
        place, length = generator.randrange(len(text)), generator.choice([0, 0, 1, 5, 40])
        damaged = text[:place] + generator.choice(damage) + text[place + length :]
        try:
            parse(damaged)
            outcomes.add("read")
        except WhatifError:
            outcomes.add("refused")
    assert "refused" in outcomes
