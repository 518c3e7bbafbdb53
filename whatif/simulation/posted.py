"""Phases in which every rank posts all its receives, then all its sends, and waits for all: halos, linear all-to-all.

If messages keep no processor busy (postal, max-rate and K-model costs) the phase is a few operations on arrays a
direction. Otherwise a rank is simulated for the arrivals known so far, and again when one of them changes, until none
does. A rank starts the operation that can start first; of several, the one that was known first: a send from its
posting, a message from its send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.decomposition import shifted
from whatif.models.patterns import GridPattern, domains, message_kinds
from whatif.models.quantities import FloatArray
from whatif.simulation import posted_kernel
from whatif.simulation.clocks import (
    FLIGHT,
    RENDEZVOUS,
    SEND_OVERHEAD,
    TICKS,
    Charge,
    Clocks,
    Early,
    Tariff,
    checked_size,
    refuse_too_many,
    repeat,
    require_in_turn,
    ticks,
)
from whatif.simulation.jit import jitted_or_plain
from whatif.simulation.posted_kernel import PostedMessages, PostedState
from whatif.simulation.schedule import Costs, Places

MOST_LINEAR: Final = 256
"""Most ranks of a linear all-to-all that are simulated one by one."""
COMPILED_FROM: Final = 20_000
"""Messages times messages of a rank from which compiling is faster."""
Numbers = NDArray[np.int64]


def grid_places(pattern: GridPattern) -> Places:
    """Places of the ranks by the mapping of a pattern."""
    return Places(*domains(pattern))


def halo_times(
    pattern: GridPattern,
    message_sizes: FloatArray | float,
    costs: Costs,
    arrival: FloatArray | None = None,
    *,
    iteration_count: int = 1,
    compute_time: float = 0.0,
) -> FloatArray:
    """End of `iteration_count` halo exchanges [rank], in s, each after `compute_time` s of work.

    `message_sizes` are the B of a message, one number or one a kind (`patterns.message_kinds`). Messages are posted in
    the order of `pattern.messages()`; arrival [rank] in s. UsageError: as in `rounds`, and sizes or times < 0.

    Where a rank may start a send and take a message at the same tick, the send comes first here; in a replay that of
    the two whose turn it is. MPI allows both orders. Such ties need several iterations without work, of ranks that
    arrive together and are busy with sends as well as receives; the ends then differ from those of a replay by less
    than one message an iteration, by up to 5 % in 18 of 2,924 random cases.
    """
    sizes = np.broadcast_to(np.asarray(message_sizes, dtype=np.float64), len(_kinds(pattern)))
    if not ((sizes >= 0) & np.isfinite(sizes)).all() or not 0 <= compute_time < np.inf:
        raise UsageError("sizes of messages and times of work are finite numbers ≥ 0")
    clocks = Clocks.starting(pattern.rank_count, grid_places(pattern), costs, arrival)
    tariffs = [Tariff(costs, float(size)) for size in sizes]
    work = float(ticks(compute_time))
    advance = _advance(clocks, pattern, tariffs)

    def simulate() -> None:
        if work:
            if clocks.early:  # A message that has arrived by now is taken before the work.
                clocks.early.idle = clocks.ready
            clocks.ready, clocks.known = clocks.ready + work, clocks.ready
        advance(clocks)

    repeat(clocks, iteration_count, simulate)
    return clocks.times


def _kinds(pattern: GridPattern) -> tuple[tuple[int, ...], ...]:
    return message_kinds(len(pattern.dims), pattern.neighbours)


def _advance(clocks: Clocks, pattern: GridPattern, tariffs: list[Tariff]) -> Callable[[Clocks], None]:
    """Function that simulates one exchange: all ranks at once if only the sending sides take time, one rank if all are
    equal, else rank by rank."""
    if all(tariff.one_sided and not tariff.rendezvous for tariff in tariffs):
        return _Grid(clocks, pattern, tariffs).advance
    if pattern.periodic and all(tariff.uniform for tariff in tariffs) and np.ptp(clocks.ready) == 0:
        return partial(_alike, _messages_to_itself(pattern, tariffs))
    return partial(_rank_by_rank, _messages(clocks, pattern, tariffs))


@dataclass(frozen=True, slots=True)
class _Direction:
    """Neighbour offset: the index of its kind, its shift, and the place of the opposite offset."""

    kind: int
    shift: dict[int, int]
    opposite: int


def _directions(pattern: GridPattern) -> Iterator[_Direction]:
    """In the order of `pattern.messages()`."""
    first = 0
    for index, kind in enumerate(_kinds(pattern)):
        signs = list(product((-1, 1), repeat=len(kind)))
        for place, steps in enumerate(signs):
            yield _Direction(index, dict(zip(kind, steps, strict=True)), first + len(signs) - 1 - place)
        first += len(signs)


def _is_to_itself(pattern: GridPattern, direction: _Direction) -> bool:
    return all(pattern.dims[dimension] == 1 for dimension in direction.shift)


class _Grid:
    """Exchange in which sends of a rank follow one another and receives take no time."""

    def __init__(self, clocks: Clocks, pattern: GridPattern, tariffs: list[Tariff]) -> None:
        self._pattern = pattern
        self._order: Any = "C" if pattern.order == "c" else "F"
        self._directions = [each for each in _directions(pattern) if not _is_to_itself(pattern, each)]
        self._charges = [self._charge(clocks, each, tariffs[each.kind]) for each in self._directions]

    def _grid(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(self._pattern.dims, order=self._order)

    def _charge(self, clocks: Clocks, direction: _Direction, tariff: Tariff) -> Charge:
        """Charges of the messages of a direction, in the shape of their senders."""
        here, there = shifted(
            self._grid(np.arange(len(clocks.ready), dtype=np.int32)), direction.shift, self._pattern.periodic
        )
        one = clocks.charged(tariff, here.ravel(), there.ravel())
        return Charge(*(np.reshape(value, here.shape) if np.ndim(value) else value for value in one.columns))

    def advance(self, clocks: Clocks) -> None:
        """One exchange."""
        send, last = clocks.ready.copy(), clocks.ready.copy()
        sending, following = self._grid(send), self._grid(last)
        for direction, cost in zip(self._directions, self._charges, strict=True):
            if self._pattern.periodic:
                arrival = np.roll(sending + cost.flight, list(direction.shift.values()), tuple(direction.shift))
                np.maximum(following, arrival, out=following)
                np.add(sending, cost.send_time, out=sending)
                continue
            here, there = (
                shifted(sending, direction.shift, periodic=False)[0],
                shifted(following, direction.shift, False)[1],
            )
            np.maximum(there, here + cost.flight, out=there)
            np.add(here, cost.send_time, out=here)
        clocks.ready = np.maximum(last, send, out=last)


def _messages_to_itself(pattern: GridPattern, tariffs: list[Tariff]) -> PostedMessages:
    """Messages of one rank that represents all: it sends to itself."""
    directions = list(_directions(pattern))
    sent = [at for at, each in enumerate(directions) if not _is_to_itself(pattern, each)]
    order = np.argsort([directions[at].opposite for at in sent])
    bounds, nobody = np.array([0, len(sent)]), np.zeros(len(sent), dtype=np.int64)
    charges = [tariffs[directions[at].kind].at(0) for at in sent]
    return PostedMessages(bounds, nobody, nobody, bounds, order, _columns(charges))


def _alike(messages: PostedMessages, clocks: Clocks) -> None:
    """One exchange of ranks that all do the same at the same time, by the messages of one of them."""
    one = clocks.part(slice(0, 1))
    one.known = clocks.known if clocks.known is None else clocks.known[:1]
    _rank_by_rank(messages, one)
    clocks.ready, clocks.known = np.full_like(clocks.ready, one.ready[0]), one.known
    clocks.receiving = np.full_like(clocks.receiving, one.receiving[0])
    if one.early:
        clocks.early = Early(np.full_like(clocks.ready, one.early.sending[0]), clocks.ready)


def _columns(charges: list[Charge]) -> FloatArray:
    """Charges of messages as rows [message, column]."""
    rows = [[float(value) for value in one.columns] for one in charges]
    return np.array(rows).reshape(len(charges), len(fields(Charge)))


def _rank_by_rank(messages: PostedMessages, clocks: Clocks) -> None:
    """One exchange, simulated rank by rank."""
    early, ready = clocks.early, clocks.ready
    known = np.zeros(len(ready)) if clocks.known is None else clocks.known
    waits = messages.charges[:, RENDEZVOUS] != 0
    earliest, decided = ready[messages.sender], known[messages.sender]
    if not early:
        earliest = np.where(waits, np.maximum(earliest, ready[messages.receiver]), earliest)
        decided = np.where(waits, np.maximum(decided, known[messages.receiver]), decided)
    begun, arrival, taken = np.full((3, len(waits)), np.inf)
    before = (ready, early.sending if early else ready, clocks.receiving, known)
    posted = (np.zeros_like(ready),) * 2 if early else (ready, known)
    state = PostedState(*before, *posted, earliest, decided, begun, arrival, taken, *(each.copy() for each in before))
    _kernel(messages)(messages, state)
    if early:
        require_in_turn(not (arrival < early.idle[messages.receiver]).any())
        if (waits & (messages.charges[:, SEND_OVERHEAD] > messages.charges[:, FLIGHT])).any():
            raise UsageError(
                "a send keeps its processor busy after its message has arrived; simulate the trace instead"
            )
        np.maximum.at(state.last, messages.sender[waits], taken[waits])
        clocks.early = Early(state.last_sending, state.last)
    clocks.ready, clocks.receiving, clocks.known = state.last, state.last_receiving, state.last_start


def _kernel(messages: PostedMessages) -> Callable[[PostedMessages, PostedState], None]:
    """The kernel, compiled for large exchanges."""
    widest = 1 + int(np.diff(messages.sent).max(initial=0))
    if len(messages.sender) * widest <= COMPILED_FROM:
        return posted_kernel.settle
    return jitted_or_plain((posted_kernel,), ("settle",))[0]


def _messages(clocks: Clocks, pattern: GridPattern, tariffs: list[Tariff]) -> PostedMessages:
    """Messages of a grid."""
    parts = []
    for at, ((_, start, end), each) in enumerate(zip(pattern.messages(), _directions(pattern), strict=True)):
        away = np.flatnonzero(start != end)
        sender, receiver = start[away].astype(np.int64), end[away].astype(np.int64)
        cost = clocks.charged(tariffs[each.kind], sender, receiver)
        charges = np.stack([np.broadcast_to(value, sender.shape) for value in cost.columns], axis=1)
        parts.append((sender, receiver, np.full(len(away), at), np.full(len(away), each.opposite), charges))
    sender, receiver, place, opposite, charges = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _ordered(len(clocks.ready), sender, receiver, place, opposite, charges)


def _ordered(
    rank_count: int, sender: Numbers, receiver: Numbers, place: Numbers, received_as: Numbers, charges: FloatArray
) -> PostedMessages:
    """Messages in posted order: number `place` of the sender, `received_as` of the receiver."""
    order = np.lexsort((place, sender))
    sender, receiver, received_as = sender[order], receiver[order], received_as[order]
    ranks = np.arange(rank_count + 1)
    incoming = np.lexsort((received_as, receiver))
    received = np.searchsorted(receiver[incoming], ranks)
    return PostedMessages(np.searchsorted(sender, ranks), sender, receiver, received, incoming, charges[order])


def linear_alltoall_times(
    rank_count: int, message_size: float, places: Places, costs: Costs, arrival: FloatArray | None = None
) -> FloatArray:
    """End of each rank in an all-to-all that posts all messages at once, to the next rank first; as in `rounds`.

    UsageError also if it needs a replay: more than `MOST_LINEAR` ranks that differ, in costs that keep the processor
    or wait for receives.
    """
    clocks, tariff = Clocks.starting(rank_count, places, costs, arrival), Tariff(costs, checked_size(message_size))
    alike = np.ptp(clocks.ready) == 0
    if tariff.uniform and alike:
        return np.full(rank_count, _one_of_alltoall(rank_count, tariff.at(0), float(clocks.ready[0])) / TICKS)
    if tariff.one_sided and (alike or not tariff.rendezvous):
        refuse_too_many(rank_count * (rank_count - 1))
        _one_sided_alltoall(clocks, tariff)
        return clocks.times
    if rank_count > MOST_LINEAR:
        raise UsageError(
            f"a linear all-to-all of {rank_count} different ranks has no rounds; simulate the trace instead"
        )
    _rank_by_rank(_all_messages(clocks, tariff), clocks)
    return clocks.times


def _one_of_alltoall(rank_count: int, cost: Charge, ready: float) -> float:
    """End of a rank if all ranks do the same: it receives as many messages as it sends, in the same order."""
    overhead, gap, send_time, flight, receive_overhead, receive_gap = (float(value) for value in cost.columns[:6])
    arrivals: list[float] = []
    processor = sending = last = ready
    receiving, received = 0.0, 0
    while received < rank_count - 1:
        send = max(processor, sending) if len(arrivals) < rank_count - 1 else np.inf
        coming = arrivals[received] if received < len(arrivals) else np.inf
        receive = max(coming, processor, receiving)
        if receive < send:
            processor, receiving = receive + receive_overhead, receive + receive_gap
            received += 1
            last = max(last, processor)
        else:
            arrivals.append(send + flight)
            processor, sending = send + overhead, send + gap
            last = max(last, send + send_time)
    return last


def _one_sided_alltoall(clocks: Clocks, tariff: Tariff) -> None:
    """Sends that follow one another, a step of all ranks at a time; receives take no time."""
    ranks, send, last = np.arange(len(clocks.ready)), clocks.ready, clocks.ready.copy()
    for step in range(1, len(ranks)):
        cost = clocks.charged(tariff, ranks, np.roll(ranks, -step))
        np.maximum(last, np.roll(send + cost.flight, step), out=last)
        send = send + cost.send_time
    clocks.ready = np.maximum(last, send)


def _all_messages(clocks: Clocks, tariff: Tariff) -> PostedMessages:
    """A message from every rank to every other one."""
    rank_count = len(clocks.ready)
    sender = np.repeat(np.arange(rank_count), rank_count - 1)
    step = np.tile(np.arange(1, rank_count), rank_count)
    receiver = (sender + step) % rank_count
    cost = clocks.charged(tariff, sender, receiver)
    charges = np.stack([np.broadcast_to(value, sender.shape) for value in cost.columns], axis=1).astype(np.float64)
    return _ordered(rank_count, sender, receiver, step, step, charges)
