"""Time lines of a GPU profile, measured and projected, as lanes of its streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray
from whatif.profiles.operation_replay import covered, hidden_time, total_time
from whatif.profiles.profile_data import FILL, INSIDE, KERNEL, PEER, READ, WRITE, Profile, Rows, operation_kinds

BIN_COUNT: Final = 1200
"""Parts of the visible time: several for each cell of a wide screen."""
MOST_LANES: Final = 12
"""Most streams with lanes of their own, the busiest ones; all others share one."""
_LEAST_NAMED: Final = 0.02
"""Least share of the visible time of an operation that is named."""
KINDS: Final = (KERNEL, READ, WRITE, INSIDE, PEER, FILL)
"""Kinds of operations on a time line."""
Window = tuple[float, float]
"""Start and end of the visible time, in s."""


class Interval(NamedTuple):
    """Operation that is long enough for a name."""

    start: float
    end: float
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A stream: share of each part of the visible time that each kind of operation takes, shape (kinds, parts)."""

    name: str
    busy: NDArray[np.float32]
    named: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TimelineSpan:
    """A time line, measured or projected: its length in s, and how much of all operations others hide."""

    name: str
    total_time: float
    overlapped_time: float
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Time lines over the same window; `whole` is the end of the longest one."""

    window: Window
    whole: float
    kinds: tuple[str, ...]
    bands: tuple[TimelineSpan, ...]


class OperationTimes(NamedTuple):
    """Starts and durations of all operations in s, and how much of these others hide."""

    name: str
    start: FloatArray
    time: FloatArray
    overlapped_time: float


def replay_of(name: str, start: FloatArray, time: FloatArray) -> OperationTimes:
    """Operation times with their overlapped time."""
    return OperationTimes(name, start, time, hidden_time(start, time))


class StreamOperations(NamedTuple):
    """Operations of each stream, the busiest first, and of all others; kind and label of each operation."""

    rows: Mapping[str, Rows]
    kind: NDArray[Any]
    kinds: tuple[str, ...]
    label: NDArray[Any]


def stream_operations(profile: Profile) -> StreamOperations:
    """Operations of a profile by stream; the streams beyond `MOST_LANES` are one entry."""
    columns = profile.operations.arrays
    kind = operation_kinds(profile.operations)
    label = np.where(kind == KERNEL, columns["name"], kind)
    pairs = np.column_stack([np.nan_to_num(columns[name], nan=-1.0) for name in ("device", "stream")])
    streams, place = np.unique(pairs, axis=0, return_inverse=True)
    order = np.argsort(-np.bincount(place.ravel(), columns["time"]), kind="stable")
    several = len(np.unique(streams[:, 0])) > 1
    own = order[:MOST_LANES]
    lanes = {_stream_name(*streams[at], several=several): np.flatnonzero(place.ravel() == at) for at in own.tolist()}
    if len(order) > MOST_LANES:
        lanes[f"{len(order) - MOST_LANES} others"] = np.flatnonzero(~np.isin(place.ravel(), own))
    return StreamOperations(lanes, kind, tuple(name for name in KINDS if (kind == name).any()), label)


def _stream_name(device: float, stream: float, *, several: bool) -> str:
    name = f"stream {stream:.15g}" if stream >= 0 else "no stream"
    return f"device {device:.15g}, {name}" if several else name


def streams_of(lanes: StreamOperations, cases: Sequence[OperationTimes], window: Window | None) -> Streams:
    """Time lines over a window; by default over all of the time."""
    totals = [total_time(case.start, case.time) for case in cases]
    seen = window or (0.0, max(totals))
    bands = (
        TimelineSpan(case.name, total, case.overlapped_time, tuple(_drawn(lanes, case, seen)))
        for case, total in zip(cases, totals, strict=True)
    )
    return Streams(seen, max(totals), lanes.kinds, tuple(bands))


def _drawn(lanes: StreamOperations, case: OperationTimes, window: Window) -> Iterator[Lane]:
    """Lanes of a time line, as far as they are visible."""
    edges = np.linspace(*window, BIN_COUNT + 1)
    end_time = case.start + case.time
    in_sight = (end_time >= window[0]) & (case.start <= window[1])
    for name, every in lanes.rows.items():
        rows = every[in_sight[every]]
        start, end, kind = case.start[rows], end_time[rows], lanes.kind[rows]
        busy = [_shares(start[kind == one], end[kind == one], edges) for one in lanes.kinds]
        long = np.minimum(end, window[1]) - np.maximum(start, window[0]) > _LEAST_NAMED * (window[1] - window[0])
        named = zip(start[long].tolist(), end[long].tolist(), lanes.label[rows[long]].tolist(), strict=True)
        yield Lane(name, np.array(busy, dtype=np.float32), tuple(Interval(*item) for item in named))


def _shares(start: FloatArray, end: FloatArray, edges: FloatArray) -> FloatArray:
    """Share of each part between two edges that operations fill; time that several of them fill counts once."""
    if not len(start) or not edges[-1] > edges[0]:
        return np.zeros(len(edges) - 1)
    order = np.argsort(start, kind="stable")
    last = np.maximum.accumulate(end[order])
    first = np.minimum(np.maximum(start[order], np.append(-np.inf, last[:-1])), last)
    return np.asarray(np.diff(covered(edges, first, last)) / np.diff(edges))
