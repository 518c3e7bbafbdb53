"""The event loop of the replay: functions over flat columns that run as they stand, or compiled.

Time is counted in whole ticks, so that equal times are equal. Every processor of a rank is a lane with three queues:
computations, sends and arriving messages that are ready, by the time from which they could start. One heap holds
the lanes by the time of their next start; nothing that is blocked is ever queued a second time.

Of what could start at the same time on a lane, that goes first which was released, or as a message sent, first.
A message is known by the number of its send.
"""

from __future__ import annotations

from whatif.simulation.replay_queues import append, pair, possible, queue_up, rest, settle, take
from whatif.simulation.replay_state import (
    AFTER_ARRIVAL,
    AFTER_END,
    AFTER_PROCESSOR,
    AFTER_SIDE,
    AFTER_START,
    ANY,
    AT_ONCE,
    COMPUTE,
    ENDED,
    FINISHED,
    FLIGHT,
    INTER_NODE,
    LANES,
    MESSAGE,
    NONE,
    RECEIVE,
    RECEIVE_GAP,
    RECEIVE_OVERHEAD,
    RENDEZVOUS,
    SEND,
    SEND_GAP,
    SEND_OVERHEAD,
    STACK,
    STARTED,
    UNRELEASED,
    Integers,
    State,
)


def cost(s: State, part: int, send: int) -> int:
    """One of the five costs of a message in ticks."""
    at = (part * 9 + s.kind[send]) * 2
    return int(s.cost[at] + s.cost[at + 1] * max(s.size[send] - s.free_size, 0.0) + 0.5)


def finish(s: State, op: int, dependents: int) -> None:
    """Put an operation on the stack of those whose dependents are to be told."""
    s.told[op] = dependents
    s.stacked[op] = s.counts[STACK]
    s.counts[STACK] = op
    if dependents & ENDED:
        s.counts[FINISHED] += 1


def because(s: State, op: int, by: int, why: int) -> None:
    """Record what determined the start of an operation."""
    if why != AT_ONCE:
        s.cause[op], s.why[op] = by, why
    elif by == UNRELEASED:
        s.cause[op], s.why[op] = NONE, AT_ONCE
    elif by < 0:
        s.cause[op], s.why[op] = -1 - by, AFTER_START
    else:
        s.cause[op], s.why[op] = by, AFTER_END


def tell_dependents(s: State) -> None:
    """Tell the dependents of all operations on the stack, and release those that wait for nothing else."""
    while s.counts[STACK] >= 0:
        op = s.counts[STACK]
        s.counts[STACK] = s.stacked[op]
        for at in range(s.next_start[op], s.next_start[op + 1]):
            other = s.next[at]
            by, time, dependents = op, s.end[op], ENDED
            if other < 0:
                other, by, time, dependents = -1 - other, -1 - op, s.start[op], STARTED
            if s.told[op] & dependents:
                if time >= s.ready[other]:
                    s.ready[other], s.released_by[other] = time, by
                s.need[other] -= 1
                if s.need[other] == 0:
                    release(s, other)


def release(s: State, op: int) -> None:
    """Nothing holds an operation back any more but processor, sides and its peer."""
    step = s.step[op]
    if step == COMPUTE:
        because(s, op, s.released_by[op], AT_ONCE)
        queue_up(s, s.lane[op], COMPUTE, op)
    elif step == SEND:
        because(s, op, s.released_by[op], AT_ONCE)
        offer(s, op)
    elif step == RECEIVE:
        post(s, op)
    else:
        because(s, op, s.released_by[op], AT_ONCE)
        s.start[op] = s.end[op] = s.ready[op]
        finish(s, op, STARTED | ENDED)


def offer(s: State, send: int) -> None:
    """Queue a send; one that waits for its receive looks for it first."""
    waits = s.kind[send] % 3 == RENDEZVOUS
    if s.on_arrival:
        queue_up(s, s.lane[send], SEND, send)
    elif s.wild[s.peer[send]]:
        if waits:
            announce(s, send)
        else:
            queue_up(s, s.lane[send], SEND, send)
    else:
        receive = take(s, s.posted, send)
        if receive >= 0:
            pair(s, send, receive)
        else:
            append(s, s.waiting, send)
        if not waits:
            queue_up(s, s.lane[send], SEND, send)
        elif receive >= 0:
            allow(s, send, receive)


def allow(s: State, send: int, receive: int) -> None:
    """Queue a send that has waited for its receive."""
    if s.ready[receive] > s.ready[send]:
        s.ready[send] = s.ready[receive]
        because(s, send, s.released_by[receive], AT_ONCE)
    queue_up(s, s.lane[send], SEND, send)


def announce(s: State, send: int) -> None:
    """Bring a message to a rank with wildcards, which matches in order of arrival; none overtakes an earlier one."""
    rank = s.lane[send] // s.processors
    s.ready[send] = s.last_arrival[rank] = max(s.ready[send], s.last_arrival[rank])
    queue_up(s, s.peer[send] * s.processors, MESSAGE, send)


def post(s: State, receive: int) -> None:
    """Match a receive with a message that waits for it, or let it wait."""
    send = take(s, s.waiting, receive)
    if send < 0:
        append(s, s.posted, receive)
        return
    pair(s, send, receive)
    if s.on_arrival:
        because(s, receive, s.turn[send] >> 3, s.turn[send] & 7)
        receive_taken(s, send, receive)
    else:
        proceed(s, send, receive)


def proceed(s: State, send: int, receive: int) -> None:
    """Go on with a message that has been matched: take it if it is under way, start it if it waited."""
    if s.start[send] >= 0:
        deliver(s, send, receive)
    elif s.kind[send] % 3 == RENDEZVOUS:
        allow(s, send, receive)


def deliver(s: State, send: int, receive: int) -> None:
    """Queue a message whose receive is known."""
    if s.ready[receive] >= s.ready[send]:
        s.ready[send] = s.ready[receive]
        because(s, receive, s.released_by[receive], AT_ONCE)
    else:
        because(s, receive, send, AFTER_ARRIVAL)
    queue_up(s, s.lane[receive], MESSAGE, send)


def receive_taken(s: State, send: int, receive: int) -> None:
    """A message was taken at `ready`, by whichever is later of that and its receive; ends a rendezvous send too."""
    s.start[receive] = s.ready[send]
    s.end[receive] = max(s.ready[send] + cost(s, RECEIVE_OVERHEAD, send), s.ready[receive])
    finish(s, receive, STARTED | ENDED)
    if s.kind[send] % 3 == RENDEZVOUS:
        s.end[send] = max(s.ready[send], s.ready[receive])
        finish(s, send, ENDED)


def blocker(s: State, lane: int, queue: int, op: int, time: int) -> int:
    """The last user of processor or side that kept an operation waiting, times 8, and why; 0 for none."""
    if s.ready[op] == time:
        return 0
    if s.free[lane] == time:
        return s.user[lane] * 8 + AFTER_PROCESSOR
    return s.side_user[lane // s.processors * 2 + queue - 1] * 8 + AFTER_SIDE


def occupy(s: State, lane: int, side: int, op: int, free: int, side_free: int) -> None:
    """Keep a processor and a side of its rank for one operation."""
    at = lane // s.processors * 2 + side
    s.free[lane], s.user[lane] = free, op
    s.side_free[at], s.side_user[at] = side_free, op


def compute(s: State, lane: int, op: int, time: int) -> None:
    """Start a computation."""
    held = blocker(s, lane, COMPUTE, op, time)
    if held:
        because(s, op, held >> 3, held & 7)
    s.start[op] = time
    s.end[op] = s.free[lane] = time + int(s.size[op] * s.ticks + 0.5)
    s.user[lane] = op
    finish(s, op, STARTED | ENDED)


def send(s: State, lane: int, op: int, time: int) -> None:
    """Start a send, and its message on its way."""
    held = blocker(s, lane, SEND, op, time)
    if held:
        because(s, op, held >> 3, held & 7)
    late = delay(s, op, time)
    free, side_free = time + cost(s, SEND_OVERHEAD, op), time + cost(s, SEND_GAP, op) + late
    occupy(s, lane, 0, op, free, side_free)
    s.start[op] = time
    s.ready[op] = time + cost(s, FLIGHT, op) + late
    if not s.on_arrival:
        s.end[op] = max(free, side_free)
        finish(s, op, STARTED | ENDED)
        if s.match[op] >= 0:
            deliver(s, op, s.match[op])
        elif s.wild[s.peer[op]]:
            announce(s, op)
        return
    if s.kind[op] % 3 == RENDEZVOUS:
        finish(s, op, STARTED)
    else:
        s.end[op] = free
        finish(s, op, STARTED | ENDED)
    queue_up(s, s.peer[op] * s.processors + lane % s.processors, MESSAGE, op)


def delay(s: State, op: int, time: int) -> int:
    """How much later than alone a message leaves the adapter of its node, in its turn there."""
    if s.node_gap <= 0 or s.kind[op] // 3 != INTER_NODE:
        return 0
    node = s.node[s.lane[op] // s.processors]
    begin = max(time, s.adapter_free[node])
    end = begin + int(s.size[op] * s.node_gap + 0.5)
    late = end + int(s.cost[(FLIGHT * 9 + s.kind[op]) * 2] + 0.5) - time - cost(s, FLIGHT, op)
    s.adapter_before[op] = UNRELEASED
    if late > 0:
        s.adapter_before[op] = s.adapter_user[node] if begin > time else op
    s.adapter_free[node], s.adapter_user[node] = end, op
    return max(late, 0)


def arrive(s: State, lane: int, op: int, time: int) -> None:
    """Take a message whose receive is known, or match it."""
    receive = s.match[op]
    if s.on_arrival:
        arrive_unmatched(s, lane, op, time)
    elif receive >= 0:
        held = blocker(s, lane, MESSAGE, op, time)
        if held:
            because(s, receive, held >> 3, held & 7)
        s.ready[op] = time
        occupy(s, lane, 1, receive, time + cost(s, RECEIVE_OVERHEAD, op), time + cost(s, RECEIVE_GAP, op))
        s.start[receive], s.end[receive] = time, time + cost(s, RECEIVE_OVERHEAD, op)
        finish(s, receive, STARTED | ENDED)
    else:
        receive = take(s, s.posted, op)
        if receive >= 0:
            pair(s, op, receive)
            proceed(s, op, receive)
        else:
            append(s, s.waiting, op)


def arrive_unmatched(s: State, lane: int, op: int, time: int) -> None:
    """Take a message on its arrival, whether its receive is posted or not."""
    held = blocker(s, lane, MESSAGE, op, time)
    if not held:
        held = op * 8 + AFTER_ARRIVAL
    s.ready[op] = time
    occupy(s, lane, 1, -1 - op, time + cost(s, RECEIVE_OVERHEAD, op), time + cost(s, RECEIVE_GAP, op))
    receive = take(s, s.posted, op)
    if receive >= 0:
        pair(s, op, receive)
        because(s, receive, held >> 3, held & 7)
        receive_taken(s, op, receive)
    else:
        s.turn[op] = held
        append(s, s.waiting, op)


def channels(s: State, table: Integers) -> int:
    """Number the channels of all messages in order of occurrence; their count, or -1 where the table is too small.

    A channel is a sender, a receiver and a tag, or all that reaches a rank with wildcards. The table is open-addressed,
    a power of two long, filled with -1, and holds the first operation of each channel.
    """
    mask, count = len(table) - 1, 0
    for op in range(len(s.step)):
        if s.step[op] != SEND and s.step[op] != RECEIVE:
            continue
        source, target, tag = ends_of(s, op)
        at = (source * 2654435761 + target * 40503 + tag * 2246822519) & 0xFFFFFFFFFFFF
        at = (at ^ (at >> 17)) & mask
        while table[at] >= 0 and ends_of(s, table[at]) != (source, target, tag):
            at = (at + 1) & mask
        if table[at] >= 0:
            s.channel[op] = s.channel[table[at]]
            continue
        if 2 * count > mask:
            return NONE
        table[at], s.channel[op] = op, count
        count += 1
    return count


def ends_of(s: State, op: int) -> tuple[int, int, int]:
    """Sender, receiver and tag of a send or receive; of a receiver with wildcards only itself."""
    rank, peer, tag = s.lane[op] // s.processors, s.peer[op], s.tag[op]
    source, target = (rank, peer) if s.step[op] == SEND else (peer, rank)
    if s.wild[target]:
        return ANY, target, ANY
    return source, target, tag


def classify(s: State) -> None:
    """Distance and protocol of every send."""
    for op in range(len(s.step)):
        if s.step[op] == SEND:
            rank, peer, distance, protocol = s.lane[op] // s.processors, s.peer[op], 0, 0
            if s.node[rank] != s.node[peer]:
                distance = INTER_NODE
            elif s.socket[rank] != s.socket[peer]:
                distance = 1
            if s.size[op] > s.eager_limit[distance]:
                protocol = RENDEZVOUS
            elif s.size[op] > s.short_limit[distance]:
                protocol = 1
            s.kind[op] = distance * 3 + protocol


def begin(s: State) -> None:
    """Release what depends on nothing."""
    for op in range(len(s.step)):
        if s.need[op] == 0:
            release(s, op)
    tell_dependents(s)


def advance(s: State, event_count: int) -> None:
    """Run a number of events, or to the end, which is where no lane is left in the heap."""
    while event_count > 0 and s.counts[LANES] > 0:
        event_count -= 1
        lane = s.heap[0]
        queue = s.choice[lane]
        op = s.root[3 * lane + queue]
        time = possible(s, lane, queue, op)
        if time == s.when[lane]:
            s.root[3 * lane + queue] = rest(s, op)
            if queue == COMPUTE:
                compute(s, lane, op, time)
            elif queue == SEND:
                send(s, lane, op, time)
            else:
                arrive(s, lane, op, time)
            tell_dependents(s)
        settle(s, lane)
