"""The broadcast of a panel along one process row without look-ahead, compiled.

`row` is [4, distance] from the process that has the panel: the time when each is ready to receive it, its node, the
time per byte of its share of the adapter, and, as result, the end of its receive, before it passes the panel on.
Messages of a ring follow one another at each process; those of the long broadcasts are synchronous, as HPL's MPI_Ssend.
"""

from __future__ import annotations

from typing import Any

from whatif.linpack.simulation.costs import (
    PIECE_LATENCY,
    PIECE_SEND,
    REMOTE,
    deliver,
    mode_factor,
    piece_of,
    wire_of,
    wire_time,
)
from whatif.linpack.simulation.layout import (
    CHUNK_LATENCY,
    CHUNK_SEND,
    CHUNK_SIZE,
    CHUNK_WIRE,
    CHUNKS_END,
    CHUNKS_FIRST,
    CHUNKS_RECEIVER,
    CHUNKS_SENDER,
    ROLL_BACK,
    ROLL_FIRST,
    ROLL_SECOND,
    ROLL_THERE,
    ROW_CLOCK,
    ROW_GAP,
    ROW_NODE,
    ROW_TAKEN,
    TARGETS,
)
from whatif.models.quantities import FloatArray, IntArray


def broadcast_row(
    row: FloatArray, size: float, targets: IntArray, spread: IntArray, roll: IntArray, chunk_count: int,
    chunks: FloatArray, pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """Advance the clocks of a process row over the broadcast of `size` bytes; `chunks` is room for `charge_chunks`."""
    for place in range(row.shape[1]):
        for number in range(TARGETS):
            target = targets[place, number]
            if target >= 0 and chunk_count > 0:
                hand_over(row, place, target, size, pieces, random)
            elif target >= 0:
                far = 1 if row[ROW_NODE, place] != row[ROW_NODE, target] else 0
                gap = max(row[ROW_GAP, place], row[ROW_GAP, target])
                row[ROW_CLOCK, place], row[ROW_CLOCK, target] = deliver(
                    row[ROW_CLOCK, place], row[ROW_CLOCK, target], size, pieces, far, gap, random
                )
                row[ROW_TAKEN, target] = row[ROW_CLOCK, target]
    if chunk_count > 1:
        broadcast_long(row, size, spread, roll, chunk_count, chunks, pieces, random)


def hand_over(row: FloatArray, a: int, b: int, size: float, pieces: FloatArray, random: Any) -> None:
    """One synchronous message."""
    far = 1 if row[ROW_NODE, a] != row[ROW_NODE, b] else 0
    piece = piece_of(pieces, far, size)
    wire = wire_of(pieces, far, piece, size, max(row[ROW_GAP, a], row[ROW_GAP, b])) * mode_factor(
        pieces, far, piece, random
    )
    end = max(row[ROW_CLOCK, a], row[ROW_CLOCK, b]) + wire
    row[ROW_CLOCK, a], row[ROW_CLOCK, b] = end, end
    row[ROW_TAKEN, b] = end


def broadcast_long(
    row: FloatArray, size: float, spread: IntArray, roll: IntArray, chunk_count: int, chunks: FloatArray,
    pieces: FloatArray, random: Any,
) -> None:  # fmt: skip
    """Scatter chunks of the panel along a tree, then roll them round."""
    for at in range(spread.shape[0]):
        there = chunk_bytes(spread[at, CHUNKS_FIRST], spread[at, CHUNKS_END], size, chunk_count)
        hand_over(row, spread[at, CHUNKS_SENDER], spread[at, CHUNKS_RECEIVER], there, pieces, random)
    charge_chunks(size, chunk_count, chunks, pieces)
    for at in range(roll.shape[0]):
        a, b, there, back = roll[at, ROLL_FIRST], roll[at, ROLL_SECOND], roll[at, ROLL_THERE], roll[at, ROLL_BACK]
        far = 1 if row[ROW_NODE, a] != row[ROW_NODE, b] else 0
        wire = max(chunks[there, CHUNK_WIRE + far], chunks[back, CHUNK_WIRE + far])
        if far:
            gap = max(row[ROW_GAP, a], row[ROW_GAP, b])
            wire = max(
                wire,
                chunks[there, CHUNK_LATENCY] + chunks[there, CHUNK_SIZE] * gap,
                chunks[back, CHUNK_LATENCY] + chunks[back, CHUNK_SIZE] * gap,
            )
        wire *= mode_factor(pieces, far, piece_of(pieces, far, chunks[there, CHUNK_SIZE]), random)
        end = (
            max(row[ROW_CLOCK, a], row[ROW_CLOCK, b])
            + max(chunks[there, CHUNK_SEND + far], chunks[back, CHUNK_SEND + far])
            + wire
        )
        row[ROW_CLOCK, a], row[ROW_CLOCK, b] = end, end


def charge_chunks(size: float, chunk_count: int, chunks: FloatArray, pieces: FloatArray) -> None:
    """[chunk, 6]: wire, local and remote; sending, local and remote; remote latency, and size."""
    for chunk in range(chunk_count):
        its = chunk_bytes(chunk, chunk + 1, size, chunk_count)
        for far in range(2):
            chunks[chunk, CHUNK_WIRE + far] = wire_time(pieces, far, its, 0.0)
            chunks[chunk, CHUNK_SEND + far] = pieces[far, piece_of(pieces, far, its), PIECE_SEND]
        chunks[chunk, CHUNK_LATENCY] = pieces[REMOTE, piece_of(pieces, REMOTE, its), PIECE_LATENCY]
        chunks[chunk, CHUNK_SIZE] = its


def chunk_bytes(first: int, behind: int, size: float, chunk_count: int) -> float:
    """Bytes of chunks [first, behind); the last one has the rest."""
    chunk = max(size / 8.0 // chunk_count, 1.0) * 8.0
    end = size if behind == chunk_count else min(behind * chunk, size)
    return max(end - first * chunk, 0.0)
