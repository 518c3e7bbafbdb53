"""Files by name: beside the asking file, then in the folders given, then those shipped with the program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def shipped_folder(kind: str) -> Path:
    """The folder of the shipped `platforms`, `scenarios` or `schemas`, in a checkout or an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    packed = package / "_shipped" / kind
    return packed if packed.is_dir() else package.parent / kind


@lru_cache(maxsize=8)
def shipped_names(kind: str) -> tuple[str, ...]:
    """The names of the shipped files of a kind, without `.toml`."""
    return tuple(sorted(path.stem for path in shipped_folder(kind).glob("*.toml")))


def is_name(text: str) -> bool:
    """Whether a text is a bare name: no folder, nothing that could leave the folders that are searched."""
    return _NAME.fullmatch(text) is not None and ".." not in text


def find(name: str, kind: str, folders: Iterable[Path], asking: str = "") -> Path | None:
    """The first `NAME.toml` in the folders, then among the shipped files of a kind, that is not the asking file."""
    file = name if name.endswith(".toml") else f"{name}.toml"
    candidates = (folder / file for folder in (*folders, shipped_folder(kind)))
    found = [path for path in candidates if is_file(path)]
    # A file may refine another of its own name: only where there is no other does it refer to itself.
    others = (path for path in found if str(path.resolve()) != asking)
    return next(others, found[0] if found else None)


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that is too long, or a folder that may not be read, holds none."""
    try:
        return path.is_file()
    except OSError:
        return False


def names_in(folders: Sequence[Path], kind: str) -> list[str]:
    """Every name that `find` would accept, for suggestions."""
    beside = (path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.toml"))
    return sorted({*beside, *shipped_names(kind)})
