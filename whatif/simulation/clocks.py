"""The clocks of all ranks, moved on by a round of messages at once.

In programs that wait for what they post, a rank needs two clocks: `ready`, when its next operation may start (processor
and sending side are free by then), and `receiving`, when its receiving side is free. Where messages are taken as they
arrive (`Costs.on_arrival`), sends finish before their gap: a third, `sending`. Times are in ns, the charges rounded to
1e-6 ns, so that equal times compare as equal; seconds are for those who call.

Rounds are worked off in blocks that stay in the cache. Peers of a block are a slice wherever they are consecutive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.patterns import INTER_NODE, INTER_SOCKET, INTRA_SOCKET
from whatif.models.quantities import FloatArray
from whatif.simulation.schedule import Costs, Places

Indices = NDArray[np.signedinteger[Any]]
Ranks = slice | Indices
Distance = int | Indices

NANOSECONDS: Final = 1e9
BLOCK: Final = 16384
"""Ranks of a block, a power of two: all its arrays fit the second cache."""
MOST_MESSAGES: Final = 10**11
"""Messages of one pattern above which it is refused: they would take a quarter of an hour."""


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """What messages of one size cost, in ns: one number, or one for each message (see `Costs`)."""

    send_overhead: FloatArray
    send_gap: FloatArray
    """Until both processor and sending side are free."""
    send_time: FloatArray
    """Until the send has finished: the same, or `send_overhead` where messages are taken on arrival."""
    flight: FloatArray
    receive_overhead: FloatArray
    receive_gap: FloatArray
    rendezvous: NDArray[np.bool_]

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All of them, in order."""
        return tuple(getattr(self, each.name) for each in fields(self))


class Tariff:
    """What messages of one size cost at each distance."""

    def __init__(self, costs: Costs, message_size: float) -> None:
        protocol = (message_size > costs.short_limit).astype(np.intp) + (message_size > costs.eager_limit)
        charged = max(message_size - costs.free_size, 0.0)

        def of(table: FloatArray) -> FloatArray:
            constant, per_byte = table[np.arange(3), protocol].T
            return np.asarray(np.round((constant + charged * per_byte) * NANOSECONDS, 6))

        overhead, gap = of(costs.send_overhead), of(costs.send_gap)
        received = of(costs.receive_overhead), of(costs.receive_gap)
        rendezvous = message_size > costs.eager_limit
        gap = np.maximum(overhead, gap)
        send_time = overhead if costs.on_arrival else gap
        columns: list[NDArray[Any]] = [overhead, gap, send_time, of(costs.flight), *received, rendezvous]
        self._columns = columns
        self._same = [bool((column == column[0]).all()) for column in self._columns]
        self._rows = [Charge(*(column[distance] for column in self._columns)) for distance in range(3)]
        self.uniform = all(self._same)
        """Whether the distance does not matter."""
        self.rendezvous = bool(rendezvous.any())
        """Whether some messages wait for their receive."""
        self.receives_delay = bool(received[0].any())
        """Whether a receive keeps the processor."""
        self.one_sided = not (received[0].any() or received[1].any() or overhead.any())
        """Whether only the sending side is busy."""

    def at(self, distance: Distance) -> Charge:
        """The charge of messages that go a distance each; what is the same at all stays one number."""
        if isinstance(distance, int):
            return self._rows[distance]
        columns = zip(self._columns, self._same, strict=True)
        return Charge(*(column[0] if same else column[distance] for column, same in columns))


@dataclass(slots=True, eq=False)
class Early:
    """What matters besides where messages are taken as they arrive [rank], in ns."""

    sending: FloatArray
    """When the sending side is free."""
    idle: FloatArray
    """Until when the rank may have had nothing to do: it would have taken a message that arrived before."""


@dataclass(slots=True, eq=False)
class Clocks:
    """The clocks of every rank [rank] in ns, where the ranks are, and what their messages cost."""

    ready: FloatArray
    receiving: FloatArray
    early: Early | None
    places: Places
    costs: Costs
    known: FloatArray | None = None
    """[rank]: when it is decided when the rank is ready, for `posted` only."""
    spare: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    """Arrays that the next round may write to: fresh ones cost more than the round."""

    @classmethod
    def starting(cls, rank_count: int, places: Places, costs: Costs, arrival: FloatArray | None) -> Clocks:
        """All ranks at their arrival, busy until then, or at 0; refuses what cannot be played round by round."""
        if rank_count < 1 or len(places.node) != rank_count or len(places.socket) != rank_count:
            raise UsageError(f"{len(places.node)} ranks are placed, but {rank_count} take part")
        if costs.node_gap > 0:
            reason = "the order in which the ranks of a node use it goes across rounds; simulate the trace instead"
            raise UsageError(f"rounds cannot be played where ranks share the network adapter of their node: {reason}")
        ready = np.zeros(rank_count) if arrival is None else _nanoseconds(arrival, rank_count)
        early = Early(np.zeros(rank_count), np.zeros(rank_count)) if costs.on_arrival else None
        return cls(ready, np.zeros(rank_count), early, places, costs)

    @property
    def times(self) -> FloatArray:
        """When each rank has finished [rank], in s."""
        return self.ready / NANOSECONDS

    @property
    def all(self) -> list[FloatArray]:
        """All clocks of the ranks."""
        early = [self.early.sending, self.early.idle] if self.early else []
        return [self.ready, self.receiving, *early]

    def part(self, ranks: Ranks) -> Clocks:
        """The clocks of some ranks alone: a copy."""
        places = Places(self.places.node[ranks], self.places.socket[ranks])
        early = self.early and Early(self.early.sending[ranks].copy(), self.early.idle[ranks].copy())
        return Clocks(self.ready[ranks].copy(), self.receiving[ranks].copy(), early, places, self.costs)

    def put(self, ranks: Ranks, part: Clocks) -> None:
        """Write the clocks of some ranks back."""
        self.ready[ranks], self.receiving[ranks] = part.ready, part.receiving
        if self.early and part.early:
            self.early.sending[ranks], self.early.idle[ranks] = part.early.sending, part.early.idle

    def distance(self, first: Ranks, second: Ranks) -> Distance:
        """How far messages between these ranks go: one number where all go the same."""
        between_nodes = self.places.node[first] != self.places.node[second]
        if between_nodes.all():
            return INTER_NODE
        between_sockets = self.places.socket[first] != self.places.socket[second]
        if not between_sockets.any():
            return INTRA_SOCKET
        if between_sockets.all() and not between_nodes.any():
            return INTER_SOCKET
        both: Indices = np.add(between_nodes, between_sockets, dtype=np.intp)
        return both

    def charged(self, tariff: Tariff, first: Ranks, second: Ranks) -> Charge:
        """The charge of messages between these ranks."""
        return tariff.at(0 if tariff.uniform else self.distance(first, second))


_OUT_OF_TURN: Final = (
    "rounds cannot be played where receiving keeps the processor busy and a message is there before its round; "
    "simulate the trace instead"
)


def refuse_early(arrival: FloatArray, idle: FloatArray) -> None:
    """UsageError where a rank would take a message of a round before it comes to the round."""
    if (arrival < idle).any():
        raise UsageError(_OUT_OF_TURN)


def _nanoseconds(arrival: FloatArray, rank_count: int) -> FloatArray:
    ready: FloatArray = np.round(np.asarray(arrival, dtype=np.float64) * NANOSECONDS, 6)
    if ready.shape != (rank_count,) or not (np.isfinite(ready) & (ready >= 0)).all():
        raise UsageError(f"arrival must be one time ≥ 0 for each of {rank_count} ranks")
    return ready


def repeat(clocks: Clocks, count: int, play: Callable[[], None]) -> None:
    """Play the same round `count` times; once it moves all clocks of all ranks on by the same, the rest in one step.

    Every clock is a maximum of sums, so that what shifts all of them by the same does so forever.
    """
    for done in range(1, count + 1):
        if done == 9:
            refuse_too_many(count * len(clocks.ready))
        before = clocks.part(slice(None)) if done < count and (done <= 8 or done % 64 == 0) else None
        play()
        if before is not None and _jump(clocks, before, count - done):
            return


def _jump(clocks: Clocks, before: Clocks, count: int) -> bool:
    """Play `count` more rounds in one step, if the last one has moved all clocks on by the same."""
    step = clocks.ready[0] - before.ready[0]
    if not all((after - then == step).all() for after, then in zip(clocks.all, before.all, strict=True)):
        return False
    ready, receiving, *early = (values + step * count for values in clocks.all)
    clocks.ready, clocks.receiving, clocks.early = ready, receiving, Early(*early) if early else None
    return True


def checked_size(message_size: float) -> float:
    """The size of a message in B; UsageError for what is none."""
    if not 0 <= message_size < np.inf:
        raise UsageError(f"a message has a size ≥ 0 B, not {message_size}")
    return float(message_size)


def refuse_too_many(message_count: int) -> None:
    """UsageError for more than `MOST_MESSAGES`."""
    if message_count > MOST_MESSAGES:
        raise UsageError(f"{message_count:.3g} messages are too many to play; at most {MOST_MESSAGES:.0e}")


def blocks(count: int) -> Iterator[tuple[int, int]]:
    """Where blocks of so many ranks begin and end."""
    return ((start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))


def transfer(clocks: Clocks, sender: Ranks, receiver: Ranks, message_size: float) -> None:
    """Blocking sends that blocking receives of other ranks wait for; no rank is named twice.

    t a send is posted at, u its receive:  s = t, or max(t, u) by rendezvous;  r = max(u, s + flight, receiving);
    sender ready at s + max(send_overhead, send_gap), receiver at r + receive_overhead, receiving at r + receive_gap.
    """
    tariff = Tariff(clocks.costs, message_size)
    for start, stop in blocks(_count(sender)):
        _transfer(clocks, tariff, _within(sender, start, stop), _within(receiver, start, stop))


def _transfer(clocks: Clocks, tariff: Tariff, sender: Ranks, receiver: Ranks) -> None:
    cost = clocks.charged(tariff, sender, receiver)
    posted, send = clocks.ready[receiver], clocks.ready[sender]
    if clocks.early:
        send = np.maximum(send, clocks.early.sending[sender])
    elif tariff.rendezvous:
        send = np.where(cost.rendezvous, np.maximum(send, posted), send)
    receive = send + cost.flight
    if clocks.early and not tariff.one_sided:
        refuse_early(receive, clocks.early.idle[receiver])
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


def _count(ranks: Ranks) -> int:
    return len(range(ranks.start, ranks.stop, ranks.step or 1)) if isinstance(ranks, slice) else len(ranks)


def _within(ranks: Ranks, start: int, stop: int) -> Ranks:
    """Some of the ranks, by their place among them."""
    if not isinstance(ranks, slice):
        return ranks[start:stop]
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

    def receivers(self, start: int, stop: int, rank_count: int) -> Ranks:
        """To whom the ranks from `start` to `stop` send."""
        if self.paired:
            return _paired(self.shift, start, stop)
        return _shifted(self.shift, start, stop, rank_count)

    def senders(self, start: int, stop: int, rank_count: int) -> Ranks:
        """From whom the ranks from `start` to `stop` receive."""
        if self.paired:
            return _paired(self.shift, start, stop)
        return _shifted(-self.shift, start, stop, rank_count)


def _paired(distance: int, start: int, stop: int) -> Ranks:
    if distance % BLOCK == 0 and stop - start == BLOCK:
        return slice(start ^ distance, (start ^ distance) + BLOCK)
    return np.arange(start, stop) ^ distance


def _shifted(distance: int, start: int, stop: int, rank_count: int) -> Ranks:
    first = (start + distance) % rank_count
    last = first + stop - start
    return slice(first, last) if last <= rank_count else np.arange(first, last) % rank_count


def exchange(clocks: Clocks, turn: Exchange) -> None:
    """One round of an exchange, a block of ranks at a time.

    t a rank is ready at:  s = t, or max(t, t of the receiver) by rendezvous;  r = max(s + send_overhead, s' + flight,
    receiving), s' the send of its sender;  ready at max(s + max(send_overhead, send_gap), r + receive_overhead),
    receiving at r + receive_gap. UsageError where a receive would come first and keep the send waiting.
    """
    tariff, count = Tariff(clocks.costs, turn.message_size), len(clocks.ready)
    ready, receiving = clocks.spare or (np.empty(count), np.empty(count))
    early = clocks.early and Early(np.empty(count), ready)
    taken = np.empty(count) if early and tariff.rendezvous else None
    following = Clocks(ready, receiving, early, clocks.places, clocks.costs)
    for start, stop in blocks(count):
        own, source = slice(start, stop), turn.senders(start, stop, count)
        incoming = clocks.charged(tariff, source, own)
        outgoing = incoming
        target: Ranks = source
        if not turn.paired and (tariff.rendezvous or not tariff.uniform):
            target = turn.receivers(start, stop, count)
            outgoing = clocks.charged(tariff, own, target)
        _exchange(clocks, following, tariff, _Block(own, source, target, incoming, outgoing), taken)
    if taken is not None:
        # A rendezvous send ends with its receive.
        every = slice(0, count)
        target = turn.receivers(0, count, count)
        ends = np.where(clocks.charged(tariff, every, target).rendezvous, taken[target], 0.0)
        np.maximum(ready, ends, out=ready)
    clocks.spare = clocks.ready, clocks.receiving
    clocks.ready, clocks.receiving, clocks.early = ready, receiving, following.early


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Some ranks in a row, those they receive from and send to, and what these messages cost."""

    own: slice
    source: Ranks
    target: Ranks
    incoming: Charge
    outgoing: Charge


def _exchange(clocks: Clocks, following: Clocks, tariff: Tariff, block: _Block, taken: FloatArray | None) -> None:
    """Write what follows for the ranks of a block, and when their receives start."""
    own, incoming, outgoing = block.own, block.incoming, block.outgoing
    send, sent = clocks.ready[own], clocks.ready[block.source]
    if clocks.early:
        send = np.maximum(send, clocks.early.sending[own])
        sent = np.maximum(sent, clocks.early.sending[block.source])
    elif tariff.rendezvous:
        sent = np.where(incoming.rendezvous, np.maximum(sent, send), sent)
        send = np.where(outgoing.rendezvous, np.maximum(send, clocks.ready[block.target]), send)
    receive = sent + incoming.flight
    if tariff.receives_delay and (receive <= send).any():
        raise UsageError(_OUT_OF_TURN)
    np.maximum(receive, send + outgoing.send_overhead, out=receive)
    np.maximum(receive, clocks.receiving[own], out=receive)
    if taken is not None:
        taken[own] = receive
    np.add(receive, incoming.receive_gap, out=following.receiving[own])
    receive += incoming.receive_overhead
    np.maximum(receive, send + outgoing.send_time, out=following.ready[own])
    if following.early:
        following.early.sending[own] = send + outgoing.send_gap
