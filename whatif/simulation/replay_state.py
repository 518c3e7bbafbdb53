"""State of the replay kernel: columns of the schedule, of the machine and of the run."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Final, NamedTuple

from whatif.simulation.schedule import Step

# Plain numbers, for compiled functions.
COMPUTE: Final = int(Step.COMPUTE)
SEND: Final = int(Step.SEND)
RECEIVE: Final = int(Step.RECEIVE)
JOIN: Final = int(Step.JOIN)

# Further queues of a lane: messages to take, and messages to match first.
MESSAGE: Final = 2
ARRIVING: Final = 3
QUEUES: Final = 4

NONE: Final = -1
ROW: Final = 127
"""Bits of the kind of a send that number its distance and protocol."""
UNRELEASED: Final = -(2**31)

# Cause of the start of an operation.
AT_ONCE: Final = 0
AFTER_END: Final = 1
AFTER_START: Final = 2
AFTER_PROCESSOR: Final = 3
AFTER_SIDE: Final = 4
AFTER_ARRIVAL: Final = 5

# Dependents of an operation to notify.
STARTED: Final = 1
ENDED: Final = 2

# Places in `ReplayState.counts`.
LANES: Final = 0
RELEASED: Final = 1
STACK: Final = 2
FIRST_READY: Final = 3
LAST_READY: Final = 4

Integers = MutableSequence[int]
Reals = MutableSequence[float]


class ReplayState(NamedTuple):
    """Columns of the schedule, of the machine and of the run: arrays when compiled, lists when not."""

    step: Integers
    peer: Integers
    size: Reals
    charged: Reals
    """[op]: the size by which a message is charged."""
    tag: Integers
    next_start: Integers
    next: Integers
    need: Integers
    lane: Integers
    """[op]: rank · processors + processor."""

    node: Integers
    socket: Integers
    limit: Reals
    """[distance, limit], flat: largest sizes in B."""
    cost: Reals
    """[cost, distance, protocol, 2], flat: ticks, and ticks a byte; costs as `models.charges` numbers them."""
    wild: Integers
    """[rank]: 1 where a receive takes any source or any tag."""

    start: Integers
    end: Integers
    cause: Integers
    """[op]: the cause of its start if it is not the release; -2 - m for the receive of message m."""
    why: Integers
    match: Integers
    released_by: Integers
    """[op]: the last dependency met, -1 - op for its start, `UNRELEASED` for none."""

    ready: Integers
    """[op]: earliest start; of a send that has started, the earliest time at which its message can be taken."""
    turn: Integers
    """[op]: its place in the order of release."""
    child: Integers
    link: Integers
    """[op]: the next one in a queue, or on the stack of those with dependents to notify."""
    after: Integers
    """[op]: the next one in the list of a channel; of a message to match, the one that it could not overtake."""
    kind: Integers
    """[op]: distance · protocols + protocol of a send, `ROW` + 1 more if it waits; before, 1 if it is nonblocking."""
    notified: Integers
    """[op]: dependents that have been notified: `STARTED`, `ENDED`."""
    channel: Integers
    adapter_before: Integers
    """[op]: the message before at the adapter of its node, or itself; -1 - that where it made this one no later."""

    root: Integers
    """[lane, queue], flat"""
    rank: Integers
    """[lane]"""
    free: Integers
    """[lane]"""
    user: Integers
    side_free: Integers
    """[rank, sending or receiving], flat"""
    side_user: Integers
    heap: Integers
    place: Integers
    """[lane]: its index in the heap, -1 for none."""
    when: Integers
    order: Integers
    choice: Integers
    last_arrival: Integers
    """[rank]: when the last of its messages to ranks with wildcards arrives; later ones do not overtake it."""
    last_message: Integers
    adapter_free: Integers
    """[node]"""
    adapter_user: Integers
    posted: Integers
    """[channel, first or last], flat: receives without a message."""
    waiting: Integers
    """[channel, first or last], flat: messages without a receive."""
    counts: Integers

    ticks: float
    """Ticks in a second."""
    free_size: float
    node_gap: float
    operations: int
    processors: int
    limits: int
    """Limits of each distance."""
    protocols: int
    """Protocols of each distance."""
    kinds: int
    """Protocols of all distances."""
    eager_count: int
    """Protocols whose sends do not wait for their receive."""
    isend_shift: int
    """Added to the protocol of a nonblocking send that waits."""
    on_arrival: int
    by_start: int
    """1 where anything depends on the start of an operation."""
