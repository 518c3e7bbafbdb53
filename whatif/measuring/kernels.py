"""Timed loops: plain functions over arrays, which numba compiles, with the barrier that starts all cores together.

The clock and the routines of BLAS are called by their addresses. The clock is opaque to the compiler, so that no
memory access moves across it and no sweep is left out.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from whatif.models.quantities import FloatArray

Integers = Any
"""Array of 64-bit integers."""
CHAIN: Final = 16
"""Dependent multiplications and additions of one element in `multiply_add`."""
POINTS: Final = 9
"""Values that `convolution` loads for each that it stores."""
_LINE: Final = 8
"""Flags between those of two workers, so that no two are in one cache line."""
_STRIP: Final = 32
"""Columns that HPL copies at a time when it moves rows."""
SWAP, GATHER, PACK, SCATTER, UNPACK = 0, 1, 2, 3, 4
COPY, TURN = 5, 6


def call_routine(address: int, arguments: Integers) -> None:
    """Call of a library's routine at `address`. Defined by the compiler (`whatif.simulation.jit`)."""
    raise AssertionError("call_routine exists in compiled functions only")


def now(clock: Integers) -> int:
    """Time in ns. `clock` holds the routine's address, seconds and nanoseconds, and then its arguments."""
    call_routine(clock[0], clock[3:])
    return int(clock[1] * 1_000_000_000 + clock[2])


def meet(flags: Integers, rank: int, count: int, turn: int, clock: Integers) -> int:
    """Barrier of the first `count` workers; the time at which all had come."""
    flags[rank * _LINE] = turn
    for other in range(count):
        while flags[other * _LINE] < turn:
            now(clock)
    return now(clock)


def triad(
    a: FloatArray, b: FloatArray, c: FloatArray, sweeps: int, times: Integers, flags: Integers, rank: int, count: int,
    turn: int, clock: Integers,
) -> None:  # fmt: skip
    """Rounds of `sweeps` triads a = b + s c; `times` takes the start and the end of each round."""
    for at in range(len(times)):
        times[at, 0] = meet(flags, rank, count, turn + at, clock)
        for _ in range(sweeps):
            for i in range(len(a)):
                a[i] = b[i] + 3.0 * c[i]
            times[at, 1] = now(clock)


def convolution(
    a: FloatArray, b: FloatArray, sweeps: int, times: Integers, flags: Integers, rank: int, count: int, turn: int,
    clock: Integers,
) -> None:  # fmt: skip
    """Rounds of `sweeps` sums of `POINTS` neighbours: all but one of the loads find their data in the first cache."""
    for at in range(len(times)):
        times[at, 0] = meet(flags, rank, count, turn + at, clock)
        for _ in range(sweeps):
            for i in range(len(b) - 8):
                left = b[i] + b[i + 1] + b[i + 2] + b[i + 3]
                a[i] = 0.1 * (left + b[i + 4] + b[i + 5] + b[i + 6] + b[i + 7] + b[i + 8])
            times[at, 1] = now(clock)


def multiply_add(
    values: FloatArray, factors: FloatArray, sweeps: int, times: Integers, flags: Integers, rank: int, count: int,
    turn: int, clock: Integers,
) -> None:  # fmt: skip
    """Rounds of `sweeps` passes over values; each is multiplied and added to `CHAIN` times."""
    factor, addend = factors[0], factors[1]
    for at in range(len(times)):
        times[at, 0] = meet(flags, rank, count, turn + at, clock)
        for _ in range(sweeps):
            for i in range(len(values)):
                value = values[i]
                for _ in range(CHAIN):
                    value = value * factor + addend
                values[i] = value
        times[at, 1] = now(clock)


def routine(
    address: int, arguments: Integers, sweeps: int, times: Integers, flags: Integers, rank: int, count: int, turn: int,
    clock: Integers,
) -> None:  # fmt: skip
    """Rounds of `sweeps` calls of one routine with the same arguments."""
    for at in range(len(times)):
        times[at, 0] = meet(flags, rank, count, turn + at, clock)
        for _ in range(sweeps):
            call_routine(address, arguments)
        times[at, 1] = now(clock)


def ping_pong(
    first: bool, send: int, receive: int, sending: Integers, receiving: Integers, times: Integers, clock: Integers
) -> None:
    """Messages there and back between two ranks of MPI: one is `first` and takes the times of start and end."""
    for at in range(len(times)):
        if first:
            times[at, 0] = now(clock)
            call_routine(send, sending)
            call_routine(receive, receiving)
            times[at, 1] = now(clock)
        else:
            call_routine(receive, receiving)
            call_routine(send, sending)


def collective(
    call: int, arguments: Integers, barrier: int, meeting: Integers, times: Integers, clock: Integers
) -> None:
    """Calls of a collective of MPI, each after a barrier: `times` takes the start and the end of each."""
    for at in range(len(times)):
        call_routine(barrier, meeting)
        times[at, 0] = now(clock)
        call_routine(call, arguments)
        times[at, 1] = now(clock)


def hpl_calls(
    plan: Integers, routines: Integers, arguments: Integers, sizes: Any, matrix: FloatArray, panel: FloatArray,
    rows: FloatArray, block: Integers, times: Integers, flags: Integers, rank: int, count: int, turn: int,
    clock: Integers,
) -> None:  # fmt: skip
    """Calls of HPL's kernels, one a row of `plan`: kernel, m, n, k, and 1 for a call that finds its data in caches.

    `routines` and `arguments` are those of BLAS, by kernel; kernels beyond them are HPL's own copies.
    """
    for at in range(len(plan)):
        kernel, cached = plan[at, 0], plan[at, 4]
        sizes[0], sizes[1], sizes[2] = plan[at, 1], plan[at, 2], plan[at, 3]
        if cached:
            one_call(kernel, routines, arguments, sizes, matrix, panel, rows, block)
        times[at, 0] = meet(flags, rank, count, turn + at, clock)
        one_call(kernel, routines, arguments, sizes, matrix, panel, rows, block)
        times[at, 1] = now(clock)


def one_call(
    kernel: int, routines: Integers, arguments: Integers, sizes: Any, matrix: FloatArray, panel: FloatArray,
    rows: FloatArray, block: Integers,
) -> None:  # fmt: skip
    """One call of a kernel with the sizes of `sizes`."""
    if kernel < len(routines):
        call_routine(routines[kernel], arguments[kernel])
        return
    own = kernel - len(routines)
    m: Any = np.int64(sizes[0])
    n: Any = np.int64(sizes[1])
    lead: Any = np.int64(sizes[3])
    if own == COPY:
        for j in range(n):
            for i in range(m):
                panel[j * m + i] = matrix[j * lead + i]
    elif own == TURN:
        for j in range(n):
            for i in range(m):
                rows[i * n + j] = panel[j * m + i]
    else:
        move_rows(own, m, n, lead, matrix, panel, rows, block)


def move_rows(
    own: int, m: int, n: int, lead: int, matrix: FloatArray, panel: FloatArray, rows: FloatArray, block: Integers
) -> None:
    """The rows `block` of a matrix to or from contiguous memory, a strip of columns at a time, as HPL_dlaswp does."""
    for first in range(0, n, _STRIP):
        for i in range(m):
            for j in range(first, min(first + _STRIP, n)):
                row = block[i] + j * lead
                if own == SWAP:
                    kept = matrix[row]
                    matrix[row] = matrix[i + j * lead]
                    matrix[i + j * lead] = kept
                elif own == GATHER:
                    rows[i * n + j] = matrix[row]
                elif own == PACK:
                    panel[i + j * m] = matrix[row]
                elif own == SCATTER:
                    rows[i * n + j] = panel[i + j * m]
                else:
                    matrix[row] = panel[i + j * m]
