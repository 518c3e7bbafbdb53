"""The event loop of the replay: functions over flat columns that run in Python or compiled.

Time is counted in whole ticks, so that equal times are equal. Every processor of a rank is a lane with three queues:
computations, sends and arriving messages that are ready, by the time from which they could start. One heap holds
the lanes by the time of their next start; nothing that is blocked is ever queued a second time.

Of operations that could start at the same time on a lane, the one released first, or the message sent first, starts.
The number of a message is that of its send.
"""

from __future__ import annotations

from whatif.models.charges import FLIGHT, RECEIVE_GAP, RECEIVE_OVERHEAD, SEND_GAP, SEND_OVERHEAD
from whatif.models.patterns import INTER_NODE
from whatif.simulation.rank_programs import ANY
from whatif.simulation.replay_queues import append, fill_queues, pair, possible, queue_up, rest, settle, take
from whatif.simulation.replay_state import (
    AFTER_ARRIVAL,
    AFTER_PROCESSOR,
    AFTER_SIDE,
    ARRIVING,
    AT_ONCE,
    COMPUTE,
    ENDED,
    LANES,
    MESSAGE,
    NONE,
    QUEUES,
    RECEIVE,
    ROW,
    SEND,
    STACK,
    STARTED,
    Integers,
    ReplayState,
)


def in_memory(columns: ReplayState) -> ReplayState:
    """The columns themselves; compiled functions get a view by address, see `jit`."""
    return columns


def cost(s: ReplayState, part: int, send: int) -> int:
    """One of the five costs of a message in ticks."""
    at = (part * s.kinds + (s.kind[send] & ROW)) * 2
    return int(s.cost[at] + s.cost[at + 1] * max(s.charged[send] - s.free_size, 0.0) + 0.5)


def waits_for_receive(s: ReplayState, send: int) -> bool:
    """Whether the protocol of a send waits for its receive."""
    return s.kind[send] > ROW


def finish(s: ReplayState, op: int) -> None:
    """Put an operation that has started or ended on the stack of those with dependents to notify."""
    s.link[op] = s.counts[STACK]
    s.counts[STACK] = op


def because(s: ReplayState, op: int, by: int, why: int) -> None:
    """Record the cause of a start that was later than the release."""
    s.cause[op], s.why[op] = by, why


def notify_dependents(s: ReplayState, op: int, dependents: int) -> None:
    """Notify some dependents of an operation, and all of those on the stack; release those that wait for no others."""
    while True:
        if dependents == 0:
            op = s.counts[STACK]
            if op < 0:
                return
            s.counts[STACK] = s.link[op]
            dependents = STARTED | ENDED if s.end[op] >= 0 else STARTED
        dependents &= ~s.notified[op]
        s.notified[op] |= dependents
        for at in range(s.next_start[op], s.next_start[op + 1]):
            meet(s, op, s.next[at], dependents)
        dependents = 0


def meet(s: ReplayState, op: int, dependent: int, dependents: int) -> None:
    """Meet one dependency of a dependent, if it is among those notified."""
    by, time, which = op, s.end[op], ENDED
    if dependent < 0:
        dependent, by, which = -1 - dependent, -1 - op, STARTED
        time = s.ready[op] if s.step[op] == RECEIVE else s.start[op]
    if not dependents & which:
        return
    if time >= s.ready[dependent]:
        s.ready[dependent], s.released_by[dependent] = time, by
    s.need[dependent] -= 1
    if s.need[dependent] == 0:
        release(s, dependent)


def release(s: ReplayState, op: int) -> None:
    """Release an operation: only processor, sides and its peer can delay it further."""
    step = s.step[op]
    if step == COMPUTE:
        queue_up(s, s.lane[op], COMPUTE, op)
    elif step == SEND:
        offer(s, op)
    elif step == RECEIVE:
        post(s, op)
    else:
        s.start[op] = s.end[op] = s.ready[op]
        finish(s, op)


def offer(s: ReplayState, send: int) -> None:
    """Queue a send; one that waits for its receive looks for it first."""
    waits = waits_for_receive(s, send)
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


def allow(s: ReplayState, send: int, receive: int) -> None:
    """Queue a send that has waited for its receive."""
    if s.ready[receive] >= s.ready[send]:
        s.ready[send], s.released_by[send], s.why[send] = s.ready[receive], s.released_by[receive], AT_ONCE
    queue_up(s, s.lane[send], SEND, send)


def announce(s: ReplayState, send: int) -> None:
    """Bring a message to a rank with wildcards, which matches in order of arrival; none overtakes an earlier one."""
    rank = s.rank[s.lane[send]]
    s.after[send] = send
    if s.last_arrival[rank] > s.ready[send]:
        s.ready[send], s.after[send] = s.last_arrival[rank], s.last_message[rank]
    elif s.start[send] >= 0:
        s.last_arrival[rank], s.last_message[rank] = s.ready[send], send
    queue_up(s, s.peer[send] * s.processors, ARRIVING, send)


def post(s: ReplayState, receive: int) -> None:
    """Match a receive with a message that waits for it, or let it wait."""
    send = take(s, s.waiting, receive)
    if send < 0:
        append(s, s.posted, receive)
    else:
        pair(s, send, receive)
        if s.on_arrival:
            receive_taken(s, send, receive, s.child[send], s.turn[send])
        else:
            proceed(s, send, receive, send)
    if s.by_start or s.end[receive] >= 0:
        finish(s, receive)


def proceed(s: ReplayState, send: int, receive: int, by: int) -> None:
    """Deliver a matched message that is under way, or start one that waited."""
    if s.start[send] >= 0:
        deliver(s, send, receive, by)
    elif waits_for_receive(s, send):
        if by != send:
            because(s, send, by, AFTER_ARRIVAL)
        allow(s, send, receive)


def deliver(s: ReplayState, send: int, receive: int, by: int) -> None:
    """Queue a message with a known receive; it arrived with a message of the same rank, mostly itself."""
    if s.ready[receive] >= s.ready[send]:
        s.ready[send] = s.ready[receive]
    else:
        because(s, receive, by, AFTER_ARRIVAL)
    queue_up(s, s.lane[receive], MESSAGE, send)


def receive_taken(s: ReplayState, send: int, receive: int, by: int, why: int) -> None:
    """A receive has the message that was taken at `ready` for a reason; a rendezvous send ends with it."""
    because(s, receive, by, why)
    s.start[receive] = s.ready[send]
    s.end[receive] = max(s.ready[send] + cost(s, RECEIVE_OVERHEAD, send), s.ready[receive])
    if waits_for_receive(s, send):
        s.end[send] = max(s.ready[send], s.ready[receive])
        finish(s, send)


def blocker(s: ReplayState, lane: int, queue: int, op: int, time: int) -> tuple[int, int]:
    """The last user of processor or side that kept an operation waiting, and why it did; `AT_ONCE` for none."""
    if s.ready[op] == time:
        return NONE, AT_ONCE
    if s.free[lane] == time:
        return s.user[lane], AFTER_PROCESSOR
    return s.side_user[s.rank[lane] * 2 + queue - 1], AFTER_SIDE


def occupy(s: ReplayState, lane: int, side: int, op: int, free: int, side_free: int) -> None:
    """Keep a processor and a side of its rank for one operation."""
    at = s.rank[lane] * 2 + side
    s.free[lane], s.user[lane] = free, op
    s.side_free[at], s.side_user[at] = side_free, op


def compute(s: ReplayState, lane: int, op: int, time: int) -> int:
    """Start a computation; return the dependents to notify."""
    by, why = blocker(s, lane, COMPUTE, op, time)
    if why != AT_ONCE:
        because(s, op, by, why)
    s.start[op] = time
    s.end[op] = s.free[lane] = time + int(s.size[op] * s.ticks + 0.5)
    s.user[lane] = op
    return STARTED | ENDED


def send(s: ReplayState, lane: int, op: int, time: int) -> int:
    """Start a send and its message; return the dependents to notify."""
    by, why = blocker(s, lane, SEND, op, time)
    if why != AT_ONCE:
        because(s, op, by, why)
    late = delay(s, op, time)
    free, side_free = time + cost(s, SEND_OVERHEAD, op), time + cost(s, SEND_GAP, op) + late
    occupy(s, lane, 0, op, free, side_free)
    s.start[op] = time
    s.ready[op] = time + cost(s, FLIGHT, op) + late
    if s.on_arrival:
        s.end[op] = free
        queue_up(s, s.peer[op] * s.processors + lane - s.rank[lane] * s.processors, MESSAGE, op)
        return STARTED if waits_for_receive(s, op) else STARTED | ENDED
    s.end[op] = max(free, side_free)
    if s.match[op] >= 0:
        deliver(s, op, s.match[op], op)
    elif s.wild[s.peer[op]]:
        announce(s, op)
    return STARTED | ENDED


def delay(s: ReplayState, op: int, time: int) -> int:
    """Delay of a message at the adapter of its node, compared with a message alone."""
    if s.node_gap <= 0 or s.kind[op] & ROW < INTER_NODE * s.protocols:
        return 0
    node = s.node[s.rank[s.lane[op]]]
    begin = max(time, s.adapter_free[node])
    end = begin + int(s.size[op] * s.node_gap + 0.5)
    late = end + int(s.cost[(FLIGHT * s.kinds + (s.kind[op] & ROW)) * 2] + 0.5) - time - cost(s, FLIGHT, op)
    before = s.adapter_user[node] if begin > time else op
    s.adapter_before[op] = before if late > 0 else -1 - before
    s.adapter_free[node], s.adapter_user[node] = end, op
    return max(late, 0)


def match_arrived(s: ReplayState, send: int) -> None:
    """Match a message that has arrived at a rank with wildcards."""
    by, receive = s.after[send], take(s, s.posted, send)
    if receive >= 0:
        pair(s, send, receive)
        proceed(s, send, receive, by)
    else:
        append(s, s.waiting, send)


def take_matched(s: ReplayState, lane: int, op: int, time: int) -> None:
    """Take a message with a known receive."""
    receive = s.match[op]
    by, why = blocker(s, lane, MESSAGE, op, time)
    if why != AT_ONCE:
        because(s, receive, by, why)
    s.start[receive], s.end[receive] = time, time + cost(s, RECEIVE_OVERHEAD, op)
    occupy(s, lane, 1, receive, s.end[receive], time + cost(s, RECEIVE_GAP, op))
    finish(s, receive)


def take_arrived(s: ReplayState, lane: int, op: int, time: int) -> None:
    """Take a message on its arrival, whether its receive is posted or not."""
    by, why = blocker(s, lane, MESSAGE, op, time)
    if why == AT_ONCE:
        by, why = op, AFTER_ARRIVAL
    s.ready[op] = time
    occupy(s, lane, 1, -2 - op, time + cost(s, RECEIVE_OVERHEAD, op), time + cost(s, RECEIVE_GAP, op))
    receive = take(s, s.posted, op)
    if receive >= 0:
        pair(s, op, receive)
        receive_taken(s, op, receive, by, why)
        finish(s, receive)
    else:
        s.child[op], s.turn[op] = by, why
        append(s, s.waiting, op)


def channels(columns: ReplayState, table: Integers) -> int:
    """Number the channels of all messages in order of occurrence; their count, or -1 where the table is too small.

    A channel is a sender, a receiver and a tag, or all that reaches a rank with wildcards. The table is open-addressed,
    a power of two long, filled with -1, and holds the first operation of each channel.
    """
    s = in_memory(columns)
    mask, count = len(table) - 1, 0
    for op in range(s.operations):
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


def ends_of(s: ReplayState, op: int) -> tuple[int, int, int]:
    """Sender, receiver and tag of a send or receive; of a receiver with wildcards only itself."""
    rank, peer, tag = s.rank[s.lane[op]], s.peer[op], s.tag[op]
    source, target = (rank, peer) if s.step[op] == SEND else (peer, rank)
    if s.wild[target]:
        return ANY, target, ANY
    return source, target, tag


def classify(columns: ReplayState) -> None:
    """Distance and protocol of every send."""
    s = in_memory(columns)
    for op in range(s.operations):
        if s.step[op] == SEND:
            rank, peer, distance = s.rank[s.lane[op]], s.peer[op], 0
            if s.node[rank] != s.node[peer]:
                distance = INTER_NODE
            elif s.socket[rank] != s.socket[peer]:
                distance = 1
            protocol, limits, waiting = 0, distance * s.limits, 0
            while protocol < s.limits and s.size[op] > s.limit[limits + protocol]:
                protocol += 1
            if protocol >= s.eager_count:
                waiting = ROW + 1
                protocol += s.isend_shift * s.kind[op]
            s.kind[op] = waiting + distance * s.protocols + protocol


def advance(columns: ReplayState, event_count: int) -> None:
    """Run a number of events, or to the end, which is where no lane is left in the heap.

    The first time, a run of no events, release what depends on nothing.
    """
    s = in_memory(columns)
    if event_count == 0:
        for op in range(s.operations):
            if s.need[op] == 0:
                release(s, op)
    lane, op, dependents = NONE, NONE, 0
    while True:
        notify_dependents(s, op, dependents)
        fill_queues(s)
        if lane >= 0:
            settle(s, lane)
        if event_count == 0 or s.counts[LANES] == 0:
            return
        event_count -= 1
        lane = s.heap[0]
        queue = s.choice[lane]
        op = s.root[QUEUES * lane + queue]
        time, dependents = possible(s, lane, queue, op), 0
        if time == s.when[lane]:
            s.root[QUEUES * lane + queue] = rest(s, op)
            dependents = start(s, lane, queue, op, time)


def start(s: ReplayState, lane: int, queue: int, op: int, time: int) -> int:
    """Start the first of a queue; return the dependents to notify."""
    if queue == COMPUTE:
        return compute(s, lane, op, time)
    if queue == SEND:
        return send(s, lane, op, time)
    if queue == ARRIVING:
        match_arrived(s, op)
    elif s.on_arrival:
        take_arrived(s, lane, op, time)
    else:
        take_matched(s, lane, op, time)
    return 0
