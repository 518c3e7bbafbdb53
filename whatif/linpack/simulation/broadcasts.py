"""Broadcast of a panel along a process row: senders and receivers, by distance from the column that factored it.

Source: the structure of HPL 2.2, HPL_{1ring,1rinM,2ring,2rinM,blong,blonM}.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whatif.linpack.simulation.configuration import Broadcast
from whatif.linpack.simulation.rolling import roll_pairs, spread_pairs
from whatif.models.quantities import IntArray


class Paths(NamedTuple):
    """Messages of one broadcast over `Q` processes."""

    targets: IntArray
    """[distance, 3]: targets of each process in order, of rings and as first message of `LONG_MODIFIED`; -1: none."""
    sources: IntArray
    """[distance]: source of that message; -1: none."""
    spread: IntArray
    """[message, 4]: sender, receiver, first chunk, chunk behind the last; of the long ones."""
    roll: IntArray
    """[exchange, 4]: two processes and the chunk that each sends the other; in a feasible order."""
    chunk_count: int
    """Chunks that a long broadcast, which all wait for, divides the panel into; 0: a ring."""


def paths_of(broadcast: Broadcast, count: int) -> Paths:
    """The messages of a broadcast over `count` processes."""
    targets = np.full((count, 3), -1, dtype=np.int64)
    for place, its in enumerate(_targets(broadcast, count)):
        targets[place, : len(its)] = its
    sources = np.full(count, -1, dtype=np.int64)
    for place in range(count):
        for target in targets[place]:
            if target >= 0:
                sources[target] = place
    members = _members(broadcast, count)
    spread, roll = spread_pairs(len(members)), roll_pairs(len(members))
    for columns in (spread, roll):
        columns[:, :2] = members[columns[:, :2]]
    is_long = broadcast in (Broadcast.LONG, Broadcast.LONG_MODIFIED)
    return Paths(targets, sources, spread, roll, max(len(members), 1) if is_long else 0)


def _members(broadcast: Broadcast, count: int) -> IntArray:
    """Processes that spread and roll; `LONG_MODIFIED` leaves out the one that factors the next panel."""
    everyone = np.arange(count)
    if broadcast is Broadcast.LONG:
        return everyone
    if broadcast is Broadcast.LONG_MODIFIED and count > 2:
        return np.delete(everyone, 1)
    return everyone[:0]


def _targets(broadcast: Broadcast, count: int) -> list[list[int]]:
    if count == 1 or broadcast is Broadcast.LONG:
        return [[] for _ in range(count)]
    if broadcast is Broadcast.LONG_MODIFIED:
        return [[1]] + [[] for _ in range(count - 1)]
    middle = (count + 1) // 2 if broadcast in (Broadcast.TWO_RING, Broadcast.TWO_RING_MODIFIED) else count
    modified = broadcast in (Broadcast.RING_MODIFIED, Broadcast.TWO_RING_MODIFIED)
    root = dict.fromkeys([1, *([2] if modified else []), *([middle] if middle < count else [])])
    targets = [[place for place in root if place < count]]
    for place in range(1, count):
        last = place + 1 in (count, middle) or (modified and place == 1)
        targets.append([] if last else [place + 1])
    return targets
