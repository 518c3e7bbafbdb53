"""A DUMPI trace of Jacobi2D on 12 ranks, written as dumpi2ascii prints it: 4 x 3 ranks, 100 exchanges of 128 KiB."""

from __future__ import annotations

from pathlib import Path
from typing import Final

EXTENTS: Final = (4, 3)
_COUNT, _ITERATIONS = 16384, 100


class _Text:
    """Calls of one rank; every call takes 1 us, and 3 us pass between two calls."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.time = 1_131_670_457_000_000

    def call(self, name: str, *arguments: str) -> None:
        self._clock(name, "entering", 3)
        self.rows += arguments
        self._clock(name, "returning", 1)

    def _clock(self, name: str, word: str, microseconds: int) -> None:
        self.time += microseconds
        second, rest = divmod(self.time, 1_000_000)
        self.rows.append(
            f"MPI_{name} {word} at walltime {second}.{rest:06}000, cputime 0.100000000 seconds in thread 0."
        )


def _neighbours(rank: int) -> list[int]:
    """Ranks beyond the four faces; the grid is not periodic."""
    x, y = divmod(rank, EXTENTS[1])
    places = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
    return [i * EXTENTS[1] + j for i, j in places if 0 <= i < EXTENTS[0] and 0 <= j < EXTENTS[1]]


def _message(side: str, other: int, request: int) -> list[str]:
    return [f"int count={_COUNT}", "MPI_Datatype datatype=14 (MPI_DOUBLE)", f"int {side}={other}", "int tag=9",
            "MPI_Comm comm=4 (user-defined-comm)", f"MPI_Request request=[{request}]"]  # fmt: skip


def _rank_text(rank: int) -> str:
    text, world, neighbours = _Text(), "MPI_Comm comm=2 (MPI_COMM_WORLD)", _neighbours(rank)
    text.call("Init", "int argc=0", "string argv[0]=<IGNORED>")
    text.call("Comm_size", world, "int size=12")
    text.call("Comm_rank", world, f"int rank={rank}")
    text.call("Dims_create", "int nodes=12", "int ndim=2", "int dims.in[2]=[4, 3]", "int dims.out[2]=[4, 3]")
    text.call("Cart_create", "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)", "int ndim=2", "int dims[2]=[4, 3]",
              "int periods[2]=[0, 0]", "int reorder=0", "MPI_Comm newcomm=4 (user-defined-comm)")  # fmt: skip
    for _ in range(_ITERATIONS):
        text.call("Wtime")
        text.call("Barrier", world)
        text.call("Barrier", world)
        requests = list(range(2, 2 + 2 * len(neighbours)))
        for request, other in zip(requests, 2 * neighbours, strict=True):
            side, name = ("source", "Irecv") if request < 2 + len(neighbours) else ("dest", "Isend")
            text.call(name, *_message(side, other, request))
        count = len(requests)
        text.call("Waitall", f"int count={count}", f"MPI_Request requests[{count}]={requests}",
                  f"MPI_Status statuses[{count}]=<IGNORED>")  # fmt: skip
    text.call("Finalize")
    return "\n".join(text.rows) + "\n"


def write_jacobi2d(folder: Path) -> Path:
    """The folder with one file for each of 12 ranks, `n12-0000.txt` to `n12-0011.txt`."""
    for rank in range(EXTENTS[0] * EXTENTS[1]):
        (folder / f"n12-{rank:04}.txt").write_text(_rank_text(rank))
    return folder
