"""The factorisation of a panel on one process column, compiled.

Clocks are in the order of distance from the process row that holds the pivot block. Every column of the panel ends
in one all-reduce over the column's processes by recursive doubling, with the processes beyond a power of two folded in
(HPL_pdmxswp): it finds the pivot, and carries the pivot's row and the current row along.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from whatif.linpack.simulation.costs import (
    AT_ONCE,
    PIECE_LATENCY,
    PIECE_MODES,
    PIECE_PROTOCOL,
    PIECE_RECEIVE,
    PIECE_RECEIVE_PER_BYTE,
    PIECE_SEND,
    PIECE_SEND_PER_BYTE,
    deliver,
    exchange,
    noise,
    piece_of,
    wire_time,
)
from whatif.linpack.simulation.layout import (
    CHARGE_IS_PARTIAL,
    CHARGE_LATENCY,
    CHARGE_RECEIVE,
    CHARGE_SEND,
    CHARGE_SIZE,
    CHARGE_WIRE,
    COLUMN_CLOCK,
    COLUMN_DEVIATION,
    COLUMN_FACTOR,
    COLUMN_NODE,
    COLUMN_ROWS,
    LARGE,
    LINE_MATRIX,
    LINE_MATRIX_LESS,
    LINE_MATRIX_SLOPE,
    LINE_MATRIX_VARIANCE,
    LINE_MATRIX_VARIANCE_M,
    LINE_MATRIX_VARIANCE_MM,
    LINE_OTHER,
    LINE_OTHER_LESS,
    LINE_OTHER_SLOPE,
    LINE_OTHER_VARIANCE,
    LINE_OTHER_VARIANCE_M,
    LINE_OTHER_VARIANCE_MM,
    SMALL,
)
from whatif.models.quantities import FloatArray


def factor_panel(
    column: FloatArray, gaps: FloatArray, charges: FloatArray, lines: FloatArray, pieces: FloatArray, noisy: bool,
    random: Any,
) -> float:  # fmt: skip
    """Advance the clocks of one process column over a panel; return the time spent agreeing on pivots.

    `column` is [5, distance]: clock, local rows at the panel's first column, factor of dgemm, node, deviation of dgemm;
    `gaps` are [dimension, distance]: time per byte of the exchange of a pair over shared links, by its nearer
    process, the last dimension that of the processes beyond a power of two; `lines` are `panel_lines`; `charges`
    is room for `charge_pivots`.
    """
    count, width = column.shape[1], lines.shape[0] - 1
    small, large, row = 8.0 * (width + 4), 8.0 * (2 * width + 4), 8.0 * width
    charge_pivots(small, large, pieces, charges)
    agreeing = 0.0
    for pivot in range(width):
        compute_between(column, lines, pivot, noisy, random)
        if count > 1:
            before = column[COLUMN_CLOCK, 0]
            agree_on_pivot(column, gaps, small, large, row, charges, pieces, random)
            agreeing += column[COLUMN_CLOCK, 0] - before
    compute_between(column, lines, width, noisy, random)
    return agreeing


def compute_between(column: FloatArray, lines: FloatArray, at: int, noisy: bool, random: Any) -> None:
    """The kernels between two pivots, on every process of the column."""
    for place in range(column.shape[1]):
        m, factor = column[COLUMN_ROWS, place], column[COLUMN_FACTOR, place]
        matrix, other = (
            lines[at, LINE_MATRIX] + lines[at, LINE_MATRIX_SLOPE] * m,
            lines[at, LINE_OTHER] + lines[at, LINE_OTHER_SLOPE] * m,
        )
        if place == 0:
            matrix -= lines[at, LINE_MATRIX_LESS]
            other -= lines[at, LINE_OTHER_LESS]
        time = max(matrix, 0.0) * factor + max(other, 0.0)
        if noisy:
            variance = (
                lines[at, LINE_MATRIX_VARIANCE]
                + (lines[at, LINE_MATRIX_VARIANCE_M] + lines[at, LINE_MATRIX_VARIANCE_MM] * m) * m
            ) * (factor * column[COLUMN_DEVIATION, place]) ** 2
            variance += (
                lines[at, LINE_OTHER_VARIANCE]
                + (lines[at, LINE_OTHER_VARIANCE_M] + lines[at, LINE_OTHER_VARIANCE_MM] * m) * m
            )
            time = max(time + sqrt(max(variance, 0.0)) * noise(random), 0.0)
        column[COLUMN_CLOCK, place] += time


def charge_pivots(small: float, large: float, pieces: FloatArray, charges: FloatArray) -> None:
    """[local or remote, small or large, 6]: sending, wire, receiving, whether these are not all there is to it; latency
    and size, where links are shared."""
    for far in range(2):
        for at in (SMALL, LARGE):
            size = large if at == LARGE else small
            piece = piece_of(pieces, far, size)
            charges[far, at, CHARGE_SEND] = (
                pieces[far, piece, PIECE_SEND] + size * pieces[far, piece, PIECE_SEND_PER_BYTE]
            )
            charges[far, at, CHARGE_WIRE] = wire_time(pieces, far, size, 0.0)
            charges[far, at, CHARGE_RECEIVE] = (
                pieces[far, piece, PIECE_RECEIVE] + size * pieces[far, piece, PIECE_RECEIVE_PER_BYTE]
            )
            charges[far, at, CHARGE_IS_PARTIAL] = (
                pieces[far, piece, PIECE_PROTOCOL] != AT_ONCE or pieces.shape[2] > PIECE_MODES
            )
            charges[far, at, CHARGE_LATENCY], charges[far, at, CHARGE_SIZE] = pieces[far, piece, PIECE_LATENCY], size
        charges[far, LARGE, CHARGE_IS_PARTIAL] += charges[far, SMALL, CHARGE_IS_PARTIAL]


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
        far = 1 if column[COLUMN_NODE, extra] != column[COLUMN_NODE, inner] else 0
        back = row if inner == 0 else 0.0
        column[COLUMN_CLOCK, extra], column[COLUMN_CLOCK, inner] = exchange(
            column[COLUMN_CLOCK, extra], column[COLUMN_CLOCK, inner], small, back, pieces, far, gaps[-1, inner], random
        )
    step, dimension = 1, 0
    while step < cube:
        exchange_along(column, gaps[dimension], cube, step, small, large, charges, pieces, random)
        step, dimension = step * 2, dimension + 1
    for extra in range(cube, count):
        inner = extra - cube
        far = 1 if column[COLUMN_NODE, extra] != column[COLUMN_NODE, inner] else 0
        column[COLUMN_CLOCK, inner], column[COLUMN_CLOCK, extra] = deliver(
            column[COLUMN_CLOCK, inner], column[COLUMN_CLOCK, extra], small, pieces, far, gaps[-1, inner], random
        )


def exchange_along(
    column: FloatArray, gaps: FloatArray, cube: int, step: int, small: float, large: float, charges: FloatArray,
    pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """One dimension of the hypercube; whoever has the current row sends it along."""
    for base in range(0, cube, 2 * step):
        at = LARGE if base == 0 else SMALL
        for a in range(base, base + step):
            b = a + step
            far = 1 if column[COLUMN_NODE, a] != column[COLUMN_NODE, b] else 0
            if charges[far, at, CHARGE_IS_PARTIAL] > 0:
                size = large if at == LARGE else small
                column[COLUMN_CLOCK, a], column[COLUMN_CLOCK, b] = exchange(
                    column[COLUMN_CLOCK, a], column[COLUMN_CLOCK, b], size, small, pieces, far, gaps[a], random
                )
                continue
            sent_a, sent_b = (
                column[COLUMN_CLOCK, a] + charges[far, at, CHARGE_SEND],
                column[COLUMN_CLOCK, b] + charges[far, SMALL, CHARGE_SEND],
            )
            back = max(
                charges[far, SMALL, CHARGE_WIRE],
                charges[far, SMALL, CHARGE_LATENCY] + charges[far, SMALL, CHARGE_SIZE] * gaps[a],
            )
            there = max(
                charges[far, at, CHARGE_WIRE],
                charges[far, at, CHARGE_LATENCY] + charges[far, at, CHARGE_SIZE] * gaps[a],
            )
            column[COLUMN_CLOCK, a] = max(sent_a, sent_b + back) + charges[far, SMALL, CHARGE_RECEIVE]
            column[COLUMN_CLOCK, b] = max(sent_b, sent_a + there) + charges[far, at, CHARGE_RECEIVE]
