"""Checks of a schedule before its replay, and of its completion; errors name ranks and calls."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.quantities import FloatArray
from whatif.simulation.flat_lists import list_items
from whatif.simulation.rank_programs import ANY, Kind
from whatif.simulation.replay_state import ROW
from whatif.simulation.schedule import Costs, Places, Schedule, Step

LONGEST: Final = 1e9
"""s: a run of more than thirty years means a size or a rate in the wrong unit."""
MOST_OPERATIONS: Final = 2**31 - 1
NAMED: Final = 5


def cost_table(costs: Costs) -> FloatArray:
    """The five costs [cost, distance, protocol, 2]."""
    parts = (costs.send_overhead, costs.send_gap, costs.flight, costs.receive_overhead, costs.receive_gap)
    return np.array(parts, dtype=np.float64)


def serial_time(schedule: Schedule, costs: Costs) -> float:
    """An upper bound of the run in s: all operations one after another at the highest cost of any message."""
    constant, slope = (float(cost) for cost in cost_table(costs).max(axis=(1, 2)).sum(axis=0))
    computes, sends = schedule.step == Step.COMPUTE, schedule.step == Step.SEND
    message_size = float(schedule.charged_size.sum(where=sends))
    message_time = np.count_nonzero(sends) * constant + message_size * (slope + costs.node_gap)
    return float(schedule.size.sum(where=computes)) + message_time


def check_schedule(schedule: Schedule, places: Places, costs: Costs) -> None:
    """Refuse a schedule that cannot be replayed.

    Raise `UsageError` for columns that do not belong together and for costs that are negative or not finite,
    `InfeasiblePointError` for sizes that are, and for a run of more than 1e9 s.
    """
    _check_columns(schedule, places)
    table = cost_table(costs)
    if table[0, ..., 0].size > ROW + 1:
        most = (ROW + 1) // 3
        raise UsageError(f"{costs.protocol_count} protocols of messages; at most {most}, a piece counts as three")
    if not (np.isfinite(table).all() and (table >= 0).all() and 0 <= costs.node_gap < np.inf):
        raise UsageError("the costs of a message must be finite and not negative")
    if schedule.stretch is not None and not ((schedule.stretch >= 0) & (schedule.stretch < np.inf)).all():
        raise UsageError("the costs of messages that share a node must be finite and not negative")
    timeless = schedule.step >= Step.RECEIVE
    _refuse(schedule, ~((schedule.size >= 0) & (schedule.size < np.inf) | timeless), "is not a size")
    time = serial_time(schedule, costs)
    if time > LONGEST:
        largest = np.where(timeless, 0.0, schedule.size)
        of = f"the largest: {describe(schedule, int(largest.argmax()))}"
        raise InfeasiblePointError(f"this would take up to {time / 31_557_600:.3g} years; {of}")


def _check_columns(schedule: Schedule, places: Places) -> None:
    """Everything by which the kernel addresses memory."""
    count, ranks = len(schedule.step), schedule.rank_count
    if count > MOST_OPERATIONS:
        raise UsageError(f"{count:,} operations are more than the {MOST_OPERATIONS:,} that can be replayed")
    columns = (schedule.peer, schedule.size, schedule.tag, schedule.need_count, schedule.origin, schedule.origin_kind)
    starts, next_start = schedule.rank_start, schedule.next_start
    whole = all(len(column) == count for column in columns) and len(next_start) == count + 1
    whole = whole and starts[0] == 0 and starts[-1] == count and bool((np.diff(starts) >= 0).all())
    whole = whole and next_start[0] == 0 and next_start[-1] == len(schedule.next)
    whole = whole and bool((np.diff(next_start) >= 0).all())
    whole = whole and -count <= int(schedule.next.min(initial=0)) and int(schedule.next.max(initial=-1)) < count
    if not whole or (schedule.processor is not None and len(schedule.processor) != count):
        raise UsageError("the columns of the schedule do not belong to the same operations")
    for column, limit in ((places.node, ranks), (places.socket, ranks)):
        if len(column) != limit or column.min(initial=0) < 0:
            raise UsageError(f"{ranks} ranks take part, places are given for {len(column)}")
    _refuse(schedule, schedule.step > Step.JOIN, "is not a kind of step")
    received = schedule.step == Step.RECEIVE
    outside = (schedule.peer < 0) & ~(received & (schedule.peer == ANY)) | (schedule.peer >= ranks)
    outside &= received | (schedule.step == Step.SEND)
    _refuse(schedule, outside, f"has no such peer: the ranks are 0 to {ranks - 1}")


def _refuse(schedule: Schedule, wrong: NDArray[np.bool_], reason: str) -> None:
    if wrong.any():
        at = int(wrong.argmax())
        more = np.count_nonzero(wrong) - 1
        raise InfeasiblePointError(f"{describe(schedule, at)}: {reason}" + (f" (and {more:,} more)" if more else ""))


def check_completion(schedule: Schedule, end: FloatArray, match: NDArray[np.int32]) -> None:
    """Raise `InfeasiblePointError` with the ranks and the calls that wait if a replay did not come to its end."""
    unfinished = np.isnan(end)
    if unfinished.any():
        raise InfeasiblePointError(_deadlock(schedule, unfinished))
    sends = schedule.step == Step.SEND
    _refuse_unreceived(schedule, np.flatnonzero(sends & (match < 0)))
    received = np.flatnonzero(schedule.step == Step.RECEIVE)
    sizes, sent = schedule.size[received], schedule.size[match[received]]
    short = np.flatnonzero(sizes < sent)
    if short.size:
        at, message = int(received[short[0]]), sent[short[0]]
        more = f" (and {len(short) - 1:,} more)" if len(short) > 1 else ""
        raise InfeasiblePointError(f"{describe(schedule, at)} gets a message of {message:.15g} B{more}")


def _refuse_unreceived(schedule: Schedule, sends: NDArray[np.intp]) -> None:
    if sends.size:
        lines = [f"no receive for {describe(schedule, int(op))}" for op in _first_of_ranks(schedule, sends)]
        raise InfeasiblePointError("\n  ".join([f"{len(sends):,} messages are never received:", *lines]))


def _deadlock(schedule: Schedule, unfinished: NDArray[np.bool_]) -> str:
    """Operations that only wait for their peer, or else those that wait for each other."""
    held = np.zeros(len(schedule.step), dtype=np.int64)
    np.add.at(held, _dependents(schedule, np.flatnonzero(unfinished)), 1)
    stuck = np.flatnonzero(unfinished & (held == 0))
    ranks = len(np.unique(schedule.rank_of(np.flatnonzero(unfinished))))
    if not stuck.size:
        stuck, reason = np.flatnonzero(unfinished), "operations depend on each other in a circle"
    else:
        reason = "deadlock"
    lines = [describe(schedule, int(op)) for op in _first_of_ranks(schedule, stuck)]
    return "\n  ".join([f"{reason}: {ranks:,} of {schedule.rank_count:,} ranks wait forever, such as", *lines])


def _dependents(schedule: Schedule, operations: NDArray[np.intp]) -> NDArray[np.int64]:
    """Everything that depends on operations."""
    starts, ends = schedule.next_start[operations], schedule.next_start[operations + 1]
    targets = schedule.next[list_items(starts, ends - starts)].astype(np.int64)
    return np.where(targets < 0, -1 - targets, targets)


def _first_of_ranks(schedule: Schedule, operations: NDArray[np.intp]) -> list[int]:
    """The first of the operations of each rank, for as many ranks as are named."""
    firsts = np.unique(schedule.rank_of(operations), return_index=True)[1]
    return [int(op) for op in operations[firsts[:NAMED]]]


def describe(schedule: Schedule, op: int) -> str:
    """`rank 3, operation 17 (wait): receive of 8 B from rank 4, tag 0`."""
    at = np.array([op], dtype=np.intp)
    step, size, peer, tag = schedule.step[op], schedule.size[op], schedule.peer[op], schedule.tag[op]
    kind = schedule.origin_kind[op]
    call = Kind(kind).name.lower() if kind <= max(Kind) else str(kind)
    who = f"rank {schedule.rank_of(at)[0]}, operation {schedule.origin[op]} ({call})"
    named = f"tag {tag if tag != ANY else 'any'}" if tag >= ANY else "of a collective"
    if step == Step.SEND:
        return f"{who}: send of {size:.15g} B to rank {peer}, {named}"
    if step == Step.RECEIVE:
        return f"{who}: receive of {size:.15g} B from rank {peer if peer != ANY else 'any'}, {named}"
    return f"{who}: computation of {size:.15g} s" if step == Step.COMPUTE else f"{who}: join"
