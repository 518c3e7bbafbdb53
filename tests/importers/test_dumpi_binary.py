"""Binary DUMPI traces: the same as their text, and damage that is refused with the byte."""

from __future__ import annotations

import gzip
import random
import shutil
import struct
from collections import Counter

import numpy as np
import pytest

from tests.importers.test_trace_formats import dumpi_text, of, refused, ring, shown, to
from tests.paths import DATA as TEST_DATA
from tests.paths import SHARED
from whatif.errors import InvalidFileError
from whatif.importers.dumpi import read_dumpi
from whatif.importers.dumpi_binary import read_binary_rank
from whatif.importers.dumpi_records import functions
from whatif.importers.trace_formats import is_trace, read_trace, trace_files
from whatif.simulation.rank_programs import Kind

DATA = TEST_DATA / "traces" / "dumpi"
START = b"\xff\xaa\xddDUMPI"
NUMBERS = {function.name: number for number, function in enumerate(functions())}
COLUMNS = ("kind", "peer", "size", "tag", "wait_start", "waits")


def binary(folder):
    """The four ranks of sst-dumpi's test in a folder of their own."""
    folder.mkdir()
    for file in [*DATA.glob("*.bin"), DATA / "testtrace.meta"]:
        shutil.copy(file, folder)
    return folder


def assert_same(one, other):
    assert [members.tolist() for members in one.communicators] == [m.tolist() for m in other.communicators]
    for program, expected in zip(one.programs, other.programs, strict=True):
        for column in COLUMNS:
            np.testing.assert_array_equal(getattr(program, column), getattr(expected, column), err_msg=column)


def encoded(code, values):
    """Bytes of an argument by its code; an array has the values, or none."""
    if code in "bhiq":
        return struct.pack(f">{code}", *(values or (0,)))
    if code == "X" or (code in "SMT" and not values):
        return struct.pack(">I", 0)
    if code in "BHI":
        return struct.pack(f">I{len(values)}{code.lower()}", len(values), *values)
    return struct.pack(">I", 3) + b"abc"


def record(name, arguments, time):
    """A record of a call, 1 us long, with statuses, thread and wall time."""
    number = NUMBERS[f"MPI_{name}"]
    out = struct.pack(">HBHHIHI", number, 0b1001011, 0, 0, time, 0, time + 1000)
    at_root = arguments.get("commrank", 0) == arguments.get("root", 0)
    for _, fields in functions()[number].groups:
        for field in fields:
            value = arguments.get(field.name, [])
            value = value if isinstance(value, list) else [value]
            out += encoded(field.code, value) if at_root or not field.at_root else b""
    return out


def dumpi_file(calls, version=(9, 1, 0)):
    """A whole file with the calls, each a name and its arguments; the times are those of `dumpi_text`."""
    out, time = START + struct.pack(">ii", 0, 5), 1000
    for name, arguments in [("Init", {}), *calls, ("Finalize", {})]:
        out += record(name, arguments, time)
        time += 2000
    out += struct.pack(">H", 293)
    header = len(out)
    out += bytes(version) + bytes(20)
    footer = len(out)
    out += struct.pack(">Q", 0xF007FEE7) + bytes(8 * 291)
    return out + START + struct.pack(">7Q", 0, 0, 0, header, 8, footer, 0)


def test_binary_and_text_of_the_same_run_are_the_same_trace(tmp_path):
    trace, text = read_dumpi(DATA / "testtrace-0000.bin"), read_dumpi(ring(tmp_path))
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(trace.programs[0], column), getattr(text.programs[0], column))
    assert [program.peer[program.kind == 2].tolist() for program in trace.programs] == [
        program.peer[program.kind == 2].tolist() for program in text.programs
    ]
    assert "warnings" not in trace.notes


@pytest.mark.shared_data
def test_binary_and_text_of_jacobi2d_on_summit_are_the_same_trace():
    folder = SHARED / "traces" / "dumpi_jacobi2d"
    binary, text = read_dumpi(folder / "summit_n12_bin"), read_dumpi(folder / "summit_n12_txt")
    assert sum(np.count_nonzero(program.kind == Kind.ISEND) for program in binary.programs) == 3400
    assert_same(binary, text)


@pytest.mark.parametrize("rank", range(4))
def test_records_are_as_many_as_the_footer_of_the_file_counts(rank):
    path = DATA / f"testtrace-{rank:04}.bin"
    data = path.read_bytes()
    footer = struct.unpack_from(">Q", data, len(data) - 16)[0]
    counts = struct.unpack_from(">291I", data, footer + 8)
    calls = {function.name: count for function, count in zip(functions(), counts, strict=False) if count}
    assert calls == read_binary_rank(path).calls


def test_a_binary_trace_is_found_by_its_folder_its_meta_file_and_any_rank(tmp_path):
    folder = binary(tmp_path / "own")
    for path in (folder, folder / "testtrace.meta", folder / "testtrace-0002.bin"):
        assert is_trace(path)
        assert len(read_trace(path).programs) == 4
    assert [file.name for file in trace_files(folder / "testtrace.meta")][:2] == [
        "testtrace-0000.bin",
        "testtrace-0001.bin",
    ]
    packed = folder / "testtrace-0003.bin"
    packed.write_bytes(gzip.compress(packed.read_bytes()))
    assert len(read_trace(folder).programs) == 4
    packed.unlink()
    assert "rank 3 of 4 (numprocs) missing" in refused(read_trace, folder / "testtrace.meta")


def test_every_way_to_send_wait_and_group_is_read_from_records_as_from_text(tmp_path):
    block = {"sendcount": 3, "sendtype": 14, "recvcount": 5, "recvtype": 9}
    parts = {"sendcounts": [1, 3], "sendtype": 14, "recvcounts": [5, 7], "recvtype": 9}
    at = {"commrank": 0, "commsize": 2, "comm": 2}
    ends = {"dest": 0, "sendtag": 3, "source": 0, "recvtag": 3}
    gathered = {"sendcount": 2, "sendtype": 14, "recvcounts": [5, 7], "recvtype": 9}
    scattered = {"sendcounts": [1, 3], "sendtype": 14, "recvcount": 4, "recvtype": 9}
    calls = [
        ("Comm_size", {"comm": 2, "size": 2}),
        ("Type_contiguous", {"count": 10, "oldtype": 9, "newtype": 28}),
        ("Type_vector", {"count": 3, "blocklength": 2, "oldtype": 28, "newtype": 29}),
        ("Type_struct", {"count": 2, "lengths": [1, 5], "oldtypes": [14, 2], "newtype": 30}),
        ("Type_create_subarray", {"subsizes": [3, 4], "oldtype": 9, "newtype": 31}),
        ("Type_size", {"datatype": 32, "size": 77}),
        ("Get_processor_name", {}),
        *[("Send", to(0, datatype=number)) for number in (28, 29, 30, 31, 32)],
        ("Type_free", {"datatype": 32}),
        ("Cart_create", {"oldcomm": 2, "dims": [1, 2], "reorder": 0, "newcomm": 4}),
        ("Cart_sub", {"oldcomm": 4, "remain_dims": [0, 1], "newcomm": 5}),
        ("Comm_split", {"oldcomm": 2, "color": -1, "key": -7, "newcomm": 6}),
        ("Send_init", to(0, 2, request=[7])),
        ("Recv_init", of(-1, 2, tag=-1, request=[8])),
        ("Startall", {"count": 2, "requests": [7, 8]}),
        ("Waitall", {"count": 2, "requests": [8, 7]}),
        *[("Isend", to(1, 9, request=[number], comm=5)) for number in (9, 10, 11)],
        ("Waitany", {"requests": [9, 10], "index": 1}),
        ("Testsome", {"requests": [9, 11], "indices": [0]}),
        ("Test", {"request": [11], "flag": 0}),
        ("Wait", {"request": [11]}),
        ("Sendrecv", {**block, **ends, "comm": 2}),
        ("Sendrecv_replace", {**ends, "count": 2, "datatype": 14, "comm": 2}),
        ("Bcast", {"count": 3, "datatype": 14, "root": 1, "comm": 6}),
        *[(name, {**at, **block, "root": root}) for name in ("Gather", "Scatter") for root in (0, 1)],
        *[("Gatherv", {**at, **gathered, "root": root}) for root in (0, 1)],
        *[("Scatterv", {**at, **scattered, "root": root}) for root in (0, 1)],
        *[(name, {**block, "comm": 2}) for name in ("Allgather", "Alltoall")],
        ("Allgatherv", {"commsize": 2, **block, "recvcounts": [3, 5], "comm": 2}),
        ("Alltoallv", {"commsize": 2, **parts, "comm": 2}),
        ("Alltoallw", {"commsize": 2, **parts, "sendtypes": [9, 14], "recvtypes": [9, 14], "comm": 2}),
        ("Reduce_scatter", {"commsize": 2, "recvcounts": [1, 3], "datatype": 14, "comm": 2}),
        *[(name, {"count": 9, "datatype": 9, "comm": 2}) for name in ("Allreduce", "Scan", "Exscan")],
        ("Comm_free", {"comm": 5}),
    ]  # fmt: skip
    for kind in ("text", "records"):
        (tmp_path / kind).mkdir()
        for rank in range(2):
            own = [("Comm_rank", {"comm": 2, "rank": rank}), *calls]
            data = dumpi_text(own).encode() if kind == "text" else dumpi_file(own)
            (tmp_path / kind / f"made-{rank:04}").write_bytes(data)
    trace = read_dumpi(tmp_path / "records")
    assert_same(trace, read_dumpi(tmp_path / "text"))
    assert sum(len(program.kind) for program in trace.programs) > 60


def test_a_record_is_found_after_that_of_any_function(tmp_path):
    """An argument that is read with another length shifts all that follows."""
    known = {
        "comm": 2,
        "oldcomm": 2,
        "datatype": 9,
        "sendtype": 9,
        "recvtype": 9,
        "oldtype": 9,
        "request": 1,
        "size": 1,
    }
    refused_alone = {"Comm_free", "Type_free", "Start", "Cart_sub", "Init", "Finalize"}
    names = {function.name.removeprefix("MPI_") for function in functions() if function.name.startswith("MPI_")}
    for name in names - refused_alone:
        calls = [(name, known), ("Bcast", {"count": 3, "datatype": 14, "root": 0, "comm": 2})]
        (tmp_path / "t-0000").write_bytes(dumpi_file(calls))
        assert shown(read_dumpi(tmp_path / "t-0000").programs[0])[-2][:3] == (Kind.BROADCAST, 0, 24), name


def test_a_file_that_was_cut_off_keeps_whole_records_with_a_warning(tmp_path):
    folder = binary(tmp_path / "own")
    file = folder / "testtrace-0002.bin"
    data = file.read_bytes()
    file.write_bytes(data[:0x120])  # within MPI_Wait
    trace = read_dumpi(folder)
    assert "testtrace-0002.bin: cut off: what followed byte 257 is left out" in trace.notes["warnings"]
    assert [len(program) for program in trace.programs] == [11, 11, 6, 11]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:0x3A] + b"\x01\x30" + data[0x3C:], "the record at byte 58 is damaged: function 304 with"),
        (lambda data: data[:0x3C] + b"\x7f" + data[0x3D:], "with the mask 127 is not known"),
        (lambda data: data[:0x3C] + b"\x43" + data[0x3D:], "the call at byte 58 has no wall time"),
        (lambda data: data[:0x4D] + b"\xff" + data[0x4E:], "999,999,999 ns"),
        (lambda data: data[:0x2D] + b"\x7f" + data[0x2E:], "at byte 16 is damaged: it reaches into the header"),
        (lambda data: data[:0xC0] + b"\x00\x63" + data[0xC2:], "MPI_Isend at byte 159: the size of the datatype 99"),
        (lambda data: data[:-24] + b"\xff" + data[-23:], "the index at byte 2,896 is damaged"),
        (lambda data: data[:0x179] + b"\x00\x06\x02" + data[0x17C:], "written by DUMPI 0.6.2"),
        (lambda data: data[:-64] + data[-56:-48] + START + data[-40:], "before 0.6.6"),
        (lambda data: data[:20], "no whole record"),
    ],
)  # fmt: skip
def test_damage_is_refused_with_the_file_and_the_byte(tmp_path, change, message):
    folder = binary(tmp_path / "own")
    file = folder / "testtrace-0001.bin"
    file.write_bytes(change(file.read_bytes()))
    text = refused(read_dumpi, folder)
    assert message in text
    assert "testtrace-0001.bin" in text


def test_calls_that_were_not_recorded_are_reported(tmp_path):
    data = bytearray(dumpi_file([]))
    footer = struct.unpack_from(">Q", data, len(data) - 16)[0]
    struct.pack_into(">I", data, footer + 8 + 4 * (291 + NUMBERS["MPI_Iprobe"]), 12)
    (tmp_path / "t-0000.bin").write_bytes(data)
    assert "12 calls of MPI_Iprobe were not recorded" in read_dumpi(tmp_path).notes["warnings"]


def test_random_damage_ends_in_a_refusal_or_a_trace(tmp_path):
    whole, outcomes = (DATA / "testtrace-0000.bin").read_bytes(), Counter()
    for seed in range(300):
        chance = random.Random(seed)  # noqa: S311
        data = bytearray(whole[: chance.randrange(len(whole))] if seed % 3 == 0 else whole)
        for _ in range(1 + seed % 5):
            if data:
                data[chance.randrange(min(len(data), 0x1B0))] = chance.randrange(256)
        (tmp_path / "t-0000.bin").write_bytes(data)
        try:
            read_dumpi(tmp_path / "t-0000.bin")
            outcomes["read"] += 1
        except InvalidFileError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 100
