"""The critical path of a replay: what the run time is made of, and how it answers to the costs of messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.checks import cost_table
from whatif.simulation.replay import Replay
from whatif.simulation.replay_state import (
    AFTER_ARRIVAL,
    AFTER_END,
    AFTER_PROCESSOR,
    AFTER_SIDE,
    AFTER_START,
    FLIGHT,
    RECEIVE_GAP,
    RECEIVE_OVERHEAD,
    SEND_GAP,
    SEND_OVERHEAD,
    UNRELEASED,
)
from whatif.simulation.schedule import Costs, Schedule, Step

_START, _END, _SIDE, _ARRIVAL, _ADAPTER, _READY = range(6)
Place = tuple[int, int]
"""An operation, and what of it: its start, its end, .."""


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """What the run time adds up to, exactly: computations, costs of messages, bytes through adapters.

    `time` = `compute_time` + Σ `counts` · constant + Σ `sizes` · s/B + `adapter_size` · node_gap, over the five costs,
    distances and protocols of `Costs`. As long as a change is too small to make another path the longest, the run
    time answers to it with these slopes.
    """

    operations: NDArray[np.int64]
    """Operations on the path, first to last; of a message its send and its receive."""
    time: float
    compute_time: float
    counts: FloatArray
    """[cost, distance, protocol]: how often the constant part of a cost is on the path, where it is not 0."""
    sizes: FloatArray
    """[cost, distance, protocol]: B that the path pays for, where they cost anything."""
    adapter_size: float
    latency_slopes: FloatArray
    """[distance]: s of run time for each s of latency, which is L in LogGOPS, and α, of the message, elsewhere."""

    @property
    def byte_slopes(self) -> FloatArray:
        """s of run time for each s/B of a message [distance]: the bytes that the path waits for."""
        return np.asarray(self.sizes.sum(axis=(0, 2)))


def critical_path(replay: Replay, schedule: Schedule, costs: Costs) -> CriticalPath:
    """The chain of causes from the operation that ended last back to one that nothing held up."""
    walk = _Walk(replay, schedule, costs)
    place: Place | None = (int(replay.end.argmax()), _END) if len(replay.end) else None
    while place is not None:
        walk.visit(place[0])
        place = walk.before(*place)
    priced = cost_table(costs) != 0
    counts, sizes = walk.counts * priced[..., 0], walk.sizes * priced[..., 1]
    latency_slopes = counts[[FLIGHT] if costs.on_arrival else [SEND_GAP, FLIGHT]].sum(axis=(0, 2))
    operations = np.array(walk.operations[::-1], dtype=np.int64)
    return CriticalPath(
        operations, replay.time, walk.compute_time, counts, sizes, walk.adapter_size, np.asarray(latency_slopes)
    )


class _Walk:
    """Goes back along the causes and adds up what lies between them."""

    def __init__(self, replay: Replay, schedule: Schedule, costs: Costs) -> None:
        self.replay, self.schedule, self.costs = replay, schedule, costs
        self.table = cost_table(costs).reshape(5, 9, 2)
        self.operations: list[int] = []
        self.compute_time = 0.0
        self.counts = np.zeros((5, 3, 3))
        self.sizes = np.zeros((5, 3, 3))
        self.adapter_size = 0.0

    def visit(self, op: int) -> None:
        """Note an operation, once."""
        if not self.operations or self.operations[-1] != op:
            self.operations.append(op)

    def before(self, op: int, what: int) -> Place | None:
        """What determined when that happened; None at the beginning of the run."""
        if what == _START:
            return self._before_start(op)
        if what == _END:
            return self._before_end(op)
        if what == _SIDE:
            return self._before_side(op)
        if what == _ARRIVAL:
            return self._pay_flight(op, FLIGHT)
        return self._before_adapter(op) if what == _ADAPTER else self._released(op)

    def _before_start(self, op: int) -> Place | None:
        why, cause = int(self.replay.why[op]), int(self.replay.cause[op])
        if why == AFTER_PROCESSOR:
            return self._before_free(cause)
        followed = {AFTER_END: _END, AFTER_START: _START, AFTER_SIDE: _SIDE, AFTER_ARRIVAL: _ARRIVAL}
        return (cause, followed[why]) if why in followed else None

    def _before_free(self, op: int) -> Place:
        """The processor is free again after an operation."""
        step = self.schedule.step[op]
        if step == Step.COMPUTE:
            self.compute_time += float(self.schedule.size[op])
        else:
            self._pay(op, SEND_OVERHEAD if step == Step.SEND else RECEIVE_OVERHEAD)
        return op, _START

    def _before_end(self, op: int) -> Place | None:
        step = self.schedule.step[op]
        if step == Step.SEND:
            return self._before_sent(op)
        if step == Step.RECEIVE and self._cost(op, RECEIVE_OVERHEAD) < self._lasted(op) - _TICK:
            return op, _READY
        return (op, _START) if step == Step.JOIN else self._before_free(op)

    def _before_sent(self, op: int) -> Place:
        match = int(self.replay.match[op])
        if self.costs.on_arrival and self.replay.kind[op] % 3 == 2:
            taken = self.replay.start[match] >= self.replay.end[op] - _TICK
            return match, _START if taken else _READY
        if self.costs.on_arrival or self._cost(op, SEND_OVERHEAD) >= self._lasted(op) - _TICK:
            return self._before_free(op)
        return self._before_side(op)

    def _before_side(self, op: int) -> Place:
        """The side of a rank is free again after a message."""
        if self.schedule.step[op] == Step.SEND:
            return self._pay_flight(op, SEND_GAP)
        self._pay(op, RECEIVE_GAP)
        return op, _START

    def _pay_flight(self, op: int, part: int) -> Place:
        """A message that the adapter of its node held up pays the bytes there, others as they fly."""
        before = self.replay.adapter_before
        if not len(before) or before[op] == UNRELEASED:
            self._pay(op, part)
            return op, _START
        self._pay(op, part, sized=part != FLIGHT)
        if part != FLIGHT:
            # The side is kept as much longer as the message is late: by its flight without its bytes, not with them.
            self._pay(op, FLIGHT, sized=False)
            self._pay(op, FLIGHT, sign=-1.0)
        return op, _ADAPTER

    def _before_adapter(self, op: int) -> Place:
        self.adapter_size += float(self.schedule.size[op])
        before = int(self.replay.adapter_before[op])
        return (op, _START) if before in (op, UNRELEASED) else (before, _ADAPTER)

    def _released(self, op: int) -> Place | None:
        by = int(self.replay.released_by[op])
        if by == UNRELEASED:
            return None
        return (by, _END) if by >= 0 else (-1 - by, _START)

    def _lasted(self, op: int) -> float:
        return float(self.replay.end[op] - self.replay.start[op])

    def _cost(self, op: int, part: int) -> float:
        constant, slope = self.table[part, self._kind(op)]
        return float(constant + slope * self._size(op))

    def _kind(self, op: int) -> int:
        """Distance and protocol, which the send of a message knows."""
        return int(self.replay.kind[self._send(op)])

    def _send(self, op: int) -> int:
        return op if self.schedule.step[op] == Step.SEND else int(self.replay.match[op])

    def _size(self, op: int) -> float:
        return max(float(self.schedule.size[self._send(op)]) - self.costs.free_size, 0.0)

    def _pay(self, op: int, part: int, *, sized: bool = True, sign: float = 1.0) -> None:
        at = (part, *divmod(self._kind(op), 3))
        self.counts[at] += sign
        if sized:
            self.sizes[at] += sign * self._size(op)


_TICK: Final = 1e-14
"""s; times are multiples of a tick of 1e-15 s or, in runs of more than an hour, of coarser ones."""
