"""Nodes through which the channels of a collective leave link domains of several nodes."""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np

from whatif.simulation.link_loads import Step
from whatif.simulation.round_patterns import Round

ChannelNodes = tuple[int, int]
"""Nodes of a link domain, and those of them through which channels leave it."""


def leave_domain(start: Any, end: Any, nodes_per_domain: int) -> Any:
    """Whether messages between nodes leave the link domain of the sender."""
    return start // nodes_per_domain != end // nodes_per_domain


def between_nodes(item: Round, ranks_per_node: int, node_count: int, channels: ChannelNodes) -> Step:
    """Messages of a round that leave their node and its link domain, divided over the nodes of their channels."""
    domain, used = channels
    start, end = item.sender // ranks_per_node, item.receiver // ranks_per_node
    away = leave_domain(start, end, domain)
    start, end, weight = start[away], end[away], item.weight[away]
    if used == 1:
        return start, end, weight
    if used == domain:
        # Each node of a domain sends the same: where in it a message begins makes no difference.
        start, end = start // domain * domain, end // domain * domain
    start, end, weight = _joined(start, end, weight, node_count)
    parts = [
        _divided(start[own], end[own], weight[own], turn, domain, node_count)
        for own, turn in _turns(np.maximum(start, end), channels, node_count)
    ]
    start, end, weight = map(np.concatenate, zip(*parts, strict=True))
    return start, end, weight


def _turns(node: Any, channels: ChannelNodes, node_count: int) -> tuple[tuple[Any, Any], ...]:
    """Masks of messages between full domains, and of those with a domain of fewer nodes, with the turns of each."""
    domain, used = channels
    rest = node_count % domain if used == domain else 0
    uneven = node >= node_count - rest
    # Between a domain and one of fewer nodes, each node has an even part only after as many turns as both divide.
    return (~uneven, np.arange(used) * domain // used), (uneven, np.arange(lcm(domain, rest)))


def _divided(start: Any, end: Any, weight: Any, turn: Any, domain: int, node_count: int) -> tuple[Any, Any, Any]:
    """Messages in equal parts, one for each turn: the number of places by which its nodes are further on."""
    nodes = (_turned(node, turn[:, np.newaxis], domain, node_count).ravel() for node in (start, end))
    return *nodes, np.tile(weight / max(len(turn), 1), len(turn))


def _joined(start: Any, end: Any, weight: Any, node_count: int) -> tuple[Any, Any, Any]:
    """Messages between the same nodes as one."""
    pairs, place = np.unique(start.astype(np.int64) * node_count + end, return_inverse=True)
    return pairs // node_count, pairs % node_count, np.bincount(place, weight, len(pairs))


def _turned(node: Any, turn: Any, domain: int, node_count: int) -> Any:
    """Nodes of the same domain, some places further on; the last domain may have fewer."""
    first = node // domain * domain
    return first + (node - first + turn) % np.minimum(domain, node_count - first)
