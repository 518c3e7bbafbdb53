"""Times of collectives between all ranks of MPI, with mpi4py."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from whatif.measuring.mpi_calls import address, arguments, handle
from whatif.measuring.routines import clock_block, compiled

OPERATIONS: Final = ("allreduce", "allgather", "alltoall", "broadcast")
SIZES: Final = tuple(2**power for power in range(3, 25))
"""Sizes in B of the whole buffer of a rank."""
_CALLS: Final = 4
"""Calls of a size in one pass; the first is not counted."""
_NAMES: Final = {
    "allreduce": "MPI_Allreduce", "allgather": "MPI_Allgather", "alltoall": "MPI_Alltoall", "broadcast": "MPI_Bcast",
}  # fmt: skip


def time_collectives(world: Any, seconds: float) -> list[tuple[str, int, float]]:
    """Operation, size in B and time in s of calls, each from a barrier until the last rank has its result.

    All ranks of `world` take part; the first alone has the times.
    """
    random, end = np.random.default_rng(1), 0.0
    data, results = (np.ones(SIZES[-1] // 8 + world.size) for _ in range(2))
    calls = [(operation, size) for operation in OPERATIONS for size in SIZES]
    found: list[tuple[str, int, float]] = []
    on = True
    while on:
        for operation, size in random.permutation(np.array(calls, dtype=object)):
            sent, words = _call(world, operation, size, data.ctypes.data, results.ctypes.data)
            found += [(operation, sent, taken) for taken in _times(world, operation, words)]
        if not end:  # The first pass has compiled the loop and touched the memory.
            found, end = [], time.monotonic() + seconds
        on = world.bcast(time.monotonic() < end)
    return found


def ranks_of_nodes(hosts: Sequence[str]) -> int | None:
    """Ranks of each node, if all have as many; `hosts` has the node of each rank."""
    counts = set(Counter(hosts).values())
    return counts.pop() if len(counts) == 1 else None


def part_size(size: int, ranks: int) -> int:
    """Bytes of the part of each rank in a buffer of about `size`; at least 1."""
    return max(size // ranks, 1)


def _call(world: Any, operation: str, size: int, data: int, results: int) -> tuple[int, list[int]]:
    """Size of the buffer, and arguments of the call: a buffer with a part for each rank has whole parts."""
    from mpi4py import MPI

    everyone = handle(world)
    if operation == "allreduce":
        return size, [data, results, size // 8, handle(MPI.DOUBLE), handle(MPI.SUM), everyone]
    if operation == "broadcast":
        return size, [data, size, handle(MPI.BYTE), 0, everyone]
    part = part_size(size, world.size)
    return part * world.size, [data, part, handle(MPI.BYTE), results, part, handle(MPI.BYTE), everyone]


def _times(world: Any, operation: str, words: Sequence[int]) -> list[float]:
    """Times in s on the slowest rank; empty on all ranks but the first."""
    from mpi4py import MPI

    times = np.zeros((_CALLS, 2), np.int64)
    barrier, meeting = address("MPI_Barrier"), arguments([handle(world)])
    compiled()["collective"](address(_NAMES[operation]), arguments(words), barrier, meeting, times, clock_block())
    taken, slowest = times[1:, 1] - times[1:, 0], np.zeros(_CALLS - 1, np.int64)
    world.Reduce(taken, slowest, MPI.MAX)
    return [float(each) * 1e-9 for each in slowest] if world.rank == 0 else []
