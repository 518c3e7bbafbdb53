"""Scenario of a profile: its copies grouped with the same sum, its kernels, the time of the host, the overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.importers.kernel_names import phase_name
from whatif.profiles.characterisation import CLASS, groups
from whatif.profiles.copy_times import device_rates
from whatif.profiles.formats import read_profile
from whatif.profiles.operation_replay import overlapped_times, total_time
from whatif.profiles.profile_data import COPY, FILL, KERNEL, Profile, Rows
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import FORMAT_LINE
from whatif.schema.toml_text import one_line, toml_value
from whatif.table import Table
from whatif.units import SECOND, format_quantity

MOST_SIZES: Final = 8
"""Sizes of one class of copies that are phases of their own; more are put together by octave."""
MOST_KERNELS: Final = 8
"""Kernels that are phases of their own, those that take the most time; the others are one phase together."""
_LEAST_HIDDEN: Final = 0.01
"""Share of the shorter phase below which an overlap is not written."""


@dataclass(frozen=True, slots=True, eq=False)
class _Phase:
    """A phase: its name, a comment, its parameters as TOML, and the operations in it."""

    name: str
    comment: str
    parameters: dict[str, Any]
    rows: Rows


def profile_scenario(path: Path, platform: str, machine: PlatformSpec) -> str:
    """Scenario of a profile file, named after the file."""
    return scenario_toml(read_profile(path), platform, path.name.split(".")[0], machine)


def profile_phases(path: Path, machine: PlatformSpec, _: Path | None) -> str:
    """Scenario of a profile file, whose content is cached until it changes, for one that takes in its phases."""
    found = path.stat()
    profile = _profile(path.resolve(), (found.st_mtime_ns, found.st_size))
    return scenario_toml(profile, machine.name, path.name.split(".")[0], machine)


@lru_cache(maxsize=2)
def _profile(path: Path, _: tuple[int, int]) -> Profile:
    return read_profile(path)


def scenario_toml(profile: Profile, platform: str, name: str, machine: PlatformSpec | None = None) -> str:
    """A scenario of one iteration of one rank that does on `platform` what the profile did, all of it in one iteration.

    Copies are transfer phases by direction, memory and size; where a class has more than `MOST_SIZES` sizes, by octave
    with the mean size, so that bytes and number stay. Kernels and fills are `measured_kernel` phases, bounded by the
    device memory where the bandwidth of the profiled device is known: one side of the roofline, to be changed where
    they are bound by arithmetic. What no operation fills is the phase `host_time`. `machine` is the platform itself,
    where it is known: on the device that was profiled the kernels then take what was measured. Operations of one phase
    that ran at the same time are counted one after the other. Raise `UsageError` for a machine without GPUs.
    """
    if machine is not None and machine.node.gpu is None:
        raise UsageError(f"{machine.name} has no GPU: a profile's copies and kernels need one; name another platform")
    operations = profile.operations
    phases = [*_transfers(operations), *_timed(operations, device_rates(profile, machine)["dram_bandwidth"])]
    overlaps = _overlaps(operations, phases)
    hidden = sum(length for _, _, length in overlaps)
    start, time = (operations.columns[key].values for key in ("start_time", "time"))
    rest = max(total_time(start, time) - float(time.sum()) + hidden, 0.0)
    parameters = {"kind": "overhead", "overhead_time": _seconds(rest)}
    phases.append(
        _Phase("host_time", "Neither copies nor kernels: what the host did in between", parameters, np.arange(0))
    )
    head = {"name": name, "rank_count": 1, "iteration_count": 1}
    tables = [_table("application", head)]
    tables += [f"# {it.comment}\n{_table(f'application.phases.{it.name}', it.parameters)}" for it in phases]
    for first, second, length in overlaps:
        fraction = length / min(_time(operations, first.rows), _time(operations, second.rows))
        both = {"phases": [first.name, second.name], "fraction": min(fraction, 1.0)}
        tables.append(_table(f"application.overlaps.{first.name}_{second.name}", both))
    return "\n".join([*_head(operations, platform), *tables])


def _head(operations: Table, platform: str) -> Iterator[str]:
    notes = (f"{key} {text}" for key, text in operations.notes.items() if key != "warnings")
    yield f"# From a profile: {one_line(', '.join(notes))}."
    yield "# One iteration is the whole profiled run."
    yield f"\n{FORMAT_LINE}\nplatform = {toml_value(platform)}\n"


def _transfers(operations: Table) -> Iterator[_Phase]:
    size = operations.columns["message_size"].values
    for (operation, direction, memory), rows in groups(operations, CLASS):
        if operation != COPY:
            continue
        parts = _by_size(size, rows[np.isfinite(size[rows])])
        for number, part in enumerate(parts, 1):
            mean = float(size[part].sum() / len(part))
            parameters: dict[str, Any] = {"kind": "transfer", "direction": direction}
            if memory == "pageable":
                parameters |= {"memory": "pageable", "pageable_model": "projected"}
            parameters |= {"transfer_size": f"{mean!r} B", "transfer_count": len(part)}
            same = size[part].min() == size[part].max()
            comment = f"{memory} memory, {_shown(operations, part)}" + ("" if same else ", mean of several sizes")
            yield _Phase(f"{direction}_{memory}_{number}", comment, parameters, part)


def _by_size(size: NDArray[np.float64], rows: Rows) -> list[Rows]:
    """Rows by their size, or by its octave if there are many sizes, the smallest first."""
    key = size[rows]
    if len(np.unique(key)) > MOST_SIZES:
        key = np.floor(np.log2(np.maximum(key, 1.0)))
    return [rows[key == value] for value in np.unique(key)]


def _timed(operations: Table, bandwidth: float) -> Iterator[_Phase]:
    """Kernels by name, fills, and copies of unknown size, with their measured times."""
    kind, size, time = (operations.columns[key].values for key in ("operation", "message_size", "time"))
    found = [(str(words[1]), rows) for words, rows in groups(operations, ("operation", "name")) if words[0] == KERNEL]
    found.sort(key=lambda kernel: -float(time[kernel[1]].sum()))
    for number, (name, rows) in enumerate(found[:MOST_KERNELS], 1):
        key = f"kernel_{number}_{phase_name(name)[:30]}".rstrip("_")
        yield _measured(operations, key, f"{one_line(name)}: ", rows, bandwidth)
    others = [rows for _, rows in found[MOST_KERNELS:]]
    rest = {
        "other_kernels": np.concatenate(others) if others else np.arange(0),
        "fills": np.flatnonzero(kind == FILL),
        "copies_without_size": np.flatnonzero((kind == COPY) & ~np.isfinite(size)),
    }
    for name, rows in rest.items():
        if len(rows):
            yield _measured(operations, name, "", rows, bandwidth)


def _measured(operations: Table, name: str, lead: str, rows: Rows, bandwidth: float) -> _Phase:
    mean = _time(operations, rows) / len(rows)
    parameters: dict[str, Any] = {"kind": "measured_kernel", "kernel_time": _seconds(mean), "launch_count": len(rows)}
    if bandwidth > 0:
        parameters |= {"bound": "dram_bandwidth", "profiled_bandwidth": f"{bandwidth!r} B/s"}
    return _Phase(name, f"{lead}{_shown(operations, rows)}", parameters, rows)


def _overlaps(operations: Table, phases: Sequence[_Phase]) -> list[tuple[_Phase, _Phase, float]]:
    """Pairs of phases and the time that they share, the longest first, each phase in one pair."""
    place = np.full(len(operations), -1)
    for number, phase in enumerate(phases):
        place[phase.rows] = number
    start, time = (operations.columns[key].values for key in ("start_time", "time"))
    shared = overlapped_times(place, start, time)
    found: list[tuple[_Phase, _Phase, float]] = []
    for (one, other), length in sorted(shared.items(), key=lambda pair: -pair[1]):
        first, second = (phases[number] for number in sorted((int(one), int(other))))
        free = all(first not in pair[:2] and second not in pair[:2] for pair in found)
        shorter = min(_time(operations, phase.rows) for phase in (first, second))
        if free and length > _LEAST_HIDDEN * shorter:
            found.append((first, second, min(length, shorter)))
    return found


def _time(operations: Table, rows: Rows) -> float:
    return float(operations.columns["time"].values[rows].sum())


def _shown(operations: Table, rows: Rows) -> str:
    return f"{len(rows)} in {format_quantity(_time(operations, rows), SECOND)} measured"


def _seconds(time: float) -> str:
    return f"{time!r} s"


def _table(path: str, parameters: dict[str, Any]) -> str:
    lines = (f"{key} = {toml_value(value)}" for key, value in parameters.items())
    return "\n".join([f"[{path}]", *lines, ""])
