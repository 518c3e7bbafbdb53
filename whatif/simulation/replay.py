"""Replay of a schedule, message by message: start, end and cause of every operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation import event_loop as kernel
from whatif.simulation import replay_queues, replay_state
from whatif.simulation.clocks import TICKS
from whatif.simulation.jit import CompilerError, fields_of, jitted, plain, table_of
from whatif.simulation.rank_programs import Kind
from whatif.simulation.replay_state import ReplayState
from whatif.simulation.schedule import Costs, Places, Schedule, Step
from whatif.simulation.schedule_checks import check_completion, check_schedule, cost_table, serial_time

SMALL: Final = 50_000
"""Most operations, of all replays so far, that are replayed in Python: loading the compiled kernel takes longer."""
MOST_TICKS: Final = int(TICKS)
"""In a second."""
LONGEST: Final = 4e18
"""Ticks of a run: a sum beyond would not fit 64 bits."""
EVENTS_AT_A_TIME: Final = 2_000_000
"""Events after which a compiled run can be interrupted."""


class _Replayed:
    """Operations replayed so far: a sweep or a session replays small schedules hundreds of times."""

    operations: ClassVar[int] = 0


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Times in s of every operation, and their causes."""

    start: FloatArray
    """[op]: of a receive, when its message was taken."""
    end: FloatArray
    cause: NDArray[np.int32]
    """[op]: the operation that determined the start; -1 for none. Of a message that was held up: the previous user of
    the processor or of a side; of a receive the send it waited for."""
    why: NDArray[np.uint8]
    """[op]: how `cause` did: one of `replay_state.AT_ONCE`, `AFTER_END`, `AFTER_START`, .."""
    match: NDArray[np.int32]
    """[op]: the other side of a message; -1 for computations and joins."""
    released_by: NDArray[np.int32]
    """[op]: the dependency met last, -1 - op for its start; `replay_state.UNRELEASED` for none."""
    kind: NDArray[np.uint8]
    """[op]: distance · protocol count + protocol of a send."""
    adapter_before: NDArray[np.int32]
    """[op]: the message before at the adapter of its node, itself for none; -1 - that where the adapter did not make
    the message any later; `UNRELEASED` for what does not pass one; empty if nodes have no limit."""

    @property
    def time(self) -> float:
        """End of the last operation, in s."""
        return float(self.end.max(initial=0.0))


def replay(schedule: Schedule, places: Places, costs: Costs) -> Replay:
    """Times of all operations of a schedule with the costs of a platform.

    Times are multiples of 1e-6 ns (of more for runs beyond an hour), so that events that coincide in exact arithmetic
    do so here.
    Raise `UsageError` for a schedule that is not consistent, `InfeasiblePointError` for sizes that are not finite, a
    deadlock, messages left over, and messages larger than their receives.
    """
    check_schedule(schedule, places, costs)
    ticks = _ticks(schedule, costs)
    try:
        state = _final_state(schedule, places, costs, ticks, compiled=_pays_to_compile(len(schedule.step)))
    except CompilerError:
        state = _final_state(schedule, places, costs, ticks, compiled=False)
    simulated = _result(state, ticks)
    del state  # as large as the schedule, the checks need room too
    check_completion(schedule, simulated.end, simulated.match)
    return simulated


def _pays_to_compile(operations: int) -> bool:
    """Whether the compiled kernel replays some more operations; one for empty columns would be another kernel."""
    _Replayed.operations += operations
    return operations > 0 and _Replayed.operations > SMALL


def _final_state(schedule: Schedule, places: Places, costs: Costs, ticks: int, *, compiled: bool) -> ReplayState:
    """State after the last event: in arrays for the compiled kernel, in lists for the kernel in Python."""
    state = _state(schedule, places, costs, ticks, compiled)
    classify, channels, advance = _functions(state, compiled)
    classify(state)
    state = _with_channels(state, channels, compiled)
    advance(state, 0)
    while state.counts[replay_state.LANES] > 0:
        advance(state, EVENTS_AT_A_TIME)
    return state


def _functions(state: ReplayState, compiled: bool) -> tuple[Callable[..., Any], ...]:
    """Functions of the kernel for a state."""
    entries = (kernel.classify, kernel.channels, kernel.advance)
    if not compiled:
        return entries
    names = tuple(entry.__name__ for entry in entries)
    return tuple(_with_table(one) for one in jitted((replay_queues, kernel), names, fields=fields_of(state)))


def _with_table(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda state, *others: function(table_of(state), *others)


def _ticks(schedule: Schedule, costs: Costs) -> int:
    """Ticks in a second, a power of ten: as many as let 64 bits hold all operations one after another."""
    total, ticks = serial_time(schedule, costs), MOST_TICKS
    while total * ticks > LONGEST:
        ticks //= 10
    return ticks


def _state(schedule: Schedule, places: Places, costs: Costs, ticks: int, compiled: bool) -> ReplayState:
    """State of the kernel before the first event, without channels."""
    operations, ranks = len(schedule.step), schedule.rank_count
    processors = schedule.processor_count
    columns = _given(schedule, places, costs, ticks) | _operations(schedule, processors)
    nodes = int(places.node.max(initial=0)) + 1 if costs.node_gap > 0 else 0
    columns |= {
        "wild": schedule.has_wild.astype(np.uint8),
        "rank": np.repeat(np.arange(ranks, dtype=np.int32), processors),
        "adapter_before": np.full(operations if nodes else 0, replay_state.UNRELEASED, dtype=np.int32),
        "counts": np.array([0, 0] + 3 * [replay_state.NONE], dtype=np.int64),
    }
    lanes = ranks * processors
    for names, dtype, length, value in (
        (("root",), np.int32, replay_state.QUEUES * lanes, replay_state.NONE),
        (("free", "when"), np.int64, lanes, 0),
        (("user", "order", "place", "choice"), np.int32, lanes, replay_state.NONE),
        (("heap",), np.int32, lanes, replay_state.NONE),
        (("side_free",), np.int64, 2 * ranks, 0),
        (("side_user",), np.int32, 2 * ranks, replay_state.NONE),
        (("last_arrival",), np.int64, ranks, 0),
        (("last_message",), np.int32, ranks, replay_state.NONE),
        (("adapter_free",), np.int64, nodes, 0),
        (("adapter_user",), np.int32, nodes, replay_state.NONE),
        (("posted", "waiting"), np.int32, 0, replay_state.NONE),
    ):
        columns |= _block(names, length, dtype, value)
    return ReplayState(
        **cast("dict[str, Any]", {name: _column(values, compiled) for name, values in columns.items()}),
        ticks=float(ticks),
        free_size=float(costs.free_size),
        node_gap=costs.node_gap * ticks,
        operations=operations,
        processors=processors,
        limits=costs.limits.shape[1],
        protocols=costs.protocol_count,
        kinds=3 * costs.protocol_count,
        eager_count=costs.eager_count,
        isend_shift=costs.isend_shift,
        on_arrival=int(costs.on_arrival),
        by_start=int(schedule.next.min(initial=0) < 0),
    )


def _given(schedule: Schedule, places: Places, costs: Costs, ticks: int) -> dict[str, NDArray[Any]]:
    """The columns of the schedule and of the machine."""
    return {
        "step": plain(schedule.step, np.uint8),
        "peer": plain(schedule.peer, np.int32),
        "size": plain(schedule.size, np.float64),
        "charged": plain(schedule.charged_size, np.float64),
        "tag": plain(schedule.tag, np.int32),
        "next_start": plain(schedule.next_start, np.int64),
        "next": plain(schedule.next, np.int32),
        "node": plain(places.node, np.int32),
        "socket": plain(places.socket, np.int32),
        "limit": plain(costs.limits.ravel(), np.float64),
        "cost": cost_table(costs).ravel() * ticks,
    }


def _operations(schedule: Schedule, processors: int) -> dict[str, NDArray[Any]]:
    """The columns of the operations that change."""
    count = len(schedule.step)
    numbers = ("need", "lane", "cause", "match", "released_by", "turn", "child", "link", "after", "channel")
    columns = _block(("start", "end", "ready"), count, np.int64, -1)
    columns |= _block(numbers, count, np.int32, replay_state.NONE)
    columns |= _block(("why", "kind", "notified"), count, np.uint8, 0)
    columns["ready"][:] = 0
    columns["released_by"][:] = replay_state.UNRELEASED
    columns["need"][:] = schedule.need_count
    columns["kind"][:] = (schedule.step == Step.SEND) & (schedule.origin_kind == Kind.ISEND)
    columns["lane"][:] = schedule.rank * np.int32(processors)
    if schedule.processor is not None:
        columns["lane"] += schedule.processor
    return columns


def _block(names: tuple[str, ...], length: int, dtype: type, value: int) -> dict[str, NDArray[Any]]:
    """Columns with the values of one operation or lane next to each other in memory: they are used together."""
    block: NDArray[Any] = np.full((length, len(names)), value, dtype=dtype)
    return dict(zip(names, block.T, strict=True))


def _column(values: NDArray[Any], compiled: bool) -> Any:
    return values if compiled else values.tolist()


def _with_channels(state: ReplayState, channels: Callable[[ReplayState, Any], int], compiled: bool) -> ReplayState:
    """The state with messages numbered by channel, and its lists of messages; the table grows until all fit."""
    size = 1 << 10
    while (count := channels(state, _column(np.full(size, replay_state.NONE, dtype=np.int32), compiled))) < 0:
        size *= 4
    posted, waiting = (_column(np.full(2 * count, replay_state.NONE, dtype=np.int32), compiled) for _ in range(2))
    return state._replace(posted=posted, waiting=waiting)


def _result(state: ReplayState, ticks: int) -> Replay:
    """Columns of the run as arrays, with the causes that were recorded later."""
    match, cause, released_by = (np.array(column, np.int32) for column in (state.match, state.cause, state.released_by))
    why = np.array(state.why, dtype=np.uint8)
    taken = np.flatnonzero(cause < replay_state.NONE)
    cause[taken] = match[-2 - cause[taken]]
    released = (why == replay_state.AT_ONCE) & (released_by != replay_state.UNRELEASED)
    np.copyto(cause, released_by, where=released)
    np.copyto(why, replay_state.AFTER_END, where=released)
    by_start = released & (cause < 0)
    np.copyto(why, replay_state.AFTER_START, where=by_start)
    np.subtract(-1, cause, out=cause, where=by_start)
    return Replay(
        start=_seconds(state.start, ticks),
        end=_seconds(state.end, ticks),
        cause=cause,
        why=why,
        match=match,
        released_by=released_by,
        kind=np.array(state.kind, dtype=np.uint8) & np.uint8(replay_state.ROW),
        adapter_before=np.array(state.adapter_before, dtype=np.int32),
    )


def _seconds(times: Any, ticks: int) -> FloatArray:
    """Times in s; NaN for what has not happened."""
    # Division by a whole number rounds once: 1500 ns are the float 1.5e-6.
    seconds = np.asarray(times, dtype=np.int64) / ticks
    seconds[seconds < 0] = np.nan
    return seconds
