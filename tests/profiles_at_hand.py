"""Profiles for tests: made of rows, or of the released sweeps of copies."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from tests.paths import DATA
from whatif.profiles.profile_data import DEVICE_COLUMNS, OPERATION_COLUMNS, Profile
from whatif.table import Table

SWEEP = DATA / "ahead" / "memcpy_sweep.csv"
DIRECTIONS = {"HtoD": "host_to_device", "DtoH": "device_to_host", "DtoD": "device_to_device"}
V100 = {"device": 0.0, "name": "Tesla V100-SXM2-16GB", "dram_bandwidth": 898e9, "peak_double_rate": 7.8336e12}


def profile(rows: Sequence[dict[str, Any]], devices: Sequence[dict[str, Any]] = (), **notes: str) -> Profile:
    """A profile of rows with some columns of operations; what they leave out is empty, 0 or NaN."""
    plain = {"operation": "copy", "is_symbol": 0.0, "stream": 7.0, "device": 0.0, "start_time": 0.0}
    empty = {name: "" if dimension is None else float("nan") for name, dimension in OPERATION_COLUMNS.items()}
    cells = [tuple(({**empty, **plain, **row}[name]) for name in OPERATION_COLUMNS) for row in rows]
    nothing = {name: "" if dimension is None else float("nan") for name, dimension in DEVICE_COLUMNS.items()}
    message = [tuple({**nothing, **device}[name] for name in DEVICE_COLUMNS) for device in devices]
    operations = Table.of_rows(OPERATION_COLUMNS, cells, notes)
    return Profile(operations, Table.of_rows(DEVICE_COLUMNS, message))


def copy(direction: str, memory: str, size: float, time: float, start: float = 0.0, **more: Any) -> dict[str, Any]:
    """A row of a copy."""
    return {"direction": direction, "memory": memory, "message_size": size, "time": time, "start_time": start, **more}


def kernel(time: float, start: float, name: str = "k", **more: Any) -> dict[str, Any]:
    """A row of a kernel."""
    return {"operation": "kernel", "name": name, "time": time, "start_time": start, **more}


def sweep(machine: str, direction: str, memory: str) -> Profile:
    """The copies of a machine in the released sweep, each once with its mean time, one after the other."""
    rows, start = [], 0.0
    with SWEEP.open() as file:
        for row in csv.DictReader(file):
            if (row["machine"], row["direction"], row["host_memory"]) == (machine, direction, memory):
                time = float(row["mean_time_ns"]) * 1e-9
                rows.append(copy(DIRECTIONS[direction], memory, float(row["message_size_B"]), time, start))
                start += time
    return profile(rows)
