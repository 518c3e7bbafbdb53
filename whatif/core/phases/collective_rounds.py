"""Rounds of a collective between placed ranks: their messages by distance, and how many leave a node at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from whatif.models.decomposition import MOST_RANKS, is_count
from whatif.models.patterns import block_nodes, nested_domains
from whatif.models.placed_rounds import COUNTED, PlacedRounds
from whatif.models.placement import ONE_NODE, each_distinct
from whatif.models.quantities import Count, FloatArray, model


@model("messages by round and distance", COUNTED)
def placed_rounds(
    rank_count: Count,
    group_size: Count,
    group_stride: Count,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    nodes_per_domain: Count = ONE_NODE,
    *,
    algorithm: str,
) -> PlacedRounds:
    """Rounds of an algorithm in all groups at once with block mapping, [..., row, round]; domains as in `GridPattern`.

    Of an all-to-all between more than 65 ranks, 64 rounds are followed. NaN for numbers that are no counts, and for
    groups that do not divide the ranks.
    """

    def rounds(row: FloatArray) -> FloatArray | None:
        if not is_count(row, most=MOST_RANKS).all() or row[0] % (row[1] * row[2]):
            return None
        return _rounds(algorithm, *(int(number) for number in row))

    points: list[ArrayLike] = [rank_count, group_size, group_stride, ranks_per_node, ranks_per_socket, nodes_per_domain]
    return each_distinct(points, rounds, (8, 1))


@lru_cache(maxsize=1024)
def _rounds(
    algorithm: str,
    rank_count: int,
    group_size: int,
    group_stride: int,
    ranks_per_node: int,
    ranks_per_socket: int,
    nodes_per_domain: int,
) -> FloatArray:
    from whatif.simulation.round_patterns import collective_rounds

    node = block_nodes(rank_count, ranks_per_node)
    # The last domain may have fewer nodes.
    domain_nodes = np.bincount(np.arange(node[-1] + 1) // nodes_per_domain)
    outer, inner = nested_domains(node, ranks_per_socket, nodes_per_domain)
    columns = []
    domain = ranks_per_node * nodes_per_domain
    for item in collective_rounds(algorithm, rank_count, group_size, group_stride, domain):
        leaves = outer[item.sender] != outer[item.receiver]
        distance = leaves + (inner[item.sender] != inner[item.receiver]).astype(np.int8)
        leaving = item.sender[leaves]
        at_once = np.bincount(node[leaving]).max(initial=0)
        on_average = (np.bincount(outer[leaving], minlength=len(domain_nodes)) / domain_nodes).max()
        far = (distance == at for at in range(3))
        columns.append([item.share, item.repeats, *far, at_once, on_average, item.repeats * item.combining])
    return np.array([[np.max(cell) for cell in column] for column in columns]).T if columns else np.zeros((8, 1))
