"""Patterns as traces, also one after another: what their ranks do, in a few programs that they share, for the replay.

Peers are relative, so that a program serves all ranks at the same place of the pattern: in the middle, at an edge, ..
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import GridPattern, message_kinds
from whatif.models.quantities import FloatArray
from whatif.simulation.collective_stages import Stage, contributed
from whatif.simulation.communicators import IS_COLLECTIVE
from whatif.simulation.rank_programs import Kind, Loop, RankProgram, Trace

Operation = tuple[Kind, int, float, int]
"""Kind, peer, size and tag."""


def collective_trace(kind: Kind, rank_count: int, message_size: float) -> Trace:
    """A collective of all ranks with root 0, one program for all; `message_size` is the B that one rank contributes.

    `lower` expands it by the algorithm that it is given.
    """
    return Trace((_program([(kind, 0, message_size, 0)]),), np.zeros(rank_count, dtype=np.int32))


def work_trace(time: float, rank_count: int) -> Trace:
    """Computation of the same `time` in s on every rank."""
    return Trace((_program([(Kind.COMPUTE, 0, time, 0)]),), np.zeros(rank_count, dtype=np.int32))


def staged_trace(stages: Sequence[Stage], rank_count: int, buffer_size: float) -> Trace:
    """The stages of a collective one after the other, each in all of its groups at once; the first rank is the root."""
    ranks, communicators = np.arange(rank_count), [np.empty(0, dtype=np.int32)]
    tags = np.zeros((rank_count, len(stages)), dtype=np.int32)
    for column, stage in enumerate(stages):
        if stage.size < rank_count:
            group = ranks // (stage.size * stage.stride) * stage.stride + ranks % stage.stride
            tags[:, column] = len(communicators) + group
            order = np.argsort(group, kind="stable").astype(np.int32)
            communicators += list(order.reshape(-1, stage.size))
    distinct, which = np.unique(tags, axis=0, return_inverse=True)
    programs = [
        _program([_call(stage, tag, communicators, buffer_size) for stage, tag in zip(stages, row, strict=True)])
        for row in distinct.tolist()
    ]
    return Trace(tuple(programs), which.ravel().astype(np.int32), tuple(communicators))


def _call(stage: Stage, communicator: int, members: Sequence[NDArray[np.int32]], buffer_size: float) -> Operation:
    """A collective of a communicator, whose first rank is the root; communicator 0 has all ranks."""
    size = contributed(stage.kind, stage.share * buffer_size, stage.size)
    return stage.kind, int(members[communicator][0]) if communicator else 0, size, communicator


def all_to_all_trace(rank_count: int, message_size: float) -> Trace:
    """An all-to-all in which each rank posts all receives, then all sends, to the next rank first; one program."""
    receives = [(Kind.IRECEIVE, -step, message_size, 0) for step in range(1, rank_count)]
    sends = [(Kind.ISEND, step, message_size, 0) for step in range(1, rank_count)]
    return Trace((_program([*receives, *sends]),), np.zeros(rank_count, dtype=np.int32))


def halo_trace(
    pattern: GridPattern, message_sizes: FloatArray | float, *, iteration_count: int = 1, compute_time: float = 0.0
) -> Trace:
    """Halo exchanges, each after `compute_time` s of work: all receives, all sends, a wait for all.

    `message_sizes` are the B of a message, one number or one a kind (`patterns.message_kinds`). Messages are posted in
    the order of `pattern.messages()`, tagged by their direction. A program for each set of relative neighbours.
    """
    kinds = message_kinds(len(pattern.dims), pattern.neighbours)
    sizes = np.broadcast_to(np.asarray(message_sizes, dtype=np.float64), len(kinds))
    target, of_kind, opposite = _neighbours(pattern, len(kinds))
    distinct, which = np.unique(target, axis=0, return_inverse=True)
    work = [(Kind.COMPUTE, 0, compute_time, 0)] if compute_time else []
    programs = []
    for row in distinct:
        there = [direction for direction, distance in enumerate(row.tolist()) if distance]
        size = [float(sizes[of_kind[direction]]) for direction in range(len(row))]
        receives = [(Kind.IRECEIVE, int(row[at]), size[at], opposite[at]) for at in there]
        sends = [(Kind.ISEND, int(row[at]), size[at], at) for at in there]
        programs.append(_program([*work, *receives, *sends], iteration_count))
    return Trace(tuple(programs), which.ravel().astype(np.int32))


def _neighbours(pattern: GridPattern, kind_count: int) -> tuple[NDArray[np.int32], list[int], list[int]]:
    """Distance to the neighbour in each direction [rank, direction], 0 for none; the kinds and opposites of these.

    Distances are modulo the rank count. A kind of d dimensions has 2^d directions; the opposite of the first is the
    last of them, and so on.
    """
    columns, of_kind = [], []
    for kind, sender, receiver in pattern.messages():
        distance = np.zeros(pattern.rank_count, dtype=np.int32)
        distance[sender] = (receiver - sender) % pattern.rank_count
        columns.append(distance)
        of_kind.append(kind)
    counts = [of_kind.count(kind) for kind in range(kind_count)]
    opposite = [2 * of_kind.index(kind) + counts[kind] - 1 - at for at, kind in enumerate(of_kind)]
    return np.stack(columns, axis=1), of_kind, opposite


def _program(steps: Iterable[Operation], count: int = 1) -> RankProgram:
    """Operations that run `count` times, with a wait at the end for those that return at once."""
    operations = list(steps)
    pending = [len(operations) - at for at, step in enumerate(operations) if step[0] in {Kind.ISEND, Kind.IRECEIVE}]
    if pending:
        operations.append((Kind.WAIT, 0, 0.0, 0))
    kind, peer, size, tag = zip(*operations, strict=True) if operations else ((), (), (), ())
    wait_start = np.zeros(len(operations) + 1, dtype=np.int64)
    wait_start[-1] = len(pending)
    return RankProgram(
        kind=np.array(kind, dtype=np.uint8),
        peer=np.array(peer, dtype=np.int32),
        size=np.array(size, dtype=np.float64),
        tag=np.array(tag, dtype=np.int32),
        wait_start=wait_start,
        waits=np.array(pending, dtype=np.int32),
        loops=(Loop(0, len(operations), count),) if count > 1 and operations else (),
        relative=True,
    )


Communicators = tuple[NDArray[np.int32], ...]


def concatenated(traces: Sequence[Trace]) -> Trace:
    """Traces of the same ranks, one after another; their programs must all be relative and without loops."""
    communicators: Communicators = (np.empty(0, dtype=np.int32),)
    numbered = []
    for trace in traces:
        numbered.append([_renumbered(program, len(communicators) - 1) for program in trace.programs])
        communicators += trace.communicators[1:]
    choices = np.stack([trace.program_of for trace in traces], axis=1)
    distinct, which = np.unique(choices, axis=0, return_inverse=True)
    programs = [
        _concatenated([own[number] for own, number in zip(numbered, row, strict=True)]) for row in distinct.tolist()
    ]
    return Trace(tuple(programs), which.ravel().astype(np.int32), communicators)


def _renumbered(program: RankProgram, before: int) -> RankProgram:
    """Program whose communicators are numbered after `before` others; the world stays 0."""
    moved = IS_COLLECTIVE[program.kind] & (program.tag > 0)
    return replace(program, tag=np.where(moved, program.tag + before, program.tag).astype(np.int32))


def _concatenated(parts: Sequence[RankProgram]) -> RankProgram:
    ends = list(accumulate((len(part.waits) for part in parts), initial=0))
    starts = [part.wait_start[:-1] + first for part, first in zip(parts, ends, strict=False)]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("kind", "peer", "size", "tag", "waits")
    }
    wait_start = np.concatenate([*starts, [ends[-1]]]).astype(np.int64)
    return RankProgram(**columns, wait_start=wait_start, relative=True)


def repeated(trace: Trace, count: int) -> Trace:
    """Trace whose programs run `count` times."""
    if count == 1:
        return trace
    programs = (replace(program, loops=(Loop(0, len(program), count),)) for program in trace.programs)
    return replace(trace, programs=tuple(programs))
