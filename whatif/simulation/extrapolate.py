"""A trace of few ranks as one of many, where its structure is regular.

Regular structures are a chain, a ring, or a Cartesian grid of two or three dimensions, periodic or not, in any order
of the ranks, in which each rank exchanges messages with its neighbours, and ranks at the same place (in the middle of
a dimension, first or last along it) do the same. Collectives of all ranks with root 0 may occur. It is weak scaling:
a rank keeps the sizes of its messages and the durations of its computations, the latter as means of its class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.decomposition import MOST_RANKS, balanced_extents, divisors
from whatif.models.quantities import FloatArray
from whatif.simulation.communicators import IS_COLLECTIVE
from whatif.simulation.rank_programs import ANY, Kind, RankProgram, Trace
from whatif.units import crossed

MOST_DIMENSIONS: Final = 3
_MESSAGES: Final = (Kind.SEND, Kind.RECEIVE, Kind.ISEND, Kind.IRECEIVE)
_FIRST, _MIDDLE, _LAST = 0, 1, 2

Extents = tuple[int, ...]
Numbers = NDArray[np.int64]


def extrapolate(trace: Trace, rank_count: int) -> Trace:
    """The trace that the same program would leave on `rank_count` ranks; ranks of a class share a relative program.

    The extents of the new grid are those of MPI_Dims_create, the largest where the traced grid has its largest.
    UsageError: not regular (with the rank and the operation), or a grid that has ranks such as the traced one does not
    have.
    """
    if not 1 <= rank_count <= MOST_RANKS or not trace.rank_count:
        raise UsageError(
            f"cannot extrapolate {trace.rank_count} ranks to {rank_count}: from 1 to {MOST_RANKS} are possible"
        )
    programs = [_checked(trace, rank) for rank in range(trace.rank_count)]
    found = _grid(programs)
    extents = _new_extents(found.extents, rank_count)
    _refuse_flat(programs, extents)
    places, _ = _places(extents)
    distinct, first, program_of = np.unique(places, return_index=True, return_inverse=True)
    made = [_made(found, int(place), int(rank), extents) for place, rank in zip(distinct, first, strict=True)]
    source = f"from {trace.rank_count} ranks ({crossed(found.extents)}) to {rank_count} ({crossed(extents)})"
    return Trace(tuple(made), program_of.ravel().astype(np.int32), notes={**dict(trace.notes), "extrapolated": source})


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Grid whose cells are the ranks of a trace."""

    extents: Extents
    steps: tuple[RankProgram, ...]
    """[rank]: its program, with the codes of displacements in place of peers."""
    keys: tuple[bytes, ...]
    """[rank]: equal for programs that do the same, seen from their cells."""
    places: Numbers
    """[rank]: the code of its place: first, middle or last in each dimension."""


def _checked(trace: Trace, rank: int) -> RankProgram:
    """The program of a rank with relative peers. UsageError: something that cannot be extrapolated."""
    program = trace.programs[trace.program_of[rank]]
    is_message = np.isin(program.kind, _MESSAGES)
    collective = IS_COLLECTIVE[program.kind]
    _refuse(rank, program, is_message & (program.peer == ANY) & (not program.relative), "receives from any rank")
    _refuse(rank, program, collective & (program.tag != 0), "is a collective of some ranks only")
    _refuse(rank, program, collective & (program.peer != 0), "is a collective with a root other than rank 0")
    return _sorted_waits(_as_relative(program, rank, trace.rank_count))


def _refuse(rank: int, program: RankProgram, wrong: NDArray[np.bool_], reason: str) -> None:
    if wrong.any():
        place = int(wrong.argmax())
        raise UsageError(f"not regular: rank {rank}, operation {place} ({Kind(program.kind[place]).name}) {reason}")


def _grid(programs: list[RankProgram]) -> _Grid:
    """The grid of the fewest dimensions, then directions, on which the ranks of a class do the same."""
    rank_count = len(programs)
    distances = [np.unique(program.peer[np.isin(program.kind, _MESSAGES)]) for program in programs]
    source = np.repeat(np.arange(rank_count), [len(own) for own in distances])
    target = (source + np.concatenate(distances)) % rank_count
    fitting: list[tuple[int, int, Extents]] = []
    failed: list[tuple[int, str]] = []
    for extents in _factorisations(rank_count):
        if extents.count(2) > 1 and len(extents) > 2:
            continue  # Too small to distinguish neighbours from other ranks.
        displacement = _displacement(extents, source, target)
        far = np.flatnonzero((abs(displacement) > 1).any(axis=0))
        if len(far):
            reason = _no_neighbour(programs, int(source[far[0]]), int(target[far[0]]))
            failed.append((len(np.unique(source[far])), reason))
        else:
            fitting.append((len(np.unique(displacement, axis=1).T), len(extents), extents))
    for _, _, extents in sorted(fitting):
        grid = _on(extents, programs)
        exceptions = _exceptions(grid)
        if not exceptions:
            return grid
        failed.append((len(exceptions), _unlike(grid, programs, *exceptions[0])))
    raise UsageError(min(failed)[1])


def _factorisations(number: int, most: int = MOST_DIMENSIONS) -> Iterator[Extents]:
    """All extents of grids of a number of ranks, at least 2 in each of several dimensions."""
    yield (number,)
    if most > 1:
        for factor in divisors(number)[1:-1]:
            yield from ((factor, *rest) for rest in _factorisations(number // factor, most - 1))


def _displacement(extents: Extents, source: Numbers, target: Numbers) -> Numbers:
    """Cells between sender and target [dimension, pair]; around the rim if that is one cell."""
    moved = np.stack(np.unravel_index(target, extents)) - np.stack(np.unravel_index(source, extents))
    around = np.array(extents)[:, np.newaxis] - 1
    return np.where((abs(moved) == around) & (around > 1), -np.sign(moved), moved)


def _places(extents: Extents) -> tuple[Numbers, Numbers]:
    """The code of the place of each rank, and the places [dimension, rank]: first, middle or last."""
    cells = np.stack(np.unravel_index(np.arange(prod(extents)), extents))
    last = np.array(extents)[:, np.newaxis] - 1
    parts = np.where(cells == 0, _FIRST, np.where(cells == last, _LAST, _MIDDLE))
    return np.ravel_multi_index(tuple(parts), (3,) * len(extents)), parts


def _on(extents: Extents, programs: list[RankProgram]) -> _Grid:
    steps = []
    for rank, program in enumerate(programs):
        is_message = np.isin(program.kind, _MESSAGES)
        target = np.where(is_message, (rank + program.peer.astype(np.int64)) % len(programs), rank)
        moved = _displacement(extents, np.full_like(target, rank), target) + 1
        code = np.ravel_multi_index(tuple(moved), (3,) * len(extents))
        steps.append(replace(program, peer=np.where(is_message, code, 0).astype(np.int32)))
    keys = tuple(_digest(step) for step in steps)
    return _Grid(extents, tuple(steps), keys, _places(extents)[0])


def _exceptions(grid: _Grid) -> list[tuple[int, int]]:
    """Ranks that do something else than most at the same place of a grid, each with one of those."""
    members: dict[int, list[int]] = {}
    for rank, place in enumerate(grid.places.tolist()):
        members.setdefault(place, []).append(rank)
    found = []
    for ranks in members.values():
        usual = Counter(grid.keys[rank] for rank in ranks).most_common(1)[0][0]
        leader = next(rank for rank in ranks if grid.keys[rank] == usual)
        found += [(rank, leader) for rank in ranks if grid.keys[rank] != usual]
    return found


def _unlike(grid: _Grid, programs: list[RankProgram], rank: int, leader: int) -> str:
    difference = _difference(grid, programs, leader, rank)
    return f"not regular: {difference}, at the same place of a grid of {crossed(grid.extents)}"


def _difference(grid: _Grid, programs: list[RankProgram], one: int, other: int) -> str:
    """Description of the first operation in which two ranks differ."""
    first, second = grid.steps[one], grid.steps[other]
    length = min(len(first), len(second))
    differ = np.zeros(length, dtype=np.bool_)
    for name in ("kind", "peer", "tag"):
        differ |= getattr(first, name)[:length] != getattr(second, name)[:length]
    differ |= (first.size[:length] != second.size[:length]) & (first.kind[:length] != Kind.COMPUTE)
    if not differ.any() and len(first) == len(second):
        return f"ranks {one} and {other} differ in what their operations wait for"
    place = int(differ.argmax()) if differ.any() else length
    return " differs from ".join(_told(programs, rank, place) for rank in (other, one))


def _told(programs: list[RankProgram], rank: int, place: int) -> str:
    program = programs[rank]
    if place >= len(program):
        return f"rank {rank}, which ends after operation {place - 1}"
    kind, size = Kind(program.kind[place]), f"{program.size[place]:.6g} B"
    peer = (rank + int(program.peer[place])) % len(programs)
    what = f"{kind.name} {size}, rank {peer}" if kind in _MESSAGES else kind.name
    return f"rank {rank}, operation {place} ({what})"


def _no_neighbour(programs: list[RankProgram], rank: int, peer: int) -> str:
    program = programs[rank]
    reached = (rank + program.peer.astype(np.int64)) % len(programs) == peer
    place = int((np.isin(program.kind, _MESSAGES) & reached).argmax())
    return (
        f"not regular: {_told(programs, rank, place)}: on no grid of up to {MOST_DIMENSIONS} dimensions are all "
        "messages between neighbours (a dimension needs 3 ranks or more)"
    )


def _new_extents(traced: Extents, rank_count: int) -> Extents:
    balanced = balanced_extents(rank_count, len(traced))
    # If the first dimension varies fastest in the numbering of the ranks, the largest extent is the last one.
    numbered = range(len(traced))[:: -1 if traced[0] < traced[-1] else 1]
    by_extent = sorted(numbered, key=lambda dimension: -traced[dimension])
    return tuple(balanced[by_extent.index(dimension)] for dimension in range(len(traced)))


def _refuse_flat(programs: list[RankProgram], extents: Extents) -> None:
    """A rank alone in a dimension is first and last in it, as no rank of a traced grid is."""
    if min(extents) == 1 and any(np.isin(program.kind, _MESSAGES).any() for program in programs):
        raise UsageError(f"{prod(extents)} ranks make a grid of {crossed(extents)}, with one rank along a dimension")


def _made(grid: _Grid, place: int, rank: int, extents: Extents) -> RankProgram:
    """Program of a class on the new grid; `rank` is one of the class."""
    members = np.flatnonzero(grid.places == place)
    if len(set(grid.keys)) == 1:
        members = np.arange(len(grid.keys))
    if not len(members):
        raise UsageError(
            f"cannot extrapolate a grid of {crossed(grid.extents)} to {crossed(extents)}: no traced rank has "
            "neighbours as some would have there; trace at least 3 ranks along each dimension"
        )
    step = grid.steps[int(members[0])]
    is_message = np.isin(step.kind, _MESSAGES)
    moved = np.stack(np.unravel_index(np.where(is_message, step.peer, 0), (3,) * len(extents))) - 1
    own = np.stack(np.unravel_index(rank, extents))[:, np.newaxis]
    cells = (own + moved) % np.array(extents)[:, np.newaxis]
    distance = np.ravel_multi_index(tuple(cells), extents) - rank
    size = _mean_size(np.stack([grid.steps[member].size for member in members]))
    return replace(
        step,
        peer=np.where(is_message, distance, 0).astype(np.int32),
        size=np.where(step.kind == Kind.COMPUTE, size, step.size),
    )


def _as_relative(program: RankProgram, rank: int, rank_count: int) -> RankProgram:
    """Program of a rank with relative peers, from -P/2 to below P/2; unchanged if it receives from `ANY`."""
    is_message = np.isin(program.kind, _MESSAGES)
    if not program.relative and (is_message & (program.peer == ANY)).any():
        return program
    half = rank_count // 2
    distance = program.peer.astype(np.int64) - (0 if program.relative else rank)
    peer = np.where(is_message, (distance + half) % rank_count - half, program.peer).astype(np.int32)
    return replace(program, peer=peer, relative=True)


def _sorted_waits(program: RankProgram) -> RankProgram:
    """Program with the waits of each operation in a fixed order, so that equal sets are equal lists."""
    program = replace(program, waits=_sorted_lists(program.wait_start, program.waits))
    if program.started_start is None or program.started is None:
        return program
    return replace(program, started=_sorted_lists(program.started_start, program.started))


def _sorted_lists(start: Numbers, values: NDArray[np.int32]) -> NDArray[np.int32]:
    return values[np.lexsort((values, np.repeat(np.arange(len(start) - 1), np.diff(start))))]


def _digest(program: RankProgram) -> bytes:
    """Digest of a program without the durations of its computations."""
    found = blake2b(repr((program.loops, program.sequential, program.relative)).encode(), digest_size=16)
    lists = (program.wait_start, program.waits, program.started_start, program.started, program.processor)
    size = np.where(program.kind == Kind.COMPUTE, 0.0, program.size)
    for column in (program.kind, program.peer, size, program.tag, *lists):
        found.update(b"none" if column is None else np.ascontiguousarray(column).view(np.uint8).data)
        found.update(b";")
    return found.digest()


def _mean_size(sizes: FloatArray) -> FloatArray:
    """Mean over the first axis; exact where all values are equal, as a sum would round."""
    mean: FloatArray = sizes[0] + (sizes - sizes[0]).mean(axis=0)
    return mean
