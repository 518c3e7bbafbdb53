"""Catalogue of scenarios, studies and platforms: in given folders, and shipped with the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from whatif.errors import WhatifError
from whatif.paths import is_file
from whatif.schema.load import question_of
from whatif.schema.shipped import MOST_FILES, PLURALS, Kind, kind_of, shipped_folder
from whatif.schema.toml import Document, read_document

_LISTED: Final[tuple[Kind, ...]] = ("scenario", "study", "platform")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A scenario, study or platform: its name, its description in `words`, and the error if its TOML is invalid."""

    name: str
    kind: Kind
    path: Path
    shipped: bool
    words: str
    problem: str = ""


def catalogue(folders: Iterable[Path]) -> tuple[CatalogueEntry, ...]:
    """All scenarios, studies and platforms in this order; of several of the same name, the one that `find` returns."""
    shipped = [shipped_folder(PLURALS[kind]).resolve() for kind in _LISTED]
    found: dict[tuple[Kind, str], CatalogueEntry] = {}
    seen: set[Path] = set()
    for folder in (*folders, *shipped):
        for path in _files(folder):
            if path not in seen:
                seen.add(path)
                entry = _entry(path, path.parent in shipped, _version(path))
                if entry is not None:
                    found.setdefault((entry.kind, entry.name), entry)
    return tuple(sorted(found.values(), key=lambda entry: (_rank(entry.kind), entry.shipped, entry.name)))


def _rank(kind: Kind) -> int:
    """Place of a kind in the list; parts of platforms, which are not shipped there, come last."""
    return _LISTED.index(kind) if kind in _LISTED else len(_LISTED)


def _files(folder: Path) -> Iterator[Path]:
    try:
        yield from islice(sorted(path.resolve() for path in folder.glob("*.toml") if is_file(path)), MOST_FILES)
    except OSError:
        return


def _version(path: Path) -> tuple[int, int]:
    """Time of the last change and size of a file; zeros for one that is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=4 * MOST_FILES)
def _entry(path: Path, shipped: bool, version: tuple[int, int]) -> CatalogueEntry | None:
    """Catalogue entry of one version of a file; None if it is of no kind."""
    try:
        document = read_document(path)
    except WhatifError as problem:
        return CatalogueEntry(path.stem, "scenario", path, shipped, "", str(problem))
    kind = kind_of(document.data)
    if kind is None:
        return None
    words = question_of(document.text) if kind == "scenario" else _described(document)
    return CatalogueEntry(path.stem, kind, path, shipped, words)


def _described(document: Document) -> str:
    stated = (document.data.get(key) for key in ("question", "description", "name"))
    return str(next(filter(None, stated), ""))
