"""Traces: the operations of every rank in columns, as importers return and the replay uses them.

Times in s, sizes in B. A program is that of one rank, or of many ranks that do the same with relative peers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.flat_lists import list_items, list_starts

ANY: Final = -1
"""Any source, or any tag, of a receive."""


class Kind(IntEnum):
    """Kind of an operation of a program."""

    COMPUTE = 0
    """Work of `size` seconds on the rank's processor."""
    SEND = 1
    """A send that returns when its buffer may be used again."""
    RECEIVE = 2
    """A receive that returns with the message."""
    ISEND = 3
    """A send that returns at once."""
    IRECEIVE = 4
    """A receive that returns at once."""
    WAIT = 5
    """Returns when the operations it waits for have finished."""
    BARRIER = 6
    BROADCAST = 7
    REDUCE = 8
    ALLREDUCE = 9
    GATHER = 10
    SCATTER = 11
    ALLGATHER = 12
    ALLTOALL = 13
    REDUCE_SCATTER = 14
    SCAN = 15


COLLECTIVES: Final = frozenset(Kind(number) for number in range(Kind.BARRIER, Kind.SCAN + 1))
"""Kinds in which all ranks of a communicator take part."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Operations `first` to `last`, the latter not included, that run `count` times before what follows them.

    Loops of a program are in order, do not overlap and are not nested.
    """

    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class RankProgram:
    """The operations of one rank in program order, one column each.

    A sequential program (MPI) calls them one after another. A graph (GOAL) starts each as soon as those it
    depends on allow it: `waits` holds what must have finished, `started` what must have started.
    """

    kind: NDArray[np.uint8]
    peer: NDArray[np.int32]
    """Destination or source (or `ANY`) of a message, as a rank of the world; in a `relative` program the
    distance to it, which is added to the own rank modulo the rank count (without `ANY`). For a
    collective its root, always as a rank of the world. Unused entries are 0."""
    size: FloatArray
    """s of a computation; B of a message; for a collective the B that one rank contributes: the buffer of a broadcast,
    reduction or scan, the message from each rank to each other one for an all-to-all, the block of one rank for gather,
    scatter, allgather and reduce-scatter."""
    tag: NDArray[np.int32]
    """Tag of a message, `ANY` for any; for a collective the index of its communicator."""
    wait_start: NDArray[np.int64]
    """[op + 1]: index of the first dependency of an operation in `waits`."""
    waits: NDArray[np.int32]
    """Distances back, in executed order (loops unrolled), to the operations that it depends on: those of a WAIT, or
    those of a graph that must have finished."""
    started_start: NDArray[np.int64] | None = None
    started: NDArray[np.int32] | None = None
    """Distances to operations of a graph that must have started; None for none. Distances in a graph may be < 0."""
    processor: NDArray[np.uint8] | None = None
    """Processor of the rank that runs an operation of a graph; None for all on the first."""
    loops: tuple[Loop, ...] = ()
    sequential: bool = True
    relative: bool = False

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The programs of all ranks."""

    programs: tuple[RankProgram, ...]
    program_of: NDArray[np.int32]
    """[rank]: index of its program."""
    communicators: tuple[NDArray[np.int32], ...] = ()
    """World ranks of each communicator that collectives name by index; 0 is the world, whose entry may be empty."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """`tool`, `version`, `file`, .., and `warnings`, one a line."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the importer that read it."""
        return tuple(self.notes.get("warnings", "").splitlines())

    @property
    def rank_count(self) -> int:
        """Ranks of the traced run."""
        return len(self.program_of)


def executed_count(program: RankProgram) -> int:
    """Operations that one rank executes, loops unrolled."""
    return len(program) + sum((loop.last - loop.first) * (loop.count - 1) for loop in program.loops)


def unrolled(program: RankProgram) -> RankProgram:
    """The same operations without loops; the program itself if it has none."""
    if not program.loops:
        return program
    pieces, place = [], 0
    for loop in program.loops:
        pieces += [np.arange(place, loop.first), np.tile(np.arange(loop.first, loop.last), loop.count)]
        place = loop.last
    return taken(program, np.concatenate([*pieces, np.arange(place, len(program))]))


def taken(program: RankProgram, rows: NDArray[np.int64]) -> RankProgram:
    """The operations `rows` of a program in that order, each with its distances as they are; without loops."""
    wait_start, waits = _taken_lists(program.wait_start, program.waits, rows)
    started_start, started = None, None
    if program.started_start is not None and program.started is not None:
        started_start, started = _taken_lists(program.started_start, program.started, rows)
    return replace(
        program,
        kind=program.kind[rows],
        peer=program.peer[rows],
        size=program.size[rows],
        tag=program.tag[rows],
        wait_start=wait_start,
        waits=waits,
        started_start=started_start,
        started=started,
        processor=None if program.processor is None else program.processor[rows],
        loops=(),
    )


def _taken_lists(
    start: NDArray[np.int64], values: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The lists `values[start[row] : start[row + 1]]` of some rows, one behind the other."""
    counts = np.diff(start)[rows]
    return list_starts(counts), values[list_items(start[rows], counts)]
