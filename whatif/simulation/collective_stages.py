"""Collectives as stages: collectives in groups of ranks that follow one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd
from typing import Final, NamedTuple

import numpy as np

from whatif.errors import UsageError
from whatif.models.ranks import members_in_domain
from whatif.simulation.rank_programs import Kind

SWITCH: Final = "switch"
"""Schedule of a stage in which the switches of the network reduce or duplicate messages."""
_FLAT: Final[Mapping[str, tuple[tuple[Kind, str], ...]]] = {
    "recursive_doubling": ((Kind.ALLREDUCE, "recursive_doubling"),),
    "rabenseifner": ((Kind.ALLREDUCE, "rabenseifner"),),
    "ring": ((Kind.ALLREDUCE, "ring"),),
    "bidirectional_ring": ((Kind.ALLREDUCE, "bidirectional_ring"),),
    "recursive_halving": ((Kind.REDUCE_SCATTER, "recursive_halving"),),
    "ring_reduce_scatter": ((Kind.REDUCE_SCATTER, "ring"),),
    "pairwise_reduce_scatter": ((Kind.REDUCE_SCATTER, "pairwise"),),
    "ring_allgather": ((Kind.ALLGATHER, "ring_allgather"),),
    "bruck_allgather": ((Kind.ALLGATHER, "bruck_allgather"),),
    "pairwise": ((Kind.ALLTOALL, "pairwise"),),
    "bruck_alltoall": ((Kind.ALLTOALL, "bruck"),),
    "binomial_tree": ((Kind.BROADCAST, "binomial_tree"),),
    "scatter_ring_allgather": ((Kind.SCATTER, "binomial_tree"), (Kind.ALLGATHER, "ring_allgather")),
    "linear_broadcast": ((Kind.BROADCAST, "one_by_one"),),
    "binomial_reduce": ((Kind.REDUCE, "binomial_tree"),),
    "linear_reduce": ((Kind.REDUCE, "one_by_one"),),
    "binomial_gather": ((Kind.GATHER, "binomial_tree"),),
    "linear_gather": ((Kind.GATHER, "one_by_one"),),
    "binomial_scatter": ((Kind.SCATTER, "binomial_tree"),),
    "linear_scatter": ((Kind.SCATTER, "one_by_one"),),
    "dissemination": ((Kind.BARRIER, "dissemination"),),
}
"""Collectives of all ranks of a group, by algorithm: kind and schedule of `collective_schedules`."""
NESTED: Final = frozenset({"hierarchical", "switch_reduction", "switch_multicast"})
"""Algorithms whose stages depend on the ranks of a domain."""
_BLOCKS: Final = frozenset({Kind.GATHER, Kind.SCATTER, Kind.ALLGATHER, Kind.ALLTOALL, Kind.REDUCE_SCATTER})
"""Kinds whose schedules count in the block of one rank."""


class Stage(NamedTuple):
    """Collective in all groups of `size` ranks that are `stride` apart, on a share of the buffer."""

    kind: Kind
    schedule: str
    size: int
    stride: int
    share: float = 1.0


def stages(algorithm: str, size: int, stride: int, domain_rank_count: int) -> tuple[Stage, ...]:
    """Stages of an algorithm in groups of `size` ranks, `stride` apart, over domains of `domain_rank_count` ranks.

    Ranks of a group in a domain that do not divide the group are taken in parts that do.
    """
    if algorithm in _FLAT:
        return tuple(Stage(kind, schedule, size, stride) for kind, schedule in _FLAT[algorithm])
    near = gcd(size, members_of_domain(size, stride, domain_rank_count))
    far, apart = size // near, stride * near
    if algorithm == "switch_multicast":
        inside = Stage(Kind.BROADCAST, "binomial_tree", near, stride)
        return Stage(Kind.BROADCAST, SWITCH, far, apart), inside
    schedule = {"hierarchical": "ring", "switch_reduction": SWITCH}[algorithm]
    return (
        Stage(Kind.REDUCE_SCATTER, "recursive_halving", near, stride),
        Stage(Kind.ALLREDUCE, schedule, far, apart, 1 / near),
        Stage(Kind.ALLGATHER, "bruck_allgather", near, stride),
    )


def members_of_domain(size: int, stride: int, domain_rank_count: int) -> int:
    """Ranks of a group of `size`, `stride` apart, in a full domain."""
    return int(members_in_domain(*map(np.asarray, (size, stride, domain_rank_count))))


def contributed(kind: Kind, buffer_size: float, rank_count: int) -> float:
    """Bytes that one rank contributes to a collective with a buffer of `buffer_size`, as its schedule counts them."""
    if kind is Kind.BARRIER:
        return 0.0
    return buffer_size / rank_count if kind in _BLOCKS else buffer_size


def schedules_of(parts: Iterable[Stage]) -> dict[Kind, str]:
    """Schedule of each kind of collective. UsageError: two schedules of one kind."""
    found: dict[Kind, str] = {}
    for part in parts:
        if found.setdefault(part.kind, part.schedule) != part.schedule:
            raise UsageError(f"two algorithms of one collective: {found[part.kind]} and {part.schedule}")
    return found
