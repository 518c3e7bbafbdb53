"""The swap of rows along one process column, compiled.

Pivots are drawn: each is in a process row with the probability of that row's share of the rows that are left.
`ends`, `rows`, `wide`, `after` are the exchanges of one step, [exchange, 2], by distance from the pivot block's row:
the two processes, the rows that each sends, whether these carry their index (one word a row), and what each does
with what it received.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import exchange, size_time

DLASWP01T, DLASWP02N, DLASWP03T, DLASWP04T = 8, 9, 10, 11


def draw_pivots(rows: FloatArray, width: int, random: Any) -> FloatArray:
    """[distance]: of the `width` pivots of a panel, how many lie in each process row."""
    counts = np.zeros(len(rows))
    ends = np.cumsum(rows)
    for _ in range(width):
        place = np.searchsorted(ends, random.random() * ends[-1], side="right")
        counts[min(place, len(rows) - 1)] += 1.0
    return counts


def binary_exchanges(
    plan: IntArray, cube: int, counts: FloatArray, width: int, ends: IntArray, rows: FloatArray, wide: IntArray,
    after: IntArray,
) -> int:  # fmt: skip
    """The exchanges of a binary-exchange swap; how many there are."""
    count = len(counts)
    gathered = np.zeros(count + 1)
    for place in range(count):
        own = 0.0 if place == 0 else counts[place]
        if 0 < place < cube and place + cube < count:
            own += counts[place + cube]
        gathered[place + 1] = gathered[place] + own
    for at in range(len(plan)):
        for side in range(2):
            first = 2 + 3 * side
            kind = plan[at, first]
            ends[at, side] = plan[at, side]
            rows[at, side] = width if kind == 1 else gathered[plan[at, first + 2]] - gathered[plan[at, first + 1]]
            if kind == 0:
                rows[at, side] = 0.0
            wide[at, side] = 1 if kind == 2 else 0
            after[at, side] = plan[at, 8 + side]
    return len(plan)


def rolling_exchanges(
    plan: IntArray, counts: FloatArray, width: int, ends: IntArray, rows: FloatArray, wide: IntArray, after: IntArray
) -> int:
    """The exchanges of a spread-roll swap: spread, even out (HPL_equil), roll; how many there are."""
    count = len(counts)
    order = order_of_spread(counts)
    lengths = counts[order]
    used = spread_from(0, 1, order, lengths, 0, ends, rows)
    used = even_out(order, lengths, width, used, ends, rows)
    even = np.full(count, float(width // count))
    even[: width % count] += 1.0
    for at in range(len(plan)):
        ends[used, 0], ends[used, 1] = order[plan[at, 0]], order[plan[at, 1]]
        rows[used, 0], rows[used, 1] = even[plan[at, 2]], even[plan[at, 3]]
        used += 1
    wide[:used] = 0
    after[:used] = 0
    return used


def order_of_spread(counts: FloatArray) -> IntArray:
    """[place]: distances, so that those with most rows are the fewest hops from the first (HPL_logsort)."""
    count = len(counts)
    order = np.arange(count)
    hops = np.zeros(count, dtype=np.int64)
    for place in range(1, count):
        hops[place] = hops[place >> 1] + (place & 1)
    for near in np.argsort(hops, kind="mergesort"):
        for far in range(2, count):
            if 0 < hops[near] < hops[far] and counts[order[near]] < counts[order[far]]:
                order[near], order[far] = order[far], order[near]
    return order


def spread_from(
    root: int, way: int, order: IntArray, lengths: FloatArray, used: int, ends: IntArray, rows: FloatArray
) -> int:
    """Messages of a tree from `root` to all places behind it (`way` 1) or before it (-1); how many are used then.

    `lengths` are the rows that each place is to get; messages without rows are not sent.
    """
    count = len(order) - root if way > 0 else root + 1
    step = 1
    while step * 2 < count:
        step *= 2
    while step > 0 and count > 1:
        for receiver in range(step, count, 2 * step):
            sent = 0.0
            # To the left HPL counts one place too many.
            for place in range(receiver, min(receiver + step + (way < 0), count)):
                sent += lengths[root + way * place]
            if sent > 0 and used < len(ends):
                ends[used, 0], ends[used, 1] = order[root + way * (receiver - step)], order[root + way * receiver]
                rows[used, 0], rows[used, 1] = sent, 0.0
                used += 1
        step //= 2
    return used


def even_out(order: IntArray, lengths: FloatArray, width: int, used: int, ends: IntArray, rows: FloatArray) -> int:
    """HPL_equil: each place spreads the rows that lie outside its even share to whoever they belong to."""
    count = len(order)
    if count <= 2:
        return used
    least, extra = width // count, width % count
    share = np.zeros(count)
    begin = 0.0
    for place in range(count):
        end = begin + lengths[place]
        for other in range(count):
            low = other * least + min(other, extra)
            high = low + least + (1 if other < extra else 0)
            share[other] = max(min(end, high) - max(begin, low), 0.0)
        share[place] = 0.0
        if share[:place].sum() > 0:
            used = spread_from(place, -1, order, share, used, ends, rows)
        if share[place + 1 :].sum() > 0:
            used = spread_from(place, 1, order, share, used, ends, rows)
        begin = end
    return used


def gather_rows(
    place: int, columns: float, width: int, own: float, spreading: bool, sizes: FloatArray, noisy: bool, random: Any
) -> float:
    """Time to collect the rows to be sent; in spread-roll only the pivot block's row does."""
    if place == 0:
        return size_time(sizes[DLASWP01T], (width + own) * columns, noisy, random)
    if spreading:
        return 0.0
    return size_time(sizes[DLASWP02N], own * columns, noisy, random)


def rows_taken(
    after: int, received: float, sent: float, columns: float, sizes: FloatArray, noisy: bool, random: Any
) -> float:
    """Time to put received rows in their place."""
    if after == 0:
        return 0.0
    rows = received if after == 1 else sent
    return size_time(sizes[DLASWP03T if after == 1 else DLASWP04T], rows * columns, noisy, random)


def swap_bytes(rows: float, columns: float, wide: int) -> float:
    """Size of a message with rows of so many columns."""
    return 8.0 * rows * (columns + wide)


def swap_column(
    clock: FloatArray, column: int, order: IntArray, columns: float, width: int, counts: FloatArray, spreading: bool,
    used: int, ends: IntArray, rows: FloatArray, wide: IntArray, after: IntArray, nodes: IntArray, gaps: FloatArray,
    pieces: FloatArray, limits: FloatArray, sizes: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Advance `clock` [process row, process column] of one column over the swap of `columns` local columns."""
    for place in range(len(order)):
        clock[order[place], column] += gather_rows(
            place, columns, width, counts[place], spreading, sizes, noisy, random
        )
    for at in range(used):
        p, q = order[ends[at, 0]], order[ends[at, 1]]
        far = 1 if nodes[p, column] != nodes[q, column] else 0
        gap = max(gaps[p, column], gaps[q, column]) if far else 0.0
        there, back = swap_bytes(rows[at, 0], columns, wide[at, 0]), swap_bytes(rows[at, 1], columns, wide[at, 1])
        a, b = exchange(clock[p, column], clock[q, column], there, back, pieces[far], limits[far], gap)
        a += rows_taken(after[at, 0], rows[at, 1], rows[at, 0], columns, sizes, noisy, random)
        b += rows_taken(after[at, 1], rows[at, 0], rows[at, 1], columns, sizes, noisy, random)
        clock[p, column], clock[q, column] = a, b
