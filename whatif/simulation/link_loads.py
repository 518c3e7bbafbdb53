"""Messages that cross the links of a topology, by link and step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import maximal_rows
from whatif.models.quantities import FloatArray
from whatif.simulation.topology import LinkClass, Topology

MOST_AT_ONCE: Final = 1 << 16
"""Messages whose routes are held in memory at a time."""
Nodes = NDArray[np.integer[Any]]
Step = tuple[Nodes, Nodes, FloatArray | None]
"""Nodes [message] that send and receive, and the weights of the messages, 1 by default."""


class LinkLoads(NamedTuple):
    """Messages over the links in use, and routes."""

    near: FloatArray
    """[link, step]: links from and to nodes and within groups."""
    far: FloatArray
    """[link, step]: links between groups of a dragonfly."""
    longest: FloatArray
    """[step]: links of the longest route."""
    mean: FloatArray
    """[step]: links of a route, on average."""


class _Part(NamedTuple):
    """Loads of some messages of consecutive steps."""

    steps: slice
    links: NDArray[np.int64]
    """Links in use, ascending."""
    loads: FloatArray
    """[link, step]."""
    longest: FloatArray
    """[step]: links of the longest route."""
    hops: FloatArray
    """[step]: links of all routes."""


def link_loads(topology: Topology, steps: Sequence[Step], spread: bool) -> LinkLoads:
    """Loads of the links that the messages of some step cross.

    `spread` divides messages evenly over links that lead the same way, as adaptive routing does: a row is then a group
    of such links. Raises UsageError for nodes that the topology does not have.
    """
    parts = [_counted(topology, piece) for piece in _pieces(steps)]
    # np.unique imports numpy.ma at its first call, which would delay the first frame.
    used = parts[0].links if len(parts) == 1 else np.unique(np.concatenate([part.links for part in parts]))
    loads, hops, longest = np.zeros((len(used), len(steps))), np.zeros(len(steps)), np.zeros(len(steps))
    for part in parts:
        loads[np.searchsorted(used, part.links), part.steps] += part.loads
        hops[part.steps] += part.hops
        np.maximum(longest[part.steps], part.longest, out=longest[part.steps])
    near, far = _by_class(topology.classes, used, loads, spread)
    return LinkLoads(near, far, longest, hops / [max(len(source), 1) for source, _, _ in steps])


def fullest(loads: FloatArray) -> FloatArray:
    """Distinct loads [link, step] that are not exceeded by another link in every step; zeros if there are none."""
    return maximal_rows(loads) if len(loads) else np.zeros((1, loads.shape[1]))


def _pieces(steps: Sequence[Step]) -> Iterator[list[tuple[int, Step]]]:
    """Numbered steps with at most `MOST_AT_ONCE` messages together; longer steps are divided."""
    piece: list[tuple[int, Step]] = []
    count = 0
    for number, (source, destination, weights) in enumerate(steps):
        for first in range(0, max(len(source), 1), MOST_AT_ONCE):
            own = slice(first, first + MOST_AT_ONCE)
            part = source[own], destination[own], None if weights is None else weights[own]
            if piece and count + len(part[0]) > MOST_AT_ONCE:
                yield piece
                piece, count = [], 0
            piece.append((number, part))
            count += len(part[0])
    yield piece


def _counted(topology: Topology, piece: list[tuple[int, Step]]) -> _Part:
    """Loads of the links that the messages of a piece cross."""
    first, steps = piece[0][0], [step for _, step in piece]
    lengths, count = [len(source) for source, _, _ in steps], len(steps)
    step = np.repeat(np.arange(count), lengths)
    routes = topology.routes(*(np.concatenate([one[end] for one in steps]) for end in (0, 1)))
    weights = np.concatenate([np.ones(len(source)) if each is None else each for source, _, each in steps])
    used, number = _numbered(routes.link, len(topology.capacities))
    flow, hops = routes.flow, routes.hop_count
    loads = np.bincount(number * count + step[flow], weights[flow], len(used) * count).astype(np.float64)
    longest = np.array([part.max(initial=0) for part in np.split(hops, np.cumsum(lengths)[:-1])], dtype=np.float64)
    total = np.bincount(step, hops, count).astype(np.float64)
    return _Part(slice(first, first + count), used, loads.reshape(-1, count), longest, total)


def _numbered(links: NDArray[np.int32], link_count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Links that occur, in ascending order, and the place of each entry among them."""
    occurs = np.zeros(link_count, dtype=np.bool_)
    occurs[links] = True
    used = np.flatnonzero(occurs)
    place = np.empty(link_count, dtype=np.int64)
    place[used] = np.arange(len(used))
    return used, place[links]


def _by_class(
    classes: tuple[LinkClass, ...], used: NDArray[np.int64], loads: FloatArray, spread: bool
) -> tuple[FloatArray, FloatArray]:
    """Loads of the links within and between groups."""
    parts: tuple[list[FloatArray], list[FloatArray]] = ([loads[:0]], [loads[:0]])
    first = 0
    for links in classes:
        own = slice(*np.searchsorted(used, [first, first + links.count]))
        rows, group = loads[own], (used[own] - first) // links.width
        parts[links.is_global].append(_spread(rows, group, links) if spread and links.width > 1 else rows)
        first += links.count
    return np.concatenate(parts[0]), np.concatenate(parts[1])


def _spread(loads: FloatArray, group: NDArray[np.int64], links: LinkClass) -> FloatArray:
    """Loads of groups of links that lead the same way: the mean, times the links of a detour, at most the largest."""
    if not len(loads):
        return loads
    start = np.flatnonzero(np.diff(group, prepend=-1))
    mean = np.add.reduceat(loads, start, axis=0) / links.width
    return np.minimum(np.maximum.reduceat(loads, start, axis=0), links.detour * mean)
