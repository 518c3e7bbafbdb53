"""From a trace to a schedule: loops unrolled, peers made absolute, collectives made messages, order made dependencies.

In a sequential program every operation depends on the end of the last blocking one before it. ISEND and IRECEIVE do
not block: what follows them starts when the processor is free. A WAIT becomes a join of the last blocking operation
and of those it waits for. The dependencies of a graph are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.simulation.collective_expansion import Algorithm, Expansion, expand, slot_count
from whatif.simulation.collective_schedules import chosen
from whatif.simulation.communicators import IS_COLLECTIVE, Numbers, check_collectives, members_of, places_in
from whatif.simulation.rank_programs import ANY, Kind, RankProgram, Trace, executed_count, unrolled
from whatif.simulation.schedule import Schedule, Step

MOST_OPERATIONS: Final = 2**27
"""Operations of a schedule above which it is refused: it would need more than 6 GB."""
_BATCH = 2**20
_TAGS = 2**31 - 2
_STEP = np.full(len(Kind), Step.JOIN, dtype=np.uint8)
_STEP[[Kind.COMPUTE, Kind.SEND, Kind.ISEND]] = Step.COMPUTE, Step.SEND, Step.SEND
_STEP[[Kind.RECEIVE, Kind.IRECEIVE]] = Step.RECEIVE
_SENDS = [Kind.SEND, Kind.ISEND]
_RECEIVES = [Kind.RECEIVE, Kind.IRECEIVE]
_RETURNS_AT_ONCE = np.isin(np.arange(len(Kind)), [Kind.ISEND, Kind.IRECEIVE])
_IS_MESSAGE = np.isin(np.arange(len(Kind)), [*_SENDS, *_RECEIVES])


def lower(trace: Trace, algorithms: Mapping[Kind, str] | None = None, reduction_time: float = 0.0) -> Schedule:
    """The schedule of a trace; `algorithms` names those of collectives (see `collectives.ALGORITHMS`).

    `reduction_time` is the time in s in which a rank combines a received byte of a reduction with its own.
    Messages of collectives have tags < -1, one for each call of each communicator; where its ranks give different
    sizes, each sends its own and receives any (infinite). UsageError: a peer that is no rank,
    a dependency outside the program, a collective that some rank of its communicator does not call or calls with
    another root, an unknown algorithm, a collective in a graph, more than `MOST_OPERATIONS` operations.
    """
    context = _Context(trace, chosen(algorithms), check_collectives(trace), reduction_time)
    parts: list[_Part] = []
    count = 0
    for number, program in enumerate(trace.programs):
        ranks = np.flatnonzero(trace.program_of == number)
        _refuse_too_many(count + len(ranks) * executed_count(program))
        for part in _lowered(context, unrolled(program), ranks) if len(ranks) else ():
            parts.append(part)
            count += int(part.op_count.sum())
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
    algorithms: Mapping[Kind, Algorithm]
    uneven: frozenset[int]
    """Communicators with ranks that give different sizes to a collective."""
    reduction_time: float
    """s/B; 0 for no arithmetic."""


@dataclass(frozen=True, slots=True, eq=False)
class _Code:
    """A program without loops, and the columns that are equal for all ranks that run it."""

    program: RankProgram
    tag: NDArray[np.int32]
    """Tags; those of collectives are reserved."""
    owner: Numbers
    """[wait]: the operation that waits."""
    waited: Numbers
    """[wait]: the operation that it waits for."""
    started_owner: Numbers
    started: Numbers
    places: Numbers
    """[collective]: its index in the program."""
    signature: Numbers
    """[collective]: its index in `signatures`."""
    signatures: NDArray[np.int64]
    """[signature, 3]: kind, communicator and root."""


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


def _lowered(context: _Context, program: RankProgram, ranks: Numbers) -> Iterator[_Part]:
    """The ranks of one program, as many at a time as keep intermediate arrays small."""
    code = _code(context.trace, program, int(ranks[0]))
    _check_peers(program, ranks, context.trace.rank_count)
    slots = np.array([_slots(context, *signature) for signature in code.signatures], dtype=np.int64)
    widest = len(program) + int(slots[code.signature].sum()) + int(slots.sum())
    step = max(1, _BATCH // max(widest, 1))
    for first in range(0, len(ranks), step):
        yield _part(context, code, ranks[first : first + step])


def _slots(context: _Context, kind: int, communicator: int, _root: int) -> int:
    return slot_count(context.algorithms[Kind(kind)], len(members_of(context.trace, int(communicator))))


def _code(trace: Trace, program: RankProgram, rank: int) -> _Code:
    places = np.flatnonzero(IS_COLLECTIVE[program.kind])
    if places.size and not program.sequential:
        raise UsageError(f"rank {rank}, operation {places[0]}: a program that is a graph has no collectives")
    columns = np.stack([program.kind[places], program.tag[places], program.peer[places]], axis=1).astype(np.int64)
    signatures, signature = np.unique(columns, axis=0, return_inverse=True)
    owner, waited = _dependencies(program.wait_start, program.waits, rank)
    if program.sequential:
        # Blocking operations have ended before.
        pending = _RETURNS_AT_ONCE[program.kind[waited]]
        owner, waited = owner[pending], waited[pending]
    started_owner = started = np.zeros(0, dtype=np.int64)
    if program.started_start is not None and program.started is not None:
        started_owner, started = _dependencies(program.started_start, program.started, rank)
    tag = _with_reserved_tags(trace, program, places)
    return _Code(program, tag, owner, waited, started_owner, started, places, signature.ravel(), signatures)


def _dependencies(start: Numbers, distances: NDArray[np.int32], rank: int) -> tuple[Numbers, Numbers]:
    """Dependencies: the operations on both sides [dependency]."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    target = owner - distances
    wrong = np.flatnonzero((target < 0) | (target >= len(start) - 1) | (distances == 0))
    if wrong.size:
        raise UsageError(f"rank {rank}, operation {owner[wrong[0]]}: it waits for operation {target[wrong[0]]}")
    return owner, target


def _with_reserved_tags(trace: Trace, program: RankProgram, places: Numbers) -> NDArray[np.int32]:
    """The tags of a program, where the n-th collective of communicator c has -2 - (n · communicators + c)."""
    if not places.size:
        return program.tag
    tag = program.tag.copy()
    communicators = program.tag[places]
    for communicator in np.unique(communicators):
        calls = places[communicators == communicator]
        number = np.arange(len(calls)) * max(len(trace.communicators), 1) + int(communicator)
        tag[calls] = -2 - number % _TAGS
    return tag


def _check_peers(program: RankProgram, ranks: Numbers, rank_count: int) -> None:
    receives = np.isin(program.kind, _RECEIVES)
    wrong = (program.peer < 0) | (program.peer >= rank_count)
    if program.relative:
        wrong = abs(program.peer.astype(np.int64)) >= rank_count
    elif receives.any():
        wrong &= ~(receives & (program.peer == ANY))
    wrong &= _IS_MESSAGE[program.kind]
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        name, peer = Kind(program.kind[place]).name, program.peer[place]
        raise UsageError(
            f"rank {ranks[0]}, operation {place} ({name}): its peer is {peer}, but the ranks are 0 to {rank_count - 1}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The expansions of all signatures of a program for some ranks, one behind the other."""

    start: NDArray[np.int64]
    """[signature, rank]"""
    length: NDArray[np.int64]
    """[signature, rank]"""
    rows: Expansion
    """Its peers are ranks of the world; `start` is unused."""


def _table(context: _Context, code: _Code, ranks: Numbers) -> _Table:
    expansions = []
    for kind, communicator, root in code.signatures:
        members = members_of(context.trace, int(communicator))
        places = places_in(members, np.append(ranks, root))
        algorithm, combines = context.algorithms[Kind(kind)], context.reduction_time > 0
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
    start = np.concatenate([[0], np.cumsum(length.ravel())[:-1]]).reshape(length.shape)
    return _Table(start, length, rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Places of the calls of ranks with the same program in their schedule."""

    begin: NDArray[np.int32]
    """[rank · call + 1]: where the operations of each call begin."""
    called: NDArray[np.int32]
    """[op]: the rank · call that it belongs to."""
    row: NDArray[np.int32]
    """[op]: which of the ranks."""
    origin: NDArray[np.int32]
    """[op]: which operation of the program."""
    op_count: Numbers
    """[rank]"""
    first: NDArray[np.int32]
    """[op]: where its rank begins."""


def _layout(code: _Code, rank_count: int, table: _Table | None) -> _Layout:
    count = len(code.program)
    width = np.ones((rank_count, count), dtype=np.int32)
    if table is not None:
        _refuse_too_many(width.size + int(table.length[code.signature].sum()))
        width[:, code.places] = table.length[code.signature].T
    begin = np.zeros(width.size + 1, dtype=np.int32)
    np.cumsum(width, out=begin[1:])
    called = np.repeat(np.arange(width.size, dtype=np.int32), width.ravel())
    row = called // np.int32(max(count, 1))
    op_count = width.sum(axis=1, dtype=np.int64)
    first = np.repeat(begin[np.arange(rank_count) * count], op_count)
    return _Layout(begin, called, row, called - row * np.int32(count), op_count, first)


def _part(context: _Context, code: _Code, ranks: Numbers) -> _Part:
    """The operations of some ranks that run the same program."""
    table = _table(context, code, ranks) if code.places.size else None
    layout = _layout(code, len(ranks), table)
    columns = _columns(code, layout)
    kind = columns["origin_kind"]
    if code.program.relative:
        own = np.where(_IS_MESSAGE[kind], ranks[layout.row] + columns["peer"], columns["peer"])
        columns["peer"] = np.where(_IS_MESSAGE[kind], own % context.trace.rank_count, own).astype(np.int32)
    blocking = ~_RETURNS_AT_ONCE[kind]
    edges = [_waits(code.owner, code.waited, layout)]
    if table is not None:
        edges.append(_insert(context, code, layout, table, columns, blocking))
        _make_room(context, code, columns)
    if code.program.sequential:
        edges.append(_in_order(blocking, layout.first))
    return _connected(ranks, columns, layout, edges, _waits(code.started_owner, code.started, layout))


def _columns(code: _Code, layout: _Layout) -> Columns:
    """The columns of a schedule, where the operations of a collective are still copies of it."""
    program, origin = code.program, layout.origin
    kind = program.kind[origin]
    columns: Columns = {
        "step": _STEP[kind],
        "peer": program.peer[origin],
        "size": program.size[origin],
        "tag": code.tag[origin],
        "origin": origin,
        "origin_kind": kind,
    }
    if program.processor is not None:
        columns["processor"] = program.processor[origin]
    return columns


def _waits(owner: Numbers, waited: Numbers, layout: _Layout) -> Edges:
    """(from, to) of the dependencies of every rank."""
    count = (len(layout.begin) - 1) // max(len(layout.op_count), 1)
    base = np.arange(len(layout.op_count))[:, np.newaxis] * count
    return layout.begin[base + waited + 1].ravel() - np.int32(1), layout.begin[base + owner].ravel()


def _insert(
    context: _Context, code: _Code, layout: _Layout, table: _Table, columns: Columns, blocking: NDArray[np.bool_]
) -> Edges:
    """Write the operations of collectives into the columns; return (from, to) of the dependencies of their joins."""
    inside = np.flatnonzero(IS_COLLECTIVE[columns["origin_kind"]])
    signature = np.zeros(len(code.program), dtype=np.int64)
    signature[code.places] = code.signature
    start = table.start[signature[layout.origin[inside]], layout.row[inside]]
    rows = start + inside - layout.begin[layout.called[inside]]
    columns["peer"][inside] = table.rows.peer[rows]
    columns["step"][inside] = steps = table.rows.step[rows]
    columns["size"][inside] *= table.rows.share[rows] * np.where(steps == Step.COMPUTE, context.reduction_time, 1.0)
    blocking[inside] = table.rows.blocking[rows]
    wait_count = table.rows.wait_count[rows]
    to = np.repeat(inside, wait_count)
    back = np.arange(len(to)) - np.repeat(np.cumsum(wait_count) - wait_count, wait_count)
    return (to - back - 1).astype(np.int32), to.astype(np.int32)


def _make_room(context: _Context, code: _Code, columns: Columns) -> None:
    """Receives of any size where the ranks of a communicator give different ones: none knows that of its peer."""
    uneven = np.zeros(len(code.program), dtype=np.bool_)
    uneven[code.places] = np.isin(code.program.tag[code.places], list(context.uneven))
    columns["size"][uneven[columns["origin"]] & (columns["step"] == Step.RECEIVE)] = np.inf


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
    upto = np.concatenate([[0], np.cumsum(next_count)])[np.concatenate([[0], np.cumsum(layout.op_count)])]
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
    rank_start = np.concatenate([[0], np.cumsum(op_count)])
    edge_start = np.concatenate([[0], np.cumsum(edge_count)])
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
        next_start=np.concatenate([[0], np.cumsum(next_count, dtype=np.int64)]),
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
    shift = start[ranks] - (np.cumsum(counts) - counts)
    places: Numbers = np.repeat(shift, counts) + np.arange(counts.sum())
    return places
