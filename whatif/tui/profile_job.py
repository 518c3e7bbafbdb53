"""A GPU profile read, characterised and projected, as plain numbers to show: what its page has computed beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.schema.fields import StrictTable
from whatif.schema.load import load_document, load_platform
from whatif.schema.parameters import provenance
from whatif.schema.platform_spec import GPU, PlatformSpec
from whatif.table import Table
from whatif.tui.fit_job import FitRefusal
from whatif.tui.state import ExplorerState

if TYPE_CHECKING:
    from whatif.profiles.profile_data import Profile
    from whatif.profiles.projection import Projection
    from whatif.tui.pages.profile import ProfileView

BIN_COUNT: Final = 1200
"""Parts of the time in sight whose business is told: several for each cell of a wide screen."""
MOST_LANES: Final = 12
"""Streams that are lanes of their own, the busiest ones; all others share one."""
_LEAST_NAMED: Final = 0.02
"""Share of the time in sight from which on an operation is told with its name."""
KINDS: Final = ("kernel", "host_to_device", "device_to_host", "device_to_device", "peer_to_peer", "fill")
"""What an operation is on a time line."""
_NODE: Final = "platform.node."
Window = tuple[float, float]
Rows = NDArray[np.intp]


class Wanted(NamedTuple):
    """What decides the answer; without a window all of the time line is in sight."""

    path: str
    latencies: str
    """The machine whose latencies count; empty for the present one's own."""
    target: PlatformSpec
    edited: bool
    """Whether the devices and links of the present machine are not what its file says."""
    unedited: Scenario
    """The scenario on its present platform, without edits."""
    window: Window | None = None


class Interval(NamedTuple):
    """An operation that is long enough for a name."""

    start: float
    end: float
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """A stream: the share of each part of the time in sight that each of the kinds takes, shape (kinds, parts)."""

    name: str
    busy: NDArray[np.float32]
    named: tuple[Interval, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TimelineSpan:
    """A time line, measured or projected: from the first start to the last end, in s, and how much of that time two
    kinds of operations run at once."""

    name: str
    total_time: float
    overlapped_time: float
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """The time lines below each other, all over the same window; `whole` is the end of the longest one."""

    window: Window
    whole: float
    kinds: tuple[str, ...]
    bands: tuple[TimelineSpan, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    """The copies and fills of a profile on the present machine."""

    source: str
    target: str
    edited: bool
    """Whether the machine is not what its file says."""
    own: bool
    """Whether the profile is taken as one of that machine, so that its times tell the errors."""
    classes: Table
    """`Projection.summary`."""
    kernel_range: tuple[float, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Profiled:
    """A profile in tables (`whatif.profiles.characterisation.characterise`), projected, and its time lines."""

    tool: str
    devices: tuple[str, ...]
    tables: Mapping[str, Table]
    projected: Projected | None
    reason: str
    """Why there is no projection; empty where there is one."""
    streams: Streams
    warnings: tuple[str, ...]


def wanted(study: ExplorerState, view: ProfileView, window: Window | None = None) -> Wanted:
    """What a study asks for."""
    question = study.session.question
    # How many there are of something makes no copy faster.
    edited = any(path.startswith(_NODE) and path.count(".") > _NODE.count(".") for path in question.sets)
    unedited = Scenario(question.document, question.platform, {}, question.folders)
    return Wanted(view.file, view.source, _present_platform(study.session), edited, unedited, window)


def _present_platform(session: Session) -> PlatformSpec:
    """The platform with the values of its nodes as they stand: numbers that were edited are in the program alone."""
    platform, values = session.program.loaded.scenario.platform, session.at.values
    parameters = (
        parameter
        for path, parameter in session.program.parameters.items()
        if path.startswith(_NODE) and not parameter.structural
    )
    stand = {parameter.path: float(np.ravel(values[parameter.path])[0]) for parameter in parameters}
    return platform.model_copy(update={"node": _with_values(platform.node, _NODE, stand)})


def _with_values(part: StrictTable, path: str, values: Mapping[str, float]) -> StrictTable:
    """A table of a platform, and those in it, with other values; `path` leads to its parameters."""
    parts = {name: getattr(part, name) for name in type(part).model_fields}
    tables = {
        name: _with_values(item, f"{path}{name}.", values)
        for name, item in parts.items()
        if isinstance(item, StrictTable)
    }
    numbers = {name: values[f"{path}{name}"] for name in parts if f"{path}{name}" in values}
    return part.model_copy(update={**tables, **numbers})


def profiled(asked: Wanted) -> Profiled | FitRefusal:
    """The profile that is asked for; why there is none."""
    try:
        file = _file(asked.path)
        profile = _profile(file)
    except WhatifError as problem:
        return FitRefusal(str(problem))
    projected, reason, cases = _answer(asked, file)
    notes = profile.operations.notes
    return Profiled(
        tool=" ".join(notes[key] for key in ("tool", "version") if key in notes),
        devices=_device_names(profile),
        tables=_tables(file),
        projected=projected,
        reason=reason,
        streams=_streams(_lanes(file), (_measured(file), *cases), asked.window),
        warnings=tuple(notes.get("warnings", "").splitlines()),
    )


def readable(path: str) -> str:
    """What is wrong with a profile; empty where it can be read."""
    try:
        _profile(_file(path))
    except WhatifError as problem:
        return str(problem)
    return ""


def has_latencies(name: str, folders: Sequence[Path]) -> bool:
    """Whether a platform of this name states latencies of copies that are more than assumed."""
    try:
        platform, layers = load_platform(name, folders)
    except WhatifError:
        return False
    link = platform.node.host_link
    stated = (key for key, value in link or () if key.endswith("_latency") and value is not None)
    return any(provenance(("node", "host_link", key), layers)[1] != "assumed" for key in stated)


class _File(NamedTuple):
    """A file, and what the file system says of it: one that was written anew is read anew."""

    path: str
    changed: int
    size: int


def _file(path: str) -> _File:
    try:
        status = Path(path).expanduser().stat()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None
    return _File(str(Path(path).expanduser()), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=2)
def _profile(file: _File) -> Profile:
    from whatif.profiles.formats import read_profile  # noqa: PLC0415 - not to be loaded by the explorer itself

    return read_profile(Path(file.path))


@lru_cache(maxsize=2)
def _tables(file: _File) -> Mapping[str, Table]:
    from whatif.profiles.characterisation import characterise  # noqa: PLC0415 - not to be loaded by the explorer itself

    return characterise(_profile(file))


def _device_names(profile: Profile) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(name) for name in profile.devices.columns["name"].values if name))


class _Case(NamedTuple):
    """A time line: starts and durations of all operations, in s, and how long two kinds of them run at once."""

    name: str
    start: FloatArray
    time: FloatArray
    overlapped_time: float


def _case(name: str, start: FloatArray, time: FloatArray, kind: NDArray[Any]) -> _Case:
    from whatif.profiles.operation_replay import overlapped_times  # noqa: PLC0415 - not to be loaded by the explorer

    return _Case(name, start, time, sum(overlapped_times(kind, start, time).values()))


@lru_cache(maxsize=2)
def _measured(file: _File) -> _Case:
    columns = _profile(file).operations.columns
    return _case("measured", columns["start_time"].values, columns["time"].values, _lanes(file).kind)


def _answer(asked: Wanted, file: _File) -> tuple[Projected | None, str, tuple[_Case, ...]]:
    """The projection, or why there is none, and the time lines that follow from it."""
    try:
        machines, own = _machines(asked, _profile(file))
        projection, classes, cases = _projection(file, machines, own)
    except WhatifError as problem:
        return None, str(problem), ()
    names = machines.source.name, machines.target.name
    return Projected(*names, asked.edited, own, classes, projection.kernel_range, projection.warnings), "", cases


@dataclass(frozen=True)
class _Machines:
    """Where latencies are from, and the present machine; platforms themselves have no hash."""

    source: PlatformSpec
    target: PlatformSpec

    def __hash__(self) -> int:
        return hash((self.source.name, self.target.name))


def _machines(asked: Wanted, profile: Profile) -> tuple[_Machines, bool]:
    """The two machines, and whether the profile is taken as one of the present machine.

    That is so where the profile is of its device, and not of the device of the machine that the latencies are from.
    """
    from whatif.profiles.copy_times import is_profiled_on  # noqa: PLC0415 - not to be loaded by the explorer itself

    source, target = _before_and_now(asked)
    named = _named(asked) if asked.latencies else None
    devices = [machine.node.gpu for machine in (asked.target, named) if machine is not None]
    here, *there = (device is not None and is_profiled_on(profile, device.name) for device in devices)
    return _Machines(source if named is None else named, target), here and not any(there) and not asked.edited


def _named(asked: Wanted) -> PlatformSpec:
    beside = asked.unedited.document.folder
    return load_platform(asked.latencies, (*([] if beside is None else [beside]), *asked.unedited.folders))[0]


def _before_and_now(asked: Wanted) -> tuple[PlatformSpec, PlatformSpec]:
    """The present machine with its GPU at the rates of before any edit, at which a profile was taken; and as it is:
    with a GPU of another name where those rates were edited, for that one was never profiled."""
    from whatif.profiles.copy_times import RATES  # noqa: PLC0415 - not to be loaded by the explorer itself

    now, before = asked.target.node.gpu, _unedited(asked).node.gpu
    if now is None or before is None:
        return asked.target, asked.target
    then = now.model_copy(update={name: getattr(before, name) for name in RATES})
    if then == now:
        return asked.target, asked.target
    return _with_gpu(asked.target, then), _with_gpu(asked.target, now.model_copy(update={"name": "edited"}))


def _with_gpu(platform: PlatformSpec, device: GPU) -> PlatformSpec:
    return platform.model_copy(update={"node": platform.node.model_copy(update={"gpu": device})})


def _unedited(asked: Wanted) -> PlatformSpec:
    """The present platform as its file says; as it is where the scenario does not stand without its edits."""
    question = asked.unedited
    if not asked.edited:
        return asked.target
    try:
        return load_document(question.document, platform=question.platform, folders=question.folders).scenario.platform
    except WhatifError:
        return asked.target


@lru_cache(maxsize=2)
def _projection(file: _File, machines: _Machines, own: bool) -> tuple[Projection, Table, tuple[_Case, ...]]:
    """A projection, its summary and its time lines: with kernels at both ends of their range, where it is one."""
    from whatif.profiles.projection import project  # noqa: PLC0415 - not to be loaded by the explorer itself

    profile, kind = _profile(file), _lanes(file).kind
    found = project(profile, machines.source, machines.target, profile if own else None)
    low, high = found.kernel_range
    factors = {"projected": low} if low == high else {"kernels at best": low, "kernels at worst": high}
    times = {name: found.times(factor) for name, factor in factors.items()}
    cases = (_case(name, found.timeline.replay(time), time, kind) for name, time in times.items())
    return found, found.summary(), tuple(cases)


class _Lanes(NamedTuple):
    """The operations of each stream, the busiest first, and those of all others; the kind of each operation."""

    rows: Mapping[str, Rows]
    kind: NDArray[Any]
    kinds: tuple[str, ...]
    label: NDArray[Any]


@lru_cache(maxsize=2)
def _lanes(file: _File) -> _Lanes:
    columns = {name: column.values for name, column in _profile(file).operations.columns.items()}
    kind = np.where(columns["operation"] == "copy", columns["direction"], columns["operation"])
    label = np.where(columns["operation"] == "kernel", columns["name"], kind)
    pairs = np.column_stack([np.nan_to_num(columns[name], nan=-1.0) for name in ("device", "stream")])
    streams, place = np.unique(pairs, axis=0, return_inverse=True)
    order = np.argsort(-np.bincount(place.ravel(), columns["time"]), kind="stable")
    several = len(np.unique(streams[:, 0])) > 1
    own = order[:MOST_LANES]
    lanes = {_stream_name(*streams[at], several=several): np.flatnonzero(place.ravel() == at) for at in own.tolist()}
    if len(order) > MOST_LANES:
        lanes[f"{len(order) - MOST_LANES} others"] = np.flatnonzero(~np.isin(place.ravel(), own))
    return _Lanes(lanes, kind, tuple(name for name in KINDS if (kind == name).any()), label)


def _stream_name(device: float, stream: float, *, several: bool) -> str:
    name = f"stream {stream:.15g}" if stream >= 0 else "no stream"
    return f"device {device:.15g}, {name}" if several else name


def _streams(lanes: _Lanes, cases: Sequence[_Case], window: Window | None) -> Streams:
    """All time lines over a window."""
    from whatif.profiles.operation_replay import total_time  # noqa: PLC0415 - not to be loaded by the explorer itself

    totals = [total_time(case.start, case.time) for case in cases]
    seen = window or (0.0, max(totals))
    bands = (
        TimelineSpan(case.name, total, case.overlapped_time, tuple(_drawn(lanes, case, seen)))
        for case, total in zip(cases, totals, strict=True)
    )
    return Streams(seen, max(totals), lanes.kinds, tuple(bands))


def _drawn(lanes: _Lanes, case: _Case, window: Window) -> Iterator[Lane]:
    """The streams of a time line, as far as they are in sight."""
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
    """Share of each part between two edges that some operations fill; what several of them fill counts once."""
    if not len(start) or not edges[-1] > edges[0]:
        return np.zeros(len(edges) - 1)
    order = np.argsort(start, kind="stable")
    last = np.maximum.accumulate(end[order])
    first = np.minimum(np.maximum(start[order], np.append(-np.inf, last[:-1])), last)
    turns = np.column_stack((first, last)).ravel()
    lengths = np.diff(turns)
    lengths[1::2] = 0.0
    covered = np.append(0.0, np.cumsum(lengths))
    return np.asarray(np.diff(np.interp(edges, turns, covered)) / np.diff(edges))
