"""Platforms and scenarios that are built in Python: the same documents that files are read into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from whatif.atomic import write_text
from whatif.errors import InvalidFileError, Problem
from whatif.schema.load import load_platform_document, open_document
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import Document, KeyPath, dotted, parse_document
from whatif.schema.toml_text import file_text

BUILT: Final = "<python>"
"""Name of a platform built without one, which error messages show in the place of a file."""


@dataclass(frozen=True, eq=False, repr=False)
class Platform:
    """A machine: a platform file, or the same tables built in Python."""

    document: Document
    folders: tuple[Path, ...] = ()

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Any] | None = None,
        /,
        *,
        platform_dirs: Sequence[str | Path] = (),
        **keywords: Any,
    ) -> Platform:
        """Platform of nested tables with the keys and values of a platform file, from a mapping, keywords or both.

        `extends` names the platform that it changes; `platform_dirs` are searched for that file and for parts.
        Raise `InvalidFileError` with every problem, as for a file.

        >>> import whatif
        >>> ours = whatif.Platform.of(extends="summit", name="ours", node={"gpu": {"dram_bandwidth": "3 TB/s"}})
        >>> answer = whatif.run("jacobi2d", platform=ours)
        >>> ours
        <Platform ours: 3 values, extends summit>
        """
        data = {**(tables or {}), **keywords}
        folders = tuple(map(Path, platform_dirs))
        built = cls(built_document(data, str(data.get("name", BUILT))), folders)
        _ = built.spec
        return built

    @classmethod
    def open(cls, source: str | Path, *, platform_dirs: Sequence[str | Path] = ()) -> Platform:
        """Platform of a file, given by its path or name. Raise `InvalidFileError` with every problem."""
        folders = tuple(map(Path, platform_dirs))
        found = cls(open_document(source, "platforms", folders), folders)
        _ = found.spec
        return found

    @property
    def name(self) -> str:
        """Name by which scenarios refer to the platform: that of the file, or of what was built."""
        return self.document.name.removesuffix(".toml").rpartition("/")[2]

    @property
    def spec(self) -> PlatformSpec:
        """Validated values, with those of the platforms and parts that it extends."""
        return load_platform_document(self.document, self.folders)[0]

    def to_toml(self) -> str:
        """Text of the platform file."""
        return self.document.text

    def write(self, path: str | Path) -> None:
        """Write the platform file, whole or not at all."""
        write_text(path, self.to_toml())

    def __repr__(self) -> str:
        count = sum(1 for _ in _values(self.document.data))
        base = self.document.data.get("extends")
        return f"<Platform {self.name}: {count} values{f', extends {base}' if base else ''}>"


def built_document(tables: Mapping[str, Any], name: str) -> Document:
    """Document of nested tables; raise `InvalidFileError` for a value that a file could not state."""
    return parse_document(file_text(_plain(tables, (), name)), name)


def _plain(value: Any, at: KeyPath, name: str) -> Any:
    """A value as TOML has it: numpy numbers as Python's, tuples as lists, paths as texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item, (*at, str(key)), name) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item, at, name) for item in value]
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, Platform | Path):
        return plain.name if isinstance(plain, Platform) else str(plain)
    if not isinstance(plain, str | bool | int | float):
        hint = "leave the key out" if plain is None else "expected a text, number, boolean, list or table"
        raise InvalidFileError([Problem(name, 0, 0, dotted(at), f"{plain!r} is not a value of a file: {hint}")])
    return plain


def _values(data: Mapping[str, Any]) -> list[Any]:
    """Values of nested tables, in order."""
    nested = (_values(item) if isinstance(item, Mapping) else [item] for item in data.values())
    return [value for values in nested for value in values]
