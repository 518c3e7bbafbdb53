"""Message counts as array functions: arrays of rank counts and nodes in, counts of real placements out.

Each distinct point is counted once (`patterns.message_counts`); points without such a pattern are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Named
from typing import Annotated, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from whatif import units
from whatif.models.decomposition import MOST_CELLS, MOST_RANKS, PerDimension, is_count
from whatif.models.patterns import BoxPattern, GridPattern, Mapping, Neighbours, Order, Pattern, message_counts
from whatif.models.quantities import Core, Count, FloatArray, model

RankCounts = Annotated[FloatArray, units.ONE, Core("class", "distance", "kind")]
NodeCounts = Annotated[FloatArray, units.ONE, Core("node_class", "kind")]
PAPER = "Choi et al. 2020, section 3.1"

# Counts of whole nodes do not depend on sockets; with equal sockets, all four counts of a pattern share a cache entry.
ANY_SOCKET: Count = np.ones(())
ONE_NODE: Count = np.ones(())
ONE_GROUP: Count = np.ones(())


class Choices(TypedDict, total=False):
    """Structural options of a `GridPattern`, with its defaults."""

    periodic: bool
    neighbours: Neighbours
    mapping: Mapping
    order: Order


def each_distinct(
    points: list[ArrayLike],
    result_of: Callable[[FloatArray], FloatArray | None],
    least_shape: tuple[int, ...],
) -> FloatArray:
    """Results [..., *shape] at every point; `points` are columns to broadcast, each distinct row is evaluated once.

    Results of different shapes are padded with 0 to the largest one; None gives NaN.
    """
    columns = np.stack(np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in points)), axis=-1)
    # A dictionary finds one distinct row in a fiftieth of the time of `np.unique`, and a million no later.
    rows: dict[tuple[float, ...], int] = {}
    place = [rows.setdefault(tuple(row), len(rows)) for row in columns.reshape(-1, len(points)).tolist()]
    parts = [result_of(np.array(row)) for row in rows]
    sizes = [least_shape, *(array.shape for array in parts if array is not None)]
    result = np.zeros((len(parts), *np.max(sizes, axis=0).astype(int)))
    for row, array in enumerate(parts):
        shape = () if array is None else array.shape
        result[(slice(row, row + 1), *(slice(size) for size in shape))] = np.nan if array is None else array
    return result[np.array(place, dtype=np.intp).reshape(columns.shape[:-1])]


def _counted(
    points: list[ArrayLike], pattern_of: Callable[[tuple[int, ...]], Pattern], part: str, smallest: Pattern
) -> FloatArray:
    """One part of `MessageCounts` at every point, NaN without such a pattern; at least as wide as in the smallest."""

    def part_at(row: FloatArray) -> FloatArray | None:
        """Part of the counts at a point; None without a pattern."""
        pattern = pattern_at(row, pattern_of)
        return None if pattern is None else np.asarray(getattr(message_counts(pattern), part))

    return each_distinct(points, part_at, np.shape(getattr(message_counts(smallest), part)))


def pattern_at(row: FloatArray, pattern_of: Callable[[tuple[int, ...]], Pattern]) -> Pattern | None:
    """Pattern of a row of whole numbers; None if it does not exist or has too many ranks."""
    if not is_count(row, most=MOST_CELLS).all():
        return None
    pattern = pattern_of(tuple(int(number) for number in row))
    explicit = not isinstance(pattern.mapping, str)
    if pattern.rank_count > MOST_RANKS or (explicit and len(pattern.mapping) != pattern.rank_count):
        return None
    return pattern


def _on_grid(dims: FloatArray, places: tuple[FloatArray, ...], choices: Choices, part: str) -> FloatArray:
    """`_counted` for grids; `places` are what follows the extents in `grid_at`."""
    points = [*np.moveaxis(np.asarray(dims, dtype=np.float64), -1, 0), *places]
    smallest = GridPattern((1,) * np.shape(dims)[-1], 1, 1, neighbours=choices.get("neighbours", "faces"))
    return _counted(points, lambda row: grid_at(row, choices), part, smallest)


def grid_at(row: tuple[int, ...], choices: Named[str, Any]) -> GridPattern:
    """Grid of a row: its extents, ranks per node and per socket, nodes per link domain, stride and number of groups."""
    dims, (on_node, on_socket, nodes, stride, count) = row[:-5], row[-5:]
    places: dict[str, Any] = {"nodes_per_domain": nodes, "group_stride": stride, "group_count": count}
    return GridPattern(dims, on_node, on_socket, **places, **choices)


def boxes_at(row: tuple[int, ...]) -> BoxPattern:
    """Boxes of a row: their number, ranks per node and per socket, nodes per link domain, and the cells."""
    return BoxPattern(row[0], row[4:], row[1], row[2], nodes_per_domain=row[3])


@model("messages per rank, by distance and kind", PAPER)
def rank_message_counts(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    nodes_per_domain: Count = ONE_NODE,
    group_stride: Count = ONE_GROUP,
    group_count: Count = ONE_GROUP,
    **choices: Unpack[Choices],
) -> RankCounts:
    """Messages sent by the ranks that can be the slowest (see `MessageCounts`; options as in `GridPattern`).

    `dims` [..., dimension] and two arrays that broadcast with its leading axes give
    [..., class, distance, kind], padded with classes of no messages to the largest number of classes.
    `group_count` groups have such a grid each, with ranks `group_stride` apart.
    NaN where no such grid exists: numbers that are not whole or below 1, more than `MOST_RANKS` ranks, an
    explicit mapping of another length.
    """
    places = (ranks_per_node, ranks_per_socket, nodes_per_domain, group_stride, group_count)
    return _on_grid(dims, places, choices, "rank_counts")


@model("inter-node messages per node, by kind", PAPER)
def node_message_counts(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count = ANY_SOCKET,
    nodes_per_domain: Count = ONE_NODE,
    group_stride: Count = ONE_GROUP,
    group_count: Count = ONE_GROUP,
    **choices: Unpack[Choices],
) -> NodeCounts:
    """Inter-node messages of the nodes that can be the slowest, [..., node_class, kind].

    Arguments as in `rank_message_counts`.
    """
    places = (ranks_per_node, ranks_per_socket, nodes_per_domain, group_stride, group_count)
    return _on_grid(dims, places, choices, "node_counts")


@model("K_inter = max over nodes of the messages to other nodes", PAPER)
def inter_node_count(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count = ANY_SOCKET,
    nodes_per_domain: Count = ONE_NODE,
    group_stride: Count = ONE_GROUP,
    group_count: Count = ONE_GROUP,
    **choices: Unpack[Choices],
) -> Count:
    """Most messages that any node sends to other nodes, [...]; options as in `rank_message_counts`."""
    places = (ranks_per_node, ranks_per_socket, nodes_per_domain, group_stride, group_count)
    return _on_grid(dims, places, choices, "inter_node_count")


@model("K_total = max over nodes of all messages sent", PAPER)
def total_count(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count = ANY_SOCKET,
    nodes_per_domain: Count = ONE_NODE,
    group_stride: Count = ONE_GROUP,
    group_count: Count = ONE_GROUP,
    **choices: Unpack[Choices],
) -> Count:
    """Most messages that any node sends, including those inside it, [...]; options as in `rank_message_counts`."""
    places = (ranks_per_node, ranks_per_socket, nodes_per_domain, group_stride, group_count)
    return _on_grid(dims, places, choices, "total_count")


def _on_boxes(points: tuple[FloatArray, ...], cells: FloatArray, part: str) -> FloatArray:
    """`_counted` for bisections with block mapping; `points` and `cells` are those of `boxes_at`."""
    columns = [*points, *np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)]
    return _counted(columns, boxes_at, part, BoxPattern(1, (1,) * np.shape(cells)[-1], 1, 1))


@model("messages per rank, by distance and kind", PAPER)
def box_rank_message_counts(
    rank_count: Count,
    cells: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    nodes_per_domain: Count = ONE_NODE,
) -> RankCounts:
    """`rank_message_counts` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    points = (rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain)
    return _on_boxes(points, cells, "rank_counts")


@model("inter-node messages per node, by kind", PAPER)
def box_node_message_counts(
    rank_count: Count,
    cells: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count = ANY_SOCKET,
    nodes_per_domain: Count = ONE_NODE,
) -> NodeCounts:
    """`node_message_counts` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    points = (rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain)
    return _on_boxes(points, cells, "node_counts")


@model("K_inter = max over nodes of the messages to other nodes", PAPER)
def box_inter_node_count(
    rank_count: Count,
    cells: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count = ANY_SOCKET,
    nodes_per_domain: Count = ONE_NODE,
) -> Count:
    """`inter_node_count` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    points = (rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain)
    return _on_boxes(points, cells, "inter_node_count")


@model("K_total = max over nodes of all messages sent", PAPER)
def box_total_count(
    rank_count: Count,
    cells: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count = ANY_SOCKET,
    nodes_per_domain: Count = ONE_NODE,
) -> Count:
    """`total_count` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    points = (rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain)
    return _on_boxes(points, cells, "total_count")
