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
    bare,
    columns_behind,
    panel_bytes,
    rows_below,
    spreads,
    width_of,
)
from whatif.simulation.hpl.sharing_kernel import Adapters, note
from whatif.simulation.hpl.step_kernel import (
    Messages,
    State,
    bare_state,
    broadcast,
    end_step,
    factor,
    latest,
    took,
    update_column,
    update_time,
)
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
    if marks[me, QUEUED] == 0:
        marks[me, QUEUED] = 1
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
                marks[me, row] = 0
            for number in range(TARGETS + 1):
                other = targets[place, number]
                marks[me, TARGET + number] = p * run.q + (step.panel + other) % run.q if other >= 0 else -1
            marks[me, HAS_PANEL] = 1 if place == 0 else 0
            marks[me, LEFT], marks[me, ROW] = columns, p
            times[me, POSTED], times[me, BEGUN] = inf, times[me, CLOCK]
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
            marks[me, QUEUED] = 0
            if marks[me, STATUS] == READY:
                advance(me, step, random)
                wake_targets(me, step)
        waiting = answer_earliest(step)


def wake_targets(me: int, step: Step) -> None:
    """Let those run who asked whether this process had sent them the panel before its clock."""
    marks = step.marks
    for number in range(TARGETS):
        other = marks[me, TARGET + number]
        if other >= 0 and marks[other, STATUS] == ASKING and step.times[me, CLOCK] > step.times[other, CLOCK]:
            marks[other, STATUS] = READY
            push(other, marks, step.stack)


def answer_earliest(step: Step) -> bool:
    """Tell the process that asked first that its panel has not been sent; whether there was one."""
    found, earliest = -1, inf
    for me in range(step.times.shape[0]):
        if step.marks[me, STATUS] == ASKING and step.times[me, CLOCK] < earliest:
            found, earliest = me, step.times[me, CLOCK]
    if found >= 0:
        step.marks[found, TOLD] = 1
        step.marks[found, STATUS] = READY
        push(found, step.marks, step.stack)
    return found >= 0


def advance(me: int, step: Step, random: Any) -> None:
    """Run a process until it has to wait for another one, or is done."""
    marks = step.marks
    while marks[me, STATUS] == READY:
        if marks[me, HAS_PANEL] == 0:
            ask(me, step, random)
            if marks[me, STATUS] != READY:
                return
        phase = marks[me, PHASE]
        if phase == MEETING_ROWS:
            meet(me, step, random)
        elif phase == TOP:
            gather(me, step, random)
        else:
            finish(me, step, random)


def ask(me: int, step: Step, random: Any) -> None:
    """Take the panel if it has been sent; with nothing but columns left, update them until it has."""
    times, marks, posted = step.times, step.marks, step.times[me, POSTED]
    if marks[me, PHASE] == COLUMNS:
        if posted == inf:
            marks[me, STATUS] = AWAITING
            return
        update_until_sent(me, step, random)
        take(me, step)
    elif posted < inf:
        if posted <= times[me, CLOCK]:
            take(me, step)
    else:
        source = marks[me, SOURCE]
        if marks[me, TOLD] or times[source, CLOCK] > times[me, CLOCK]:
            marks[me, TOLD] = 0
        else:
            marks[me, STATUS] = ASKING


def take(me: int, step: Step) -> None:
    """Receive the panel, let its sender go on, and pass it on."""
    times, marks, pieces = step.times, step.marks, step.pieces
    source, size = marks[me, SOURCE], step.rows[MESSAGE, marks[me, ROW]]
    far = 1 if marks[source, NODE] != marks[me, NODE] else 0
    piece = piece_of(pieces, far, size)
    wire = wire_time(pieces, far, size, step.adapters.gap * times[me, CROWD])
    if pieces[far, piece, 7] == RENDEZVOUS:
        end = times[me, CLOCK] + wire
        times[source, CLOCK] = end
        marks[source, SENT] += 1
        marks[source, STATUS] = READY
        send_on(source, step)
        push(source, marks, step.stack)
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
    times, marks, pieces = step.times, step.marks, step.pieces
    size = step.rows[MESSAGE, marks[me, ROW]]
    while marks[me, SENT] < TARGETS and marks[me, TARGET + marks[me, SENT]] >= 0:
        other = marks[me, TARGET + marks[me, SENT]]
        times[other, POSTED] = times[me, CLOCK]
        if marks[other, STATUS] == ASKING or marks[other, STATUS] == AWAITING:
            marks[other, STATUS] = READY
            push(other, marks, step.stack)
        far = 1 if marks[other, NODE] != marks[me, NODE] else 0
        piece = piece_of(pieces, far, size)
        if pieces[far, piece, 7] == RENDEZVOUS:
            marks[me, STATUS] = SENDING
            return
        times[me, CLOCK] += pieces[far, piece, 3] + size * pieces[far, piece, 4]
        marks[me, SENT] += 1


def columns_time(me: int, columns: int, step: Step, random: Any) -> float:
    """Time of a process to update so many columns."""
    p = step.marks[me, ROW]
    return update_time(
        int(step.rows[BELOW, p]), columns, step.width, step.times[me, FACTOR], step.run.p == 1,
        step.rows[PLACE, p] == 0, step.kernels, step.noisy, random,
    )  # fmt: skip


def update_until_sent(me: int, step: Step, random: Any) -> None:
    """Update block after block of columns until the panel has been sent."""
    times, marks, nb = step.times, step.marks, step.run.nb
    posted = times[me, POSTED]
    whole = marks[me, LEFT] // nb
    if not step.noisy and whole > 1 and posted > times[me, CLOCK]:
        block = columns_time(me, nb, step, random)
        left = posted - times[me, CLOCK]
        blocks = int(ceil(left / block)) if left < whole * block else whole
        times[me, CLOCK] += blocks * block
        marks[me, LEFT] -= blocks * nb
    while marks[me, LEFT] > 0 and times[me, CLOCK] < posted:
        columns = min(nb, marks[me, LEFT])
        times[me, CLOCK] += columns_time(me, columns, step, random)
        marks[me, LEFT] -= columns
    times[me, CLOCK] = max(times[me, CLOCK], posted)


def gather(me: int, step: Step, random: Any) -> None:
    """Begin the swap: collect the rows that are to be sent."""
    times, marks, run = step.times, step.marks, step.run
    p, columns = marks[me, ROW], marks[me, LEFT]
    marks[me, PHASE] = COLUMNS
    if columns > 0 and run.p > 1:
        marks[me, PHASE] = MEETING_ROWS
        times[me, CLOCK] += gather_time(
            int(step.rows[PLACE, p]), columns, step.width, step.rows[OWN, p], spreads(columns, run), step.kernels,
            step.noisy, random,
        )  # fmt: skip


def meet(me: int, step: Step, random: Any) -> None:
    """The next exchange of the swap, if the partner has come to it; behind the last one, the columns."""
    times, marks, run = step.times, step.marks, step.run
    p, columns = marks[me, ROW], marks[me, LEFT]
    algorithm, place = 1 if spreads(columns, run) else 0, int(step.rows[PLACE, p])
    mine = step.lists[algorithm, place] + marks[me, DONE_EXCHANGES]
    if mine == step.lists[algorithm, place + 1]:
        marks[me, PHASE] = COLUMNS
        times[me, SWAPPED] += times[me, CLOCK] - times[me, BEGUN]
        return
    at, q = step.lists[algorithm, mine], me - p * run.q
    first, second = int(step.swaps[algorithm, at, FIRST]), int(step.swaps[algorithm, at, SECOND])
    partner = second if first == place else first
    other = int(step.rows[START, partner]) + q
    theirs = step.lists[algorithm, partner] + marks[other, DONE_EXCHANGES]
    if marks[other, STATUS] != MEETING or step.lists[algorithm, theirs] != at:
        marks[me, STATUS] = MEETING
        return
    a, b = (me, other) if first == place else (other, me)
    swap_rows(
        a, b, at, columns, (step.used[algorithm] - 1 - at) * run.q + q, step.swaps[algorithm], times, marks,
        step.adapters, step.kernels, step.pieces, step.noisy, random,
    )  # fmt: skip
    marks[me, DONE_EXCHANGES] += 1
    marks[other, DONE_EXCHANGES] += 1
    marks[other, STATUS] = READY
    push(other, marks, step.stack)


def finish(me: int, step: Step, random: Any) -> None:
    """Update the columns that are left."""
    times, marks = step.times, step.marks
    if marks[me, LEFT] > 0:
        times[me, CLOCK] += columns_time(me, marks[me, LEFT], step, random)
    times[me, UPDATED] += times[me, CLOCK] - times[me, BEGUN]
    marks[me, STATUS] = DONE
    if step.panel < step.seen.shape[0]:
        step.seen[step.panel, me, 4] = times[me, CLOCK]


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
                state.times, state.marks, state.seen, state.swaps[slot], state.used[slot], bare(lists), bare(rows), bare(stack),
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
    state, kernels, pieces, lines, last_lines = (
        bare_state(state),
        bare(kernels),
        bare(pieces),
        bare(lines),
        bare(last_lines),
    )
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
