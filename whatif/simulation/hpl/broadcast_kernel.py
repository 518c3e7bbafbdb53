"""The broadcast of a panel along one process row that waits for nothing else, compiled.

`clock` is [distance] from the process that has the panel: when each is ready to take it. Messages of a ring follow
one another at each process; the long broadcasts synchronise, as HPL's MPI_Ssend does.
"""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import deliver, piece_of, swap_synchronously, wire_time


def broadcast_row(
    clock: FloatArray, nodes: IntArray, gaps: FloatArray, size: float, targets: IntArray, spread: IntArray,
    roll: IntArray, chunk_count: int, pieces: FloatArray, limits: FloatArray,
) -> None:  # fmt: skip
    """Advance the clocks of a process row over the broadcast of `size` bytes; `gaps` are those of each adapter."""
    synchronous, nothing = chunk_count > 0, np.zeros(2)
    for place in range(len(clock)):
        for number in range(3):
            target = targets[place, number]
            if target >= 0:
                far = 1 if nodes[place] != nodes[target] else 0
                gap = max(gaps[place], gaps[target]) if far else 0.0
                limit = nothing if synchronous else limits[far]
                clock[place], clock[target] = deliver(clock[place], clock[target], size, pieces[far], limit, gap)
    if synchronous:
        broadcast_long(clock, nodes, gaps, size, spread, roll, chunk_count, pieces)


def broadcast_long(
    clock: FloatArray, nodes: IntArray, gaps: FloatArray, size: float, spread: IntArray, roll: IntArray,
    chunk_count: int, pieces: FloatArray,
) -> None:  # fmt: skip
    """Scatter chunks of the panel along a tree, then roll them round."""
    words = size / 8.0
    chunk = max(words // chunk_count, 1.0)
    for message in spread:
        a, b = message[0], message[1]
        first = min(message[2] * chunk, words)
        last = words if message[3] == chunk_count else min(message[3] * chunk, words)
        far = 1 if nodes[a] != nodes[b] else 0
        gap = max(gaps[a], gaps[b]) if far else 0.0
        there = 8.0 * (last - first)
        end = max(clock[a], clock[b]) + wire_time(pieces[far], piece_of(pieces[far], there), there, gap)
        clock[a], clock[b] = end, end
    for pair in roll:
        a, b = pair[0], pair[1]
        far = 1 if nodes[a] != nodes[b] else 0
        gap = max(gaps[a], gaps[b]) if far else 0.0
        there = chunk_size(pair[2], chunk, chunk_count, words)
        back = chunk_size(pair[3], chunk, chunk_count, words)
        clock[a], clock[b] = swap_synchronously(clock[a], clock[b], there, back, pieces[far], gap)


def chunk_size(number: int, chunk: float, chunk_count: int, words: float) -> float:
    """Bytes of one chunk; the last one has the rest."""
    first = min(number * chunk, words)
    last = words if number == chunk_count - 1 else min((number + 1) * chunk, words)
    return 8.0 * (last - first)
