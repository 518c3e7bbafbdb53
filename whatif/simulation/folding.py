"""Smaller traces of the same schedule: repeated operations as loops, and one program for ranks that do the same."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.rank_programs import ANY, Kind, Loop, RankProgram, Trace, taken

_WINDOWS: Final = (1, 4, 16)
"""Rows that are compared at a time to find periods: a row that occurs twice in a period hides it, a window seldom."""
_CANDIDATES: Final = 24
"""Periods that are tried for each window."""
_MOST_LOOPS: Final = 100_000
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_MESSAGES: Final = (Kind.SEND, Kind.RECEIVE, Kind.ISEND, Kind.IRECEIVE)

Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Columns = NDArray[np.generic]


def fold(program: RankProgram, *, mean_compute: bool = False) -> RankProgram:
    """The same operations with blocks that repeat exactly, waits included, as loops; O(n log n).

    With `mean_compute`, durations of computations may differ between the repetitions: each place of a loop gets the
    mean of its durations, so that their sum stays. A program that has loops is returned as it is.
    """
    if program.loops or len(program) < 2:
        return program
    program = sorted_waits(program)
    blocks = _chosen(_repetitions(_row_hashes(program, mean_compute)))
    if not len(blocks):
        return program
    if mean_compute:
        program = replace(program, size=_mean_sizes(program, blocks))
    return _with_loops(program, blocks)


def share(trace: Trace, *, mean_compute: bool = False) -> Trace:
    """Trace with one program for all ranks that have equal programs, with absolute or relative peers.

    With `mean_compute`, durations of computations may differ between the ranks: each place of the shared program has
    their mean. A program that receives from `ANY` keeps its peers as they are.
    """
    programs = [sorted_waits(program) for program in trace.programs]
    as_they_are = [digest(program, mean_compute) for program in programs]
    keys = []
    for rank, number in enumerate(trace.program_of):
        relative = as_relative(programs[number], rank, trace.rank_count)
        keys.append((digest(relative, mean_compute), as_they_are[number]))
    counts = Counter(key for pair in keys for key in set(pair))
    groups: dict[tuple[bool, bytes], list[int]] = {}
    for rank, (relative_key, key) in enumerate(keys):
        is_relative = counts[relative_key] >= counts[key]
        groups.setdefault((is_relative, relative_key if is_relative else key), []).append(rank)
    program_of = np.zeros(trace.rank_count, dtype=np.int32)
    for number, ranks in enumerate(groups.values()):
        program_of[ranks] = number
    shared = [_common(trace, programs, ranks, is_relative, mean_compute) for (is_relative, _), ranks in groups.items()]
    return replace(trace, programs=tuple(shared), program_of=program_of)


def as_relative(program: RankProgram, rank: int, rank_count: int) -> RankProgram:
    """The program of a rank with distances for peers, from -P/2 to below P/2; as it is if it receives from `ANY`."""
    is_message = np.isin(program.kind, _MESSAGES)
    if not program.relative and (is_message & (program.peer == ANY)).any():
        return program
    half = rank_count // 2
    distance = program.peer.astype(np.int64) - (0 if program.relative else rank)
    peer = np.where(is_message, (distance + half) % rank_count - half, program.peer).astype(np.int32)
    return replace(program, peer=peer, relative=True)


def digest(program: RankProgram, mean_compute: bool = False) -> bytes:
    """The same for equal programs, with `mean_compute` whatever their computations take, and for no others."""
    found = blake2b(repr((program.loops, program.sequential, program.relative)).encode(), digest_size=16)
    lists = (program.wait_start, program.waits, program.started_start, program.started, program.processor)
    size = _without_compute(program) if mean_compute else program.size
    for column in (program.kind, program.peer, size, program.tag, *lists):
        found.update(b"none" if column is None else np.ascontiguousarray(column).view(np.uint8).data)
        found.update(b";")
    return found.digest()


def _common(
    trace: Trace, programs: list[RankProgram], ranks: list[int], is_relative: bool, mean_compute: bool
) -> RankProgram:
    """The program of some ranks with the means of their sizes."""
    first = programs[trace.program_of[ranks[0]]]
    program = as_relative(first, ranks[0], trace.rank_count) if is_relative else first
    if not mean_compute:
        return program
    size = mean_size(np.stack([programs[trace.program_of[rank]].size for rank in ranks]))
    return replace(program, size=np.where(program.kind == Kind.COMPUTE, size, program.size))


def mean_size(sizes: FloatArray) -> FloatArray:
    """The mean over the first axis: the very value where all are equal, which a sum would round."""
    mean: FloatArray = sizes[0] + (sizes - sizes[0]).mean(axis=0)
    return mean


def _without_compute(program: RankProgram) -> FloatArray:
    return np.where(program.kind == Kind.COMPUTE, 0.0, program.size)


def sorted_waits(program: RankProgram) -> RankProgram:
    """Program with the waits of each operation in a fixed order, so that equal sets are equal lists."""
    program = replace(program, waits=_sorted_lists(program.wait_start, program.waits))
    if program.started_start is None or program.started is None:
        return program
    return replace(program, started=_sorted_lists(program.started_start, program.started))


def _sorted_lists(start: Numbers, values: NDArray[np.int32]) -> NDArray[np.int32]:
    return values[np.lexsort((values, np.repeat(np.arange(len(start) - 1), np.diff(start))))]


def _row_hashes(program: RankProgram, mean_compute: bool) -> Hashes:
    """A number for each operation that is equal where all its columns are."""
    size = _without_compute(program) if mean_compute else program.size
    rows = _mixed(np.ascontiguousarray(size, dtype=np.float64).view(np.uint64), program.kind)
    rows = _mixed(_mixed(rows, program.peer), program.tag)
    rows = _mixed(rows, _list_hashes(program.wait_start, program.waits))
    if program.started_start is not None and program.started is not None:
        rows = _mixed(rows, _list_hashes(program.started_start, program.started))
    return rows if program.processor is None else _mixed(rows, program.processor)


def _mixed(hashes: Hashes, values: Columns) -> Hashes:
    """Hashes of pairs (finaliser of splitmix64)."""
    mixed = (hashes ^ (hashes >> np.uint64(30))) * _FACTORS[0] + values.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _FACTORS[1]
    return mixed ^ (mixed >> np.uint64(31))


def _list_hashes(start: Numbers, values: NDArray[np.int32]) -> Hashes:
    """A hash of each list, whatever its order: the sum of those of its entries and their number."""
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mixed(values.astype(np.uint64) + _FACTORS[0], values))])
    return np.diff(sums[start]) + np.diff(start).astype(np.uint64)


def _repetitions(rows: Hashes) -> NDArray[np.int64]:
    """Blocks that repeat at once, [block, 3]: where the first one begins, its length, how often it occurs."""
    windows, width, periods = rows, 1, set[int]()
    for wanted in _WINDOWS:
        while width < wanted and width < len(windows):
            windows = _mixed(windows[:-width], windows[width:])
            width *= 2
        periods |= _likely_periods(windows, len(rows) // 2)
    return np.concatenate([np.zeros((0, 3), np.int64), *(_repeated(rows, period) for period in sorted(periods))])


def _likely_periods(windows: Hashes, longest: int) -> set[int]:
    """The distances between equal windows that cover most."""
    order = np.argsort(windows, kind="stable")
    equal = windows[order[1:]] == windows[order[:-1]]
    distance = np.diff(order)[equal]
    counts = np.bincount(distance[distance <= longest])
    covered = counts * np.arange(len(counts))
    likely = np.argsort(covered)[-_CANDIDATES:]
    return {int(period) for period in likely if covered[period]}


def _repeated(rows: Hashes, period: int) -> NDArray[np.int64]:
    """The blocks of one period, as `_repetitions`."""
    equal = np.concatenate([[False], rows[:-period] == rows[period:], [False]])
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    first, length = edges[::2], edges[1::2] - edges[::2]
    long = length >= period
    first, count = first[long], length[long] // period + 1
    return np.stack([first, np.full_like(first, period), count], axis=1)


def _chosen(blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Blocks that do not overlap, in order, the ones that save most first; the shorter of two that save the same."""
    first, period, count = blocks.T
    order = np.lexsort((first, period, -period * (count - 1)))[:_MOST_LOOPS]
    begins: list[int] = []
    ends: list[int] = []
    taken_blocks: list[int] = []
    for block, begin, end in zip(order, first[order].tolist(), (first + period * count)[order].tolist(), strict=True):
        place = bisect_left(begins, begin)
        if (place and ends[place - 1] > begin) or (place < len(begins) and begins[place] < end):
            continue
        begins.insert(place, begin)
        ends.insert(place, end)
        taken_blocks.insert(place, int(block))
    return blocks[taken_blocks]


def _mean_sizes(program: RankProgram, blocks: NDArray[np.int64]) -> FloatArray:
    """Sizes where the first repetition of each block has the mean durations of all."""
    size = program.size.copy()
    for first, period, count in blocks:
        durations = mean_size(size[first : first + period * count].reshape(count, period))
        body = slice(first, first + period)
        size[body] = np.where(program.kind[body] == Kind.COMPUTE, durations, size[body])
    return size


def _with_loops(program: RankProgram, blocks: NDArray[np.int64]) -> RankProgram:
    """The program with only the first repetition of each block, and the loops."""
    change = np.zeros(len(program) + 1, dtype=np.int64)
    first, period, count = blocks.T
    np.add.at(change, first + period, 1)
    np.add.at(change, first + period * count, -1)
    kept = np.cumsum(change[:-1]) == 0
    before = np.concatenate([[0], np.cumsum(kept)])
    loops = tuple(
        Loop(int(begin), int(begin + length), int(times))
        for begin, length, times in zip(before[first], period, count, strict=True)
    )
    return replace(taken(program, np.flatnonzero(kept)), loops=loops)
