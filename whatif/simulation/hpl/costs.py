"""What kernels and messages of HPL cost: plain functions of numbers, compiled with the loops that call them.

Matrix kernels are rows of five coefficients (1, M N K, M N, M K, N K), kernels with one size S rows of two (1, S), each
followed by those of the standard deviation. A call lasts T + sd (|z| - sqrt(2/pi)) / sqrt(1 - 2/pi) with z normal:
half-normal noise that keeps the mean (Cornebize et al. 2019, section 6.1, N-2).

Messages: [piece, column] of one distance, with the columns of `Column`, and two `limits`. A message below the first
leaves at once, one below the second when its receive is posted, while its sender goes on; a larger one (rendezvous)
when both sides are ready, and keeps both until it has arrived.
"""

from __future__ import annotations

from enum import IntEnum
from math import pi, sqrt
from typing import Any, Final

from whatif.models.quantities import FloatArray


class Column(IntEnum):
    """Columns of a table of pieces."""

    SMALLEST_SIZE = 0
    LATENCY = 1
    PER_BYTE = 2
    SEND = 3
    SEND_PER_BYTE = 4
    RECEIVE = 5
    RECEIVE_PER_BYTE = 6


SPREAD: Final = 1 / sqrt(1 - 2 / pi)
SHIFT: Final = SPREAD * sqrt(2 / pi)


def matrix_time(
    matrix: FloatArray, factor: float, rows: float, columns: float, depth: float, noisy: bool, random: Any
) -> float:
    """Time of dgemm(M = rows, N = columns, K = depth) on a processor that takes `factor` times as long as the model."""
    mean, deviation = 0, 1
    if rows >= matrix[4, 0] and columns >= matrix[4, 1] and depth >= matrix[4, 2]:
        mean, deviation = 2, 3
    area, volume = rows * columns, rows * columns * depth
    time = _matrix(matrix, mean, volume, area, rows * depth, columns * depth)
    if noisy:
        time += _matrix(matrix, deviation, volume, area, rows * depth, columns * depth) * noise(random)
    return max(time, 0.0) * factor


def _matrix(matrix: FloatArray, row: int, mnk: float, mn: float, mk: float, nk: float) -> float:
    terms: float = matrix[row, 1] * mnk + matrix[row, 2] * mn + matrix[row, 3] * mk + matrix[row, 4] * nk
    return terms + float(matrix[row, 0])


def noise(random: Any) -> float:
    """A half-normal number with mean 0 and standard deviation 1."""
    return abs(random.standard_normal()) * SPREAD - SHIFT


def size_time(kernel: FloatArray, size: float, noisy: bool, random: Any) -> float:
    """Time of a kernel with one size."""
    time: float = kernel[0] + kernel[1] * size
    if noisy:
        time += (kernel[2] + kernel[3] * size) * noise(random)
    return max(time, 0.0)


def piece_of(pieces: FloatArray, size: float) -> int:
    """The piece that a size in bytes lies in."""
    piece = 0
    while piece + 1 < len(pieces) and size >= pieces[piece + 1, 0]:
        piece += 1
    return piece


def wire_time(pieces: FloatArray, piece: int, size: float, gap: float) -> float:
    """Latency and transfer; `gap` is the least time per byte that the node's adapter leaves to this message."""
    return float(pieces[piece, 1]) + size * max(float(pieces[piece, 2]), gap)


def deliver(sender: float, receiver: float, size: float, pieces: FloatArray, limits: FloatArray, gap: float) -> Any:
    """One message; the clocks of both sides afterwards."""
    piece = piece_of(pieces, size)
    wire = wire_time(pieces, piece, size, gap)
    if size >= limits[1]:
        end = max(sender, receiver) + wire
        return end, end
    sender += pieces[piece, 3] + size * pieces[piece, 4]
    start = sender if size < limits[0] else max(sender, receiver)
    return sender, max(receiver, start + wire) + pieces[piece, 5] + size * pieces[piece, 6]


def exchange(
    a: float, b: float, from_a: float, from_b: float, pieces: FloatArray, limits: FloatArray, gap: float
) -> tuple[float, float]:
    """HPL_sdrv: a message each way, the receives posted first; a size of 0 is no message. The clocks afterwards."""
    if from_b <= 0:
        if from_a <= 0:
            return a, b
        return deliver(a, b, from_a, pieces, limits, gap)  # type: ignore[no-any-return]
    if from_a <= 0:
        b, a = deliver(b, a, from_b, pieces, limits, gap)
        return a, b
    sent_a, at_b, taken_b = send_beside(a, b, from_a, pieces, limits, gap)
    sent_b, at_a, taken_a = send_beside(b, a, from_b, pieces, limits, gap)
    return max(sent_a, at_a) + taken_a, max(sent_b, at_b) + taken_b


def send_beside(sender: float, receiver: float, size: float, pieces: FloatArray, limits: FloatArray, gap: float) -> Any:
    """A message whose receive was posted: when the sender is free, when it arrives, and the receiver's work then."""
    piece = piece_of(pieces, size)
    wire = wire_time(pieces, piece, size, gap)
    if size >= limits[1]:
        end = max(sender, receiver) + wire
        return end, end, 0.0
    sent = sender + pieces[piece, 3] + size * pieces[piece, 4]
    start = sent if size < limits[0] else max(sent, receiver)
    return sent, start + wire, pieces[piece, 5] + size * pieces[piece, 6]


def swap_synchronously(
    a: float, b: float, from_a: float, from_b: float, pieces: FloatArray, gap: float
) -> tuple[float, float]:
    """Issend, receive, wait: a message each way that starts when both are ready, however small."""
    both = max(a, b)
    piece_a, piece_b = piece_of(pieces, from_a), piece_of(pieces, from_b)
    there, back = wire_time(pieces, piece_a, from_a, gap), wire_time(pieces, piece_b, from_b, gap)
    end = both + max(there, back) + max(pieces[piece_a, 3], pieces[piece_b, 3])
    return end, end
