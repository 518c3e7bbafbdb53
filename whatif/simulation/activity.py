"""Activity of every rank of a replay: spans between the calls of its program, and the messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.simulation.rank_programs import COLLECTIVES, Kind
from whatif.simulation.schedule import Schedule, Step

GROUPS: Final = ("compute", "send", "receive", "wait", "collective")
"""Kinds of time of a rank."""
_GROUP_OF: Final = {Kind.COMPUTE: 0, Kind.SEND: 1, Kind.ISEND: 1, Kind.RECEIVE: 2, Kind.IRECEIVE: 2, Kind.WAIT: 3}
_GROUPS_BY_KIND: Final = np.array([4 if kind in COLLECTIVES else _GROUP_OF[kind] for kind in Kind], dtype=np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Activity:
    """Spans in the order of ranks and time, messages in the order of their sends. Times in s, sizes in B."""

    rank: NDArray[np.int32]
    group: NDArray[np.uint8]
    """[span]: a place in `GROUPS`."""
    kind: NDArray[np.uint8]
    """[span]: the `Kind` of the call."""
    start: FloatArray
    end: FloatArray
    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    message_size: FloatArray
    sent: FloatArray
    """[message]: when its send began."""
    received: FloatArray
    """[message]: when its receive ended."""
    rank_count: int

    @property
    def run_time(self) -> float:
        """End of the last rank, in s."""
        return float(self.end.max(initial=0.0))

    def rank_times(self) -> FloatArray:
        """Time of each rank by group [rank, group]."""
        cells = self.rank.astype(np.int64) * len(GROUPS) + self.group
        times = np.bincount(cells, weights=self.end - self.start, minlength=self.rank_count * len(GROUPS))
        return np.asarray(times, dtype=np.float64).reshape(self.rank_count, len(GROUPS))

    def rank_ends(self) -> FloatArray:
        """End of each rank [rank], in s."""
        ends = np.zeros(self.rank_count)
        np.maximum.at(ends, self.rank, self.end)
        return ends


def activity(
    schedule: Schedule, start: FloatArray, end: FloatArray, match: NDArray[np.int32], sequential: bool = True
) -> Activity:
    """The spans and messages of a replay that gave each operation `start`, `end` and the other side of its message.

    In a sequential program the time from the end of one blocking call to the end of the next belongs to the latter, as
    in the profile of a rank; the operations of a graph have their own times, with waits between them.
    """
    rank_of = schedule.rank
    if sequential:
        calls, starts, ends = _calls(schedule, rank_of, end)
    else:
        calls, starts, ends = np.arange(len(end)), start, end
    rank, kind = rank_of[calls], schedule.origin_kind[calls]
    if not sequential:
        waiting, since, until = _gaps(rank, starts, ends)
        rank, starts, ends = np.append(rank, waiting), np.append(starts, since), np.append(ends, until)
        kind = np.append(kind, np.full(len(waiting), Kind.WAIT, dtype=np.uint8))
    lasting = np.flatnonzero(ends > starts)
    lasting = lasting[np.lexsort((starts[lasting], rank[lasting]))]
    sends = np.flatnonzero((schedule.step == Step.SEND) & (match >= 0))
    return Activity(
        rank=rank[lasting],
        group=_GROUPS_BY_KIND[kind[lasting]],
        kind=kind[lasting],
        start=starts[lasting],
        end=ends[lasting],
        sender=rank_of[sends],
        receiver=schedule.peer[sends],
        message_size=schedule.size[sends],
        sent=start[sends],
        received=end[match[sends]],
        rank_count=schedule.rank_count,
    )


def _gaps(
    rank: NDArray[np.int32], start: FloatArray, end: FloatArray
) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
    """The times at which no operation of a rank is under way, until its next one starts."""
    order = np.lexsort((start, rank))
    rank, start = rank[order], start[order]
    # Ranks follow one another on one axis, so that the latest end so far is that of the own rank.
    apart = rank * (float(end.max(initial=0.0)) + 1.0)
    latest = np.maximum.accumulate(np.concatenate([[0.0], (end[order] + apart)[:-1]])) - apart
    before = np.maximum(latest, 0.0)
    # Adding and subtracting the offset of a rank rounds.
    idle = start - before > 1e-12 * (1.0 + apart)
    return rank[idle], before[idle], start[idle]


def _calls(
    schedule: Schedule, rank_of: NDArray[np.int32], end: FloatArray
) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
    """The blocking calls: the first operation of each, when it was entered, when it returned."""
    blocking = np.flatnonzero(~np.isin(schedule.origin_kind, (Kind.ISEND, Kind.IRECEIVE)))
    if not blocking.size:
        return blocking, np.empty(0), np.empty(0)
    rank, origin = rank_of[blocking], schedule.origin[blocking]
    new = np.concatenate([[True], (rank[1:] != rank[:-1]) | (origin[1:] != origin[:-1])])
    first = np.flatnonzero(new)
    ends = np.maximum.reduceat(end[blocking], first)
    calls = blocking[first]
    same_rank = np.concatenate([[False], rank_of[calls][1:] == rank_of[calls][:-1]])
    starts = np.where(same_rank, np.concatenate([[0.0], ends[:-1]]), 0.0)
    return calls, starts, ends
