"""Members of collectives, and the check that all members call the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.simulation.rank_programs import COLLECTIVES, Kind, RankProgram, Trace, unrolled

Numbers = NDArray[np.int64]
IS_COLLECTIVE = np.isin(np.arange(len(Kind)), sorted(COLLECTIVES))
"""[kind]"""


def members_of(trace: Trace, communicator: int) -> Numbers:
    """World ranks of a communicator. UsageError: it does not exist."""
    if not 0 <= communicator < max(len(trace.communicators), 1):
        raise UsageError(f"no communicator {communicator}: the trace has {len(trace.communicators)}")
    if communicator == 0 and (not trace.communicators or not trace.communicators[0].size):
        return np.arange(trace.rank_count)
    return trace.communicators[communicator].astype(np.int64)


def places_in(members: Numbers, ranks: Numbers) -> Numbers:
    """Position of each rank in a communicator that it is a member of."""
    if members[-1] == len(members) - 1 and (np.diff(members) == 1).all():
        return ranks
    order = np.argsort(members)
    places: Numbers = order[np.searchsorted(members, ranks, sorter=order)]
    return places


@dataclass(frozen=True, slots=True, eq=False)
class CheckedCalls:
    """Sizes of the collectives of a trace."""

    uneven: frozenset[int]
    """Communicators with a collective in which the sizes of the ranks differ, as MPI_Allgatherv allows."""
    largest: Mapping[int, FloatArray]
    """[call] the largest size of any rank, by communicator."""


def check_collectives(trace: Trace) -> CheckedCalls:
    """Sizes of the collectives of a trace.

    Raise `UsageError` with the ranks and the first call if ranks of a communicator call other collectives or roots.
    """
    calls: dict[int, tuple[int, NDArray[np.int64]]] = {}
    sizes: dict[int, FloatArray] = {}
    callers: dict[int, list[Numbers]] = {}
    uneven = set()
    order = np.argsort(trace.program_of, kind="stable")
    bounds = np.searchsorted(trace.program_of[order], np.arange(len(trace.programs) + 1)).tolist()
    for number in np.flatnonzero(calling_programs(trace)).tolist():
        ranks = order[bounds[number] : bounds[number + 1]]
        for communicator, own, size in _calls(trace.programs[number]) if ranks.size else ():
            rank, expected = calls.setdefault(communicator, (int(ranks[0]), own))
            if not np.array_equal(own, expected):
                raise UsageError(_difference(communicator, (rank, expected), (int(ranks[0]), own)))
            callers.setdefault(communicator, []).append(ranks)
            if not np.array_equal(sizes.setdefault(communicator, size), size):
                uneven.add(communicator)
                sizes[communicator] = np.maximum(sizes[communicator], size)
    for communicator, lists in callers.items():
        members = members_of(trace, communicator)
        belongs, called = (np.zeros(max(trace.rank_count, int(members.max(initial=0)) + 1), np.bool_) for _ in range(2))
        belongs[members], called[np.concatenate(lists)] = True, True
        roots = calls[communicator][1][:, 1]
        _refuse(np.flatnonzero(belongs & ~called), f"is in communicator {communicator}, but calls no collective of it")
        _refuse(
            np.flatnonzero(called & ~belongs), f"calls collectives of communicator {communicator}, but is not in it"
        )
        _refuse(roots[~np.isin(roots, members)], f"is a root outside of communicator {communicator}")
    return CheckedCalls(frozenset(uneven), sizes)


def calling_programs(trace: Trace) -> NDArray[np.bool_]:
    """[program]: whether it calls collectives."""
    if not trace.programs:
        return np.zeros(0, dtype=np.bool_)
    called = np.cumsum(IS_COLLECTIVE[np.concatenate([program.kind for program in trace.programs])])
    ends = np.cumsum([len(program) for program in trace.programs])
    found: NDArray[np.bool_] = np.diff(np.append(0, called)[ends], prepend=0) > 0
    return found


def _refuse(ranks: Numbers, reason: str) -> None:
    if ranks.size:
        raise UsageError(f"rank {ranks[0]} {reason}")


def _calls(program: RankProgram) -> list[tuple[int, NDArray[np.int64], FloatArray]]:
    """Each communicator with kind and root (0 without one) of its collectives, in executed order, and sizes."""
    if not IS_COLLECTIVE[program.kind].any():
        return []
    whole = unrolled(program)
    places = np.flatnonzero(IS_COLLECTIVE[whole.kind])
    columns = np.stack([whole.kind[places], whole.peer[places]], axis=1).astype(np.int64)
    of = [(int(number), whole.tag[places] == number) for number in np.unique(whole.tag[places])]
    return [(number, columns[own], whole.size[places[own]]) for number, own in of]


def _difference(communicator: int, first: tuple[int, NDArray[np.int64]], second: tuple[int, NDArray[np.int64]]) -> str:
    length = min(len(first[1]), len(second[1]))
    differ = np.flatnonzero((first[1][:length] != second[1][:length]).any(axis=1))
    place = int(differ[0]) if differ.size else length
    calls_of_both = [f"rank {rank} {_call(calls, place)}" for rank, calls in (first, second)]
    return f"collective {place + 1} of communicator {communicator} differs: {calls_of_both[0]}, {calls_of_both[1]}"


def _call(calls: NDArray[np.int64], place: int) -> str:
    if place >= len(calls):
        return f"calls only {len(calls)}"
    return f"calls {Kind(calls[place, 0]).name} with root {calls[place, 1]}"
