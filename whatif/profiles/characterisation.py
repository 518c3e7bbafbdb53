"""Characterisation of a profile, after AHEAD (Abdelhafez et al., Table I, Fig. 1, lesson 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.profiles.profile_data import COPY, FILL, INSIDE, KERNEL, Profile
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, ONE, SECOND

SIZE_EDGES: Final = (0.0, *(10.0**power for power in range(1, 10)))
"""Lower ends in B of the decades that copies are sorted into."""
_LABELS: Final = (
    "< 10 B", "10 B to 100 B", "100 B to 1 kB", "1 kB to 10 kB", "10 kB to 100 kB", "100 kB to 1 MB", "1 MB to 10 MB",
    "10 MB to 100 MB", "100 MB to 1 GB", ">= 1 GB",
)  # fmt: skip
CLASS: Final = ("operation", "direction", "memory")
"""Columns that distinguish classes of operations."""


def characterise(profile: Profile) -> Mapping[str, Table]:
    """Tables of a profile by name, except those without rows: `totals`, `classes`, `sizes`, `symbols`,
    `streams`, `kernels`."""
    operations = profile.operations
    tables = {
        "totals": totals(operations),
        "classes": class_table(operations),
        "sizes": size_distribution(operations),
        "symbols": symbol_copies(operations),
        "streams": stream_table(operations),
        "kernels": kernel_table(operations),
    }
    return {name: table for name, table in tables.items() if len(table)}


def totals(operations: Table) -> Table:
    """AHEAD's Table I, one row: time of kernels and of copies in s, share of the copies in both, number of copies.

    Fills, which AHEAD does not count, have their own columns; the share is NaN without kernels and copies.
    """
    kind, time = _values(operations, "operation"), _values(operations, "time")
    spent = {name: float(time[kind == name].sum()) for name in (KERNEL, COPY, FILL)}
    count = {name: float((kind == name).sum()) for name in (KERNEL, COPY, FILL)}
    row = (
        spent[KERNEL], spent[COPY], _share(spent[COPY], spent[KERNEL] + spent[COPY]), count[COPY], count[KERNEL],
        spent[FILL], count[FILL],
    )  # fmt: skip
    kinds = {
        "kernel_time": SECOND, "transfer_time": SECOND, "transfer_fraction": ONE, "transfer_count": ONE,
        "kernel_count": ONE, "fill_time": SECOND, "fill_count": ONE,
    }  # fmt: skip
    return Table.of_rows(kinds, [row])


def class_table(operations: Table) -> Table:
    """Operations by kind, direction and memory: number, bytes, time, share of all the time, bytes a second."""
    whole = float(_values(operations, "time").sum())
    rows = []
    for words, chosen in groups(operations, CLASS):
        size, time = _values(operations, "message_size")[chosen], float(_values(operations, "time")[chosen].sum())
        total = known_sum(size)
        asynchronous = float(_values(operations, "is_asynchronous")[chosen].sum())
        rows.append((*words, len(chosen), total, time, _share(time, whole), _share(total, time), asynchronous))
    kinds = {
        "operation": None, "direction": None, "memory": None, "count": ONE, "total_size": BYTE, "time": SECOND,
        "time_fraction": ONE, "bandwidth": BYTE_PER_SECOND, "asynchronous_count": ONE,
    }  # fmt: skip
    return Table.of_rows(kinds, rows)


def size_distribution(operations: Table) -> Table:
    """AHEAD's Fig. 1: the shares of the decades of sizes in the number (1a) and in the time (1b) of the copies.

    First over all copies, then for each direction and memory; the figure's own bins are not printed in the paper,
    which names `< 10 B` and `> 1 MB`. Shares are of the copies of the row's class whose size is known.
    """
    rows = []
    copies = operations.at(_values(operations, "operation") == COPY)
    every = [(("", ""), np.arange(len(copies)))]
    for words, chosen in [*every, *groups(copies, ("direction", "memory"))]:
        size, time = (_values(copies, name)[chosen] for name in ("message_size", "time"))
        rows += [(*words, *row) for row in _decades(size, time)]
    kinds = {
        "direction": None, "memory": None, "message_size": None, "count": ONE, "count_fraction": ONE, "time": SECOND,
        "time_fraction": ONE,
    }  # fmt: skip
    return Table.of_rows(kinds, rows)


def size_labels(size: FloatArray) -> NDArray[Any]:
    """Decade of each size in B as text; empty for NaN."""
    place = np.searchsorted(SIZE_EDGES, size, side="right") - 1
    return np.where(np.isfinite(size), np.array(_LABELS, dtype=object)[np.minimum(place, len(_LABELS) - 1)], "")


def _decades(size: FloatArray, time: FloatArray) -> list[tuple[Any, ...]]:
    known = np.isfinite(size)
    place = np.searchsorted(SIZE_EDGES, size[known], side="right") - 1
    count = np.bincount(place, minlength=len(_LABELS)).astype(np.float64)
    spent = np.bincount(place, time[known], minlength=len(_LABELS))
    return [
        (_LABELS[i], float(count[i]), _share(count[i], count.sum()), float(spent[i]), _share(spent[i], spent.sum()))
        for i in np.flatnonzero(count).tolist()
    ]


def symbol_copies(operations: Table) -> Table:
    """Copies and fills that touch variables of the program on the device, by kind and direction.

    Shares are of all copies in the profile: AHEAD finds device-to-device symbol copies to be 42 % of the copies and
    38 % of their time in QMCPACK (lesson 3). No rows if there are none.
    """
    is_copy = _values(operations, "operation") == COPY
    time = _values(operations, "time")
    count, spent = float(is_copy.sum()), float(time[is_copy].sum())
    touched = np.flatnonzero(_values(operations, "is_symbol") > 0)
    symbols = operations.at(touched)
    rows = []
    for words, chosen in groups(symbols, ("operation", "direction")):
        its_time = float(_values(symbols, "time")[chosen].sum())
        of_copies = words[0] == COPY
        shares = (_share(len(chosen), count), _share(its_time, spent)) if of_copies else (np.nan, np.nan)
        rows.append((*words, words[1] == INSIDE, len(chosen), shares[0], its_time, shares[1]))
    kinds = {
        "operation": None, "direction": None, "is_device_to_device": ONE, "count": ONE, "count_fraction": ONE,
        "time": SECOND, "time_fraction": ONE,
    }  # fmt: skip
    return Table.of_rows(kinds, rows)


def stream_table(operations: Table) -> Table:
    """Operations by device and stream: number and time of kernels, copies and fills."""
    rows = []
    for words, chosen in groups(operations, ("device", "stream")):
        kind, time = _values(operations, "operation")[chosen], _values(operations, "time")[chosen]
        parts = [part for name in (KERNEL, COPY, FILL) for part in ((kind == name).sum(), time[kind == name].sum())]
        rows.append((*words, *map(float, parts)))
    counted = {
        f"{name}_{what}": unit for name in (KERNEL, COPY, FILL) for what, unit in (("count", ONE), ("time", SECOND))
    }
    return Table.of_rows({"device": ONE, "stream": ONE, **counted}, rows)


def kernel_table(operations: Table, most: int = 20) -> Table:
    """Kernels with the most time: number of launches, time, share of the time of all kernels, mean time."""
    kernels = operations.at(_values(operations, "operation") == KERNEL)
    time = _values(kernels, "time")
    found = [(words[0], chosen, float(time[chosen].sum())) for words, chosen in groups(kernels, ("name",))]
    longest = sorted(found, key=lambda kernel: -kernel[2])[:most]
    whole = float(time.sum())
    rows = [(name, len(chosen), spent, _share(spent, whole), spent / len(chosen)) for name, chosen, spent in longest]
    kinds = {"kernel": None, "launch_count": ONE, "time": SECOND, "time_fraction": ONE, "mean_time": SECOND}
    return Table.of_rows(kinds, rows)


def groups(table: Table, names: Sequence[str]) -> Iterable[tuple[tuple[Any, ...], NDArray[np.intp]]]:
    """Groups of rows that are equal in some columns, in the order of their first rows: values, and row numbers."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, words in enumerate(zip(*(_values(table, name).tolist() for name in names), strict=True)):
        found.setdefault(words, []).append(row)
    return [(words, np.array(rows, dtype=np.intp)) for words, rows in found.items()]


def _values(table: Table, name: str) -> NDArray[Any]:
    return table.columns[name].values


def known_sum(values: FloatArray) -> float:
    """Sum of the known values; NaN if none is known."""
    return float(np.nansum(values)) if np.isfinite(values).any() else float("nan")


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float("nan")
