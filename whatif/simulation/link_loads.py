"""Messages that cross the links of a topology, by link and step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import maximal_rows
from whatif.models.quantities import FloatArray
from whatif.simulation.topology import LinkClass, Topology

MOST_AT_ONCE: Final = 1 << 20
"""Messages whose routes are held in memory."""
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


def link_loads(topology: Topology, steps: Sequence[Step], spread: bool) -> LinkLoads:
    """Loads of the links that the messages of some step cross.

    `spread` divides messages evenly over links that lead the same way, as adaptive routing does: a row is then a group
    of such links. Raises UsageError for nodes that the topology does not have.
    """
    parts = [_counted(topology, chunk) for chunk in _chunks(steps)]
    # np.unique imports numpy.ma at its first call, which would delay the first frame.
    used = parts[0][0] if len(parts) == 1 else np.unique(np.concatenate([links for links, _, _ in parts]))
    loads, first = np.zeros((len(used), len(steps))), 0
    for links, counts, _ in parts:
        loads[np.searchsorted(used, links), first : first + counts.shape[1]] = counts
        first += counts.shape[1]
    near, far = _by_class(topology.classes, used, loads, spread)
    return LinkLoads(near, far, *np.concatenate([hops for _, _, hops in parts], axis=1))


def fullest(loads: FloatArray) -> FloatArray:
    """Distinct loads [link, step] that are not exceeded by another link in every step; zeros if there are none."""
    return maximal_rows(loads) if len(loads) else np.zeros((1, loads.shape[1]))


def _chunks(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    """Consecutive steps with at most `MOST_AT_ONCE` messages, or one."""
    ends = np.cumsum([len(source) for source, _, _ in steps])
    first = 0
    while first < len(steps):
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + MOST_AT_ONCE, "right")))
        yield steps[first:last]
        first = last


def _counted(topology: Topology, steps: Sequence[Step]) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """Links in use, their loads [link, step], and the links of the longest route and of the mean one [2, step]."""
    lengths = [len(source) for source, _, _ in steps]
    step = np.repeat(np.arange(len(steps)), lengths)
    routes = topology.routes(*(np.concatenate([one[end] for one in steps]) for end in (0, 1)))
    weights = np.concatenate([np.ones(len(source)) if each is None else each for source, _, each in steps])
    used, number = _numbered(routes.link, len(topology.capacities))
    flow, hops = routes.flow, routes.hop_count
    loads = np.bincount(number * len(steps) + step[flow], weights[flow], len(used) * len(steps)).astype(np.float64)
    longest = [part.max(initial=0) for part in np.split(hops, np.cumsum(lengths)[:-1])]
    mean = np.bincount(step, hops, len(steps)) / np.maximum(lengths, 1)
    return used, loads.reshape(-1, len(steps)), np.stack([longest, mean])


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
