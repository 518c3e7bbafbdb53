"""Links shared by bundles of flows over time: plain functions over the state, for the event loop.

The flows of a bundle cross the same links under the same limit, so that their bytes are counted together; a
pairing heap orders them by their end.
"""

from __future__ import annotations

from heapq import heappush
from typing import Final

import numpy as np

from whatif.simulation.flow_state import CHANGED, COMPONENT, MEMBERS, FlowState
from whatif.simulation.replay_state import NONE

Heap = list[tuple[float, int, int]]
"""Events: time, kind, and number of the bundle or operation."""
END: Final = 0
"""The first flows of a bundle end."""
SAME_INSTANT: Final = 1 + 1e-12
"""Ends of flows that differ by rounding only are one event."""
SAME_SIZE: Final = 1 + 1e-12
"""Thresholds that differ by rounding only end together."""


def push(heap: Heap, time: float, what: int, number: int) -> None:
    """Add an event."""
    # A sum has 64 bits, whatever the column that the number is from.
    heappush(heap, (time, what, number + 0))


def advance(s: FlowState, bundle: int, now: float) -> None:
    """Count the bytes served until now."""
    row = s.bundles[bundle]
    row.served += row.rate * (now - row.since)
    row.since = now


def enter_bundle(s: FlowState, bundle: int, flow: int, size: float) -> None:
    """Add a flow of `size` bytes to a bundle that has been advanced to now."""
    row = s.bundles[bundle]
    if row.flow_count == 0:
        row.served = 0.0
        for entry in range(row.first, row.last):
            insert_entry(s, entry)
    row.flow_count += 1
    message = s.operations[flow]
    message.threshold = row.served + size
    message.child, message.sibling = NONE, NONE
    row.root = meld(s, row.root, flow)
    mark(s, bundle)


def pop_flow(s: FlowState, bundle: int) -> int:
    """Next finished flow, removed from a bundle; `NONE` without another one."""
    row = s.bundles[bundle]
    flow = row.root
    if flow == NONE or s.operations[flow].threshold > row.served * SAME_SIZE:
        return NONE
    row.root = meld_all(s, s.operations[flow].child)
    row.flow_count -= 1
    if row.flow_count == 0:
        row.rate = 0.0
        for entry in range(row.first, row.last):
            remove_entry(s, entry)
    mark(s, bundle)
    return int(flow)


def meld(s: FlowState, one: int, other: int) -> int:
    """One heap out of two: the root with the higher threshold becomes a child of the lower."""
    if min(one, other) == NONE:
        return max(one, other)
    if s.operations[other].threshold < s.operations[one].threshold:
        one, other = other, one
    s.operations[other].sibling = s.operations[one].child
    s.operations[one].child = other
    return one


def meld_all(s: FlowState, first: int) -> int:
    """One heap out of siblings: pair after pair, then the pairs from the last to the first."""
    pairs = NONE
    while first != NONE:
        second = s.operations[first].sibling
        rest = NONE if second == NONE else s.operations[second].sibling
        pair = meld(s, first, second)
        s.operations[pair].sibling = pairs
        pairs, first = pair, rest
    heap = NONE
    while pairs != NONE:
        rest = s.operations[pairs].sibling
        s.operations[pairs].sibling = NONE
        heap = meld(s, heap, pairs)
        pairs = rest
    return heap


def mark(s: FlowState, bundle: int) -> None:
    """Note that a bundle needs a new rate."""
    row = s.bundles[bundle]
    if not row.marked:
        row.marked = True
        s.changed[s.tally[CHANGED]] = bundle
        s.tally[CHANGED] += 1


def insert_entry(s: FlowState, entry: int) -> None:
    """Put a bundle at the head of the list of one of its links."""
    row = s.entries[entry]
    head = s.links[row.link].head
    row.before, row.after = NONE, head
    if head != NONE:
        s.entries[head].before = entry
    s.links[row.link].head = entry


def remove_entry(s: FlowState, entry: int) -> None:
    """Take a bundle out of the list of one of its links."""
    row = s.entries[entry]
    before, after = row.before, row.after
    if before == NONE:
        s.links[row.link].head = after
    else:
        s.entries[before].after = after
    if after != NONE:
        s.entries[after].before = before


def share(s: FlowState, heap: Heap, now: float) -> None:
    """New rates, and ends, for all bundles that share links with those that changed, directly or through others."""
    for at in range(s.tally[CHANGED]):
        if s.bundles[s.changed[at]].flow_count == 0:
            leave(s, s.changed[at])
    for at in range(s.tally[CHANGED]):
        row = s.bundles[s.changed[at]]
        if row.marked and row.flow_count > 0:
            spread(s, s.changed[at])
            fill(s)
            apply(s, heap, now)
        row.marked = False
    s.tally[CHANGED] = 0


def leave(s: FlowState, bundle: int) -> None:
    """Mark all that shared links with a bundle without flows, which may have been all that joined them."""
    row = s.bundles[bundle]
    for entry in range(row.first, row.last):
        here = s.links[s.entries[entry].link].head
        while here != NONE:
            mark(s, s.entries[here].bundle)
            here = s.entries[here].after


def spread(s: FlowState, bundle: int) -> None:
    """The component of a bundle: all that share links with it, directly or through others, and these links."""
    s.tally[MEMBERS] = s.tally[COMPONENT] = 0
    include(s, bundle)
    at = 0
    while at < s.tally[MEMBERS]:
        bundle = s.members[at]
        for entry in range(s.bundles[bundle].first, s.bundles[bundle].last):
            link = s.links[s.entries[entry].link]
            if not link.found:
                link.found = True
                s.component[s.tally[COMPONENT]] = s.entries[entry].link
                s.tally[COMPONENT] += 1
                here = link.head
                while here != NONE:
                    include(s, s.entries[here].bundle)
                    here = s.entries[here].after
        at += 1


def include(s: FlowState, bundle: int) -> None:
    """Add a bundle to the component."""
    row = s.bundles[bundle]
    if not row.inside:
        row.inside = True
        s.members[s.tally[MEMBERS]] = bundle
        s.tally[MEMBERS] += 1


def apply(s: FlowState, heap: Heap, now: float) -> None:
    """Set the rates of the members; only their first ends become events, since the others are updated then."""
    earliest = np.inf
    for at in range(s.tally[MEMBERS]):
        row = s.bundles[s.members[at]]
        if row.marked or row.rate != row.level:
            advance(s, s.members[at], now)
            row.rate = row.level
            missing = s.operations[row.root].threshold - row.served
            row.end = now + max(missing, 0.0) / row.rate
        earliest = min(earliest, row.end)
        row.marked = row.inside = False
    for at in range(s.tally[MEMBERS]):
        bundle = s.members[at]
        if s.bundles[bundle].end <= earliest * SAME_INSTANT:
            push(heap, s.bundles[bundle].end, END, bundle)


def fill(s: FlowState) -> None:
    """Max-min rates of the members, into `level`, as `sharing.max_min` finds them."""
    opened = s.tally[MEMBERS]
    s.open[:opened] = s.members[:opened]
    for at in range(s.tally[COMPONENT]):
        link = s.links[s.component[at]]
        link.found = False
        link.remaining = link.capacity
    while opened > 0:
        find_levels(s, opened)
        left = 0
        for at in range(opened):
            if not settle(s, s.open[at]):
                s.open[left] = s.open[at]
                left += 1
        opened = left


def find_levels(s: FlowState, opened: int) -> None:
    """Set the level of each link and of each open bundle, and the least level of the bundles on each link."""
    for at in range(s.tally[COMPONENT]):
        link = s.links[s.component[at]]
        link.usage, link.lowest = 0.0, np.inf
    for at in range(opened):
        row = s.bundles[s.open[at]]
        for entry in range(row.first, row.last):
            s.links[s.entries[entry].link].usage += row.flow_count * s.entries[entry].share
    for at in range(s.tally[COMPONENT]):
        link = s.links[s.component[at]]
        if link.usage > 0:
            link.level = max(link.remaining, 0.0) / link.usage
    for at in range(opened):
        row = s.bundles[s.open[at]]
        level = row.limit
        for entry in range(row.first, row.last):
            level = min(level, s.links[s.entries[entry].link].level)
        row.level = level
        for entry in range(row.first, row.last):
            link = s.links[s.entries[entry].link]
            link.lowest = min(link.lowest, level)


def settle(s: FlowState, bundle: int) -> bool:
    """Whether the rate of a bundle is final: its limit, or the level of a link that limits all its open flows."""
    row = s.bundles[bundle]
    level = row.level
    settled = level == row.limit
    for entry in range(row.first, row.last):
        link = s.links[s.entries[entry].link]
        settled = settled or (link.level == level and link.lowest == level)
    if settled:
        for entry in range(row.first, row.last):
            s.links[s.entries[entry].link].remaining -= level * row.flow_count * s.entries[entry].share
    return bool(settled)
