"""Schedules: the operations of all ranks as one graph, and their costs.

A trace is lowered to a schedule once: loops unrolled, collectives expanded to messages, program order turned into
dependencies. The replay knows computations, sends, receives, and joins, which take no time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import INTER_NODE
from whatif.models.quantities import FloatArray
from whatif.simulation.rank_programs import ANY


class Step(IntEnum):
    """Kind of an operation of a schedule."""

    COMPUTE = 0
    SEND = 1
    RECEIVE = 2
    JOIN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Operations of all ranks, rank after rank, each in program order.

    Sends and receives match in the order in which they are posted, by (sender, receiver, tag); a receive with peer or
    tag `ANY` takes the message that arrives first. Operations of one rank and processor that are ready at the same
    time start in program order.
    """

    rank_start: NDArray[np.int64]
    """[rank + 1]: index of the first operation of a rank."""
    step: NDArray[np.uint8]
    """[op]: a `Step`."""
    peer: NDArray[np.int32]
    """[op]: the other rank of a message."""
    size: FloatArray
    """[op]: s of a computation, B of a message."""
    tag: NDArray[np.int32]
    """[op]: user tags are ≥ 0; expanded collectives use tags < -1."""
    processor: NDArray[np.uint8] | None
    """[op], or None if all run on the first processor of their rank."""
    next_start: NDArray[np.int64]
    """[op + 1]: index of the first dependent operation in `next`."""
    next: NDArray[np.int32]
    """Operations, numbered over all ranks; those that need the start and not the end of it are negative: -1 - op. In
    this a receive has started when it is posted."""
    need_count: NDArray[np.int32]
    """[op]: dependencies that must be met before it is ready."""
    origin: NDArray[np.int32]
    """[op]: the index in executed order of the operation of the rank's program that it came from, or its own."""
    origin_kind: NDArray[np.uint8]
    """[op]: the `Kind` of that operation of the trace, to which its time is counted."""
    stretch: FloatArray | None = None
    """[op]: factor of the bytes of a message that are charged, if messages share a node (`Costs.stretch`)."""

    @property
    def charged_size(self) -> FloatArray:
        """[op]: the size by which a message is charged."""
        return self.size if self.stretch is None else self.size * self.stretch

    @property
    def rank_count(self) -> int:
        """Ranks that take part."""
        return len(self.rank_start) - 1

    @property
    def rank(self) -> NDArray[np.int32]:
        """[op]: the rank of each operation."""
        return np.repeat(np.arange(self.rank_count, dtype=np.int32), np.diff(self.rank_start))

    def rank_of(self, operations: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Ranks of some operations, which are given by their indices."""
        return np.searchsorted(self.rank_start, operations, side="right").astype(np.int32) - 1

    @property
    def is_wild(self) -> NDArray[np.bool_]:
        """[op]: whether it receives from any rank or with any tag."""
        return np.asarray((self.step == Step.RECEIVE) & ((self.peer == ANY) | (self.tag == ANY)))

    @property
    def has_wild(self) -> NDArray[np.bool_]:
        """[rank]: whether it has a receive from any rank or with any tag."""
        return np.bincount(self.rank_of(np.flatnonzero(self.is_wild)), minlength=self.rank_count) > 0

    @property
    def processor_count(self) -> int:
        """Processors of a rank."""
        return 1 if self.processor is None else int(self.processor.max(initial=0)) + 1


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """Charges of a message by distance and protocol, all linear in its size.

    Each of the five is [distance, protocol, 2]: a constant in s, and s/B for every byte beyond `free_size`. Distances
    are intra-socket, inter-socket, inter-node; protocols are ranges of sizes: short, eager, rendezvous, or the pieces
    of a calibration. With t when it is ready:

        a send starts at  s = max(t, processor free, sending side free)
            processor free at s + send_overhead,  sending side free at s + send_gap,  message arrives at s + flight
        a rendezvous send starts no earlier than its receive is posted
        a receive starts at  r = max(t, arrival, processor free, receiving side free)
            processor free at r + receive_overhead,  receiving side free at r + receive_gap
        a send has finished when processor and sending side are free for it, a receive at r + receive_overhead

    Postal, max-rate, injection and K-model: send_gap = flight = T(n), the others 0: a rank's sends follow one another.
    LogGOPS: send_overhead = o + (n-1) O, send_gap = g + (n-1) G, flight = o + L, free_size = 1,
    receive_overhead = o + (n-1) max(O, G), receive_gap = g + (n-1) G, `on_arrival`.
    Pieces: send_overhead = os + n Os, send_gap = send_overhead + n/b, flight = send_gap + L, receive_overhead =
    receive_gap = or + n Or, `overhead_first`.
    """

    send_overhead: FloatArray
    send_gap: FloatArray
    flight: FloatArray
    receive_overhead: FloatArray
    receive_gap: FloatArray
    limits: FloatArray
    """[distance, limit]: largest size in B of each protocol but the last, ascending."""
    eager_count: int = 2
    """Protocols of messages that are sent without waiting for the receive, the first ones."""
    isend_shift: int = 0
    """Added to the protocol of a nonblocking send that waits for its receive; 0: as of a blocking one."""
    free_size: float = 0.0
    """Bytes that the constants include."""
    node_gap: float = 0.0
    """s/B for which an inter-node message keeps the adapter of its node: 1 / injection bandwidth; 0: no limit.

    A message begins there at b = max(s, adapter free), which is free again at b + n node_gap, and arrives no earlier
    than a flight of no bytes later; its sending side is kept as much longer. For messages that start together this
    is the max-rate model, T = α + k n / min(R_N, k R_b), for the last of k."""
    reduction_time: float = 0.0
    """s in which a rank combines a received byte of a reduction with its own; 0: no arithmetic. Of a replay it is that
    of its schedule (`lower`)."""
    on_arrival: bool = False
    """Messages are taken as they arrive, at r = max(arrival, processor free, receiving side free), whether their
    receive is posted or not; a receive has then finished when its message has been taken and it is posted. No send
    waits for its receive: a rendezvous send has finished at r or when the receive is posted, any other when the
    processor is free for it. So does LogGOPSim, to the nanosecond."""
    sharing: FloatArray | None = None
    """[protocol, 3]: of messages that leave a node in the same round of a collective, B/s of the first one, what each
    further one adds, and the most; the bytes above are then those of one alone. None: charges hold for any number."""
    overhead_first: bool = False
    """Messages leave when their `send_overhead` is over: over shared links it is no part of the time of their bytes."""

    def stretch(self, protocol: Any, leaving: Any) -> Any:
        """Factor of the bytes that a message between nodes is charged if `leaving` messages leave a node with it."""
        if self.sharing is None:
            return np.ones(np.shape(leaving))
        first, more, most = np.moveaxis(self.sharing[protocol], -1, 0)
        # A lone message adds nothing, even at an infinite rate, where 0 · ∞ would be NaN.
        together = np.minimum(first + (leaving - 1) * np.where(leaving > 1, more, 0.0), most)
        slope = self.flight[INTER_NODE, protocol, 1]
        return 1 + np.where(slope > 0, (leaving / together - 1 / first) / np.where(slope > 0, slope, 1.0), 0.0)

    @property
    def protocol_count(self) -> int:
        """Protocols of each distance."""
        return int(self.flight.shape[1])

    def protocols(
        self, size: FloatArray, distance: NDArray[np.integer[Any]], nonblocking: Any = False
    ) -> NDArray[np.int64]:
        """Protocols of messages of some sizes in B."""
        by_size = (np.asarray(size)[..., None] > self.limits[distance]).sum(axis=-1)
        shifted = np.logical_and(by_size >= self.eager_count, nonblocking)
        return np.asarray(by_size + self.isend_shift * shifted, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Node and socket of each rank."""

    node: NDArray[np.int32]
    """[rank]"""
    socket: NDArray[np.int32]
    """[rank]: number of its socket, unique over all nodes."""
    home: NDArray[np.int32] | None = None
    """[rank]: node whose ports its messages take, if `node` is a link domain of several nodes."""

    def at(self, ranks: Any) -> Places:
        """Places of some ranks."""
        return Places(self.node[ranks], self.socket[ranks], None if self.home is None else self.home[ranks])

    def leaving_count(self, sender: Any, receiver: Any) -> int:
        """Messages between these ranks that leave the node with the most of them, at least 1."""
        home = self.node if self.home is None else self.home
        away = home[sender][self.node[sender] != self.node[receiver]]
        return max(int(np.bincount(away).max(initial=0)), 1)
