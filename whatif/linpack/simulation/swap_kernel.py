"""The swap of rows along one process column, compiled.

Pivots are drawn: the probability of a process row is its share of the remaining rows.
`plan` is one algorithm's exchanges of one panel, [exchange, column] as `layout` names the columns.
"""

from __future__ import annotations

from typing import Any

from whatif.linpack.simulation.costs import DLASWP01T, DLASWP02N, DLASWP03T, DLASWP04T, exchange, size_time
from whatif.linpack.simulation.layout import (
    AFTER_FIRST,
    AFTER_SECOND,
    CLOCK,
    FIRST,
    FROM_FIRST,
    FROM_SECOND,
    GROUP,
    NEXT_FIRST,
    NODE,
    ROLL_BACK,
    ROLL_FIRST,
    ROLL_SECOND,
    ROLL_THERE,
    SECOND,
    STRUCTURE_AFTER,
    STRUCTURE_PROCESS,
    STRUCTURE_SENT,
    WIDE_FIRST,
    WIDE_SECOND,
    RunNumbers,
)
from whatif.linpack.simulation.sharing_kernel import Adapters, crowd_of, note
from whatif.linpack.simulation.swaps import GATHERED, NO_KERNEL, RUN_DLASWP03T, RUN_DLASWP04T
from whatif.models.quantities import FloatArray, IntArray


def draw_pivots(rows: FloatArray, width: int, counts: FloatArray, random: Any) -> None:
    """Draw the number of pivots in each process row, `counts` [distance], for a panel of `width` pivots."""
    count, total = len(rows), 0.0
    for place in range(count):
        counts[place] = 0.0
        total += rows[place]
    for _ in range(width):
        drawn, place = random.random() * total, 0
        while place + 1 < count and drawn >= rows[place]:
            drawn -= rows[place]
            place += 1
        counts[place] += 1.0


def binary_exchanges(
    structure: IntArray, cube: int, counts: FloatArray, width: int, gathered: FloatArray, plan: FloatArray
) -> int:
    """Lay out the exchanges of a binary-exchange swap; how many there are. `gathered` is room for P + 1 numbers."""
    count = len(counts)
    gathered[0] = 0.0
    for place in range(count):
        own = 0.0 if place == 0 else counts[place]
        if 0 < place < cube and place + cube < count:
            own += counts[place + cube]
        gathered[place + 1] = gathered[place] + own
    for at in range(structure.shape[0]):
        for side in range(2):
            sent = STRUCTURE_SENT + 3 * side
            kind, first, behind = structure[at, sent], structure[at, sent + 1], structure[at, sent + 2]
            plan[at, FIRST + side] = structure[at, STRUCTURE_PROCESS + side]
            plan[at, FROM_FIRST + side] = gathered[behind] - gathered[first] if kind == GATHERED else width * kind
            plan[at, WIDE_FIRST + side] = 1.0 if kind == GATHERED else 0.0
            plan[at, AFTER_FIRST + side] = structure[at, STRUCTURE_AFTER + side]
    return int(structure.shape[0])


def rolling_exchanges(
    roll: IntArray, counts: FloatArray, width: int, lengths: FloatArray, share: FloatArray, order: IntArray,
    plan: FloatArray,
) -> int:  # fmt: skip
    """Lay out the exchanges of a spread-roll swap: spread, even out (HPL_equil), roll; how many there are.

    `lengths`, `share` and `order` are room for P numbers.
    """
    count = len(counts)
    order_of_spread(counts, order)
    for place in range(count):
        lengths[place] = counts[order[place]]
    used = spread_from(0, 1, order, lengths, 0, plan)
    used = even_out(order, lengths, share, width, used, plan)
    least, extra = width // count, width % count
    for at in range(roll.shape[0]):
        there = least + 1.0 if roll[at, ROLL_THERE] < extra else least + 0.0
        back = least + 1.0 if roll[at, ROLL_BACK] < extra else least + 0.0
        add(plan, used, order[roll[at, ROLL_FIRST]], order[roll[at, ROLL_SECOND]], there, back)
        used += 1
    return used


def string_exchanges(plan: FloatArray, used: int, openings: IntArray) -> None:
    """Link the exchanges of every process row: its first one, and after each its next."""
    for place in range(len(openings)):
        openings[place] = -1
    for at in range(used - 1, -1, -1):
        for side in range(2):
            place = int(plan[at, FIRST + side])
            plan[at, NEXT_FIRST + side] = openings[place]
            openings[place] = at


def add(plan: FloatArray, at: int, first: int, second: int, there: float, back: float) -> None:
    """One exchange without kernels."""
    plan[at, FIRST], plan[at, SECOND], plan[at, FROM_FIRST], plan[at, FROM_SECOND] = first, second, there, back
    plan[at, WIDE_FIRST], plan[at, WIDE_SECOND], plan[at, AFTER_FIRST], plan[at, AFTER_SECOND] = 0.0, 0.0, 0.0, 0.0


def hops(place: int) -> int:
    """Messages on the way from the root of a binomial tree."""
    found = 0
    while place > 0:
        found += place & 1
        place >>= 1
    return found


def most_hops(count: int) -> int:
    """Upper bound on the hops to any of a number of places."""
    found = 1
    while 1 << found <= count:
        found += 1
    return found


def order_of_spread(counts: FloatArray, order: IntArray) -> None:
    """[place]: distances, so that those with most rows are the fewest hops from the first (HPL_logsort)."""
    count = len(counts)
    for place in range(count):
        order[place] = place
    for level in range(1, most_hops(count)):
        for near in range(1, count):
            if hops(near) != level:
                continue
            for far in range(2, count):
                if level < hops(far) and counts[order[near]] < counts[order[far]]:
                    order[near], order[far] = order[far], order[near]


def spread_from(root: int, way: int, order: IntArray, lengths: FloatArray, used: int, plan: FloatArray) -> int:
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
            for place in range(receiver, min(receiver + step + (1 if way < 0 else 0), count)):
                sent += lengths[root + way * place]
            if sent > 0 and used < plan.shape[0]:
                add(plan, used, order[root + way * (receiver - step)], order[root + way * receiver], sent, 0.0)
                used += 1
        step //= 2
    return used


def even_out(order: IntArray, lengths: FloatArray, share: FloatArray, width: int, used: int, plan: FloatArray) -> int:
    """HPL_equil: each process spreads the rows outside of its even share to their owners."""
    count = len(order)
    if count <= 2:
        return used
    least, extra, begin = width // count, width % count, 0.0
    for place in range(count):
        end, before, behind = begin + lengths[place], 0.0, 0.0
        for other in range(count):
            low = other * least + min(other, extra)
            high = low + least + (1 if other < extra else 0)
            share[other] = max(min(end, high) - max(begin, low), 0.0) if other != place else 0.0
            if other < place:
                before += share[other]
            else:
                behind += share[other]
        if before > 0:
            used = spread_from(place, -1, order, share, used, plan)
        if behind > 0:
            used = spread_from(place, 1, order, share, used, plan)
        begin = end
    return used


def gather_time(
    place: int, columns: int, width: int, own: float, spreading: bool, kernels: FloatArray, noisy: bool, random: Any
) -> float:
    """Time to collect the rows to send; 0 in spread-roll but for the pivot block's row."""
    if place == 0:
        return size_time(kernels, DLASWP01T, (width + own) * columns, noisy, random)
    if spreading:
        return 0.0
    return size_time(kernels, DLASWP02N, own * columns, noisy, random)


def swap_rows(
    a: int, b: int, at: int, columns: int, place: int, plan: FloatArray, times: FloatArray, marks: IntArray,
    adapters: Adapters, kernels: FloatArray, pieces: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Make one exchange of the swap between processes a and b, including the kernels on the received rows.

    `place` is the index of its crowd in `Adapters.crowds`; -1: it is alone.
    """
    far = 1 if marks[a, NODE] != marks[b, NODE] else 0
    there = 8.0 * plan[at, FROM_FIRST] * (columns + plan[at, WIDE_FIRST])
    back = 8.0 * plan[at, FROM_SECOND] * (columns + plan[at, WIDE_SECOND])
    gap, crowded = adapters.gap, place >= 0 and marks[a, GROUP] != marks[b, GROUP]
    sender, receiver = (a, b) if there > 0 else (b, a)
    both = there > 0 and back > 0
    if crowded:
        gap *= crowd_of(adapters, sender, receiver, both, place, marks)
    begun = max(times[a, CLOCK], times[b, CLOCK])
    clock_a, clock_b = exchange(times[a, CLOCK], times[b, CLOCK], there, back, pieces, far, gap, random)
    if crowded:
        note(adapters, begun, max(clock_a, clock_b), sender, receiver, both, place, marks)
    if plan[at, AFTER_FIRST] > NO_KERNEL:
        clock_a += size_time(kernels, DLASWP03T, plan[at, FROM_SECOND] * columns, noisy, random)
    if plan[at, AFTER_SECOND] == RUN_DLASWP03T:
        clock_b += size_time(kernels, DLASWP03T, plan[at, FROM_FIRST] * columns, noisy, random)
    elif plan[at, AFTER_SECOND] == RUN_DLASWP04T:
        clock_b += size_time(kernels, DLASWP04T, plan[at, FROM_SECOND] * columns, noisy, random)
    times[a, CLOCK], times[b, CLOCK] = clock_a, clock_b


def roll_at_once(
    panel: int, q: int, size: float, crowded: bool, times: FloatArray, marks: IntArray, adapters: Adapters,
    pieces: FloatArray, run: RunNumbers, random: Any,
) -> None:  # fmt: skip
    """Roll rows round a process column in messages of `size` bytes each way: P - 1 of each process, in lockstep.

    A process meets the ones before and behind it in turn; they count as if they were those of the next process rows.
    """
    crowds, begun, far, behind = 0.0, 0.0, 0, adapters.pivots // run.q - 1
    for p in range(run.p):
        a, b = p * run.q + q, (p + 1) % run.p * run.q + q
        begun, far = max(begun, times[a, CLOCK]), max(far, 1 if marks[a, NODE] != marks[b, NODE] else 0)
        crowds += crowd_of(adapters, a, b, True, (behind - p) * run.q + (q - panel) % run.q, marks) if crowded else 1.0
    once = exchange(0.0, 0.0, size, size, pieces, far, adapters.gap * crowds / run.p, random)[0]
    for p in range(run.p):
        a, b = p * run.q + q, (p + 1) % run.p * run.q + q
        times[a, CLOCK] = begun + (run.p - 1) * once
        if crowded:
            start = begun + (run.p - 1) * once / 2 * (p % 2)
            place = (behind - p) * run.q + (q - panel) % run.q
            note(adapters, start, start + (run.p - 1) * once / 2, a, b, True, place, marks)
