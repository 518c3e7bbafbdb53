"""Programs of some ranks one behind the other, so that arrays hold many ranks at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.simulation.communicators import IS_COLLECTIVE, Numbers, calling_programs
from whatif.simulation.flat_lists import list_starts
from whatif.simulation.rank_programs import ANY, Kind, RankProgram, Trace, unrolled

_TAGS: Final = 2**31 - 2
_RECEIVES: Final = [Kind.RECEIVE, Kind.IRECEIVE]
RETURNS_AT_ONCE: Final = np.isin(np.arange(len(Kind)), [Kind.ISEND, Kind.IRECEIVE])
IS_MESSAGE: Final = np.isin(np.arange(len(Kind)), [Kind.SEND, Kind.ISEND, *_RECEIVES])
_IS_RECEIVE: Final = np.isin(np.arange(len(Kind)), _RECEIVES)
_NONE: Final[Numbers] = np.zeros(0, dtype=np.int64)

Dependencies = tuple[Numbers, Numbers]
"""Calls that wait, and those that they wait for."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveCalls:
    """Collectives of a program."""

    places: Numbers
    """[collective]: its index in the program."""
    signature: Numbers
    """[collective]: its index in `signatures`."""
    signatures: NDArray[np.int64]
    """[signature, 4]: kind, communicator, root, and the place of the algorithm among those of the kind."""


NO_COLLECTIVES: Final = CollectiveCalls(_NONE, _NONE, np.zeros((0, 4), dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Ranks whose programs are similar enough to be lowered together: one program for all, or one for each."""

    programs: Sequence[RankProgram]
    collectives: Sequence[CollectiveCalls]
    """Collectives of each program; all have the same signatures."""
    ranks: Numbers


Width = Callable[[RankProgram, CollectiveCalls], int]
Choose = Callable[[RankProgram, Numbers], Numbers]


def groups(trace: Trace, choose: Choose, width: Width, most: int) -> Iterator[Group]:
    """Groups with all ranks of a trace, of a total `width` of at most `most` each if no single program is wider.

    `choose` gives the places of the algorithms of the collectives of a program.
    """
    users = np.bincount(trace.program_of, minlength=len(trace.programs))
    single = np.flatnonzero(users[trace.program_of] == 1)
    calls = calling_programs(trace)
    for number in np.flatnonzero(users > 1):
        program, collectives = _prepared(trace.programs[number], calls[number], choose)
        ranks = np.flatnonzero(trace.program_of == number)
        step = max(1, most // max(width(program, collectives), 1))
        for first in range(0, len(ranks), step):
            yield Group([program], [collectives], ranks[first : first + step])
    prepared = (
        _prepared(trace.programs[number], calls[number], choose) for number in trace.program_of[single].tolist()
    )
    yield from _of_single_ranks(single, prepared, width, most)


def _prepared(program: RankProgram, calls: bool, choose: Choose) -> tuple[RankProgram, CollectiveCalls]:
    program = unrolled(program)
    return program, _collectives(program, choose) if calls else NO_COLLECTIVES


def _of_single_ranks(
    ranks: Numbers, prepared: Iterable[tuple[RankProgram, CollectiveCalls]], width: Width, most: int
) -> Iterator[Group]:
    """Groups of ranks that have programs of their own."""
    programs: list[RankProgram] = []
    collectives: list[CollectiveCalls] = []
    first, total, kind = 0, 0, None
    for place, (program, own) in enumerate(prepared):
        needed, own_kind = width(program, own), _kind(program, own)
        if programs and (kind != own_kind or total + needed > most):
            yield Group(programs, collectives, ranks[first:place])
            programs, collectives, first, total = [], [], place, 0
        programs.append(program)
        collectives.append(own)
        total, kind = total + needed, own_kind
    if programs:
        yield Group(programs, collectives, ranks[first:])


def _kind(program: RankProgram, collectives: CollectiveCalls) -> tuple[object, ...]:
    """Properties that are equal for all programs of a group."""
    columns = (program.processor is None, program.started is None)
    return program.sequential, program.relative, *columns, collectives.signatures.tobytes()


def _collectives(program: RankProgram, choose: Choose) -> CollectiveCalls:
    places = np.flatnonzero(IS_COLLECTIVE[program.kind])
    named = (program.kind[places], program.tag[places], program.peer[places], choose(program, places))
    columns = np.stack(named, axis=1).astype(np.int64)
    if len(columns) == 1:
        return CollectiveCalls(places, np.zeros(1, dtype=np.int64), columns)
    signatures, signature = np.unique(columns, axis=0, return_inverse=True)
    return CollectiveCalls(places, signature.ravel(), signatures)


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """The calls of the ranks of a group, rank after rank, in columns."""

    ranks: Numbers
    count: Numbers
    """[rank]: number of its calls."""
    row: NDArray[np.int32]
    """[call]: which of the ranks calls it."""
    kind: NDArray[np.uint8]
    peer: NDArray[np.int32]
    """[call]: the other rank of a message, also of a relative program."""
    size: FloatArray
    communicator: NDArray[np.int32]
    """[call]: that of a collective."""
    tag: NDArray[np.int32]
    """[call]: of a collective a reserved one."""
    processor: NDArray[np.uint8] | None
    after: Dependencies
    after_started: Dependencies
    collectives: CollectiveCalls
    """Collectives of all ranks: `places` are calls."""
    sequential: bool


def joined(trace: Trace, group: Group) -> Code:
    """The calls of a group.

    Raise `UsageError`, naming rank and operation, for a peer that is no rank, a dependency outside the program, and a
    collective in a graph.
    """
    like, times = group.programs[0], len(group.ranks) // len(group.programs)
    count = np.tile([len(program) for program in group.programs], times)
    row = np.repeat(np.arange(len(count), dtype=np.int32), count)
    kind, peer, size, tag = (_joined(group, name) for name in ("kind", "peer", "size", "tag"))
    call = _Calls(trace.rank_count, group.ranks, list_starts(count)[:-1], row, kind)
    collectives = _joined_collectives(group, call)
    if not like.sequential:
        call.refuse(collectives.places, lambda _: ": a program that is a graph has no collectives")
    after = call.dependencies(group, "wait_start", "waits")
    if like.sequential:
        # Blocking operations have ended before.
        pending = RETURNS_AT_ONCE[kind[after[1]]]
        after = after[0][pending], after[1][pending]
    return Code(
        ranks=group.ranks,
        count=count,
        row=row,
        kind=kind,
        peer=call.absolute(peer, like.relative),
        size=size,
        communicator=tag,
        tag=_with_reserved_tags(trace, tag, collectives.places, row),
        processor=None if like.processor is None else _joined(group, "processor"),
        after=after,
        after_started=(_NONE, _NONE) if like.started is None else call.dependencies(group, "started_start", "started"),
        collectives=collectives,
        sequential=like.sequential,
    )


def _joined(group: Group, name: str) -> Any:
    """A column of the programs of all ranks."""
    columns = [getattr(program, name) for program in group.programs]
    return np.tile(np.concatenate(columns), len(group.ranks) // len(columns)) if len(group.ranks) > 1 else columns[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Calls:
    """Calls of ranks, for their checks; errors name rank and operation."""

    rank_count: int
    ranks: Numbers
    first: Numbers
    """[rank]"""
    row: NDArray[np.int32]
    kind: NDArray[np.uint8]

    def refuse(self, calls: Numbers, reason: Callable[[int], str]) -> None:
        """Raise `UsageError` with the reason for the first of some calls, given the place of its rank."""
        if calls.size:
            row = int(self.row[calls[0]])
            rank, place = self.ranks[row], calls[0] - self.first[row]
            raise UsageError(f"rank {rank}, operation {place}{reason(row)}")

    def dependencies(self, group: Group, starts: str, distances: str) -> Dependencies:
        """Calls that wait, and those that they wait for."""
        start, distance = _joined(group, starts), _joined(group, distances)
        # Between the counts of two ranks is the difference of their first and last bounds.
        inside = np.ones(len(start), dtype=np.bool_)
        inside[np.cumsum(np.bincount(self.row, minlength=len(self.ranks)) + 1) - 1] = False
        owner = np.repeat(np.arange(len(self.row)), np.diff(start)[inside[:-1]])
        target = owner - distance
        ends = np.append(self.first, len(self.row))
        row = self.row[owner]
        wrong = np.flatnonzero((target < ends[row]) | (target >= ends[row + 1]) | (distance == 0))
        if wrong.size:
            self.refuse(owner[wrong], lambda row: f": it waits for operation {target[wrong[0]] - self.first[row]}")
        return owner, target

    def absolute(self, peer: NDArray[np.int32], relative: bool) -> NDArray[np.int32]:
        """Peers as ranks of the world."""
        message = IS_MESSAGE[self.kind]
        if relative:
            self._refuse_peers(message & (abs(peer.astype(np.int64)) >= self.rank_count), peer)
            own = (self.ranks[self.row] + peer) % self.rank_count
            return np.where(message, own, peer).astype(np.int32)
        unknown = ((peer < 0) | (peer >= self.rank_count)) & ~(_IS_RECEIVE[self.kind] & (peer == ANY))
        self._refuse_peers(message & unknown, peer)
        return peer

    def _refuse_peers(self, wrong: NDArray[np.bool_], peer: NDArray[np.int32]) -> None:
        at = np.flatnonzero(wrong)
        if at.size:
            name = Kind(self.kind[at[0]]).name
            ranks = f"the ranks are 0 to {self.rank_count - 1}"
            self.refuse(at, lambda _: f" ({name}): its peer is {peer[at[0]]}, but {ranks}")


def _joined_collectives(group: Group, calls: _Calls) -> CollectiveCalls:
    signatures, times = group.collectives[0].signatures, len(group.ranks) // len(group.programs)
    if not signatures.size:
        return NO_COLLECTIVES
    first = np.repeat(calls.first, np.tile([len(own.places) for own in group.collectives], times))
    places = np.tile(np.concatenate([own.places for own in group.collectives]), times) + first
    signature = np.tile(np.concatenate([own.signature for own in group.collectives]), times)
    return CollectiveCalls(places, signature, signatures)


def _with_reserved_tags(
    trace: Trace, tag: NDArray[np.int32], places: Numbers, row: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Tags, where the n-th collective of communicator c that a rank calls has -2 - (n · communicators + c)."""
    if not places.size:
        return tag
    reserved, communicators = tag.copy(), tag[places]
    for communicator in np.unique(communicators):
        calls = places[communicators == communicator]
        before = np.searchsorted(row[calls], row[calls])  # those of the ranks before
        number = (np.arange(len(calls)) - before) * max(len(trace.communicators), 1) + int(communicator)
        reserved[calls] = -2 - number % _TAGS
    return reserved
