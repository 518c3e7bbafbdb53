"""What a verb is given: a scenario, or a trace or a profile that stands for one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from whatif.cli.options import named_platform, open_question, parse_sets
from whatif.errors import InvalidFileError, Problem

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.schema.toml import Document

Kind = Literal["scenario", "trace", "profile"]
DEFAULT_PLATFORM: Final = "summit"
"""The machine that a trace or a profile is put on where nobody names one."""


class ScenarioSource(NamedTuple):
    """A question, what it was made from, and where that is."""

    question: Scenario
    kind: Kind
    path: Path | None = None


def open_source(
    source: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    model: str | None = None,
) -> ScenarioSource:
    """The question that a scenario asks, or a trace or profile as a scenario that is not written yet."""
    path = Path(source)
    kind = _kind(path)
    if kind == "scenario":
        return ScenarioSource(open_question(source, platform, platform_dirs, overrides), kind)
    from whatif.core.scenario import Scenario
    from whatif.files.trace_scenario import trace_scenario

    machine, platform_dirs = named_platform(platform or DEFAULT_PLATFORM, platform_dirs)
    if kind == "profile":
        document = _profile_scenario(path, machine, platform_dirs)
    else:
        document = trace_scenario(path, machine, model or "", platform_dirs)
    return ScenarioSource(Scenario(document, None, parse_sets(overrides), platform_dirs), kind, path)


def _kind(path: Path) -> Kind:
    """What a source is: a file or folder that is neither trace nor profile hides no shipped scenario of its name."""
    if path.suffix == ".toml" or not os.path.exists(path):  # noqa: PTH110 - false, too, for what is no path at all
        return "scenario"
    from whatif.importers.trace_formats import is_trace
    from whatif.profiles.formats import is_profile
    from whatif.schema.shipped import shipped_names

    if is_trace(path):
        return "trace"
    if path.is_file() and is_profile(path):
        return "profile"
    if str(path) in shipped_names("scenarios"):
        return "scenario"
    raise _neither(path)


def _neither(path: Path) -> InvalidFileError:
    """Why a path is no trace, and why no profile."""
    from whatif.importers.trace_formats import read_trace
    from whatif.profiles.formats import read_profile

    problems: list[Problem] = []
    for read in (read_trace, read_profile) if path.is_file() else (read_trace,):
        try:
            read(path)
        except InvalidFileError as error:
            problems.extend(error.problems)
    return InvalidFileError(problems)


def _profile_scenario(path: Path, platform: str, platform_dirs: tuple[Path, ...]) -> Document:
    from whatif.files.trace_scenario import free_name
    from whatif.profiles.formats import read_profile
    from whatif.profiles.scenario_text import scenario_toml
    from whatif.schema.load import load_platform
    from whatif.schema.toml import parse_document, shown_path

    text = scenario_toml(
        read_profile(path), platform, path.name.split(".")[0], load_platform(platform, platform_dirs)[0]
    )
    return parse_document(text, shown_path(free_name(path)), path.resolve().parent)
