"""A GPU profile on the present machine: its tables, its projection and its time lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from whatif.axes import first_number
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError, WhatifError
from whatif.paths import user_path
from whatif.profiles.characterisation import characterise
from whatif.profiles.copy_times import RATES, Machines, is_profiled_on
from whatif.profiles.profile_data import Profile
from whatif.profiles.projection import Projection, project
from whatif.profiles.stream_lanes import (
    OperationTimes,
    StreamOperations,
    Streams,
    Window,
    replay_of,
    stream_operations,
    streams_of,
)
from whatif.schema.fields import StrictTable
from whatif.schema.gpu import GPU
from whatif.schema.load import load_document, load_platform
from whatif.schema.parameters import provenance
from whatif.schema.platform_spec import PlatformSpec
from whatif.table import Table

_NODE: Final = "platform.node."


class ProfileInputs(NamedTuple):
    """Inputs of a view; without a window all of the time line is visible."""

    path: str
    latencies: str
    """Platform of the latencies; empty: the present one."""
    target: PlatformSpec
    edited: bool
    """Whether devices or links of the present machine differ from its file."""
    unedited: Scenario
    """Scenario on its present platform, without edits."""
    window: Window | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ProjectionSummary:
    """Copies and fills of a profile on the present machine."""

    source: str
    target: str
    edited: bool
    """Whether the machine differs from its file."""
    own: bool
    """Whether the profile counts as one of that machine, so that its times give the errors."""
    classes: Table
    """`Projection.summary`."""
    kernel_range: tuple[float, float]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProfileSummary:
    """Profile in tables (`whatif.profiles.characterisation.characterise`), projected, and its time lines."""

    tool: str
    devices: tuple[str, ...]
    tables: Mapping[str, Table]
    projected: ProjectionSummary | None
    reason: str
    """Error message instead of a projection; empty if there is one."""
    streams: Streams
    warnings: tuple[str, ...]


def profile_inputs(session: Session, path: str, latencies: str, window: Window | None = None) -> ProfileInputs:
    """Inputs of `profile_summary` for the present machine of a session."""
    scenario = session.scenario
    # Counts, which are one level up, make no copy faster.
    edited = any(path.startswith(_NODE) and path.count(".") > _NODE.count(".") for path in scenario.overrides)
    unedited = Scenario(scenario.document, scenario.platform, {}, scenario.folders)
    return ProfileInputs(path, latencies, _present_platform(session), edited, unedited, window)


def _present_platform(session: Session) -> PlatformSpec:
    """Platform with the present values of its nodes: edited numbers are in the program only."""
    platform, values = session.program.loaded.scenario.platform, session.at.values
    parameters = (
        parameter
        for path, parameter in session.program.parameters.items()
        if path.startswith(_NODE) and not parameter.structural
    )
    stand = {parameter.path: first_number(values[parameter.path]) for parameter in parameters}
    return platform.model_copy(update={"node": _with_values(platform.node, _NODE, stand)})


def _with_values(part: StrictTable, path: str, values: Mapping[str, float]) -> StrictTable:
    """Table of a platform, and the tables in it, with other values; `path` leads to its parameters."""
    parts = {name: getattr(part, name) for name in type(part).model_fields}
    tables = {
        name: _with_values(item, f"{path}{name}.", values)
        for name, item in parts.items()
        if isinstance(item, StrictTable)
    }
    numbers = {name: values[f"{path}{name}"] for name in parts if f"{path}{name}" in values}
    return part.model_copy(update={**tables, **numbers})


def profile_summary(inputs: ProfileInputs) -> ProfileSummary:
    """Profile in tables, projected, and as time lines. Raise `WhatifError` for a file that is not a profile."""
    file = _file(inputs.path)
    profile = _profile(file)
    projected, reason, cases = _answer(inputs, file)
    notes = profile.operations.notes
    return ProfileSummary(
        tool=" ".join(notes[key] for key in ("tool", "version") if key in notes),
        devices=profile.device_names,
        tables=_tables(file),
        projected=projected,
        reason=reason,
        streams=streams_of(_lanes(file), (_measured(file), *cases), inputs.window),
        warnings=tuple(notes.get("warnings", "").splitlines()),
    )


def check_profile(path: str) -> None:
    """Raise `WhatifError` for a profile that cannot be read."""
    _profile(_file(path))


def has_latencies(name: str, folders: Sequence[Path]) -> bool:
    """Whether a platform states latencies of copies with a grade better than assumed."""
    try:
        platform, layers = load_platform(name, folders)
    except WhatifError:
        return False
    link = platform.node.host_link
    stated = (key for key, value in link or () if key.endswith("_latency") and value is not None)
    return any(provenance(("node", "host_link", key), layers)[1] != "assumed" for key in stated)


class _File(NamedTuple):
    """A file and its state: a changed file is read again."""

    path: str
    changed: int
    size: int


def _file(path: str) -> _File:
    try:
        status = user_path(path).stat()
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from None
    return _File(str(user_path(path)), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=2)
def _profile(file: _File) -> Profile:
    from whatif.profiles.formats import read_profile  # The page is shown without the readers.

    return read_profile(Path(file.path))


@lru_cache(maxsize=2)
def _tables(file: _File) -> Mapping[str, Table]:
    return characterise(_profile(file))


@lru_cache(maxsize=2)
def _measured(file: _File) -> OperationTimes:
    columns = _profile(file).operations.columns
    return replay_of("measured", columns["start_time"].values, columns["time"].values)


def _answer(inputs: ProfileInputs, file: _File) -> tuple[ProjectionSummary | None, str, tuple[OperationTimes, ...]]:
    """Projection or error message, and the projected time lines."""
    try:
        machines, own = _machines(inputs, _profile(file))
        projection, classes, cases = _projection(file, machines, own)
    except WhatifError as problem:
        return None, str(problem), ()
    names = machines.source.name, machines.target.name
    found = ProjectionSummary(*names, inputs.edited, own, classes, projection.kernel_range, projection.warnings)
    return found, "", cases


def _machines(inputs: ProfileInputs, profile: Profile) -> tuple[Machines, bool]:
    """Both machines, and whether the profile counts as one of the present machine.

    It does where it is of that machine's device, and not of the device of the machine of the latencies.
    """
    source, target = _before_and_now(inputs)
    named = _named(inputs) if inputs.latencies else None
    devices = [machine.node.gpu for machine in (inputs.target, named) if machine is not None]
    here, *there = (device is not None and is_profiled_on(profile, device.name) for device in devices)
    return Machines(source if named is None else named, target), here and not any(there) and not inputs.edited


def _named(inputs: ProfileInputs) -> PlatformSpec:
    return load_platform(inputs.latencies, inputs.unedited.search_folders)[0]


def _before_and_now(inputs: ProfileInputs) -> tuple[PlatformSpec, PlatformSpec]:
    """Present machine with the unedited rates of its GPU, at which a profile was taken, and with the present rates.

    A GPU with edited rates gets another name: it was never profiled.
    """
    now, before = inputs.target.node.gpu, _unedited(inputs).node.gpu
    if now is None or before is None:
        return inputs.target, inputs.target
    then = now.model_copy(update={name: getattr(before, name) for name in RATES})
    if then == now:
        return inputs.target, inputs.target
    return _with_gpu(inputs.target, then), _with_gpu(inputs.target, now.model_copy(update={"name": "edited"}))


def _with_gpu(platform: PlatformSpec, device: GPU) -> PlatformSpec:
    return platform.model_copy(update={"node": platform.node.model_copy(update={"gpu": device})})


def _unedited(inputs: ProfileInputs) -> PlatformSpec:
    """Platform of the file; the present one where the scenario is invalid without its edits."""
    scenario = inputs.unedited
    if not inputs.edited:
        return inputs.target
    try:
        return load_document(scenario.document, platform=scenario.platform, folders=scenario.folders).scenario.platform
    except WhatifError:
        return inputs.target


@lru_cache(maxsize=2)
def _projection(file: _File, machines: Machines, own: bool) -> tuple[Projection, Table, tuple[OperationTimes, ...]]:
    """Projection, its summary and its time lines, with kernels at both ends of their range."""
    profile = _profile(file)
    found = project(profile, machines.source, machines.target, profile if own else None)
    low, high = found.kernel_range
    factors = {"projected": low} if low == high else {"kernels at best": low, "kernels at worst": high}
    times = {name: found.times(factor) for name, factor in factors.items()}
    cases = (replay_of(name, found.timeline.replay(time), time) for name, time in times.items())
    return found, found.summary(), tuple(cases)


@lru_cache(maxsize=2)
def _lanes(file: _File) -> StreamOperations:
    return stream_operations(_profile(file))
