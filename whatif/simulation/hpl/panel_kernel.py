"""The factorisation of a panel on one process column, compiled.

Clocks are in the order of `distance` from the process row that holds the pivot block. Every column of the panel ends
in one all-reduce over the column's processes by recursive doubling, with the processes beyond a power of two folded in
(HPL_pdmxswp): it finds the pivot, and carries the pivot row and the current row along.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import deliver, exchange, noise, piece_of, wire_time


def factor_panel(
    clock: FloatArray,
    rows: FloatArray,
    factors: FloatArray,
    nodes: IntArray,
    lines: FloatArray,
    pieces: FloatArray,
    limits: FloatArray,
    noisy: bool,
    random: Any,
) -> float:
    """Advance the clocks of one process column over a panel; return the largest time spent agreeing on pivots.

    `clock`, `rows` (local rows at the panel's first column), `factors` (of dgemm) and `nodes` are [distance]; `lines`
    are `panel_lines`.
    """
    width = len(lines) - 1
    message = 8.0 * (width + 4)
    sizes = np.array([message, message + 8.0 * width, 8.0 * width])
    charges = pivot_charges(sizes, pieces, limits)
    spent = 0.0
    for pivot in range(width):
        compute_between(clock, rows, factors, lines[pivot], noisy, random)
        if len(clock) > 1:
            before = clock.max()
            agree_on_pivot(clock, nodes, sizes, charges, pieces, limits)
            spent += clock.max() - before
    compute_between(clock, rows, factors, lines[width], noisy, random)
    return spent


def compute_between(
    clock: FloatArray, rows: FloatArray, factors: FloatArray, line: FloatArray, noisy: bool, random: Any
) -> None:
    """The kernels between two pivots, on every process of the column."""
    for place in range(len(clock)):
        m = rows[place]
        less = 1.0 if place == 0 else 0.0
        matrix = line[0] + line[1] * m - less * line[2]
        other = line[3] + line[4] * m - less * line[5]
        time = max(matrix, 0.0) * factors[place] + max(other, 0.0)
        if noisy:
            variance = line[6] + (line[7] + line[8] * m) * m
            variance = variance * factors[place] * factors[place] + line[9] + (line[10] + line[11] * m) * m
            time = max(time + sqrt(max(variance, 0.0)) * noise(random), 0.0)
        clock[place] += time


def pivot_charges(sizes: FloatArray, pieces: FloatArray, limits: FloatArray) -> FloatArray:
    """[local or remote, size, 4]: what the three messages cost: sending, wire, receiving, and whether one side waits."""
    charges = np.empty((2, 3, 4))
    for far in range(2):
        for at in range(3):
            piece = piece_of(pieces[far], sizes[at])
            charges[far, at, 0] = pieces[far, piece, 3] + sizes[at] * pieces[far, piece, 4]
            charges[far, at, 1] = wire_time(pieces[far], piece, sizes[at], 0.0)
            charges[far, at, 2] = pieces[far, piece, 5] + sizes[at] * pieces[far, piece, 6]
            charges[far, at, 3] = (1.0 if sizes[at] >= limits[far, 0] else 0.0) + (sizes[at] >= limits[far, 1])
    return charges


def agree_on_pivot(
    clock: FloatArray, nodes: IntArray, sizes: FloatArray, charges: FloatArray, pieces: FloatArray, limits: FloatArray
) -> None:
    """One pivot: fold the processes beyond a power of two in, exchange along the hypercube, unfold."""
    count = len(clock)
    cube = 1
    while cube * 2 <= count:
        cube *= 2
    for extra in range(cube, count):
        inner = extra - cube
        far = 1 if nodes[extra] != nodes[inner] else 0
        back = sizes[2] if inner == 0 else 0.0
        clock[extra], clock[inner] = exchange(
            clock[extra], clock[inner], sizes[0], back, pieces[far], limits[far], 0.0
        )
    step = 1
    while step < cube:
        exchange_along(clock, nodes, cube, step, sizes, charges, pieces, limits)
        step *= 2
    for extra in range(cube, count):
        far = 1 if nodes[extra] != nodes[extra - cube] else 0
        clock[extra - cube], clock[extra] = deliver(
            clock[extra - cube], clock[extra], sizes[0], pieces[far], limits[far], 0.0
        )


def exchange_along(
    clock: FloatArray, nodes: IntArray, cube: int, step: int, sizes: FloatArray, charges: FloatArray,
    pieces: FloatArray, limits: FloatArray,
) -> None:  # fmt: skip
    """One dimension of the hypercube; whoever has the current row sends it along."""
    for base in range(0, cube, 2 * step):
        with_row = 1 if base == 0 else 0
        for a in range(base, base + step):
            b = a + step
            far = 1 if nodes[a] != nodes[b] else 0
            if charges[far, with_row, 3] > 0 or charges[far, 0, 3] > 0:
                clock[a], clock[b] = exchange(
                    clock[a], clock[b], sizes[with_row], sizes[0], pieces[far], limits[far], 0.0
                )
                continue
            sent_a = clock[a] + charges[far, with_row, 0]
            sent_b = clock[b] + charges[far, 0, 0]
            clock[a] = max(sent_a, sent_b + charges[far, 0, 1]) + charges[far, 0, 2]
            clock[b] = max(sent_b, sent_a + charges[far, with_row, 1]) + charges[far, with_row, 2]
