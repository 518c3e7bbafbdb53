"""Lookup of files by name: in the given folders, then among those shipped with the program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from whatif.errors import UsageError, WhatifError, did_you_mean
from whatif.paths import is_file
from whatif.schema.toml import Document, read_document

Kind = Literal["scenario", "platform", "part", "study"]
PLURALS: Final[Mapping[Kind, str]] = {
    "scenario": "scenarios",
    "platform": "platforms",
    "part": "parts",
    "study": "studies",
}
"""Folders of the kinds of files."""
SINGULARS: Final[Mapping[str, Kind]] = {folder: kind for kind, folder in PLURALS.items()}
MOST_FILES: Final = 500
"""Most files of one folder that are read."""
MAXIMUM_CHAIN: Final = 20
"""Most files that extend one another."""

KINDS: Final[Mapping[str, str]] = {
    "gpu": "gpu",
    "cpu": "cpu",
    "host": "host",
    "host_link": "link",
    "peer_link": "link",
    "intra_socket": "distance",
    "inter_socket": "distance",
    "inter_node": "distance",
    "transformer": "transformer",
}
"""Kind of part that a table of a platform can extend, by the key of the table."""
NAME_RULE: Final = "the name of such a file has only ASCII letters, digits, `_`, `.` and `-`"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@lru_cache(maxsize=8)
def shipped_folder(kind: str) -> Path:
    """Folder of shipped files of a kind, or of the `schemas`, in a checkout or an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    inside = "platforms/parts" if kind == "parts" else kind
    packed = package / "_shipped" / inside
    return packed if packed.is_dir() else package.parent / inside


def is_shipped(folder: Path | None, kind: str) -> bool:
    """Whether a folder is that of the shipped files of a kind."""
    return folder is not None and folder.resolve() == shipped_folder(kind).resolve()


@lru_cache(maxsize=8)
def shipped_names(kind: str) -> tuple[str, ...]:
    """Names of the shipped files of a kind, without `.toml`."""
    return tuple(sorted(path.stem for path in shipped_folder(kind).glob("*.toml")))


def is_name(text: str) -> bool:
    """Whether a text is a plain name, without a folder or anything else that could leave the searched folders."""
    return _NAME.fullmatch(text) is not None and ".." not in text


def require_name(path: Path) -> None:
    """Raise `UsageError` for a file whose name others cannot state."""
    if not is_name(path.stem):
        raise UsageError(f"{path.name}: {NAME_RULE}; give another name")


def find(name: str, kind: str, folders: Iterable[Path], asking: str = "") -> Path | None:
    """Path of the first `NAME.toml` in the folders, then among the shipped files; the asking file is skipped.

    A file of another kind, such as a scenario with the name of a shipped platform, is found only if there is no other.
    """
    file = name if name.endswith(".toml") else f"{name}.toml"
    searched = dict.fromkeys((*_searched(folders, kind), shipped_folder(kind)))
    found = [path for path in (folder / file for folder in searched) if is_file(path)]
    # Resolving paths takes longer than all else, and most names have one file.
    others = found if len(found) < 2 else _others(found, asking)
    own = (path for path in others if len(others) == 1 or _folder_of(path) in (kind, None))
    return next(own, next(iter(others), None))


def _others(found: Iterable[Path], asking: str) -> list[Path]:
    """Different files among those found, without the asking one.

    A file may extend another file of the same name; it refers to itself only if there is no other.
    """
    different = {path.resolve(): path for path in found}
    itself = Path(asking).resolve()
    return [path for resolved, path in different.items() if resolved != itself] or list(different.values())


def _folder_of(path: Path) -> str | None:
    """Folder in which files of the kind of a file are shipped; None for what cannot be read or told."""
    try:
        kind = kind_of(read_document(path).data)
    except WhatifError:
        return None
    return None if kind is None else PLURALS[kind]


def _searched(folders: Iterable[Path], kind: str) -> list[Path]:
    """Folders to search for files of a kind; parts may also be in a subfolder `parts`."""
    if kind != "parts":
        return list(folders)
    searched = [place for folder in folders for place in (folder, folder / "parts")]
    # A shipped scenario that is saved elsewhere still extends its parts.
    return [*searched, shipped_folder("scenarios") / "parts"]


def is_study(source: str) -> bool:
    """Whether a source is a study: a file by its content, else the name of a shipped one that no scenario has.

    Raise `InvalidFileError` for a file that cannot be read.
    """
    if source.endswith(".toml") and is_file(Path(source)):
        return kind_of(read_document(Path(source)).data) == "study"
    return source in shipped_names("studies") and source not in shipped_names("scenarios")


def names_in(folders: Sequence[Path], kind: str) -> list[str]:
    """Names of the files of a kind that `find` accepts, for suggestions."""
    searched = (folder for folder in _searched(folders, kind) if folder.is_dir())
    paths = (path for folder in searched for path in islice(folder.glob("*.toml"), MOST_FILES))
    named = (path for path in paths if is_name(path.stem))
    return sorted({*(path.stem for path in named if _folder_of(path) == kind), *shipped_names(kind)})


def kind_of(data: Mapping[str, Any]) -> Kind | None:
    """Kind of a file by its content: scenario, platform, part or study; None for any other file."""
    if {"bids", "limits", "mix", "present"} & data.keys() and "application" not in data:
        return "study"
    if "part" in data:
        return "part"
    if not data.keys().isdisjoint(("application", "platform", "sweep", "parameters")):
        return "scenario"
    if not data.keys().isdisjoint(("node", "network", "price", "site")) or isinstance(data.get("extends"), str):
        return "platform"
    return None


def is_platform(document: Document, folders: Sequence[Path]) -> bool:
    """Whether a file is a platform: by its own keys, without such keys as the file that it extends."""
    for _ in range(MAXIMUM_CHAIN):
        if looks_like_platform(document.data):
            return True
        if kind_of(document.data) != "platform":
            return False
        name, search = str(document.data["extends"]), document.search(folders)
        found = (find(name, kind, search, document.name) for kind in ("scenarios", "platforms") if is_name(name))
        base = next(filter(None, found), None)
        if base is None:
            return not did_you_mean(name, names_in(search, "scenarios")) and bool(
                did_you_mean(name, names_in(search, "platforms"))
            )
        document = read_document(base)
    return False


def looks_like_platform(data: Mapping[str, Any]) -> bool:
    """Whether a document describes a platform: it has tables of a platform, and none of a scenario."""
    machine = {"node", "network", "node_count", "name", "description", "fits", "price", "site"}
    return bool(data.keys() & machine) and not data.keys() & {"application", "platform"}
