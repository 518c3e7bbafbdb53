"""Sources of scenarios: a scenario file, or a trace or profile from which one is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from whatif.core.overrides import checked_overrides
from whatif.core.platform import Platform
from whatif.core.scenario import Scenario, named_platform
from whatif.errors import InvalidFileError, Problem, UsageError
from whatif.paths import exists
from whatif.plugins import registered_files, resolve
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import Document

DEFAULT_PLATFORM: Final = "summit"
"""Platform of a trace or profile unless one is named."""


class ScenarioSource(NamedTuple):
    """A scenario, the kind of file that it was made from, and its path."""

    scenario: Scenario
    kind: str
    """`scenario`, `trace`, or a kind of file that a plug-in reads, such as `profile`."""
    path: Path | None = None


def open_source(
    source: str | Path | Scenario,
    *,
    platform: str | Path | Platform | None,
    platform_dirs: Sequence[str | Path] = (),
    overrides: Mapping[str, Any] | None = None,
    model: str | None = None,
) -> ScenarioSource:
    """Scenario of a file, or one made from a trace or profile, which is not written yet.

    `model` charges the messages of a trace; None: the most accurate one that the platform has parameters for. Raise
    `InvalidFileError` for a file that is neither, `UsageError` for the model of a scenario.
    """
    if model is not None and (isinstance(source, Scenario) or _kind(source) != "trace"):
        raise UsageError("model: only for traces; the phases of a scenario name theirs")
    folders, stated = tuple(map(Path, platform_dirs)), checked_overrides(overrides or {})
    path = Path() if isinstance(source, Scenario) else Path(source)
    kind = "scenario" if isinstance(source, Scenario) else _kind(source)
    if isinstance(source, Scenario):
        placed = source if platform is None else source.on(platform)
        return ScenarioSource(placed.with_overrides(stated) if stated else placed, kind)
    if kind == "scenario":
        return ScenarioSource(Scenario.open(source, platform=platform, overrides=stated, folders=folders), kind)
    return ScenarioSource(made_scenario(kind, path, platform, folders, model).changed(stated), kind, path)


def made_scenario(
    kind: str, path: Path, platform: str | Path | Platform | None, folders: Sequence[Path], model: str | None = None
) -> Scenario:
    """Scenario made from a trace or profile on a platform; `folders` are searched for what this extends."""
    machine, searched = _opened_platform(platform, tuple(folders))
    document = _document(kind, path, machine, model)
    built = {machine.name: machine.document} if isinstance(platform, Platform) else {}
    return Scenario(document, None, {}, searched, built)


def _opened_platform(
    platform: str | Path | Platform | None, folders: tuple[Path, ...]
) -> tuple[Platform, tuple[Path, ...]]:
    """Platform of a trace or profile, and the folders that are searched for what it extends."""
    if isinstance(platform, Platform):
        return platform, (*platform.folders, *folders)
    name, searched = named_platform(str(platform or DEFAULT_PLATFORM), folders)
    return Platform.open(name, platform_dirs=searched), searched


def _kind(source: str | Path) -> str:
    """Kind of a file; a file or folder that is neither trace nor profile hides no shipped scenario of its name."""
    path = Path(source)
    # `Path("")` is the present folder.
    if not source or path.suffix == ".toml" or not exists(path):
        return "scenario"
    from whatif.importers.trace_formats import is_trace

    if is_trace(path):
        return "trace"
    for name, kind in registered_files().items():
        if path.is_file() and resolve(kind.recognise)(path):
            return name
    if str(path) in shipped_names("scenarios"):
        return "scenario"
    raise _neither(path)


def _neither(path: Path) -> InvalidFileError:
    """Error with the reasons why a file is not a trace, and no file of a plug-in."""
    from whatif.importers.trace_formats import read_trace

    problems: list[Problem] = []
    others = (resolve(kind.read) for kind in registered_files().values()) if path.is_file() else ()
    for read in (read_trace, *others):
        try:
            read(path)
        except InvalidFileError as error:
            problems.extend(error.problems)
    return InvalidFileError(problems)


def _document(kind: str, path: Path, machine: Platform, model: str | None) -> Document:
    """Scenario file that replays a trace, or a file of a plug-in, on a machine."""
    from whatif.files.trace_scenario import free_name, trace_scenario
    from whatif.schema.toml import parse_document, shown_path

    if kind == "trace":
        return trace_scenario(path, machine, model or "")
    text = resolve(registered_files()[kind].scenario)(path, machine.name, machine.spec)
    return parse_document(text, shown_path(free_name(path)), path.resolve().parent)
