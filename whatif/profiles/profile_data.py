"""Content of GPU profiles, independent of the tool: operations on a time line, and the devices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.table import Column, Table, noted
from whatif.units import BYTE, BYTE_PER_SECOND, FLOP_PER_SECOND, NANOSECOND, ONE, PER_SECOND, SECOND, Dimension

OPERATION_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "operation": None,
    "name": None,
    "direction": None,
    "memory": None,
    "is_symbol": ONE,
    "is_asynchronous": ONE,
    "message_size": BYTE,
    "start_time": SECOND,
    "time": SECOND,
    "stream": ONE,
    "device": ONE,
}
"""Columns of the operations of a profile, in the order in which they started.

`operation` is `kernel`, `copy` or `fill`; `name` that of a kernel. Of copies, `direction` and `memory` are as in
`whatif.profiles.nvprof.COPY_COLUMNS`; of fills, `memory` is what is filled; both are empty for kernels. `is_symbol` is
1 where a copy or fill touches a variable of the program on the device (static device memory). `is_asynchronous` is NaN
where the tool does not say. `message_size` is NaN for kernels; `start_time` counts from the first operation."""
DEVICE_COLUMNS: Final[Mapping[str, Dimension | None]] = {
    "device": ONE,
    "name": None,
    "dram_bandwidth": BYTE_PER_SECOND,
    "peak_single_rate": FLOP_PER_SECOND,
    "peak_double_rate": FLOP_PER_SECOND,
    "processor_count": ONE,
    "clock_rate": PER_SECOND,
    "memory_size": BYTE,
    "l2_size": BYTE,
}
"""Columns of the devices of a profile; NaN if the tool does not report it. The peaks follow from multiprocessors, clock
and compute capability (a fused multiply-add counts two)."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """A profile: its operations with `OPERATION_COLUMNS` and the notes, its devices with `DEVICE_COLUMNS`."""

    operations: Table
    devices: Table

    @property
    def device_names(self) -> tuple[str, ...]:
        """Distinct names of the devices."""
        return tuple(dict.fromkeys(str(name) for name in self.devices.columns["name"].values if name))


KERNEL, COPY, FILL = "kernel", "copy", "fill"
READ, WRITE, INSIDE, PEER = "host_to_device", "device_to_host", "device_to_device", "peer_to_peer"
DIRECTIONS: Final = {
    ("host", "device"): READ, ("device", "host"): WRITE, ("device", "device"): INSIDE, ("peer", "peer"): PEER,
}  # fmt: skip
"""Directions of copies by their source and target."""
COPY_DIRECTIONS: Final = ("", READ, WRITE, READ, WRITE, INSIDE, INSIDE, INSIDE, INSIDE, "", PEER, READ, WRITE, INSIDE)
"""Directions by CUPTI's `copyKind`; an array is device memory in another layout; the last three are migrations of
managed memory. Copies from host to host and unknown ones have none."""
MEMORY_KINDS: Final = (
    "unknown", "pageable", "pinned", "device", "array", "managed", "device static", "managed static",
)  # fmt: skip
"""Kinds of memory by CUPTI's number; Nsight Systems counts from pageable, with unknown at the end."""
_MEMORIES: Final = {"array": "device", "device static": "device", "managed static": "managed"}

# Multiply-adds a clock, 32-bit and 64-bit, of a multiprocessor by compute capability. CUDA C++ Programming Guide,
# "Throughput of Native Arithmetic Instructions" (3.5: Tesla boards).
_CUDA_LANES: Final = {
    (3, 0): (192, 8), (3, 5): (192, 64), (3, 7): (192, 64), (5, 0): (128, 4), (5, 2): (128, 4), (5, 3): (128, 4),
    (6, 0): (64, 32), (6, 1): (128, 4), (6, 2): (128, 4), (7, 0): (64, 32), (7, 2): (64, 32), (7, 5): (64, 2),
    (8, 0): (64, 32), (8, 6): (128, 2), (8, 9): (128, 2), (9, 0): (128, 64), (10, 0): (128, 64), (12, 0): (128, 2),
}  # fmt: skip
# Of a compute unit by architecture: vector peaks of AMD's data sheets over compute units, clock and 2 (MI50 13.3 and
# 6.6 Tflop/s, MI100 23.1 and 11.5, MI250X 47.9 and 47.9, MI300X 163.4 and 81.7).
_AMD_LANES: Final = {"gfx906": (64, 32), "gfx908": (64, 32), "gfx90a": (64, 64), "gfx942": (128, 64)}
Rows = NDArray[np.intp]
"""Numbers of some operations."""
Texts = NDArray[Any] | str
Numbers = NDArray[Any] | float


@dataclass(frozen=True, slots=True, eq=False)
class OperationBatch:
    """Operations of one kind as a tool recorded them, in any order; times in ns since any epoch, sizes in B."""

    operation: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    name: Texts = ""
    direction: Texts = ""
    memory: Texts = ""
    message_size: Numbers = math.nan
    is_symbol: Numbers = 0.0
    is_asynchronous: Numbers = math.nan


def operation_table(
    parts: Sequence[OperationBatch], file: str, notes: Mapping[str, str], warnings: Sequence[str]
) -> Table:
    """The operations of all parts with `OPERATION_COLUMNS`, in the order of their starts.

    Copies without a direction and what ends before it starts or has a negative size are left out, with a warning.
    Raise `InvalidFileError` if nothing is left.
    """
    # The types of this module are also those of the explorer's page, which is shown without the readers.
    from whatif.importers.text import refuse

    parts = [part for part in parts if len(part.start)]
    if not parts:
        raise refuse(file, "; ".join(["it holds no kernels, copies or fills of a device", *warnings]))
    start, end = (np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "end"))
    columns = {name: _concatenated(parts, name, dimension) for name, dimension in OPERATION_COLUMNS.items()
               if name not in {"start_time", "time"}}  # fmt: skip
    good = (end >= start) & (start >= 0) & ~(columns["message_size"] < 0)
    good &= (columns["operation"] != COPY) | (columns["direction"] != "")
    if not good.any():
        raise refuse(file, "none of its operations has a start, an end, and a direction if it is a copy")
    order = np.flatnonzero(good)
    order = order[np.argsort(start[order], kind="stable")]
    # Differences of whole numbers first: the times themselves are beyond 2^53 ns.
    columns = {name: values[order] for name, values in columns.items()}
    columns["start_time"] = (start[order] - start[order[0]]) * NANOSECOND
    columns["time"] = (end[order] - start[order]) * NANOSECOND
    lost = len(good) - len(order)
    left_out = [f"{file}: {lost} of {len(good)} operations left out: no direction, size or duration"] if lost else []
    return Table(
        {name: Column(columns[name], dimension) for name, dimension in OPERATION_COLUMNS.items()},
        noted({**notes, "file": file}, [*warnings, *left_out]),
    )


def _concatenated(parts: Sequence[OperationBatch], name: str, dimension: Dimension | None) -> NDArray[Any]:
    kind = object if dimension is None else float
    return np.concatenate([np.full(len(part.start), getattr(part, name), dtype=kind) for part in parts])


def operation_kinds(operations: Table) -> NDArray[Any]:
    """Kind of each operation: `kernel`, `fill`, or the direction of a copy."""
    operation, direction = (operations.columns[name].values for name in ("operation", "direction"))
    return np.where(operation == COPY, direction, operation)


def device_table(rows: Iterable[Mapping[str, Any]], operations: Table) -> Table:
    """The devices with `DEVICE_COLUMNS`, first those of the rows, then those that only operations name.

    What a row does not state, and what it states as 0 or less, is NaN or an empty text.
    """
    from whatif.importers.rows import row_table

    found: dict[float, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(float(row["device"]), {**_UNKNOWN_DEVICE, **{key: _stated(row, key) for key in row}})
    for number in np.unique(operations.columns["device"].values).tolist():
        found.setdefault(number, {**_UNKNOWN_DEVICE, "device": number})
    return row_table(list(found.values()), DEVICE_COLUMNS, operations.notes)


_UNKNOWN_DEVICE: Final = {name: "" if dimension is None else math.nan for name, dimension in DEVICE_COLUMNS.items()}


def _stated(row: Mapping[str, Any], key: str) -> Any:
    value = row[key]
    return value if key in {"device", "name"} or value > 0 else math.nan


def cuda_peaks(capability: tuple[int, int], processor_count: float, clock_rate: float) -> dict[str, float]:
    """Peak rates in flop/s of an NVIDIA GPU: multiprocessors · lanes · 2 · clock; NaN for an unknown capability."""
    return _peaks(_CUDA_LANES.get(capability, (math.nan, math.nan)), processor_count, clock_rate)


def amd_peaks(architecture: str, processor_count: float, clock_rate: float) -> dict[str, float]:
    """Peak vector rates in flop/s of an AMD GPU (`gfx90a`): compute units · lanes · 2 · clock; NaN where unknown."""
    return _peaks(_AMD_LANES.get(architecture, (math.nan, math.nan)), processor_count, clock_rate)


def _peaks(lanes: tuple[float, float], processor_count: float, clock_rate: float) -> dict[str, float]:
    names = ("peak_single_rate", "peak_double_rate")
    return {name: processor_count * count * 2 * clock_rate for name, count in zip(names, lanes, strict=True)}


def places_in(heading: Sequence[str], known: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Place of each column in a heading, where it has one of several words; -1 for a missing column."""
    return {name: next((heading.index(word) for word in words if word in heading), -1) for name, words in known.items()}


def looked_up(words: Sequence[str], numbers: NDArray[np.int64], missing: str = "") -> NDArray[Any]:
    """The word of each number, `missing` for numbers that have none."""
    table = np.array([*words, missing], dtype=object)
    return table[np.where((numbers >= 0) & (numbers < len(words)), numbers, len(words))]


def named(texts: Mapping[int, str], numbers: NDArray[np.int64]) -> NDArray[Any]:
    """The text of each number, empty for numbers without one; equal numbers share one text."""
    known, places = np.unique(numbers, return_inverse=True)
    return np.array([texts.get(number, "") for number in known.tolist()], dtype=object)[places]


def matched(keys: NDArray[Any], known: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of each key, the first one where keys repeat; NaN for keys that are not known."""
    if not len(known):
        return np.full(len(keys), math.nan)
    known, first = np.unique(known, return_index=True)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, values[first][places], math.nan)


def copy_memories(
    direction: NDArray[Any], source: NDArray[Any], target: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Memory of the host's side of copies between two `MEMORY_KINDS`, and 1 where a symbol is touched."""
    memory = plain_memory(np.where(direction == READ, source, target))
    memory[(direction == INSIDE) | (direction == PEER)] = "device"
    return memory, np.maximum(touches_symbol(source), touches_symbol(target))


def plain_memory(kinds: NDArray[Any]) -> NDArray[Any]:
    """Kinds of memory without the difference between arrays, variables of the program and plain memory."""
    plain = kinds.copy()
    for kind, memory in _MEMORIES.items():
        plain[kinds == kind] = memory
    return plain


def touches_symbol(kinds: NDArray[Any]) -> NDArray[np.float64]:
    """1 where a kind of memory is that of variables of the program on the device."""
    return np.isin(kinds, ("device static", "managed static")).astype(np.float64)
