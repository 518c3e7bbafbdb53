"""Names and folders of files that the user types, and of those that a page writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whatif.core.scenario import Scenario
from whatif.paths import exists, user_path


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
