"""Adapters of nodes that several processes share, compiled.

Messages between nodes are written down with the time they take. Afterwards each one's crowd is the mean number of messages
that were at its nodes' adapters with it; the same exchange of a later step is charged with that many times the adapter's
time per byte. Steps change slowly, so that this comes to rest where all agree: at processor sharing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.layout import CROWD


class Adapters(NamedTuple):
    """The messages of a step, and the crowds that follow from them."""

    gap: float
    """Least time per byte of an adapter; 0: none is shared."""
    crowds: FloatArray
    """[exchange, counted from the last, x process columns + process column]: crowd of each exchange of a row swap."""
    begun: FloatArray
    """[message]: s"""
    ended: FloatArray
    """[message]: s"""
    nodes: IntArray
    """[message, 2]"""
    places: IntArray
    """[message]: where its crowd stands in `crowds`; -1 - process for a panel's message."""
    count: IntArray
    """[1]: messages so far."""


def note(adapters: Adapters, begun: float, ended: float, first: int, second: int, place: int) -> None:
    """Write a message between two nodes down."""
    at = adapters.count[0]
    if adapters.gap > 0.0 and at < len(adapters.begun):
        adapters.begun[at], adapters.ended[at], adapters.places[at] = begun, ended, place
        adapters.nodes[at, 0], adapters.nodes[at, 1] = first, second
        adapters.count[0] = at + 1


def settle(adapters: Adapters, node_count: int, times: FloatArray) -> None:
    """Turn the messages of a step into crowds: those of exchanges, and of every process's panel."""
    count = adapters.count[0]
    starts = np.zeros(node_count + 1, np.int64)
    for at in range(count):
        for side in range(2):
            starts[adapters.nodes[at, side] + 1] += 1
    for node in range(node_count):
        starts[node + 1] += starts[node]
    filled, members = starts.copy(), np.empty(2 * count, np.int64)
    for at in range(count):
        for side in range(2):
            node = adapters.nodes[at, side]
            members[filled[node]] = at
            filled[node] += 1
    found = np.ones(count)
    for node in range(node_count):
        crowds_of_node(adapters, members[starts[node] : starts[node + 1]], found)
    for at in range(count):
        place = adapters.places[at]
        if place >= 0:
            adapters.crowds[place] = 0.5 * (adapters.crowds[place] + found[at])
        else:
            times[-1 - place, CROWD] = 0.5 * (times[-1 - place, CROWD] + found[at])
    adapters.count[0] = 0


def crowds_of_node(adapters: Adapters, members: IntArray, found: FloatArray) -> None:
    """Mean number of messages at one node during each of its messages; the more crowded of both nodes counts."""
    count, base = len(members), 0.0
    begun, ended = np.empty(count), np.empty(count)
    for at in range(count):
        base = adapters.begun[members[0]]
        begun[at], ended[at] = adapters.begun[members[at]] - base, adapters.ended[members[at]] - base
    begun.sort()
    ended.sort()
    begun_sums, ended_sums = np.zeros(count + 1), np.zeros(count + 1)
    for at in range(count):
        begun_sums[at + 1] = begun_sums[at] + begun[at]
        ended_sums[at + 1] = ended_sums[at] + ended[at]
    for at in range(count):
        first, last = adapters.begun[members[at]] - base, adapters.ended[members[at]] - base
        if last > first:
            busy = passed(last, begun, begun_sums) - passed(last, ended, ended_sums)
            busy -= passed(first, begun, begun_sums) - passed(first, ended, ended_sums)
            found[members[at]] = max(found[members[at]], busy / (last - first))


def passed(now: float, moments: FloatArray, sums: FloatArray) -> float:
    """Σ (now - moment) over the moments that have passed."""
    low, high = 0, len(moments)
    while low < high:
        middle = (low + high) // 2
        if moments[middle] < now:
            low = middle + 1
        else:
            high = middle
    return low * now - sums[low]
