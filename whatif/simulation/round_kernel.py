"""Broadcasts and reductions among many ranks: plain functions over arrays, which numba compiles.

The results are those of `steps.transfer` to the last bit, in one pass through the memory of the ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.clocks import FLIGHT, RECEIVE_GAP, RECEIVE_OVERHEAD, RENDEZVOUS, SEND_GAP, SEND_TIME


class RoundMachine(NamedTuple):
    """Places of ranks [rank], and charges [distance, column] in ticks."""

    node: NDArray[np.int32]
    socket: NDArray[np.int32]
    charges: FloatArray
    near: bool
    """Whether all distances have the same charges."""
    early: bool
    """Whether messages are taken as they arrive."""
    in_turn: bool
    """Whether the time at which a message is taken has an effect."""


class RankClocks(NamedTuple):
    """Clocks [rank] in ticks; `sending` and `idle` are used where messages are taken as they arrive."""

    ready: FloatArray
    receiving: FloatArray
    sending: FloatArray
    idle: FloatArray


def distance(machine: RoundMachine, one: int, other: int) -> int:
    """Distance of a message."""
    if machine.near:
        return 0
    if machine.node[one] != machine.node[other]:
        return 2
    return 1 if machine.socket[one] != machine.socket[other] else 0


def transfer(machine: RoundMachine, ranks: RankClocks, first: int, shift: int, step: int, count: int) -> bool:
    """Blocking messages from `first`, `first + step`, .. to the ranks `shift` further on; False if one is too early."""
    charges, ready, receiving, early = machine.charges, ranks.ready, ranks.receiving, machine.early
    for sender in range(first, first + count * step, step):
        receiver = sender + shift
        far = distance(machine, sender, receiver)
        posted, send = ready[receiver], ready[sender]
        waits = charges[far, RENDEZVOUS] != 0
        if early:
            send = max(send, ranks.sending[sender])
        elif waits:
            send = max(send, posted)
        arrival = send + charges[far, FLIGHT]
        if early and machine.in_turn and arrival < ranks.idle[receiver]:
            return False
        receive = max(arrival, posted, receiving[receiver])
        sent = send + charges[far, SEND_TIME]
        if early:
            ranks.sending[sender] = send + charges[far, SEND_GAP]
            if waits:
                receiving[sender] = max(receiving[sender], sent)
                sent = receive
            ranks.idle[sender] = sent
            ranks.idle[receiver] = receive + charges[far, RECEIVE_OVERHEAD]
        ready[sender] = sent
        receiving[receiver] = receive + charges[far, RECEIVE_GAP]
        ready[receiver] = receive + charges[far, RECEIVE_OVERHEAD]
    return True


def spread(machine: RoundMachine, ranks: RankClocks, first: int, last: int, power: int, least: int) -> bool:
    """Rounds of a broadcast among ranks `first` to `last` at the distances `power`, `power` / 2, .. to `least`."""
    while power >= least:
        if last - first > power and not transfer(
            machine, ranks, first, power, 2 * power, (last - first - power - 1) // (2 * power) + 1
        ):
            return False
        power //= 2
    return True


def collect(machine: RoundMachine, ranks: RankClocks, first: int, last: int, power: int, most: int) -> bool:
    """Rounds of a reduction among ranks `first` to `last` at the distances `power`, 2 `power`, .. to `most`."""
    while power <= most:
        if last - first > power and not transfer(
            machine, ranks, first + power, -power, 2 * power, (last - first - power - 1) // (2 * power) + 1
        ):
            return False
        power *= 2
    return True


def broadcast(machine: RoundMachine, ranks: RankClocks, highest: int, block: int) -> bool:
    """All rounds along a binomial tree: the short distances block by block, while the block is in the cache."""
    count = len(ranks.ready)
    if not spread(machine, ranks, 0, count, highest, block):
        return False
    for first in range(0, count, block):
        if not spread(machine, ranks, first, min(first + block, count), block // 2, 1):
            return False
    return True


def reduce(machine: RoundMachine, ranks: RankClocks, highest: int, block: int) -> bool:
    """Binomial-tree reduction: the rounds of `broadcast` in reverse order."""
    count = len(ranks.ready)
    for first in range(0, count, block):
        if not collect(machine, ranks, first, min(first + block, count), 1, block // 2):
            return False
    return collect(machine, ranks, 0, count, block, highest)
