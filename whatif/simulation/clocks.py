"""Clocks of all ranks, and charges of messages, for patterns that are simulated round by round (`steps`).

In programs that wait for their posted operations, a rank needs two clocks: `ready`, when its next operation may start
(processor and sending side are free by then), and `receiving`, when its receiving side is free. Where messages are
taken as they arrive (`Costs.on_arrival`), sends finish before their gap: a third, `sending`. Times are whole
numbers of ticks, so that equal times compare as equal (sums are exact up to 9 s); public functions use seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whatif.errors import UsageError
from whatif.models.patterns import INTER_NODE, INTER_SOCKET, INTRA_SOCKET
from whatif.models.quantities import FloatArray
from whatif.simulation.schedule import Costs, Places

Indices = NDArray[np.signedinteger[Any]]
Ranks = slice | Indices
Distance = int | Indices

TICKS: Final = 1e15
"""In a second."""
SEND_OVERHEAD, SEND_GAP, SEND_TIME, FLIGHT, RECEIVE_OVERHEAD, RECEIVE_GAP, RENDEZVOUS = range(7)
"""Columns of charges in arrays: the fields of `Charge`, in order."""
MOST_MESSAGES: Final = 10**11
"""Most messages of one pattern; more would take a quarter of an hour."""
_LONGEST: Final = 1e280
"""Ticks of a charge from which times of a pattern may be infinite, so that the simulation would not end."""


def ticks(seconds: ArrayLike) -> FloatArray:
    """Times in ticks, rounded half up as in `replay`."""
    return np.asarray(np.floor(np.asarray(seconds, dtype=np.float64) * TICKS + 0.5))


@dataclass(frozen=True, slots=True, eq=False)
class Charge:
    """Charges of messages of one size, in ticks: one number, or one for each message (see `Costs`)."""

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
    """Charges of messages of one size at each distance. Raise `UsageError` for charges that are not finite."""

    def __init__(self, costs: Costs, message_size: float, leaving: int = 1) -> None:
        """Charges if `leaving` messages leave a node at once."""
        protocol = costs.protocols(np.full(3, message_size), np.arange(3))
        charged = np.full(3, max(message_size - costs.free_size, 0.0))
        charged[INTER_NODE] *= costs.stretch(protocol[INTER_NODE], leaving)

        def of(table: FloatArray) -> FloatArray:
            constant, per_byte = table[np.arange(3), protocol].T
            with np.errstate(over="ignore"):
                charge = ticks(constant + charged * per_byte)
            if not (charge < _LONGEST).all():
                raise UsageError(f"a message of {message_size:g} B takes too long to be simulated")
            return charge

        overhead, gap = of(costs.send_overhead), of(costs.send_gap)
        received = of(costs.receive_overhead), of(costs.receive_gap)
        rendezvous = protocol >= costs.eager_count
        gap = np.maximum(overhead, gap)
        send_time = overhead if costs.on_arrival else gap
        columns: list[NDArray[Any]] = [overhead, gap, send_time, of(costs.flight), *received, rendezvous]
        self._columns = columns
        self._same = [bool((column == column[0]).all()) for column in self._columns]
        self._rows = [Charge(*(column[distance] for column in self._columns)) for distance in range(3)]
        self.uniform = all(self._same)
        """Whether all distances have the same charges."""
        self.rendezvous = bool(rendezvous.any())
        """Whether some messages wait for their receive."""
        self.one_sided = not (received[0].any() or received[1].any() or overhead.any())
        """Whether only the sending side is busy."""
        self.in_turn = bool(received[0].any()) or (costs.on_arrival and not self.one_sided)
        """Whether the time at which a message is taken has an effect."""

    @property
    def rows(self) -> FloatArray:
        """[distance, column of `Charge`]"""
        return np.stack(self._columns, axis=1).astype(np.float64)

    def at(self, distance: Distance) -> Charge:
        """Charge of messages by distance; a charge equal at all distances stays one number."""
        if isinstance(distance, int):
            return self._rows[distance]
        columns = zip(self._columns, self._same, strict=True)
        return Charge(*(column[0] if same else column[distance] for column, same in columns))


@dataclass(slots=True, eq=False)
class Early:
    """Further clocks [rank], in ticks, if messages are taken as they arrive."""

    sending: FloatArray
    """Time at which the sending side is free."""
    idle: FloatArray
    """End of the time in which an idle rank would have received a message."""


@dataclass(slots=True, eq=False)
class Clocks:
    """Clocks of every rank [rank] in ticks, the places of the ranks, and the costs of messages."""

    ready: FloatArray
    receiving: FloatArray
    early: Early | None
    places: Places
    costs: Costs
    known: FloatArray | None = None
    """[rank]: time at which `ready` is determined, for `posted` only."""
    spare: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False)
    """Arrays for the results of the next round: allocating them takes longer than the round."""

    @classmethod
    def starting(cls, rank_count: int, places: Places, costs: Costs, arrival: FloatArray | None) -> Clocks:
        """Clocks at the arrival of the ranks, busy until then, or at 0.

        Raise `UsageError` for ranks that share the adapter of a node: that cannot be simulated in rounds."""
        if rank_count < 1 or len(places.node) != rank_count or len(places.socket) != rank_count:
            raise UsageError(f"{len(places.node)} ranks are placed, but {rank_count} take part")
        if costs.node_gap > 0:
            reason = "the order in which they use it spans several rounds; simulate the trace instead"
            raise UsageError(f"ranks that share the network adapter of a node cannot be simulated in rounds: {reason}")
        ready = np.zeros(rank_count) if arrival is None else _starting_ticks(arrival, rank_count)
        early = Early(np.zeros(rank_count), np.zeros(rank_count)) if costs.on_arrival else None
        return cls(ready, np.zeros(rank_count), early, places, costs)

    @property
    def rank_count(self) -> int:
        """Ranks that take part."""
        return len(self.ready)

    @property
    def times(self) -> FloatArray:
        """End of each rank [rank], in s."""
        return self.ready / TICKS

    def following(self) -> Clocks:
        """Clocks of the next round, in the memory of the round before last if there is one."""
        count = len(self.ready)
        ready, receiving = self.spare or (np.empty(count), np.empty(count))
        return Clocks(ready, receiving, self.early and Early(np.empty(count), ready), self.places, self.costs)

    def follow(self, following: Clocks) -> None:
        """Continue with these clocks."""
        self.spare = self.ready, self.receiving
        self.ready, self.receiving, self.early = following.ready, following.receiving, following.early

    @property
    def all(self) -> list[FloatArray]:
        """All clocks of the ranks."""
        early = [self.early.sending, self.early.idle] if self.early else []
        return [self.ready, self.receiving, *early]

    def part(self, ranks: Ranks) -> Clocks:
        """The clocks of some ranks alone: a copy."""
        places = self.places.at(ranks)
        early = self.early and Early(self.early.sending[ranks].copy(), self.early.idle[ranks].copy())
        return Clocks(self.ready[ranks].copy(), self.receiving[ranks].copy(), early, places, self.costs)

    def put(self, ranks: Ranks, part: Clocks) -> None:
        """Write the clocks of some ranks back."""
        self.ready[ranks], self.receiving[ranks] = part.ready, part.receiving
        if self.early and part.early:
            self.early.sending[ranks], self.early.idle[ranks] = part.early.sending, part.early.idle

    def distance(self, first: Ranks, second: Ranks) -> Distance:
        """Distance of messages between these ranks: one number if it is the same for all."""
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

    def tariff(self, message_size: float, sender: Ranks, receiver: Ranks) -> Tariff:
        """Charges of the messages of a round, all of the same size."""
        if self.costs.sharing is None:
            return Tariff(self.costs, message_size)
        return Tariff(self.costs, message_size, self.places.leaving_count(sender, receiver))

    def charged(self, tariff: Tariff, first: Ranks, second: Ranks) -> Charge:
        """Charge of messages between these ranks."""
        return tariff.at(0 if tariff.uniform else self.distance(first, second))


def require_in_turn(in_turn: bool) -> None:
    """Raise UsageError if some rank would take a message before the round of the message."""
    if not in_turn:
        raise UsageError(
            "rounds cannot be simulated if receiving keeps the processor busy and a message arrives before its round; "
            "simulate the trace instead"
        )


def _starting_ticks(arrival: FloatArray, rank_count: int) -> FloatArray:
    ready = ticks(arrival)
    if ready.shape != (rank_count,) or not (np.isfinite(ready) & (ready >= 0)).all():
        raise UsageError(f"arrival must be one time ≥ 0 for each of {rank_count} ranks")
    return ready


def repeat(clocks: Clocks, count: int, simulate: Callable[[], None]) -> None:
    """Simulate the same round `count` times; once it shifts all clocks of all ranks equally, the rest in one step.

    Every clock is a maximum of sums, so that a round that shifts all of them equally does so forever.
    """
    for done in range(1, count + 1):
        if done == 9:
            refuse_too_many(count * len(clocks.ready))
        before = clocks.part(slice(None)) if done < count and (done <= 8 or done % 64 == 0) else None
        simulate()
        if before is not None and _jump(clocks, before, count - done):
            return


def _jump(clocks: Clocks, before: Clocks, count: int) -> bool:
    """Simulate `count` more rounds in one step, if the last one has shifted all clocks equally."""
    step = clocks.ready[0] - before.ready[0]
    if not all((after - then == step).all() for after, then in zip(clocks.all, before.all, strict=True)):
        return False
    ready, receiving, *early = (values + step * count for values in clocks.all)
    clocks.ready, clocks.receiving, clocks.early = ready, receiving, Early(*early) if early else None
    return True


def checked_size(message_size: float) -> float:
    """Size of a message in B; raise UsageError for one that is negative or not finite."""
    if not 0 <= message_size < np.inf:
        raise UsageError(f"a message has a size ≥ 0 B, not {message_size}")
    return float(message_size)


def refuse_too_many(message_count: int) -> None:
    """Raise UsageError for more than `MOST_MESSAGES`."""
    if message_count > MOST_MESSAGES:
        raise UsageError(f"{message_count:.3g} messages are too many to simulate; at most {MOST_MESSAGES:.0e}")
