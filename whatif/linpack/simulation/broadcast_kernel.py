"""The broadcast of a panel along one process row that waits for nothing else, compiled.

`row` is [4, distance] from the process that has the panel: when each is ready to take it, its node, the time per byte
that its adapter leaves it, and, found here, when it had taken it, which is before it passed it on. Messages of a ring
follow one another at each process; those of the long broadcasts are synchronous, as HPL's MPI_Ssend.
"""

from __future__ import annotations

from typing import Any

from whatif.linpack.simulation.costs import deliver, mode_factor, piece_of, wire_of, wire_time
from whatif.models.quantities import FloatArray, IntArray


def broadcast_row(
    row: FloatArray, size: float, targets: IntArray, spread: IntArray, roll: IntArray, chunk_count: int,
    chunks: FloatArray, pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """Advance the clocks of a process row over the broadcast of `size` bytes; `chunks` is room for `charge_chunks`."""
    for place in range(row.shape[1]):
        for number in range(3):
            target = targets[place, number]
            if target >= 0 and chunk_count > 0:
                hand_over(row, place, target, size, pieces, random)
            elif target >= 0:
                far = 1 if row[1, place] != row[1, target] else 0
                gap = max(row[2, place], row[2, target])
                row[0, place], row[0, target] = deliver(row[0, place], row[0, target], size, pieces, far, gap, random)
                row[3, target] = row[0, target]
    if chunk_count > 1:
        broadcast_long(row, size, spread, roll, chunk_count, chunks, pieces, random)


def hand_over(row: FloatArray, a: int, b: int, size: float, pieces: FloatArray, random: Any) -> None:
    """One synchronous message."""
    far = 1 if row[1, a] != row[1, b] else 0
    piece = piece_of(pieces, far, size)
    wire = wire_of(pieces, far, piece, size, max(row[2, a], row[2, b])) * mode_factor(pieces, far, piece, random)
    end = max(row[0, a], row[0, b]) + wire
    row[0, a], row[0, b] = end, end
    row[3, b] = end


def broadcast_long(
    row: FloatArray, size: float, spread: IntArray, roll: IntArray, chunk_count: int, chunks: FloatArray,
    pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """Scatter chunks of the panel along a tree, then roll them round."""
    for at in range(spread.shape[0]):
        there = chunk_bytes(spread[at, 2], spread[at, 3], size, chunk_count)
        hand_over(row, spread[at, 0], spread[at, 1], there, pieces, random)
    charge_chunks(size, chunk_count, chunks, pieces)
    for at in range(roll.shape[0]):
        a, b, there, back = roll[at, 0], roll[at, 1], roll[at, 2], roll[at, 3]
        far = 1 if row[1, a] != row[1, b] else 0
        wire = max(chunks[there, far], chunks[back, far])
        if far:
            gap = max(row[2, a], row[2, b])
            wire = max(wire, chunks[there, 4] + chunks[there, 5] * gap, chunks[back, 4] + chunks[back, 5] * gap)
        wire *= mode_factor(pieces, far, piece_of(pieces, far, chunks[there, 5]), random)
        end = max(row[0, a], row[0, b]) + max(chunks[there, 2 + far], chunks[back, 2 + far]) + wire
        row[0, a], row[0, b] = end, end


def charge_chunks(size: float, chunk_count: int, chunks: FloatArray, pieces: FloatArray) -> None:
    """[chunk, 6]: wire, local and remote; sending, local and remote; remote latency, and size."""
    for chunk in range(chunk_count):
        its = chunk_bytes(chunk, chunk + 1, size, chunk_count)
        for far in range(2):
            chunks[chunk, far] = wire_time(pieces, far, its, 0.0)
            chunks[chunk, 2 + far] = pieces[far, piece_of(pieces, far, its), 3]
        chunks[chunk, 4], chunks[chunk, 5] = pieces[1, piece_of(pieces, 1, its), 1], its


def chunk_bytes(first: int, behind: int, size: float, chunk_count: int) -> float:
    """Bytes of chunks [first, behind); the last one has the rest."""
    chunk = max(size / 8.0 // chunk_count, 1.0) * 8.0
    end = size if behind == chunk_count else min(behind * chunk, size)
    return max(end - first * chunk, 0.0)
