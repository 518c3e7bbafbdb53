"""Graphs of operations, many ranks at a time: from lists of dependencies to programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from whatif.importers.text import refuse
from whatif.models.quantities import FloatArray
from whatif.simulation.rank_programs import RankProgram

Indices = NDArray[np.int64]
Dependencies = tuple[Indices, Indices]
"""Pairs of operations and those that depend on them, numbered over the ranks of a batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Operations of some ranks, rank after rank, in columns as `whatif.simulation.rank_programs.Program` has them."""

    start: Indices
    """[rank + 1]: where the operations of a rank begin."""
    kind: NDArray[np.uint8]
    peer: NDArray[np.int32]
    size: FloatArray
    tag: NDArray[np.int32]
    processor: NDArray[np.uint8]
    after: Dependencies
    after_started: Dependencies


def programs(file: str, batch: Batch, ranks: Sequence[int]) -> list[RankProgram]:
    """The program of each rank of a batch; raise `InvalidFileError` if operations wait for one another in a circle.

    `ranks` are their numbers, for the message.
    """
    _refuse_circles(file, batch, ranks)
    wait_starts, waits = _backward(batch, batch.after)
    has_started = len(batch.after_started[0]) > 0
    started_starts, started = _backward(batch, batch.after_started) if has_started else ([], [])
    has_processors = bool(batch.processor.any())
    bounds = batch.start.tolist()
    return [
        RankProgram(
            kind=batch.kind[start:end],
            peer=batch.peer[start:end],
            size=batch.size[start:end],
            tag=batch.tag[start:end],
            wait_start=wait_starts[number],
            waits=waits[number],
            started_start=started_starts[number] if has_started else None,
            started=started[number] if has_started else None,
            processor=batch.processor[start:end] if has_processors else None,
            sequential=False,
        )
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


def _backward(batch: Batch, dependencies: Dependencies) -> tuple[list[Indices], list[NDArray[np.int32]]]:
    """Ranges of dependencies and their distances in operations, for each rank."""
    first, then = dependencies
    order = np.argsort(then, kind="stable")
    distance = (then - first)[order].astype(np.int32)
    total = np.zeros(len(batch.kind) + 1, dtype=np.int64)
    np.cumsum(np.bincount(then, minlength=len(batch.kind)), out=total[1:])
    bounds, ends = batch.start.tolist(), total[batch.start].tolist()
    starts = [total[start : end + 1] - total[start] for start, end in pairwise(bounds)]
    return starts, [distance[start:end] for start, end in pairwise(ends)]


def _refuse_circles(file: str, batch: Batch, ranks: Sequence[int]) -> None:
    first = np.concatenate([batch.after[0], batch.after_started[0]])
    then = np.concatenate([batch.after[1], batch.after_started[1]])
    if (first < then).all():
        return  # each depends on earlier ones only
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    shape = (len(batch.kind), len(batch.kind))
    edges = coo_array((np.ones(len(first), dtype=np.int8), (first, then)), shape=shape)
    count, component = connected_components(edges, directed=True, connection="strong")
    circular = np.flatnonzero(np.bincount(component, minlength=count) > 1)
    circle = np.flatnonzero(np.isin(component, circular[:1])) if len(circular) else then[first == then]
    if len(circle):
        rank = int(np.searchsorted(batch.start, circle[0], side="right")) - 1
        own = (circle - batch.start[rank]).tolist()
        numbers = ", ".join(str(number + 1) for number in own[:5]) + (", .." if len(own) > 5 else "")
        raise refuse(file, f"rank {ranks[rank]}: operations wait for one another in a circle: number {numbers}")
