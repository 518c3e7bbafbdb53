"""Paths as users type them: too long, of an unknown user, or no path at all."""

from __future__ import annotations

import os
from pathlib import Path

from whatif.errors import UsageError


def user_path(text: str | Path) -> Path:
    """Path with `~` as the home folder; a `~name` of an unknown user stays, for which `Path.expanduser` raises."""
    return Path(os.path.expanduser(text))  # noqa: PTH111


def toml_path(name: str | Path) -> Path:
    """Path of a TOML file that a typed name means: with `.toml` at its end; raise `UsageError` for no name."""
    path = user_path(name)
    if not path.name or path.name == "..":
        raise UsageError(f"`{name}`: expected the name of a file")
    return path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")


def exists(path: str | Path) -> bool:
    """Whether a path exists; False for a name that is too long, for which `Path.exists` raises."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path) -> bool:
    """Whether a path is a file; False for a name that is too long or a folder without read permission."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False for a name that is too long."""
    return os.path.isdir(path)  # noqa: PTH112
