"""Adapters of nodes, or links of switches, that several processes share, compiled.

Messages between nodes are written down with the time they take: those of panels go out of one node and into another,
an exchange both ways at once. Afterwards each one's crowd is the mean number of messages that went the same way at its
nodes with it; the same one of a later step is charged with that many times the adapter's time per byte. Steps change
slowly, so that this comes to rest where all agree: at processor sharing.
Process columns may be several steps apart: messages are counted as if every step were like this one, a period later.
In long runs only some steps are written down, evenly spread, for the crowds hardly change from one to the next.
"""

from __future__ import annotations

from typing import NamedTuple

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.layout import CROWD, GROUP, LINK

NOT_NOTED = -1
CROWD_PLACE, LANES, NOTED_COLUMNS = 2, 3, 7
_STEPS_OF_PERIOD = 4
"""A period is the mean of so many steps at least: they take turns."""
_MOST_PERIODS = 32
_SHARE_OF_NEWEST = 0.25
"""Of a step's crowds in those of the next: pivots are drawn, so that steps differ by chance."""


class Adapters(NamedTuple):
    """The messages of a step, and the crowds that follow from them."""

    gap: float
    """Least time per byte of an adapter or link; 0: none is shared."""
    link_count: int
    """Links of a group: 1, a node's adapter; those of a switch to the ones above it."""
    crowds: FloatArray
    """[exchange, counted from the last, x process columns + distance from the panel's column]: crowd of each exchange
    of a row swap; and from `pivots` on, [dimension x process rows + distance] of those that agree on pivots."""
    pivots: int
    noted: FloatArray
    """[message, 7]: when it began and ended, where its crowd stands in `crowds` (-1 - process for a panel's message),
    and the lanes it took, -1: none. Link l of group g has two lanes: 2 (g links + l) is the way out, the next one
    the way in."""
    noted_count: IntArray
    """[1]: messages so far; NOT_NOTED in a step of which none are."""
    interval: int
    """Steps from one that is written down to the next."""
    starts: IntArray
    """[lane + 1]: room for where the messages of each lane begin in `members`."""
    members: IntArray
    """[4 x message]: room for messages, lane by lane."""
    found: FloatArray
    """[message]: room for the crowds."""
    moments: FloatArray
    """[4, message + 1]: room for a lane's messages: when they began, when they ended, and the sums of both."""


def note(
    adapters: Adapters, begun: float, ended: float, sender: int, receiver: int, both: bool, place: float,
    marks: IntArray,
) -> None:  # fmt: skip
    """Write a message from one process to another down, or one each way, unless they share no link."""
    at, noted, count = adapters.noted_count[0], adapters.noted, adapters.link_count
    first, second = marks[sender, GROUP] * count, marks[receiver, GROUP] * count
    if first != second and NOT_NOTED < at < len(noted):
        there, back = marks[receiver, LINK], marks[sender, LINK]
        noted[at, 0], noted[at, 1], noted[at, CROWD_PLACE] = begun, ended, place
        noted[at, LANES], noted[at, LANES + 1] = 2 * (first + there), 2 * (second + there) + 1
        noted[at, LANES + 2] = 2 * (second + back) if both else -1
        noted[at, LANES + 3] = 2 * (first + back) + 1 if both else -1
        adapters.noted_count[0] = at + 1


def end_of_step(step: int, ends: FloatArray, adapters: Adapters, times: FloatArray) -> None:
    """Settle a step that was written down, and say if the next one will be."""
    if adapters.noted_count[0] != NOT_NOTED:
        before = max(step - max(adapters.interval, _STEPS_OF_PERIOD), 0)
        settle(adapters, times, (ends[step] - ends[before]) / max(step - before, 1))
    adapters.noted_count[0] = 0 if (step + 1) % adapters.interval == 0 else NOT_NOTED


def settle(adapters: Adapters, times: FloatArray, period: float) -> None:
    """Turn the messages of a step into crowds: those of exchanges, and of every process's panel."""
    count, noted, found = adapters.noted_count[0], adapters.noted, adapters.found
    group_by_lane(adapters)
    for at in range(count):
        found[at] = 1.0
    for lane in range(len(adapters.starts) - 1):
        crowds_of_lane(adapters, adapters.starts[lane], adapters.starts[lane + 1], period)
    for at in range(count):
        place = int(noted[at, CROWD_PLACE])
        if place >= 0:
            adapters.crowds[place] += _SHARE_OF_NEWEST * (found[at] - adapters.crowds[place])
        else:
            times[-1 - place, CROWD] += _SHARE_OF_NEWEST * (found[at] - times[-1 - place, CROWD])


def group_by_lane(adapters: Adapters) -> None:
    """Where the messages of each lane begin in `members`, and which they are."""
    starts, noted = adapters.starts, adapters.noted
    for lane in range(len(starts)):
        starts[lane] = 0
    for at in range(adapters.noted_count[0]):
        for side in range(LANES, NOTED_COLUMNS):
            if noted[at, side] >= 0:
                starts[int(noted[at, side])] += 1
    for lane in range(1, len(starts)):
        starts[lane] += starts[lane - 1]
    for at in range(adapters.noted_count[0] - 1, -1, -1):
        for side in range(LANES, NOTED_COLUMNS):
            if noted[at, side] >= 0:
                starts[int(noted[at, side])] -= 1
                adapters.members[starts[int(noted[at, side])]] = at


def crowds_of_lane(adapters: Adapters, first: int, behind: int, period: float) -> None:
    """Mean number of messages in one lane during each of its messages; the most crowded of its lanes counts."""
    noted, members, found, count = adapters.noted, adapters.members, adapters.found, behind - first
    begun, ended = adapters.moments[0], adapters.moments[1]
    base = noted[members[first], 0] if count > 0 else 0.0
    for at in range(count):
        begun[at], ended[at] = noted[members[first + at], 0] - base, noted[members[first + at], 1] - base
    sort(begun, count)
    sort(ended, count)
    add_up(begun, adapters.moments[2], count)
    add_up(ended, adapters.moments[3], count)
    span = ended[count - 1] if count > 0 else 0.0
    periods = int(min(span / period, _MOST_PERIODS)) if period > 0.0 else 0
    for at in range(first, behind):
        start, end = noted[members[at], 0] - base, noted[members[at], 1] - base
        if end > start:
            busy = 0.0
            for turn in range(-periods, periods + 1):
                busy += present(end + turn * period, count, adapters.moments)
                busy -= present(start + turn * period, count, adapters.moments)
            found[members[at]] = max(found[members[at]], busy / (end - start))


def present(now: float, count: int, moments: FloatArray) -> float:
    """Time that messages have spent in a lane until now, added up."""
    return passed(now, moments[0], moments[2], count) - passed(now, moments[1], moments[3], count)


def sort(numbers: FloatArray, count: int) -> None:
    """Put the first `count` numbers in order (Shell's sort): numpy's takes longer to compile than all of this."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(gap, count):
            number, place = numbers[at], at
            while place >= gap and numbers[place - gap] > number:
                numbers[place] = numbers[place - gap]
                place -= gap
            numbers[place] = number
        gap //= 3


def add_up(numbers: FloatArray, sums: FloatArray, count: int) -> None:
    """The sums of the first 0, 1, ... `count` numbers."""
    sums[0] = 0.0
    for at in range(count):
        sums[at + 1] = sums[at] + numbers[at]


def passed(now: float, moments: FloatArray, sums: FloatArray, count: int) -> float:
    """Σ (now - moment) over the moments that have passed."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if moments[middle] < now:
            low = middle + 1
        else:
            high = middle
    return float(low * now - sums[low])
