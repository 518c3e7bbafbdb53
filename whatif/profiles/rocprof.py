"""rocprof, rocprofv3 and ROCm Compute Profiler: CSV files with a row for each kernel or copy, times in ns.

- rocprof (`rocprof --timestamp on`, `--stats`): `results.csv` with `KernelName`, `gpu-id`, `queue-id`, `BeginNs`,
  `EndNs`;
- rocprofv3 (`--kernel-trace --memory-copy-trace --output-format csv`): `.._kernel_trace.csv` with `Kernel_Name`,
  `Agent_Id` (`4` or `Agent 4`), `Queue_Id`, `Stream_Id`, `Start_Timestamp`, `End_Timestamp`;
  `.._memory_copy_trace.csv` with `Direction` (`HOST_TO_DEVICE`, `MEMORY_COPY_HOST_TO_DEVICE`), `Source_Agent_Id`,
  `Destination_Agent_Id`; devices in `.._agent_info.csv`. One of the first two means both if they are in one
  folder;
- ROCm Compute Profiler: `pmc_perf.csv` or `timestamps.csv`, names as in rocprofv3 but `GPU_ID`; devices in
  `sysinfo.csv`.

None of them states sizes of copies or the kind of the host's memory. Copies and fills that are done by kernels
(`__amd_rocclr_copyBuffer`) are kernels. Source: AMD, rocprofiler-sdk, "Using rocprofv3"; rocprofiler, user guide.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.sqlite import MOST_OPERATIONS
from whatif.importers.text import CUT_OFF, chunks, read_text, refuse
from whatif.profiles.profile_data import (
    COPY,
    INSIDE,
    KERNEL,
    PEER,
    READ,
    WRITE,
    OperationBatch,
    Profile,
    amd_peaks,
    device_table,
    operation_table,
    places_in,
)
from whatif.schema.toml import shown_path

_KERNEL_TRACE, _COPY_TRACE, _AGENTS = "kernel_trace.csv", "memory_copy_trace.csv", "agent_info.csv"
_HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "start": ("Start_Timestamp", "BeginNs"),
    "end": ("End_Timestamp", "EndNs"),
    "name": ("Kernel_Name", "KernelName"),
    "device": ("Agent_Id", "GPU_ID", "gpu-id"),
    "stream": ("Stream_Id", "Queue_Id", "Queue_ID", "queue-id"),
    "direction": ("Direction",),
    "source": ("Source_Agent_Id",),
    "target": ("Destination_Agent_Id",),
}
_DIRECTIONS: Final = {"HOST_TO_DEVICE": READ, "DEVICE_TO_HOST": WRITE, "DEVICE_TO_DEVICE": INSIDE}
_MEGA: Final = 1e6
_KIBI: Final = 1024
_LARGEST_TABLE: Final = 2**20
_Cells = dict[str, list[str]]


def read_rocprof(path: Path) -> Profile:
    """A profile of an AMD GPU from a CSV file, with the files next to it: kernels and copies, and the devices.

    Sizes of copies are NaN, the host's memory is `unknown`. Raise `InvalidFileError` for a file that is no such table,
    rows that are cut off, times that are no whole nanoseconds, or no operations.
    """
    file, warnings = shown_path(path), list[str]()
    parts = [part for each in _traces(path) for part in _parts(each, warnings)]
    if any(part.operation == COPY for part in parts):
        warnings.append(f"{file}: the tool states neither sizes of copies nor the kind of the host's memory")
    operations = operation_table(parts, file, {"tool": "rocprof"}, list(dict.fromkeys(warnings)))
    devices = np.unique(operations.columns["device"].values).tolist()
    return Profile(operations, device_table([*_agents(path), *_system(path, devices)], operations))


def is_rocprof(heading: str) -> bool:
    """Whether the first line of a file has the columns of kernels or of copies."""
    try:
        return _kind(next(csv.reader([heading]), [])) != ""
    except csv.Error:
        return False


def _traces(path: Path) -> list[Path]:
    """A file and its other half, kernels or copies of the same process."""
    for end, other in ((_KERNEL_TRACE, _COPY_TRACE), (_COPY_TRACE, _KERNEL_TRACE)):
        if path.name.endswith(end) and (other_file := path.with_name(path.name.removesuffix(end) + other)).is_file():
            return [path, other_file]
    return [path]


def _kind(heading: Sequence[str]) -> str:
    there = {name for name, place in places_in(heading, _HEADINGS).items() if place >= 0}
    if not {"start", "end"} <= there:
        return ""
    return KERNEL if "name" in there else COPY if {"direction", "source", "target"} <= there else ""


def _parts(path: Path, warnings: list[str]) -> Iterator[OperationBatch]:
    file, count = shown_path(path), 0
    names: dict[str, str] = {}
    for line, heading, rows in _blocks(path, file, warnings):
        kind = _kind(heading)
        _refuse_other(file, heading, kind)
        count += len(rows)
        if count > MOST_OPERATIONS:
            raise refuse(file, f"more than {MOST_OPERATIONS:,} rows: profile a shorter run")
        places = places_in(heading, _HEADINGS)
        cells = {name: [row[place] for row in rows] for name, place in places.items() if place >= 0}
        yield (_kernels if kind == KERNEL else _copies)(file, line, cells, names)


def _blocks(path: Path, file: str, warnings: list[str]) -> Iterator[tuple[int, list[str], list[list[str]]]]:
    """Blocks of rows, the heading with them and the line of the first."""
    heading, line = list[str](), 1
    for block in chunks(path):
        whole, end, rest = block.rpartition("\n")
        lines = whole.split("\n") if end else []
        if rest and heading:
            warnings.append(f"{file}: {CUT_OFF}")
        elif rest:
            lines.append(rest)
        rows = _rows(file, line, lines)
        if not heading and rows:
            heading, rows, line, lines = [word.strip() for word in rows[0]], rows[1:], line + 1, lines[1:]
        bad = next((number for number, row in enumerate(rows) if len(row) != len(heading)), -1)
        if bad >= 0:
            problem = f"{len(rows[bad])} values where the heading has {len(heading)} columns: cut off?"
            raise refuse(file, problem, line + bad)
        yield line, heading, rows
        line += len(lines)


def _rows(file: str, line: int, lines: Sequence[str]) -> list[list[str]]:
    reader = csv.reader(lines)
    try:
        return [row for row in reader if row]
    except csv.Error as error:
        raise refuse(file, f"no CSV: {error}", line + reader.line_num - 1) from None


def _refuse_other(file: str, heading: Sequence[str], kind: str) -> None:
    if "Counter_Name" in heading:
        raise refuse(file, f"it has each kernel once for each counter; give the `{_KERNEL_TRACE}` next to it", 1)
    if not kind:
        raise refuse(
            file,
            "no table of kernels or copies of rocprof: no columns `Kernel_Name` (or `Direction`), `Start_Timestamp` and"
            " `End_Timestamp`, nor `KernelName`, `BeginNs` and `EndNs`",
            1,
        )


def _kernels(file: str, line: int, cells: _Cells, names: dict[str, str]) -> OperationBatch:
    shared = np.array([names.setdefault(name, name) for name in cells["name"]], dtype=object)
    start, end, device, stream = (_integers(file, line, cells, name) for name in ("start", "end", "device", "stream"))
    return OperationBatch(KERNEL, start, end, device, stream, name=shared)


def _copies(file: str, line: int, cells: _Cells, _: dict[str, str]) -> OperationBatch:
    start, end, source, target, stream = (
        _integers(file, line, cells, name) for name in ("start", "end", "source", "target", "stream")
    )
    words = [_DIRECTIONS.get(word.removeprefix("MEMORY_COPY_"), "") for word in cells["direction"]]
    direction = np.array(words, dtype=object)
    direction[(direction == INSIDE) & (source != target)] = PEER
    memory = np.where((direction == READ) | (direction == WRITE), "unknown", "device").astype(object)
    device = np.where(direction == READ, target, source)
    return OperationBatch(COPY, start, end, device, stream, direction=direction, memory=memory)


def _integers(file: str, line: int, cells: _Cells, name: str) -> NDArray[np.int64]:
    if name not in cells:
        return np.zeros(len(cells["start"]), dtype=np.int64)
    convert: Callable[[str], int] = int if name in {"start", "end"} else _identity
    try:
        return np.fromiter(map(convert, cells[name]), dtype=np.int64, count=len(cells[name]))
    except (ValueError, OverflowError):
        bad = next(number for number, cell in enumerate(cells[name]) if not _is_integer(cell, convert))
        rounded = ": rounded by a spreadsheet?" if "E+" in cells[name][bad].upper() else ""
        problem = f"{_HEADINGS[name][0]}: `{cells[name][bad][:40]}` is not a whole number{rounded}"
        raise refuse(file, problem, line + bad) from None


@lru_cache(maxsize=1000)
def _identity(cell: str) -> int:
    """4 of `4` and of `Agent 4`."""
    return int(cell.rpartition(" ")[2])


def _is_integer(cell: str, convert: Callable[[str], int]) -> bool:
    try:
        return abs(convert(cell)) < 2**63
    except ValueError:
        return False


def _agents(path: Path) -> Iterator[dict[str, Any]]:
    """The devices that rocprofv3 writes next to its traces."""
    ends = [end for end in (_KERNEL_TRACE, _COPY_TRACE) if path.name.endswith(end)]
    for row in _table(path.with_name(path.name.removesuffix(ends[0]) + _AGENTS)) if ends else []:
        number = row.get("Logical_Node_Id") or row.get("Node_Id", "")
        if row.get("Agent_Type") == "GPU" and number.isdecimal():
            count, clock = _number(row, "Cu_Count"), _number(row, "Max_Engine_Clk_Fcompute") * _MEGA
            yield {
                "device": int(number),
                "name": row.get("Product_Name", ""),
                "processor_count": count,
                "clock_rate": clock,
                **amd_peaks(row.get("Name", ""), count, clock),
            }


def _system(path: Path, devices: Sequence[float]) -> Iterator[dict[str, Any]]:
    """Devices as ROCm Compute Profiler describes them, all identical."""
    for row in _table(path.with_name("sysinfo.csv"))[:1]:
        count, clock = _number(row, "cu_per_gpu"), _number(row, "max_sclk") * _MEGA
        known = {
            "name": row.get("gpu_model", ""),
            "dram_bandwidth": _number(row, "hbm_bw") * 1e9,
            "processor_count": count,
            "clock_rate": clock,
            "l2_size": _number(row, "gpu_l2") * _KIBI * _number(row, "num_xcd"),
            **amd_peaks(row.get("gpu_arch", ""), count, clock),
        }
        yield from ({"device": device, **known} for device in devices)


def _table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    rows = _rows(shown_path(path), 1, read_text(path, _LARGEST_TABLE).split("\n"))
    return [dict(zip(heading, row, strict=False)) for heading in rows[:1] for row in rows[1:]]


def _number(row: Mapping[str, str], name: str) -> float:
    try:
        return float(row.get(name, ""))
    except ValueError:
        return float("nan")
