"""Rates of simple loops: triads by number of cores and by level of cache, multiply-adds and matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from whatif.measuring.hardware import Machine
from whatif.measuring.kernels import CHAIN, POINTS
from whatif.measuring.repetition import Task
from whatif.measuring.team import Timer
from whatif.models.quantities import FloatArray
from whatif.units import counted

TRIAD_BYTES: Final = 24
"""Bytes of one element of a triad, without the line that a store fetches first."""
CONVOLUTION_BYTES: Final = 8 * (POINTS + 1)
"""Bytes that a convolution loads and stores for one element; 16 of them are not in the first cache."""
STREAMED_BYTES: Final = 16
REUSE_IN_MEMORY: Final = "convolution on 1 core"
REUSE_IN_CACHE: Final = "convolution in the last cache"
OVER_CACHE: Final = 4.0
"""Size of each array over that of the last-level caches, as STREAM demands."""
OVER_CACHE_QUICK: Final = OVER_CACHE / 3
"""That of a quick measurement: all three arrays together are as large as STREAM demands each to be."""
PRECISIONS: Final = {"double": "float64", "single": "float32"}
_ROUNDS: Final = 3
_WARMING: Final = 4
"""Rounds in a cache before those that count: a last-level cache takes some to forget the data of others."""
_WARMING_MEMORY: Final = 1
"""Rounds in memory before those that count."""
_ROUND_BYTES: Final = 2**26
"""Bytes of a round in a cache: long against the start."""
_SMALLEST: Final = 2**24
"""Size of an array of a triad in memory if no cache is known."""
_VALUES: Final = 512
"""Values of a multiply-add: they stay in the first cache."""
_SWEEPS: Final = 4000
_SHAPE: Final = (1024, 1024, 256)
_SHARE: Final = 0.5
"""Share of a cache that the arrays of a triad fill."""


def spans(times: FloatArray) -> FloatArray:
    """Time of each round: from the first start to the last end."""
    return np.asarray(times[:, :, 1].max(axis=1) - times[:, :, 0].min(axis=1))


def warm_up(timer: Timer, machine: Machine) -> None:
    """Run each loop once on all cores, so that they are compiled before anything is timed."""
    every, brief = len(machine.cores), {"sweeps": 1}
    for loop in ("triad", "convolution"):
        timer.rounds(every, 1, do=loop, length=_VALUES, **brief)
    for kind in PRECISIONS.values():
        timer.rounds(every, 1, do="multiply_add", length=_VALUES, precision=kind, **brief)
        timer.rounds(every, 1, do="gemm", shape=(16, 16, 16), precision=kind, **brief)
    timer.rounds(every, 1, do="hpl", plan=[[0, 1, 1, 1, 0]], largest=_VALUES)


def core_counts(machine: Machine) -> list[int]:
    """Numbers of active cores that are measured: 1, 2, 4, .. and all."""
    every = len(machine.cores)
    return sorted({*(2**at for at in range(every.bit_length()) if 2**at <= every), every})


def triads_by_cores(timer: Timer, machine: Machine, over_cache: float) -> Iterator[tuple[int, Task]]:
    """Bandwidth of memory by number of active cores, spread over the NUMA domains."""
    lengths = {count: int(_beyond_cache(machine, count, over_cache) / count) // 8 for count in core_counts(machine)}
    # Memory that is touched for the first time takes longer than all rounds in it.
    longest = [max(lengths[count] for count in lengths if count > rank) for rank in range(len(machine.cores))]
    for count, length in lengths.items():
        yield count, _stream(timer, f"triad on {counted(count, 'core')}", "triad", count, length, longest=longest)


def _beyond_cache(machine: Machine, count: int, over_cache: float) -> float:
    """Size of an array of some cores together; their last-level caches cannot hold three of them, the memory can."""
    touched = len({(core.socket, core.cache) for core in machine.spread[:count]})
    size = max(over_cache * machine.last_level * touched, _SMALLEST)
    return min(size, machine.memory_size / 12) if machine.memory_size else size


def reuse_in_memory(timer: Timer, machine: Machine, over_cache: float) -> Task:
    """Bytes that one core loads and stores in a second, in a convolution that streams from memory."""
    length = int(_beyond_cache(machine, 1, over_cache)) // 8
    return _stream(timer, REUSE_IN_MEMORY, "convolution", 1, length, longest=[length])


def reuse_in_cache(timer: Timer, machine: Machine) -> Iterator[Task]:
    """Bytes that all cores load and store in a second, in a convolution that streams from the last-level cache."""
    if not machine.caches:
        return
    every = len(machine.cores)
    length = int(_SHARE * machine.last_level * machine.cache_count / every) // 16
    yield _stream(timer, REUSE_IN_CACHE, "convolution", every, length, max(_ROUND_BYTES // (16 * length), 1))


def triads_by_level(timer: Timer, machine: Machine) -> Iterator[Task]:
    """Bandwidth of each level of cache with all cores busy, L1 first; each core has half of its share."""
    every = len(machine.cores)
    for level, size in enumerate(machine.caches, start=1):
        own = machine.caches[-1] * machine.cache_count / every if level == len(machine.caches) else size
        length = max(int(_SHARE * own) // TRIAD_BYTES, 64)
        sweeps = max(_ROUND_BYTES // (TRIAD_BYTES * length), 1)
        yield _stream(timer, f"triad in L{level}", "triad", every, length, sweeps)


def _stream(
    timer: Timer, name: str, loop: str, count: int, length: int, sweeps: int = 1, longest: Sequence[int] = ()
) -> Task:
    """Bytes in a second of a loop on some cores; in memory if `longest` states, by rank, lengths of arrays to share."""
    moved = {"triad": TRIAD_BYTES, "convolution": CONVOLUTION_BYTES}[loop]
    lengths = {"length": length, "longest": [*longest] or [length] * count}
    warming = _WARMING_MEMORY if longest else _WARMING

    def run() -> float:
        times = timer.rounds(count, warming + _ROUNDS, do=loop, sweeps=sweeps, **lengths)[warming:]
        return float(np.median(moved * length * sweeps * count / spans(times)))

    return Task(name, run)


def operation_rates(timer: Timer, machine: Machine) -> Iterator[Task]:
    """Rates of all cores by precision: of multiply-adds in the first cache, and of matrix products."""
    every = len(machine.cores)
    adds = {"do": "multiply_add", "length": _VALUES, "sweeps": _SWEEPS}
    products = {"do": "gemm", "shape": _SHAPE, "sweeps": 1}
    for name, kind in PRECISIONS.items():
        yield _operations(timer, f"multiply-add, {name}", every, CHAIN * _VALUES * _SWEEPS, precision=kind, **adds)
        yield _operations(timer, f"matrix product, {name}", every, math.prod(_SHAPE), precision=kind, **products)


def _operations(timer: Timer, name: str, count: int, pairs: int, **loop: Any) -> Task:
    """Operations in a second of a loop on some cores; each core does `pairs` of a multiplication and an addition."""

    def run() -> float:
        return float(np.median(2.0 * pairs * count / spans(timer.rounds(count, _ROUNDS, **loop))))

    return Task(name, run)
