"""Rounds of collective operations as patterns: who sends to whom, for the loads of links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.rank_programs import Kind

SAMPLES: Final = 64
"""Rounds of an all-to-all whose routes are followed; each represents those around it."""
_RINGS: Final = {"ring": 2, "ring_allgather": 1}
"""Turns of the algorithms that pass blocks around a ring."""


class Round(NamedTuple):
    """Messages of one round, or of rounds that are alike."""

    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    weight: FloatArray
    """Size relative to the largest one."""
    share: float
    """Size of the largest one as a share of the buffer."""
    repeats: float = 1.0
    """How often the round occurs."""
    waits: float = 1.0
    """1 if all ranks start a round together, 0 if they drift apart, as around a ring, where neighbours never change."""


def rounds_of(kind: Kind, algorithm: str, rank_count: int) -> Iterator[Round]:
    """Rounds of an algorithm in which there are messages; of an all-to-all between many ranks, a sample."""
    ranks, turns, one = np.arange(rank_count), rank_count - 1, np.ones(rank_count)
    if algorithm in _RINGS and turns:
        yield Round(ranks, (ranks + 1) % rank_count, one, 1 / rank_count, float(_RINGS[algorithm] * turns), 0.0)
    elif kind is Kind.ALLTOALL:
        count = min(turns, SAMPLES)
        for step in np.linspace(1, turns, count).astype(int):
            yield Round(ranks, (ranks + step) % rank_count, one, 1 / rank_count, turns / count)
    else:
        yield from _scheduled(kind, algorithm, ranks)


def grouped_rounds(kind: Kind, algorithm: str, rank_count: int, group_size: int, stride: int) -> Iterator[Round]:
    """Rounds of an algorithm in all groups of some ranks at once; the ranks of a group are `stride` apart.

    `group_size` times `stride` divides the ranks.
    """
    group = np.arange(rank_count // group_size)
    first = (group // stride * (stride * group_size) + group % stride)[:, np.newaxis]
    for item in rounds_of(kind, algorithm, group_size):
        sender, receiver = ((first + ranks * stride).ravel() for ranks in (item.sender, item.receiver))
        yield item._replace(sender=sender, receiver=receiver, weight=np.tile(item.weight, len(group)))


def _scheduled(kind: Kind, algorithm: str, ranks: NDArray[np.int64]) -> Iterator[Round]:
    """Rounds of the schedule that is simulated."""
    per_buffer = 1 / len(ranks) if kind is Kind.ALLGATHER else 1.0
    for part in ALGORITHMS[kind][algorithm](ranks, len(ranks), 0) if len(ranks) > 1 else ():
        shares = np.broadcast_to(part.target_share, part.target.shape)
        for target, share in zip(part.target.T, shares.T, strict=True):
            sends = target >= 0
            if sends.any():
                most = float(share[sends].max())
                yield Round(ranks[sends], target[sends], share[sends] / max(most, 1e-300), most * per_buffer)
