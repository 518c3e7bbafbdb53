"""The critical path of a replay, and how the run time changes with what messages cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whatif.models.charges import FLIGHT, RECEIVE_GAP, RECEIVE_OVERHEAD, SEND_GAP, SEND_OVERHEAD
from whatif.models.quantities import FloatArray
from whatif.simulation import replay_state
from whatif.simulation.replay import Replay
from whatif.simulation.schedule import Costs, Schedule, Step
from whatif.simulation.schedule_checks import cost_table

COMPUTATION = 5
EMPTY_FLIGHT = 6
"""The flight of no bytes."""
ADAPTER = 7
"""The time of a message at the adapter of its node."""


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """Parts of the run time: T = computations + Σ (messages · constant + bytes · time per byte).

    The messages are those on the path, by which of their five costs is on it. A small change of the costs changes the
    run time by the same counts until another path becomes critical.
    """

    operations: NDArray[np.int32]
    """[step]: in order of time; a message is its send."""
    compute_time: float
    message_count: NDArray[np.int64]
    """[cost, distance, protocol]."""
    byte_count: FloatArray
    """[cost, distance, protocol]: B beyond `free_size`."""
    adapter_byte_count: float
    costs: Costs

    @property
    def latency_time(self) -> FloatArray:
        """Time in the constants of the costs [distance, protocol] in s."""
        return np.asarray((self.message_count * cost_table(self.costs)[..., 0]).sum(axis=0))

    @property
    def byte_time(self) -> FloatArray:
        """Time in the bytes of the costs [distance, protocol] in s."""
        return np.asarray((self.byte_count * cost_table(self.costs)[..., 1]).sum(axis=0))

    @property
    def latency_slope(self) -> FloatArray:
        """dT / d latency [distance, protocol]: messages whose flight is on the path.

        If a send keeps its side for the whole flight (postal), also messages whose send is on the path.
        """
        table = cost_table(self.costs)
        kept = (table[SEND_GAP] == table[FLIGHT]).all(axis=-1)
        return np.asarray(self.message_count[FLIGHT] + kept * self.message_count[SEND_GAP], dtype=np.float64)

    @property
    def byte_slope(self) -> FloatArray:
        """dT / d (time per byte) [distance, protocol] in B: bytes in costs that grow with the size."""
        return np.asarray((self.byte_count * (cost_table(self.costs)[..., 1] > 0)).sum(axis=0))


def critical_path(schedule: Schedule, replay: Replay, costs: Costs) -> CriticalPath:
    """The chain of operations that determined the end of the operation that ended last.

    Of several that end last it is that of the first. An empty schedule has an empty path.
    """
    steps = list(_Walk(schedule, replay, costs).steps())[::-1]
    operations = np.array([step[0] for step in steps], dtype=np.int32)
    parts = np.array([step[1] for step in steps], dtype=np.uint8)
    signs = np.array([step[2] for step in steps], dtype=np.int64)
    computing, adapters = parts == COMPUTATION, parts == ADAPTER
    # An empty flight is a flight without its bytes.
    cost_parts = np.where(parts == EMPTY_FLIGHT, FLIGHT, parts)
    charged = ~(computing | adapters)
    shape = cost_table(costs).shape[:3]
    at = cost_parts[charged].astype(np.int64) * (shape[1] * shape[2]) + replay.kind[operations[charged]]
    sizes = np.maximum(schedule.charged_size[operations[charged]] - costs.free_size, 0.0)
    sizes = np.where(parts[charged] == EMPTY_FLIGHT, 0.0, sizes)
    message_count = np.bincount(at, weights=signs[charged], minlength=int(np.prod(shape)))
    byte_count = np.bincount(at, weights=signs[charged] * sizes, minlength=int(np.prod(shape)))
    return CriticalPath(
        operations=operations,
        compute_time=float(schedule.size[operations[computing]].sum()),
        message_count=message_count.astype(np.int64).reshape(shape),
        byte_count=np.asarray(byte_count, dtype=np.float64).reshape(shape),
        adapter_byte_count=float(schedule.size[operations[adapters]].sum()),
        costs=costs,
    )


Piece = tuple[int, int, int]
"""Operation, its part on the path, and 1, or -1 for a part to subtract."""


class _Walk:
    """Walk along the critical path from the end, piece by piece."""

    def __init__(self, schedule: Schedule, replay: Replay, costs: Costs) -> None:
        self.schedule, self.replay, self.costs, self.charged_size = schedule, replay, costs, schedule.charged_size
        self.table = cost_table(costs).reshape(5, -1, 2)

    def steps(self) -> Iterator[Piece]:
        """All pieces from the last to the first."""
        if not len(self.replay.end):
            return
        op, pieces = self.before_end(int(self.replay.end.argmax()))
        yield from pieces
        while op >= 0:
            op, pieces = self.before_start(op)
            yield from pieces

    def before_start(self, op: int) -> tuple[int, list[Piece]]:
        """Operation at whose start the cause of this start began, -1 for none, and the parts in between."""
        cause, why = int(self.replay.cause[op]), self.replay.why[op]
        if why == replay_state.AT_ONCE:
            return -1, []
        if why == replay_state.AFTER_START:
            return self.before_posted(cause) if self.schedule.step[cause] == Step.RECEIVE else (cause, [])
        if why == replay_state.AFTER_END:
            return self.before_end(cause)
        if why == replay_state.AFTER_ARRIVAL:
            return self.under_way(cause, FLIGHT)
        return self.in_use(cause, why == replay_state.AFTER_SIDE)

    def in_use(self, op: int, side: bool) -> tuple[int, list[Piece]]:
        """An operation while it kept its processor or its side."""
        step = self.schedule.step[op]
        if step == Step.COMPUTE:
            return op, [(op, COMPUTATION, 1)]
        if step == Step.RECEIVE:
            return op, [(int(self.replay.match[op]), RECEIVE_GAP if side else RECEIVE_OVERHEAD, 1)]
        return self.under_way(op, SEND_GAP) if side else (op, [(op, SEND_OVERHEAD, 1)])

    def under_way(self, send: int, part: int) -> tuple[int, list[Piece]]:
        """A message from its send to its arrival, or to when its side is free, with its wait at the adapter."""
        before = self.replay.adapter_before
        if not len(before) or before[send] < 0:
            return send, [(send, part, 1)]
        pieces = [(send, EMPTY_FLIGHT, 1), (send, ADAPTER, 1)]
        if part == SEND_GAP:
            pieces += [(send, SEND_GAP, 1), (send, FLIGHT, -1)]
        # A message that the adapter made no later has -1 - n for the message n before it.
        while (earlier := max(int(before[send]), -1 - int(before[send]))) != send:
            send = earlier
            pieces.append((send, ADAPTER, 1))
        return send, pieces

    def before_end(self, op: int) -> tuple[int, list[Piece]]:
        """Operation at whose start the cause of this end began, and the parts in between."""
        step, replay = self.schedule.step[op], self.replay
        if step == Step.JOIN:
            return op, []
        if step == Step.SEND and not self.costs.on_arrival:
            return self.in_use(op, self.side_lasts(op))
        if step == Step.SEND and self.waits(op):
            receive = int(replay.match[op])
            return self.before_posted(receive) if self.posted(receive) >= replay.end[op] else (receive, [])
        if step == Step.RECEIVE and self.costs.on_arrival and self.posted(op) >= replay.end[op]:
            return self.before_posted(op)
        return self.in_use(op, False)

    def waits(self, send: int) -> bool:
        """Whether a send waits for its receive."""
        return bool(self.replay.kind[send] % self.costs.protocol_count >= self.costs.eager_count)

    def side_lasts(self, send: int) -> bool:
        """Whether a send keeps its side longer than its processor."""
        constant, slope = self.table[SEND_OVERHEAD, self.replay.kind[send]]
        overhead = constant + slope * max(self.charged_size[send] - self.costs.free_size, 0.0)
        return bool(self.replay.end[send] - self.replay.start[send] > overhead * (1 + 1e-9) + 1e-12)

    def poster(self, receive: int) -> int:
        """Operation that released a receive, or the chain of receives that ends with it."""
        by = int(self.replay.released_by[receive])
        while by < 0 and by != replay_state.UNRELEASED and self.schedule.step[-1 - by] == Step.RECEIVE:
            by = int(self.replay.released_by[-1 - by])
        return by

    def posted(self, receive: int) -> float:
        """Time at which a receive was posted."""
        by = self.poster(receive)
        if by == replay_state.UNRELEASED:
            return 0.0
        return float(self.replay.end[by] if by >= 0 else self.replay.start[-1 - by])

    def before_posted(self, receive: int) -> tuple[int, list[Piece]]:
        """Operation that determined the posting of a receive, -1 for none, and the parts in between."""
        by = self.poster(receive)
        if by == replay_state.UNRELEASED:
            return -1, []
        return self.before_end(by) if by >= 0 else (-1 - by, [])
