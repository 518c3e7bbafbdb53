"""The parameters of HPL that give the highest rate on a machine, found by successive halving.

Every candidate is simulated on a small matrix, the better ones on a larger one, the best at full size: a run of a tenth
of the size has a tenth of the steps, and ranks candidates well enough to drop most of them (Jamieson and Talwalkar
2016, "Non-stochastic best arm identification and hyperparameter optimization"). At last, single parameters of the best
are changed as long as that helps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.linpack.predictions import HPLRuns
from whatif.linpack.simulation.configuration import Broadcast, Configuration, RowSwap

BEST: Final = 10
"""Candidates that are simulated at full size, before single parameters are changed."""
SMALLEST: Final = 10_000
"""N that is small enough to simulate every candidate at."""
MOST_COMBINATIONS: Final = 1_000_000
_STAGES: Final = ((0.1, 0.25, 2 * BEST), (0.3, 0.0, BEST))
"""Before full size: the share of N, the share of the candidates that is kept, and how many are kept at least."""

Simulate = Callable[[Sequence[Configuration], float], Mapping[Configuration, float]]
"""Function of configurations and a share of their size that returns their times in s."""


@dataclass(frozen=True, slots=True)
class Space:
    """Space of a search: the combinations of the lists; `candidate_count` of them are drawn with `seed` first."""

    grids: Sequence[tuple[int, int]]
    """P and Q."""
    matrix_sizes: Sequence[int]
    """N; empty: the largest multiple of NB that fits the memory."""
    block_sizes: Sequence[int]
    broadcasts: Sequence[Broadcast]
    swaps: Sequence[RowSwap]
    depths: Sequence[int]
    memory_fraction: float = 0.8
    """Share of the memory of the nodes for the matrix."""
    candidate_count: int = 200
    seed: int = 0


def factorisations(rank_count: int) -> list[tuple[int, int]]:
    """All P and Q with P Q ranks, the squarest first and, of two alike, the flat one (P <= Q)."""
    small = [p for p in range(1, math.isqrt(rank_count) + 1) if rank_count % p == 0]
    return list(dict.fromkeys(grid for p in reversed(small) for grid in ((p, rank_count // p), (rank_count // p, p))))


def combinations(space: Space, runs: HPLRuns) -> list[Configuration]:
    """All configurations at full size. Raise `UsageError` for infeasible ones, and for too many."""
    lists = (space.block_sizes, space.broadcasts, space.swaps, space.depths)
    count = len(space.grids) * max(1, len(space.matrix_sizes)) * math.prod(map(len, lists))
    if count > MOST_COMBINATIONS:
        raise UsageError(f"{count:,} combinations are too many to choose from; at most {MOST_COMBINATIONS:,}")
    return [
        Configuration(size, block, *grid, broadcast=broadcast, swap=swap, depth=depth)
        for grid in space.grids
        for block, size in _sizes(space, runs, grid)
        for broadcast, swap, depth in itertools.product(*lists[1:])
    ]


def drawn(everything: Sequence[Configuration], count: int, seed: int) -> list[Configuration]:
    """At most `count` of the combinations, drawn at random."""
    if len(everything) <= count:
        return list(everything)
    places = np.random.default_rng(seed).choice(len(everything), count, replace=False)
    return [everything[place] for place in sorted(places.tolist())]


def _sizes(space: Space, runs: HPLRuns, grid: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """NB and N on a grid."""
    example = Configuration(1, 1, *grid, depth=max(space.depths))
    refusal = runs.refusal(example)
    if refusal is not None:
        raise UsageError(refusal.message)
    largest = runs.largest_matrix(example, space.memory_fraction)
    if not space.matrix_sizes and math.isinf(largest):
        raise UsageError(
            "the platform does not state its memory (platform.node.host.memory_size); state --matrix-sizes"
        )
    too_large = next((size for size in space.matrix_sizes if size > largest), None)
    if too_large is not None:
        share = f"{space.memory_fraction:.0%} of the memory of the nodes of {grid[0]} x {grid[1]} ranks"
        raise UsageError(f"N = {too_large:,} does not fit {share}; the largest that does is {largest:,.0f}")
    for block in space.block_sizes:
        if not space.matrix_sizes and largest < block:
            raise UsageError(f"the memory has room for N = {largest:,.0f}, not even one block of {block}")
        for size in space.matrix_sizes or [int(largest) // block * block]:
            yield block, size


def scaled(configuration: Configuration, share: float) -> Configuration:
    """Configuration with a share of N, at least `SMALLEST` and at most N, rounded to a multiple of NB.

    Candidates with the same N are compared at one size, apart from the rounding.
    """
    size = max(share * configuration.matrix_size, SMALLEST)
    if size >= configuration.matrix_size:
        return configuration
    blocks = max(int(size / configuration.block_size), 1)
    return replace(configuration, matrix_size=blocks * configuration.block_size)


def rate_of(configuration: Configuration, time: float) -> float:
    """flop/s, by HPL's own count of operations."""
    return configuration.operations / time


def search(
    everything: Sequence[Configuration], chosen: Sequence[Configuration], simulate: Simulate
) -> list[Configuration]:
    """Configurations simulated at full size, the best first. Few candidates are all simulated at full size."""
    for share, kept, least in _STAGES:
        if len(chosen) > BEST:
            times = simulate([scaled(item, share) for item in chosen], share)
            rates = {item: rate_of(small := scaled(item, share), times[small]) for item in chosen}
            chosen = sorted(rates, key=rates.__getitem__, reverse=True)[: max(least, math.ceil(kept * len(chosen)))]
    full: dict[Configuration, float] = {}
    while chosen:
        full |= simulate(chosen, 1.0)
        chosen = [item for item in neighbours(ranked(full)[0], everything) if item not in full]
    return ranked(full)


def ranked(times: Mapping[Configuration, float]) -> list[Configuration]:
    """Configurations by their rates, the highest first."""
    return sorted(times, key=lambda item: rate_of(item, times[item]), reverse=True)


def neighbours(best: Configuration, everything: Sequence[Configuration]) -> list[Configuration]:
    """Combinations that differ from the best in one parameter: NB and the grid by one step, the others by any."""
    grids = _places((item.process_rows, item.process_columns) for item in everything)
    blocks = _places(item.block_size for item in everything)

    def distance(item: Configuration) -> int:
        return (
            abs(grids[item.process_rows, item.process_columns] - grids[best.process_rows, best.process_columns])
            + abs(blocks[item.block_size] - blocks[best.block_size])
            + (item.broadcast != best.broadcast) + (item.swap != best.swap) + (item.depth != best.depth)
        )  # fmt: skip

    return [item for item in everything if distance(item) <= 1 and item != best]


def _places(values: Iterable[Any]) -> dict[Any, int]:
    """Place of each value in their order."""
    return {value: place for place, value in enumerate(sorted(set(values)))}
