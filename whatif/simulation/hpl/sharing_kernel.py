"""Adapters of nodes, or links of switches, that several processes share, compiled.

Messages between nodes are written down with the time they take: those of panels go out of one node and into another,
an exchange both ways at once. Afterwards each one's crowd is how many times longer than alone it would take, if it
shared each lane that it goes through fairly with those that were there with it; the slowest lane counts, and in its
other lanes a message leaves to others what it cannot use. The same message of a later step is charged with its crowd
times the adapter's time per byte. Steps change slowly, so that this comes to rest where all agree: at max-min fairness
of the mean rates.
Process columns may be several steps apart: messages are counted as if every step were like this one, a period later.
In long runs only some steps are written down, evenly spread, for the crowds hardly change from one to the next.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.costs import mean_factor, piece_of, wire_of
from whatif.simulation.hpl.layout import CLOCK, GROUP, LINK, Run, width_of

NOT_NOTED = -1
CROWD_PLACE, LANES, SIDES, NOTED_COLUMNS = 2, 3, 4, 7
_STEPS_OF_PERIOD = 4
"""A period is the mean of so many steps at least: they take turns."""
_SHARE_OF_NEWEST = 0.25
"""Of a step's crowds in those of the next: pivots are drawn, so that steps differ by chance."""


class Adapters(NamedTuple):
    """The messages of a step, and the crowds that follow from them."""

    gap: float
    """Least time per byte of an adapter or link; 0: none is shared."""
    link_count: int
    """Links of a group: 1, a node's adapter; those of a switch to the ones above it."""
    crowds: FloatArray
    """[place]: crowd of each exchange of a row swap (counted from the last, x process columns + distance from the
    panel's column), from `pivots` on of those that agree on pivots (dimension x process rows + distance from the
    panel's row), from `panels` on of the message with which each process gets its panel."""
    weights: FloatArray
    """[place, lane of the message]: its rate over a fair share of the lane: below 1 where another lane limits it."""
    pivots: int
    panels: int
    noted: FloatArray
    """[message, 7]: when it began and ended, where its crowd stands in `crowds`, and the lanes it took, -1: none.
    Link l of group g has two lanes: 2 (g links + l) is the way out, the next one the way in."""
    noted_count: IntArray
    """[1]: messages so far; NOT_NOTED in a step of which none are."""
    interval: int
    """Steps from one that is written down to the next."""
    starts: IntArray
    """[lane + 1]: room for where the messages of each lane begin in `members`."""
    members: IntArray
    """[4 x message]: room for messages, lane by lane; 4 x its number + which of its lanes."""
    found: FloatArray
    """[message, lane of the message]: room for the crowds."""
    moments: FloatArray
    """[6, 2 x message + 1]: room for when a lane's messages begin, with their weights, and when they end, for the
    moments between which nothing changes, and the sums of a fair share until then."""


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


def partner(place: int, dimension: int, dimensions: int) -> int:
    """Distance of the process that one exchanges pivots with, -1: none; in the dimension behind the hypercube's those
    that are not in it do."""
    cube = 1 << dimensions
    if dimension == dimensions:
        return place + cube
    return place ^ (1 << dimension) if place < cube else -1


def share_links(panel: int, gaps: FloatArray, adapters: Adapters, marks: IntArray, run: Run) -> None:
    """[dimension, distance] of `gaps`: time per byte that links leave to messages which agree on pivots, 0: all."""
    q = panel % run.q
    for dimension in range(gaps.shape[0]):
        for place in range(run.p):
            gaps[dimension, place] = 0.0
            other = partner(place, dimension, gaps.shape[0] - 1)
            if place < other < run.p:
                a, b = (panel + place) % run.p * run.q + q, (panel + other) % run.p * run.q + q
                if marks[a, GROUP] != marks[b, GROUP]:
                    crowd = adapters.crowds[adapters.pivots + dimension * run.p + place]
                    gaps[dimension, place] = adapters.gap * crowd


def note_pivots(
    panel: int, ended: FloatArray, gaps: FloatArray, adapters: Adapters, times: FloatArray, marks: IntArray, run: Run,
    pieces: FloatArray,
) -> None:  # fmt: skip
    """Write the messages down that agreed on a panel's pivots: those of a dimension as one, spread over its part.

    They are short and come one after another, so that only how long all of them are on their way counts. `ended` says
    when each process was done, the clocks still say when it began.
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
                piece = piece_of(pieces, 1, size)
                wire = wire_of(pieces, 1, piece, size, gaps[dimension, place]) * mean_factor(pieces, 1, piece)
                note(
                    adapters,
                    begun,
                    begun + width * wire,
                    a,
                    b,
                    True,
                    adapters.pivots + dimension * run.p + place,
                    marks,
                )


def end_of_step(step: int, ends: FloatArray, adapters: Adapters) -> None:
    """Settle a step that was written down, and say if the next one will be."""
    if adapters.noted_count[0] != NOT_NOTED:
        before = max(step - max(adapters.interval, _STEPS_OF_PERIOD), 0)
        settle(adapters, (ends[step] - ends[before]) / max(step - before, 1))
    adapters.noted_count[0] = 0 if (step + 1) % adapters.interval == 0 else NOT_NOTED


def settle(adapters: Adapters, period: float) -> None:
    """Turn the messages of a step into crowds, each that of its most crowded lane."""
    noted, found = adapters.noted, adapters.found
    group_by_lane(adapters)
    for lane in range(len(adapters.starts) - 1):
        crowds_of_lane(adapters, adapters.starts[lane], adapters.starts[lane + 1], period)
    for at in range(adapters.noted_count[0]):
        place, crowd = int(noted[at, CROWD_PLACE]), 1.0
        for side in range(SIDES):
            if noted[at, LANES + side] >= 0:
                crowd = max(crowd, found[at, side])
        adapters.crowds[place] += _SHARE_OF_NEWEST * (crowd - adapters.crowds[place])
        for side in range(SIDES):
            if noted[at, LANES + side] >= 0:
                weight = min(found[at, side] / crowd, 1.0)
                adapters.weights[place, side] += _SHARE_OF_NEWEST * (weight - adapters.weights[place, side])


def group_by_lane(adapters: Adapters) -> None:
    """Where the messages of each lane begin in `members`, and which they are."""
    starts, noted = adapters.starts, adapters.noted
    for lane in range(len(starts)):
        starts[lane] = 0
    for at in range(adapters.noted_count[0]):
        for side in range(SIDES):
            if noted[at, LANES + side] >= 0:
                starts[int(noted[at, LANES + side])] += 1
    for lane in range(1, len(starts)):
        starts[lane] += starts[lane - 1]
    for at in range(adapters.noted_count[0] - 1, -1, -1):
        for side in range(SIDES):
            if noted[at, LANES + side] >= 0:
                starts[int(noted[at, LANES + side])] -= 1
                adapters.members[starts[int(noted[at, LANES + side])]] = SIDES * at + side


def crowds_of_lane(adapters: Adapters, first: int, behind: int, period: float) -> None:
    """The crowd of each message in one lane: messages that share it, over the rates they leave one another.

    The lane is seen over one period, into which all messages are folded.
    """
    noted, members, found, count = adapters.noted, adapters.members, adapters.found, behind - first
    if count == 0 or period <= 0.0:
        return
    begun, weights, ended, lost = adapters.moments[0], adapters.moments[1], adapters.moments[2], adapters.moments[3]
    base, present = noted[members[first] // SIDES, 0], 0.0
    for at in range(count):
        message, side = members[first + at] // SIDES, members[first + at] % SIDES
        start, end = noted[message, 0] - base, noted[message, 1] - base
        weight = adapters.weights[int(noted[message, CROWD_PLACE]), side]
        present += weight * (floor(end / period) - floor(start / period))
        begun[at], ended[at] = start - period * floor(start / period), end - period * floor(end / period)
        weights[at], lost[at] = weight, weight
    sort(begun, weights, count)
    sort(ended, lost, count)
    sweep(adapters.moments, count, present, period)
    for at in range(first, behind):
        message, side = members[at] // SIDES, members[at] % SIDES
        start, end = noted[message, 0] - base, noted[message, 1] - base
        found[message, side] = 1.0
        if end > start:
            share = share_until(end, count, period, adapters.moments) - share_until(
                start, count, period, adapters.moments
            )
            found[message, side] = (
                (end - start) / share + 1.0 - adapters.weights[int(noted[message, CROWD_PLACE]), side]
            )


def sweep(room: FloatArray, count: int, present: float, period: float) -> None:
    """Every moment at which a message begins or ends, the period's end, and the integral of a fair share until then."""
    begun, weights, ended, lost, moments, shares = room
    opened, closed, now, share = 0, 0, 0.0, 0.0
    for at in range(2 * count + 1):
        opening = closed == count or (opened < count and begun[opened] < ended[closed])
        moment = period
        if at < 2 * count:
            moment = begun[opened] if opening else ended[closed]
        share += (moment - now) / max(present, 1.0)
        moments[at], shares[at], now = moment, share, moment
        if at == 2 * count:
            return
        if opening:
            present += weights[opened]
            opened += 1
        else:
            present -= lost[closed]
            closed += 1


def share_until(now: float, count: int, period: float, room: FloatArray) -> float:
    """Integral of a fair share from the beginning until now."""
    moments, shares, turns = room[4], room[5], floor(now / period)
    rest, low, high = now - turns * period, 0, 2 * count
    while low < high:
        middle = (low + high) // 2
        if moments[middle] < rest:
            low = middle + 1
        else:
            high = middle
    share = shares[low]
    if low > 0:
        width = moments[low] - moments[low - 1]
        if width > 0.0:
            share -= (moments[low] - rest) / width * (shares[low] - shares[low - 1])
    elif moments[0] > 0.0:
        share *= rest / moments[0]
    return float(turns * shares[2 * count] + share)


def sort(numbers: FloatArray, beside: FloatArray, count: int) -> None:
    """Put the first `count` numbers in order (Shell's sort), and what is beside them: numpy's takes longer to compile
    than all of this."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(gap, count):
            number, other, place = numbers[at], beside[at], at
            while place >= gap and numbers[place - gap] > number:
                numbers[place], beside[place] = numbers[place - gap], beside[place - gap]
                place -= gap
            numbers[place], beside[place] = number, other
        gap //= 3
