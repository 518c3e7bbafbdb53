"""Programs written as lists of operations, and halo exchanges written rank by rank, for the tests of traces."""

from __future__ import annotations

import itertools

import numpy as np

from whatif.simulation.rank_programs import Kind, RankProgram, Trace

Operation = tuple[Kind, int, float, int, tuple[int, ...]]


def op(kind: Kind, peer: int = 0, size: float = 0.0, tag: int = 0, waits: tuple[int, ...] = ()) -> Operation:
    """One operation; `waits` are distances back."""
    return kind, peer, size, tag, waits


def program(*operations: Operation, **others) -> RankProgram:
    columns = list(zip(*operations, strict=True)) or [(), (), (), (), ()]
    return RankProgram(
        kind=np.array(columns[0], dtype=np.uint8),
        peer=np.array(columns[1], dtype=np.int32),
        size=np.array(columns[2], dtype=np.float64),
        tag=np.array(columns[3], dtype=np.int32),
        wait_start=np.concatenate([[0], np.cumsum([len(waits) for waits in columns[4]], dtype=np.int64)]),
        waits=np.array([distance for waits in columns[4] for distance in waits], dtype=np.int32),
        **others,
    )


def trace(*programs: RankProgram, communicators=(), program_of=None) -> Trace:
    which = np.arange(len(programs)) if program_of is None else np.array(program_of)
    named = tuple(np.array(members, dtype=np.int32) for members in communicators)
    return Trace(programs, which.astype(np.int32), named)


def halo_program(
    dims, rank, *, periodic=False, order="C", diagonals=False, iteration_count=2, size=4096.0
) -> RankProgram:
    """What a rank of a stencil code does: a barrier, receives, sends, a wait and a computation in every iteration."""
    numbers = np.arange(np.prod(dims)).reshape(dims, order=order)
    (cell,) = np.argwhere(numbers == rank)
    neighbours = []
    for step in itertools.product((-1, 0, 1), repeat=len(dims)):
        there = cell + step
        inside = bool(((there >= 0) & (there < dims)).all())
        if sum(map(abs, step)) in range(1, len(dims) + 1 if diagonals else 2) and (periodic or inside):
            neighbours.append(int(numbers[tuple(there % dims)]))
    count = len(neighbours)
    iteration = [
        op(Kind.BARRIER),
        *(op(Kind.IRECEIVE, peer, size, 9) for peer in neighbours),
        *(op(Kind.ISEND, peer, size, 9) for peer in neighbours),
        op(Kind.WAIT, waits=tuple(range(1, 2 * count + 1))),
        op(Kind.COMPUTE, size=1e-3),
        op(Kind.ALLREDUCE, size=8.0),
    ]
    return program(*iteration * iteration_count)


def halo(dims, **how) -> Trace:
    return trace(*(halo_program(dims, rank, **how) for rank in range(int(np.prod(dims)))))
