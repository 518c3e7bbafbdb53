"""The factorisation of a panel on one process column, compiled.

Clocks are in the order of distance from the process row that holds the pivot block. Every column of the panel ends
in one all-reduce over the column's processes by recursive doubling, with the processes beyond a power of two folded in
(HPL_pdmxswp): it finds the pivot, and carries the pivot's row and the current row along.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from whatif.linpack.simulation.costs import AT_ONCE, deliver, exchange, noise, piece_of, wire_time
from whatif.models.quantities import FloatArray


def factor_panel(
    column: FloatArray, gaps: FloatArray, charges: FloatArray, lines: FloatArray, pieces: FloatArray, noisy: bool,
    random: Any,
) -> float:  # fmt: skip
    """Advance the clocks of one process column over a panel; return the time spent agreeing on pivots.

    `column` is [5, distance]: clock, local rows at the panel's first column, factor of dgemm, node, deviation of dgemm;
    `gaps` are [dimension, distance]: time per byte that shared links leave to the exchange of the pair whose nearer
    process it is, the last dimension that of the processes beyond a power of two; `lines` are `panel_lines`; `charges`
    is room for `charge_pivots`.
    """
    count, width = column.shape[1], lines.shape[0] - 1
    small, large, row = 8.0 * (width + 4), 8.0 * (2 * width + 4), 8.0 * width
    charge_pivots(small, large, pieces, charges)
    agreeing = 0.0
    for pivot in range(width):
        compute_between(column, lines, pivot, noisy, random)
        if count > 1:
            before = column[0, 0]
            agree_on_pivot(column, gaps, small, large, row, charges, pieces, random)
            agreeing += column[0, 0] - before
    compute_between(column, lines, width, noisy, random)
    return agreeing


def compute_between(column: FloatArray, lines: FloatArray, at: int, noisy: bool, random: Any) -> None:
    """The kernels between two pivots, on every process of the column."""
    for place in range(column.shape[1]):
        m, factor = column[1, place], column[2, place]
        matrix, other = lines[at, 0] + lines[at, 1] * m, lines[at, 3] + lines[at, 4] * m
        if place == 0:
            matrix -= lines[at, 2]
            other -= lines[at, 5]
        time = max(matrix, 0.0) * factor + max(other, 0.0)
        if noisy:
            variance = (lines[at, 6] + (lines[at, 7] + lines[at, 8] * m) * m) * (factor * column[4, place]) ** 2
            variance += lines[at, 9] + (lines[at, 10] + lines[at, 11] * m) * m
            time = max(time + sqrt(max(variance, 0.0)) * noise(random), 0.0)
        column[0, place] += time


def charge_pivots(small: float, large: float, pieces: FloatArray, charges: FloatArray) -> None:
    """[local or remote, small or large, 6]: sending, wire, receiving, whether these are not all there is to it; latency
    and size, where links are shared."""
    for far in range(2):
        for at in range(2):
            size = large if at else small
            piece = piece_of(pieces, far, size)
            charges[far, at, 0] = pieces[far, piece, 3] + size * pieces[far, piece, 4]
            charges[far, at, 1] = wire_time(pieces, far, size, 0.0)
            charges[far, at, 2] = pieces[far, piece, 5] + size * pieces[far, piece, 6]
            charges[far, at, 3] = pieces[far, piece, 7] != AT_ONCE or pieces.shape[2] > 8
            charges[far, at, 4], charges[far, at, 5] = pieces[far, piece, 1], size
        charges[far, 1, 3] += charges[far, 0, 3]


def agree_on_pivot(
    column: FloatArray, gaps: FloatArray, small: float, large: float, row: float, charges: FloatArray,
    pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """One pivot: fold the processes beyond a power of two in, exchange along the hypercube, unfold."""
    count, cube = column.shape[1], 1
    while cube * 2 <= count:
        cube *= 2
    for extra in range(cube, count):
        inner = extra - cube
        far = 1 if column[3, extra] != column[3, inner] else 0
        back = row if inner == 0 else 0.0
        column[0, extra], column[0, inner] = exchange(
            column[0, extra], column[0, inner], small, back, pieces, far, gaps[-1, inner], random
        )
    step, dimension = 1, 0
    while step < cube:
        exchange_along(column, gaps[dimension], cube, step, small, large, charges, pieces, random)
        step, dimension = step * 2, dimension + 1
    for extra in range(cube, count):
        inner = extra - cube
        far = 1 if column[3, extra] != column[3, inner] else 0
        column[0, inner], column[0, extra] = deliver(
            column[0, inner], column[0, extra], small, pieces, far, gaps[-1, inner], random
        )


def exchange_along(
    column: FloatArray, gaps: FloatArray, cube: int, step: int, small: float, large: float, charges: FloatArray,
    pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """One dimension of the hypercube; whoever has the current row sends it along."""
    for base in range(0, cube, 2 * step):
        at = 1 if base == 0 else 0
        for a in range(base, base + step):
            b = a + step
            far = 1 if column[3, a] != column[3, b] else 0
            if charges[far, at, 3] > 0:
                size = large if at else small
                column[0, a], column[0, b] = exchange(
                    column[0, a], column[0, b], size, small, pieces, far, gaps[a], random
                )
                continue
            sent_a, sent_b = column[0, a] + charges[far, at, 0], column[0, b] + charges[far, 0, 0]
            back = max(charges[far, 0, 1], charges[far, 0, 4] + charges[far, 0, 5] * gaps[a])
            there = max(charges[far, at, 1], charges[far, at, 4] + charges[far, at, 5] * gaps[a])
            column[0, a] = max(sent_a, sent_b + back) + charges[far, 0, 2]
            column[0, b] = max(sent_b, sent_a + there) + charges[far, at, 2]
