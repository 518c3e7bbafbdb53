"""Messages meant as between nodes whose two processes appear to share one, and long tails of their times."""

from __future__ import annotations

import pytest

from whatif.fitting.message_parameters import fit_network
from whatif.importers.imb import read_imb
from whatif.importers.osu import read_osu

HEAD = """\
# Intel(R) MPI Benchmarks 2021.2, MPI-1 part
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
"""
PINNING = """\
[0] MPI startup(): Rank    Pid      Node name  Pin cpu
[0] MPI startup(): 0       41234    n{}       {{0,1}}
[0] MPI startup(): 1       41235    n{}       {{2,3}}
"""


def ping_pongs(latency, head=""):
    sizes = [0, 1, 64, 4096, 65536, 1048576]
    return head + HEAD + "".join(f"{size} 1000 {latency + size / 1e4:.2f} 0.00\n" for size in sizes)


def about_nodes(table, **options):
    return [text for text in fit_network(table, **options).warnings if "fit another distance" in text]


def test_a_message_faster_than_any_network_is_reported_with_the_rule():
    (text,) = about_nodes(read_imb(ping_pongs(0.41), "a.txt"))
    assert "the shortest message takes 410 ns, and messages between nodes more than 700 ns" in text
    assert "--distance intra-socket" in text


def test_a_fast_message_within_a_socket_and_a_slower_one_between_nodes_are_not_reported():
    assert about_nodes(read_imb(ping_pongs(0.41)), distance="intra_socket") == []
    assert about_nodes(read_imb(ping_pongs(1.04))) == []


@pytest.mark.parametrize(("second", "expected"), [(17, 1), (18, 0)])
def test_nodes_that_the_file_names_decide(second, expected):
    table = read_imb(ping_pongs(2.0, PINNING.format(17, second)))
    assert table.notes["nodes"] == f"n17, n{second}"
    texts = about_nodes(table)
    assert len(texts) == expected
    assert all("both processes ran on the node n17, as the file says" in text for text in texts)


@pytest.mark.parametrize(
    ("command", "expected"),
    [("srun -N1 -n2", 1), ("srun --nodes=1 -n 2", 1), ("srun -N 2 -n 2", 0), ("mpirun -N 1 -n 2", 0)],
)
def test_a_command_line_of_one_node_is_reported(command, expected):
    rows = "".join(f"{2**n} {2 + 2**n / 1e4:.2f}\n" for n in range(0, 21, 4))
    table = read_osu(f"$ {command} ./osu_latency\n# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n{rows}")
    assert len(about_nodes(table)) == expected


def percentiles(tail):
    head = (
        "# OSU MPI Latency Test v7.5\n# Size   Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)\n"
    )
    times = ((2**n, 2 + 2**n / 1e4) for n in range(0, 21, 4))
    return read_osu(head + "".join(f"{n} {t:.2f} {0.9 * t:.2f} {t:.2f} {tail * t:.2f}\n" for n, t in times))


def test_percentiles_of_osu_are_columns():
    table = percentiles(3.0)
    row = [table.columns[name].values[-1] for name in ("time", "p50_time", "p90_time", "p99_time")]
    assert row == pytest.approx([106.86e-6, 96.17e-6, 106.86e-6, 320.57e-6], rel=1e-9, abs=0)


def test_a_long_tail_is_reported_where_percentiles_are_known():
    (text,) = (text for text in fit_network(percentiles(3.0)).warnings if "hundred" in text)
    assert "takes 3 times the mean or more; the parameters are those of the mean" in text
    assert not any("hundred" in text for text in fit_network(percentiles(1.5)).warnings)
