"""One round of messages of all ranks at once: blocking messages along a tree, or exchanges.

Array operations on blocks that stay in the cache; consecutive peers are a slice. Trees of many ranks are simulated in
a compiled loop, with the same results to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.simulation import round_kernel
from whatif.simulation.clocks import Charge, Clocks, Ranks, Tariff, repeat, require_in_turn, ticks
from whatif.simulation.jit import jitted_or_plain
from whatif.simulation.round_kernel import RankClocks as TreeRanks
from whatif.simulation.round_kernel import RoundMachine

BLOCK: Final = 16384
"""Ranks of a block, a power of two: all its arrays fit into the second-level cache."""
COMPILED_FROM = 2**17
"""Ranks of a tree from which compiling is faster."""


def blocks(count: int) -> Iterator[tuple[int, int]]:
    """Start and end of the blocks of ranks."""
    return ((start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


def broadcast(clocks: Clocks, message_size: float) -> None:
    """Binomial-tree broadcast from rank 0: the ranks with the message double in every round."""
    count = len(clocks.ready)
    if count >= COMPILED_FROM and clocks.costs.sharing is None:
        _along_tree(clocks, message_size, "broadcast")
        return
    for power in reversed(powers(count)):
        transfer(clocks, slice(0, count - power, 2 * power), slice(power, count, 2 * power), message_size)


def reduce(clocks: Clocks, message_size: float) -> None:
    """Binomial-tree reduction: the broadcast of `broadcast` reversed."""
    count = len(clocks.ready)
    if count >= COMPILED_FROM and not clocks.costs.reduction_time and clocks.costs.sharing is None:
        _along_tree(clocks, message_size, "reduce")
        return
    for power in powers(count):
        receiver = slice(0, count - power, 2 * power)
        transfer(clocks, slice(power, count, 2 * power), receiver, message_size)
        combine(clocks, receiver, message_size)


def combine(clocks: Clocks, ranks: Ranks, message_size: float) -> None:
    """Arithmetic of ranks that have received a block to reduce.

    Raise `UsageError` if a rank that is busy with it would take messages later than `early` assumes.
    """
    if not clocks.costs.reduction_time:
        return
    if clocks.early:
        raise UsageError("arithmetic is not simulated in rounds if messages are taken on arrival; simulate the trace")
    clocks.ready[ranks] += float(ticks(clocks.costs.reduction_time * message_size))


def powers(count: int) -> list[int]:
    """1, 2, 4, .. below `count`."""
    return [1 << exponent for exponent in range((count - 1).bit_length())]


def _along_tree(clocks: Clocks, message_size: float, name: str) -> None:
    """All rounds in a compiled loop."""
    tariff, early, unused = Tariff(clocks.costs, message_size), clocks.early, np.empty(0)
    node = np.asarray(clocks.places.node, dtype=np.int32)
    socket = np.asarray(clocks.places.socket, dtype=np.int32)
    machine = RoundMachine(node, socket, tariff.rows, tariff.uniform, early is not None, tariff.in_turn)
    sides = (early.sending, early.idle) if early else (unused, unused)
    tree = jitted_or_plain((round_kernel,), ("broadcast", "reduce"))[("broadcast", "reduce").index(name)]
    require_in_turn(
        tree(machine, TreeRanks(clocks.ready, clocks.receiving, *sides), powers(len(clocks.ready))[-1], BLOCK // 2)
    )


def transfer(clocks: Clocks, sender: slice, receiver: slice, message_size: float) -> None:
    """Blocking sends that blocking receives of other ranks, as many and as far apart, wait for; no rank is named twice.

    t a send is posted at, u its receive:  s = t, or max(t, u) by rendezvous;  r = max(u, s + flight, receiving);
    sender ready at s + max(send_overhead, send_gap), receiver at r + receive_overhead, receiving at r + receive_gap.
    """
    tariff = clocks.tariff(message_size, sender, receiver)
    count = len(range(sender.start, sender.stop, sender.step or 1))
    for start, stop in blocks(count):
        _transfer(clocks, tariff, _within(sender, start, stop), _within(receiver, start, stop))


def _transfer(clocks: Clocks, tariff: Tariff, sender: Ranks, receiver: Ranks) -> None:
    cost = clocks.charged(tariff, sender, receiver)
    posted, send = clocks.ready[receiver], clocks.ready[sender]
    if clocks.early:
        send = np.maximum(send, clocks.early.sending[sender])
    elif tariff.rendezvous:
        send = np.where(cost.rendezvous, np.maximum(send, posted), send)
    receive = send + cost.flight
    if clocks.early and tariff.in_turn:
        require_in_turn(not (receive < clocks.early.idle[receiver]).any())
    np.maximum(receive, posted, out=receive)
    np.maximum(receive, clocks.receiving[receiver], out=receive)
    sent = send + cost.send_time
    if clocks.early:
        # A rendezvous send ends with its receive; that its processor may be busy for longer keeps later messages.
        clocks.receiving[sender] = np.maximum(clocks.receiving[sender], np.where(cost.rendezvous, sent, 0.0))
        sent = np.where(cost.rendezvous, receive, sent)
        clocks.early.sending[sender] = send + cost.send_gap
        clocks.early.idle[sender] = sent
        clocks.early.idle[receiver] = receive + cost.receive_overhead
    clocks.ready[sender] = sent
    clocks.receiving[receiver] = receive + cost.receive_gap
    clocks.ready[receiver] = np.add(receive, cost.receive_overhead, out=receive)


def _within(ranks: slice, start: int, stop: int) -> slice:
    """Part of the ranks, by place."""
    chosen = range(ranks.start, ranks.stop, ranks.step or 1)[start:stop]
    return slice(chosen.start, chosen.stop, chosen.step)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A round in which each rank posts a receive, then a send, and waits for both, `count` times over.

    It sends to the rank `shift` further on, modulo their number, or, `paired`, to its number XOR `shift`.
    """

    shift: int
    message_size: float
    count: int = 1
    paired: bool = False
    combines: bool = False
    """Whether each rank then combines what it received."""

    def peers(self, start: int, stop: int, rank_count: int, *, senders: bool) -> Ranks:
        """Receivers of the messages of the ranks from `start` to `stop`, or senders to them."""
        if self.paired:
            return _paired(self.shift, start, stop)
        return _shifted(-self.shift if senders else self.shift, start, stop, rank_count)


def _paired(distance: int, start: int, stop: int) -> Ranks:
    if distance % BLOCK == 0 and stop - start == BLOCK:
        return slice(start ^ distance, (start ^ distance) + BLOCK)
    return np.arange(start, stop) ^ distance


def _shifted(distance: int, start: int, stop: int, rank_count: int) -> Ranks:
    first = (start + distance) % rank_count
    last = first + stop - start
    return slice(first, last) if last <= rank_count else np.arange(first, last) % rank_count


@dataclass(frozen=True, slots=True, eq=False)
class RankBlock:
    """Consecutive ranks, their senders and receivers, and the charges of these messages."""

    own: slice
    source: Ranks
    target: Ranks
    incoming: Charge
    outgoing: Charge


def plan(clocks: Clocks, turn: Exchange, tariff: Tariff) -> Iterator[RankBlock]:
    """The blocks of an exchange."""
    count = len(clocks.ready)
    for start, stop in blocks(count):
        own = slice(start, stop)
        source = target = turn.peers(start, stop, count, senders=True)
        incoming = outgoing = clocks.charged(tariff, source, own)
        if not turn.paired and (tariff.rendezvous or not tariff.uniform):
            target = turn.peers(start, stop, count, senders=False)
            outgoing = clocks.charged(tariff, own, target)
        yield RankBlock(own, source, target, incoming, outgoing)


def exchange(clocks: Clocks, turn: Exchange) -> None:
    """All rounds of an exchange.

    t a rank is ready at:  s = t, or max(t, t of the receiver) by rendezvous;  r = max(s + send_overhead, s' + flight,
    receiving), s' the send of its sender;  ready at max(s + max(send_overhead, send_gap), r + receive_overhead),
    receiving at r + receive_gap. UsageError where a receive would come first and keep the send waiting.
    """
    tariff = _tariff(clocks, turn)
    if turn.count == 1:
        _round(clocks, turn, plan(clocks, turn, tariff), tariff)
    else:
        repeat(clocks, turn.count, partial(_round, clocks, turn, list(plan(clocks, turn, tariff)), tariff))


def _tariff(clocks: Clocks, turn: Exchange) -> Tariff:
    """Charges of the messages of a round."""
    if clocks.costs.sharing is None:
        return Tariff(clocks.costs, turn.message_size)
    count = clocks.rank_count
    return clocks.tariff(turn.message_size, slice(0, count), turn.peers(0, count, count, senders=False))


def _round(clocks: Clocks, turn: Exchange, planned: Iterable[RankBlock], tariff: Tariff) -> None:
    """One round."""
    following = clocks.following()
    if not (following.early and tariff.rendezvous):
        for block in planned:
            _exchange(clocks, following, tariff, block, None)
    else:
        kept, taken = list(planned), np.empty(len(clocks.ready))
        for block in kept:
            _exchange(clocks, following, tariff, block, taken)
        for block in kept:
            # A rendezvous send ends with its receive.
            ends = np.where(block.outgoing.rendezvous, taken[block.target], 0.0)
            np.maximum(following.ready[block.own], ends, out=following.ready[block.own])
    clocks.follow(following)
    if turn.combines:
        combine(clocks, slice(None), turn.message_size)


def _exchange(clocks: Clocks, following: Clocks, tariff: Tariff, block: RankBlock, taken: FloatArray | None) -> None:
    """Write the next clocks of the ranks of a block, and the start of their receives."""
    own, incoming, outgoing = block.own, block.incoming, block.outgoing
    send, sent = clocks.ready[own], clocks.ready[block.source]
    if clocks.early:
        send = np.maximum(send, clocks.early.sending[own])
        sent = np.maximum(sent, clocks.early.sending[block.source])
    elif tariff.rendezvous:
        sent = np.where(incoming.rendezvous, np.maximum(sent, send), sent)
        send = np.where(outgoing.rendezvous, np.maximum(send, clocks.ready[block.target]), send)
    receive = sent + incoming.flight
    if tariff.in_turn:
        require_in_turn(not (receive <= send).any())
    np.maximum(receive, send + outgoing.send_overhead, out=receive)
    np.maximum(receive, clocks.receiving[own], out=receive)
    if taken is not None:
        taken[own] = receive
    np.add(receive, incoming.receive_gap, out=following.receiving[own])
    receive += incoming.receive_overhead
    np.maximum(receive, send + outgoing.send_time, out=following.ready[own])
    if following.early:
        following.early.sending[own] = send + outgoing.send_gap
