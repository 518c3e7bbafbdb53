"""Names of platforms and parts that a scenario can use, and those that a pattern such as `dgx_*` matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import filter as matches
from pathlib import Path

from whatif.errors import UsageError, WhatifError
from whatif.schema.load import extend_chain
from whatif.schema.parts import kind_of_part, parts_of
from whatif.schema.shipped import find, kind_of, names_in
from whatif.schema.toml import read_document


def known_platforms(folders: Sequence[Path]) -> tuple[str, ...]:
    """Names of the platforms in the folders and of the shipped ones.

    Other files, and those that cannot be read, are left out.
    """
    return tuple(name for name in names_in(folders, "platforms") if _is_platform(name, folders))


def _is_platform(name: str, folders: Sequence[Path]) -> bool:
    """Whether the file that a name finds, and all that it extends, are platforms."""
    path = find(name, "platforms", folders)
    if path is None:
        return False
    try:
        chain = extend_chain(read_document(path), "platforms", folders)
    except WhatifError:
        return False
    return all(kind_of(document.data) == "platform" for document in chain)


def known_machines(path: str, folders: Sequence[Path]) -> tuple[str, ...]:
    """Names that a path can have as its value: of platforms for `platform`, of parts for a path ending in `extends`."""
    kind = kind_of_part(tuple(path.split(".")[:-1])) if "." in path else None
    return known_platforms(folders) if kind is None else tuple(parts_of(kind, folders))


def is_pattern(text: str) -> bool:
    """Whether a text is a pattern of names: it has `*`, `?` or `[`."""
    return not {"*", "?", "["}.isdisjoint(text)


def matching(pattern: str, known: Iterable[str]) -> list[str]:
    """Known names that a pattern matches, in their order. Raise `UsageError` if there are none."""
    names = list(known)
    found = matches(names, pattern)
    if not found:
        raise UsageError(f"`{pattern}` matches none of {', '.join(names) or 'the names'}")
    return found
