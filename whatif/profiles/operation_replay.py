"""The time line of a profile: which operation waited for which, replayed with other durations."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.profiles.profile_data import COPY, Rows, operation_kinds
from whatif.table import Table

_NONE: Final = -1
_TICK: Final = 0.5e-9
"""Half of the ns that profilers count in: an end and a start nearer than that are the same moment."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfileTimeline:
    """Operations in the order of their starts, and for each those that it waited for; arrays of shape (operations,).

    An operation starts when the one before it in its stream is over, when the copy engine of its direction is free,
    and when the host asks for it. What the host waited for is not in a profile: it is taken to be the operation that
    ended last before this one started, and the time between the two stays with the host. Where an operation in fact
    waited for something that ended earlier, it follows the wrong one when durations change.
    """

    start_time: FloatArray
    time: FloatArray
    kind: NDArray[Any]
    """`kernel`, `fill`, or the direction of a copy."""
    stream_before: Rows
    """The operation before in the same stream of the same device; -1 for none."""
    engine_before: Rows
    """The copy before in the same direction on the same device; -1 for none."""
    host_before: Rows
    """The operation that ended last before this one started, on any device; -1 for none."""

    @property
    def end_time(self) -> FloatArray:
        """End times of the operations in the profile, in s."""
        return self.start_time + self.time

    def replay(self, time: FloatArray) -> FloatArray:
        """Starts in s of all operations if they took these times in s.

        The times of the profile give its starts, to the last bit. Raise `UsageError` for times of another shape,
        negative or not finite ones.
        """
        time = np.asarray(time, dtype=float)
        if time.shape != self.time.shape or not (np.isfinite(time) & (time >= 0)).all():
            raise UsageError(f"a time line of {len(self.time)} operations needs as many times, finite and at least 0")
        befores = [rows.tolist() for rows in (self.stream_before, self.engine_before, self.host_before)]
        old_start, old_end, new = self.start_time.tolist(), self.end_time.tolist(), time.tolist()
        start, end = [0.0] * len(new), [0.0] * len(new)
        for row, (stream, engine, host) in enumerate(zip(*befores, strict=True)):
            was = old_start[row]
            # The gap to the host's operation stays; written as a shift so that nothing changes where nothing does.
            earliest = was + (end[host] - old_end[host]) if host >= 0 else was
            for other in (stream, engine):
                if other >= 0:
                    # What overlapped in the profile goes on to overlap, if only by the rounding of its times.
                    free = end[other] if old_end[other] <= was else was + (end[other] - old_end[other])
                    earliest = max(earliest, free)
            start[row], end[row] = earliest, earliest + new[row]
        return np.array(start)


def profile_timeline(operations: Table) -> ProfileTimeline:
    """The time line of the operations of a profile (`whatif.profiles.profile_data.OPERATION_COLUMNS`)."""
    columns = operations.arrays
    start, time = columns["start_time"], columns["time"]
    kind = operation_kinds(operations)
    streams = _numbered(columns["device"], columns["stream"])
    engines = np.where(columns["operation"] == COPY, _numbered(columns["device"], columns["direction"]), _NONE)
    return ProfileTimeline(start, time, kind, _before(streams), _before(engines), _ended_last(start, time))


def total_time(start_time: FloatArray, time: FloatArray) -> float:
    """Time from the first start to the last end, in s; 0 for no operations."""
    return float((start_time + time).max() - start_time.min()) if len(time) else 0.0


def overlapped_times(kind: NDArray[Any], start_time: FloatArray, time: FloatArray) -> dict[tuple[str, str], float]:
    """Time in s in which operations of two kinds run at once, for each pair of kinds that do."""
    merged = {str(name): _merged(start_time[kind == name], time[kind == name]) for name in dict.fromkeys(kind.tolist())}
    shared = {pair: _common(merged[pair[0]], merged[pair[1]]) for pair in combinations(merged, 2)}
    return {pair: length for pair, length in shared.items() if length > _TICK}


def hidden_time(start_time: FloatArray, time: FloatArray) -> float:
    """Sum of the times of all operations in s less the time in which any of them runs."""
    if not len(time):
        return 0.0
    starts, ends = _merged(start_time, time)
    hidden = float(time.sum() - (ends - starts).sum())
    return hidden if hidden > _TICK else 0.0


def _numbered(*columns: NDArray[Any]) -> Rows:
    """Equal rows of some columns as equal numbers from 0."""
    numbers = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values = column.tolist()
        known = {value: number for number, value in enumerate(dict.fromkeys(values))}
        numbers = numbers * len(known) + np.array([known[value] for value in values], dtype=np.intp)
    return numbers


def _before(groups: Rows) -> Rows:
    """The operation before each one in its group; groups below 0 have none."""
    order = np.argsort(groups, kind="stable")
    before = np.full(len(groups), _NONE, dtype=np.intp)
    follows = (groups[order][1:] == groups[order][:-1]) & (groups[order][1:] >= 0)
    before[order[1:][follows]] = order[:-1][follows]
    return before


def _ended_last(start: FloatArray, time: FloatArray) -> Rows:
    """The operation that ended last before each start; one without duration is followed by none."""
    lasting = np.flatnonzero(time > _TICK)
    order = lasting[np.argsort((start + time)[lasting], kind="stable")]
    place = np.searchsorted((start + time)[order], start + _TICK, side="right") - 1
    return np.where(place >= 0, order[np.maximum(place, 0)] if len(order) else _NONE, _NONE)


def _merged(start: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intervals joined where they touch: starts and ends."""
    order = np.argsort(start, kind="stable")
    starts, ends = start[order], np.maximum.accumulate((start + time)[order])
    new = np.concatenate([[True], starts[1:] > ends[:-1]])
    return starts[new], ends[np.concatenate([np.flatnonzero(new)[1:] - 1, [len(ends) - 1]])]


def _common(first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]) -> float:
    """Length that two sets of disjoint intervals share: what the second covers between the ends of the first's."""
    return float((covered(first[1], *second) - covered(first[0], *second)).sum())


def covered(moments: FloatArray, start: FloatArray, end: FloatArray) -> FloatArray:
    """Time that disjoint ascending intervals cover before each of some moments."""
    edges = np.column_stack((start, end)).ravel()
    lengths = np.diff(edges)
    lengths[1::2] = 0.0
    return np.asarray(np.interp(moments, edges, np.append(0.0, np.cumsum(lengths))))
