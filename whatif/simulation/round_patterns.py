"""Rounds of collective operations as patterns: who sends to whom, for the loads of links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray
from whatif.simulation.collective_expansion import Members
from whatif.simulation.collective_schedules import ALGORITHMS
from whatif.simulation.collective_stages import SWITCH, contributed, stages
from whatif.simulation.rank_programs import Kind

SAMPLES: Final = 64
"""Rounds of an all-to-all whose routes are followed; each represents those around it."""
_RINGS: Final = {
    (Kind.ALLREDUCE, "ring"): (2, (1,)),
    (Kind.ALLREDUCE, "bidirectional_ring"): (2, (1, -1)),
    (Kind.ALLGATHER, "ring_allgather"): (1, (1,)),
    (Kind.REDUCE_SCATTER, "ring"): (1, (1,)),
}
"""Turns and directions of the algorithms that pass blocks around a ring."""
_FIRST: Final = 512
"""Rounds between a root and one other rank that are followed one by one; of the others `SAMPLES`."""


class Round(NamedTuple):
    """Messages of one round, or of identical rounds."""

    sender: Members
    receiver: Members
    weight: FloatArray
    """Size relative to the largest one."""
    share: float
    """Size of the largest one as a share of the buffer."""
    repeats: float = 1.0
    """Number of times that the round occurs."""
    waits: float = 1.0
    """1 if all ranks start a round together, 0 if they drift apart, as around a ring, where neighbours never change."""
    combining: float = 0.0
    """Share of the repeats in which receivers combine the message with their own data."""


def rounds_of(kind: Kind, algorithm: str, rank_count: int) -> Iterator[Round]:
    """Rounds of an algorithm in which there are messages; of one with many identical rounds, a sample."""
    ranks, turns = np.arange(rank_count, dtype=np.int32), rank_count - 1
    if not turns:
        return
    if (kind, algorithm) in _RINGS:
        turns_around, ways = _RINGS[kind, algorithm]
        combining = 0.0 if kind is Kind.ALLGATHER else 1 / turns_around
        yield from (item._replace(combining=combining) for item in _around(ranks, turns_around, ways))
    elif algorithm == SWITCH:
        sender = ranks if kind is Kind.ALLREDUCE else ranks[:1]
        yield Round(sender, (sender + 1) % rank_count, np.ones(len(sender)), 1.0)
    elif algorithm == "pairwise":
        for step, repeats in _sampled(turns):
            yield Round(
                ranks, (ranks + step) % rank_count, np.ones(rank_count), 1 / rank_count, repeats,
                combining=float(kind is Kind.REDUCE_SCATTER),
            )  # fmt: skip
    elif algorithm == "one_by_one":
        yield from _one_by_one(kind, rank_count)
    else:
        yield from _scheduled(kind, algorithm, ranks)


def _sampled(turns: int) -> Iterator[tuple[int, float]]:
    """Numbers of the rounds that are followed, and of how many rounds each is the nearest."""
    steps = np.linspace(1, turns, min(turns, SAMPLES)).round().astype(int)
    edges = np.concatenate([[0.5], (steps[1:] + steps[:-1]) / 2, [turns + 0.5]])
    return zip(steps.tolist(), np.diff(edges).tolist(), strict=True)


def _around(ranks: Members, turns: int, directions: tuple[int, ...]) -> Iterator[Round]:
    """Blocks around a ring, a part of them in each direction."""
    count = len(ranks)
    for way in directions:
        receiver = (ranks + way) % count
        share = 1 / (count * len(directions))
        yield Round(ranks, receiver, np.ones(count), share, float(turns * (count - 1)), 0.0)


def _one_by_one(kind: Kind, rank_count: int) -> Iterator[Round]:
    """A message between the root and each other rank in turn."""
    steps = np.arange(1, rank_count)
    if len(steps) > _FIRST + SAMPLES:
        steps = np.append(steps[:_FIRST], np.linspace(_FIRST + 1, rank_count - 1, SAMPLES).astype(int))
    repeats = np.where(steps <= _FIRST, 1.0, max(rank_count - 1 - _FIRST, 1) / max(int((steps > _FIRST).sum()), 1))
    share = contributed(kind, 1.0, rank_count)
    for step, repeat in zip(steps[:, np.newaxis], repeats.tolist(), strict=True):
        root = np.zeros_like(step)
        ends = (step, root) if kind in {Kind.GATHER, Kind.REDUCE} else (root, step)
        yield Round(*ends, np.ones(1), share, repeat, combining=float(kind is Kind.REDUCE))


def grouped_rounds(kind: Kind, algorithm: str, rank_count: int, group_size: int, stride: int) -> Iterator[Round]:
    """Rounds of an algorithm in all groups of some ranks at once; the ranks of a group are `stride` apart.

    `group_size` times `stride` divides the ranks.
    """
    group = np.arange(rank_count // group_size, dtype=np.int32)
    first = (group // stride * (stride * group_size) + group % stride)[:, np.newaxis]
    for item in rounds_of(kind, algorithm, group_size):
        sender, receiver = ((first + ranks * stride).ravel() for ranks in (item.sender, item.receiver))
        yield item._replace(sender=sender, receiver=receiver, weight=np.tile(item.weight, len(group)))


def collective_rounds(
    algorithm: str, rank_count: int, group_size: int, group_stride: int, domain_rank_count: int
) -> list[Round]:
    """Rounds of all stages of an algorithm in all groups at once, their shares those of the whole buffer."""
    return [
        item._replace(share=item.share * stage.share)
        for stage in stages(algorithm, group_size, group_stride, domain_rank_count)
        for item in grouped_rounds(stage.kind, stage.schedule, rank_count, stage.size, stage.stride)
    ]


def _scheduled(kind: Kind, algorithm: str, ranks: Members) -> Iterator[Round]:
    """Rounds of the schedule that is simulated."""
    block = contributed(kind, 1.0, len(ranks))
    for part in ALGORITHMS[kind][algorithm](ranks, len(ranks), 0):
        shares, combines = (np.broadcast_to(item, part.target.shape) for item in (part.target_share, part.combines))
        for target, share, combining in zip(np.ascontiguousarray(part.target.T), shares.T, combines.T, strict=True):
            sends = np.flatnonzero(target >= 0)
            if len(sends):
                sent = share[sends]
                most = float(sent.max())
                weight = sent / max(most, 1e-300)
                yield Round(ranks[sends], target[sends], weight, most * block, combining=float(combining.any()))
