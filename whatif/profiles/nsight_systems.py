"""Nsight Systems: profiles as `nsys export --type sqlite FILE` or `nsys profile --export sqlite` writes them.

Times in ns since the session began, sizes in bytes, names by number in `StringIds`. Kernels are in
`CUPTI_ACTIVITY_KIND_KERNEL`, copies in `_MEMCPY`, fills in `_MEMSET`, calls of the runtime in `_RUNTIME`, GPUs in
`TARGET_INFO_GPU` (bandwidth in B/s, clock in Hz). Up to schema 2 all tables exist; from 3 only those with rows do, and
`ENUM_*` tables name the numbers. Kinds of copies are numbered as by CUPTI, kinds of memory from 0 (pageable).
Source: NVIDIA, Nsight Systems User Guide, "Exporter SQLite Schema"; schemas of 2022.2 (2.9.1) and 2024.5 (3.13.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.importers.sqlite import Database, newest_known, refused
from whatif.profiles.profile_data import (
    COPY,
    COPY_DIRECTIONS,
    DIRECTIONS,
    FILL,
    KERNEL,
    MEMORY_KINDS,
    OperationBatch,
    Profile,
    copy_memories,
    cuda_peaks,
    device_table,
    looked_up,
    matched,
    named,
    operation_table,
    plain_memory,
    touches_symbol,
)

NEWEST_VERSION: Final = (3, 13)
"""The newest schema that is known."""

_PREFIX: Final = "CUPTI_ACTIVITY_KIND_"
_ACTIVITIES: Final = ("KERNEL", "MEMCPY", "MEMSET")
_TIMES: Final[Mapping[str, int | None]] = {"start": None, "end": None, "deviceId": 0, "streamId": 0}
_KEYS: Final = {"correlationId": -1, "globalPid": -1}
_GPU_FIELDS: Final = dict.fromkeys(
    ("id", "memoryBandwidth", "totalMemory", "l2CacheSize", "clockRate", "smCount", "computeMajor", "computeMinor"), 0
)
_MEMORY_KINDS: Final = (*MEMORY_KINDS[1:], "unknown")
_MOST_KINDS: Final = 1000


def is_nsight_systems(database: Database) -> bool:
    """Whether a database has the tables of an export of Nsight Systems."""
    return "StringIds" in database.tables


def nsight_systems_profile(database: Database) -> Profile:
    """Kernels, copies and fills of an export of Nsight Systems, and its GPUs.

    A copy or fill is asynchronous where the call that started it is named so (`cudaMemcpyAsync_v3020`). Raise
    `InvalidFileError` for a damaged export, and for one without activities of a GPU.
    """
    if not any(f"{_PREFIX}{kind}" in database.tables for kind in _ACTIVITIES):
        raise refused(database, "no kernel, copy or fill of a GPU was recorded; `nsys profile --trace=cuda` does")
    notes, names = _notes(database), database.texts("StringIds", "id", "value")
    operations = operation_table(list(_parts(database, names)), database.name, notes, database.warnings)
    return Profile(operations, device_table(_devices(database), operations))


def _notes(database: Database) -> dict[str, str]:
    stated = {
        **database.pairs("META_DATA_EXPORT", "name", "value"),
        **database.pairs("EXPORT_META_DATA", "name", "value"),
    }
    version = stated.get("EXPORT_SCHEMA_VERSION", "")
    newest_known(database, version, NEWEST_VERSION)
    if count := len(database.integers(f"{_PREFIX}GRAPH_TRACE", {"start": 0})["start"]):
        database.warnings.append(
            f"{database.name}: {count} CUDA graphs were recorded as a whole, without their kernels and copies;"
            " `nsys profile --cuda-graph-trace=node` records these"
        )
    return {"tool": "Nsight Systems", "version": version}


def _parts(database: Database, names: Mapping[int, str]) -> Iterator[OperationBatch]:
    kernels, copies, fills = (_activities(database, kind) for kind in _ACTIVITIES)
    _tell_processes(database)
    yield OperationBatch(KERNEL, **_times(kernels), name=named(names, kernels["demangledName"]))
    calls = _Calls(database, names)
    labels = _enumeration(database, "ENUM_CUDA_MEM_KIND") or _MEMORY_KINDS
    kinds = [label if label in MEMORY_KINDS else "unknown" for label in labels]
    direction = _directions(database, copies["copyKind"])
    source, target = (looked_up(kinds, copies[end], "unknown") for end in ("srcKind", "dstKind"))
    memory, is_symbol = copy_memories(direction, source, target)
    # Pages that the driver moves by itself have no kinds of memory.
    memory[(copies["copyKind"] > 10) & (memory == "unknown")] = "managed"
    yield OperationBatch(COPY, **_times(copies), direction=direction, memory=memory, is_symbol=is_symbol,
               message_size=copies["bytes"], is_asynchronous=calls.are_asynchronous(copies))  # fmt: skip
    kind = looked_up(kinds, fills["memKind"], "unknown")
    yield OperationBatch(FILL, **_times(fills), memory=plain_memory(kind), is_symbol=touches_symbol(kind),
               message_size=fills["bytes"], is_asynchronous=calls.are_asynchronous(fills))  # fmt: skip


_FIELDS: Final[Mapping[str, Mapping[str, int | None]]] = {
    "KERNEL": {"demangledName": -1},
    "MEMCPY": {**_KEYS, "bytes": None, "copyKind": None, "srcKind": -1, "dstKind": -1},
    "MEMSET": {**_KEYS, "bytes": None, "memKind": -1},
}


def _activities(database: Database, kind: str) -> dict[str, NDArray[np.int64]]:
    return database.integers(f"{_PREFIX}{kind}", {**_TIMES, **_FIELDS[kind]}, what="operations of one kind")


def _times(found: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    return {name: found[field] for name, field in zip(("start", "end", "device", "stream"), _TIMES, strict=True)}


def _tell_processes(database: Database) -> None:
    processes = {number for kind in _ACTIVITIES for number in database.distinct(f"{_PREFIX}{kind}", "globalPid")}
    if len(processes) > 1:
        database.warnings.append(
            f"{database.name}: operations of {len(processes)} processes, whose devices and streams may share numbers"
        )


def _enumeration(database: Database, table: str) -> list[str]:
    """Names of the numbers of an enumeration, if the file has them."""
    labels = {key: text for key, text in database.texts(table, "id", "label").items() if 0 <= key < _MOST_KINDS}
    return [labels.get(number, "").lower() for number in range(max(labels, default=-1) + 1)]


_LABELS: Final = {"host": "host", "device": "device", "array": "device", "peer": "peer"}


def _directions(database: Database, kinds: NDArray[np.int64]) -> NDArray[Any]:
    labels = _enumeration(database, "ENUM_CUDA_MEMCPY_OPER")
    words = [_direction(label) for label in labels] or COPY_DIRECTIONS
    return looked_up(words, kinds)


def _direction(label: str) -> str:
    """The direction of a label such as `host-to-device` or `unified device-to-host`."""
    source, _, target = label.removeprefix("unified ").partition("-to-")
    return DIRECTIONS.get((_LABELS.get(source, ""), _LABELS.get(target, "")), "")


class _Calls:
    """The calls that copy or fill, found by process and number."""

    def __init__(self, database: Database, names: Mapping[int, str]) -> None:
        wanted = [key for key, text in names.items() if "Memcpy" in text or "Memset" in text]
        fields = {"correlationId": -1, "globalTid": -1, "nameId": -1}
        found = database.integers(f"{_PREFIX}RUNTIME", fields, what="calls", where=("nameId", wanted))
        asynchronous = [key for key, text in names.items() if "Async" in text]
        self._keys = _keys(found["globalTid"], found["correlationId"])
        self._are_asynchronous = np.isin(found["nameId"], asynchronous).astype(np.float64)

    def are_asynchronous(self, found: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float64]:
        """1 or 0 for each operation, NaN without a known call."""
        return matched(_keys(found["globalPid"], found["correlationId"]), self._keys, self._are_asynchronous)


def _keys(process: NDArray[np.int64], correlation: NDArray[np.int64]) -> NDArray[Any]:
    # The lowest 24 bits of a serialised identity are the thread; equal keys compare as pairs.
    keys = np.empty(len(process), dtype=np.complex128)
    keys.real, keys.imag = process >> 24, correlation
    return keys


def _devices(database: Database) -> Iterator[dict[str, Any]]:
    found = database.integers("TARGET_INFO_GPU", _GPU_FIELDS, most=1000, what="GPUs")
    names, numbers = database.texts("TARGET_INFO_GPU", "id", "name"), _ordinals(database)
    for number, bandwidth, memory, cache, clock, count, *capability in np.stack(list(found.values())).T.tolist():
        for device in numbers.get(number, [number]):
            yield {
                "device": device,
                "name": names.get(number, ""),
                "dram_bandwidth": bandwidth,
                "processor_count": count,
                "clock_rate": clock,
                "memory_size": memory,
                "l2_size": cache,
                **cuda_peaks((capability[0], capability[1]), count, clock),
            }


def _ordinals(database: Database) -> dict[int, list[int]]:
    """Numbers that programs use for each GPU, if the file has them."""
    found = database.integers("TARGET_INFO_CUDA_DEVICE", {"gpuId": -1, "cudaId": -1}, most=100_000, what="devices")
    numbers: dict[int, list[int]] = {}
    for gpu, device in zip(found["gpuId"].tolist(), found["cudaId"].tolist(), strict=True):
        numbers.setdefault(gpu, []).append(device)
    return numbers
