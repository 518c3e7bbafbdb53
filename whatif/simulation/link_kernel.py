"""Links shared by bundles of flows while time goes by: plain functions over arrays, for the event loop.

The flows of a bundle cross the same links under the same limit. `served` counts the bytes that each of them has got
since the bundle was last empty, so a flow that comes at `served` = s with n bytes goes at s + n; the next to go is
the root of a pairing heap.
"""

from __future__ import annotations

from heapq import heappush
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

Heap = list[tuple[float, int, int]]
"""Events: when, what, and of which bundle or operation."""
END: Final = 0
"""The first flows of a bundle end."""
NONE: Final = -1
SAME_INSTANT: Final = 1 + 1e-12
"""Ends of flows that differ by rounding only are one event."""
SAME_SIZE: Final = 1 + 1e-12
"""Flows that differ by rounding only go together."""


class Links(NamedTuple):
    """Routes and limits of the bundles, and the state of all."""

    route_start: NDArray[np.int64]
    route_link: NDArray[np.int32]
    entry_bundle: NDArray[np.int32]
    """[entry of `route_link`]"""
    capacity: FloatArray
    limit: FloatArray
    """[bundle]: highest rate of each of its flows."""

    flow_count: NDArray[np.int64]
    rate: FloatArray
    served: FloatArray
    since: FloatArray
    """[bundle]: when `served` was counted."""
    end: FloatArray
    """[bundle]: when its first flow will go."""
    root: NDArray[np.int32]
    threshold: FloatArray
    """[flow]: `served` of its bundle at which it goes."""
    child: NDArray[np.int32]
    sibling: NDArray[np.int32]

    link_head: NDArray[np.int32]
    """[link]: the first entry of a bundle that has flows."""
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    """[entry]: neighbours in the list of the link."""
    changed: NDArray[np.int32]
    """Bundles that flows have come to or gone from, the first `tally[0]`."""
    marked: NDArray[np.bool_]
    """[bundle]: whether in `changed`, and not yet given a new rate."""
    members: NDArray[np.int32]
    """Bundles of a component, the first `tally[1]`."""
    inside: NDArray[np.bool_]
    """[bundle]: whether in `members`."""
    component: NDArray[np.int32]
    """Links of a component, the first `tally[2]`."""
    found: NDArray[np.bool_]
    """[link]: whether in `component`."""
    tally: NDArray[np.int64]
    usage: FloatArray
    level: FloatArray
    lowest: FloatArray
    remaining: FloatArray
    own_level: FloatArray
    """[bundle]: its rate, once it is settled."""
    open: NDArray[np.int32]
    """Bundles that are not settled."""


def push(heap: Heap, time: float, what: int, number: int) -> None:
    """Add an event."""
    # A sum has 64 bits, whatever the column that the number is from.
    heappush(heap, (time, what, number + 0))


def advance(links: Links, bundle: int, now: float) -> None:
    """Count the bytes served until now."""
    links.served[bundle] += links.rate[bundle] * (now - links.since[bundle])
    links.since[bundle] = now


def enter_bundle(links: Links, bundle: int, flow: int, size: float) -> None:
    """Add a flow of `size` bytes to a bundle that has been advanced to now."""
    if links.flow_count[bundle] == 0:
        links.served[bundle] = 0.0
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            insert_entry(links, entry)
    links.flow_count[bundle] += 1
    links.threshold[flow] = links.served[bundle] + size
    links.child[flow], links.sibling[flow] = NONE, NONE
    links.root[bundle] = meld(links, links.root[bundle], flow)
    mark(links, bundle)


def pop_flow(links: Links, bundle: int) -> int:
    """Take a flow that has got all its bytes out of a bundle; `NONE` if there is no other."""
    flow = links.root[bundle]
    if flow == NONE or links.threshold[flow] > links.served[bundle] * SAME_SIZE:
        return NONE
    links.root[bundle] = meld_all(links, links.child[flow])
    links.flow_count[bundle] -= 1
    if links.flow_count[bundle] == 0:
        links.rate[bundle] = 0.0
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            remove_entry(links, entry)
    mark(links, bundle)
    return int(flow)


def meld(links: Links, one: int, other: int) -> int:
    """One heap out of two: the root with the higher threshold becomes a child of the lower."""
    if min(one, other) == NONE:
        return max(one, other)
    if links.threshold[other] < links.threshold[one]:
        one, other = other, one
    links.sibling[other] = links.child[one]
    links.child[one] = other
    return one


def meld_all(links: Links, first: int) -> int:
    """One heap out of siblings: pair after pair, then the pairs from the last to the first."""
    pairs = NONE
    while first != NONE:
        second = links.sibling[first]
        rest = NONE if second == NONE else links.sibling[second]
        pair = meld(links, first, second)
        links.sibling[pair] = pairs
        pairs, first = pair, rest
    heap = NONE
    while pairs != NONE:
        rest = links.sibling[pairs]
        links.sibling[pairs] = NONE
        heap = meld(links, heap, pairs)
        pairs = rest
    return heap


def mark(links: Links, bundle: int) -> None:
    """Note that a bundle needs a new rate."""
    if not links.marked[bundle]:
        links.marked[bundle] = True
        links.changed[links.tally[0]] = bundle
        links.tally[0] += 1


def insert_entry(links: Links, entry: int) -> None:
    """Put a bundle at the head of the list of one of its links."""
    link = links.route_link[entry]
    head = links.link_head[link]
    links.before[entry], links.after[entry] = NONE, head
    if head != NONE:
        links.before[head] = entry
    links.link_head[link] = entry


def remove_entry(links: Links, entry: int) -> None:
    """Take a bundle out of the list of one of its links."""
    before, after = links.before[entry], links.after[entry]
    if before == NONE:
        links.link_head[links.route_link[entry]] = after
    else:
        links.after[before] = after
    if after != NONE:
        links.before[after] = before


def share(links: Links, heap: Heap, now: float) -> None:
    """New rates, and ends, for all bundles that share links with those that changed, directly or through others."""
    for at in range(links.tally[0]):
        if links.flow_count[links.changed[at]] == 0:
            leave(links, links.changed[at])
    for at in range(links.tally[0]):
        bundle = links.changed[at]
        if links.marked[bundle] and links.flow_count[bundle] > 0:
            spread(links, bundle)
            fill(links)
            apply(links, heap, now)
        links.marked[bundle] = False
    links.tally[0] = 0


def leave(links: Links, bundle: int) -> None:
    """Mark all that shared links with a bundle without flows, which may have been all that joined them."""
    for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
        here = links.link_head[links.route_link[entry]]
        while here != NONE:
            mark(links, links.entry_bundle[here])
            here = links.after[here]


def spread(links: Links, bundle: int) -> None:
    """The component of a bundle: all that share links with it, directly or through others, and these links."""
    links.tally[1] = links.tally[2] = 0
    include(links, bundle)
    at = 0
    while at < links.tally[1]:
        bundle = links.members[at]
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            link = links.route_link[entry]
            if not links.found[link]:
                links.found[link] = True
                links.component[links.tally[2]] = link
                links.tally[2] += 1
                here = links.link_head[link]
                while here != NONE:
                    include(links, links.entry_bundle[here])
                    here = links.after[here]
        at += 1


def include(links: Links, bundle: int) -> None:
    """Make a bundle a member of the component."""
    if not links.inside[bundle]:
        links.inside[bundle] = True
        links.members[links.tally[1]] = bundle
        links.tally[1] += 1


def apply(links: Links, heap: Heap, now: float) -> None:
    """Give the members their rates; the first of them to end are events, as all others are looked at again then."""
    earliest = np.inf
    for at in range(links.tally[1]):
        bundle = links.members[at]
        if links.marked[bundle] or links.rate[bundle] != links.own_level[bundle]:
            advance(links, bundle, now)
            links.rate[bundle] = links.own_level[bundle]
            missing = links.threshold[links.root[bundle]] - links.served[bundle]
            links.end[bundle] = now + max(missing, 0.0) / links.rate[bundle]
        earliest = min(earliest, links.end[bundle])
        links.marked[bundle] = links.inside[bundle] = False
    for at in range(links.tally[1]):
        bundle = links.members[at]
        if links.end[bundle] <= earliest * SAME_INSTANT:
            push(heap, links.end[bundle], END, bundle)


def fill(links: Links) -> None:
    """Max-min rates of the members, into `own_level`, as `sharing.max_min` finds them."""
    opened = links.tally[1]
    links.open[:opened] = links.members[:opened]
    for at in range(links.tally[2]):
        link = links.component[at]
        links.found[link] = False
        links.remaining[link] = links.capacity[link]
    while opened > 0:
        find_levels(links, opened)
        left = 0
        for at in range(opened):
            if not settle(links, links.open[at]):
                links.open[left] = links.open[at]
                left += 1
        opened = left


def find_levels(links: Links, opened: int) -> None:
    """What each link could give its open flows, the least of that for each bundle, and the least of these again."""
    for at in range(links.tally[2]):
        link = links.component[at]
        links.usage[link], links.lowest[link] = 0.0, np.inf
    for at in range(opened):
        bundle = links.open[at]
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            links.usage[links.route_link[entry]] += links.flow_count[bundle]
    for at in range(links.tally[2]):
        link = links.component[at]
        if links.usage[link] > 0:
            links.level[link] = max(links.remaining[link], 0.0) / links.usage[link]
    for at in range(opened):
        bundle = links.open[at]
        level = links.limit[bundle]
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            level = min(level, links.level[links.route_link[entry]])
        links.own_level[bundle] = level
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            link = links.route_link[entry]
            links.lowest[link] = min(links.lowest[link], level)


def settle(links: Links, bundle: int) -> bool:
    """Whether the rate of a bundle is final: its limit, or the level of a link that holds all its open flows up."""
    level = links.own_level[bundle]
    settled = level == links.limit[bundle]
    for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
        link = links.route_link[entry]
        settled = settled or (links.level[link] == level and links.lowest[link] == level)
    if settled:
        for entry in range(links.route_start[bundle], links.route_start[bundle + 1]):
            links.remaining[links.route_link[entry]] -= level * links.flow_count[bundle]
    return bool(settled)
