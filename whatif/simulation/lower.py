"""From a trace to a schedule: loops unrolled, peers made absolute, collectives made messages, order made dependencies.

In a sequential program every operation depends on the end of the last blocking one before it. ISEND and IRECEIVE do
not block: what follows them starts when the processor is free. A WAIT becomes a join of the last blocking operation
and of those it waits for. The dependencies of a graph are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.simulation.collective_expansion import Algorithm, Expansion, expand, slot_count
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.communicators import (
    IS_COLLECTIVE,
    CheckedCalls,
    Numbers,
    check_collectives,
    members_of,
    places_in,
)
from whatif.simulation.flat_lists import list_items, list_starts
from whatif.simulation.joined import RETURNS_AT_ONCE, Code, CollectiveCalls, Dependencies, groups, joined
from whatif.simulation.rank_programs import Kind, RankProgram, Trace, executed_count
from whatif.simulation.schedule import Schedule, Step
from whatif.simulation.selection import Selection, selection_of

MOST_OPERATIONS: Final = 2**27
"""Operations of a schedule above which it is refused: it would need more than 6 GB."""
_BATCH = 2**20
_STEP = np.full(len(Kind), Step.JOIN, dtype=np.uint8)
_STEP[[Kind.COMPUTE, Kind.SEND, Kind.ISEND]] = Step.COMPUTE, Step.SEND, Step.SEND
_STEP[[Kind.RECEIVE, Kind.IRECEIVE]] = Step.RECEIVE


def lower(
    trace: Trace, algorithms: Mapping[Kind, str] | Selection | None = None, reduction_time: float = 0.0
) -> Schedule:
    """Schedule of a trace; `algorithms` names or selects those of collectives (`collective_schedules.ALGORITHMS`).

    `reduction_time` is the time in s in which a rank combines a received byte of a reduction with its own.
    Messages of collectives have tags < -1, one for each call of each communicator; where its ranks give different
    sizes, each sends its own and receives any (infinite). UsageError: a peer that is no rank,
    a dependency outside the program, a collective that some rank of its communicator does not call or calls with
    another root, an unknown algorithm, a collective in a graph, more than `MOST_OPERATIONS` operations.
    """
    selection = algorithms if isinstance(algorithms, Selection) else selection_of(algorithms or {})
    context = _Context(trace, selection, check_collectives(trace), reduction_time)
    executed = np.array([executed_count(program) for program in trace.programs], dtype=np.int64)
    _refuse_too_many(int(executed[trace.program_of].sum()))
    parts: list[_Part] = []
    count = 0
    for group in groups(trace, partial(_choices, context), partial(_width, context), _BATCH):
        parts.append(_part(context, joined(trace, group)))
        count += int(parts[-1].op_count.sum())
        _refuse_too_many(count)
    return _assembled(parts, trace.rank_count)


def _refuse_too_many(count: int) -> None:
    if count > MOST_OPERATIONS:
        raise UsageError(
            f"the trace has more than {MOST_OPERATIONS} operations with its collectives as messages; use fewer ranks "
            "or iterations, or algorithms with fewer messages"
        )


Scalar = TypeVar("Scalar", bound=np.generic)
Columns = dict[str, NDArray[Any]]
Edges = tuple[NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, eq=False)
class _Context:
    trace: Trace
    selection: Selection
    calls: CheckedCalls
    reduction_time: float
    """s/B; 0 for no arithmetic."""
    chosen: dict[int, Numbers] = field(default_factory=dict)
    """Places of the algorithms of the calls of each communicator so far: equal for all its ranks."""
    slots: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Numbers of operations of the signatures so far."""


@dataclass(slots=True, eq=False)
class _Part:
    """Some ranks of a schedule."""

    ranks: Numbers
    op_count: Numbers
    """[rank]"""
    edge_count: Numbers
    """[rank]"""
    columns: Columns
    """[op]: those of `Schedule`, and the `next_count` of dependencies on each."""
    next: NDArray[np.int32]
    """`next` of `Schedule`, counted from the beginning of the rank."""


def _width(context: _Context, program: RankProgram, collectives: CollectiveCalls) -> int:
    """Operations of a rank in intermediate arrays."""
    if not collectives.places.size:
        return max(len(program), 1)
    slots = np.array([_slots(context, *signature) for signature in collectives.signatures.tolist()], dtype=np.int64)
    return len(program) + int(slots[collectives.signature].sum()) + int(slots.sum())


def _slots(context: _Context, kind: int, communicator: int, _root: int, choice: int) -> int:
    key = kind, communicator, choice
    if key not in context.slots:
        context.slots[key] = slot_count(_algorithm(kind, choice), len(members_of(context.trace, communicator)))
    return context.slots[key]


def _algorithm(kind: int, choice: int) -> Algorithm:
    return list(ALGORITHMS[Kind(kind)].values())[choice]


def _choices(context: _Context, program: RankProgram, places: Numbers) -> Numbers:
    """Place of the algorithm of each collective; all ranks decide by the largest size that one of them gives."""
    found, communicators = np.zeros(len(places), dtype=np.int64), program.tag[places]
    for communicator in np.unique(communicators).tolist():
        own = communicators == communicator
        if communicator not in context.chosen:
            count, sizes = len(members_of(context.trace, communicator)), context.calls.largest[communicator]
            context.chosen[communicator] = context.selection.places(program.kind[places[own]], sizes, count)
        found[own] = context.chosen[communicator]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The expansions of all signatures of a group for its ranks, one behind the other."""

    start: NDArray[np.int64]
    """[signature, rank]"""
    length: NDArray[np.int64]
    """[signature, rank]"""
    rows: Expansion
    """Its peers are ranks of the world; `start` is unused."""


def _table(context: _Context, code: Code) -> _Table:
    expansions = []
    for kind, communicator, root, choice in code.collectives.signatures:
        members = members_of(context.trace, int(communicator))
        places = places_in(members, np.append(code.ranks, root))
        algorithm, combines = _algorithm(kind, choice), context.reduction_time > 0
        one = expand(algorithm, places[:-1], len(members), int(places[-1]), combines)
        expansions.append((one, members[one.peer]))
    length = np.stack([np.diff(one.start) for one, _ in expansions])
    rows = Expansion(
        start=np.zeros(0, dtype=np.int64),
        step=np.concatenate([one.step for one, _ in expansions]),
        blocking=np.concatenate([one.blocking for one, _ in expansions]),
        peer=np.concatenate([peer for _, peer in expansions]),
        share=np.concatenate([one.share for one, _ in expansions]),
        wait_count=np.concatenate([one.wait_count for one, _ in expansions]),
    )
    start = list_starts(length.ravel())[:-1].reshape(length.shape)
    return _Table(start, length, rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Places of the calls of ranks in their schedule."""

    begin: NDArray[np.int32]
    """[call + 1]: where the operations of each call begin."""
    called: NDArray[np.int32]
    """[op]: the call that it belongs to."""
    origin: NDArray[np.int32]
    """[op]: which operation of the program of its rank."""
    op_count: Numbers
    """[rank]"""
    first: NDArray[np.int32]
    """[op]: where its rank begins."""


def _layout(code: Code, table: _Table | None) -> _Layout:
    width = np.ones(len(code.kind), dtype=np.int32)
    if table is not None:
        places, signature = code.collectives.places, code.collectives.signature
        lengths = table.length[signature, code.row[places]]
        _refuse_too_many(width.size + int(lengths.sum()))
        width[places] = lengths
    begin = np.zeros(width.size + 1, dtype=np.int32)
    np.cumsum(width, out=begin[1:])
    called = np.repeat(np.arange(width.size, dtype=np.int32), width)
    first_call = list_starts(code.count)
    op_count = np.diff(begin[first_call]).astype(np.int64)
    origin = called - np.repeat(first_call[:-1].astype(np.int32), op_count)
    return _Layout(begin, called, origin, op_count, np.repeat(begin[first_call[:-1]], op_count))


def _part(context: _Context, code: Code) -> _Part:
    """The operations of the ranks of a group."""
    table = _table(context, code) if code.collectives.places.size else None
    layout = _layout(code, table)
    columns = _columns(code, layout)
    blocking = ~RETURNS_AT_ONCE[columns["origin_kind"]]
    edges = [_waits(code.after, layout)]
    if table is not None:
        edges.append(_insert(context, code, layout, table, columns, blocking))
        _make_room(context, code, layout, columns)
    if code.sequential:
        edges.append(_in_order(blocking, layout.first))
    return _connected(code.ranks, columns, layout, edges, _waits(code.after_started, layout))


def _columns(code: Code, layout: _Layout) -> Columns:
    """The columns of a schedule, where the operations of a collective are still copies of it."""
    called = layout.called
    kind = code.kind[called]
    columns: Columns = {
        "step": _STEP[kind],
        "peer": code.peer[called],
        "size": code.size[called],
        "tag": code.tag[called],
        "origin": layout.origin,
        "origin_kind": kind,
    }
    if code.processor is not None:
        columns["processor"] = code.processor[called]
    return columns


def _waits(after: Dependencies, layout: _Layout) -> Edges:
    """(from, to) of dependencies of calls: the last operation of one, the first of the other."""
    owner, waited = after
    return layout.begin[waited + 1] - np.int32(1), layout.begin[owner]


def _insert(
    context: _Context, code: Code, layout: _Layout, table: _Table, columns: Columns, blocking: NDArray[np.bool_]
) -> Edges:
    """Write the operations of collectives into the columns; return (from, to) of the dependencies of their joins."""
    inside = np.flatnonzero(IS_COLLECTIVE[columns["origin_kind"]])
    signature, called = np.zeros(len(code.kind), dtype=np.int64), layout.called[inside]
    signature[code.collectives.places] = code.collectives.signature
    rows = table.start[signature[called], code.row[called]] + inside - layout.begin[called]
    columns["peer"][inside] = table.rows.peer[rows]
    columns["step"][inside] = steps = table.rows.step[rows]
    columns["size"][inside] *= table.rows.share[rows] * np.where(steps == Step.COMPUTE, context.reduction_time, 1.0)
    blocking[inside] = table.rows.blocking[rows]
    wait_count = table.rows.wait_count[rows]
    to = np.repeat(inside, wait_count)
    return (to - list_items(0, wait_count) - 1).astype(np.int32), to.astype(np.int32)


def _make_room(context: _Context, code: Code, layout: _Layout, columns: Columns) -> None:
    """Receives of any size where the ranks of a communicator give different ones: none knows that of its peer."""
    uneven, places = np.zeros(len(code.kind), dtype=np.bool_), code.collectives.places
    uneven[places] = np.isin(code.communicator[places], list(context.calls.uneven))
    columns["size"][uneven[layout.called] & (columns["step"] == Step.RECEIVE)] = np.inf


def _in_order(blocking: NDArray[np.bool_], first: NDArray[np.int32]) -> Edges:
    """(from, to) of each operation and the last blocking one before it."""
    place = np.arange(len(blocking), dtype=np.int32)
    last = np.maximum.accumulate(np.where(blocking[:-1], place[:-1], np.int32(-1)))
    behind = last >= first[1:]
    return last[behind], place[1:][behind]


def _connected(ranks: Numbers, columns: Columns, layout: _Layout, edges: list[Edges], after_start: Edges) -> _Part:
    """Part with its dependencies ordered by source."""
    count = len(layout.first)
    source = np.concatenate([*(source for source, _ in edges), after_start[0]])
    target = np.concatenate([*(target for _, target in edges), after_start[1]])
    columns["need_count"] = np.bincount(target, minlength=count).astype(np.int32)
    target -= layout.first[target]
    target[len(target) - len(after_start[1]) :] ^= -1  # -1 - target
    next_count = np.bincount(source, minlength=count).astype(np.int32)
    upto = list_starts(next_count)[list_starts(layout.op_count)]
    return _Part(
        ranks=ranks,
        op_count=layout.op_count,
        edge_count=np.diff(upto),
        columns=columns | {"next_count": next_count},
        next=target[np.argsort(source, kind="stable")],
    )


def _assembled(parts: list[_Part], rank_count: int) -> Schedule:
    """The schedule of all ranks in order; takes the columns out of the parts."""
    op_count, edge_count = np.zeros(rank_count, dtype=np.int64), np.zeros(rank_count, dtype=np.int64)
    for part in parts:
        op_count[part.ranks], edge_count[part.ranks] = part.op_count, part.edge_count
    rank_start, edge_start = list_starts(op_count), list_starts(edge_count)
    following = np.empty(edge_start[-1], dtype=np.int32)
    for part in parts:
        base = np.repeat(rank_start[part.ranks], part.edge_count).astype(np.int32)
        following[_destination(edge_start, part.ranks, part.edge_count)] = np.where(
            part.next < 0, part.next - base, part.next + base
        )
        part.next = part.next[:0]
    next_count = _column(parts, "next_count", np.int32, rank_start)
    return Schedule(
        rank_start=rank_start,
        step=_column(parts, "step", np.uint8, rank_start),
        peer=_column(parts, "peer", np.int32, rank_start),
        size=_column(parts, "size", np.float64, rank_start),
        tag=_column(parts, "tag", np.int32, rank_start),
        processor=_column(parts, "processor", np.uint8, rank_start)
        if any("processor" in part.columns for part in parts)
        else None,
        next_start=list_starts(next_count),
        next=following,
        need_count=_column(parts, "need_count", np.int32, rank_start),
        origin=_column(parts, "origin", np.int32, rank_start),
        origin_kind=_column(parts, "origin_kind", np.uint8, rank_start),
    )


def _column(parts: list[_Part], name: str, dtype: type[Scalar], rank_start: Numbers) -> NDArray[Scalar]:
    """One column of all parts, removed from them to avoid two copies of all columns; 0 for a missing one."""
    column = np.zeros(rank_start[-1], dtype=dtype)
    for part in parts:
        values = part.columns.pop(name, None)
        if values is not None:
            column[_destination(rank_start, part.ranks, part.op_count)] = values
    return column


def _destination(start: Numbers, ranks: Numbers, counts: Numbers) -> slice | Numbers:
    """Places of the entries of some ranks among those of all."""
    if ranks[-1] - ranks[0] == len(ranks) - 1:
        return slice(int(start[ranks[0]]), int(start[ranks[-1] + 1]))
    return list_items(start[ranks], counts)
