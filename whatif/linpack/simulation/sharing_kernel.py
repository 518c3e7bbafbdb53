"""Adapters of nodes, or links of switches, that several processes share, compiled.

Messages between nodes are recorded with their times: those of panels in one direction, an exchange in both. Afterwards
the crowd of a message is the mean number of messages in the same direction at its nodes during its time; the same
message of a later step takes that many times the adapter's time per byte. The mean is harmonic for adapters, which give
equal shares; arithmetic for links of switches: a message crosses two of them, the fuller one changes during its time,
so that the harmonic mean of either is too low. The crowd is stored as two factors: the mean of the lane of the
message, and the crowd relative to that mean, which is the same for all messages at this place in a step. Steps change
slowly, so that this converges to processor sharing.
Process columns may be several steps apart: messages are counted as if every step were like this one, a period later.
In long runs only some steps, evenly spread, are recorded, since the crowds hardly change from one to the next.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

from whatif.linpack.simulation.costs import REMOTE, mean_wire
from whatif.linpack.simulation.layout import CLOCK, GROUP, LINK, RunNumbers, width_of
from whatif.models.quantities import FloatArray, IntArray

NOT_NOTED = -1
NOTED_START, NOTED_END, CROWD_PLACE, LANES = range(4)
"""Columns of `Adapters.noted`; from `LANES` on, four of lanes."""
NOTED_COLUMNS = LANES + 4
STARTS, ENDS, SUM_AT_START, SUM_AT_END = range(4)
"""Rows of `Adapters.moments`."""
_STEPS_OF_PERIOD = 4
"""Least number of steps in the mean of a period, since process columns take turns."""
_SHARE_OF_NEWEST = 0.25
"""Weight of a step's crowds in those of the next: pivots are drawn, so that steps differ by chance."""
_SHARE_OF_NEWEST_MEAN = 0.04
"""Weight of a step's messages in the mean of a lane: the process rows take turns to hold the pivots."""


class Adapters(NamedTuple):
    """Messages of a step, and the crowds that follow from them."""

    gap: float
    """Least time per byte of an adapter or link; 0: none is shared."""
    link_count: int
    """Links of a group: 1, a node's adapter; those of a switch to the ones above it."""
    lanes: FloatArray
    """[lane]: 1 and the mean number of messages in it. Link l of group g has two lanes: 2 (g links + l) is the way
    out, the next one the way in."""
    crowds: FloatArray
    """[place]: crowd over that mean of the lane, of each exchange of a row swap (counted from the last, x process
    columns + distance from the panel's column), from `pivots` on of those that agree on pivots (dimension x process
    rows + distance from the panel's row), from `panels` on of the message with which each process gets its panel."""
    pivots: int
    panels: int
    noted: FloatArray
    """[message, 7]: its start and end, the index of its crowd in `crowds`, and its lanes, -1: none."""
    noted_count: IntArray
    """[1]: messages so far; NOT_NOTED in a step that is not recorded."""
    is_harmonic: bool
    """Whether crowds are harmonic means."""
    interval: int
    """Steps from one recorded step to the next."""
    starts: IntArray
    """[lane + 1]: room for the first index of each lane in `members`."""
    members: IntArray
    """[4 x message]: room for messages, lane by lane."""
    found: FloatArray
    """[message]: room for the crowds."""
    moments: FloatArray
    """[4, message]: room for the starts and ends of a lane's messages, and the sum of `add_up` at both."""
    order: IntArray
    """[3, message + 1]: room for the order of a lane's starts and of its ends, and for `put_in_order`."""


def crowd_of(adapters: Adapters, sender: int, receiver: int, both: bool, place: int, marks: IntArray) -> float:
    """Time of a message between two processes, or of one each way, relative to its time alone."""
    count = adapters.link_count
    first, second = marks[sender, GROUP] * count, marks[receiver, GROUP] * count
    if first == second:
        return 1.0
    there, back = marks[receiver, LINK], marks[sender, LINK]
    mean = max(adapters.lanes[2 * (first + there)], adapters.lanes[2 * (second + there) + 1])
    if both:
        mean = max(mean, adapters.lanes[2 * (second + back)], adapters.lanes[2 * (first + back) + 1])
    return float(max(mean * adapters.crowds[place], 1.0))


def panel_gap(adapters: Adapters, sender: int, receiver: int, marks: IntArray) -> float:
    """Time per byte that links leave to the message with which a process gets its panel."""
    return adapters.gap * crowd_of(adapters, sender, receiver, False, adapters.panels + receiver, marks)


def note(
    adapters: Adapters, begun: float, ended: float, sender: int, receiver: int, both: bool, place: int, marks: IntArray
) -> None:  # fmt: skip
    """Write a message from one process to another down, or one each way, unless they share no link."""
    at, noted, count = adapters.noted_count[0], adapters.noted, adapters.link_count
    first, second = marks[sender, GROUP] * count, marks[receiver, GROUP] * count
    if first != second and NOT_NOTED < at < len(noted):
        there, back = marks[receiver, LINK], marks[sender, LINK]
        noted[at, NOTED_START], noted[at, NOTED_END], noted[at, CROWD_PLACE] = begun, ended, place
        noted[at, LANES], noted[at, LANES + 1] = 2 * (first + there), 2 * (second + there) + 1
        noted[at, LANES + 2] = 2 * (second + back) if both else -1
        noted[at, LANES + 3] = 2 * (first + back) + 1 if both else -1
        adapters.noted_count[0] = at + 1


def partner(place: int, dimension: int, dimensions: int) -> int:
    """Distance of the partner in the exchange of pivots, -1: none; the last dimension is that of the processes outside
    of the hypercube."""
    cube = 1 << dimensions
    if dimension == dimensions:
        return place + cube
    return place ^ (1 << dimension) if place < cube else -1


def share_links(panel: int, gaps: FloatArray, adapters: Adapters, marks: IntArray, run: RunNumbers) -> None:
    """[dimension, distance] of `gaps`: time per byte that links leave to messages which agree on pivots, 0: all."""
    q = panel % run.q
    for dimension in range(gaps.shape[0]):
        for place in range(run.p):
            gaps[dimension, place] = 0.0
            other = partner(place, dimension, gaps.shape[0] - 1)
            if place < other < run.p:
                a, b = (panel + place) % run.p * run.q + q, (panel + other) % run.p * run.q + q
                if marks[a, GROUP] != marks[b, GROUP]:
                    at = adapters.pivots + dimension * run.p + place
                    gaps[dimension, place] = adapters.gap * crowd_of(adapters, a, b, True, at, marks)


def note_pivots(
    panel: int, ended: FloatArray, gaps: FloatArray, adapters: Adapters, times: FloatArray, marks: IntArray,
    run: RunNumbers, pieces: FloatArray,
) -> None:  # fmt: skip
    """Record the messages that agreed on a panel's pivots: those of a dimension as one, spread over its part.

    They are short and follow one another, so that only their total time counts. `ended` has the end of each process,
    the clocks its start.
    """
    q, width, dimensions = panel % run.q, width_of(panel, run), gaps.shape[0] - 1
    parts = dimensions if run.p == 1 << dimensions else dimensions + 1
    for dimension in range(parts):
        for place in range(run.p):
            if gaps[dimension, place] > 0.0:
                other = partner(place, dimension, dimensions)
                a, b = (panel + place) % run.p * run.q + q, (panel + other) % run.p * run.q + q
                size = 8.0 * (2 * width + 4) if place == 0 else 8.0 * (width + 4)
                begun = times[a, CLOCK] + (ended[place] - times[a, CLOCK]) * dimension / parts
                busy = width * mean_wire(pieces, REMOTE, size, gaps[dimension, place])
                at = adapters.pivots + dimension * run.p + place
                note(adapters, begun, begun + busy, a, b, True, at, marks)


def end_of_step(step: int, ends: FloatArray, adapters: Adapters) -> None:
    """Update the crowds from a recorded step, and decide whether to record the next one."""
    if adapters.noted_count[0] != NOT_NOTED:
        before = max(step - max(adapters.interval, _STEPS_OF_PERIOD), 0)
        settle(adapters, (ends[step] - ends[before]) / max(step - before, 1))
    adapters.noted_count[0] = 0 if (step + 1) % adapters.interval == 0 else NOT_NOTED


def settle(adapters: Adapters, period: float) -> None:
    """Turn the messages of a step into crowds, each that of its most crowded lane."""
    noted, found = adapters.noted, adapters.found
    group_by_lane(adapters)
    for at in range(adapters.noted_count[0]):
        found[at] = 1.0
    for lane in range(len(adapters.lanes)):
        crowds_of_lane(lane, adapters, period)
    for at in range(adapters.noted_count[0]):
        place = int(noted[at, CROWD_PLACE])
        adapters.crowds[place] += _SHARE_OF_NEWEST * (found[at] / most_crowded(at, adapters) - adapters.crowds[place])


def most_crowded(message: int, adapters: Adapters) -> float:
    """The highest mean of the lanes of a message."""
    mean = 1.0
    for side in range(LANES, NOTED_COLUMNS):
        lane = int(adapters.noted[message, side])
        if lane >= 0:
            mean = max(mean, adapters.lanes[lane])
    return mean


def group_by_lane(adapters: Adapters) -> None:
    """Group the messages by lane: fill `starts` and `members`."""
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


def crowds_of_lane(lane: int, adapters: Adapters, period: float) -> None:
    """Mean number of messages in one lane, and during each of its messages; the most crowded of its lanes counts.

    All messages are folded into one period, so that those of steps before and behind are included too.
    """
    noted, members, found, room = adapters.noted, adapters.members, adapters.found, adapters.moments
    first, count = adapters.starts[lane], adapters.starts[lane + 1] - adapters.starts[lane]
    busy, always = 0.0, 0.0
    if count == 0 or period <= 0.0:
        return
    for at in range(count):
        begun, ended = noted[members[first + at], NOTED_START], noted[members[first + at], NOTED_END]
        busy += ended - begun
        always += floor(ended / period) - floor(begun / period)
        room[STARTS, at] = begun - period * floor(begun / period)
        room[ENDS, at] = ended - period * floor(ended / period)
    for row in (STARTS, ENDS):
        put_in_order(room[row], count, period, adapters.order[row], adapters.order[2])
    whole = add_up(room, adapters.order, count, always, period, adapters.is_harmonic)
    for at in range(count):
        begun, ended = noted[members[first + at], NOTED_START], noted[members[first + at], NOTED_END]
        if ended > begun:
            mean = whole * (floor(ended / period) - floor(begun / period))
            mean = (mean + room[SUM_AT_END, at] - room[SUM_AT_START, at]) / (ended - begun)
            crowd = 1.0 / mean if adapters.is_harmonic else mean
            found[members[first + at]] = max(found[members[first + at]], crowd)
    adapters.lanes[lane] += _SHARE_OF_NEWEST_MEAN * (1.0 + busy / period - adapters.lanes[lane])


def put_in_order(numbers: FloatArray, count: int, period: float, order: IntArray, room: IntArray) -> None:
    """Places of the first `count` numbers, all in [0, period], in their order: as many buckets, then insertion.

    Messages are spread over a period, so that this takes a time linear in their number.
    """
    scale = count / period
    for bucket in range(count + 1):
        room[bucket] = 0
    for at in range(count):
        room[min(int(numbers[at] * scale), count - 1) + 1] += 1
    for bucket in range(count):
        room[bucket + 1] += room[bucket]
    for at in range(count):
        bucket = min(int(numbers[at] * scale), count - 1)
        order[room[bucket]] = at
        room[bucket] += 1
    for at in range(1, count):
        moved, place = order[at], at
        while place > 0 and numbers[order[place - 1]] > numbers[moved]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = moved


def add_up(room: FloatArray, order: IntArray, count: int, present: float, period: float, is_harmonic: bool) -> float:
    """Integral of n over the time, or of 1 / n, up to each start and end in a lane, and over the whole period.

    n messages are in the lane, `present` at first.
    """
    now, total, started, ended = 0.0, 0.0, 0, 0
    while started < count or ended < count:
        opening = started < count and (
            ended == count or room[STARTS, order[STARTS, started]] <= room[ENDS, order[ENDS, ended]]
        )
        row = STARTS if opening else ENDS
        at = order[STARTS, started] if opening else order[ENDS, ended]
        total += (room[row, at] - now) * (1.0 / max(present, 1.0) if is_harmonic else present)
        now, room[SUM_AT_START + row, at] = room[row, at], total
        if opening:
            present, started = present + 1.0, started + 1
        else:
            present, ended = present - 1.0, ended + 1
    return total + (period - now) * (1.0 / max(present, 1.0) if is_harmonic else present)
