"""GPU profile for its page, read and projected in a worker process."""

from __future__ import annotations

from whatif.errors import WhatifError
from whatif.profiles.profile_study import ProfileInputs, ProfileView, profile_inputs, profile_view
from whatif.profiles.stream_lanes import Window
from whatif.tui.fit_job import FitRefusal
from whatif.tui.state import ExplorerState

if TYPE_CHECKING:
    from whatif.tui.pages.profile import ProfileView

def inputs_of(study: ExplorerState, window: Window | None = None) -> ProfileInputs:
    """Inputs of the profile page for a state of the explorer."""
    return profile_inputs(study.session, study.view.profile, study.view.profile_from, window)


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
        return profile_view(asked)
    except WhatifError as problem:
        return FitRefusal(str(problem))
