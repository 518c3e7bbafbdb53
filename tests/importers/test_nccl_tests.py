"""Outputs of nccl-tests: a real one, the prefixes of launchers, missing headers, and damage."""

from __future__ import annotations

import re

import numpy as np
import pytest

import whatif
from tests.paths import DATA
from whatif.errors import InvalidFileError
from whatif.importers.nccl_tests import read_nccl_tests

FILE = DATA / "importers" / "network" / "nccl" / "alps_all_reduce_2_nodes.txt"
TEXT = FILE.read_text(encoding="utf-8")
ROW = " 1048576  262144 {} 100.0 10.49 {} 0 99.0 10.59 {} 0\n"


def table_of(text):
    return read_nccl_tests(text).to_pandas()


def test_a_run_on_alps_states_program_ranks_and_device():
    table = read_nccl_tests(FILE)
    rows = table.to_pandas()
    assert table.notes["device"] == "NVIDIA GH200 120GB"
    assert "warnings" not in table.notes
    assert rows["test"].unique().tolist() == ["allreduce", "allreduce_in_place"]
    assert set(rows["process_count"]) == {8}
    assert set(rows["buffers"]) == {"device"}
    assert len(rows) == 2 * 25
    first, last = rows.iloc[0], rows.iloc[24]
    assert (first["message_size"], first["time"]) == (8, pytest.approx(17.93e-6))
    assert (last["message_size"], last["time"], last["bandwidth"]) == (2**27, pytest.approx(1916.4e-6), 70.04e9)


@pytest.mark.parametrize(
    "prefix", ["    ", "0: ", "[1,0]<stdout>:", "   [1,0]<stdout>:", "2026-02-16T10:00:01.000000000Z "]
)
def test_prefixes_of_launchers_do_not_matter(prefix):
    plain, prefixed = table_of(TEXT), table_of("".join(f"{prefix}{line}\n" for line in TEXT.splitlines()))
    assert plain.drop(columns="file").equals(prefixed.drop(columns="file"))


def test_an_allreduce_without_headers_is_recognised_by_its_bandwidths():
    table = read_nccl_tests("".join(line + "\n" for line in TEXT.splitlines() if re.match(r"\s+\d+\s+\d+\s", line)))
    assert "allreduce on 8 ranks, by the ratio of its bandwidths" in table.notes["warnings"]
    assert set(table.columns["process_count"].values) == {8}


def test_listed_ranks_are_those_of_an_output_that_does_not_name_its_test():
    table = read_nccl_tests(TEXT.replace("all_reduce_perf", "a.out"), "a.txt")
    warning = "a.txt does not name the test; taken as allreduce, as its bandwidths suggest; 8 ranks as listed"
    assert table.notes["warnings"] == warning
    assert set(table.columns["process_count"].values) == {8}


def test_bandwidths_whose_ratio_is_that_of_endless_ranks_state_none():
    row = " 1048576  262144 float sum -1 100.0 1.00000000 1.99999999 0 99.0 1.00000000 1.99999999 0\n"
    table = read_nccl_tests("# Collective test starting: all_reduce_perf\n" + row)
    assert "does not state its ranks" in table.notes["warnings"]
    assert np.isnan(table.columns["process_count"].values).all()


def test_other_collectives_without_headers_have_no_name_and_a_warning():
    table = read_nccl_tests(ROW.format("float none -1", "9.18", "9.27"))
    assert "does not state its program" in table.notes["warnings"]
    assert table.columns["test"].values[0] == ""
    assert np.isnan(table.columns["process_count"].values[0])


def test_several_runs_in_one_file_stay_apart():
    other = TEXT.replace("all_reduce_perf", "alltoall_perf").replace("float     sum", "float    none")
    rows = table_of(TEXT + other)
    assert rows.groupby("test").size().to_dict() == {
        "allreduce": 25, "allreduce_in_place": 25, "alltoall": 25, "alltoall_in_place": 25,
    }  # fmt: skip


RANK = "#  Rank {} Group 0 Pid 1 on host device {} [0x07] NVIDIA A100\n"


def output(program, rank_count, wrong="0"):
    """Output of a version that does not state where it starts."""
    ranks = "".join(RANK.format(rank, rank) for rank in range(rank_count))
    heading = "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    row = f" 1048576  262144 float sum -1 100.0 10.49 15.73 {wrong} 99.0 10.59 15.89 {wrong}\n"
    return f"$ mpirun {program}_perf -b 8\n# nThread 1 nGpus 1\n{ranks}{heading}{row}# Avg bus bandwidth : 15.8\n"


def test_runs_that_do_not_say_where_they_start_keep_their_programs_and_ranks():
    table = read_nccl_tests(output("all_reduce", 4) + output("all_gather", 8))
    assert table.columns["test"].values.tolist() == [
        "allreduce", "allreduce_in_place", "allgather", "allgather_in_place",
    ]  # fmt: skip
    assert table.columns["process_count"].values.tolist() == [4, 4, 8, 8]
    assert "warnings" not in table.notes


def test_the_largest_error_of_old_versions_is_no_count_of_wrong_values():
    table = read_nccl_tests(output("all_reduce", 4, "4e-07"))
    assert table.columns["time"].values.tolist() == pytest.approx([100e-6, 99e-6])
    assert "warnings" not in table.notes


def test_wrong_results_and_impossible_times_are_reported():
    table = read_nccl_tests(TEXT.replace("    0.00      0    17.72", "    0.00      3    17.72"))
    assert "1 row with wrong results" in table.notes["warnings"]
    table = read_nccl_tests(TEXT.replace("    17.93    0.00", "     0.00    0.00"))
    assert "left out: zero, negative or no number" in table.notes["warnings"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("    39.61 ", "    39,61 "), ("    39.61 ", "      inf "), ("    39.61 ", " 39.61 7 "), ("   39.61  ", "  \n")],
)
def test_a_damaged_row_is_left_out_with_its_line(old, new):
    text = (DATA.parents[1] / "docs" / "examples" / "nccl_all_reduce.txt").read_text(encoding="utf-8")
    line = text[: text.index(old)].count("\n") + 1
    damaged = read_nccl_tests(text.replace(old, new, 1), "nccl.txt")
    assert f"nccl.txt:{line}: 1 row left out" in damaged.notes["warnings"]
    assert len(damaged) == len(read_nccl_tests(text)) - 2


def test_a_text_without_rows_is_refused():
    with pytest.raises(InvalidFileError, match="no rows of results"):
        read_nccl_tests(TEXT[: TEXT.index("           8  ")])


def test_damaged_texts_never_end_in_a_traceback():
    random = np.random.default_rng(5)
    for _ in range(300):
        at, length = random.integers(0, len(TEXT)), random.integers(0, 40)
        damaged = TEXT[:at] + random.choice(["", "1e999", "nan", "\0", "-", "9" * 400]) + TEXT[at + length :]
        try:
            read_nccl_tests(damaged)
        except InvalidFileError:
            continue


def test_import_network_detects_the_format():
    assert whatif.import_network(FILE).values.notes["tool"] == "nccl-tests"
