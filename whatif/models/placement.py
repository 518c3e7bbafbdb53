"""Who sends to whom, and how far: the messages of every rank counted from its place in the machine.

A `GridPattern` (Cartesian grid) or a `BoxPattern` (recursive bisection) says which ranks exchange messages
and which node holds each rank; `message_counts` counts. The functions with a citation are for the engine.

The kind of a message is the set of dimensions in which its receiver is displaced (`message_kinds`).
Its distance is 0 inside a socket, 1 between the sockets of a node, 2 between nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import prod
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whatif import units
from whatif.models import decomposition
from whatif.models.decomposition import MOST_RANKS, AxisRule, PerDimension, is_count
from whatif.models.quantities import Core, Count, FloatArray, model

Neighbours = Literal["faces", "all"]
Order = Literal["c", "fortran"]
Mapping = Literal["block", "round_robin", "tiles"] | tuple[int, ...]
Kind = tuple[int, ...]
Ranks = NDArray[np.int32]
Batch = tuple[int, Ranks, Ranks]
RankCounts = Annotated[FloatArray, units.ONE, Core("class", "distance", "kind")]
NodeCounts = Annotated[FloatArray, units.ONE, Core("node_class", "kind")]

INTRA_SOCKET, INTER_SOCKET, INTER_NODE = 0, 1, 2
PAPER = "Choi et al. 2020, section 3.1"


@dataclass(frozen=True, slots=True)
class GridPattern:
    """A halo exchange on a Cartesian process grid of extents `dims`.

    - `periodic`: all dimensions or none. In a periodic dimension of extent 2 both directions reach the same
      rank with two messages (MiniMD sends both); a message to oneself (extent 1) is none (MiniMD copies).
    - `neighbours`: "faces" (2 a dimension) or "all" (8 in 2D, 26 in 3D).
    - `mapping`: "block" (consecutive ranks fill a node), "round_robin" (rank modulo the number of nodes),
      "tiles" (a compact tile of the grid fills a node, see `tile_shape`) or the node number of every rank.
    - `order` of the ranks in the grid: "c", the last dimension fastest, is that of MPI_Cart_create, which
      Jacobi2D (not periodic) and MiniMD (periodic) use; "fortran" has the first dimension fastest.

    Under every mapping the ranks of a node fill its sockets in rank order, `ranks_per_socket` at a time.
    """

    dims: tuple[int, ...]
    ranks_per_node: int
    ranks_per_socket: int
    periodic: bool = False
    neighbours: Neighbours = "faces"
    mapping: Mapping = "block"
    order: Order = "c"

    @property
    def rank_count(self) -> int:
        """The number of ranks."""
        return prod(self.dims)

    def nodes(self) -> Ranks:
        """The node of each rank [rank]."""
        if self.mapping == "tiles":
            return decomposition.tile_nodes(self.dims, self.ranks_per_node, _NUMPY_ORDER[self.order])
        return _nodes(self.rank_count, self.ranks_per_node, self.mapping)

    def messages(self) -> Iterator[Batch]:
        """All messages as (kind, sender, receiver), one neighbour offset at a time, kinds in order."""
        ranks = np.arange(self.rank_count, dtype=np.int32).reshape(self.dims, order=_NUMPY_ORDER[self.order])
        for index, kind in enumerate(message_kinds(len(self.dims), self.neighbours)):
            for signs in product((-1, 1), repeat=len(kind)):
                shift = dict(zip(kind, signs, strict=True))
                sender, receiver = decomposition.shifted(ranks, shift, self.periodic)
                yield index, sender.ravel(), receiver.ravel()


@dataclass(frozen=True, slots=True)
class BoxPattern:
    """A halo exchange between the boxes of a recursive bisection of `cells`, as in MiniFE (see `bisection`).

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

    @property
    def rank_count(self) -> int:
        """The number of ranks."""
        return self.box_count

    @property
    def dims(self) -> tuple[int, ...]:
        """The extents of the grid of cells: only their number matters, for the kinds."""
        return self.cells

    def nodes(self) -> Ranks:
        """The node of each rank [rank]."""
        return _nodes(self.box_count, self.ranks_per_node, self.mapping)

    def messages(self) -> Iterator[Batch]:
        """All messages as (kind, sender, receiver), one kind at a time, kinds in order."""
        boxes = decomposition.bisection(self.box_count, self.cells, rule=self.rule)
        first, second, displaced = decomposition.touching_boxes(boxes)
        code = displaced @ (1 << np.arange(displaced.shape[1]))
        for index, kind in enumerate(message_kinds(len(self.cells), self.neighbours)):
            here = np.flatnonzero(code == sum(1 << dimension for dimension in kind))
            yield index, first[here], second[here]


Pattern = GridPattern | BoxPattern
_NUMPY_ORDER: dict[Order, Literal["C", "F"]] = {"c": "C", "fortran": "F"}


@dataclass(frozen=True, slots=True, eq=False)
class MessageCounts:
    """What a pattern sends, reduced to what can matter for the slowest rank or node.

    - `rank_counts` [class, distance, kind]: the distinct counts of the ranks, without those that are ≤
      another's in every entry: such a rank can never be the slowest.
    - `node_counts` [node_class, kind]: the same for the inter-node messages sent by a whole node.
    - `inter_node_count`, `total_count`: the most inter-node messages and the most messages sent by any node.
    """

    rank_counts: FloatArray
    node_counts: FloatArray
    inter_node_count: float
    total_count: float


def message_kinds(dimension_count: int, neighbours: Neighbours) -> tuple[Kind, ...]:
    """The kinds of message in a stable order: faces, then edges, then corners, each in lexicographic order.

    A kind is the tuple of the dimensions in which the neighbour is displaced: ((0,), (1,), (0, 1)) for all
    neighbours in 2D.
    """
    most = 1 if neighbours == "faces" else dimension_count
    return tuple(kind for size in range(1, most + 1) for kind in combinations(range(dimension_count), size))


def kind_name(kind: Kind) -> str:
    """The name of a kind: "x", "y", "xy", ..., the dimensions after the fourth as "d4", "d5", ..."""
    return "".join("xyzw"[dimension] if dimension < 4 else f"d{dimension}" for dimension in kind)


@lru_cache(maxsize=4096)
def message_counts(pattern: Pattern) -> MessageCounts:
    """Count the messages of a pattern with 1 to `MOST_RANKS` ranks; all its numbers must be positive."""
    node = pattern.nodes()
    socket = sockets(node, pattern.ranks_per_socket)
    kind_count = len(message_kinds(len(pattern.dims), pattern.neighbours))
    return count_messages(pattern.messages(), node, socket, kind_count)


def count_messages(batches: Iterator[Batch], node: Ranks, socket: Ranks, kind_count: int) -> MessageCounts:
    """Count messages given as (kind, sender, receiver) batches, on any graph.

    `node` and `socket` [rank] are machine-wide numbers. A message of a rank to itself is not counted. Takes
    6 bytes a rank and kind; at most 65,535 messages of a rank at one distance and kind.
    """
    per_rank = np.zeros((kind_count, node.size, 3), dtype=np.uint16)
    for kind, sender, receiver in batches:
        away = sender != receiver
        start, end = sender[away], receiver[away]
        distance = (socket[start] != socket[end]).astype(np.int32) + (node[start] != node[end])
        sent = np.bincount(start * np.int64(3) + distance, minlength=3 * node.size)
        per_rank[kind] += sent.reshape(-1, 3).astype(np.uint16)
    return _reduce(per_rank, node)


def _reduce(per_rank: NDArray[np.uint16], node: Ranks) -> MessageCounts:
    """From counts [kind, rank, distance] to `MessageCounts`."""
    nodes = int(node.max()) + 1
    inter = np.stack([np.bincount(node, weights=kind[:, INTER_NODE], minlength=nodes) for kind in per_rank])
    total = np.bincount(node, weights=per_rank.sum(axis=(0, 2)), minlength=nodes)
    classes = maximal_rows(distinct_columns(list(per_rank.transpose(2, 0, 1).reshape(-1, node.size))))
    node_classes = maximal_rows(distinct_columns(list(inter.astype(np.int64))))
    rank_counts = classes.reshape(len(classes), 3, -1)
    return MessageCounts(rank_counts, node_classes, float(inter.sum(axis=0).max()), float(total.max()))


def distinct_columns(entries: list[NDArray[np.integer]]) -> FloatArray:
    """The distinct columns of a table of counts ≥ 0 given by rows, as rows [class, entry] of float64.

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
    """The rows of distinct rows [row, entry] that are not ≤ another one in every entry, largest sum first."""
    rest = rows[np.argsort(-rows.sum(axis=1), kind="stable")]
    kept = []
    while len(rest):
        kept.append(rest[0])
        rest = rest[(rest > rest[0]).any(axis=1)]
    result = np.stack(kept)
    result.setflags(write=False)  # as it is shared through the cache
    return result


def _nodes(rank_count: int, ranks_per_node: int, mapping: Mapping) -> Ranks:
    """The node of each rank for a mapping that does not look at the grid."""
    ranks = np.arange(rank_count, dtype=np.int32)
    if mapping == "block":
        return ranks // np.int32(ranks_per_node)
    if mapping == "round_robin":
        return ranks % np.int32(-(-rank_count // ranks_per_node))
    if isinstance(mapping, str) or len(mapping) != rank_count:
        raise ValueError(f"mapping {mapping!r:.40} does not place {rank_count} ranks")
    return np.unique(np.array(mapping, dtype=np.int64), return_inverse=True)[1].astype(np.int32)


def sockets(node: Ranks, ranks_per_socket: int) -> Ranks:
    """A machine-wide socket number for each rank: the ranks of a node fill its sockets in rank order."""
    order = np.argsort(node, kind="stable").astype(np.int32)
    first = np.concatenate([[0], np.cumsum(np.bincount(node))[:-1]]).astype(np.int32)
    local = np.empty_like(node)
    local[order] = np.arange(node.size, dtype=np.int32) - first[node[order]]
    socket = local // np.int32(ranks_per_socket)
    number: Ranks = node * (socket.max() + np.int32(1)) + socket
    return number


def _evaluate(
    points: list[ArrayLike],
    pattern_of: Callable[[tuple[int, ...]], Pattern],
    part: Callable[[MessageCounts], ArrayLike],
    least_shape: tuple[int, ...] = (),
) -> FloatArray:
    """A part of the counts at every point, whose numbers are broadcast columns; each distinct point once."""
    columns = np.stack(np.broadcast_arrays(*(np.asarray(column, dtype=np.float64) for column in points)), axis=-1)
    rows, place = np.unique(columns.reshape(-1, len(points)), axis=0, return_inverse=True)
    counts = [_counts_at(row, pattern_of) for row in rows]
    parts = [None if count is None else np.asarray(part(count)) for count in counts]
    sizes = [least_shape, *(array.shape for array in parts if array is not None)]
    result = np.zeros((len(parts), *np.max(sizes, axis=0).astype(int)))
    for row, array in enumerate(parts):
        shape = () if array is None else array.shape
        result[(slice(row, row + 1), *(slice(size) for size in shape))] = np.nan if array is None else array
    return result[place.reshape(columns.shape[:-1])]


def _counts_at(row: FloatArray, pattern_of: Callable[[tuple[int, ...]], Pattern]) -> MessageCounts | None:
    """The counts at one point, None where there is no such pattern."""
    if not is_count(row).all():
        return None
    pattern = pattern_of(tuple(int(number) for number in row))
    explicit = not isinstance(pattern.mapping, str)
    if pattern.rank_count > MOST_RANKS or (explicit and len(pattern.mapping) != pattern.rank_count):
        return None
    return message_counts(pattern)


def _on_grid(
    dims: FloatArray,
    ranks: tuple[FloatArray, FloatArray | float],
    choices: tuple[bool, Neighbours, Mapping, Order],
    part: Callable[[MessageCounts], ArrayLike],
    least_shape: tuple[int, ...] = (),
) -> FloatArray:
    """`_evaluate` for grids; `ranks`: of a node and of a socket, `choices`: the rest of `GridPattern`."""
    points = [*np.moveaxis(np.asarray(dims, dtype=np.float64), -1, 0), *ranks]
    return _evaluate(points, lambda row: GridPattern(row[:-2], row[-2], row[-1], *choices), part, least_shape)


@model("messages a rank, by distance and kind", PAPER)
def rank_message_counts(
    dims: PerDimension,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    *,
    periodic: bool = False,
    neighbours: Neighbours = "faces",
    mapping: Mapping = "block",
    order: Order = "c",
) -> RankCounts:
    """Messages sent by the ranks that can be the slowest (`MessageCounts`; choices as in `GridPattern`).

    `dims` [..., dimension] and two arrays that broadcast with its leading axes give
    [..., class, distance, kind], padded with classes of no messages to the largest number of classes.
    NaN where there is no such grid: numbers that are not whole or below 1, more than `MOST_RANKS` ranks,
    an explicit mapping of another length.
    """
    least = (1, 3, len(message_kinds(np.shape(dims)[-1], neighbours)))
    choices = (periodic, neighbours, mapping, order)
    return _on_grid(dims, (ranks_per_node, ranks_per_socket), choices, lambda counts: counts.rank_counts, least)


@model("messages between nodes a node, by kind", PAPER)
def node_message_counts(
    dims: PerDimension,
    ranks_per_node: Count,
    *,
    periodic: bool = False,
    neighbours: Neighbours = "faces",
    mapping: Mapping = "block",
    order: Order = "c",
) -> NodeCounts:
    """Messages to other nodes sent by the nodes that can be the slowest, [..., node_class, kind].

    Otherwise as `rank_message_counts`.
    """
    least = (1, len(message_kinds(np.shape(dims)[-1], neighbours)))
    choices = (periodic, neighbours, mapping, order)
    return _on_grid(dims, (ranks_per_node, 1.0), choices, lambda counts: counts.node_counts, least)


@model("K_inter = max over nodes of the messages to other nodes", PAPER)
def inter_node_count(
    dims: PerDimension,
    ranks_per_node: Count,
    *,
    periodic: bool = False,
    neighbours: Neighbours = "faces",
    mapping: Mapping = "block",
    order: Order = "c",
) -> Count:
    """The most messages any node sends to other nodes, [...]; choices as in `rank_message_counts`."""
    choices = (periodic, neighbours, mapping, order)
    return _on_grid(dims, (ranks_per_node, 1.0), choices, lambda counts: counts.inter_node_count)


@model("K_total = max over nodes of all messages sent", PAPER)
def total_count(
    dims: PerDimension,
    ranks_per_node: Count,
    *,
    periodic: bool = False,
    neighbours: Neighbours = "faces",
    mapping: Mapping = "block",
    order: Order = "c",
) -> Count:
    """The most messages any node sends, those inside it too, [...]; choices as in `rank_message_counts`."""
    choices = (periodic, neighbours, mapping, order)
    return _on_grid(dims, (ranks_per_node, 1.0), choices, lambda counts: counts.total_count)


def _on_boxes(
    points: tuple[FloatArray, ...], cells: FloatArray, part: Callable[[MessageCounts], ArrayLike]
) -> FloatArray:
    """`_evaluate` for bisections, with block mapping; `points`: boxes, ranks of a node and of a socket."""
    columns = [*points, *np.moveaxis(np.asarray(cells, dtype=np.float64), -1, 0)]
    least = np.shape(part(message_counts(BoxPattern(1, (1,) * np.shape(cells)[-1], 1, 1))))
    return _evaluate(columns, lambda row: BoxPattern(row[0], row[3:], row[1], row[2]), part, least)


@model("messages a rank, by distance and kind", PAPER)
def box_rank_message_counts(
    rank_count: Count, cells: PerDimension, ranks_per_node: Count, ranks_per_socket: Count
) -> RankCounts:
    """`rank_message_counts` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    points = (rank_count, ranks_per_node, ranks_per_socket)
    return _on_boxes(points, cells, lambda counts: counts.rank_counts)


@model("messages between nodes a node, by kind", PAPER)
def box_node_message_counts(rank_count: Count, cells: PerDimension, ranks_per_node: Count) -> NodeCounts:
    """`node_message_counts` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    return _on_boxes((rank_count, ranks_per_node, np.ones(())), cells, lambda counts: counts.node_counts)


@model("K_inter = max over nodes of the messages to other nodes", PAPER)
def box_inter_node_count(rank_count: Count, cells: PerDimension, ranks_per_node: Count) -> Count:
    """`inter_node_count` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    return _on_boxes((rank_count, ranks_per_node, np.ones(())), cells, lambda counts: counts.inter_node_count)


@model("K_total = max over nodes of all messages sent", PAPER)
def box_total_count(rank_count: Count, cells: PerDimension, ranks_per_node: Count) -> Count:
    """`total_count` for the boxes of MiniFE (`BoxPattern`); `cells` [..., dimension] are global."""
    return _on_boxes((rank_count, ranks_per_node, np.ones(())), cells, lambda counts: counts.total_count)
