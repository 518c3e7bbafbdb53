"""Messages and collectives of MPI, with mpi4py: `mpirun -n 2 python -m whatif.measuring.mpi_ranks SECONDS`.

Rank 0 prints one line of JSON. The calls of MPI are made by their addresses, as those of mpi4py take half a
microsecond longer than the messages of a node.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.measuring.mpi_calls import address, arguments, handle
from whatif.measuring.mpi_collectives import ranks_of_nodes, time_collectives
from whatif.measuring.routines import clock_block, compiled

LARGEST: Final = 2**25
SIZES: Final = tuple(sorted({int(2**half) for half in np.arange(0, 25.01, 0.5)}))
"""Sizes of messages in B, two in each factor of two."""
_ROUNDS: Final = 4
"""Messages of a size in one pass; the first is not counted."""
_STATUS: Final = 64


def measure(seconds: float) -> dict[str, Any] | None:
    """Times of messages by distance, and of collectives; None on all ranks but the first. MPI is finalised."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    places = world.allgather((platform.node(), _socket()))
    pairs = dict(pairs_by_distance(places))
    rows: list[tuple[str, int, float]] = []
    for distance, pair in pairs.items():
        found = _pair(MPI, pair, seconds / (len(pairs) + 1)) if world.rank in pair else []
        rows += [(distance, size, taken) for size, taken in world.bcast(found, root=pair[0])]
    collectives = time_collectives(world, seconds / (len(pairs) + 1)) if pairs else []
    library = re.split(r"[,\n]", MPI.Get_library_version().strip())[0].strip("\0 ")
    first = world.rank == 0
    MPI.Finalize()
    if not first:
        return None
    nodes = ranks_of_nodes([host for host, _ in places])
    counts = {"rank_count": len(places), "ranks_per_node": nodes}
    return {"library": library, **counts, "rows": rows, "collectives": collectives}


def unbind() -> None:
    """Let this process use all cores again: a launcher may have bound it to one."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def pairs_by_distance(places: list[tuple[str, int]]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The first pair of ranks at each distance; `places` has the host and the socket of each rank."""
    tests: dict[str, Callable[[tuple[str, int], tuple[str, int]], bool]] = {
        "intra_socket": lambda a, b: a == b,
        "inter_socket": lambda a, b: a[0] == b[0] and a[1] != b[1],
        "inter_node": lambda a, b: a[0] != b[0],
    }
    for distance, matches in tests.items():
        for first, place in enumerate(places):
            second = next((at for at in range(first + 1, len(places)) if matches(place, places[at])), None)
            if second is not None:
                yield distance, (first, second)
                break


def _socket() -> int:
    """Socket of the first processor that this rank may use."""
    at = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    path = Path(f"/sys/devices/system/cpu/cpu{at}/topology/physical_package_id")
    return int(path.read_text("ascii")) if path.exists() else 0


def _pair(MPI: Any, pair: tuple[int, int], seconds: float) -> list[tuple[int, float]]:  # noqa: N803
    """Times of one way by size, in random order, on the first rank of a pair; empty on the other."""
    world, first = MPI.COMM_WORLD, MPI.COMM_WORLD.rank == pair[0]
    other, end, clock = pair[1 - pair.index(world.rank)], math.inf, clock_block()
    data, status, times = np.ones(LARGEST, np.uint8), np.zeros(_STATUS, np.uint8), np.zeros((_ROUNDS, 2), np.int64)
    send, receive = address("MPI_Send"), address("MPI_Recv")
    random, on = np.random.default_rng(1), True
    found: list[tuple[int, float]] = []
    while on:
        for size in random.permutation(SIZES):
            words = [data.ctypes.data, int(size), handle(MPI.BYTE), other, 0, handle(world)]
            sending, receiving = (arguments([*words, *more]) for more in ([], [status.ctypes.data]))
            compiled()["ping_pong"](first, send, receive, sending, receiving, times, clock)
            if first:
                found += [(int(size), float(taken)) for taken in (times[1:, 1] - times[1:, 0]) * 0.5e-9]
        if math.isinf(end):  # The first pass has compiled the loop and touched the memory.
            found, end = [], time.monotonic() + seconds
        on = _agreed(world, first, other, end)
    return found


def _agreed(world: Any, first: bool, other: int, end: float) -> bool:
    """Whether the first rank of a pair has time left."""
    if first:
        on = time.monotonic() < end
        world.send(on, other)
        return on
    return bool(world.recv(source=other))


def main(words: list[str]) -> None:
    """Measure for some seconds and print the result on the first rank."""
    found: Mapping[str, Any] | None = measure(float(words[0]))
    if found is not None:
        print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
