"""Communication patterns: the messages of every rank, counted by kind and distance.

A `GridPattern` (Cartesian grid) or a `BoxPattern` (recursive bisection) defines which ranks exchange messages
and which node holds each rank; `message_counts` counts the messages. `placement` does so for arrays of points.

The kind of a message is the set of dimensions in which its receiver is displaced (`message_kinds`).
Its distance is 0 inside an inner domain, 1 inside an outer one and 2 beyond: a socket and a node (`domains`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from whatif.models import decomposition
from whatif.models.decomposition import AxisRule
from whatif.models.quantities import FloatArray

Neighbours = Literal["faces", "all"]
Order = Literal["c", "fortran"]
Mapping = Literal["block", "round_robin", "tiles"] | tuple[int, ...]
Kind = tuple[int, ...]
Ranks = NDArray[np.int32]
Batch = tuple[int, Ranks, Ranks]

INTRA_SOCKET, INTER_SOCKET, INTER_NODE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class GridPattern:
    """A halo exchange on a Cartesian process grid of extents `dims`.

    - `periodic`: all dimensions or none. In a periodic dimension of extent 2 both directions reach the same
      rank with two messages (MiniMD sends both); a message to oneself (extent 1) does not count (MiniMD copies).
    - `neighbours`: "faces" (2 per dimension) or "all" (8 in 2D, 26 in 3D).
    - `mapping`: "block" (consecutive ranks fill a node), "round_robin" (rank modulo the number of nodes),
      "tiles" (a compact tile of the grid fills a node, see `tile_shape`) or the node number of every rank.
    - `order` of the ranks in the grid: "c" (last dimension fastest, as MPI_Cart_create, used by Jacobi2D, not
      periodic, and MiniMD, periodic) or "fortran" (first dimension fastest).

    Under every mapping the ranks of a node fill its sockets in rank order, `ranks_per_socket` at a time. With device
    buffers a socket means a link domain in a node; a domain of several nodes has `nodes_per_domain`.

    Each of `group_count` groups has such a grid, whose ranks are `group_stride` apart; all exchange at once.
    """

    dims: tuple[int, ...]
    ranks_per_node: int
    ranks_per_socket: int
    periodic: bool = False
    neighbours: Neighbours = "faces"
    mapping: Mapping = "block"
    order: Order = "c"
    nodes_per_domain: int = 1
    group_stride: int = 1
    group_count: int = 1

    @property
    def rank_count(self) -> int:
        """Number of ranks."""
        return prod(self.dims) * self.group_count

    def nodes(self) -> Ranks:
        """Node of each rank [rank]."""
        if self.mapping == "tiles" and self.group_count == 1:
            return decomposition.tile_nodes(self.dims, self.ranks_per_node, _NUMPY_ORDER[self.order])
        return _nodes(self.rank_count, self.ranks_per_node, self.mapping)

    def messages(self) -> Iterator[Batch]:
        """Messages in batches (kind, sender, receiver)."""
        for kind, sender, receiver in grid_messages(self.grid_of(0), self.neighbours, self.periodic):
            yield kind, self._in_groups(sender), self._in_groups(receiver)

    def grid_of(self, rank: int) -> Ranks:
        """Ranks of the grid that holds a rank, in its shape."""
        members = np.arange(prod(self.dims), dtype=np.int32).reshape(self.dims, order=_NUMPY_ORDER[self.order])
        span = members.size * self.group_stride
        return members * np.int32(self.group_stride) + np.int32(rank // span * span + rank % self.group_stride)

    def _in_groups(self, ranks: Ranks) -> Ranks:
        """Ranks of the first group, and those in the same places of the others."""
        if self.group_count == 1:
            return ranks
        group = np.arange(self.group_count, dtype=np.int32)[:, np.newaxis]
        within = group % np.int32(self.group_stride)
        return (ranks + (group - within) * np.int32(prod(self.dims)) + within).ravel()


@dataclass(frozen=True, slots=True)
class BoxPattern:
    """A halo exchange between the boxes of a recursive bisection of `cells` (see `bisection`), as in MiniFE.

    Two boxes exchange messages where they touch: at a face or, with `neighbours` "all", at an edge or corner.
    The domain is not periodic, and a box without cells sends nothing. Mappings as in `GridPattern`, without
    "tiles"; the kind of a message is the set of dimensions in which the boxes touch without overlap.
    """

    box_count: int
    cells: tuple[int, ...]
    ranks_per_node: int
    ranks_per_socket: int
    neighbours: Neighbours = "all"
    mapping: Mapping = "block"
    rule: AxisRule = "cycle"
    nodes_per_domain: int = 1

    @property
    def rank_count(self) -> int:
        """Number of ranks."""
        return self.box_count

    @property
    def dims(self) -> tuple[int, ...]:
        """Extents of the grid of cells; only their number matters, for the kinds."""
        return self.cells

    def nodes(self) -> Ranks:
        """Node of each rank [rank]."""
        return _nodes(self.box_count, self.ranks_per_node, self.mapping)

    def messages(self) -> Iterator[Batch]:
        """Messages in batches (kind, sender, receiver)."""
        boxes = decomposition.bisection(self.box_count, self.cells, rule=self.rule)
        ranks = decomposition.rank_grid(boxes)
        if ranks is not None:
            return grid_messages(ranks, self.neighbours, periodic=False)
        return touching_messages(boxes, self.neighbours)


def grid_messages(ranks: Ranks, neighbours: Neighbours, periodic: bool) -> Iterator[Batch]:
    """Messages between the ranks of a Cartesian grid, one neighbour offset at a time, in the order of kinds."""
    for index, kind in enumerate(message_kinds(ranks.ndim, neighbours)):
        for signs in product((-1, 1), repeat=len(kind)):
            sender, receiver = decomposition.shifted(ranks, dict(zip(kind, signs, strict=True)), periodic)
            yield index, sender.ravel(), receiver.ravel()


def touching_messages(boxes: decomposition.Boxes, neighbours: Neighbours) -> Iterator[Batch]:
    """Messages between adjacent boxes, one kind at a time, in the order of kinds."""
    first, second, displaced = decomposition.touching_boxes(boxes)
    code = displaced @ (1 << np.arange(displaced.shape[1]))
    for index, kind in enumerate(message_kinds(displaced.shape[1], neighbours)):
        here = np.flatnonzero(code == sum(1 << dimension for dimension in kind))
        yield index, first[here], second[here]


Pattern = GridPattern | BoxPattern
_NUMPY_ORDER: dict[Order, Literal["C", "F"]] = {"c": "C", "fortran": "F"}


@dataclass(frozen=True, slots=True, eq=False)
class MessageCounts:
    """Message counts of a pattern, reduced to the ranks and nodes that can be the slowest.

    - `rank_counts` [class, distance, kind]: the distinct counts of the ranks, without those that are ≤
      another's in every entry, as such a rank can never be the slowest.
    - `node_counts` [node_class, kind]: the same for the inter-node messages sent by a whole node.
    - `inter_node_count`, `total_count`: the most inter-node messages and the most messages of any node.

    Inter-node messages are those that leave the outer domain: the node, or its link domain of several nodes.
    """

    rank_counts: FloatArray
    node_counts: FloatArray
    inter_node_count: float
    total_count: float


def message_kinds(dimension_count: int, neighbours: Neighbours) -> tuple[Kind, ...]:
    """Kinds of message: faces, then edges, then corners, each in lexicographic order.

    A kind is the tuple of the dimensions in which the neighbour is displaced: ((0,), (1,), (0, 1)) for all
    neighbours in 2D.
    """
    most = 1 if neighbours == "faces" else dimension_count
    return tuple(kind for size in range(1, most + 1) for kind in combinations(range(dimension_count), size))


@lru_cache(maxsize=4096)
def message_counts(pattern: Pattern) -> MessageCounts:
    """Message counts of a pattern with 1 to `MOST_RANKS` ranks; all its numbers must be positive."""
    kind_count = len(message_kinds(len(pattern.dims), pattern.neighbours))
    return count_messages(pattern.messages(), pattern.nodes(), domains(pattern), kind_count)


def domains(pattern: Pattern) -> tuple[Ranks, Ranks]:
    """Outer and inner domain of each rank, as `nested_domains` gives them."""
    return nested_domains(pattern.nodes(), pattern.ranks_per_socket, pattern.nodes_per_domain)


def nested_domains(node: Ranks, ranks_per_socket: int, nodes_per_domain: int = 1) -> tuple[Ranks, Ranks]:
    """Outer and inner domain of each rank: its node and socket, or its link domain of several nodes and its node."""
    if nodes_per_domain > 1:
        return node // np.int32(nodes_per_domain), node
    return node, sockets(node, ranks_per_socket)


def count_messages(
    batches: Iterator[Batch], node: Ranks, nested: tuple[Ranks, Ranks], kind_count: int
) -> MessageCounts:
    """Message counts of batches (kind, sender, receiver) on any graph.

    `node` and the outer and inner domains `nested` [rank] are machine-wide numbers. Messages of a rank to itself are
    not counted; those that leave the outer domain count for the node whose ports they use. Takes 6 bytes per rank and
    kind; at most 65,535 messages of a rank at one distance and kind.
    """
    outer, inner = nested
    per_rank = np.zeros((kind_count, node.size, 3), dtype=np.uint16)
    for kind, sender, receiver in batches:
        away = sender != receiver
        start, end = sender[away], receiver[away]
        distance = (inner[start] != inner[end]).astype(np.int32) + (outer[start] != outer[end])
        sent = np.bincount(start * np.int64(3) + distance, minlength=3 * node.size)
        per_rank[kind] += sent.reshape(-1, 3).astype(np.uint16)
    return _reduce(per_rank, node)


def _reduce(per_rank: NDArray[np.uint16], node: Ranks) -> MessageCounts:
    """`MessageCounts` from counts [kind, rank, distance]."""
    nodes = int(node.max()) + 1
    inter = np.stack([np.bincount(node, weights=kind[:, INTER_NODE], minlength=nodes) for kind in per_rank])
    total = np.bincount(node, weights=per_rank.sum(axis=(0, 2)), minlength=nodes)
    classes = maximal_rows(distinct_columns(list(per_rank.transpose(2, 0, 1).reshape(-1, node.size))))
    node_classes = maximal_rows(distinct_columns(list(inter.astype(np.int64))))
    rank_counts = classes.reshape(len(classes), 3, -1)
    return MessageCounts(rank_counts, node_classes, float(inter.sum(axis=0).max()), float(total.max()))


def distinct_columns(entries: list[NDArray[np.integer]]) -> FloatArray:
    """Distinct columns of a table of counts ≥ 0 given by rows, as rows [class, entry] of float64.

    Columns are packed into one integer key, which is renumbered whenever the next entry would overflow it.
    """
    key = np.zeros(entries[0].size, dtype=np.int64)
    span = 1
    for entry in entries:
        radix = int(entry.max()) + 1
        if span * radix >= 2**62:
            distinct, key = np.unique(key, return_inverse=True)
            span = distinct.size
        key, span = key * radix + entry, span * radix
    first = np.unique(key, return_index=True)[1]
    return np.stack([entry[first] for entry in entries], axis=1).astype(np.float64)


def maximal_rows(rows: FloatArray) -> FloatArray:
    """Distinct rows of some rows [row, entry] that are not ≤ another one in every entry, largest sum first."""
    sums, kept = rows.sum(axis=1), []
    while len(rows):
        kept.append(rows[sums.argmax()])
        rest = (rows > kept[-1]).any(axis=1)
        rows, sums = rows[rest], sums[rest]
    result = np.stack(kept)
    result.setflags(write=False)  # shared through the cache
    return result


def _nodes(rank_count: int, ranks_per_node: int, mapping: Mapping) -> Ranks:
    """Node of each rank for a mapping that does not depend on the grid."""
    if mapping == "block":
        return block_nodes(rank_count, ranks_per_node)
    if mapping == "round_robin":
        return np.arange(rank_count, dtype=np.int32) % np.int32(-(-rank_count // ranks_per_node))
    if isinstance(mapping, str) or len(mapping) != rank_count:
        raise ValueError(f"mapping {mapping!r:.40} does not place {rank_count} ranks")
    return np.unique(np.array(mapping, dtype=np.int64), return_inverse=True)[1].astype(np.int32)


def block_nodes(rank_count: int, ranks_per_node: int) -> Ranks:
    """Node of each rank if consecutive ranks fill a node."""
    return np.arange(rank_count, dtype=np.int32) // np.int32(ranks_per_node)


def sockets(node: Ranks, ranks_per_socket: int) -> Ranks:
    """Machine-wide socket number of each rank; the ranks of a node fill its sockets in rank order."""
    order = np.argsort(node, kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(node))[:-1]]).astype(np.int32)
    local = np.empty_like(node)
    local[order] = np.arange(node.size, dtype=np.int32) - first[node[order]]
    socket = local // np.int32(ranks_per_socket)
    number: Ranks = node * (socket.max() + np.int32(1)) + socket
    return number
