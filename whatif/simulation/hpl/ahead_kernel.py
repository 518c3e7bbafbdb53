"""Look-ahead along rings, compiled: the update with an old panel while the newest one is broadcast.

A process asks now and then whether its panel is there: before and after it gathers rows, after every exchange of the
row swap, after every block of columns. If it is, it takes it and at once passes it on, which may keep it until the
next process asks. So rows wait for columns and columns for rows. Process columns are run in the order of the rings,
each as far as what is known allows, again and again until nothing is left: mostly a column's swap is over before its
panels come, and twice is enough. Whether a panel had been sent when it was asked for is known once it was sent, or
once its sender's clock is later. Where all wait, the earliest question is answered with no, for whatever is still to
happen happens later.
"""

from __future__ import annotations

from math import ceil, inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import AT_ONCE, RENDEZVOUS, piece_of, wire_of
from whatif.simulation.hpl.layout import (
    ABSENT,
    BEGUN,
    CLOCK,
    CROWD,
    DEVIATION,
    FACTOR,
    FIRST,
    HAS_PANEL,
    LEFT,
    NEXT,
    NODE,
    PHASE,
    POSTED,
    ROW,
    SECOND,
    SENT,
    STATUS,
    SWAPPED,
    UPDATED,
    Run,
    columns_behind,
    spreads,
)
from whatif.simulation.hpl.sharing_kernel import Adapters, note
from whatif.simulation.hpl.step_kernel import took, update_time
from whatif.simulation.hpl.swap_kernel import gather_time, swap_rows

BEFORE_SWAP, IN_SWAP, BEHIND_SWAP = 0, 1, 2
"""Where a process is."""
READY, ASKING, SENDING, AWAITING, DONE = 0, 1, 2, 3, 4
"""What a process waits for: nothing, or its partner in an exchange; to know if its panel was sent; its panel to be
taken; its panel with nothing else to do; nothing any more."""
TARGETS = 3
BELOW, MESSAGE, OWN, PLACE = 0, 1, 2, 3
TARGET, SOURCE, WIDE, DUE, PENDING, EXCHANGED, ITEMS = 0, 3, 4, 5, 6, 7, 8
"""Columns of `Step.columns`."""


class Step(NamedTuple):
    """What the processes of one step share."""

    times: FloatArray
    marks: IntArray
    seen: FloatArray
    swaps: FloatArray
    """[algorithm, exchange, column] of the old panel."""
    used: IntArray
    """[algorithm]: exchanges."""
    columns: IntArray
    """[process column, item]: the three it sends the panel to, and the one it gets it from, -1: nobody; columns to
    update; whether it is to be run; how many of its processes ask for their panel; exchanges that are over, and all
    before."""
    rows: FloatArray
    """[quantity, process row]: rows below the old panel, size of the new one's message, pivots of the old one,
    distance from its pivot block."""
    starts: IntArray
    """[distance]: the first process of the row so far from the old panel's pivot block."""
    held: IntArray
    """[distance]: 1 for the processes of the column that is run which cannot go on."""
    adapters: Adapters
    kernels: FloatArray
    pieces: FloatArray
    panel: int
    old: int
    width: int
    """Columns of the old panel."""
    run: Run
    noisy: bool


def begin(step: Step, targets: IntArray) -> None:
    """Put every process before its swap, with its columns still to be updated."""
    times, marks, run = step.times, step.marks, step.run
    for place in range(run.q):
        q = (step.panel + place) % run.q
        for number in range(TARGETS + 1):
            other = targets[place, number]
            step.columns[q, TARGET + number] = (step.panel + other) % run.q if other >= 0 else -1
        step.columns[q, WIDE], step.columns[q, DUE] = columns_behind(step.panel, q, run), 1
        step.columns[q, EXCHANGED] = 0
        for p in range(run.p):
            me = p * run.q + q
            marks[me, ROW], marks[me, PHASE], marks[me, STATUS], marks[me, SENT], marks[me, NEXT] = p, 0, 0, 0, 0
            marks[me, HAS_PANEL], marks[me, LEFT] = 1 if place == 0 else 0, step.columns[q, WIDE]
            times[me, POSTED], times[me, BEGUN] = inf, times[me, CLOCK]
            times[me, ABSENT] = -inf if place == 0 else earliest_sent(me, me + step.columns[q, SOURCE] - q, step)
    for p in range(run.p):
        send_on(p * run.q + step.panel % run.q, step)


def earliest_sent(me: int, source: int, step: Step) -> float:
    """A time before which a process's source cannot send it the panel, from that of the source."""
    clock, bound = step.times[source, CLOCK], step.times[source, ABSENT]
    before = step.columns[source % step.run.q, SOURCE]
    if before < 0:
        return float(clock)
    sender, size = source - source % step.run.q + before, step.rows[MESSAGE, step.marks[me, ROW]]
    far = 1 if step.marks[sender, NODE] != step.marks[source, NODE] else 0
    piece = piece_of(step.pieces, far, size)
    wire = wire_of(step.pieces, far, piece, size, step.adapters.gap * step.times[source, CROWD])
    if step.pieces[far, piece, 7] == AT_ONCE:
        return float(max(clock, bound + wire))
    return float(max(clock, bound) + wire)


def update_ahead(step: Step, random: Any) -> None:
    """Apply the old panel to the columns behind the new one, while that is broadcast."""
    count = step.run.q
    going = True
    while going:
        going = False
        for place in range(1, count + 1):
            q = (step.panel + place) % count
            if step.columns[q, DUE]:
                step.columns[q, DUE], going = 0, True
                run_column(q, step, random)
                wake_targets(q, step)
        if not going:
            going = answer_earliest(step)


def wake_targets(q: int, step: Step) -> None:
    """Run those again who ask whether this process column had sent them the panel before its clocks."""
    for number in range(TARGETS):
        other = step.columns[q, TARGET + number]
        if other >= 0 and step.columns[other, PENDING] > 0:
            step.columns[other, DUE] = 1


def answer_earliest(step: Step) -> bool:
    """Tell the process that asked first that its panel has not been sent; whether there was one."""
    found, earliest = -1, inf
    for q in range(step.run.q):
        if step.columns[q, PENDING] > 0:
            for me in range(q, step.times.shape[0], step.run.q):
                if step.marks[me, STATUS] == ASKING and step.times[me, CLOCK] < earliest:
                    found, earliest = me, step.times[me, CLOCK]
    if found >= 0:
        step.times[found, ABSENT] = np.nextafter(earliest, inf)
        step.columns[found % step.run.q, DUE] = 1
    return found >= 0


def run_column(q: int, step: Step, random: Any) -> None:
    """Run the processes of a column until each has to wait for another column, or is done."""
    marks, held, pending = step.marks, step.held, 0
    for place in range(step.run.p):
        me = step.starts[place] + q
        if marks[me, STATUS] == ASKING:
            marks[me, STATUS] = READY
        if marks[me, STATUS] == READY and marks[me, PHASE] == BEFORE_SWAP and may_go_on(me, step):
            gather(me, step, random)
        held[place] = 0 if marks[me, STATUS] == READY else 1
    if step.run.p > 1 and step.columns[q, WIDE] > 0:
        exchange_rows(q, step, random)
    for place in range(step.run.p):
        me = step.starts[place] + q
        if held[place] == 0:
            finish(me, step, random)
        if marks[me, STATUS] == ASKING:
            pending += 1
    step.columns[q, PENDING] = pending


def may_go_on(me: int, step: Step) -> bool:
    """Take the panel if it has been sent by now; whether the process need not wait for that."""
    times, marks = step.times, step.marks
    clock, posted = times[me, CLOCK], times[me, POSTED]
    if marks[me, HAS_PANEL]:
        return True
    if posted <= clock:
        take(me, step)
    elif posted == inf and clock >= times[me, ABSENT]:
        source = me + step.columns[me % step.run.q, SOURCE] - me % step.run.q
        if times[source, CLOCK] <= clock:
            marks[me, STATUS] = ASKING
    return bool(marks[me, STATUS] == READY)


def gather(me: int, step: Step, random: Any) -> None:
    """Begin the swap: collect the rows that are to be sent."""
    marks, run = step.marks, step.run
    p, columns = marks[me, ROW], marks[me, LEFT]
    marks[me, PHASE] = BEHIND_SWAP
    if columns > 0 and run.p > 1:
        marks[me, PHASE] = IN_SWAP
        step.times[me, CLOCK] += gather_time(
            int(step.rows[PLACE, p]), columns, step.width, step.rows[OWN, p], spreads(columns, run), step.kernels,
            step.noisy, random,
        )  # fmt: skip


def exchange_rows(q: int, step: Step, random: Any) -> None:
    """The exchanges of a process column that are left, as far as both sides come to them."""
    times, marks, held, starts = step.times, step.marks, step.held, step.starts
    columns = step.columns[q, WIDE]
    algorithm = 1 if spreads(columns, step.run) else 0
    plan, used = step.swaps[algorithm], step.used[algorithm]
    over = step.columns[q, EXCHANGED]
    for at in range(over, used):
        first, second = int(plan[at, FIRST]), int(plan[at, SECOND])
        a, b = starts[first] + q, starts[second] + q
        if at < marks[a, NEXT]:
            over += 1 if over == at else 0
            continue
        if held[first] == 0 and not may_go_on(a, step):
            held[first] = 1
        if held[second] == 0 and not may_go_on(b, step):
            held[second] = 1
        if held[first] or held[second]:
            held[first], held[second] = 1, 1
            continue
        swap_rows(
            a, b, at, columns, (used - 1 - at) * step.run.q + q, plan, times, marks, step.adapters, step.kernels,
            step.pieces, step.noisy, random,
        )  # fmt: skip
        marks[a, NEXT], marks[b, NEXT] = at + 1, at + 1
        over += 1 if over == at else 0
    step.columns[q, EXCHANGED] = over


def take(me: int, step: Step) -> None:
    """Receive the panel, let its sender go on, and pass it on."""
    times, marks, pieces, q = step.times, step.marks, step.pieces, me % step.run.q
    from_column = step.columns[q, SOURCE]
    source, size = me + from_column - q, step.rows[MESSAGE, marks[me, ROW]]
    far = 1 if marks[source, NODE] != marks[me, NODE] else 0
    piece = piece_of(pieces, far, size)
    wire = wire_of(pieces, far, piece, size, step.adapters.gap * times[me, CROWD])
    if pieces[far, piece, 7] == RENDEZVOUS:
        end = times[me, CLOCK] + wire
        times[source, CLOCK] = end
        marks[source, SENT] += 1
        marks[source, STATUS] = READY
        step.columns[from_column, DUE] = 1
        send_on(source, step)
    else:
        left = times[me, POSTED] + pieces[far, piece, 3] + size * pieces[far, piece, 4]
        start = left if pieces[far, piece, 7] == AT_ONCE else max(left, times[me, CLOCK])
        end = max(times[me, CLOCK], start + wire) + pieces[far, piece, 5] + size * pieces[far, piece, 6]
    if far:
        note(step.adapters, end - wire, end, marks[source, NODE], marks[me, NODE], -1 - me)
    took(step.panel, me, end, times, step.seen)
    marks[me, HAS_PANEL] = 1
    send_on(me, step)


def send_on(me: int, step: Step) -> None:
    """Send the panel to the targets that are left, until one of them has to take it first."""
    times, marks, pieces, q = step.times, step.marks, step.pieces, me % step.run.q
    size = step.rows[MESSAGE, marks[me, ROW]]
    while marks[me, SENT] < TARGETS and step.columns[q, TARGET + marks[me, SENT]] >= 0:
        column = step.columns[q, TARGET + marks[me, SENT]]
        other = me + column - q
        times[other, POSTED] = times[me, CLOCK]
        step.columns[column, DUE] = 1
        if marks[other, STATUS] == AWAITING:
            marks[other, STATUS] = READY
        far = 1 if marks[other, NODE] != marks[me, NODE] else 0
        piece = piece_of(pieces, far, size)
        if pieces[far, piece, 7] == RENDEZVOUS:
            marks[me, STATUS] = SENDING
            return
        times[me, CLOCK] += pieces[far, piece, 3] + size * pieces[far, piece, 4]
        marks[me, SENT] += 1


def finish(me: int, step: Step, random: Any) -> None:
    """Update the columns, block by block until the panel has been taken, unless it has to be passed on first."""
    times, marks = step.times, step.marks
    if marks[me, PHASE] == IN_SWAP:
        if not may_go_on(me, step):
            return
        marks[me, PHASE] = BEHIND_SWAP
        times[me, SWAPPED] += times[me, CLOCK] - times[me, BEGUN]
    if marks[me, HAS_PANEL] == 0:
        if times[me, POSTED] == inf:
            marks[me, STATUS] = AWAITING
            return
        idle = update_until_sent(me, step, random)
        take(me, step)
        if step.panel < step.seen.shape[0]:
            step.seen[step.panel, me, 2] = idle
    if marks[me, STATUS] == READY:
        if marks[me, LEFT] > 0:
            times[me, CLOCK] += columns_time(me, marks[me, LEFT], step, step.noisy, random)
        times[me, UPDATED] += times[me, CLOCK] - times[me, BEGUN]
        marks[me, STATUS] = DONE
        if step.old < step.seen.shape[0]:
            step.seen[step.old, me, 4] = times[me, CLOCK]


def columns_time(me: int, columns: int, step: Step, noisy: bool, random: Any) -> float:
    """Time of a process to update so many columns."""
    p = step.marks[me, ROW]
    return update_time(
        int(step.rows[BELOW, p]), columns, step.width, step.times[me, FACTOR], step.times[me, DEVIATION],
        step.run.p == 1, step.rows[PLACE, p] == 0, step.kernels, noisy, random,
    )  # fmt: skip


def update_until_sent(me: int, step: Step, random: Any) -> float:
    """Update block after block of columns until the panel has been sent; since when there was nothing to update."""
    times, marks, nb = step.times, step.marks, step.run.nb
    posted = times[me, POSTED]
    whole = marks[me, LEFT] // nb
    if not step.noisy and whole > 1 and posted > times[me, CLOCK]:
        block = columns_time(me, nb, step, False, random)
        left = posted - times[me, CLOCK]
        blocks = ceil(left / block) if left < whole * block else whole
        times[me, CLOCK] += blocks * block
        marks[me, LEFT] -= blocks * nb
    while marks[me, LEFT] > 0 and times[me, CLOCK] < posted:
        columns, blocks = min(nb, marks[me, LEFT]), 1
        time = columns_time(me, columns, step, step.noisy, random)
        if step.noisy and marks[me, LEFT] >= 2 * nb:
            # Many blocks at once deviate as the root of their number; the last ones before the panel one by one.
            mean = columns_time(me, nb, step, False, random)
            blocks = max(1, min(marks[me, LEFT] // nb, int(0.75 * (posted - times[me, CLOCK]) / mean)))
            time = (blocks - sqrt(blocks)) * mean + sqrt(blocks) * time
        times[me, CLOCK] += max(time, 0.0)
        marks[me, LEFT] -= blocks * columns
    idle = times[me, CLOCK]
    times[me, CLOCK] = max(idle, posted)
    return float(idle)
