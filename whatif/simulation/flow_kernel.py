"""The event loop of `flows`: plain functions over the state, which numba compiles for long replays.

Events are (time, what, number); those of one instant are all worked off before the links are shared anew.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from heapq import heappop

import numpy as np

from whatif.models.charges import FLIGHT, RECEIVE_GAP, RECEIVE_OVERHEAD, SEND_GAP, SEND_OVERHEAD
from whatif.simulation.flow_state import FlowState, Queue, Side
from whatif.simulation.link_kernel import END, SAME_INSTANT, Heap, advance, enter_bundle, pop_flow, push, share
from whatif.simulation.rank_programs import ANY
from whatif.simulation.replay_state import COMPUTE, NONE, RECEIVE, SEND

ENTER, ARRIVE, WAKE, POST, READY = range(1, 6)
# Of one instant, receives come first: sends that wait for them then start in the order of their rank.


def run(s: FlowState) -> None:
    """Fill `start`, `end` and `match`; operations that never start keep a NaN end."""
    heap = [(0.0, READY, 0)]
    heap.pop()
    for op in range(len(s.operations)):
        if s.operations[op].need == 0:
            push(heap, 0.0, POST if s.operations[op].step == RECEIVE else READY, op)
    while len(heap) > 0:
        now = heap[0][0]
        while len(heap) > 0 and (heap[0][0] <= now or (heap[0][1] == END and heap[0][0] <= now * SAME_INSTANT)):
            time, what, number = heappop(heap)
            if what >= POST:
                begin(s, heap, number, time)
            elif what == WAKE:
                wake(s, heap, number, time)
            elif what == ARRIVE:
                arrive(s, heap, number, time)
            elif what == ENTER:
                enter(s, heap, number, time)
            elif s.bundles[number].end == time:
                finish(s, heap, number, time)
        share(s, heap, now)


def begin(s: FlowState, heap: Heap, op: int, now: float) -> None:
    """Start an operation whose dependencies are met."""
    row = s.operations[op]
    if row.step == SEND:
        post_send(s, heap, op, now)
    elif row.step == RECEIVE:
        post_receive(s, heap, op, now)
    else:
        started, size = now, 0.0
        if row.step == COMPUTE:
            started, size = max(now, s.unit_free[row.unit]), row.size
            s.unit_free[row.unit] = started + size
        set_start(s, heap, op, started)
        set_end(s, heap, op, started + size)


def post_send(s: FlowState, heap: Heap, send: int, now: float) -> None:
    """Match a send, and start it unless it has to wait for its receive."""
    receive = meet(s, send)
    if waits(s, send):
        if receive == NONE:
            receive = offer(s, send)
        if receive == NONE:
            return
    use_side(s, heap, send, now)


def post_receive(s: FlowState, heap: Heap, receive: int, now: float) -> None:
    """Match a receive, and start it, or the send that waits for it."""
    if s.operations[receive].channel != NONE:
        send = meet(s, receive)
    else:
        place = 2 * s.operations[receive].rank
        send = search(s, place, receive)
        if send == NONE:
            append(s.loose, s.loose_next, place + 1, receive)
    if send == NONE:
        return
    if waits(s, send):
        use_side(s, heap, send, now)
    elif s.operations[send].arrived:
        use_side(s, heap, receive, now)


def meet(s: FlowState, op: int) -> int:
    """The first unmatched operation of the other kind in the channel, or join those of the same kind that wait."""
    row = s.operations[op]
    channel = s.channels[row.channel]
    head = channel.head
    while head != NONE and s.operations[head].match != NONE:
        head = s.channel_next[head]
    channel.head = head
    if head == NONE or s.operations[head].step == row.step:
        append(s.channels, s.channel_next, row.channel, op)
        return NONE
    channel.head = s.channel_next[head]
    row.match, s.operations[head].match = head, op
    return int(head)


def offer(s: FlowState, send: int) -> int:
    """A receive of any that takes a message which no other receive has taken, or put the message up for one."""
    receiver = s.operations[send].peer
    if not s.wild[receiver]:
        return NONE
    receive = search(s, 2 * receiver + 1, send)
    if receive == NONE:
        append(s.loose, s.loose_next, 2 * receiver, send)
    return receive


def search(s: FlowState, place: int, op: int) -> int:
    """Take the first entry of a loose list that fits an operation; those matched meanwhile are dropped."""
    row, queue = s.operations[op], s.loose[place]
    before, here = NONE, queue.head
    while here != NONE:
        gone = s.operations[here].match != NONE
        fits = not gone and (fit(s, op, here) if row.step == RECEIVE else fit(s, here, op))
        if gone or fits:
            if before == NONE:
                queue.head = s.loose_next[here]
            else:
                s.loose_next[before] = s.loose_next[here]
            if queue.tail == here:
                queue.tail = before
        else:
            before = here
        if fits:
            row.match, s.operations[here].match = here, op
            return int(here)
        here = s.loose_next[here]
    return NONE


def fit(s: FlowState, receive: int, send: int) -> bool:
    """Whether a receive with wildcards may take a message; any tag means any tag of the user."""
    wanted, given = s.operations[receive], s.operations[send]
    if wanted.tag != given.tag and not (wanted.tag == ANY and given.tag >= 0):
        return False
    return bool(wanted.peer == given.rank or wanted.peer < 0)


def append(
    queues: MutableSequence[Queue] | MutableSequence[Side], after: MutableSequence[int], place: int, op: int
) -> None:
    """Put an operation at the end of a linked list."""
    queue = queues[place]
    after[op] = NONE
    if queue.head == NONE:
        queue.head = op
    else:
        after[queue.tail] = op
    queue.tail = op


def use_side(s: FlowState, heap: Heap, op: int, now: float) -> None:
    """Start a send or receive, or let it wait in turn for its side of the rank."""
    side = 2 * s.operations[op].rank + (1 if s.operations[op].step == RECEIVE else 0)
    if s.sides[side].head != NONE:
        append(s.sides, s.side_next, side, op)
    elif s.sides[side].free > now:
        append(s.sides, s.side_next, side, op)
        push(heap, s.sides[side].free, WAKE, side)
    else:
        start_message(s, heap, op, now)


def wake(s: FlowState, heap: Heap, side: int, now: float) -> None:
    """Start the first that waits for a side."""
    op = s.sides[side].head
    s.sides[side].head = s.side_next[op]
    start_message(s, heap, op, now)
    if s.sides[side].head != NONE:
        push(heap, s.sides[side].free, WAKE, side)


def start_message(s: FlowState, heap: Heap, op: int, now: float) -> None:
    """Start a send or receive with a free side as soon as its processor is free."""
    row = s.operations[op]
    receiving = row.step == RECEIVE
    send, side = (row.match, s.sides[2 * row.rank + 1]) if receiving else (op, s.sides[2 * row.rank])
    started = max(now, s.unit_free[row.unit])
    processed = started + charge(s, RECEIVE_OVERHEAD if receiving else SEND_OVERHEAD, send)
    s.unit_free[row.unit] = processed
    side.free = started + charge(s, RECEIVE_GAP if receiving else SEND_GAP, send)
    set_start(s, heap, op, started)
    if receiving:
        set_end(s, heap, op, processed)
        return
    flown = started + charge(s, FLIGHT, op)
    if row.bundle == NONE:
        push(heap, flown, ARRIVE, op)
    else:
        push(heap, flown + s.bundles[row.bundle].latency, ENTER, op)
    if row.bundle == NONE or not waits(s, op):
        set_end(s, heap, op, max(processed, side.free))


def charge(s: FlowState, what: int, send: int) -> float:
    """One of the five costs of a message."""
    row = s.operations[send]
    at = (what * s.kinds + row.cost) * 2
    return float(s.charges[at] + s.charges[at + 1] * row.charged)


def waits(s: FlowState, send: int) -> bool:
    """Whether a send waits for its receive."""
    return bool(s.operations[send].waits)


def enter(s: FlowState, heap: Heap, send: int, now: float) -> None:
    """The constant part of a flight is over: the bytes follow."""
    row = s.operations[send]
    if row.size > 0:
        advance(s, row.bundle, now)
        enter_bundle(s, row.bundle, send, row.size)
    else:
        push(heap, now, ARRIVE, send)


def finish(s: FlowState, heap: Heap, bundle: int, now: float) -> None:
    """The first flows of a bundle have got all their bytes."""
    row = s.bundles[bundle]
    row.served, row.since, row.end = s.operations[row.root].threshold, now, np.nan
    flow = pop_flow(s, bundle)
    while flow != NONE:
        push(heap, now, ARRIVE, flow)
        flow = pop_flow(s, bundle)


def arrive(s: FlowState, heap: Heap, send: int, now: float) -> None:
    """A message has arrived."""
    row = s.operations[send]
    row.arrived = True
    if row.bundle != NONE and waits(s, send):
        kept = max(charge(s, SEND_OVERHEAD, send), charge(s, SEND_GAP, send))
        set_end(s, heap, send, max(now, row.start + kept))
    receive = row.match
    if receive == NONE:
        receive = offer(s, send)
    if receive != NONE:
        use_side(s, heap, receive, now)


def set_start(s: FlowState, heap: Heap, op: int, time: float) -> None:
    """Record a start, and notify its dependents."""
    s.operations[op].start = time
    for at in range(s.next_start[op], s.next_start[op + 1]):
        if s.next[at] < 0:
            release(s, heap, -1 - s.next[at], time)


def set_end(s: FlowState, heap: Heap, op: int, time: float) -> None:
    """Record an end, and notify its dependents."""
    s.operations[op].end = time
    for at in range(s.next_start[op], s.next_start[op + 1]):
        if s.next[at] >= 0:
            release(s, heap, s.next[at], time)


def release(s: FlowState, heap: Heap, op: int, time: float) -> None:
    """One dependency less; with the last the operation is ready."""
    row = s.operations[op]
    row.start = max(row.start, time)
    row.need -= 1
    if row.need == 0:
        push(heap, row.start, POST if row.step == RECEIVE else READY, op)
