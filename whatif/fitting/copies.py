"""Selection of rows of measured copies for the fit of a link."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.fitting.input_checks import FEWEST_SIZES, disagreement, refuse_invalid_numbers
from whatif.models.quantities import FloatArray
from whatif.table import Table
from whatif.units import BYTE, BYTE_PER_SECOND, SECOND, format_quantity

WAYS: Final = {"host_to_device": "read", "device_to_host": "write"}
"""Operation of the device on host memory, by direction."""
MEMORIES: Final = ("pinned", "pageable")
_NEEDED: Final = ("direction", "memory", "message_size", "time")
_FALL: Final = 0.9
_ABOVE: Final = 1.02
_UNLIKE: Final = 0.2
"""Relative difference of typical times of one size above which files are reported."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Typical times of the copies in one direction, from or to one kind of host memory, by increasing size."""

    direction: str
    memory: str
    message_size: FloatArray
    time: FloatArray
    mixed: str = ""
    """Differences of files that should agree; empty if they do."""

    @property
    def way(self) -> str:
        """Operation of the device on host memory: `read` or `write`."""
        return WAYS[self.direction]

    @property
    def words(self) -> str:
        """Memory and direction in words: `pinned, host to device`."""
        return f"{self.memory}, {self.direction.replace('_', ' ')}"


def copy_sets(table: Table, machine: str | None = None) -> tuple[Copies, ...]:
    """The copies of a table by direction and memory; raise `UsageError` for none, or too few sizes."""
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise UsageError(f"this is not a table of copies: it has no column `{missing[0]}`")
    values = table.arrays
    rows = _rows_of(values["machine"], machine) if "machine" in values else np.ones(len(table), dtype=bool)
    weight = np.ones(len(table))
    if "repetition_count" in values:
        weight = np.where(values["repetition_count"] > 0, values["repetition_count"], 1.0)
    found = []
    for direction in WAYS:
        for memory in MEMORIES:
            chosen = rows & (values["direction"] == direction) & (values["memory"] == memory)
            if chosen.any():
                size, time = values["message_size"][chosen], values["time"][chosen]
                copies = _typical(direction, memory, size, time, weight[chosen])
                files = values["file"][chosen] if "file" in values else np.full(len(size), "", dtype=object)
                found.append(replace(copies, mixed=_mixed(copies, files, size, time)))
    if not found:
        raise UsageError("there are no copies between host and device, from or to pinned or pageable memory")
    return tuple(found)


def doubts(copies: Copies, limit: float) -> Iterator[str]:
    """Warnings about implausible measured times; `limit` is the bandwidth of the link."""
    if copies.mixed:
        yield copies.mixed
    rate = float((copies.message_size / copies.time).max())
    if rate > _ABOVE * limit:
        fast, most = format_quantity(rate, BYTE_PER_SECOND), format_quantity(limit, BYTE_PER_SECOND)
        yield f"{copies.words}: measured {fast}, more than the {most} of the link: was it another link?"
    for (size, time), (larger, less) in pairwise(zip(copies.message_size, copies.time, strict=True)):
        if less < _FALL * time:
            sizes = f"{format_quantity(size, BYTE)} to {format_quantity(larger, BYTE)}"
            times = f"{format_quantity(time, SECOND)} to {format_quantity(less, SECOND)}"
            yield f"{copies.words}: the time falls from {times} where the size grows from {sizes}"


def _rows_of(machines: Any, machine: str | None) -> Any:
    names = list(dict.fromkeys(machines.tolist()))
    if machine is None and len(names) > 1:
        raise UsageError(f"the copies are of several machines, {', '.join(names)}: choose one")
    alike = [name for name in names if machine is None or str(name).casefold() == machine.casefold()]
    if not alike:
        raise UsageError(f"there are no copies of `{machine}`; the machines are {', '.join(names)}")
    return machines == (machine if machine in alike else alike[0])


def _mixed(copies: Copies, files: Any, size: FloatArray, time: FloatArray) -> str:
    good = np.isfinite(time) & (time > 0) & (size > 0)
    message = disagreement(files[good], {"message_size": size[good]}, time[good], _UNLIKE)
    return message and f"{copies.words}: {message}; are these one machine?"


def _typical(direction: str, memory: str, size: FloatArray, time: FloatArray, weight: FloatArray) -> Copies:
    """The median time of each size: the first copy into new pages takes several times as long as the others."""
    order = np.lexsort((time, size))
    order = order[np.isfinite(size[order]) & np.isfinite(time[order]) & (time[order] > 0) & (size[order] > 0)]
    refuse_invalid_numbers("the copies", size[order], time[order])
    sizes, start, place = np.unique(size[order], return_index=True, return_inverse=True)
    passed = np.cumsum(weight[order])
    share = (passed - (passed - weight[order])[start][place]) / np.bincount(place, weight[order], len(sizes))[place]
    upper = np.flatnonzero(share >= 0.5)
    middle = upper[np.unique(place[upper], return_index=True)[1]]
    copies = Copies(direction, memory, sizes, time[order][middle])
    if len(sizes) < FEWEST_SIZES:
        message = f"{copies.words}: {len(sizes)} different sizes with a time; a fit needs {FEWEST_SIZES} or more"
        raise UsageError(f"{message}, from some bytes to many MiB")
    return copies
