"""Costs of kernels and messages of HPL: plain functions of numbers, compiled with their callers.

Kernels are rows of one table, in the order of `KERNELS`. dgemm has five of coefficients of (1, M N K, M N, M K, N K):
mean and standard deviation, the same where it is offloaded, and the least M, N, K for that; every other kernel one row,
(1, S) of the mean and (1, S) of the deviation. A call lasts T + sd (|z| - sqrt(2/pi)) / sqrt(1 - 2/pi), z normal:
half-normal noise that keeps the mean, as in the code of Cornebize et al. 2019 (Ezibenroc/hpl, HPL_dgemm.c). Their
section 6.1 (N-2) has normal noise, and the polynomial is its variance.

Messages are charged by [local or remote, piece, `PieceColumn`]; a piece is a range of sizes with one protocol. AT_ONCE:
the message leaves whether its receive is posted or not; WHEN_RECEIVED: it leaves when that is posted, while its sender
goes on; RENDEZVOUS: it leaves when both sides are ready, and keeps both until it has arrived.
"""

from __future__ import annotations

from enum import IntEnum
from math import ceil, inf, pi, sqrt
from typing import Any, Final

from whatif.models.quantities import FloatArray

KERNELS: Final = (
    "dgemm", "", "", "", "", "dtrsm", "dtrsv", "dgemv", "dger", "daxpy", "dscal", "idamax", "dlaswp00n", "dlaswp01t",
    "dlaswp02n", "dlaswp03t", "dlaswp04t", "dlacpy", "dlatcpy",
)  # fmt: skip
"""Rows of the table of kernels."""
DTRSM, DTRSV, DGEMV, DAXPY, DLASWP00N, DLASWP01T, DLASWP02N, DLASWP03T, DLASWP04T, DLATCPY = (
    5, 6, 7, 9, 12, 13, 14, 15, 16, 18,
)  # fmt: skip
DGEMM, DGEMM_DEVIATION, DGEMM_OFFLOADED, DGEMM_OFFLOADED_DEVIATION, DGEMM_LIMITS = range(5)
"""Rows of dgemm; those of the deviations follow those of the means."""
CONSTANT, PER_MNK, PER_MN, PER_MK, PER_NK = range(5)
"""Columns of the first four rows of dgemm."""
LEAST_M, LEAST_N, LEAST_K, TILE_EXTENT, MULTIPROCESSORS = range(5)
"""Columns of `DGEMM_LIMITS`: the least sizes to offload; extent of a tile, infinite: no tiles, and their number at a
time."""
SIZE_CONSTANT, SIZE_SLOPE, SPREAD_CONSTANT, SPREAD_SLOPE = range(4)
"""Columns of the other kernels: mean, then deviation."""
KERNEL_COLUMNS: Final = 5
LOCAL, REMOTE = 0, 1
"""Distances of a table of pieces: within a node, and between nodes."""
AT_ONCE, WHEN_RECEIVED, RENDEZVOUS = 0, 1, 2
SPREAD: Final = 1 / sqrt(1 - 2 / pi)
SHIFT: Final = SPREAD * sqrt(2 / pi)


class PieceColumn(IntEnum):
    """Columns of a table of pieces."""

    SMALLEST_SIZE = 0
    LATENCY = 1
    PER_BYTE = 2
    SEND = 3
    SEND_PER_BYTE = 4
    RECEIVE = 5
    RECEIVE_PER_BYTE = 6
    PROTOCOL = 7
    MODES = 8
    """From here on, for each mode of the time: the share of messages in it and those before, and its factor."""


# Plain numbers: the loader of the compiled loops compares them with those that the loops were compiled for.
(
    PIECE_START, PIECE_LATENCY, PIECE_PER_BYTE, PIECE_SEND, PIECE_SEND_PER_BYTE, PIECE_RECEIVE, PIECE_RECEIVE_PER_BYTE,
    PIECE_PROTOCOL, PIECE_MODES,
) = map(int, PieceColumn)  # fmt: skip


def noise(random: Any) -> float:
    """A half-normal number with mean 0 and standard deviation 1."""
    return float(abs(random.standard_normal()) * SPREAD - SHIFT)


def with_noise(time: float, deviation: float, random: Any) -> float:
    """A time that deviates; not below 0."""
    if deviation > 0.0:
        time += deviation * noise(random)
    return max(time, 0.0)


def matrix_row(kernels: FloatArray, rows: float, columns: float, depth: float) -> int:
    """Row of the coefficients of dgemm(M = rows, N = columns, K = depth): 0 on the processor, 2 offloaded."""
    offloaded = (
        rows >= kernels[DGEMM_LIMITS, LEAST_M]
        and columns >= kernels[DGEMM_LIMITS, LEAST_N]
        and depth >= kernels[DGEMM_LIMITS, LEAST_K]
    )
    return DGEMM_OFFLOADED if offloaded else DGEMM


def matrix_mean(kernels: FloatArray, rows: float, columns: float, depth: float) -> float:
    """Mean time of dgemm(M = rows, N = columns, K = depth) on a processor that is as the model."""
    time = max(terms(kernels, matrix_row(kernels, rows, columns, depth), rows, columns, depth), 0.0)
    if kernels[DGEMM_LIMITS, TILE_EXTENT] < inf and rows * columns > 0:
        time /= filled(rows, columns, kernels[DGEMM_LIMITS, TILE_EXTENT], kernels[DGEMM_LIMITS, MULTIPROCESSORS])
    return time


def filled(rows: float, columns: float, extent: float, count: float) -> float:
    """`whatif.models.gemm.tile_efficiency` of one product."""
    best = 0.0
    for tile in (extent, extent / 2):
        waves = ceil(ceil(rows / tile) * ceil(columns / tile) / count)
        best = max(best, rows * columns / (waves * count * tile * tile))
    return best


def matrix_deviation(kernels: FloatArray, rows: float, columns: float, depth: float) -> float:
    """Standard deviation of that time."""
    return terms(kernels, matrix_row(kernels, rows, columns, depth) + 1, rows, columns, depth)


def terms(kernels: FloatArray, row: int, m: float, n: float, k: float) -> float:
    """constant + mnk M N K + mn M N + mk M K + nk N K."""
    mn = m * n
    time = kernels[row, CONSTANT] + kernels[row, PER_MNK] * mn * k + kernels[row, PER_MN] * mn
    return float(time + (kernels[row, PER_MK] * m + kernels[row, PER_NK] * n) * k)


def size_time(kernels: FloatArray, row: int, size: float, noisy: bool, random: Any) -> float:
    """Time of a kernel with one size."""
    return with_noise(size_mean(kernels, row, size), size_deviation(kernels, row, size) if noisy else 0.0, random)


def size_mean(kernels: FloatArray, row: int, size: float) -> float:
    """Mean time of a kernel with one size."""
    return float(kernels[row, SIZE_CONSTANT] + kernels[row, SIZE_SLOPE] * size)


def size_deviation(kernels: FloatArray, row: int, size: float) -> float:
    """Standard deviation of the time of a kernel with one size."""
    return float(kernels[row, SPREAD_CONSTANT] + kernels[row, SPREAD_SLOPE] * size)


def piece_of(pieces: FloatArray, far: int, size: float) -> int:
    """Index of the piece of a size in bytes."""
    piece = 0
    while piece + 1 < pieces.shape[1] and size >= pieces[far, piece + 1, PIECE_START]:
        piece += 1
    return piece


def wire_of(pieces: FloatArray, far: int, piece: int, size: float, gap: float) -> float:
    """Latency and transfer; `gap` is the time per byte that the node's adapter leaves to a message between nodes."""
    per_byte = pieces[far, piece, PIECE_PER_BYTE]
    if far and gap > per_byte:
        per_byte = gap
    return float(pieces[far, piece, PIECE_LATENCY] + size * per_byte)


def mode_factor(pieces: FloatArray, far: int, piece: int, random: Any) -> float:
    """Time of a message relative to the mean, drawn from the modes of its piece (N'); 1 without modes."""
    at, last = PIECE_MODES, pieces.shape[2]
    if at == last or pieces[far, piece, at] == 0.0:
        return 1.0
    drawn = random.random()
    while at + 2 < last and drawn >= pieces[far, piece, at]:
        at += 2
    return float(pieces[far, piece, at + 1])


def mean_factor(pieces: FloatArray, far: int, piece: int) -> float:
    """The mean of `mode_factor`."""
    if pieces.shape[2] == PIECE_MODES or pieces[far, piece, PIECE_MODES] == 0.0:
        return 1.0
    mean, before = 0.0, 0.0
    for at in range(PIECE_MODES, pieces.shape[2], 2):
        mean += (pieces[far, piece, at] - before) * pieces[far, piece, at + 1]
        before = pieces[far, piece, at]
    return float(mean)


def mean_wire(pieces: FloatArray, far: int, size: float, gap: float) -> float:
    """The mean of how long a message is on its way."""
    piece = piece_of(pieces, far, size)
    return wire_of(pieces, far, piece, size, gap) * mean_factor(pieces, far, piece)


def least_factor(pieces: FloatArray, far: int, piece: int) -> float:
    """A bound on `mode_factor` from below."""
    return 1.0 if pieces.shape[2] == PIECE_MODES or pieces[far, piece, PIECE_MODES] == 0.0 else 0.0


def wire_time(pieces: FloatArray, far: int, size: float, gap: float) -> float:
    """Wire time of a message of a size, from its piece; see `wire_of`."""
    return wire_of(pieces, far, piece_of(pieces, far, size), size, gap)


def send_posted(
    sender: float, receiver: float, size: float, pieces: FloatArray, far: int, gap: float, random: Any
) -> Any:
    """Message with a posted receive: end of the send, time of arrival, and the receiver's time after it."""
    piece = piece_of(pieces, far, size)
    wire = wire_of(pieces, far, piece, size, gap) * mode_factor(pieces, far, piece, random)
    if pieces[far, piece, PIECE_PROTOCOL] == RENDEZVOUS:
        end = max(sender, receiver) + wire
        return end, end, 0.0
    sent = sender + pieces[far, piece, PIECE_SEND] + size * pieces[far, piece, PIECE_SEND_PER_BYTE]
    start = sent if pieces[far, piece, PIECE_PROTOCOL] == AT_ONCE else max(sent, receiver)
    return sent, start + wire, pieces[far, piece, PIECE_RECEIVE] + size * pieces[far, piece, PIECE_RECEIVE_PER_BYTE]


def deliver(sender: float, receiver: float, size: float, pieces: FloatArray, far: int, gap: float, random: Any) -> Any:
    """Clocks of both sides after one message."""
    sent, arrival, work = send_posted(sender, receiver, size, pieces, far, gap, random)
    return sent, max(receiver, arrival) + work


def exchange(
    a: float, b: float, from_a: float, from_b: float, pieces: FloatArray, far: int, gap: float, random: Any
) -> Any:
    """HPL_sdrv: a message each way, the receives posted first; a size of 0 is not a message. The clocks afterwards."""
    sent_a, at_b, taken_b = a, b, 0.0
    sent_b, at_a, taken_a = b, a, 0.0
    if from_a > 0:
        sent_a, at_b, taken_b = send_posted(a, b, from_a, pieces, far, gap, random)
    if from_b > 0:
        sent_b, at_a, taken_a = send_posted(b, a, from_b, pieces, far, gap, random)
    return max(sent_a, at_a) + taken_a, max(sent_b, at_b) + taken_b
