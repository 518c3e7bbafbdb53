"""Files by name: beside the asking file, then in the folders given, then those shipped with the program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from whatif.errors import WhatifError
from whatif.schema.toml import read_document

Kind = Literal["scenario", "platform", "part"]
MOST_FILES: Final = 500
"""Files of one folder that are looked into."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def shipped_folder(kind: str) -> Path:
    """The folder of the shipped `platforms`, `parts`, `scenarios` or `schemas`, in a checkout or an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    inside = "platforms/parts" if kind == "parts" else kind
    packed = package / "_shipped" / inside
    return packed if packed.is_dir() else package.parent / inside


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
    candidates = (folder / file for folder in (*_searched(folders, kind), shipped_folder(kind)))
    found = [path for path in candidates if is_file(path)]
    # A file may refine another of its own name: only where there is no other does it refer to itself.
    others = (path for path in found if str(path.resolve()) != asking)
    return next(others, found[0] if found else None)


def _searched(folders: Iterable[Path], kind: str) -> list[Path]:
    """The folders that may hold files of a kind: parts may lie in a folder `parts` of their own, also of scenarios."""
    if kind != "parts":
        return list(folders)
    beside = [place for folder in folders for place in (folder, folder / "parts")]
    # A shipped scenario that is saved elsewhere still extends its parts.
    return [*beside, shipped_folder("scenarios") / "parts"]


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that is too long, or a folder that may not be read, holds none."""
    try:
        return path.is_file()
    except OSError:
        return False


def names_in(folders: Sequence[Path], kind: str) -> list[str]:
    """Every name of a file of a kind that `find` would accept, for suggestions."""
    searched = _searched(folders, kind)
    beside = (path for folder in searched if folder.is_dir() for path in islice(folder.glob("*.toml"), MOST_FILES))
    return sorted({*(path.stem for path in beside if _is_of(path, kind)), *shipped_names(kind)})


def _is_of(path: Path, kind: str) -> bool:
    try:
        return f"{kind_of(read_document(path).data)}s" == kind
    except WhatifError:
        return False


def kind_of(data: Mapping[str, Any]) -> Kind | None:
    """Whether a file is a scenario, a platform or a part of one by what it holds; None for neither."""
    if "part" in data:
        return "part"
    if not data.keys().isdisjoint(("application", "platform", "sweep", "parameters")):
        return "scenario"
    if not data.keys().isdisjoint(("node", "network", "price", "site")) or isinstance(data.get("extends"), str):
        return "platform"
    return None
