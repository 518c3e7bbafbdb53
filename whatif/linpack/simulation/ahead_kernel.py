"""Look-ahead along rings, compiled: the update with an old panel while the newest one is broadcast.

A process probes for its panel before and after it gathers rows, before and after every exchange of the row swap, and
after every block of columns. If the panel has arrived, the process receives it and passes it on, which may block it
until the next process probes. Rows therefore wait for columns and columns for rows. Every process is simulated until it
has to wait for another one, and again when that one has caught up. The result of a probe is known once the panel was
sent, or once its sender's clock is later. If all processes wait, the panel of the earliest one has not been sent, since
all other events happen later.
"""

from __future__ import annotations

from math import ceil, inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from whatif.linpack.simulation.costs import (
    AT_ONCE,
    PIECE_PROTOCOL,
    PIECE_RECEIVE,
    PIECE_RECEIVE_PER_BYTE,
    PIECE_SEND,
    PIECE_SEND_PER_BYTE,
    RENDEZVOUS,
    least_factor,
    mode_factor,
    piece_of,
    wire_of,
    with_noise,
)
from whatif.linpack.simulation.layout import (
    ABSENT,
    BEGUN,
    CLOCK,
    DEVIATION,
    FACTOR,
    FIRST,
    HAS_PANEL,
    LEFT,
    NEXT,
    NEXT_FIRST,
    NEXT_SECOND,
    NODE,
    PHASE,
    POSTED,
    ROW,
    SECOND,
    SEEN_BROADCAST_START,
    SEEN_UPDATE_END,
    SENT,
    STATUS,
    SWAP_BINARY,
    SWAP_SPREAD,
    SWAPPED,
    TARGETS,
    UPDATED,
    RunNumbers,
    columns_behind,
    spreads,
)
from whatif.linpack.simulation.sharing_kernel import Adapters, note, panel_gap
from whatif.linpack.simulation.step_kernel import took, update_deviation, update_mean
from whatif.linpack.simulation.swap_kernel import gather_time, swap_rows
from whatif.models.quantities import FloatArray, IntArray

BEFORE_SWAP, IN_SWAP, BEHIND_SWAP = 0, 1, 2
"""Phases of a process."""
READY, MEETING, ASKING, SENDING, AWAITING, DONE = 0, 1, 2, 3, 4, 5
"""States of a process: it can continue; it waits for its partner in an exchange; for the result of a probe; for the
receiver of its panel; for its panel with nothing left to update; it is done."""
BELOW, MESSAGE, OWN, PLACE = 0, 1, 2, 3
TARGET, SOURCE, WIDE, PENDING, ITEMS = 0, 3, 4, 5, 6
"""Columns of `PanelStep.columns`."""


class PanelStep(NamedTuple):
    """State that the processes of one step share."""

    times: FloatArray
    marks: IntArray
    seen: FloatArray
    swaps: FloatArray
    """[algorithm, exchange, column] of the old panel."""
    used: IntArray
    """[algorithm]: exchanges."""
    openings: IntArray
    """[algorithm, distance]: the first exchange of each process row."""
    columns: IntArray
    """[process column, item]: three targets of the panel and its source, -1: none; columns to update; number of
    processes that wait for the result of a probe."""
    rows: FloatArray
    """[quantity, process row]: rows below the old panel, size of the new one's message, pivots of the old one,
    distance from its pivot block."""
    starts: IntArray
    """[distance]: the first process of the row so far from the old panel's pivot block."""
    waiting: IntArray
    """[4 x process + 1]: processes that can continue, and at the end their number."""
    adapters: Adapters
    kernels: FloatArray
    pieces: FloatArray
    panel: int
    old: int
    width: int
    """Columns of the old panel."""
    run: RunNumbers
    noisy: bool


def begin(step: PanelStep, targets: IntArray) -> None:
    """Set every process to the phase before its swap, with all its columns to update."""
    times, marks, run = step.times, step.marks, step.run
    for place in range(run.q):
        q = (step.panel + place) % run.q
        for number in range(TARGETS + 1):
            other = targets[place, number]
            step.columns[q, TARGET + number] = (step.panel + other) % run.q if other >= 0 else -1
        step.columns[q, WIDE], step.columns[q, PENDING] = columns_behind(step.panel, q, run), 0
        for p in range(run.p):
            me = p * run.q + q
            marks[me, ROW], marks[me, PHASE], marks[me, STATUS], marks[me, SENT] = p, BEFORE_SWAP, READY, 0
            marks[me, HAS_PANEL], marks[me, LEFT] = 1 if place == 0 else 0, step.columns[q, WIDE]
            times[me, POSTED], times[me, BEGUN] = inf, times[me, CLOCK]
            times[me, ABSENT] = -inf if place == 0 else earliest_sent(me, me + step.columns[q, SOURCE] - q, step)
    for p in range(run.p):
        send_on(p * run.q + step.panel % run.q, step)


def earliest_sent(me: int, source: int, step: PanelStep) -> float:
    """Earliest time at which a process's source can send it the panel, from that of the source."""
    clock, bound = step.times[source, CLOCK], step.times[source, ABSENT]
    before = step.columns[source % step.run.q, SOURCE]
    if before < 0:
        return float(clock)
    sender, size = source - source % step.run.q + before, step.rows[MESSAGE, step.marks[me, ROW]]
    far = 1 if step.marks[sender, NODE] != step.marks[source, NODE] else 0
    piece = piece_of(step.pieces, far, size)
    wire = wire_of(step.pieces, far, piece, size, panel_gap(step.adapters, sender, source, step.marks))
    wire *= least_factor(step.pieces, far, piece)
    if step.pieces[far, piece, PIECE_PROTOCOL] == AT_ONCE:
        return float(max(clock, bound + wire))
    return float(max(clock, bound) + wire)


def update_ahead(step: PanelStep, random: Any) -> None:
    """Apply the old panel to the columns behind the new one, during the broadcast of the new one."""
    run = step.run
    step.waiting[-1] = 0
    for place in range(1, run.q + 1):
        for p in range(run.p):
            go_on(p * run.q + (step.panel + place) % run.q, step, random)
        go_on_with_all(step, random)
    while answer_earliest(step):
        go_on_with_all(step, random)


def go_on_with_all(step: PanelStep, random: Any) -> None:
    """Simulate the processes that can continue until none is left."""
    waiting = step.waiting
    while waiting[-1] > 0:
        waiting[-1] -= 1
        go_on(int(waiting[waiting[-1]]), step, random)


def wake(me: int, step: PanelStep) -> None:
    """Mark a process as ready, possibly once for each target before it is simulated again."""
    waiting = step.waiting
    if step.marks[me, STATUS] == ASKING:
        step.columns[me % step.run.q, PENDING] -= 1
    step.marks[me, STATUS] = READY
    waiting[waiting[-1]] = me
    waiting[-1] += 1


def answer_earliest(step: PanelStep) -> bool:
    """End the earliest probe with the result that the panel was not sent; False if no process waits for one."""
    found, earliest = -1, inf
    for q in range(step.run.q):
        if step.columns[q, PENDING] > 0:
            for me in range(q, step.times.shape[0], step.run.q):
                if step.marks[me, STATUS] == ASKING and step.times[me, CLOCK] < earliest:
                    found, earliest = me, step.times[me, CLOCK]
    if found >= 0:
        step.times[found, ABSENT] = np.nextafter(earliest, inf)
        wake(found, step)
    return found >= 0


def go_on(me: int, step: PanelStep, random: Any) -> None:
    """Simulate a process until it has to wait for another one, or is done."""
    marks = step.marks
    if marks[me, STATUS] != READY:
        return
    if marks[me, PHASE] == BEFORE_SWAP and may_go_on(me, step, random):
        gather(me, step, random)
    if marks[me, PHASE] == IN_SWAP:
        exchange_rows(me, step, random)
    if marks[me, PHASE] == BEHIND_SWAP and marks[me, STATUS] == READY:
        finish(me, step, random)
    answer_targets(me, step)


def answer_targets(me: int, step: PanelStep) -> None:
    """End the probes of the targets of a process whose clocks it has passed."""
    q = me % step.run.q
    for number in range(TARGETS):
        column = step.columns[q, TARGET + number]
        if column >= 0 and step.columns[column, PENDING] > 0:
            other = me + column - q
            if step.marks[other, STATUS] == ASKING and step.times[me, CLOCK] > step.times[other, CLOCK]:
                wake(other, step)


def may_go_on(me: int, step: PanelStep, random: Any) -> bool:
    """Take the panel if it has been sent by now; whether the process need not wait for that."""
    times, marks = step.times, step.marks
    clock, posted = times[me, CLOCK], times[me, POSTED]
    if marks[me, HAS_PANEL]:
        return True
    if posted <= clock:
        take(me, step, random)
    elif posted == inf and clock >= times[me, ABSENT]:
        source = me + step.columns[me % step.run.q, SOURCE] - me % step.run.q
        if times[source, CLOCK] <= clock:
            marks[me, STATUS] = ASKING
            step.columns[me % step.run.q, PENDING] += 1
    return bool(marks[me, STATUS] == READY)


def gather(me: int, step: PanelStep, random: Any) -> None:
    """Begin the swap: collect the rows to send."""
    marks, run = step.marks, step.run
    p, columns = marks[me, ROW], marks[me, LEFT]
    marks[me, PHASE] = BEHIND_SWAP
    if columns > 0 and run.p > 1:
        marks[me, PHASE] = IN_SWAP
        marks[me, NEXT] = step.openings[SWAP_SPREAD if spreads(columns, run) else SWAP_BINARY, int(step.rows[PLACE, p])]
        step.times[me, CLOCK] += gather_time(
            int(step.rows[PLACE, p]), columns, step.width, step.rows[OWN, p], spreads(columns, run), step.kernels,
            step.noisy, random,
        )  # fmt: skip


def exchange_rows(me: int, step: PanelStep, random: Any) -> None:
    """Make the remaining exchanges of a process, until it has to wait for a partner."""
    times, marks, run = step.times, step.marks, step.run
    q = me % run.q
    columns = step.columns[q, WIDE]
    algorithm = SWAP_SPREAD if spreads(columns, run) else SWAP_BINARY
    plan = step.swaps[algorithm]
    while marks[me, NEXT] >= 0 and may_go_on(me, step, random):
        at = marks[me, NEXT]
        a, b = step.starts[int(plan[at, FIRST])] + q, step.starts[int(plan[at, SECOND])] + q
        other = a + b - me
        if marks[other, STATUS] != MEETING or marks[other, NEXT] != at:
            marks[me, STATUS] = MEETING
            return
        place = (step.used[algorithm] - 1 - at) * run.q + (q - step.panel) % run.q
        swap_rows(
            a, b, at, columns, place, plan, times, marks, step.adapters, step.kernels, step.pieces, step.noisy, random
        )
        marks[a, NEXT], marks[b, NEXT] = int(plan[at, NEXT_FIRST]), int(plan[at, NEXT_SECOND])
        wake(other, step)
    if marks[me, STATUS] == READY and may_go_on(me, step, random):
        marks[me, PHASE] = BEHIND_SWAP
        times[me, SWAPPED] += times[me, CLOCK] - times[me, BEGUN]


def take(me: int, step: PanelStep, random: Any) -> None:
    """Receive the panel, wake its sender, and pass the panel on."""
    times, marks, pieces, q = step.times, step.marks, step.pieces, me % step.run.q
    from_column = step.columns[q, SOURCE]
    source, size = me + from_column - q, step.rows[MESSAGE, marks[me, ROW]]
    far = 1 if marks[source, NODE] != marks[me, NODE] else 0
    piece = piece_of(pieces, far, size)
    wire = wire_of(pieces, far, piece, size, panel_gap(step.adapters, source, me, marks))
    wire *= mode_factor(pieces, far, piece, random)
    if pieces[far, piece, PIECE_PROTOCOL] == RENDEZVOUS:
        end = times[me, CLOCK] + wire
        times[source, CLOCK] = end
        marks[source, SENT] += 1
        wake(source, step)
        send_on(source, step)
    else:
        left = times[me, POSTED] + pieces[far, piece, PIECE_SEND] + size * pieces[far, piece, PIECE_SEND_PER_BYTE]
        start = left if pieces[far, piece, PIECE_PROTOCOL] == AT_ONCE else max(left, times[me, CLOCK])
        end = (
            max(times[me, CLOCK], start + wire)
            + pieces[far, piece, PIECE_RECEIVE]
            + size * pieces[far, piece, PIECE_RECEIVE_PER_BYTE]
        )
    if far:
        note(step.adapters, end - wire, end, source, me, False, step.adapters.panels + me, marks)
    took(step.panel, me, end, times, step.seen)
    marks[me, HAS_PANEL] = 1
    send_on(me, step)


def send_on(me: int, step: PanelStep) -> None:
    """Send the panel to the remaining targets, until one of them has to receive it first."""
    times, marks, pieces, q = step.times, step.marks, step.pieces, me % step.run.q
    size = step.rows[MESSAGE, marks[me, ROW]]
    while marks[me, SENT] < TARGETS and step.columns[q, TARGET + marks[me, SENT]] >= 0:
        column = step.columns[q, TARGET + marks[me, SENT]]
        other = me + column - q
        times[other, POSTED] = times[me, CLOCK]
        if marks[other, STATUS] == AWAITING or marks[other, STATUS] == ASKING:
            wake(other, step)
        far = 1 if marks[other, NODE] != marks[me, NODE] else 0
        piece = piece_of(pieces, far, size)
        if pieces[far, piece, PIECE_PROTOCOL] == RENDEZVOUS:
            marks[me, STATUS] = SENDING
            return
        times[me, CLOCK] += pieces[far, piece, PIECE_SEND] + size * pieces[far, piece, PIECE_SEND_PER_BYTE]
        marks[me, SENT] += 1


def finish(me: int, step: PanelStep, random: Any) -> None:
    """Update the columns: blocks until the panel is sent, then the rest, unless the panel has to be passed on first."""
    times, marks = step.times, step.marks
    if marks[me, HAS_PANEL] == 0:
        if times[me, POSTED] == inf:
            marks[me, STATUS] = AWAITING
            return
        idle = update_until_sent(me, step, random)
        take(me, step, random)
        if step.panel < step.seen.shape[0]:
            step.seen[step.panel, me, SEEN_BROADCAST_START] = idle
    if marks[me, STATUS] == READY:
        if marks[me, LEFT] > 0:
            time, deviation = columns_time(me, marks[me, LEFT], step)
            times[me, CLOCK] += with_noise(time, deviation, random)
        times[me, UPDATED] += times[me, CLOCK] - times[me, BEGUN]
        marks[me, STATUS] = DONE
        if step.old < step.seen.shape[0]:
            step.seen[step.old, me, SEEN_UPDATE_END] = times[me, CLOCK]


def columns_time(me: int, columns: int, step: PanelStep) -> tuple[float, float]:
    """Mean and standard deviation of the time of a process to update a number of columns."""
    p, factor = step.marks[me, ROW], step.times[me, FACTOR]
    below, alone, holds_block = int(step.rows[BELOW, p]), step.run.p == 1, step.rows[PLACE, p] == 0
    time = update_mean(below, columns, step.width, factor, alone, holds_block, step.kernels)
    if not step.noisy:
        return time, 0.0
    scale = factor * step.times[me, DEVIATION]
    return time, update_deviation(below, columns, step.width, scale, alone, holds_block, step.kernels)


def update_until_sent(me: int, step: PanelStep, random: Any) -> float:
    """Update blocks of columns until the panel is sent; return the time when the updates ended.

    The deviation of many blocks grows as the root of their number; with noise the last blocks are taken one by one.
    """
    times, marks, nb = step.times, step.marks, step.run.nb
    posted = times[me, POSTED]
    block, deviation = columns_time(me, nb, step)
    while marks[me, LEFT] >= nb and times[me, CLOCK] < posted:
        whole = marks[me, LEFT] // nb
        missing = min((posted - times[me, CLOCK]) / block, whole)
        count = min(max(int(0.75 * missing), 1) if deviation > 0.0 else ceil(missing), whole)
        times[me, CLOCK] += with_noise(count * block, sqrt(count) * deviation, random)
        marks[me, LEFT] -= count * nb
    if marks[me, LEFT] > 0 and times[me, CLOCK] < posted:
        time, deviation = columns_time(me, marks[me, LEFT], step)
        times[me, CLOCK] += with_noise(time, deviation, random)
        marks[me, LEFT] = 0
    idle = float(times[me, CLOCK])
    times[me, CLOCK] = max(idle, posted)
    return idle
