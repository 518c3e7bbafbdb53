"""Networks as numbered links with a bandwidth and a latency each, and the links between pairs of nodes.

Every link is directed: two links connect a pair of switches. A route is found by arithmetic for many pairs
at once; a message from a node to itself crosses no link.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.simulation.flat_lists import list_starts
from whatif.simulation.sharing import Routes, require_positive
from whatif.simulation.torus_rings import NO_LINK, Crossings, IntArray, TorusRings

MOST_LINKS: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class LinkClass:
    """Consecutive links of one capacity; each `width` of them lead the same way, so that messages may be spread."""

    count: int
    width: int = 1
    detour: int = 1
    """Links of the class that a message crosses if it does not take the shortest way."""
    is_global: bool = False
    """Whether they link groups of a dragonfly."""


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """Links of a network and the routes between its nodes."""

    name: str
    node_count: int
    capacities: FloatArray
    """[link]: bandwidth in B/s."""
    latencies: FloatArray
    """[link]: s."""
    find: Callable[[IntArray, IntArray], IntArray]
    """[pair, hop]: links from sources to destinations, `NO_LINK` behind the end of a route."""
    classes: tuple[LinkClass, ...]
    """Links by class, in the order of their numbers."""
    cross_traffic: float = 0.0
    """Share of the rate of a message that the links of the way back carry."""
    crossings: Callable[[IntArray, IntArray, NDArray[np.int64], FloatArray], Crossings] | None = None
    """Loads of links without the routes of single messages."""

    def routes(self, source: NDArray[np.integer[Any]], destination: NDArray[np.integer[Any]]) -> Routes:
        """The links of each pair of nodes [pair], in the order in which they are crossed.

        Raises UsageError for nodes that do not exist.
        """
        ends = self._ends(source, destination)
        links = self.find(ends[0], ends[1])
        used = (links != NO_LINK) & (ends[0] != ends[1])[:, None]
        return Routes(list_starts(used.sum(axis=1)), links[used])

    def loads(
        self,
        source: NDArray[np.integer[Any]],
        destination: NDArray[np.integer[Any]],
        step: NDArray[np.int64],
        weights: FloatArray,
    ) -> Crossings:
        """Loads of the links that messages [message] of some steps cross, each the weights of its messages.

        Raises UsageError for nodes that do not exist.
        """
        if self.crossings is not None:
            start, end = self._ends(source, destination)
            return self.crossings(start, end, step, weights)
        routes = self.routes(source, destination)
        flow = routes.flow
        return Crossings(routes.link, step[flow], weights[flow], routes.hop_count)

    def _ends(self, source: NDArray[np.integer[Any]], destination: NDArray[np.integer[Any]]) -> IntArray:
        ends = np.array([source, destination])
        wrong = ends[(ends < 0) | (ends >= self.node_count)]
        if len(wrong):
            raise UsageError(f"node {wrong[0]} is not in the {self.name} of {self.node_count} nodes")
        return ends.astype(np.int32)


def star(node_count: int, bandwidth: float, latency: float) -> Topology:
    """Network of one switch without limits; each node has a link to it (n) and one from it (node_count + n).

    `bandwidth` in B/s and `latency` in s are those of one link: a message crosses two.
    """

    def find(source: IntArray, destination: IntArray) -> IntArray:
        return np.stack([source, node_count + destination], axis=1)

    links = _links([2 * _count("node_count", node_count)], [bandwidth], [latency])
    return Topology("star", node_count, *links, find, (LinkClass(2 * node_count),))


def fat_tree(
    down: Sequence[int], up: Sequence[int], parallel: Sequence[int], bandwidth: float, latency: float
) -> Topology:
    """A fat tree with d-mod-k routing, its levels listed from the nodes upwards.

    Each switch of level l has `down[l]` children, each child has `up[l]` parents and `parallel[l]` links to each;
    SimGrid writes down (32, 32), up (1, 16), parallel (1, 1) as `2;32,32;1,16;1,1`. The tree of k-port switches with
    three levels is (k/2, k/2, k), (1, k/2, k/2), (1, 1, 1). A message climbs to the lowest level at which its
    nodes meet; from level l it takes port `destination / (up[0] … up[l-1]) mod (up[l] parallel[l])`, the ports being
    numbered over the parents first, and comes down by the link of the same number.
    Source: E. Zahavi, "D-Mod-K Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees".
    """
    if not (len(down) == len(up) == len(parallel) >= 1):
        raise UsageError(f"fat tree: {len(down)}, {len(up)}, {len(parallel)} levels given as down, up, parallel links")
    for name, counts in (("down", down), ("up", up), ("parallel", parallel)):
        for level, count in enumerate(counts):
            _count(f"{name}[{level}]", count)
    subtrees = [1, *accumulate(down, mul)]
    spread = [1, *accumulate(up, mul)]
    node_count = subtrees[-1]
    # Switches below a level with links to it: those of all subtrees, each with as many as the parents so far.
    widths = [node_count // subtrees[level] * spread[level + 1] * parallel[level] for level in range(len(down))]
    first = [0, *accumulate(widths)]

    def find(source: IntArray, destination: IntArray) -> IntArray:
        climb: list[IntArray] = []
        descend: list[IntArray] = []
        switch = np.zeros_like(source)
        for level in range(len(down)):
            port = destination // spread[level] % (up[level] * parallel[level])
            parent, cable = port % up[level], port // up[level]
            needed = source // subtrees[level] != destination // subtrees[level]
            for ends, links, way in ((source, climb, 0), (destination, descend, first[-1])):
                child = ends // subtrees[level] * spread[level] + switch
                link = way + first[level] + (child * up[level] + parent) * parallel[level] + cable
                links.append(np.where(needed, link, NO_LINK))
            switch = switch + parent * spread[level]
        return np.stack(climb + descend[::-1], axis=1)

    levels = tuple(LinkClass(width, up[level] * parallel[level]) for level, width in enumerate(widths))
    return Topology("fat tree", node_count, *_links([2 * first[-1]], [bandwidth], [latency]), find, 2 * levels)


def dragonfly(
    group_count: int,
    router_count: int,
    node_count: int,
    global_link_count: int,
    bandwidths: tuple[float, float, float],
    latencies: tuple[float, float, float],
) -> Topology:
    """A dragonfly with minimal routing: groups of `router_count` routers, each with `node_count` nodes.

    The routers of a group are linked in pairs, and each has `global_link_count` ports to other groups. The ports of a
    group, counted router after router, lead to the other groups in turn; ports that are left over after as many
    full turns as fit are unused, and messages choose the turn by `destination mod turns`. Bandwidths in B/s and
    latencies in s are those of a node's link, of a link in a group, of one between groups.
    Raises UsageError where a group cannot reach all others. Source: J. Kim, W. Dally, S. Scott, D. Abts,
    "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008.
    """
    for name, count in (("group_count", group_count), ("router_count", router_count), ("node_count", node_count)):
        _count(name, count)
    ports, others = router_count * global_link_count, group_count - 1
    if ports < others:
        raise UsageError(f"dragonfly: {ports} ports of a group cannot reach {others} other groups")
    turns = ports // others if others else 0
    routers = group_count * router_count
    nodes = routers * node_count
    counts = [2 * nodes, routers * (router_count - 1), group_count * turns * others]

    def local(group: IntArray, here: IntArray, there: IntArray) -> IntArray:
        link = counts[0] + (group * router_count + here) * (router_count - 1) + there - (there > here)
        return np.where(here == there, NO_LINK, link)

    def find(source: IntArray, destination: IntArray) -> IntArray:
        here, there = source // node_count, destination // node_count
        from_group, to_group = here // router_count, there // router_count
        far = from_group != to_group
        turn = destination % max(turns, 1) * others
        leave = turn + to_group - (to_group > from_group)
        enter = turn + from_group - (from_group > to_group)
        gateway = np.where(far, leave // max(global_link_count, 1), there % router_count)
        arrival = np.where(far, enter // max(global_link_count, 1), there % router_count)
        bridge = np.where(far, counts[0] + counts[1] + from_group * turns * others + leave, NO_LINK)
        first, last = local(from_group, here % router_count, gateway), local(to_group, arrival, there % router_count)
        return np.stack([source, first, bridge, last, nodes + destination], axis=1)

    classes = (
        LinkClass(counts[0]),
        LinkClass(counts[1], router_count - 1, 2),
        LinkClass(counts[2], turns * others, 2, True),
    )
    return Topology("dragonfly", nodes, *_links(counts, bandwidths, latencies), find, classes)


def torus(dims: Sequence[int], bandwidth: float, latency: float) -> Topology:
    """A torus of any number of dimensions, the first of `dims` running fastest; the nodes are its routers.

    Links and routes are those of `TorusRings`.
    """
    if not dims:
        raise UsageError("torus: no dimensions")
    for at, length in enumerate(dims):
        _count(f"dims[{at}]", length)
    rings, node_count = TorusRings(tuple(dims)), math.prod(dims)
    link_count = node_count * len(dims) * 2
    links = _links([link_count], [bandwidth], [latency])
    return Topology("torus", node_count, *links, rings.find, (LinkClass(link_count),), crossings=rings.crossings)


@lru_cache(maxsize=16)
def topology_of(
    kind: str, node_count: int, bandwidths: tuple[float, ...], latency: float, counts: tuple[int, ...]
) -> Topology:
    """Topology of a platform file for at least `node_count` nodes; `counts` in the order of the file.

    `bandwidths` in B/s are that of a link and, if it differs, that of a link between groups; `latency` in s.
    """
    bandwidth = bandwidths[0]
    if kind == "star":
        return star(node_count, bandwidth, latency)
    if kind == "torus":
        return torus(counts, bandwidth, latency)
    if kind == "fat_tree":
        levels, down, up, upper = counts if len(counts) == 4 else (*counts, counts[2])
        ups = [1, up, *[upper] * levels][:levels]
        return fat_tree([down] * levels, ups, [1] * levels, bandwidth, latency)
    groups, routers, nodes, ports = counts
    return dragonfly(groups, routers, nodes, ports, (bandwidth, bandwidth, bandwidths[-1]), (latency,) * 3)


def _count(name: str, count: int) -> int:
    if count < 1:
        raise UsageError(f"{name} is {count}: must be at least 1")
    return count


def _links(
    counts: Sequence[int], bandwidths: Sequence[float], latencies: Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """Capacities and latencies of links of a few kinds; a latency may be 0."""
    if sum(counts) > MOST_LINKS:
        raise UsageError(f"{sum(counts):,} links are too many: at most {MOST_LINKS:,}")
    require_positive("bandwidth", np.array(bandwidths))
    if not all(0 <= latency < math.inf for latency in latencies):
        raise UsageError(f"latencies must be ≥ 0 and finite: {', '.join(map(str, latencies))}")
    return _each(bandwidths, counts), _each(latencies, counts)


def _each(values: Sequence[float], counts: Sequence[int]) -> FloatArray:
    """Value of every link; alike links take no memory."""
    if len(set(values)) == 1:
        return np.broadcast_to(np.float64(values[0]), sum(counts))
    return np.repeat(np.array(values, dtype=np.float64), counts)
