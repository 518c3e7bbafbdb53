"""Look-ahead along rings, compiled: the update with an old panel while the newest one is broadcast.

A process asks now and then whether its panel is there: before and after it gathers rows, after every exchange of the
row swap, after every block of columns. If it is, it takes it and at once passes it on, which may keep it until the
next process asks. So rows wait for columns and columns for rows. Every process runs as far as what is known allows:
whether a panel had been sent when it was asked for is known once it was sent, or once its sender's clock is later. Where
all wait, the earliest question is answered with no, for whatever is still to happen happens later. In which order
the processes run changes nothing.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import AT_ONCE, RENDEZVOUS, piece_of, wire_time
from whatif.simulation.hpl.layout import (
    BEGUN,
    CLOCK,
    CROWD,
    DONE_EXCHANGES,
    FACTOR,
    FIRST,
    HAS_PANEL,
    LEFT,
    NODE,
    PHASE,
    POSTED,
    QUEUED,
    ROW,
    SECOND,
    SENT,
    SOURCE,
    STATUS,
    SWAPPED,
    TARGET,
    TOLD,
    UPDATED,
    Run,
    columns_behind,
    panel_bytes,
    rows_below,
    spreads,
    width_of,
)
from whatif.simulation.hpl.step_kernel import (
    Messages,
    State,
    broadcast,
    end_step,
    factor,
    latest,
    took,
    update_column,
    update_time,
)
from whatif.simulation.hpl.sharing_kernel import Adapters, note
from whatif.simulation.hpl.swap_kernel import gather_time, swap_rows

TOP, MEETING_ROWS, COLUMNS = 0, 1, 2
"""Where a process is: before the swap, in it, behind it."""
READY, ASKING, MEETING, SENDING, AWAITING, DONE = 0, 1, 2, 3, 4, 5
"""What a process waits for: nothing, to know if its panel was sent, its partner in an exchange, its panel to be taken, its
panel with nothing else to do, nothing any more."""
TARGETS = 3
BELOW, MESSAGE, OWN, PLACE, START = 0, 1, 2, 3, 4


class Step(NamedTuple):
    """What the processes of one step share."""

    times: FloatArray
    marks: IntArray
    seen: FloatArray
    swaps: FloatArray
    """[algorithm, exchange, column] of the old panel."""
    used: IntArray
    """[algorithm]: exchanges."""
    lists: IntArray
    """[algorithm, place]: where the exchanges of each process row begin, P + 1 places, then their numbers."""
    rows: FloatArray
    """[quantity, process row]: rows below the old panel, size of the new one's message, pivots of the old one, distance from
    its pivot block; and, by that distance, the first process of the row."""
    stack: IntArray
    """[place]: processes that can run; the last element is their number."""
    adapters: Adapters
    kernels: FloatArray
    pieces: FloatArray
    panel: int
    old: int
    width: int
    """Columns of the old panel."""
    run: Run
    noisy: bool


def push(me: int, marks: IntArray, stack: IntArray) -> None:
    """Let a process run."""
    if marks[QUEUED, me] == 0:
        marks[QUEUED, me] = 1
        size = stack[len(stack) - 1]
        stack[size] = me
        stack[len(stack) - 1] = size + 1


def index_exchanges(swaps: FloatArray, used: IntArray, slot: int, count: int, lists: IntArray) -> None:
    """Which exchanges of the swap each process row takes part in."""
    for algorithm in range(2):
        for place in range(count + 1):
            lists[algorithm, place] = 0
        for at in range(used[slot, algorithm]):
            lists[algorithm, int(swaps[slot, algorithm, at, FIRST]) + 1] += 1
            lists[algorithm, int(swaps[slot, algorithm, at, SECOND]) + 1] += 1
        lists[algorithm, 0] = count + 1
        for place in range(count):
            lists[algorithm, place + 1] += lists[algorithm, place]
        filled = np.zeros(count, np.int64)
        for at in range(used[slot, algorithm]):
            for side in range(2):
                place = int(swaps[slot, algorithm, at, FIRST + side])
                lists[algorithm, lists[algorithm, place] + filled[place]] = at
                filled[place] += 1


def begin(step: Step, targets: IntArray) -> None:
    """Put every process before its swap, with its columns still to be updated."""
    times, marks, run = step.times, step.marks, step.run
    for place in range(run.q - 1, -1, -1):
        q = (step.panel + place) % run.q
        columns = columns_behind(step.panel, q, run)
        for p in range(run.p):
            me = p * run.q + q
            for row in (PHASE, STATUS, TOLD, SENT, DONE_EXCHANGES):
                marks[row, me] = 0
            for number in range(TARGETS + 1):
                other = targets[place, number]
                marks[TARGET + number, me] = p * run.q + (step.panel + other) % run.q if other >= 0 else -1
            marks[HAS_PANEL, me] = 1 if place == 0 else 0
            marks[LEFT, me], marks[ROW, me] = columns, p
            times[POSTED, me], times[BEGUN, me] = inf, times[CLOCK, me]
            push(me, marks, step.stack)


def update_ahead(step: Step, targets: IntArray, random: Any) -> None:
    """Apply the old panel to the columns behind the new one, while that is broadcast."""
    begin(step, targets)
    run, stack, marks = step.run, step.stack, step.marks
    for p in range(run.p):
        send_on(p * run.q + step.panel % run.q, step)
    waiting = True
    while waiting:
        while stack[len(stack) - 1] > 0:
            stack[len(stack) - 1] -= 1
            me = stack[stack[len(stack) - 1]]
            marks[QUEUED, me] = 0
            if marks[STATUS, me] == READY:
                advance(me, step, random)
                wake_targets(me, step)
        waiting = answer_earliest(step)


def wake_targets(me: int, step: Step) -> None:
    """Let those run who asked whether this process had sent them the panel before its clock."""
    marks = step.marks
    for number in range(TARGETS):
        other = marks[TARGET + number, me]
        if other >= 0 and marks[STATUS, other] == ASKING and step.times[CLOCK, me] > step.times[CLOCK, other]:
            marks[STATUS, other] = READY
            push(other, marks, step.stack)


def answer_earliest(step: Step) -> bool:
    """Tell the process that asked first that its panel has not been sent; whether there was one."""
    found, earliest = -1, inf
    for me in range(step.times.shape[1]):
        if step.marks[STATUS, me] == ASKING and step.times[CLOCK, me] < earliest:
            found, earliest = me, step.times[CLOCK, me]
    if found >= 0:
        step.marks[TOLD, found] = 1
        step.marks[STATUS, found] = READY
        push(found, step.marks, step.stack)
    return found >= 0


def advance(me: int, step: Step, random: Any) -> None:
    """Run a process until it has to wait for another one, or is done."""
    marks = step.marks
    while marks[STATUS, me] == READY:
        if marks[HAS_PANEL, me] == 0:
            ask(me, step, random)
            if marks[STATUS, me] != READY:
                return
        phase = marks[PHASE, me]
        if phase == MEETING_ROWS:
            meet(me, step, random)
        elif phase == TOP:
            gather(me, step, random)
        else:
            finish(me, step, random)


def ask(me: int, step: Step, random: Any) -> None:
    """Take the panel if it has been sent; with nothing but columns left, update them until it has."""
    times, marks, posted = step.times, step.marks, step.times[POSTED, me]
    if marks[PHASE, me] == COLUMNS:
        if posted == inf:
            marks[STATUS, me] = AWAITING
            return
        update_until_sent(me, step, random)
        take(me, step)
    elif posted < inf:
        if posted <= times[CLOCK, me]:
            take(me, step)
    else:
        source = marks[SOURCE, me]
        if marks[TOLD, me] or times[CLOCK, source] > times[CLOCK, me]:
            marks[TOLD, me] = 0
        else:
            marks[STATUS, me] = ASKING


def take(me: int, step: Step) -> None:
    """Receive the panel, let its sender go on, and pass it on."""
    times, marks, pieces = step.times, step.marks, step.pieces
    source, size = marks[SOURCE, me], step.rows[MESSAGE, marks[ROW, me]]
    far = 1 if marks[NODE, source] != marks[NODE, me] else 0
    piece = piece_of(pieces, far, size)
    wire = wire_time(pieces, far, size, step.adapters.gap * times[CROWD, me])
    if pieces[far, piece, 7] == RENDEZVOUS:
        end = times[CLOCK, me] + wire
        times[CLOCK, source] = end
        marks[SENT, source] += 1
        marks[STATUS, source] = READY
        send_on(source, step)
        push(source, marks, step.stack)
    else:
        left = times[POSTED, me] + pieces[far, piece, 3] + size * pieces[far, piece, 4]
        start = left if pieces[far, piece, 7] == AT_ONCE else max(left, times[CLOCK, me])
        end = max(times[CLOCK, me], start + wire) + pieces[far, piece, 5] + size * pieces[far, piece, 6]
    if far:
        note(step.adapters, end - wire, end, marks[NODE, source], marks[NODE, me], -1 - me)
    took(step.panel, me, end, times, step.seen)
    marks[HAS_PANEL, me] = 1
    send_on(me, step)


def send_on(me: int, step: Step) -> None:
    """Send the panel to the targets that are left, until one of them has to take it first."""
    times, marks, pieces = step.times, step.marks, step.pieces
    size = step.rows[MESSAGE, marks[ROW, me]]
    while marks[SENT, me] < TARGETS and marks[TARGET + marks[SENT, me], me] >= 0:
        other = marks[TARGET + marks[SENT, me], me]
        times[POSTED, other] = times[CLOCK, me]
        if marks[STATUS, other] == ASKING or marks[STATUS, other] == AWAITING:
            marks[STATUS, other] = READY
            push(other, marks, step.stack)
        far = 1 if marks[NODE, other] != marks[NODE, me] else 0
        piece = piece_of(pieces, far, size)
        if pieces[far, piece, 7] == RENDEZVOUS:
            marks[STATUS, me] = SENDING
            return
        times[CLOCK, me] += pieces[far, piece, 3] + size * pieces[far, piece, 4]
        marks[SENT, me] += 1


def columns_time(me: int, columns: int, step: Step, random: Any) -> float:
    """Time of a process to update so many columns."""
    p = step.marks[ROW, me]
    return update_time(
        int(step.rows[BELOW, p]), columns, step.width, step.times[FACTOR, me], step.run.p == 1,
        step.rows[PLACE, p] == 0, step.kernels, step.noisy, random,
    )  # fmt: skip


def update_until_sent(me: int, step: Step, random: Any) -> None:
    """Update block after block of columns until the panel has been sent."""
    times, marks, nb = step.times, step.marks, step.run.nb
    posted = times[POSTED, me]
    whole = marks[LEFT, me] // nb
    if not step.noisy and whole > 1 and posted > times[CLOCK, me]:
        block = columns_time(me, nb, step, random)
        left = posted - times[CLOCK, me]
        blocks = int(ceil(left / block)) if left < whole * block else whole
        times[CLOCK, me] += blocks * block
        marks[LEFT, me] -= blocks * nb
    while marks[LEFT, me] > 0 and times[CLOCK, me] < posted:
        columns = min(nb, marks[LEFT, me])
        times[CLOCK, me] += columns_time(me, columns, step, random)
        marks[LEFT, me] -= columns
    times[CLOCK, me] = max(times[CLOCK, me], posted)


def gather(me: int, step: Step, random: Any) -> None:
    """Begin the swap: collect the rows that are to be sent."""
    times, marks, run = step.times, step.marks, step.run
    p, columns = marks[ROW, me], marks[LEFT, me]
    marks[PHASE, me] = COLUMNS
    if columns > 0 and run.p > 1:
        marks[PHASE, me] = MEETING_ROWS
        times[CLOCK, me] += gather_time(
            int(step.rows[PLACE, p]), columns, step.width, step.rows[OWN, p], spreads(columns, run), step.kernels,
            step.noisy, random,
        )  # fmt: skip


def meet(me: int, step: Step, random: Any) -> None:
    """The next exchange of the swap, if the partner has come to it; behind the last one, the columns."""
    times, marks, run = step.times, step.marks, step.run
    p, columns = marks[ROW, me], marks[LEFT, me]
    algorithm, place = 1 if spreads(columns, run) else 0, int(step.rows[PLACE, p])
    mine = step.lists[algorithm, place] + marks[DONE_EXCHANGES, me]
    if mine == step.lists[algorithm, place + 1]:
        marks[PHASE, me] = COLUMNS
        times[SWAPPED, me] += times[CLOCK, me] - times[BEGUN, me]
        return
    at, q = step.lists[algorithm, mine], me - p * run.q
    first, second = int(step.swaps[algorithm, at, FIRST]), int(step.swaps[algorithm, at, SECOND])
    partner = second if first == place else first
    other = int(step.rows[START, partner]) + q
    theirs = step.lists[algorithm, partner] + marks[DONE_EXCHANGES, other]
    if marks[STATUS, other] != MEETING or step.lists[algorithm, theirs] != at:
        marks[STATUS, me] = MEETING
        return
    a, b = (me, other) if first == place else (other, me)
    swap_rows(
        a, b, at, columns, (step.used[algorithm] - 1 - at) * run.q + q, step.swaps[algorithm], times, marks,
        step.adapters, step.kernels, step.pieces, step.noisy, random,
    )  # fmt: skip
    marks[DONE_EXCHANGES, me] += 1
    marks[DONE_EXCHANGES, other] += 1
    marks[STATUS, other] = READY
    push(other, marks, step.stack)


def finish(me: int, step: Step, random: Any) -> None:
    """Update the columns that are left."""
    times, marks = step.times, step.marks
    if marks[LEFT, me] > 0:
        times[CLOCK, me] += columns_time(me, marks[LEFT, me], step, random)
    times[UPDATED, me] += times[CLOCK, me] - times[BEGUN, me]
    marks[STATUS, me] = DONE
    if step.panel < step.seen.shape[0]:
        step.seen[step.panel, me, 4] = times[CLOCK, me]


def step_ahead(
    panel: int, state: State, run: Run, messages: Messages, kernels: FloatArray, pieces: FloatArray, lines: FloatArray,
    lists: IntArray, rows: FloatArray, stack: IntArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """One step of the main loop: factor a panel, then update with the oldest while the panel is broadcast."""
    old = panel - run.depth
    for earlier in range(old, panel):
        update_column(earlier, panel % run.q, width_of(panel, run), False, state, run, kernels, pieces, noisy, random)
    factor(panel, state, run, messages, kernels, pieces, lines, noisy, random)
    if messages.chunk_count > 0:
        broadcast(panel, state, run, messages, pieces)
        for q in range(run.q):
            update_column(old, q, columns_behind(panel, q, run), True, state, run, kernels, pieces, noisy, random)
    else:
        slot = old % state.counts.shape[0]
        if run.p > 1:
            index_exchanges(state.swaps, state.used, slot, run.p, lists)
        for p in range(run.p):
            rows[BELOW, p], rows[MESSAGE, p] = rows_below(old, p, run), panel_bytes(panel, p, run)
            place = (p - old) % run.p
            rows[OWN, p], rows[PLACE, p], rows[START, place] = state.counts[slot, place], place, p * run.q
        update_ahead(
            Step(
                state.times, state.marks, state.seen, state.swaps[slot], state.used[slot], lists, rows, stack,
                state.adapters, kernels, pieces, panel, old, width_of(old, run), run, noisy,
            ),
            messages.targets,
            random,
        )  # fmt: skip


def fill_pipeline(
    state: State, run: Run, messages: Messages, kernels: FloatArray, pieces: FloatArray, lines: FloatArray, noisy: bool,
    random: Any,
) -> None:  # fmt: skip
    """Factor and broadcast the first panels, each applied to those of them behind it."""
    for panel in range(run.depth):
        factor(panel, state, run, messages, kernels, pieces, lines, noisy, random)
        broadcast(panel, state, run, messages, pieces)
        for q in range(run.q):
            columns = columns_behind(panel, q, run) - columns_behind(run.depth - 1, q, run)
            update_column(panel, q, columns, False, state, run, kernels, pieces, noisy, random)
        state.ends[panel] = latest(state.times)


def ahead_steps(
    first: int, last: int, state: State, run: Run, messages: Messages, kernels: FloatArray, pieces: FloatArray,
    lines: FloatArray, last_lines: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Steps [first, last) with look-ahead, filling the pipeline and draining it where they lie in it."""
    lists = np.zeros((2, run.p + 1 + 2 * state.swaps.shape[2]), np.int64)
    rows, stack = np.zeros((5, run.p)), np.zeros(run.p * run.q + 1, np.int64)
    count = len(state.ends)
    if first == 0:
        fill_pipeline(state, run, messages, kernels, pieces, lines, noisy, random)
    for panel in range(max(first, run.depth), last):
        now = lines if width_of(panel, run) == run.nb else last_lines
        step_ahead(panel, state, run, messages, kernels, pieces, now, lists, rows, stack, noisy, random)
        end_step(panel, state)
    if last == count:
        for panel in range(count - run.depth, count):
            update_column(panel, run.n // run.nb % run.q, 1, False, state, run, kernels, pieces, noisy, random)
