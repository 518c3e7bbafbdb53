"""The other scenario of a report, and the command line that writes the report again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from whatif.axes import Axis
from whatif.core.platform import Platform
from whatif.core.scenario import Scenario, named_platform
from whatif.errors import UsageError, did_you_mean
from whatif.files.scenario_edits import scenario_words, set_words
from whatif.schema.load import open_document
from whatif.schema.shipped import kind_of, names_in


def other_scenario(against: str | Path | Scenario | Platform, scenario: Scenario) -> Scenario:
    """Scenario to compare with: the same one on another platform, or another one with the same overrides.

    Raise `UsageError` for a name that is neither a platform nor a scenario.
    """
    if isinstance(against, Scenario):
        return against
    if isinstance(against, Platform):
        return scenario.on(against)
    text = str(against)
    is_file = Path(text).is_file()
    kind = kind_of(open_document(text, "scenarios").data) if is_file else None
    name, searched = named_platform(text, scenario.folders)
    beside = (*searched, *scenario.search_folders)
    machines, scenarios = names_in(beside, "platforms"), names_in(searched, "scenarios")
    if kind == "platform" or (kind is None and name in machines):
        return scenario.on(text)
    if not is_file and text not in scenarios:
        hint = did_you_mean(text, [*machines, *scenarios])
        raise UsageError(f"--against {text}: no such platform, scenario or file{hint}")
    opened = Scenario.open(text, overrides=scenario.overrides, folders=scenario.folders)
    return replace(opened, platform=scenario.platform, built=scenario.built)


def report_words(
    scenario: str | Path | Scenario,
    output: Path,
    *,
    platform: object = None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Mapping[str, Any] | None = None,
    axes: Sequence[Axis] = (),
    against: object = None,
) -> str:
    """Command line that writes the same report, from the arguments of `whatif.report` and its axes."""
    words = ["whatif", "report", *(scenario_words(scenario) if isinstance(scenario, Scenario) else [str(scenario)])]
    words += ["--platform", _named(platform)] if platform is not None else []
    words += [word for folder in platform_dirs for word in ("--platform-dir", str(folder))]
    words += set_words(overrides or {})
    sweeps = ("; ".join(f"{path}={text}" for path, text in axis.texts.items()) for axis in axes)
    words += [word for text in sweeps for word in ("--sweep", text)]
    words += ["--against", _named(against)] if against is not None else []
    return shlex.join([*words, "-o", str(output)])


def _named(argument: object) -> str:
    if isinstance(argument, Scenario):
        return Path(argument.document.name).stem
    return argument.name if isinstance(argument, Platform) else str(argument)
