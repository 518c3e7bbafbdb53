"""Folders of the user's files and of files that a page writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whatif.core.scenario import Scenario
from whatif.paths import exists, user_path
from whatif.schema.shipped import is_shipped
from whatif.tui.state import ExplorerState


def own_folder(state: ExplorerState) -> Path:
    """Folder of new platforms, relative to the present one: that of the scenario, unless it is shipped."""
    folder = state.session.scenario.document.folder
    if folder is None or is_shipped(folder, "scenarios") or folder.resolve() == Path.cwd():
        return Path()
    return folder


def file_names(text: str) -> tuple[str, ...]:
    """Names of files and folders, separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def paths_of(names: Sequence[str]) -> tuple[Path, ...]:
    """Paths of files and folders."""
    return tuple(user_path(name) for name in names)


def missing_paths(text: str) -> str:
    """Error in the named paths; empty if all of them exist."""
    missing = [str(path) for path in paths_of(file_names(text)) if not exists(path)]
    return f"no such file or folder: {', '.join(missing)}" if missing else ""


def catalogue_folders(scenario: Scenario) -> tuple[Path, ...]:
    """Folders of own files: the present one, that of the scenario, and those searched for platforms."""
    folder = scenario.document.folder
    return tuple(dict.fromkeys((Path.cwd(), *([folder.resolve()] if folder else []), *scenario.folders)))


def free_file(stem: str) -> str:
    """Name of a TOML file like this one that no file has yet."""
    names = (f"{stem}.toml", *(f"{stem}_{number}.toml" for number in range(2, 1000)))
    return next((name for name in names if not exists(name)), f"{stem}.toml")
