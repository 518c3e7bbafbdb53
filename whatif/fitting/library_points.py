"""Measured collectives of a GPU library, with the data sheet of the machine that they ran on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from whatif.models.gpu_collectives import Ranks, domain_link_bandwidth, library_time
from whatif.models.library_steps import TRAFFIC, Traffic
from whatif.models.library_tuner import RING_CHOSEN, SHORT_TREE_CHOSEN, tuner_choice
from whatif.models.quantities import FloatArray

ALGORITHMS: Final[Mapping[str, str]] = {
    "allreduce": "best",
    "allgather": "ring_allgather",
    "reduce_scatter": "ring_reduce_scatter",
    "alltoall": "pairwise",
}
"""Algorithms by the names of operations in tables of measurements."""
_RINGS: Final = {"allreduce": "ring", "allgather": "ring_allgather", "reduce_scatter": "ring_reduce_scatter"}
Scale = Literal["in_domain", "between_domains"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class LibrarySheet:
    """Data sheet of a machine: GPUs of a link domain and their links, and the ports of a domain, in B/s."""

    domain_rank_count: float
    link_bandwidth: float
    network_bandwidth: float
    topology: Literal["mesh", "ring", "switch"] = "switch"
    switch_reduction: bool = False

    def groups(self, ranks: FloatArray) -> Ranks:
        """Ranks that fill the domains evenly, and their bandwidths."""
        members = np.minimum(ranks, self.domain_rank_count)
        link = domain_link_bandwidth(np.asarray(self.link_bandwidth), members, topology=self.topology)
        network = self.network_bandwidth * members / self.domain_rank_count
        return Ranks(ranks, np.ceil(ranks / members), members, members, link, network)

    def time(self, points: CollectivePoints) -> FloatArray:
        """Times in s of points from the data sheet alone."""
        group, found = self.groups(points.ranks), np.empty(len(points))
        for operation in dict.fromkeys(points.operations):
            algorithm = ALGORITHMS[operation]
            times = library_time(points.sizes, *group, algorithm=algorithm, switch_reduction=self.switch_reduction)
            found = np.where(points.operations == operation, times, found)
        return found


@dataclass(frozen=True, eq=False)
class CollectivePoints:
    """Measured times, as arrays of shape (points,), in base units."""

    operations: NDArray[Any]
    sizes: FloatArray
    ranks: FloatArray
    times: FloatArray

    def __len__(self) -> int:
        return len(self.sizes)

    def at(self, rows: Mask) -> CollectivePoints:
        """Some of the points, by a mask."""
        return CollectivePoints(self.operations[rows], self.sizes[rows], self.ranks[rows], self.times[rows])

    def at_scale(self, sheet: LibrarySheet, scale: Scale) -> CollectivePoints:
        """Points in one link domain, or over several."""
        far = self.ranks > sheet.domain_rank_count
        return self.at(far if scale == "between_domains" else ~far)

    def largest_scales(self) -> Mask:
        """Mask of the largest number of ranks of each operation that has several."""
        held: Mask = np.zeros(len(self), dtype=bool)
        for operation in dict.fromkeys(self.operations):
            own = self.operations == operation
            if len(np.unique(self.ranks[own])) > 1:
                held |= own & (self.ranks == self.ranks[own].max())
        return held


def points_by_algorithm(points: CollectivePoints, sheet: LibrarySheet) -> dict[str, tuple[CollectivePoints, Traffic]]:
    """Points that show the messages of ring, pairwise and switch, with these messages."""
    found = {}
    for name, operations in (("ring", _RINGS), ("pairwise", ("alltoall",)), ("switch", ("allreduce",))):
        rows = np.isin(points.operations, list(operations)) & _uses(name, points, sheet)
        if rows.any():
            found[name] = (points.at(rows), traffic_of(name, points.at(rows), sheet))
    return found


def _uses(name: str, points: CollectivePoints, sheet: LibrarySheet) -> Mask:
    """Mask of the points that an algorithm moved, as far as it is a choice."""
    reduced: Mask = points.operations == "allreduce"
    if name == "switch" or sheet.switch_reduction:
        return reduced if name == "switch" and sheet.switch_reduction else ~reduced
    return np.asarray(~reduced | (choices(points, sheet) == RING_CHOSEN))


def choices(points: CollectivePoints, sheet: LibrarySheet) -> FloatArray:
    """Algorithms that NCCL's tuner chooses for an allreduce of these sizes."""
    group = sheet.groups(points.ranks)
    return tuner_choice(points.sizes, group.ranks, group.domains, group.in_domain, group.network)


def short_tree_points(points: CollectivePoints, sheet: LibrarySheet) -> CollectivePoints:
    """Points of an allreduce along trees with LL."""
    rows = (points.operations == "allreduce") & (choices(points, sheet) == SHORT_TREE_CHOSEN)
    return points.at(rows & (not sheet.switch_reduction))


def traffic_of(name: str, points: CollectivePoints, sheet: LibrarySheet) -> Traffic:
    """Messages of points by one algorithm: a ring turns twice for an allreduce."""
    group = sheet.groups(points.ranks)
    if name != "ring":
        return TRAFFIC["hierarchical" if name == "switch" else name](points.sizes, group)
    turns = np.where(points.operations == "allreduce", 2.0, 1.0)
    count, size, busy = TRAFFIC["ring_allgather"](points.sizes, group)
    return Traffic(turns * count, size, turns * busy)
