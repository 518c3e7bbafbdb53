"""The event loop of `flows`: plain functions over arrays, which numba compiles where there is much to do.

Messages that cross the same links under the same limit are one bundle. Events are (time, what, number); those of one
instant are all worked off before the links are shared anew.
"""

from __future__ import annotations

from heapq import heappop
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.link_kernel import END, SAME_INSTANT, Heap, Links, advance, enter_bundle, pop_flow, push, share

ENTER, ARRIVE, WAKE, READY = range(1, 5)
COMPUTE, SEND, RECEIVE, JOIN = range(4)
SEND_OVERHEAD, SEND_GAP, FLIGHT, RECEIVE_OVERHEAD, RECEIVE_GAP = range(5)
NOTHING: Final = -1
ANY: Final = -1


class Operations(NamedTuple):
    """What does not change: the schedule, matching and costs."""

    step: NDArray[np.uint8]
    rank: NDArray[np.int32]
    unit: NDArray[np.int32]
    """[op]: the processor, numbered over all ranks."""
    peer: NDArray[np.int32]
    tag: NDArray[np.int32]
    size: FloatArray
    next_start: NDArray[np.int64]
    next: NDArray[np.int32]
    channel: NDArray[np.int32]
    """[op]: number of its (sender, receiver, tag); `NOTHING` for receives of any."""
    loose: NDArray[np.bool_]
    """[rank]: whether it has receives of any."""
    cost: NDArray[np.uint8]
    """[op]: of a send, the row of its distance and protocol in `charges`."""
    charges: FloatArray
    """[of five, distance, protocol, 2], flat."""
    rendezvous: NDArray[np.bool_]
    """[distance and protocol]."""
    bundle: NDArray[np.int32]
    """[op]: of a send that leaves its node; else `NOTHING`."""
    latency: FloatArray
    """[bundle]: that of its links together."""
    free_size: FloatArray
    """[1]"""


class Work(NamedTuple):
    """What changes."""

    need: NDArray[np.int32]
    start: FloatArray
    """[op]: until it starts, when its dependencies are met."""
    end: FloatArray
    """[op]: NaN until it is known."""
    match: NDArray[np.int32]
    arrived: NDArray[np.bool_]
    unit_free: FloatArray
    side_free: FloatArray
    """[2 rank: sending, 2 rank + 1: receiving]"""
    side_head: NDArray[np.int32]
    side_tail: NDArray[np.int32]
    side_next: NDArray[np.int32]
    channel_head: NDArray[np.int32]
    channel_tail: NDArray[np.int32]
    channel_next: NDArray[np.int32]
    loose_head: NDArray[np.int32]
    """[2 rank: messages that no receive has asked for, 2 rank + 1: receives of any]"""
    loose_tail: NDArray[np.int32]
    loose_next: NDArray[np.int32]


def replay(ops: Operations, work: Work, links: Links) -> None:
    """Fill `start`, `end` and `match`; operations that never start keep a NaN end."""
    heap = [(0.0, READY, op) for op in range(len(ops.step)) if work.need[op] == 0]
    while len(heap) > 0:
        now = heap[0][0]
        while len(heap) > 0 and (heap[0][0] <= now or (heap[0][1] == END and heap[0][0] <= now * SAME_INSTANT)):
            time, what, number = heappop(heap)
            if what == READY:
                begin(ops, work, heap, number, time)
            elif what == WAKE:
                wake(ops, work, heap, number, time)
            elif what == ARRIVE:
                arrive(ops, work, heap, number, time)
            elif what == ENTER:
                enter(ops, links, heap, number, time)
            elif links.end[number] == time:
                finish(links, heap, number, time)
        share(links, heap, now)


def begin(ops: Operations, work: Work, heap: Heap, op: int, now: float) -> None:
    """An operation whose dependencies are met."""
    step = ops.step[op]
    if step == SEND:
        post_send(ops, work, heap, op, now)
    elif step == RECEIVE:
        post_receive(ops, work, heap, op, now)
    else:
        unit, started, size = ops.unit[op], now, 0.0
        if step == COMPUTE:
            started, size = max(now, work.unit_free[unit]), ops.size[op]
            work.unit_free[unit] = started + size
        set_start(ops, work, heap, op, started)
        set_end(ops, work, heap, op, started + size)


def post_send(ops: Operations, work: Work, heap: Heap, send: int, now: float) -> None:
    """Match a send, and start it unless it has to wait for its receive."""
    receive = meet(ops, work, send)
    if ops.rendezvous[ops.cost[send]]:
        if receive == NOTHING:
            receive = offer(ops, work, send)
        if receive == NOTHING:
            return
    use_side(ops, work, heap, send, now)


def post_receive(ops: Operations, work: Work, heap: Heap, receive: int, now: float) -> None:
    """Match a receive, and start it, or the send that waits for it."""
    if ops.channel[receive] != NOTHING:
        send = meet(ops, work, receive)
    else:
        place = 2 * ops.rank[receive]
        send = search(ops, work, place, receive)
        if send == NOTHING:
            append(work.loose_head, work.loose_tail, work.loose_next, place + 1, receive)
    if send == NOTHING:
        return
    if ops.rendezvous[ops.cost[send]]:
        use_side(ops, work, heap, send, now)
    elif work.arrived[send]:
        use_side(ops, work, heap, receive, now)


def meet(ops: Operations, work: Work, op: int) -> int:
    """The first unmatched operation of the other kind in the channel, or join those of the same kind that wait."""
    channel = ops.channel[op]
    head = work.channel_head[channel]
    while head != NOTHING and work.match[head] != NOTHING:
        head = work.channel_next[head]
    work.channel_head[channel] = head
    if head == NOTHING or ops.step[head] == ops.step[op]:
        append(work.channel_head, work.channel_tail, work.channel_next, channel, op)
        return NOTHING
    work.channel_head[channel] = work.channel_next[head]
    work.match[op], work.match[head] = head, op
    return int(head)


def offer(ops: Operations, work: Work, send: int) -> int:
    """A receive of any that takes a message which no other receive has taken, or put the message up for one."""
    receiver = ops.peer[send]
    if not ops.loose[receiver]:
        return NOTHING
    receive = search(ops, work, 2 * receiver + 1, send)
    if receive == NOTHING:
        append(work.loose_head, work.loose_tail, work.loose_next, 2 * receiver, send)
    return receive


def search(ops: Operations, work: Work, place: int, op: int) -> int:
    """Take the first entry of a loose list that fits an operation; those matched meanwhile are dropped."""
    before, here = NOTHING, work.loose_head[place]
    while here != NOTHING:
        gone = work.match[here] != NOTHING
        fits = not gone and (fit(ops, op, here) if ops.step[op] == RECEIVE else fit(ops, here, op))
        if gone or fits:
            if before == NOTHING:
                work.loose_head[place] = work.loose_next[here]
            else:
                work.loose_next[before] = work.loose_next[here]
            if work.loose_tail[place] == here:
                work.loose_tail[place] = before
        else:
            before = here
        if fits:
            work.match[op], work.match[here] = here, op
            return int(here)
        here = work.loose_next[here]
    return NOTHING


def fit(ops: Operations, receive: int, send: int) -> bool:
    """Whether a receive of any may take a message; any tag means those of the user."""
    peer, tag = ops.peer[receive], ops.tag[receive]
    from_there = peer == ANY or peer == ops.rank[send]
    return bool(from_there and (tag == ops.tag[send] or (tag == ANY and ops.tag[send] >= 0)))


def append(head: NDArray[np.int32], tail: NDArray[np.int32], after: NDArray[np.int32], place: int, op: int) -> None:
    """Put an operation at the end of a linked list."""
    after[op] = NOTHING
    if head[place] == NOTHING:
        head[place] = op
    else:
        after[tail[place]] = op
    tail[place] = op


def use_side(ops: Operations, work: Work, heap: Heap, op: int, now: float) -> None:
    """Start a send or receive, or let it wait in turn for its side of the rank."""
    side = 2 * ops.rank[op] + (1 if ops.step[op] == RECEIVE else 0)
    if work.side_head[side] != NOTHING:
        append(work.side_head, work.side_tail, work.side_next, side, op)
    elif work.side_free[side] > now:
        append(work.side_head, work.side_tail, work.side_next, side, op)
        push(heap, work.side_free[side], WAKE, side)
    else:
        start_message(ops, work, heap, op, now)


def wake(ops: Operations, work: Work, heap: Heap, side: int, now: float) -> None:
    """Start the first that waits for a side."""
    op = work.side_head[side]
    work.side_head[side] = work.side_next[op]
    start_message(ops, work, heap, op, now)
    if work.side_head[side] != NOTHING:
        push(heap, work.side_free[side], WAKE, side)


def start_message(ops: Operations, work: Work, heap: Heap, op: int, now: float) -> None:
    """Start a send or a receive whose side is free, as soon as its processor is."""
    receiving = ops.step[op] == RECEIVE
    send = work.match[op] if receiving else op
    unit, side = ops.unit[op], 2 * ops.rank[op] + (1 if receiving else 0)
    started = max(now, work.unit_free[unit])
    processed = started + charge(ops, RECEIVE_OVERHEAD if receiving else SEND_OVERHEAD, send)
    work.unit_free[unit] = processed
    work.side_free[side] = started + charge(ops, RECEIVE_GAP if receiving else SEND_GAP, send)
    set_start(ops, work, heap, op, started)
    if receiving:
        set_end(ops, work, heap, op, processed)
        return
    bundle, flown = ops.bundle[op], started + charge(ops, FLIGHT, op)
    if bundle == NOTHING:
        push(heap, flown, ARRIVE, op)
    else:
        push(heap, flown + ops.latency[bundle], ENTER, op)
    if bundle == NOTHING or not ops.rendezvous[ops.cost[op]]:
        set_end(ops, work, heap, op, max(processed, work.side_free[side]))


def charge(ops: Operations, what: int, send: int) -> float:
    """One of the five costs of a message."""
    at = (what * 9 + ops.cost[send]) * 2
    return float(ops.charges[at] + ops.charges[at + 1] * max(ops.size[send] - ops.free_size[0], 0.0))


def enter(ops: Operations, links: Links, heap: Heap, send: int, now: float) -> None:
    """The constant part of a flight is over: the bytes follow."""
    size = max(ops.size[send] - ops.free_size[0], 0.0)
    bundle = ops.bundle[send]
    if size > 0:
        advance(links, bundle, now)
        enter_bundle(links, bundle, send, size)
    else:
        push(heap, now, ARRIVE, send)


def finish(links: Links, heap: Heap, bundle: int, now: float) -> None:
    """The first flows of a bundle have got all their bytes."""
    links.served[bundle], links.since[bundle] = links.threshold[links.root[bundle]], now
    links.end[bundle] = np.nan
    flow = pop_flow(links, bundle)
    while flow != NOTHING:
        push(heap, now, ARRIVE, flow)
        flow = pop_flow(links, bundle)


def arrive(ops: Operations, work: Work, heap: Heap, send: int, now: float) -> None:
    """A message is there."""
    work.arrived[send] = True
    if ops.bundle[send] != NOTHING and ops.rendezvous[ops.cost[send]]:
        kept = max(charge(ops, SEND_OVERHEAD, send), charge(ops, SEND_GAP, send))
        set_end(ops, work, heap, send, max(now, work.start[send] + kept))
    receive = work.match[send]
    if receive == NOTHING:
        receive = offer(ops, work, send)
    if receive != NOTHING:
        use_side(ops, work, heap, receive, now)


def set_start(ops: Operations, work: Work, heap: Heap, op: int, time: float) -> None:
    """Note a start, and tell the operations that need it."""
    work.start[op] = time
    for at in range(ops.next_start[op], ops.next_start[op + 1]):
        if ops.next[at] < 0:
            release(work, heap, -1 - ops.next[at], time)


def set_end(ops: Operations, work: Work, heap: Heap, op: int, time: float) -> None:
    """Note an end, and tell the operations that need it."""
    work.end[op] = time
    for at in range(ops.next_start[op], ops.next_start[op + 1]):
        if ops.next[at] >= 0:
            release(work, heap, ops.next[at], time)


def release(work: Work, heap: Heap, op: int, time: float) -> None:
    """One dependency less; with the last the operation is ready."""
    work.start[op] = max(work.start[op], time)
    work.need[op] -= 1
    if work.need[op] == 0:
        push(heap, work.start[op], READY, op)
