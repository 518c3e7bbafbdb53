"""Rounds of a collective between placed ranks: their messages by distance, and how many leave a node at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final

import numpy as np
from numpy.typing import ArrayLike

from whatif import units
from whatif.models.collectives import RoundCounts, RoundSizes, RoundTimes
from whatif.models.decomposition import MOST_RANKS, is_count
from whatif.models.patterns import sockets
from whatif.models.placement import ONE_NODE, each_distinct
from whatif.models.quantities import Bytes, Core, Count, FloatArray, model

PlacedRounds = Annotated[FloatArray, units.ONE, Core("row", "round")]
SHARE, REPEATS, INNER, OUTER, BEYOND, LEAVING, MEAN_LEAVING = range(7)
"""Rows: size of the largest message as a share of the buffer, how often the round occurs, whether messages stay in an
inner domain, in an outer one, or leave it, and the messages that leave a node at once: of the busiest node, and
on average over the nodes of the busiest link domain."""
_SOURCE: Final = "counted from the schedule that is simulated"


@model("messages by round and distance", _SOURCE)
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
    return each_distinct(points, rounds, (7, 1))


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
    from whatif.core.phases.simulated_exchange import ALGORITHMS
    from whatif.simulation.round_patterns import grouped_rounds

    node = np.arange(rank_count, dtype=np.int32) // np.int32(ranks_per_node)
    outer, inner = node, sockets(node, ranks_per_socket)
    if nodes_per_domain > 1:
        outer, inner = node // np.int32(nodes_per_domain), node
    columns = []
    for item in grouped_rounds(ALGORITHMS[algorithm][0], algorithm, rank_count, group_size, group_stride):
        leaves = outer[item.sender] != outer[item.receiver]
        distance = leaves + (inner[item.sender] != inner[item.receiver]).astype(int)
        at_once = np.bincount(node[item.sender[leaves]]).max(initial=0)
        on_average = np.bincount(outer[item.sender[leaves]]).max(initial=0) / nodes_per_domain
        columns.append([item.share, item.repeats, *(distance == at for at in range(3)), at_once, on_average])
    return np.array([[np.max(cell) for cell in column] for column in columns]).T if columns else np.zeros((7, 1))


@model("c_r", "definition")
def round_repeats(rounds: PlacedRounds) -> RoundCounts:
    """How often each round occurs, [..., round]."""
    return np.asarray(rounds)[..., REPEATS, :]


@model("k_r = max(k_1, C k_m, 1)", _SOURCE)
def leaving_count(rounds: PlacedRounds, channel_count: Count) -> RoundCounts:
    """Messages that share the ports of a node in each round, [..., round], with C channels over its link domain.

    k_1 messages of one channel leave the busiest node at once, and k_m on average over the nodes of a domain: each
    channel leaves the domain by another node.
    """
    rounds = np.asarray(rounds)
    spread = rounds[..., MEAN_LEAVING, :] * np.asarray(channel_count)[..., np.newaxis]
    return np.maximum(np.maximum(rounds[..., LEAVING, :], spread), 1.0)


@model("C = m · ports", "definition")
def domain_ports(node_count: Count, port_count: Count) -> Count:
    """Ports of a link domain of m nodes. Elementwise."""
    return node_count * port_count


@model("n_r / C", "definition")
def channel_sizes(round_sizes: RoundSizes, channel_count: Count) -> RoundSizes:
    """Size of the messages of one of C channels, [..., round]."""
    return round_sizes / np.asarray(channel_count)[..., np.newaxis]


@model("n_r = x_r n", "definition")
def round_sizes(rounds: PlacedRounds, message_size: Bytes) -> RoundSizes:
    """Size of the largest message of each round, [..., round], from the buffer n and its shares x_r."""
    return np.asarray(rounds)[..., SHARE, :] * np.asarray(message_size)[..., np.newaxis]


@model("T_r = max over the distances d of its messages of T_d(n_r)", "definition")
def slowest_times(
    rounds: PlacedRounds, intra_socket_time: RoundTimes, inter_socket_time: RoundTimes, inter_node_time: RoundTimes
) -> RoundTimes:
    """Time of the farthest messages of each round, [..., round]."""
    times = {INNER: intra_socket_time, OUTER: inter_socket_time, BEYOND: inter_node_time}
    slowest: FloatArray = np.zeros(())
    for row, time in times.items():
        slowest = np.maximum(slowest, np.where(np.asarray(rounds)[..., row, :] > 0, time, 0.0))
    return slowest
