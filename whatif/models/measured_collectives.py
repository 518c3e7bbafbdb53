"""Measured times of collectives, interpolated in the size of the buffer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whatif.models.quantities import Bytes, Count, FloatArray, Seconds, model


class TimesBySize(NamedTuple):
    """Measured times in s by ascending sizes in B; `ranks_per_node` is 0 where it is not known."""

    rank_count: float
    ranks_per_node: float
    sizes: tuple[float, ...]
    times: tuple[float, ...]

    def holds(self, rank_count: FloatArray, node_rank_count: FloatArray) -> FloatArray:
        """1 where the ranks and those of a node are as they were measured, else 0."""
        placed = (self.ranks_per_node == 0) | (node_rank_count == self.ranks_per_node)
        return np.asarray((rank_count == self.rank_count) & placed, dtype=np.float64)

    def at(self, message_size: FloatArray) -> FloatArray:
        """Times at some sizes: beyond the largest one in proportion to the size, below the smallest one as there."""
        sizes, times = np.maximum(self.sizes, np.finfo(float).tiny), np.array(self.times)
        inside = np.interp(np.log(np.maximum(message_size, sizes[0])), np.log(sizes), np.log(times))
        return np.asarray(np.exp(inside) * np.maximum(message_size / sizes[-1], 1.0))


@model("log T is linear in log n between measured sizes", "definition")
def tabulated_time(
    message_size: Bytes, rank_count: Count, node_rank_count: Count, *, tables: tuple[TimesBySize, ...]
) -> Seconds:
    """Time of a collective from the table of its number of ranks; 0 for one rank, NaN without a table. Elementwise.

    It ascends with the size wherever the measured times do.
    """
    known = [table.holds(rank_count, node_rank_count) > 0 for table in tables]
    times = np.select(known, [table.at(message_size) for table in tables], np.nan)
    return np.where(rank_count > 1, times, 0.0)


@model("P in table", "definition")
def is_tabulated(rank_count: Count, node_rank_count: Count, *, tables: tuple[TimesBySize, ...]) -> Count:
    """1 where the collective was measured on these ranks, or has one rank, else 0. Elementwise."""
    found = [table.holds(rank_count, node_rank_count) for table in tables]
    return np.asarray(np.maximum.reduce([*found, np.asarray(rank_count <= 1, dtype=np.float64)]))
