"""The loops of `posted`: plain functions over arrays, which numba compiles where there is much to do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

SEND_OVERHEAD, SEND_GAP, SEND_TIME, FLIGHT, RECEIVE_OVERHEAD, RECEIVE_GAP, RENDEZVOUS = range(7)
"""Columns of charges, those of `clocks.Charge`."""


class Messages(NamedTuple):
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
    """[message, column], in ns."""


class State(NamedTuple):
    """Clocks at the beginning and at the end [rank], and the messages [message], in ns; inf: not yet."""

    ready: FloatArray
    sending: FloatArray
    receiving: FloatArray
    earliest: FloatArray
    """When a send may start."""
    begun: FloatArray
    """When it starts."""
    arrival: FloatArray
    taken: FloatArray
    """When its receive starts."""
    last: FloatArray
    """When a rank has finished."""
    last_sending: FloatArray
    last_receiving: FloatArray


def settle(messages: Messages, state: State) -> None:
    """Play all ranks until no arrival changes; what is `last` is written."""
    stale = np.ones(len(state.ready), dtype=np.bool_)
    while stale.any():
        for rank in range(len(stale)):
            if stale[rank]:
                stale[rank] = False
                play(messages, state, rank)
                for message in range(messages.sent[rank], messages.sent[rank + 1]):
                    arrival = state.begun[message] + messages.charges[message, FLIGHT]
                    if arrival != state.arrival[message]:
                        state.arrival[message] = arrival
                        stale[messages.receiver[message]] = True


def play(messages: Messages, state: State, rank: int) -> None:
    """Play one rank for the arrivals known: of all that can start, what can start first, what was ready first."""
    for message in range(messages.sent[rank], messages.sent[rank + 1]):
        state.begun[message] = np.inf
    for place in range(messages.received[rank], messages.received[rank + 1]):
        state.taken[messages.incoming[place]] = np.inf
    processor = last = state.ready[rank]
    sending, receiving = state.sending[rank], state.receiving[rank]
    while True:
        receive, receive_start, receive_since = next_receive(messages, state, rank, max(processor, receiving))
        send, send_start, send_since = next_send(messages, state, rank, max(processor, sending))
        if receive < 0 and send < 0:
            break
        if send < 0 or (receive >= 0 and (receive_start, receive_since) <= (send_start, send_since)):
            state.taken[receive] = receive_start
            processor = receive_start + messages.charges[receive, RECEIVE_OVERHEAD]
            receiving = receive_start + messages.charges[receive, RECEIVE_GAP]
            last = max(last, processor)
        else:
            state.begun[send] = send_start
            processor = send_start + messages.charges[send, SEND_OVERHEAD]
            sending = send_start + messages.charges[send, SEND_GAP]
            last = max(last, send_start + messages.charges[send, SEND_TIME])
    state.last[rank], state.last_sending[rank], state.last_receiving[rank] = last, sending, receiving


def next_receive(messages: Messages, state: State, rank: int, free: float) -> tuple[int, float, float]:
    """The receive that starts next, when, and since when it could; -1 for none."""
    chosen, start, since = -1, np.inf, np.inf
    for place in range(messages.received[rank], messages.received[rank + 1]):
        message = messages.incoming[place]
        if state.taken[message] == np.inf and state.arrival[message] < np.inf:
            ready = max(state.ready[rank], state.arrival[message])
            possible = max(ready, free)
            if possible < start or (possible == start and ready < since):
                chosen, start, since = message, possible, ready
    return chosen, start, since


def next_send(messages: Messages, state: State, rank: int, free: float) -> tuple[int, float, float]:
    """The send that starts next, when, and since when it could; -1 for none."""
    chosen, start, since = -1, np.inf, np.inf
    for message in range(messages.sent[rank], messages.sent[rank + 1]):
        if state.begun[message] == np.inf:
            possible = max(state.earliest[message], free)
            if possible < start or (possible == start and state.earliest[message] < since):
                chosen, start, since = message, possible, state.earliest[message]
    return chosen, start, since
