"""Traces of MPI programs: what the importers read is what stands in the files, counted in other ways."""

from __future__ import annotations

import os
import re
import struct
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.jacobi2d_trace import write_jacobi2d
from tests.paths import DATA as TEST_DATA
from whatif.errors import InvalidFileError
from whatif.importers.dumpi import read_dumpi
from whatif.importers.goal import read_goal
from whatif.importers.otf2_archive import read_otf2
from whatif.importers.otf2_events import contribution
from whatif.importers.simgrid_actions import read_actions
from whatif.importers.sqlite import head_of
from whatif.importers.text import chunks
from whatif.importers.trace_formats import is_trace, read_trace, trace_files
from whatif.models.patterns import GridPattern, message_counts
from whatif.simulation.counting import node_message_counts
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import ANY, Kind

DATA = TEST_DATA / "traces"
C, S, R, IS, IR, W = Kind.COMPUTE, Kind.SEND, Kind.RECEIVE, Kind.ISEND, Kind.IRECEIVE, Kind.WAIT


def shown(program):
    """The operations of a program as (kind, peer, size, tag, how many back it waits for)."""
    starts = program.wait_start
    return [
        (Kind(kind), peer, size, tag, *program.waits[start:end].tolist())
        for kind, peer, size, tag, start, end in zip(
            program.kind, program.peer.tolist(), program.size.tolist(), program.tag.tolist(), starts[:-1], starts[1:],
            strict=True,
        )
    ]  # fmt: skip


def refused(read, *arguments):
    with pytest.raises(InvalidFileError) as caught:
        read(*arguments)
    return str(caught.value)


# DUMPI


@pytest.fixture(scope="module")
def jacobi2d(tmp_path_factory):
    return write_jacobi2d(tmp_path_factory.mktemp("jacobi2d"))


def test_messages_bytes_and_computation_of_jacobi2d_are_those_of_its_files(jacobi2d):
    trace = read_dumpi(jacobi2d)
    texts = [file.read_text() for file in sorted(jacobi2d.glob("*.txt"))]
    for program, text in zip(trace.programs, texts, strict=True):
        counts = re.findall(r"^MPI_Isend entering.*\nint count=(\d+)\nMPI_Datatype datatype=14", text, re.MULTILINE)
        is_sent = program.kind == IS
        assert is_sent.sum() == len(counts)
        assert program.size[is_sent].sum() == 8 * sum(map(int, counts))
        assert (program.kind == W).sum() == text.count("MPI_Waitall entering")
        assert len(program.waits) == sum(
            map(int, re.findall(r"^MPI_Waitall entering.*\nint count=(\d+)", text, re.MULTILINE))
        )
        times = re.findall(r"^MPI_(\w+) (entering|returning) at walltime ([\d.]+)", text, re.MULTILINE)
        in_mpi = {"Init", "Cart_create", "Barrier", "Irecv", "Isend", "Waitall", "Finalize"}
        known = [(word, Decimal(time)) for name, word, time in times if name in in_mpi]
        inside = sum(end - start for (_, start), (_, end) in zip(known[0::2], known[1::2], strict=True))
        expected = known[-1][1] - known[0][1] - inside
        assert_allclose(program.size[program.kind == C].sum(), float(expected), rtol=1e-12, atol=0)


def test_the_k_of_jacobi2d_counted_from_its_messages_is_that_of_its_4_x_3_grid(jacobi2d):
    schedule, node = lower(read_trace(jacobi2d / "n12-0003.txt")), np.arange(12, dtype=np.int32) // 6
    known = message_counts(GridPattern((4, 3), 6, 3))
    dims = re.search(r"dims.out\[2\]=\[(\d+), (\d+)\]", (jacobi2d / "n12-0000.txt").read_text())
    assert dims.groups() == ("4", "3")
    assert (known.inter_node_count, known.total_count) == (3, 17)
    assert node_message_counts(schedule, node, collectives=False) == (300, 1700)
    barriers = (jacobi2d / "n12-0000.txt").read_text().count("MPI_Barrier entering")
    # A barrier of 12 ranks is 4 rounds, to ranks 1, 2, 4 and 8 further: 1, 2, 4 and 4 of a node of 6 leave it.
    assert node_message_counts(schedule, node) == (300 + 11 * barriers, 1700 + 24 * barriers)


def ring(folder, **changes):
    """The trace of the four ranks of sst-dumpi's test, of which only that of rank 0 is kept as text."""
    text = (DATA / "dumpi" / "testtrace-0000.txt").read_text()
    for rank in range(4):
        own = text.replace("int rank=0", f"int rank={rank}").replace("int dest=1", f"int dest={(rank + 1) % 4}")
        own = own.replace("int source=3", f"int source={(rank - 1) % 4}")
        if rank == changes.get("rank"):
            own = own.replace(*changes["words"])
        (folder / f"ring-{rank:04}.txt").write_text(own)
    return folder


def test_a_ring_of_dumpi_is_read_call_by_call(tmp_path):
    trace = read_dumpi(ring(tmp_path))
    expected = [
        (C, 0, 42e-6, 0),  # from 737670 to 737712 us: the calls that only ask are a part of it
        (Kind.BARRIER, 0, 0.0, 0),
        (C, 0, 15e-6, 0),
        (IS, 1, 4.0, 1337),
        (C, 0, 10e-6, 0),
        (R, 3, 4.0, 1337),
        (C, 0, 8e-6, 0),
        (W, 0, 0.0, 0, 4),
        (C, 0, 15e-6, 0),
        (Kind.ALLREDUCE, 0, 4.0, 0),
        (C, 0, 7e-6, 0),
    ]
    found = shown(trace.programs[0])
    assert [row[:2] + row[3:] for row in found] == [row[:2] + row[3:] for row in expected]
    assert_allclose([row[2] for row in found], [row[2] for row in expected], rtol=1e-12, atol=0)
    assert trace.programs[2].peer[trace.programs[2].kind == IS] == [3]
    assert "warnings" not in trace.notes


def test_a_dumpi_file_that_was_cut_off_keeps_earlier_calls_with_a_warning(tmp_path):
    file = ring(tmp_path) / "ring-0002.txt"
    whole = file.read_text()
    file.write_text(whole[: whole.index("MPI_Recv returning") + 30])
    trace = read_dumpi(tmp_path)
    line = whole[: whole.index("MPI_Recv entering")].count("\n") + 1
    assert f"ring-0002.txt:{line}: cut off within MPI_Recv" in trace.notes["warnings"]
    assert [len(program) for program in trace.programs] == [11, 11, 4, 11]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("MPI_Recv returning", "MPI_Recv coming back"), "ring-0001.txt:31:1: MPI_Recv is damaged"),
        (("int size=4", "int size=5"), "the ranks disagree on their number"),
        (("int rank=1", "int rank=2"), "by its name, but MPI_Comm_rank says 2"),
        (("MPI_Barrier entering", "nonsense\nMPI_Barrier entering"), "ring-0001.txt:20:1: `nonsense` is not part"),
        (("datatype=9", "datatype=99"), "the size of the datatype 99 is unknown"),
        (("int count=1\n", "int count=-7\n"), "a size of -28 B is negative"),
        (("int count=1\n", "int count=999999999999999999\n"), "is larger than 2^60 B"),
        (("int dest=2", "int dest=7"), "rank 1 names rank 7 of a communicator of 4"),
        (("int tag=1337", "int tag=-9"), "the tag -9 is not possible"),
        (("MPI_Comm comm=2", "MPI_Comm comm=5"), "the communicator 5 was not created"),
    ],
)
def test_a_damaged_dumpi_file_is_refused_with_the_line(tmp_path, words, message):
    assert message in refused(read_dumpi, ring(tmp_path, rank=1, words=words))


def test_a_rank_without_a_file_is_refused(tmp_path):
    (ring(tmp_path) / "ring-0002.txt").unlink()
    assert "rank 2 of 4" in refused(read_dumpi, tmp_path / "ring-0000.txt")


NAMES = {"comm": "MPI_Comm", "oldcomm": "MPI_Comm", "newcomm": "MPI_Comm", "request": "MPI_Request"}
NAMES |= {"requests": "MPI_Request", "datatype": "MPI_Datatype"}


def dumpi_text(calls):
    """The text of calls, each a name and its arguments, 1 us after one another; a list is an array."""
    rows, time = [], 0
    for name, arguments in [("Init", {}), *calls, ("Finalize", {})]:
        for word in ("entering", "returning"):
            time += 1000
            rows.append(f"MPI_{name} {word} at walltime 5.{time:09}, cputime 0.000000000 seconds in thread 0.")
            if word == "entering":
                for key, value in arguments.items():
                    size = f"[{len(value)}]" if isinstance(value, list) and key != "request" else ""
                    kind = next((kind for end, kind in NAMES.items() if key.endswith(end)), "int")
                    rows.append(f"{kind} {key}{size}={value}")
    return "\n".join(rows) + "\n"


def dumpi_trace(folder, ranks):
    for rank, calls in enumerate(ranks):
        (folder / f"made-{rank:04}.txt").write_text(dumpi_text(calls))
    return read_dumpi(folder)


def to(dest, count=1, **other):
    return {"count": count, "datatype": 14, "dest": dest, "tag": 0, "comm": 2, **other}


def of(source, count=1, **other):
    return {"count": count, "datatype": 14, "source": source, "tag": 0, "comm": 2, **other}


def messages(program):
    """What is not computed."""
    return [row for row in shown(program) if row[0] != C]


def test_requests_are_followed_through_every_way_to_wait_for_them(tmp_path):
    calls = [
        ("Send_init", to(0, 2, request=[7])),
        ("Recv_init", of(0, 2, request=[8])),
        ("Startall", {"count": 2, "requests": [7, 8]}),
        ("Waitall", {"count": 2, "requests": [8, 7]}),
        ("Start", {"request": [7]}),
        ("Irecv", of(-1, 3, tag=-1, request=[9])),
        ("Test", {"request": [7], "flag": 0}),
        ("Waitany", {"count": 2, "requests": [7, 9], "index": 1}),
        ("Testsome", {"count": 2, "requests": [7, 1], "outcount": 1, "indices": [0]}),
        ("Isend", to(-2, request=[10])),
        ("Wait", {"request": [10]}),
        ("Irecv", of(0, request=[11])),
        ("Cancel", {"request": [11]}),
        ("Request_free", {"request": [7]}),
    ]
    program = dumpi_trace(tmp_path, [calls]).programs[0]
    operations = [row for row in shown(program) if row[0] != C]
    index = np.flatnonzero(program.kind != C)
    waited = [[int(index[place]) - back for back in row[4:]] for place, row in enumerate(operations) if row[0] == W]
    assert [row[:4] for row in operations if row[0] != W] == [
        (IS, 0, 16.0, 0), (IR, 0, 16.0, 0), (IS, 0, 16.0, 0), (IR, ANY, 24.0, ANY),
    ]  # fmt: skip
    first = [int(index[place]) for place, row in enumerate(operations) if row[0] != W]
    assert waited == [[first[1], first[0]], [first[3]], [first[2]]]


def test_an_exchange_posts_both_before_it_waits_and_nobody_is_left_out(tmp_path):
    both = {"sendcount": 1, "sendtype": 14, "dest": 0, "sendtag": 3, "recvcount": 2, "recvtype": 9, "source": 0}
    calls = [
        ("Sendrecv", {**both, "recvtag": 3, "comm": 2}),
        ("Sendrecv", {**both, "dest": -2, "recvtag": 4, "comm": 2}),
    ]
    program = dumpi_trace(tmp_path, [calls]).programs[0]
    assert messages(program) == [
        (IR, 0, 8.0, 3), (IS, 0, 8.0, 3), (W, 0, 0.0, 0, 2, 1), (IR, 0, 8.0, 4), (W, 0, 0.0, 0, 1),
    ]  # fmt: skip


def test_datatypes_that_a_program_makes_have_the_size_of_their_parts(tmp_path):
    calls = [
        ("Type_contiguous", {"count": 10, "oldtype": 9, "newtype": 28}),
        ("Type_vector", {"count": 3, "blocklength": 2, "stride": 99, "oldtype": 28, "newtype": 29}),
        ("Type_struct", {"count": 2, "lengths": [1, 5], "indices": [0, 8], "oldtypes": [14, 2], "newtype": 30}),
        ("Type_size", {"datatype": 31, "size": 77}),
        ("Type_create_darray", {"size": 4, "gsizes": [6, 8], "oldtype": 14, "newtype": 32}),
        *[("Send", to(0, datatype=number)) for number in (28, 29, 30, 31, 32)],
    ]
    trace = dumpi_trace(tmp_path, [calls])
    assert [row[2] for row in messages(trace.programs[0])] == [40, 240, 13, 77, 96]
    assert "MPI_Type_create_darray: each rank is taken to have the mean part of the array" in trace.warnings


def test_a_number_that_is_given_again_means_the_datatype_or_communicator_that_has_it_now(tmp_path):
    swapped = {"color": 0, "newcomm": 5, "oldcomm": 2}

    def rank(number):
        return [
            ("Type_contiguous", {"count": 10, "oldtype": 9, "newtype": 28}),
            ("Comm_dup", {"oldcomm": 2, "newcomm": 5}),
            ("Send", to(1, datatype=28, comm=5)),
            ("Type_free", {"datatype": 28}),
            ("Type_contiguous", {"count": 3, "oldtype": 9, "newtype": 28}),
            ("Send", to(1, datatype=28, comm=5)),
            ("Comm_free", {"comm": 5}),
            ("Comm_split", {**swapped, "key": -number}),
            ("Send", to(1, datatype=28, comm=5)),
            ("Type_free", {"datatype": 28}),
        ]

    program = dumpi_trace(tmp_path, [rank(0), rank(1)]).programs[0]
    assert [row[1:3] for row in messages(program)] == [(1, 40), (1, 12), (0, 12)]


def test_a_datatype_that_was_freed_has_no_size(tmp_path):
    made = ("Type_contiguous", {"count": 10, "oldtype": 9, "newtype": 28})
    calls = [made, ("Send", to(0, datatype=28)), ("Type_free", {"datatype": 28}), ("Send", to(0, datatype=28))]
    assert "the size of the datatype 28 is unknown" in refused(dumpi_trace, tmp_path, [calls])


def test_collectives_have_the_size_that_one_rank_contributes(tmp_path):
    block = {"sendcount": 3, "sendtype": 14, "recvcount": 5, "recvtype": 9}
    parts = {"sendcounts": [1, 3], "sendtype": 14, "recvcounts": [5, 7], "recvtype": 9, "sendcount": 2, "recvcount": 4}
    calls = [
        ("Bcast", {"count": 3, "datatype": 14, "root": 1, "comm": 2}),
        ("Gather", {"commrank": 0, **block, "root": 0, "comm": 2}),
        ("Gather", {"commrank": 0, **block, "root": 1, "comm": 2}),
        ("Scatter", {"commrank": 0, **block, "root": 1, "comm": 2}),
        ("Gatherv", {"commrank": 0, "commsize": 2, **parts, "root": 0, "comm": 2}),
        ("Alltoallv", {"commsize": 2, **parts, "comm": 2}),
        ("Reduce_scatter", {"commsize": 2, "recvcounts": [1, 3], "datatype": 14, "comm": 2}),
        ("Allreduce", {"count": 9, "datatype": 9, "op": 3, "comm": 2}),
        ("Scan", {"count": 9, "datatype": 9, "op": 3, "comm": 2}),
    ]
    program = dumpi_trace(tmp_path, [calls, calls]).programs[0]
    assert [row[:3] for row in messages(program)] == [
        (Kind.BROADCAST, 1, 24), (Kind.GATHER, 0, 20), (Kind.GATHER, 1, 24), (Kind.SCATTER, 1, 20),
        (Kind.GATHER, 0, 20), (Kind.ALLTOALL, 0, 16), (Kind.REDUCE_SCATTER, 0, 16), (Kind.ALLREDUCE, 0, 36),
        (Kind.SCAN, 0, 36),
    ]  # fmt: skip


def test_communicators_give_ranks_of_the_world_and_keep_their_messages_apart(tmp_path):
    def rank(number):
        row, column = divmod(number, 3)
        return [
            ("Cart_create", {"oldcomm": 2, "ndim": 2, "dims": [2, 3], "periods": [0, 0], "reorder": 0, "newcomm": 4}),
            ("Cart_sub", {"ndim": 2, "oldcomm": 4, "remain_dims": [0, 1], "newcomm": 5}),
            ("Comm_split", {"oldcomm": 2, "color": column, "key": -row, "newcomm": 6}),
            ("Comm_dup", {"oldcomm": 6, "newcomm": 7}),
            ("Send", to((column + 1) % 3, comm=5)),
            ("Send", to(0, comm=7, tag=2)),
            ("Bcast", {"count": 1, "datatype": 14, "root": 1, "comm": 6}),
            ("Comm_free", {"comm": 5}),
            ("Comm_dup", {"oldcomm": 3, "newcomm": 5}),
            ("Barrier", {"comm": 5}),
        ]

    trace = dumpi_trace(tmp_path, [rank(number) for number in range(6)])
    sent = [[row for row in messages(program) if row[0] == S] for program in trace.programs]
    assert [rows[0][1] for rows in sent] == [1, 2, 0, 4, 5, 3]
    assert [rows[1][1] for rows in sent] == [3, 4, 5, 3, 4, 5], "the key turns the order of the columns round"
    assert len({row[3] for rows in sent for row in rows}) == 5, "two rows and three columns, each with tags of its own"
    broadcasts = [row for program in trace.programs for row in messages(program) if row[0] == Kind.BROADCAST]
    assert [row[1] for row in broadcasts] == [0, 1, 2, 0, 1, 2]
    assert [trace.communicators[row[3]].tolist() for row in broadcasts[:3]] == [[3, 0], [4, 1], [5, 2]]
    assert not any(row[0] == Kind.BARRIER for program in trace.programs for row in messages(program))


# SimGrid


@pytest.mark.parametrize(
    ("name", "rank", "expected"),
    [
        ("gather", 3, [(Kind.GATHER, 0, 68 * 8.0, 0)]),
        ("alltoallv", 0, [(Kind.ALLTOALL, 0, 71 / 3, 0)]),
        ("allgatherv", 3, [(Kind.ALLGATHER, 0, 204020 * 8.0, 0)]),
        ("barrier", 1, [(R, 0, 1e7, 0), (Kind.BARRIER, 0, 0.0, 0), (C, 0, 76296000 / 2e9, 0)]),
        (
            "bcast_reduce_datatypes",
            1,
            [
                (Kind.BROADCAST, 1, 4e5, 0),  # `init 1`: 50,000 numbers of 8 B, and datatype 0 is that
                (C, 0, 0.1, 0),
                (Kind.BROADCAST, 0, 1e5, 0),  # datatype 3: MPI_SHORT
                (C, 0, 0.1, 0),
                (Kind.REDUCE, 0, 4e5, 0),  # datatype 4: MPI_LONG
                (C, 0, 0.25, 0),
            ],
        ),
        ("reducescatter", 0, [(Kind.REDUCE_SCATTER, 0, (3 * 275427 + 204020) / 4 * 8, 0), (C, 0, 11349173 / 2e9, 0)]),
        ("waitall", 0, [(IR, 1, 2000.0, 0), (IR, 2, 3000.0, 2), (W, 0, 0.0, 0, 2, 1)]),
        (
            "with_isend",
            2,
            [(C, 0, 1.0, 0), (IR, 1, 1e6, 1), (C, 0, 0.25, 0), (W, 0, 0.0, 0, 2), (IS, 0, 1e6, 2), (C, 0, 0.25, 0)],
        ),
    ],
)
def test_actions_of_simgrid_are_read_with_their_sizes_and_times(name, rank, expected, monkeypatch):
    monkeypatch.setattr("whatif.importers.simgrid_actions.FLOP_RATE", 2e9)
    trace = read_actions(DATA / "simgrid" / f"actions_{name}.txt")
    found = shown(trace.programs[rank])
    assert [row[:2] + row[3:] for row in found] == [row[:2] + row[3:] for row in expected]
    assert_allclose([row[2] for row in found], [row[2] for row in expected], rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["smpi_replay.txt", "ti_traces_32_1"])
def test_an_index_file_and_its_folder_hold_the_same_32_ranks(name):
    folder = DATA / "simgrid" / "replay_multiple"
    trace = read_trace(folder / name)
    files = [folder / "ti_traces_32_1" / f"ti_trace{rank}.txt" for rank in range(32)]
    for program, file in zip(trace.programs, files, strict=True):
        flops = sum(float(line.split()[2]) for line in file.read_text().splitlines() if "compute" in line)
        reduced = [line.split() for line in file.read_text().splitlines() if "allreduce" in line]
        flops += sum(float(words[3]) for words in reduced)
        assert_allclose(program.size[program.kind == C].sum(), flops / 1e9, rtol=1e-12, atol=0)
        assert_array_equal(
            program.size[program.kind == Kind.ALLREDUCE],
            [
                float(words[2]) * (8 if len(words) < 5 else {"0": 8, "1": 4, "4": 8, "6": 1}[words[4]])
                for words in reduced
            ],
        )
    assert "1e+09 flop/s" in trace.notes["warnings"]


def test_an_index_file_names_what_is_missing(tmp_path):
    (tmp_path / "a.txt").write_text("0 init\n0 send 1 0 5\n")
    (tmp_path / "index").write_text("a.txt\nb.txt\n")
    assert "1 of the 2 files are missing: b.txt" in refused(read_trace, tmp_path / "index")
    (tmp_path / "b.txt").write_text("1 init 1\n1 recv 0 0 -1\n1 finalize")
    trace = read_trace(tmp_path / "index")
    assert [shown(program) for program in trace.programs] == [[(S, 1, 5.0, 0)], [(R, 0, 0.0, 0)]]


def test_a_wait_without_values_is_for_the_last_request_of_all(tmp_path):
    sends = "".join(f"0 isend 1 {tag} 5\n" for tag in (0, 1, 0))
    received = "".join(f"1 recv 0 {tag} 5\n" for tag in (0, 1, 0))
    file = tmp_path / "t.txt"
    file.write_text(f"0 init\n{sends}0 wait\n0 wait\n0 wait\n1 init\n{received}")
    program = read_actions(file).programs[0]
    assert program.waits.tolist() == [
        1,
        3,
        5,
    ]  # numbers of operations back: of the third message, the second, the first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 init\n0 sned 1 0 5\n", ":2:1: `sned` is not an action; did you mean `send`"),
        ("0 send 1 0\n1 init\n", ":1:1: `send`: value 3 is missing"),
        ("0 send 1 0 x\n1 init\n", "`x` is not a number"),
        ("0 send 1 0 nan\n1 init\n", "`nan` is not a number"),
        ("0 send 1 0 -5\n1 init\n", "a size of -5 B is negative"),
        ("0 send 1 0 1e20\n1 init\n", "larger than 2^60"),
        ("0 init 1\n0 send 1 0 2e17 0\n1 init\n", "larger than 2^60"),
        ("0 send 1 0 5 55\n1 init\n", "the datatype 55 is not known"),
        ("0 send 2 0 5\n1 init\n", "rank 2 is not one of the 2 ranks"),
        ("0 bcast 5 2\n1 init\n", "the root 2 is not one of the 2 ranks"),
        ("0 init\n2 init\n", "rank 1 of 3"),
        ("0 init\n0 comm_size 4\n", "4 ranks, but only 1 have actions"),
        ("0 compute -1\n", "-1 is not an amount of work"),
        ("9999999 init\n", "10,000,000 ranks"),
        ("p0 recv p1\n", "no action"),
        ("", "no action"),
    ],
)
def test_errors_in_actions_name_the_line(tmp_path, text, message):
    file = tmp_path / "t.txt"
    file.write_text(text)
    assert message in refused(read_actions, file)


def test_a_last_action_that_was_cut_off_is_left_out_with_a_warning(tmp_path):
    file = tmp_path / "t.txt"
    file.write_text("0 init\n0 compute 1e9\n0 compute 12")
    trace = read_actions(file)
    assert shown(trace.programs[0]) == [(C, 0, 1.0, 0)]
    assert "t.txt:3: a last row without a line end may be cut off" in trace.notes["warnings"]


# GOAL

RECORD = struct.Struct("<IBIQIBBIIII")


def goal_binary(ranks, count=None):
    """Ranks as lists of (type, peer, size, tag, processor, adapter, then, then_started) in the layout of LogGOPSim."""
    table, bodies = b"", b""
    start = 6 + 16 * len(ranks)
    for operations in ranks:
        then = [number for row in operations for number in (*row[6], *row[7])]
        needs = Counter(then)
        roots = [number for number in range(len(operations)) if not needs[number]]
        body = struct.pack(f"<II{len(roots)}I", len(operations), len(roots), *roots)
        place = 0
        for number, (kind, peer, size, tag, processor, adapter, after, started) in enumerate(operations):
            lists = (len(after), place, len(started), place + len(after))
            body += RECORD.pack(needs[number], kind, peer, size, tag, processor, adapter, *lists)
            place += len(after) + len(started)
        body += struct.pack(f"<{len(then)}I", *then)
        table += struct.pack("<QQ", start, start + len(body))
        start, bodies = start + len(body), bodies + body
    return struct.pack("<QIBB", 4223, count or len(ranks), 1, 1) + table + bodies


BOTH = """/* a schedule
over lines */ num_ranks 2
rank 1 {
x: recv 8b from -1 tag -1
}
rank 0 { // the order of the ranks is free
d requires c
a: calc 1500
b: send 8b to 1 tag 4 cpu 1 nic 0
c: send 16b to 1
b requires a
c irequires b
d: calc 7
d requires a
}
"""
ANYBODY = 2**32 - 1
BINARY = [
    [
        (3, 0, 1500, 0, 0, 0, [1, 3], []),
        (1, 1, 8, 4, 1, 0, [], [2]),
        (1, 1, 16, 0, 0, 0, [3], []),
        (3, 0, 7, 0, 0, 0, [], []),
    ],
    [(2, ANYBODY, 8, ANYBODY, 0, 0, [], [])],
]


def test_text_and_binary_of_a_schedule_are_the_same_graphs(tmp_path):
    file = tmp_path / "both.bin"
    file.write_bytes(goal_binary(BINARY))
    for trace in (read_goal(BOTH), read_goal(file)):
        first, second = trace.programs
        assert shown(second) == [(R, ANY, 8.0, ANY)]
        rows = [(row[:4], sorted(row[4:])) for row in shown(first)]
        assert [row[0][:2] + row[0][3:] for row in rows] == [(C, 0, 0), (S, 1, 4), (S, 1, 0), (C, 0, 0)]
        assert_allclose([row[0][2] for row in rows], [1.5e-6, 8, 16, 7e-9], rtol=1e-12, atol=0)
        assert [row[1] for row in rows] == [[], [1], [], [1, 3]]
        assert first.started_start.tolist() == [0, 0, 0, 1, 1]
        assert first.started.tolist() == [1]
        assert first.processor.tolist() == [0, 1, 0, 0]
        assert not first.sequential


def test_the_binary_tree_of_loggopsim_sends_31_messages_that_wait_for_their_receive():
    path = DATA / "goal" / "binary_tree_32.goal"
    trace, text = read_trace(path), path.read_text()
    assert trace.rank_count == 32
    kinds = Counter(kind for program in trace.programs for kind in program.kind.tolist())
    assert kinds == {S: text.count(" send "), R: text.count(" recv ")} == {S: 31, R: 31}
    assert sum(len(program.waits) for program in trace.programs) == text.count("requires")
    received = {rank: program.peer[program.kind == R].tolist() for rank, program in enumerate(trace.programs)}
    sent = {(rank, peer) for rank, program in enumerate(trace.programs) for peer in program.peer[program.kind == S]}
    assert {(source, rank) for rank, sources in received.items() for source in sources} == sent


def test_every_schedule_has_the_operations_of_its_text():
    for path in sorted((DATA / "goal").glob("*.goal")):
        trace, text = read_goal(path), path.read_text()
        sizes = [int(size) for size in re.findall(r"send (\d+)b", text)]
        assert sum(float(p.size[p.kind == S].sum()) for p in trace.programs) == sum(sizes)
        assert sum(len(program) for program in trace.programs) == len(re.findall(r": (?:send|recv|calc) ", text))
        assert sum(len(program.waits) for program in trace.programs) == len(re.findall(r" requires ", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num_ranks 1\nrank 0 {\na: calc 5\na: calc 6\n}\n", ":4:1: the label `a` is defined twice in rank 0"),
        ("num_ranks 1\nrank 0 {\na: calc 5\na requires b\n}\n", ":4:1: rank 0 has no label `b`"),
        ("num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\na requires b\nb irequires a\n}\n", "in a circle: number 1, 2"),
        ("num_ranks 1\nrank 0 {\nc: calc 1\na: calc 5\na requires a\n}\n", "in a circle: number 2"),
        ("num_ranks 2\nrank 0 {\n}\n", "rank 1 of 2 (num_ranks) missing"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", ":4:1: rank 0 is stated twice"),
        ("num_ranks 1\nrank 1 {\n}\n", "where num_ranks is 1"),
        (
            "num_ranks 1\nrank 0 {\nsned 5b to 0\n}\n",
            ":3:1: `sned 5b to 0` is not a statement of GOAL; did you mean `send`",
        ),
        ("num_ranks 1\nrank 0 {\nsend 5b from 0\n}\n", "write `to`"),
        ("num_ranks 1\nrank 0 {\nsend 5b to -1\n}\n", "rank 0 names rank -1"),
        ("num_ranks 1\nrank 0 {\nsend 2305843009213693952b to 0\n}\n", "beyond 2^60"),
        ("num_ranks 1\nrank 0 {\nsend 5b to 0 tag 9999999999\n}\n", "the tag 9999999999 is not possible"),
        ("num_ranks 1\nrank 0 {\nrank 0 {\n", ":3:1: rank 0 starts within rank 0"),
        ("num_ranks 0\n", "num_ranks 0"),
        ("calc 5\n", "an operation outside of a rank"),
        ("", "`num_ranks` is missing"),
    ],
)
def test_errors_in_a_schedule_name_the_line(text, message):
    assert message in refused(read_goal, text)


def test_a_schedule_that_was_cut_off_keeps_its_last_rank_up_to_there(tmp_path):
    file = tmp_path / "cut.goal"
    file.write_text("num_ranks 1\nrank 0 {\na: calc 5\nb: send 5b to")
    trace = read_goal(file)
    assert [row[0] for row in shown(trace.programs[0])] == [C]
    assert "cut.goal:4: a last row" in trace.notes["warnings"]
    assert "cut off within rank 0" in trace.notes["warnings"]


def overwritten(data, place, form, value):
    changed = bytearray(data)
    struct.pack_into(form, changed, place, value)
    return bytes(changed)


WHOLE = goal_binary(BINARY)
FIRST = 14 + 32 + 8 + 4  # two ranks, and one root of the first


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (WHOLE[:-1], "outside of the file: cut off?"),
        (WHOLE[:30], "too few for their offsets: cut off?"),
        (overwritten(WHOLE, 8, "<I", 10**6), "1,000,000 ranks"),
        (overwritten(WHOLE, 14, "<Q", 2**63), "rank 0 should be at bytes 9,223,372,036,854,775,808"),
        (overwritten(WHOLE, 30, "<Q", 38), "ranks 0 and 1 overlap"),
        (overwritten(WHOLE, 46, "<I", 2**31), "do not fit into its"),
        (overwritten(WHOLE, FIRST + 4, "<B", 9), "rank 0, operation 1: an unknown type"),
        (overwritten(WHOLE, FIRST + 39 + 5, "<I", 2), "operation 2: a peer that is not a rank"),
        (overwritten(WHOLE, FIRST + 39 + 9, "<Q", 2**61), "operation 2: a size beyond 2^60"),
        (overwritten(WHOLE, FIRST + 23, "<I", 10**9), "operation 1: its list of those that wait for it is outside"),
        (overwritten(WHOLE, FIRST + 27, "<I", 10**9), "operation 1: its list of those that wait for it is outside"),
        (overwritten(WHOLE, FIRST + 4 * 39, "<I", 4), "operation 1: one that waits for it does not exist"),
        (overwritten(WHOLE, FIRST, "<I", 1), "operation 1: its number of dependencies is wrong"),
        (goal_binary([[(3, 0, 1, 0, 0, 0, [1], []), (3, 0, 1, 0, 0, 0, [], [0])]]), "in a circle: number 1, 2"),
    ],
)
def test_a_binary_schedule_that_contradicts_itself_is_refused(tmp_path, data, message):
    file = tmp_path / "bad.bin"
    file.write_bytes(data)
    assert message in refused(read_goal, file)


# OTF2


def test_the_ping_pong_of_score_p_is_read_with_its_sizes_and_tags():
    pytest.importorskip("otf2")
    trace = read_otf2(DATA / "otf2")
    sizes = [16384 * 2**step for step in range(8)]
    for rank, program in enumerate(trace.programs):
        own = [row for row in shown(program) if row[0] != C]
        kinds = [(S, 10), (R, 20)] if rank == 0 else [(R, 10), (S, 20)]
        assert own == [(kind, 1 - rank, float(size), tag) for size in sizes for kind, tag in kinds]
    first = trace.programs[0]
    # From the return of MPI_Init to MPI_Send, by the ticks of the archive.
    assert_allclose(first.size[0], (7397467382750926 - 7397467382698364) / 2095197216, rtol=1e-12, atol=0)


def test_a_4d_stencil_of_32_ranks_has_equal_sends_and_receives():
    pytest.importorskip("otf2")
    folder = DATA / "stencil4d"
    trace = read_trace(folder / "traces-32")
    assert trace.rank_count == 32
    pairs = {kind: Counter() for kind in (S, IR)}
    for rank, program in enumerate(trace.programs):
        for kind, other, size, tag, *_ in shown(program):
            if kind in pairs:
                key = (rank, other, tag, size) if kind == S else (other, rank, tag, size)
                pairs[kind][key] += 1
    assert pairs[S] == pairs[IR]
    assert pairs[S].total() == 32 * 8 * 2
    message = refused(read_trace, folder / "traces-64")
    assert "the events of 62 of 64 ranks are missing: traces/2.evt" in message


@pytest.mark.parametrize(
    ("operation", "sent", "received", "expected"),
    [
        ("ALLREDUCE", 1600, 1600, 400),  # 25 elements of 16 B on 4 ranks, as in Score-P's own test
        ("BCAST", 1600, 400, 400),
        ("BCAST", 0, 400, 400),
        ("GATHER", 400, 0, 400),
        ("GATHER", 0, 1200, 400),  # the root, in place
        ("SCATTERV", 1200, 0, 400),
        ("ALLTOALL", 1600, 1600, 400),
        ("SCAN", 800, 1200, 400),
        ("EXSCAN", 400, 800, 400),
        ("BARRIER", 0, 0, 0),
    ],
)
def test_contribution_of_one_rank_from_the_counts_of_score_p(operation, sent, received, expected):
    assert contribution(operation, sent, received, 4) == expected


def written_archive(folder):
    """Two ranks: non-blocking messages that complete in a wait, an exchange, and a reduction."""
    otf2 = pytest.importorskip("otf2")
    from otf2.enums import CollectiveOp, GroupFlag, GroupType, Paradigm, RegionRole

    with otf2.writer.open(str(folder), timer_resolution=10**9) as archive:
        names = archive.definitions
        node = names.system_tree_node("node")
        groups = [names.location_group(f"rank {rank}", system_tree_parent=node) for rank in range(2)]
        places = [names.location("thread", group=group) for group in groups]
        ranks = names.group("ranks", GroupType.COMM_LOCATIONS, Paradigm.MPI, GroupFlag.NONE, places)
        assert ranks
        world = names.comm("world", names.group("world", GroupType.COMM_GROUP, Paradigm.MPI, GroupFlag.NONE, places))
        calls = ("MPI_Init", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Sendrecv", "MPI_Allreduce", "MPI_Finalize")
        regions = {name: names.region(name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.MPI) for name in calls}
        for rank, place in enumerate(places):
            events = archive.event_writer_from_location(place)
            time = 0
            for name in calls:
                events.enter(time := time + 1000, regions[name])
                if name == "MPI_Irecv":
                    events.mpi_irecv_request(time + 1, 5)
                elif name == "MPI_Isend":
                    events.mpi_isend(time + 1, 1 - rank, world, 3, 800, 6)
                elif name == "MPI_Waitall":
                    events.mpi_irecv(time + 1, 1 - rank, world, 3, 800, 5)
                    events.mpi_isend_complete(time + 2, 6)
                elif name == "MPI_Sendrecv":
                    events.mpi_send(time + 1, 1 - rank, world, 4, 16)
                    events.mpi_recv(time + 2, 1 - rank, world, 4, 16)
                elif name == "MPI_Allreduce":
                    events.mpi_collective_begin(time + 1)
                    events.mpi_collective_end(time + 2, CollectiveOp.ALLREDUCE, world, 2**32 - 1, 16, 16)
                events.leave(time := time + 1000, regions[name])
    return folder


def test_events_of_otf2_become_operations_that_wait_for_completed_requests(tmp_path):
    trace = read_otf2(written_archive(tmp_path / "made"))
    gap = (C, 0, 1e-6, 0)
    expected = [
        gap, (IR, 1, 800.0, 3), gap, (IS, 1, 800.0, 3), gap, (W, 0, 0.0, 0, 4, 2),
        gap, (IS, 1, 16.0, 4), (IR, 1, 16.0, 4), (W, 0, 0.0, 0, 2, 1), gap, (Kind.ALLREDUCE, 0, 8.0, 0), gap,
    ]  # fmt: skip
    assert shown(trace.programs[0]) == expected


@pytest.mark.parametrize("name", ["traces.otf2", "traces.def", "traces/1.evt"])
def test_a_damaged_archive_is_refused_without_output_on_the_terminal(tmp_path, capfd, name):
    pytest.importorskip("otf2")
    for file in [*(DATA / "otf2").glob("*.*"), *(DATA / "otf2").glob("traces/*")]:
        copy = tmp_path / file.relative_to(DATA / "otf2")
        copy.parent.mkdir(exist_ok=True)
        data = file.read_bytes()
        copy.write_bytes(data[: len(data) // 3] if file == DATA / "otf2" / name else data)
    assert "damaged or cut off" in refused(read_otf2, tmp_path)
    assert capfd.readouterr().err == ""


# Any


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html>not found</html>", "a web page"),
        ("0 init\n".encode("utf-16"), "UTF-16"),
        (b"SQLite format 3\0" + bytes(100), "an SQLite database"),
        (b"\0\1\2\3", "a binary file"),
        (b"time,rank\n1,2\n", "text of another kind"),
    ],
)
def test_errors_name_the_format_of_files_that_are_not_traces(tmp_path, data, reported):
    file = tmp_path / "trace.goal"
    file.write_bytes(data)
    assert not is_trace(file)
    message = refused(read_trace, file)
    assert reported in message
    assert "readable formats: DUMPI" in message


def test_the_events_of_an_archive_are_answered_with_its_anchor_file(tmp_path):
    (tmp_path / "0.evt").write_bytes(b"\0\1\2\3")
    assert "a part of an OTF2 archive; name its anchor file, such as traces.otf2" in refused(
        read_trace, tmp_path / "0.evt"
    )


def test_the_files_of_a_trace_are_all_that_it_rests_on(tmp_path):
    ring(tmp_path)
    ranks = sorted(tmp_path.iterdir())
    for name, text in {"ring.meta": "numprocs=4\n", "index": "a\nb\nnone\n", "a": "0 init\n", "b": "1 init\n"}.items():
        (tmp_path / name).write_text(text)
    archive = tmp_path / "archive"
    (archive / "traces").mkdir(parents=True)
    files = [archive / name for name in ("traces/0.def", "traces/0.evt", "traces.def", "traces.otf2")]
    for file in files:
        file.write_bytes(b"\x03BOTF2")
    assert trace_files(tmp_path / "ring-0002.txt") == ranks
    assert trace_files(tmp_path / "ring.meta") == sorted([*ranks, tmp_path / "ring.meta"])
    assert trace_files(tmp_path / "index") == [tmp_path / name for name in ("a", "b", "index")]
    assert trace_files(tmp_path / "a") == [tmp_path / "a"]
    assert trace_files(archive / "traces.otf2") == files
    assert trace_files(archive) == files


@pytest.mark.parametrize("read", [lambda path: list(chunks(path)), head_of])
def test_a_device_and_a_pipe_are_refused_and_not_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(read, Path(os.devnull))
    assert "not a regular file" in refused(read, tmp_path / "pipe")


def test_a_missing_file_is_not_a_trace(tmp_path):
    assert not is_trace(tmp_path / "nothing")
    assert "No such file" in refused(read_trace, tmp_path / "nothing")
    assert "no file in this folder" in refused(read_trace, tmp_path)


# Damage at random: nothing but InvalidFileError, whatever stands in a file.

TEXTS = {
    "dumpi": (DATA / "dumpi" / "testtrace-0000.txt").read_bytes()[:4000].replace(b"int size=4", b"int size=1") + b"\n",
    "goal": BOTH.encode(),
    "binary": WHOLE,
    **{file.stem: file.read_bytes() for file in sorted((DATA / "simgrid").glob("*.txt"))},
}
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["cut", "flip", "double", "drop", "insert", "swap"]),
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([b"-1", b"9" * 30, b"\0", b"nan", b" ", b"\xff", b"0", b"]", b"1e400", b"\x0b", b"99"]),
    ),
    min_size=1,
    max_size=5,
)


def edited(data, edits):
    for edit, where, word in edits:
        place = int(where * len(data))
        start, end = data.rfind(b"\n", 0, place) + 1, data.find(b"\n", place) + 1 or len(data)
        if edit == "cut":
            data = data[:place]
        elif edit == "flip" and data:
            data = data[:place] + bytes([data[place] ^ (1 << (len(word) % 8))]) + data[place + 1 :]
        elif edit == "double":
            data = data[:end] + data[start:]
        elif edit == "drop":
            data = data[:start] + data[end:]
        elif edit == "insert":
            data = data[:place] + word + data[place:]
        elif edit == "swap":
            data = re.sub(rb"\d+", word.replace(b"\\", b""), data[:end], count=1) + data[end:]
    return data


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_damage_at_random_is_read_or_refused(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("damage")

    @settings(max_examples=40)
    @given(EDITS)
    def damaged(edits):
        file = folder / "t-0000.txt"
        file.write_bytes(edited(TEXTS[name], edits))
        with suppress(InvalidFileError):
            trace = read_trace(file)
            assert all(len(program.wait_start) == len(program) + 1 for program in trace.programs)

    damaged()
