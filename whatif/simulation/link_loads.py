"""Messages that cross the links of a topology, by link and step, for the links that can be the fullest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whatif.models.patterns import maximal_rows
from whatif.models.quantities import FloatArray
from whatif.simulation.topology import LinkClass, Topology

Nodes = NDArray[np.integer[Any]]
Step = tuple[Nodes, Nodes, FloatArray | None]


def link_loads(topology: Topology, steps: Iterable[Step], spread: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Loads [link, step] of the links that can be the fullest, those between groups of a dragonfly, and routes.

    A step is the nodes [message] that send and receive, and the weights of the messages. `spread` divides messages
    evenly over links that lead the same way, as adaptive routing does. Routes [longest and mean, step] count links.
    Raises UsageError for nodes that the topology does not have.
    """
    found = [_step(topology, *step, spread) for step in steps]
    if not found:
        return np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((2, 1))
    near, far, hops = zip(*found, strict=True)
    return _fullest(near), _fullest(far), np.array(hops, dtype=np.float64).T


def _step(
    topology: Topology, source: Nodes, destination: Nodes, weight: FloatArray | None, spread: bool
) -> tuple[FloatArray, FloatArray, tuple[float, float]]:
    """Loads of links within and between groups, the longest route and the mean one."""
    routes = topology.routes(source, destination)
    weights = None if weight is None else weight[routes.flow]
    loads = np.bincount(routes.link, weights=weights, minlength=len(topology.capacities)).astype(np.float64)
    parts: tuple[list[FloatArray], list[FloatArray]] = ([], [np.zeros(1)])
    first = 0
    for links in topology.classes:
        part = loads[first : first + links.count]
        parts[links.is_global].append(_spread(part, links) if spread and links.width > 1 else part)
        first += links.count
    hops = routes.hop_count
    return np.concatenate(parts[0]), np.concatenate(parts[1]), (hops.max(initial=0), hops.sum() / max(len(hops), 1))


def _spread(loads: FloatArray, links: LinkClass) -> FloatArray:
    """Loads of links that lead the same way: the mean, times the links of a detour, if less than the largest load."""
    alike = loads.reshape(-1, links.width)
    return np.asarray(np.minimum(alike.max(axis=1), links.detour * alike.mean(axis=1)))


def _fullest(steps: Sequence[FloatArray]) -> FloatArray:
    """Distinct loads [link, step] that are not exceeded by another link in every step."""
    loads = np.stack(steps, axis=1)
    used = loads[loads.any(axis=1)]  # Few of the links of a large machine: sorting all takes most of the time.
    return maximal_rows(np.unique(used, axis=0)) if len(used) else np.zeros((1, len(steps)))
