"""Messages that cross the links of a topology, by link and step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import maximal_rows
from whatif.models.quantities import FloatArray
from whatif.simulation.topology import LinkClass, Topology
from whatif.simulation.torus_rings import numbered

MOST_AT_ONCE: Final = 1 << 16
"""Messages whose routes are held in memory at a time."""
Nodes = NDArray[np.integer[Any]]
Step = tuple[Nodes, Nodes, FloatArray | None]
"""Nodes [message] that send and receive, and the weights of the messages, 1 by default."""

Item = TypeVar("Item")
_Spread = Callable[[FloatArray, NDArray[np.int64], LinkClass], FloatArray]
"""Function of the loads [link, step] of a class of links, the group of each link, and the class."""


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


class _Messages(NamedTuple):
    """Messages of a step, consecutive ones between the same nodes merged; all are [message]."""

    source: Nodes
    destination: Nodes
    weights: FloatArray
    """Sum over the messages that are merged into one."""
    repeats: NDArray[np.integer[Any]]
    """Number of messages that are merged into one."""


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
    of such links, or a link of a group whose links are not fuller over all steps without spreading. Raises UsageError
    for nodes that the topology does not have.
    """
    return _loads(topology, [_merged(step) for step in steps], _spread_over_steps if spread else None)


def _loads(topology: Topology, steps: Sequence[_Messages], spread: _Spread | None) -> LinkLoads:
    parts = [_counted(topology, piece) for piece in _grouped(_divided(steps), lambda part: len(part[1].source))]
    used, place = numbered(np.concatenate([part.links for part in parts]), len(topology.capacities))
    loads = np.zeros((len(steps), len(used))).T
    hops, longest = np.zeros((2, len(steps)))
    first = 0
    for part in parts:
        loads[place[first : first + len(part.links)], part.steps] += part.loads
        hops[part.steps] += part.hops
        np.maximum(longest[part.steps], part.longest, out=longest[part.steps])
        first += len(part.links)
    near, far = _by_class(topology.classes, used, loads, spread)
    counts = np.array([max(float(step.repeats.sum()), 1.0) for step in steps])
    return LinkLoads(near, far, longest, hops / counts)


def peaks(topology: Topology, steps: Iterable[Step], spread: bool) -> FloatArray:
    """Rows [row, step] of independent steps: the load of the fullest near and far link, longest and mean route."""
    found: dict[tuple[bytes, ...], FloatArray] = {}
    rows = []
    for batch in _grouped(map(_merged, steps), lambda step: len(step.source)):
        # Rounds recur: an allreduce that halves and then doubles its blocks goes over the same distances twice.
        key = tuple(_digest(step) for step in batch)
        if key not in found:
            found[key] = _peaks(_loads(topology, batch, _spread if spread else None))
        rows.append(found[key])
    return np.concatenate(rows, axis=1)


def _digest(step: _Messages) -> bytes:
    digest = blake2b()
    for column in step:
        digest.update(column.data)
    return digest.digest()


def _peaks(loads: LinkLoads) -> FloatArray:
    near, far = (part.max(axis=0, initial=0.0) for part in (loads.near, loads.far))
    return np.stack([near, far, loads.longest, loads.mean])


def _grouped(items: Iterable[Item], count_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Items with at most `MOST_AT_ONCE` messages together, or one alone, so that the loads of few are in memory."""
    group: list[Item] = []
    count = 0
    for item in items:
        if group and count + count_of(item) > MOST_AT_ONCE:
            yield group
            group, count = [], 0
        group.append(item)
        count += count_of(item)
    yield group


def fullest(loads: FloatArray) -> FloatArray:
    """Distinct loads [link, step] that are not exceeded by another link in every step; zeros if there are none."""
    return maximal_rows(loads) if len(loads) else np.zeros((1, loads.shape[1]))


def _merged(step: Step) -> _Messages:
    """Messages of a step with consecutive ones between the same nodes as one: ranks of a node often send alike."""
    source, destination, weights = step
    starts = (np.diff(source, prepend=-1) != 0) | (np.diff(destination, prepend=-1) != 0)
    first = np.flatnonzero(starts)
    repeats = np.diff(first, append=len(source))
    if weights is None or not len(first):
        return _Messages(source[first], destination[first], repeats.astype(np.float64), repeats)
    return _Messages(source[first], destination[first], np.add.reduceat(weights, first), repeats)


def _divided(steps: Sequence[_Messages]) -> Iterator[tuple[int, _Messages]]:
    """Numbered steps; those of more than `MOST_AT_ONCE` messages are divided."""
    for number, step in enumerate(steps):
        for first in range(0, max(len(step.source), 1), MOST_AT_ONCE):
            own = slice(first, first + MOST_AT_ONCE)
            yield number, _Messages(step.source[own], step.destination[own], step.weights[own], step.repeats[own])


def _counted(topology: Topology, piece: list[tuple[int, _Messages]]) -> _Part:
    """Loads of the links that the messages of a piece cross."""
    first, steps = piece[0][0], [step for _, step in piece]
    lengths, count = [len(each.source) for each in steps], len(steps)
    step = np.repeat(np.arange(count), lengths)
    source, destination, weights, repeats = (np.concatenate(column) for column in zip(*steps, strict=True))
    crossings = topology.loads(source, destination, step, weights)
    hops = crossings.hops
    used, place = numbered(crossings.link, len(topology.capacities))
    loads = np.bincount(place * count + crossings.step, crossings.load, len(used) * count).astype(np.float64)
    longest = np.array([part.max(initial=0) for part in np.split(hops, np.cumsum(lengths)[:-1])], dtype=np.float64)
    total = np.bincount(step, hops * repeats, count).astype(np.float64)
    return _Part(slice(first, first + count), used, loads.reshape(-1, count), longest, total)


def _by_class(
    classes: tuple[LinkClass, ...], used: NDArray[np.int64], loads: FloatArray, spread: _Spread | None
) -> tuple[FloatArray, FloatArray]:
    """Loads of the links within and between groups."""
    parts: tuple[list[FloatArray], list[FloatArray]] = ([], [])
    first = 0
    for links in classes:
        own = slice(*np.searchsorted(used, [first, first + links.count]))
        rows, group = loads[own], (used[own] - first) // links.width
        parts[links.is_global].append(spread(rows, group, links) if spread and links.width > 1 else rows)
        first += links.count
    near, far = parts
    # One class, as of a torus, is not copied: its loads are most of the memory.
    return near[0] if len(near) == 1 else np.concatenate(near), np.concatenate([loads[:0], *far])


def _spread(loads: FloatArray, group: NDArray[np.int64], links: LinkClass) -> FloatArray:
    """Loads of groups of links that lead the same way: the mean, times the links of a detour, at most the largest."""
    if not len(loads):
        return loads
    start = np.flatnonzero(np.diff(group, prepend=-1))
    mean = np.add.reduceat(loads, start, axis=0) / links.width
    return np.minimum(np.maximum.reduceat(loads, start, axis=0), links.detour * mean)


def _spread_over_steps(loads: FloatArray, group: NDArray[np.int64], links: LinkClass) -> FloatArray:
    """Spread loads of steps that follow one another; loads as they are of groups whose links then carry less in all.

    In each step another link may have the largest load: their sum can exceed what any one link carries with static
    routes, and adaptive routing is not slower than those.
    """
    if not len(loads):
        return loads
    first = np.diff(group, prepend=-1) != 0
    spread, fixed = _spread(loads, group, links), np.maximum.reduceat(loads.sum(axis=1), np.flatnonzero(first))
    kept = fixed < spread.sum(axis=1)
    return np.concatenate([spread[~kept], loads[kept[np.cumsum(first) - 1]]])
