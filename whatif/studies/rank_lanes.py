"""Activity of ranks reduced to the parts of a window, and the summary of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.plotting.lanes import PARTS, Kinds, Lanes, Ranks32, Window
from whatif.simulation.activity import GROUPS

RANK_KINDS: Final = Kinds(GROUPS, ("", "series-3", "series-1", "series-5", "series-2", "series-6"), " -srwo", "+CSRWO")
"""Computing, sending, receiving, waiting, and collectives of all."""


@dataclass(frozen=True, slots=True, eq=False)
class PathSummary:
    """Critical path: its computations, and its messages by distance, from within a socket to across nodes."""

    compute_time: float
    wait_count: FloatArray
    """[distance]: s of run time per s of latency: the number of latencies on the path."""
    latency_time: FloatArray
    """[distance]: s for the part of message times that does not depend on the size."""
    size: FloatArray
    """[distance]: B on the path."""
    transfer_time: FloatArray
    """[distance]: s for the bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class RunSummary:
    """Times, messages and critical path of a simulated run."""

    run_time: float
    machine: str
    title: str
    """File of the trace, or number of iterations and name of the scenario."""
    traced: bool
    models: tuple[tuple[str, str], ...]
    """Phases and the models of their messages."""
    node: Ranks32
    """[rank]"""
    ends: FloatArray
    """[rank]: end of its last operation, in s."""
    times: FloatArray
    """[rank, group]: s by kind of call."""
    message_count: int
    message_size: float
    path: PathSummary | None
    """None if messages share links."""
    study_time: float
    """Time of the same phases in the evaluated scenario, in s."""
    modelled: bool
    """Whether the scenario has closed forms in place of simulated messages."""
    remarks: tuple[str, ...]


class _Edges(NamedTuple):
    """Spans that overlap a window: start and end in units of its parts, and the parts they fall in."""

    inside: NDArray[np.intp]
    start: FloatArray
    end: FloatArray
    first: NDArray[np.intp]
    last: NDArray[np.intp]


def _edges(start: FloatArray, end: FloatArray, window: Window) -> _Edges:
    low, high = window
    inside = np.flatnonzero((start < high) & (end > low))
    scale = PARTS / (high - low) if high > low else 0.0
    begin, stop = (np.clip((edge[inside] - low) * scale, 0.0, PARTS) for edge in (start, end))
    first, last = (np.minimum(edge.astype(np.intp), PARTS - 1) for edge in (begin, stop))
    return _Edges(inside, begin, stop, first, last)


def main_groups(
    lane: NDArray[np.int32], group: NDArray[np.uint8], start: FloatArray, end: FloatArray, window: Window,
    lane_count: int,
) -> NDArray[np.uint8]:  # fmt: skip
    """Group that takes most of each part of a window [lane, part]: 1 + its place in `GROUPS`, 0 if most is idle."""
    at = _edges(start, end, window)
    base = (lane[at.inside].astype(np.intp) * len(GROUPS) + group[at.inside]) * PARTS
    size, further = lane_count * len(GROUPS) * PARTS, at.last > at.first
    base_on, last = base[further], at.last[further]
    taken = np.bincount(base + at.first, np.minimum(at.end, at.first + 1) - at.start, size)
    taken += np.bincount(base_on + last, at.end[further] - last, size)
    whole = np.bincount(base_on + at.first[further] + 1, minlength=size) - np.bincount(base_on + last, minlength=size)
    share = taken.reshape(lane_count, len(GROUPS), PARTS) + whole.reshape(lane_count, len(GROUPS), PARTS).cumsum(axis=2)
    idle = 1 - share.sum(axis=1, keepdims=True)
    found: NDArray[np.uint8] = np.concatenate([idle, share], axis=1).argmax(axis=1).astype(np.uint8)
    return found


def path_owners(rank: Ranks32, start: FloatArray, end: FloatArray, window: Window) -> NDArray[np.int32]:
    """Rank on which the spans of a path spend most of each part of a window [part]; -1 for none."""
    at = _edges(start, end, window)
    owners = np.full(PARTS, -1, dtype=np.int32)
    between = np.maximum(at.last - at.first - 1, 0)
    inner = np.arange(between.sum()) - np.repeat(between.cumsum() - between, between)
    part = np.concatenate([at.first, at.last, np.repeat(at.first + 1, between) + inner])
    own = rank[at.inside]
    time = np.concatenate(
        [
            np.minimum(at.end, at.first + 1) - at.start,
            np.where(at.last > at.first, at.end - at.last, 0.0),
            np.ones(len(inner)),
        ]
    )
    ranks = np.concatenate([own, own, np.repeat(own, between)])
    count = int(ranks.max(initial=0)) + 1
    keys, place = np.unique(part * count + ranks, return_inverse=True)
    spent = np.bincount(place, time, len(keys))
    order = np.argsort(spent, kind="stable")
    order = order[spent[order] > 0]
    # The last rank written to a part stays: the one with the most time.
    owners[keys[order] // count] = keys[order] % count
    return owners


def busiest(lanes: Lanes, share: float) -> Window:
    """Part of the window, `share` of its length, in which the ranks change their activity most often.

    Of several such parts the one nearest to the middle.
    """
    changes = np.zeros(PARTS + 1)
    changes[2:] = (lanes.group[:, 1:] != lanes.group[:, :-1]).sum(axis=0).cumsum()
    size = max(1, round(PARTS * share))
    counts = changes[size:] - changes[:-size]
    starts = np.flatnonzero(counts == counts.max())
    start = int(starts[np.abs(starts - (PARTS - size) / 2).argmin()])
    low, high = lanes.window
    return low + start / PARTS * (high - low), low + (start + size) / PARTS * (high - low)
