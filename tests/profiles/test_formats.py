"""Profiles of four tools against sums that SQL or a plain loop over the same file gives."""

# ruff: noqa: S608 - tables and values of the queries are constants

from __future__ import annotations

import contextlib
import csv
import gzip
import itertools
import json
import math
import sqlite3

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.paths import DATA as TEST_DATA
from tests.paths import SHARED
from whatif.errors import InvalidFileError
from whatif.importers.sqlite import open_database
from whatif.profiles.formats import is_profile, read_profile
from whatif.profiles.kineto import read_kineto
from whatif.profiles.profile_data import DEVICE_COLUMNS, OPERATION_COLUMNS, amd_peaks, cuda_peaks
from whatif.profiles.rocprof import read_rocprof
from whatif.schema.toml import shown_path

DATA = TEST_DATA / "profiles"
LAMMPS, SAXPY = DATA / "ahead" / "lammps_summit.nvvp", DATA / "nsys" / "saxpy_a100.sqlite"
A100_TRACE, MI250_TRACE = DATA / "kineto" / "a100_trace.json.gz", DATA / "kineto" / "mi250_trace.json.gz"
TIMESTAMPS = DATA / "rocprof" / "timestamps.csv"
RELEASED = SHARED / "profiles" / "ahead"
READ, WRITE, INSIDE, PEER = "host_to_device", "device_to_host", "device_to_device", "peer_to_peer"
KINDS = "CUPTI_ACTIVITY_KIND_"


def queried(path, query):
    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        return database.execute(query).fetchall()


def summed(profile, **wanted):
    """Count, bytes and ns of the operations that have the wanted values."""
    columns = {name: column.values for name, column in profile.operations.columns.items()}
    chosen = np.ones(len(profile.operations), dtype=bool)
    for name, value in wanted.items():
        chosen &= columns[name] == value
    return int(chosen.sum()), float(columns["message_size"][chosen].sum()), round(columns["time"][chosen].sum() * 1e9)


def rows_of(profile, *names):
    """Columns as plain values, None for NaN."""
    places = [list(OPERATION_COLUMNS).index(name) for name in names]
    return [tuple(row[place] for place in places) for row in profile.operations.rows()]


@pytest.mark.parametrize("path", [LAMMPS, SAXPY, A100_TRACE, MI250_TRACE, TIMESTAMPS], ids=lambda path: path.name)
def test_every_tool_gives_the_same_columns_in_the_order_of_the_starts(path):
    assert is_profile(path)
    profile = read_profile(path)
    for table, columns in ((profile.operations, OPERATION_COLUMNS), (profile.devices, DEVICE_COLUMNS)):
        assert {name: column.dimension for name, column in table.columns.items()} == columns
    starts = profile.operations.columns["start_time"].values
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    assert (profile.operations.columns["time"].values >= 0).all()
    assert set(profile.operations.columns["device"].values) <= set(profile.devices.columns["device"].values)
    assert profile.operations.notes["file"] == shown_path(path)


@pytest.mark.shared_data
def test_lammps_on_summit_has_the_times_of_table_one():
    path = RELEASED / "Summit_Data/Applications_Traces/lammps/peak-51127-lammps-h41n08-54871.nvvp"
    profile = read_profile(path)
    kernels, copies = summed(profile, operation="kernel"), summed(profile, operation="copy")
    assert (kernels[2], copies[2], copies[0]) == (2_881_201_305, 2_228_052_680, 2089)
    # AHEAD, Table I: 2.88 s, 2.23 s, 43.64 %, 2K.
    assert (round(kernels[2] / 1e9, 2), round(copies[2] / 1e9, 2)) == (2.88, 2.23)
    assert_allclose(100 * copies[2] / (copies[2] + kernels[2]), 43.64, rtol=1e-3, atol=0)


@pytest.mark.shared_data
def test_sums_of_every_released_nvprof_profile_are_those_of_the_database():
    for path in sorted(RELEASED.rglob("*.nvvp")):
        assert_sums_of_the_database(path)


def test_sums_of_an_nvprof_profile_are_those_of_the_database():
    assert_sums_of_the_database(LAMMPS)


def assert_sums_of_the_database(path):
    profile = read_profile(path)
    directions = {1: READ, 2: WRITE, 8: INSIDE}
    memories = {1: "pageable", 2: "pinned", 3: "device"}
    query = f"SELECT copyKind, srcKind, dstKind, flags, COUNT(*), SUM(bytes), SUM(end - start) FROM {KINDS}MEMCPY"
    groups = queried(path, f"{query} WHERE end >= start GROUP BY 1, 2, 3, 4")
    assert sum(group[4] for group in groups) == summed(profile, operation="copy")[0]
    for kind, source, target, flags, *expected in groups:
        wanted = {"direction": directions[kind], "memory": memories[source if kind == 1 else target]}
        assert summed(profile, operation="copy", is_asynchronous=flags, **wanted) == tuple(expected)
    names = queried(
        path,
        f"SELECT value, COUNT(*), SUM(end - start) FROM {KINDS}CONCURRENT_KERNEL JOIN StringTable"
        f" ON StringTable._id_ = {KINDS}CONCURRENT_KERNEL.name GROUP BY 1",
    )
    assert sum(row[1] for row in names) == summed(profile, operation="kernel")[0]
    for name, count, time in names:
        assert summed(profile, operation="kernel", name=name)[::2] == (count, time)


def test_devices_have_both_sides_of_the_roofline():
    v100, a100 = (next(read_profile(path).devices.rows()) for path in (LAMMPS, SAXPY))
    assert v100[:2] == (0.0, "Tesla V100-SXM2-16GB")
    assert a100[:2] == (0.0, "NVIDIA A100-SXM4-40GB")
    # Data sheets: V100 SXM2 900 GB/s, 15.7 and 7.8 Tflop/s, 80 multiprocessors, 1530 MHz, 16 GB, 6 MiB of L2;
    # A100 40 GB 1555 GB/s, 19.5 and 9.7 Tflop/s, 108 multiprocessors, 1410 MHz, 40 MiB of L2.
    assert_allclose(v100[2:], [900e9, 15.7e12, 7.8e12, 80, 1.53e9, 16.9e9, 6 * 2**20], rtol=6e-3, atol=0)
    assert_allclose(a100[2:], [1555e9, 19.5e12, 9.7e12, 108, 1.41e9, 42.3e9, 40 * 2**20], rtol=6e-3, atol=0)


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        (cuda_peaks((3, 5), 14, 732e6), (3.94, 1.31)),  # K20X
        (cuda_peaks((6, 0), 56, 1480e6), (10.6, 5.3)),  # P100 SXM2
        (cuda_peaks((7, 5), 40, 1590e6), (8.1, 0.254)),  # T4
        (cuda_peaks((9, 0), 132, 1980e6), (66.9, 33.5)),  # H100 SXM5
        (amd_peaks("gfx908", 120, 1502e6), (23.1, 11.5)),  # MI100
        (amd_peaks("gfx90a", 110, 1700e6), (23.95, 23.95)),  # half an MI250X
        (amd_peaks("gfx942", 304, 2100e6), (163.4, 81.7)),  # MI300X
        (cuda_peaks((99, 0), 1, 1e9), (math.nan, math.nan)),
    ],
)
def test_peak_rates_are_those_of_the_data_sheets(peaks, expected):
    assert_allclose([peaks["peak_single_rate"] / 1e12, peaks["peak_double_rate"] / 1e12], expected, rtol=1e-2, atol=0)


def test_sums_of_an_nsight_export_without_enumerations_are_those_of_the_database():
    profile = read_profile(SAXPY)
    ((count, size, time),) = queried(SAXPY, f"SELECT COUNT(*), SUM(bytes), SUM(end - start) FROM {KINDS}MEMCPY")
    assert (count, size) == (15, 15 * 262144000)
    # The program copies malloc'ed memory with cudaMemcpy.
    assert summed(profile, operation="copy", memory="pageable", is_asynchronous=0.0) == (count, size, time)
    ((count, time),) = queried(SAXPY, f"SELECT COUNT(*), SUM(end - start) FROM {KINDS}KERNEL")
    name = "saxpy(double *, double *, double *, double, int)"
    assert summed(profile, operation="kernel", name=name)[::2] == (count, time)
    assert profile.operations.notes["version"] == "2.9.1"


NSYS = f"""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE {KINDS}MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER
 NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER
 NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER, name TEXT);
CREATE TABLE {KINDS}RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid
 INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.13.2');
INSERT INTO StringIds VALUES (1, 'cudaMemcpyAsync_v3020'), (2, 'cudaMemcpy_v3020'), (3, 'cudaLaunchKernel_v7000'),
 (4, 'axpy(int)'), (5, 'axpy');
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (0, '', 'Unknown'), (1, '', 'Host-to-Device'), (2, '', 'Device-to-Host'),
 (3, '', 'Host-to-Array'), (8, '', 'Device-to-Device'), (9, '', 'Host-to-Host'), (10, '', 'Peer-to-Peer'),
 (11, '', 'Unified Host-to-Device'), (21, '', 'Device-to-Host');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, '', 'Pageable'), (1, '', 'Pinned'), (2, '', 'Device'), (3, '', 'Array'),
 (4, '', 'Managed'), (5, '', 'Device Static'), (6, '', 'Managed Static'), (7, '', 'Unknown'), (9, '', 'Pinned');
"""
KERNELS = f"""CREATE TABLE {KINDS}KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER
 NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER);
INSERT INTO {KINDS}KERNEL VALUES (10, 17, 0, 1, 7, 90, 16777216, 4, 5, NULL);"""
FILLS = f"""CREATE TABLE {KINDS}MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL,
 graphNodeId INTEGER, memKind INTEGER); INSERT INTO {KINDS}MEMSET VALUES (20, 22, 0, 7, NULL, NULL, 0, 64, NULL, 5);"""
GPUS = """CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, memoryBandwidth INTEGER,
 clockRate INTEGER, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO TARGET_INFO_GPU VALUES (1, 5, 'NVIDIA X', 2039000000000, 1410000000, 108, 8, 0);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT);
INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (5, 0, 1, '');"""
ONE_PROCESS = 1 << 24


def written(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript("".join(statements))
        connection.commit()
    return path


def nsys_copies(*rows):
    """Start, end, correlation, process, bytes, kind, memory of both ends."""
    values = (
        f"({start}, {end}, 0, 1, NULL, 7, {call}, {process}, {size}, {kind}, {source}, {target}, 'by nsys stats')"
        for start, end, call, process, size, kind, source, target in rows
    )
    return f"INSERT INTO {KINDS}MEMCPY VALUES {', '.join(values)};"


def calls(*rows):
    """Thread, number of the call, number of its name."""
    values = (f"(0, 1, 0, {thread}, {call}, {name}, 0, NULL)" for thread, call, name in rows)
    return f"INSERT INTO {KINDS}RUNTIME VALUES {', '.join(values)};"


def test_an_nsight_export_with_enumerations_and_few_tables_is_read(tmp_path):
    one, other = ONE_PROCESS, 2 * ONE_PROCESS
    copies = nsys_copies(
        (5, 6, 1, one, 8, 1, 0, 2), (6, 8, 2, one, 16, 2, 2, 1), (7, 9, 1, other, 32, 8, 2, 5),
        (8, 9, 3, one, 64, 10, 2, 2),
        (9, 12, "NULL", "NULL", 4096, 11, "NULL", "NULL"), (9, 13, 4, one, 1, 21, 2, 9), (9, 14, 5, one, 1, 9, 0, 0),
        (9, 15, 6, one, 1, 3, 1, 3),
    )  # fmt: skip
    # One thread of each process; the same number of a call means another copy in the other process.
    text = calls((one + 3, 1, 1), (one + 3, 2, 2), (other + 4, 1, 2), (one + 3, 3, 3))
    profile = read_profile(written(tmp_path / "p.sqlite", NSYS, KERNELS, GPUS, copies, text))
    names = ("operation", "name", "direction", "memory", "is_symbol", "is_asynchronous", "message_size", "time")
    assert [(*row[:-1], round(row[-1] * 1e9)) for row in rows_of(profile, *names)] == [
        ("copy", "", READ, "pageable", 0, 1, 8, 1),
        ("copy", "", WRITE, "pinned", 0, 0, 16, 2),
        ("copy", "", INSIDE, "device", 1, 0, 32, 2),
        ("copy", "", PEER, "device", 0, None, 64, 1),
        ("copy", "", READ, "managed", 0, None, 4096, 3),
        ("copy", "", WRITE, "pinned", 0, None, 1, 4),
        ("copy", "", READ, "pinned", 0, None, 1, 6),
        ("kernel", "axpy(int)", "", "", 0, None, None, 7),
    ]
    ((number, name, bandwidth, single, double, *_),) = profile.devices.rows()
    assert (number, name) == (0, "NVIDIA X")
    assert_allclose([bandwidth, single, double], [2039e9, 19.49e12, 9.746e12], rtol=1e-3, atol=0)
    message = profile.operations.notes["warnings"]
    assert "1 of 9 operations left out" in message
    assert "operations of 2 processes" in message


def test_both_generations_of_tables_give_the_same_profile(tmp_path):
    # Kinds of memory: CUPTI's number, and that of Nsight Systems, one less with unknown at the end.
    memories = [(kind, (kind - 1) % 8) for kind in range(8)]
    rows = [(kind, *ends) for kind in range(1, 11) for ends in itertools.product(memories, memories)]
    nvprof = f"""CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT); CREATE TABLE {KINDS}MEMCPY (copyKind,
        srcKind, dstKind, flags, bytes, start, end, deviceId, streamId);"""
    values = [
        (kind, source[0], target[0], 1, number, number, number + 5, 0, 7)
        for number, (kind, source, target) in enumerate(rows)
    ]
    nvprof += f"INSERT INTO {KINDS}MEMCPY VALUES {', '.join(map(str, values))};"
    new = nsys_copies(
        *((number, number + 5, number, ONE_PROCESS, number, kind, source[1], target[1])
          for number, (kind, source, target) in enumerate(rows))
    )  # fmt: skip
    new += calls(*((ONE_PROCESS, number, 1) for number in range(len(rows))))
    enumerations = "DROP TABLE ENUM_CUDA_MEM_KIND; DROP TABLE ENUM_CUDA_MEMCPY_OPER;"
    first = read_profile(written(tmp_path / "p.nvvp", nvprof))
    second = read_profile(written(tmp_path / "p.sqlite", NSYS, new, enumerations))
    names = [name for name in OPERATION_COLUMNS if name != "name"]
    assert len(first.operations) == 9 * 64
    assert rows_of(first, *names) == rows_of(second, *names)


def test_fills_alone_are_read_and_graphs_and_new_versions_are_warnings(tmp_path):
    newer = "UPDATE META_DATA_EXPORT SET value = '4.0.1';"
    graphs = (
        f"CREATE TABLE {KINDS}GRAPH_TRACE (start INTEGER, end INTEGER); INSERT INTO {KINDS}GRAPH_TRACE VALUES (1, 2);"
    )
    profile = read_profile(written(tmp_path / "p.sqlite", NSYS, f"DROP TABLE {KINDS}MEMCPY;", FILLS, newer, graphs))
    assert rows_of(profile, "operation", "memory", "is_symbol", "message_size") == [("fill", "device", 1, 64)]
    message = profile.operations.notes["warnings"]
    assert "version 4.0.1 is newer than 3.13" in message
    assert "1 CUDA graphs were recorded as a whole" in message
    # No description of the GPU: the device is there, without its figures.
    assert [row[:3] for row in profile.devices.rows()] == [(0, "", None)]


def test_migrations_fills_and_symbols_of_nvprof(tmp_path):
    statements = f"""CREATE TABLE StringTable (_id_ INTEGER, value); CREATE TABLE Version (version);
      INSERT INTO Version VALUES (12);
      CREATE TABLE {KINDS}MEMSET (value, bytes, start, end, deviceId, streamId, flags, memoryKind);
      INSERT INTO {KINDS}MEMSET VALUES (0, 4, 1544344586292108011, 1544344586292108012, 1, 7, 1, 6);
      CREATE TABLE {KINDS}MEMCPY2 (copyKind, srcKind, dstKind, flags, bytes, start, end, deviceId, streamId);
      INSERT INTO {KINDS}MEMCPY2 VALUES (10, 3, 3, 1, 8, 1544344586292108013, 1544344586292108020, 0, 7);"""
    profile = read_profile(written(tmp_path / "p.nvvp", statements))
    names = ("operation", "direction", "memory", "is_symbol", "is_asynchronous", "message_size", "device")
    assert rows_of(profile, *names) == [("fill", "", "device", 1, 1, 4, 1), ("copy", PEER, "device", 0, 1, 8, 0)]
    assert_allclose(profile.operations.columns["start_time"].values, [0, 2e-9], rtol=1e-12, atol=0)
    assert_allclose(profile.operations.columns["time"].values, [1e-9, 7e-9], rtol=1e-12, atol=0)
    assert "version 12 is newer than 11" in profile.operations.notes["warnings"]


@pytest.mark.parametrize("path", [A100_TRACE, MI250_TRACE], ids=lambda path: path.name)
def test_sums_of_a_trace_are_those_of_its_events(path):
    with gzip.open(path) as file:
        trace = json.load(file)
    profile = read_kineto(path)
    sizes = {event["args"].get("correlation"): float(event["args"]["size"]) for event in trace["traceEvents"]
             if event.get("cat") == "cuda_runtime" and "size" in event["args"]}  # fmt: skip
    for category, operation in (("kernel", "kernel"), ("gpu_memcpy", "copy"), ("gpu_memset", "fill")):
        events = [event for event in trace["traceEvents"] if event.get("cat") == category]
        count, size, time = summed(profile, operation=operation)
        assert (count, time) == (len(events), round(sum(event["dur"] for event in events) * 1e3))
        if operation != "kernel":
            expected = (event["args"].get("bytes", sizes.get(event["args"]["correlation"])) for event in events)
            assert size == sum(expected)
    starts = sorted(
        event["ts"] for event in trace["traceEvents"] if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}
    )
    found = profile.operations.columns["start_time"].values
    assert_allclose(found, (np.array(starts) - starts[0]) * 1e-6, rtol=0, atol=1.1e-9)
    assert len(profile.devices) == len(trace["deviceProperties"])


def events_of(*events, **more):
    return json.dumps({"schemaVersion": 1, "traceEvents": list(events), **more})


def event(category, name, start, time, **details):
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": 8, "ts": start, "dur": time, "args": details}


def test_direction_memory_and_asynchrony_follow_from_names_and_calls_of_a_trace(tmp_path):
    path = tmp_path / "trace.json"
    text = events_of(
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1.5, 0.25, bytes=8, device=1, stream=20, correlation=1),
        event("Memcpy", "Memcpy DtoH (Device -> Pageable)", 2, 1, bytes=16, device=1, stream=20, correlation=2),
        event("gpu_memcpy", "Memcpy DtoD (Device Static -> Device)", 3, 1, bytes=32, device=1, stream=20),
        event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 4, 1, bytes=32, device=1, stream="20"),
        event("gpu_memcpy", "CopyDeviceToHost", 5, 1, device=0, stream=0, correlation=3),
        event("gpu_memset", "Memset (Managed)", 6, 1, bytes=64),
        event("cuda_runtime", "cudaMemcpyAsync", 0, 1, correlation=1),
        event("cuda_runtime", "hipMemcpyWithStream", 0, 1, correlation=3, size="4096"),
        event("cpu_op", "aten::copy_", 0, 1, correlation=2),
        event("kernel", "k", "nan", 1),
        {"ph": "i", "cat": "kernel", "name": "no operation"},
        deviceProperties=[{"id": 1, "name": "GPU", "numSms": 108, "computeMajor": 8, "computeMinor": 0}, 3],
    )
    path.write_text(text)
    profile = read_profile(path)
    names = ("direction", "memory", "is_symbol", "is_asynchronous", "message_size", "device", "stream")
    assert rows_of(profile, *names) == [
        (READ, "pinned", 0, 1, 8, 1, 20), (WRITE, "pageable", 0, None, 16, 1, 20),
        (INSIDE, "device", 1, None, 32, 1, 20), (PEER, "device", 0, None, 32, 1, 20),
        (WRITE, "unknown", 0, 0, 4096, 0, 0), ("", "managed", 0, None, 64, 9, 8),
    ]  # fmt: skip
    assert "1 operations left out" in profile.operations.notes["warnings"]
    assert [row[0] for row in profile.devices.rows()] == [1, 0, 9]


def test_a_trace_is_read_in_pieces_whatever_their_size(tmp_path, monkeypatch):
    plain = tmp_path / "array.json"
    with gzip.open(A100_TRACE, "rb") as file:
        plain.write_text(json.dumps(json.load(file)["traceEvents"], indent=1, ensure_ascii=False) + "\n")
    expected = rows_of(read_kineto(A100_TRACE), "operation", "name", "start_time", "time", "stream")
    for size in (1, 17, 4096, 2**22):
        monkeypatch.setattr("whatif.profiles.kineto._CHUNK", size)
        assert rows_of(read_profile(plain), "operation", "name", "start_time", "time", "stream") == expected


def test_kernels_of_rocprof_are_those_of_the_file_and_the_device_is_in_another():
    with TIMESTAMPS.open() as file:
        rows = list(csv.DictReader(file))
    profile = read_rocprof(TIMESTAMPS)
    times = [int(row["End_Timestamp"]) - int(row["Start_Timestamp"]) for row in rows]
    name = "vecCopy(double*, double*, double*, int, int) [clone .kd]"
    assert summed(profile, operation="kernel", name=name, device=2.0)[::2] == (3, sum(times))
    ((number, name, *figures),) = profile.devices.rows()
    assert (number, name) == (2, "MI200")
    # One of the two chips of an MI250: 1638 GB/s, 22.6 Tflop/s of vectors, 104 compute units, 8 MiB of L2.
    assert_allclose(figures[:5], [1638e9, 22.63e12, 22.63e12, 104, 1.7e9], rtol=1e-3, atol=0)
    assert figures[5:] == [None, 8 * 2**20]


RESULTS = (
    '"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","DispatchNs","BeginNs","EndNs",'
    '"CompleteNs","DurationNs"\n'
    '0,"add(float*, int) [clone .kd]",1,3,0,9,9,64,64,100,200,260,300,60\n1,"add",1,3,0,9,9,64,64,100,120,150,300,30\n'
)
KERNEL_TRACE = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    '"KERNEL_DISPATCH","Agent 4",1,2,"add(float*, int)",7,1000,1400\n'
)
COPY_TRACE = (
    '"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp",'
    '"End_Timestamp"\n'
    '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",2,"Agent 0","Agent 4",1,900,950\n'
    '"MEMORY_COPY","DEVICE_TO_HOST",2,"4",0,1,1500,1600\n"MEMORY_COPY","DEVICE_TO_DEVICE",2,4,5,1,1700,1900\n'
    '"MEMORY_COPY","DEVICE_TO_DEVICE",2,4,4,1,1701,1900\n"MEMORY_COPY","HOST_TO_HOST",2,0,0,1,1800,1900\n'
)
AGENTS = (
    '"Node_Id","Logical_Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Name","Product_Name"\n'
    '0,0,"CPU",48,3700,"AMD EPYC","AMD EPYC"\n4,4,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'
)


def test_results_of_the_old_rocprof_are_read(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(RESULTS)
    profile = read_profile(path)
    assert rows_of(profile, "name", "stream", "device") == [("add", 3, 1), ("add(float*, int) [clone .kd]", 3, 1)]
    assert_allclose(profile.operations.columns["start_time"].values, [0, 80e-9], rtol=1e-12, atol=0)
    assert_allclose(profile.operations.columns["time"].values, [30e-9, 60e-9], rtol=1e-12, atol=0)


@pytest.mark.parametrize("given", ["7_kernel_trace.csv", "7_memory_copy_trace.csv"])
def test_kernels_and_copies_of_rocprofv3_are_one_profile(tmp_path, given):
    for name, text in (("kernel_trace", KERNEL_TRACE), ("memory_copy_trace", COPY_TRACE), ("agent_info", AGENTS)):
        (tmp_path / f"7_{name}.csv").write_text(text)
    profile = read_profile(tmp_path / given)
    assert rows_of(profile, "operation", "direction", "memory", "device", "stream") == [
        ("copy", READ, "unknown", 4, 2), ("kernel", "", "", 4, 2), ("copy", WRITE, "unknown", 4, 2),
        ("copy", PEER, "device", 4, 2), ("copy", INSIDE, "device", 4, 2),
    ]  # fmt: skip
    assert np.isnan(profile.operations.columns["message_size"].values).all()
    message = profile.operations.notes["warnings"]
    assert "neither sizes of copies" in message
    assert "1 of 6 operations left out" in message
    ((number, name, _, single, double, count, *_),) = profile.devices.rows()
    assert (number, name, count) == (4, "AMD Instinct MI300X", 304)
    assert_allclose([single, double], [163.4e12, 81.7e12], rtol=1e-3, atol=0)


def test_the_file_is_left_as_it_is_and_read_while_another_program_holds_it(tmp_path):
    path = tmp_path / "p.nvvp"
    path.write_bytes(LAMMPS.read_bytes())
    before = path.stat().st_mtime_ns
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert len(read_profile(path).operations) == len(read_profile(LAMMPS).operations)
        assert {each.name for each in tmp_path.iterdir()} <= {"p.nvvp", "p.nvvp-journal"}
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (LAMMPS.read_bytes(), before)


def test_changes_outside_of_the_file_are_a_warning(tmp_path):
    path = written(tmp_path / "p.sqlite", "PRAGMA journal_mode = WAL;", NSYS, KERNELS)
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.executescript(f"{FILLS} INSERT INTO {KINDS}KERNEL VALUES (30, 31, 0, 1, 7, 90, 16777216, 4, 5, NULL);")
        other.commit()
        profile = read_profile(path)
    assert len(profile.operations) == 1
    assert (
        "p.sqlite-wal exists, so it is being written or was not closed: its changes were not read"
        in (profile.operations.notes["warnings"])
    )


def test_a_link_to_a_database_with_odd_characters_is_read(tmp_path):
    path = tmp_path / "50% of #1?.nvvp"
    path.symlink_to(LAMMPS)
    assert len(read_profile(path).operations) == len(read_profile(LAMMPS).operations)


NVPROF = (
    f"CREATE TABLE StringTable (_id_, value); CREATE TABLE {KINDS}MEMCPY (copyKind, srcKind, dstKind, flags, bytes,"
)
NVPROF += " start, end, deviceId, streamId);"
TRACE = events_of(event("kernel", "k", 1, 2), event("kernel", "k", 3, 2))
DEEP = '{"traceEvents": ' + "[" * 200_000


def spaces_packed():
    """A trace of 70 MB, packed: half a second that workers without this test need not spend."""
    return gzip.compress(b'{"traceEvents": [' + b" " * 70_000_000)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.nvvp", b"", "it is empty"),
        ("page.json", b"<!DOCTYPE html><html>404</html>", "a web page"),
        ("secret.sqlite", bytes(range(256)) * 40, "binary, encrypted or of another format"),
        ("run.nsys-rep", b"\x00\x01binary", "nsys export --type sqlite"),
        ("notes.txt", b"two kernels, one copy\n", "text or of another format"),
        ("packed.gz", gzip.compress(LAMMPS.read_bytes()), "packed with gzip; unpack it first"),
        ("cut.nvvp", LAMMPS.read_bytes()[:40_000], "damaged or cut off: .*it has 40,000 of 75,776 B"),
        ("cut.nvvp", LAMMPS.read_bytes()[:60], "damaged or cut off"),
        ("pages.nvvp", LAMMPS.read_bytes()[:1024] + b"\xa5" * 74_752, "damaged or cut off"),
        ("name.nvvp", LAMMPS.read_bytes().replace(b"tableVersionVersion", b"tableVers\xe8onVersion"), "damaged or cut"),
        ("other.sqlite", "CREATE TABLE a (b);", "not a profile: its tables are `a`"),
        ("none.sqlite", NSYS.replace(f"{KINDS}MEMCPY", "a"), "no kernel, copy or fill of a GPU was recorded"),
        ("none.sqlite", NSYS, "holds no kernels, copies or fills"),
        ("none.nvvp", NVPROF, "holds no kernels, copies or fills"),
        ("column.nvvp", NVPROF.replace(" bytes,", ""), "has no column bytes"),
        ("null.nvvp", f"{NVPROF} INSERT INTO {KINDS}MEMCPY VALUES (1, 1, 3, 0, NULL, 1, 2, 0, 7);", "not a whole"),
        ("word.nvvp", f"{NVPROF} INSERT INTO {KINDS}MEMCPY VALUES (1, 1, 3, 0, 'x', 1, 2, 0, 7);", "not a whole"),
        ("back.nvvp", f"{NVPROF} INSERT INTO {KINDS}MEMCPY VALUES (1, 1, 3, 0, 8, 2, 1, 0, 7);", "none of its op"),
        ("a.json", b'{"a": 1}', "JSON, but not a trace"),
        ("a.json", b'{"traceEvents": []}', "holds no kernels, copies or fills"),
        ("a.json", b'{"traceEvents": [\n{"ph": "X"},\n{"ph" "X"}]}', "a.json:3:1: no JSON, or cut off"),
        ("a.json", TRACE.encode()[:-30], "a.json:1:1: no JSON, or cut off"),
        ("a.json", TRACE.encode()[:-2], "the text is cut off"),
        ("a.json", DEEP.encode(), "nested too deeply|no JSON"),
        ("a.json.gz", gzip.compress(TRACE.encode() * 2000)[:-20], "packed file is damaged or cut off after"),
        ("a.json.gz", spaces_packed, "larger than 64 MiB when unpacked"),
        ("a.csv", RESULTS.encode()[:170], "holds no kernels.*may be cut off, left out"),
        ("a.csv", RESULTS.replace(",300,30\n", "\n").encode(), "a.csv:3:1: 12 values where the heading has 14"),
        ("a.csv", RESULTS.replace(",120,", ",1.2E+14,").encode(), "a.csv:3:1: .*`1.2E.14`.* rounded by a spreadsheet"),
        ("a.csv", RESULTS.replace(",120,", f",{2**63},").encode(), "a.csv:3:1: .* is not a whole number"),
        ("a.csv", KERNEL_TRACE.replace("Agent 4", "Agent X").encode(), "a.csv:2:1: .*`Agent X` is not a whole number"),
        ("a.csv", KERNEL_TRACE.replace("Correlation_Id", "Counter_Name").encode(), "each kernel once for each counter"),
        ("a.csv", f"{KERNEL_TRACE}\"{'x' * 200_000}\n".encode(), "no CSV: field larger"),
    ],
    ids=lambda value: "content" if isinstance(value, bytes) else None,
)  # fmt: skip
def test_other_files_are_refused_with_the_reason(tmp_path, name, content, message):
    path = tmp_path / name
    if callable(content):
        path.write_bytes(content())
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        written(path, content)
    with pytest.raises(InvalidFileError, match=message):
        read_profile(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.nvvp", tmp_path):
        for function in (read_profile, is_profile):
            with pytest.raises(InvalidFileError, match="cannot be read"):
                function(path)


def test_a_last_row_without_a_line_end_is_left_out(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(RESULTS + '2,"add",1,3,0,9,9,64,64,100,400,450,500,5')
    profile = read_profile(path)
    assert len(profile.operations) == 2
    assert "may be cut off" in profile.operations.notes["warnings"]


def test_more_operations_than_are_read_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("whatif.profiles.kineto.MOST_OPERATIONS", 1)
    monkeypatch.setattr("whatif.profiles.rocprof.MOST_OPERATIONS", 1)
    (tmp_path / "a.json").write_text(TRACE)
    (tmp_path / "a.csv").write_text(RESULTS)
    for name in ("a.json", "a.csv"):
        with pytest.raises(InvalidFileError, match=r"more than 1 (operations|rows)"):
            read_profile(tmp_path / name)
    with open_database(LAMMPS) as database, pytest.raises(InvalidFileError, match="more than 5 rows"):
        database.integers(f"{KINDS}MEMCPY", {"bytes": None}, most=5)


def damaged(content, changes, length):
    changed = bytearray(content)
    for place, value in changes:
        changed[place % len(changed)] = value
    return bytes(changed[: max(1, int(length * len(changed)))])


SMALL = {
    "p.nvvp": LAMMPS.read_bytes(), "p.sqlite": SAXPY.read_bytes(), "p.json": TRACE.encode(),
    "p.json.gz": MI250_TRACE.read_bytes(), "p.csv": KERNEL_TRACE.encode() * 3,
    "p_memory_copy_trace.csv": COPY_TRACE.encode(),
}  # fmt: skip


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(SMALL)),
    st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=30),
    st.sampled_from([1.0, 1.0, 1.0, 0.9, 0.3]),
)
@example("p.nvvp", [(18, 3)], 1.0)
def test_damaged_profiles_are_read_or_refused(tmp_path, name, changes, length):
    path = tmp_path / name
    path.write_bytes(damaged(SMALL[name], changes, length))
    with contextlib.suppress(InvalidFileError):
        is_profile(path)
    with contextlib.suppress(InvalidFileError):
        profile = read_profile(path)
        assert (profile.operations.columns["time"].values >= 0).all()
        assert (np.diff(profile.operations.columns["start_time"].values) >= 0).all()


VALUES = st.one_of(
    st.integers(-2, 20), st.integers(-(2**63), 2**63 - 1), st.sampled_from([ONE_PROCESS, 2**62, 2**63 - 1]), st.none()
)
ODD = st.one_of(VALUES, st.floats(), st.text(max_size=5), st.binary(max_size=5))


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(["nvprof", "nsys"]), st.sampled_from([VALUES, VALUES, ODD]))
def test_any_values_in_the_tables_are_read_or_refused(tmp_path, data, tool, values):
    tables = {
        "MEMCPY": "copyKind, srcKind, dstKind, flags, bytes, start, end, deviceId, streamId, correlationId, globalPid",
        "MEMSET": "bytes, start, end, deviceId, streamId, flags, memoryKind, memKind, correlationId, globalPid",
        "KERNEL": "start, end, deviceId, streamId, name, demangledName",
        "RUNTIME": "globalTid, correlationId, nameId",
        "DEVICE": "id, globalMemoryBandwidth, coreClockRate, numMultiprocessors, computeCapabilityMajor, name",
    }
    gpus = {"TARGET_INFO_GPU": "id, name, memoryBandwidth, clockRate, smCount, computeMajor, computeMinor"}
    texts = {"StringTable" if tool == "nvprof" else "StringIds": "_id_, value, id"}
    path = tmp_path / "p.sqlite"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for table, columns in ({f"{KINDS}{name}": columns for name, columns in tables.items()} | gpus | texts).items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
            width = columns.count(",") + 1
            rows = data.draw(st.lists(st.tuples(*[values] * width), max_size=3))
            connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", rows)
        connection.commit()
    with contextlib.suppress(InvalidFileError):
        profile = read_profile(path)
        assert (profile.operations.columns["time"].values >= 0).all()
        assert list(profile.operations.rows())
        assert list(profile.devices.rows())
