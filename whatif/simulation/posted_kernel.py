"""Loops of `posted`: plain functions over arrays, compiled by numba for large exchanges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.clocks import FLIGHT, RECEIVE_GAP, RECEIVE_OVERHEAD, SEND_GAP, SEND_OVERHEAD, SEND_TIME


class PostedMessages(NamedTuple):
    """The messages of one exchange, those of a sender together and in the order in which it posts them."""

    sent: NDArray[np.int64]
    """[rank + 1]: where the messages that a rank sends begin."""
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    received: NDArray[np.int64]
    """[rank + 1]: where those that it receives begin in `incoming`."""
    incoming: NDArray[np.int64]
    """Messages, those of a receiver together and in the order in which it posts their receives."""
    charges: FloatArray
    """[message, column], in ticks."""


class PostedState(NamedTuple):
    """Clocks at the beginning and at the end [rank], and the messages [message], in ticks; inf: not yet."""

    ready: FloatArray
    sending: FloatArray
    receiving: FloatArray
    known: FloatArray
    """Time at which `ready` was determined."""
    posted: FloatArray
    """Time from which messages are taken: `ready`, or 0 where they are taken on arrival."""
    posted_known: FloatArray
    """Time at which `posted` was determined."""
    earliest: FloatArray
    """Earliest start of a send."""
    earliest_known: FloatArray
    """Time at which `earliest` was determined."""
    begun: FloatArray
    """Its start."""
    arrival: FloatArray
    taken: FloatArray
    """Start of its receive."""
    last: FloatArray
    """End of a rank."""
    last_sending: FloatArray
    last_receiving: FloatArray
    last_start: FloatArray


def settle(messages: PostedMessages, state: PostedState) -> None:
    """Simulate all ranks until no arrival changes; write the `last` columns."""
    stale = np.ones(len(state.ready), dtype=np.bool_)
    while stale.any():
        for rank in range(len(stale)):
            if stale[rank]:
                stale[rank] = False
                settle_rank(messages, state, rank)
                for message in range(messages.sent[rank], messages.sent[rank + 1]):
                    arrival = state.begun[message] + messages.charges[message, FLIGHT]
                    if arrival != state.arrival[message]:
                        state.arrival[message] = arrival
                        stale[messages.receiver[message]] = True


def settle_rank(messages: PostedMessages, state: PostedState, rank: int) -> None:
    """Simulate one rank for the known arrivals: first the earliest start, then the one known first, then sends."""
    for message in range(messages.sent[rank], messages.sent[rank + 1]):
        state.begun[message] = np.inf
    for place in range(messages.received[rank], messages.received[rank + 1]):
        state.taken[messages.incoming[place]] = np.inf
    processor = last = state.ready[rank]
    sending, receiving = state.sending[rank], state.receiving[rank]
    start = state.known[rank]
    while True:
        receive, receive_start, receive_known = next_receive(messages, state, rank, max(processor, receiving))
        send, send_start, send_known = next_send(messages, state, rank, max(processor, sending))
        if receive < 0 and send < 0:
            break
        if send < 0 or receive_start < send_start or (receive_start == send_start and receive_known < send_known):
            start = receive_start
            state.taken[receive] = start
            processor = start + messages.charges[receive, RECEIVE_OVERHEAD]
            receiving = start + messages.charges[receive, RECEIVE_GAP]
            last = max(last, processor)
        else:
            start = send_start
            state.begun[send] = start
            processor = start + messages.charges[send, SEND_OVERHEAD]
            sending = start + messages.charges[send, SEND_GAP]
            last = max(last, start + messages.charges[send, SEND_TIME])
    state.last[rank], state.last_sending[rank], state.last_receiving[rank] = last, sending, receiving
    state.last_start[rank] = start


def next_receive(messages: PostedMessages, state: PostedState, rank: int, free: float) -> tuple[int, float, float]:
    """Next receive, its start, and the time since which it is known (its send); -1 for none."""
    chosen, start, since, known = -1, np.inf, np.inf, np.inf
    posted, posted_known = state.posted[rank], state.posted_known[rank]
    for place in range(messages.received[rank], messages.received[rank + 1]):
        message = messages.incoming[place]
        if state.taken[message] == np.inf and state.arrival[message] < np.inf:
            ready, sent = max(posted, state.arrival[message]), state.begun[message]
            if ready < since or (ready == since and max(sent, posted_known) < max(known, posted_known)):
                chosen, start, since, known = message, max(ready, free), ready, sent
    return chosen, start, known


def next_send(messages: PostedMessages, state: PostedState, rank: int, free: float) -> tuple[int, float, float]:
    """Next send, its start, and the time since which it is known; -1 for none."""
    chosen, start, since, known = -1, np.inf, np.inf, np.inf
    for message in range(messages.sent[rank], messages.sent[rank + 1]):
        if state.begun[message] == np.inf:
            ready, decided = state.earliest[message], state.earliest_known[message]
            if ready < since or (ready == since and decided < known):
                chosen, start, since, known = message, max(ready, free), ready, decided
    return chosen, start, known
