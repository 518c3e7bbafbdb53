"""Block-cyclic sizes, the numbers of one run, and what they are charged with, as the compiled loops take them."""

from __future__ import annotations

from typing import NamedTuple

from whatif.models.quantities import FloatArray, IntArray


class Run(NamedTuple):
    """The whole numbers of a configuration, in HPL's letters."""

    n: int
    nb: int
    p: int
    q: int
    depth: int
    swap: int
    threshold: int


class Charges(NamedTuple):
    """What kernels and messages cost, and where the processes are; see `whatif.simulation.hpl.costs`."""

    matrix: FloatArray
    """[5, 5]: dgemm's mean and deviation, the same where it is offloaded, and the least M, N, K for that."""
    sizes: FloatArray
    """[kernel, 4]: constant, slope, and those of the deviation, of `SIZE_KERNELS`."""
    pieces: FloatArray
    """[local or remote, piece, 7]: `Column`s of each piece."""
    limits: FloatArray
    """[local or remote, 2]: sizes in B from which messages leave when received, and from which senders wait for it."""
    factors: FloatArray
    """[process row, process column]: time of dgemm relative to the model."""
    nodes: IntArray
    """[process row, process column]: the node of each process."""
    gaps: FloatArray
    """[process row, process column]: least time per byte between nodes when all processes of the node send."""


class Messages(NamedTuple):
    """Who sends to whom; see `Paths` and `Exchanges`."""

    targets: IntArray
    sources: IntArray
    spread: IntArray
    roll: IntArray
    chunk_count: int
    binary: IntArray
    swap_roll: IntArray
    cube: int


def owned(extent: int, block: int, place: int, count: int) -> int:
    """Indices below `extent` that a process owns of a block-cyclic distribution over `count` (numroc)."""
    blocks = extent // block
    mine = blocks // count * block
    over = blocks % count
    if place < over:
        return mine + block
    return mine + extent % block if place == over else mine


def owned_from(start: int, extent: int, block: int, place: int, count: int) -> int:
    """Indices in [start, extent) that a process owns."""
    return owned(extent, block, place, count) - owned(min(start, extent), block, place, count)
