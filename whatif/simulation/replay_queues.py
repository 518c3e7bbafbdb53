"""Queues of the replay: ready operations of each lane, lanes by time, receives and messages by channel."""

from __future__ import annotations

from whatif.simulation.rank_programs import ANY
from whatif.simulation.replay_state import (
    ARRIVING,
    COMPUTE,
    FIRST_READY,
    LANES,
    LAST_READY,
    NONE,
    QUEUES,
    RELEASED,
    SEND,
    Integers,
    ReplayState,
)

# ---- Queues of a lane: pairing heaps by (ready, turn), linked through `child` and `link`.


def meld(s: ReplayState, one: int, two: int) -> int:
    """Root of two heaps as one."""
    if one < 0:
        return two
    if two < 0:
        return one
    if s.ready[two] < s.ready[one] or (s.ready[two] == s.ready[one] and s.turn[two] < s.turn[one]):
        one, two = two, one
    s.link[two] = s.child[one]
    s.child[one] = two
    return one


def rest(s: ReplayState, root: int) -> int:
    """Root of a heap without its root: pairs from first to last, then all from last to first."""
    pairs, left = NONE, s.child[root]
    while left >= 0:
        right = s.link[left]
        after = NONE
        if right >= 0:
            after = s.link[right]
            left = meld(s, left, right)
        s.link[left] = pairs
        pairs, left = left, after
    root = NONE
    while pairs >= 0:
        after = s.link[pairs]
        root = meld(s, root, pairs)
        pairs = after
    return root


# ---- The heap of lanes by (when, order).


def rise(s: ReplayState, at: int, lane: int) -> None:
    """Put a lane at a place of the heap or above it."""
    when, order = s.when[lane], s.order[lane]
    while at > 0:
        above = (at - 1) >> 1
        other = s.heap[above]
        if s.when[other] < when or (s.when[other] == when and s.order[other] <= order):
            break
        s.heap[at] = other
        s.place[other] = at
        at = above
    s.heap[at] = lane
    s.place[lane] = at


def sink(s: ReplayState, at: int, lane: int) -> None:
    """Put a lane at a place of the heap or below it."""
    when, order, count = s.when[lane], s.order[lane], s.counts[LANES]
    while True:
        below = 2 * at + 1
        if below >= count:
            break
        other = s.heap[below]
        if below + 1 < count:
            right = s.heap[below + 1]
            if s.when[right] < s.when[other] or (s.when[right] == s.when[other] and s.order[right] < s.order[other]):
                below += 1
                other = right
        if when < s.when[other] or (when == s.when[other] and order <= s.order[other]):
            break
        s.heap[at] = other
        s.place[other] = at
        at = below
    s.heap[at] = lane
    s.place[lane] = at


def possible(s: ReplayState, lane: int, queue: int, op: int) -> int:
    """Earliest start of an operation, or of the receipt of a message; messages are matched at once."""
    if queue == ARRIVING:
        return s.ready[op]
    time = max(s.ready[op], s.free[lane])
    if queue != COMPUTE:
        time = max(time, s.side_free[s.rank[lane] * 2 + queue - 1])
    return time


def settle(s: ReplayState, lane: int) -> None:
    """Choose the next operation of the first lane of the heap, and move the lane to its place."""
    best, best_time, best_turn = NONE, 0, 0
    for queue in range(QUEUES):
        op = s.root[QUEUES * lane + queue]
        if op >= 0:
            time = possible(s, lane, queue, op)
            if best < 0 or time < best_time or (time == best_time and s.turn[op] < best_turn):
                best, best_time, best_turn = queue, time, s.turn[op]
    if best >= 0:
        s.when[lane], s.order[lane], s.choice[lane] = best_time, best_turn, best
        sink(s, 0, lane)
        return
    s.place[lane] = NONE
    s.counts[LANES] -= 1
    if s.counts[LANES] > 0:
        sink(s, 0, s.heap[s.counts[LANES]])


def queue_up(s: ReplayState, lane: int, queue: int, op: int) -> None:
    """Note, in order, that an operation is ready for a queue of a lane."""
    s.child[op] = QUEUES * lane + queue
    s.link[op] = NONE
    if s.counts[FIRST_READY] < 0:
        s.counts[FIRST_READY] = op
    else:
        s.link[s.counts[LAST_READY]] = op
    s.counts[LAST_READY] = op


def fill_queues(s: ReplayState) -> None:
    """Put all ready operations into their queues; a lane moves ahead in the heap if one of them is its next."""
    while s.counts[FIRST_READY] >= 0:
        op = s.counts[FIRST_READY]
        s.counts[FIRST_READY] = s.link[op]
        to = s.child[op]
        s.child[op] = NONE
        s.turn[op] = s.counts[RELEASED]
        s.counts[RELEASED] += 1
        s.root[to] = meld(s, s.root[to], op)
        lane, queue = to // QUEUES, to % QUEUES
        time = possible(s, lane, queue, op)
        at = s.place[lane]
        if at < 0 or time < s.when[lane]:
            s.when[lane], s.order[lane], s.choice[lane] = time, s.turn[op], queue
            if at < 0:
                at = s.counts[LANES]
                s.counts[LANES] += 1
            rise(s, at, lane)


# ---- Matching: lists of receives and of messages by channel, linked through `after`.


def append(s: ReplayState, ends: Integers, op: int) -> None:
    """Add to a list of the channel."""
    channel = s.channel[op]
    s.after[op] = NONE
    if ends[2 * channel] < 0:
        ends[2 * channel] = op
    else:
        s.after[ends[2 * channel + 1]] = op
    ends[2 * channel + 1] = op


def fits(s: ReplayState, send: int, receive: int) -> bool:
    """Whether a receive takes a message of its channel; any tag is any tag of the user."""
    peer, tag = s.peer[receive], s.tag[receive]
    if peer != ANY and peer != s.rank[s.lane[send]]:
        return False
    return tag == s.tag[send] or (tag == ANY and s.tag[send] >= 0)


def take(s: ReplayState, ends: Integers, op: int) -> int:
    """Remove the first of a list of the channel that fits a send or a receive."""
    channel = s.channel[op]
    before, other = NONE, ends[2 * channel]
    while other >= 0:
        if fits(s, op, other) if s.step[op] == SEND else fits(s, other, op):
            break
        before, other = other, s.after[other]
    if other < 0:
        return NONE
    if before < 0:
        ends[2 * channel] = s.after[other]
    else:
        s.after[before] = s.after[other]
    if ends[2 * channel + 1] == other:
        ends[2 * channel + 1] = before
    return other


def pair(s: ReplayState, send: int, receive: int) -> None:
    """A message and its receive have found each other."""
    s.match[send], s.match[receive] = receive, send
