"""Look-ahead, compiled: the update with an old panel while the newest one is broadcast along rings.

A process asks now and then whether its panel is there: before and after it gathers rows, after every exchange of the row
swap, after every block of columns. If it is, it takes it and at once passes it on, which may keep it until the next
process asks. So rows wait for columns and columns for rows. Every process runs as far as what it knows allows:
whether a panel had been sent when it was asked for is known once it was sent, or once its sender's clock is later. Where all
wait, the earliest question is answered with no: whatever is still to happen happens later. The order in which
processes run changes nothing.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import exchange, piece_of, wire_time
from whatif.simulation.hpl.layout import Charges, Messages, Run
from whatif.simulation.hpl.step_kernel import (
    SWAP,
    UPDATE,
    State,
    broadcast,
    columns_behind,
    factor,
    panel_bytes,
    solve_and_multiply,
    spreads,
    took,
    update_column,
    width_of,
)
from whatif.simulation.hpl.swap_kernel import gather_rows, rows_taken, swap_bytes

TOP, GATHERED, EXCHANGED, COLUMNS = 0, 1, 2, 3
READY, ASKING, MEETING, SENDING, AWAITING, DONE = 0, 1, 2, 3, 4, 5
NO, YES, UNKNOWN = 0, 1, 2


class Work(NamedTuple):
    """Where every process is in one step, [process row, process column] unless said otherwise."""

    phase: IntArray
    status: IntArray
    has_panel: IntArray
    forced: IntArray
    sent: IntArray
    """Targets that a process has sent the panel to."""
    posted: FloatArray
    """When the panel was sent to a process; infinite as long as it was not."""
    begun: FloatArray
    remaining: IntArray
    """Columns that are still to be updated."""
    at: IntArray
    """Exchanges of the swap that are done."""
    starts: IntArray
    """[algorithm, distance + 1]: where the exchanges of a process row begin in `mine`."""
    mine: IntArray
    """[algorithm, place]"""
    stack: IntArray
    """[place]: processes that can run; its last element is their number."""
    queued: IntArray


def make_work(run: Run, capacity: int) -> Work:
    """Empty arrays for a run with so many exchanges a swap."""
    shape = (run.p, run.q)
    return Work(
        np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64),
        np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64),
        np.zeros(shape, np.int64), np.zeros((2, run.p + 1), np.int64), np.zeros((2, 2 * capacity), np.int64),
        np.zeros(run.p * run.q + 1, np.int64), np.zeros(shape, np.int64),
    )  # fmt: skip


def push(p: int, q: int, work: Work) -> None:
    """Let a process run."""
    if work.queued[p, q] == 0:
        work.queued[p, q] = 1
        work.stack[work.stack[-1]] = p * work.queued.shape[1] + q
        work.stack[-1] += 1


def index_exchanges(old: int, state: State, run: Run, work: Work) -> None:
    """Which exchanges of the swap each process row takes part in."""
    slot = old % len(state.counts)
    for algorithm in range(2):
        used, ends = state.used[slot, algorithm], state.partners[slot, algorithm]
        counts = np.zeros(run.p + 1, np.int64)
        for at in range(used):
            counts[ends[at, 0] + 1] += 1
            counts[ends[at, 1] + 1] += 1
        work.starts[algorithm] = np.cumsum(counts)
        place = work.starts[algorithm].copy()
        for at in range(used):
            for side in range(2):
                work.mine[algorithm, place[ends[at, side]]] = at
                place[ends[at, side]] += 1


def update_ahead(
    panel: int, old: int, state: State, run: Run, charges: Charges, messages: Messages, work: Work, noisy: bool,
    random: Any,
) -> None:  # fmt: skip
    """Apply panel `old` to the columns behind `panel`, while `panel` is broadcast."""
    if run.p > 1:
        index_exchanges(old, state, run, work)
    root = panel % run.q
    work.phase[:], work.status[:], work.has_panel[:], work.forced[:], work.sent[:], work.at[:] = 0, 0, 0, 0, 0, 0
    work.posted[:] = np.inf
    work.begun[:] = state.clock
    work.has_panel[:, root] = 1
    for place in range(run.q - 1, -1, -1):
        q = (root + place) % run.q
        work.remaining[:, q] = columns_behind(panel, q, run)
        for p in range(run.p):
            push(p, q, work)
    for p in range(run.p):
        send_on(panel, p, root, state, run, charges, messages, work)
    while True:
        while work.stack[-1] > 0:
            work.stack[-1] -= 1
            p, q = divmod(work.stack[work.stack[-1]], run.q)
            work.queued[p, q] = 0
            if work.status[p, q] == READY:
                advance(panel, old, p, q, state, run, charges, messages, work, noisy, random)
                wake_targets(panel, p, q, state, run, messages, work)
        if not answer_earliest(state, work):
            return


def wake_targets(panel: int, p: int, q: int, state: State, run: Run, messages: Messages, work: Work) -> None:
    """Let those run who asked whether this process had sent them the panel before its clock."""
    place = (q - panel) % run.q
    for number in range(3):
        target = messages.targets[place, number]
        if target >= 0:
            other = (panel + target) % run.q
            if work.status[p, other] == ASKING and state.clock[p, q] > state.clock[p, other]:
                work.status[p, other] = READY
                push(p, other, work)


def answer_earliest(state: State, work: Work) -> bool:
    """Tell the process that asked first that its panel has not been sent; whether there was one."""
    found, earliest = -1, np.inf
    columns = work.status.shape[1]
    for p in range(work.status.shape[0]):
        for q in range(columns):
            if work.status[p, q] == ASKING and state.clock[p, q] < earliest:
                found, earliest = p * columns + q, state.clock[p, q]
    if found < 0:
        return False
    p, q = divmod(found, columns)
    work.forced[p, q] = 1
    work.status[p, q] = READY
    push(p, q, work)
    return True


def advance(
    panel: int, old: int, p: int, q: int, state: State, run: Run, charges: Charges, messages: Messages, work: Work,
    noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Run a process until it has to wait for another one, or is done."""
    while work.status[p, q] == READY:
        if work.has_panel[p, q] == 0:
            ask(panel, old, p, q, state, run, charges, messages, work, noisy, random)
            if work.status[p, q] != READY:
                return
        phase = work.phase[p, q]
        if phase == COLUMNS:
            finish(panel, old, p, q, state, run, charges, work, noisy, random)
        elif phase == TOP:
            gather(old, p, q, state, run, charges, work, noisy, random)
        else:
            meet(old, p, q, state, run, charges, work, noisy, random)


def ask(
    panel: int, old: int, p: int, q: int, state: State, run: Run, charges: Charges, messages: Messages, work: Work,
    noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Take the panel if it has been sent; with nothing but columns left, update them until it has."""
    if work.phase[p, q] == COLUMNS:
        if work.posted[p, q] == np.inf:
            work.status[p, q] = AWAITING
            return
        update_until_sent(old, p, q, state, run, charges, work, noisy, random)
        take(panel, p, q, state, run, charges, messages, work)
        return
    answer = was_sent(panel, p, q, state, run, messages, work)
    if answer == UNKNOWN:
        work.status[p, q] = ASKING
    elif answer == YES:
        take(panel, p, q, state, run, charges, messages, work)


def was_sent(panel: int, p: int, q: int, state: State, run: Run, messages: Messages, work: Work) -> int:
    """Whether the panel had been sent to a process at its clock."""
    if work.posted[p, q] < np.inf:
        return YES if work.posted[p, q] <= state.clock[p, q] else NO
    source = (panel + messages.sources[(q - panel) % run.q]) % run.q
    if work.forced[p, q] or state.clock[p, source] > state.clock[p, q]:
        work.forced[p, q] = 0
        return NO
    return UNKNOWN


def take(
    panel: int, p: int, q: int, state: State, run: Run, charges: Charges, messages: Messages, work: Work
) -> None:
    """Receive the panel, let its sender go on, and pass it on."""
    source = (panel + messages.sources[(q - panel) % run.q]) % run.q
    size = panel_bytes(panel, p, run)
    far = 1 if charges.nodes[p, source] != charges.nodes[p, q] else 0
    gap = max(charges.gaps[p, source], charges.gaps[p, q]) if far else 0.0
    pieces, limits = charges.pieces[far], charges.limits[far]
    piece = piece_of(pieces, size)
    wire = wire_time(pieces, piece, size, gap)
    if size >= limits[1]:
        end = state.clock[p, q] + wire
        state.clock[p, source] = end
        work.sent[p, source] += 1
        work.status[p, source] = READY
        send_on(panel, p, source, state, run, charges, messages, work)
        if work.status[p, source] == READY:
            push(p, source, work)
    else:
        left = work.posted[p, q] + pieces[piece, 3] + size * pieces[piece, 4]
        start = left if size < limits[0] else max(left, state.clock[p, q])
        end = max(state.clock[p, q], start + wire) + pieces[piece, 5] + size * pieces[piece, 6]
    took(panel, p, q, end, state)
    work.has_panel[p, q] = 1
    send_on(panel, p, q, state, run, charges, messages, work)


def send_on(
    panel: int, p: int, q: int, state: State, run: Run, charges: Charges, messages: Messages, work: Work
) -> None:
    """Send the panel to the targets that are left, until one of them has to take it first."""
    place = (q - panel) % run.q
    size = panel_bytes(panel, p, run)
    while work.sent[p, q] < 3:
        target = messages.targets[place, work.sent[p, q]]
        if target < 0:
            return
        other = (panel + target) % run.q
        work.posted[p, other] = state.clock[p, q]
        if work.status[p, other] in (ASKING, AWAITING):
            work.status[p, other] = READY
            push(p, other, work)
        far = 1 if charges.nodes[p, other] != charges.nodes[p, q] else 0
        if size >= charges.limits[far, 1]:
            work.status[p, q] = SENDING
            return
        piece = piece_of(charges.pieces[far], size)
        state.clock[p, q] += charges.pieces[far, piece, 3] + size * charges.pieces[far, piece, 4]
        work.sent[p, q] += 1


def update_until_sent(
    old: int, p: int, q: int, state: State, run: Run, charges: Charges, work: Work, noisy: bool, random: Any
) -> None:
    """Update block after block of columns until the panel has been sent."""
    if not noisy and work.remaining[p, q] > run.nb:
        block = solve_and_multiply(old, p, q, run.nb, run, charges, noisy, random)
        left = max(work.posted[p, q] - state.clock[p, q], 0.0)
        whole = work.remaining[p, q] // run.nb
        blocks = min(whole, int(ceil(left / block))) if left < whole * block else whole
        state.clock[p, q] += blocks * block
        work.remaining[p, q] -= blocks * run.nb
    while work.remaining[p, q] > 0 and state.clock[p, q] < work.posted[p, q]:
        columns = min(run.nb, work.remaining[p, q])
        state.clock[p, q] += solve_and_multiply(old, p, q, columns, run, charges, noisy, random)
        work.remaining[p, q] -= columns
    state.clock[p, q] = max(state.clock[p, q], work.posted[p, q])


def gather(
    old: int, p: int, q: int, state: State, run: Run, charges: Charges, work: Work, noisy: bool, random: Any
) -> None:
    """Begin the swap: collect the rows that are to be sent."""
    columns = work.remaining[p, q]
    if columns <= 0 or run.p == 1:
        work.phase[p, q] = COLUMNS
        return
    place = (p - old) % run.p
    own = state.counts[old % len(state.counts), place]
    spreading = spreads(columns, run)
    state.clock[p, q] += gather_rows(
        place, columns, width_of(old, run), own, spreading, charges.sizes, noisy, random
    )
    work.phase[p, q] = GATHERED


def meet(
    old: int, p: int, q: int, state: State, run: Run, charges: Charges, work: Work, noisy: bool, random: Any
) -> None:
    """The next exchange of the swap, if the partner has come to it; behind the last one, the columns."""
    place, columns = (p - old) % run.p, work.remaining[p, q]
    algorithm = 1 if spreads(columns, run) else 0
    mine = work.starts[algorithm, place] + work.at[p, q]
    if mine == work.starts[algorithm, place + 1]:
        work.phase[p, q] = COLUMNS
        state.spent[SWAP, p, q] += state.clock[p, q] - work.begun[p, q]
        return
    slot, at = old % len(state.counts), work.mine[algorithm, mine]
    ends = state.partners[slot, algorithm, at]
    side = 0 if ends[0] == place else 1
    other = (old + ends[1 - side]) % run.p
    theirs = work.starts[algorithm, ends[1 - side]] + work.at[other, q]
    if work.status[other, q] != MEETING or work.mine[algorithm, theirs] != at:
        work.status[p, q] = MEETING
        return
    swap_rows(p, other, q, columns, slot, algorithm, at, side, state, charges, noisy, random)
    for one in (p, other):
        work.at[one, q] += 1
        work.phase[one, q] = EXCHANGED
        work.status[one, q] = READY
    push(other, q, work)


def swap_rows(
    p: int, other: int, q: int, columns: int, slot: int, algorithm: int, at: int, side: int, state: State,
    charges: Charges, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """One exchange of the swap between two process rows, the first being `side` of it."""
    rows, wide = state.rows[slot, algorithm, at], state.wide[slot, algorithm, at]
    after = state.after[slot, algorithm, at]
    far = 1 if charges.nodes[p, q] != charges.nodes[other, q] else 0
    gap = max(charges.gaps[p, q], charges.gaps[other, q]) if far else 0.0
    there, back = swap_bytes(rows[side], columns, wide[side]), swap_bytes(rows[1 - side], columns, wide[1 - side])
    a, b = exchange(state.clock[p, q], state.clock[other, q], there, back, charges.pieces[far], charges.limits[far], gap)
    a += rows_taken(after[side], rows[1 - side], rows[side], columns, charges.sizes, noisy, random)
    b += rows_taken(after[1 - side], rows[side], rows[1 - side], columns, charges.sizes, noisy, random)
    state.clock[p, q], state.clock[other, q] = a, b


def finish(
    panel: int, old: int, p: int, q: int, state: State, run: Run, charges: Charges, work: Work, noisy: bool, random: Any
) -> None:
    """Update the columns that are left."""
    if work.remaining[p, q] > 0:
        state.clock[p, q] += solve_and_multiply(old, p, q, work.remaining[p, q], run, charges, noisy, random)
    state.spent[UPDATE, p, q] += state.clock[p, q] - work.begun[p, q]
    work.status[p, q] = DONE
    if panel < len(state.marks):
        state.marks[panel, p, q, 4] = state.clock[p, q]


def step_ahead(
    panel: int, state: State, run: Run, charges: Charges, messages: Messages, work: Work, lines: FloatArray, noisy: bool,
    random: Any,
) -> None:  # fmt: skip
    """One step of the main loop: factor a panel, then update with the oldest while the panel is broadcast."""
    old, q = panel - run.depth, panel % run.q
    for earlier in range(old, panel):
        update_column(earlier, q, width_of(panel, run), state, run, charges, noisy, random)
    factor(panel, state, run, charges, messages, lines, noisy, random)
    if messages.chunk_count > 0:
        broadcast(panel, state, run, charges, messages)
        for column in range(run.q):
            update_column(old, column, columns_behind(panel, column, run), state, run, charges, noisy, random)
    else:
        update_ahead(panel, old, state, run, charges, messages, work, noisy, random)
    state.ends[panel] = state.clock.max()


def fill_pipeline(
    state: State, run: Run, charges: Charges, messages: Messages, lines: FloatArray, noisy: bool, random: Any
) -> None:
    """Factor and broadcast the first panels, each applied to those of them behind it."""
    for panel in range(run.depth):
        factor(panel, state, run, charges, messages, lines, noisy, random)
        broadcast(panel, state, run, charges, messages)
        for q in range(run.q):
            columns = columns_behind(panel, q, run) - columns_behind(run.depth - 1, q, run)
            update_column(panel, q, columns, state, run, charges, noisy, random)
        state.ends[panel] = state.clock.max()


def drain_pipeline(state: State, run: Run, charges: Charges, count: int, noisy: bool, random: Any) -> None:
    """Apply the last panels to the right-hand side."""
    q = run.n // run.nb % run.q
    for panel in range(count - run.depth, count):
        update_column(panel, q, 1, state, run, charges, noisy, random)


def ahead_steps(
    first: int, last: int, state: State, run: Run, charges: Charges, messages: Messages, lines: FloatArray,
    last_lines: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Steps [first, last) with look-ahead, the first and the last ones included where they lie in it."""
    work = make_work(run, state.partners.shape[2])
    count = len(state.ends)
    if first == 0:
        fill_pipeline(state, run, charges, messages, lines, noisy, random)
    for panel in range(max(first, run.depth), last):
        whole = width_of(panel, run) == run.nb
        step_ahead(panel, state, run, charges, messages, work, lines if whole else last_lines, noisy, random)
    if last == count:
        drain_pipeline(state, run, charges, count, noisy, random)
