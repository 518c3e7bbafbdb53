"""TOML files as documents, and the layers that are merged into a scenario, with the origin of every value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import tomli

from whatif.errors import NOT_TOML, NOT_UTF8, TOO_LARGE, InvalidFileError, Problem
from whatif.schema.locate import positions
from whatif.schema.stated_tables import NEVER, StatedTable, removes_any

MAXIMUM_FILE_SIZE = 1_000_000
MAXIMUM_DEPTH = 20
FORMAT: Final = 1
"""Format of the files that this version reads; a file without `format` has the first."""
FORMAT_LINE: Final = f"format = {FORMAT}"
KeyPath = tuple[str, ...]
_QUOTATION_MARKS: Final = frozenset("“”„‟‘’‚«»")
_UNQUOTED: Final = re.compile(
    r"\s*([\w.-]{1,80})\s*[=:]\s*([^\s\x22'#\[\]{}=,\\][^\x22'#\[\]{}=,\\]{0,79}?)\s*(?:#.*)?"
)
"""Key and value of a line whose value has no quotes."""
_NUMBER: Final = re.compile(
    r"([+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?)(?:\s+(?:ranks?|nodes?|gpus?|cores?|sockets?|steps?|iterations?))?",
    re.IGNORECASE,
)
"""Number, perhaps with what it counts."""
_STATED: Final = re.compile(r"[\s\[]*([^=\]#]+)[=\]]")
"""Key of a value, or of the header of a table."""
_UNCLOSED: Final = re.compile(r"""(?:Illegal|Found invalid) character '\\n'|Expected "'"$""")
_TWICE: Final = re.compile(r"Cannot declare \((.+)\) twice")
_WORDS: Final = re.compile(r"'([^']*)'")
_TRUTH: Final = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}
_OF_PARTS = ("part", "sources", "fits", "data")


@dataclass(frozen=True, eq=False)
class Document:
    """A TOML text: its name for messages, the text, and the parsed tables."""

    name: str
    text: str
    data: dict[str, Any]
    folder: Path | None = None

    @cached_property
    def _positions(self) -> dict[KeyPath, tuple[int, int]]:
        return positions(self.text)

    @cached_property
    def paths(self) -> tuple[KeyPath, ...]:
        """Paths of its values and tables, a table before its values."""
        return tuple(path for path, value in entries(self.data) if value is not None)

    @cached_property
    def removes_any(self) -> bool:
        """Whether it removes inherited values."""
        return removes_any(self.data)

    def search(self, folders: Sequence[Path] = ()) -> tuple[Path, ...]:
        """Folders to search for the files that it names: its own, then others."""
        return (*filter(None, [self.folder]), *folders)

    def locate(self, path: KeyPath) -> tuple[int, int]:
        """Line and column of a key, or of the nearest enclosing table; (0, 0) for an empty text."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._positions:
                return self._positions[path[:length]]
        return (1, 1) if self.text else (0, 0)

    def problem(self, path: KeyPath, message: str, shown: KeyPath | None = None) -> Problem:
        """`Problem` at a key of this document; `shown` is the full path of the key, if different."""
        return Problem(self.name, *self.locate(path), dotted(path if shown is None else shown), message)


def dotted(path: KeyPath) -> str:
    """Dotted path, `a.b.c`."""
    return ".".join(path)


@lru_cache(maxsize=4096)
def key_path(path: str) -> KeyPath:
    """Keys of a dotted path."""
    return tuple(path.split("."))


def read_document(path: Path) -> Document:
    """Document of a file; raise `InvalidFileError` unless it is TOML in UTF-8 of at most `MAXIMUM_FILE_SIZE`."""
    name = shown_path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAXIMUM_FILE_SIZE + 1)
    except OSError as error:
        raise InvalidFileError([Problem(name, 0, 0, "", f"cannot be read: {error.strerror}")]) from None
    if len(raw) > MAXIMUM_FILE_SIZE:
        message = f"{TOO_LARGE} {MAXIMUM_FILE_SIZE // 1000} kB; a scenario or platform is a few kB"
        raise InvalidFileError([Problem(name, 0, 0, "", message)])
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"{NOT_UTF8}: byte 0x{raw[error.start]:02x}; save the file as UTF-8 text"
        raise InvalidFileError([Problem(name, line, 1, "", message)]) from None
    kept = _kept_document(text, name, path.parent)
    return replace(kept, data=_copied(kept.data))


def _copied(value: Any) -> Any:
    """Copy of parsed TOML; its tables and lists may be changed."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def shown_path(path: Path) -> str:
    """Path relative to the current folder, if inside it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def parse_document(text: str, name: str, folder: Path | None = None) -> Document:
    """Document of a TOML text; raise `InvalidFileError` with line and column."""
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error))
        message = str(error)[: place.start()] if place else str(error)
        line, column = (place[1], place[2]) if place and place[1] else (text.count("\n") + 1, 1)
        message = _TWICE.sub(lambda found: f"`{dotted(tuple(_WORDS.findall(found[1])))}` is stated twice", message)
        message = _UNCLOSED.sub("a text has no closing quote", message)
        message = _overwritten(text, int(line)) if "overwrite" in message else message + _advice(text, int(line))
        raise InvalidFileError([Problem(name, int(line), int(column), "", f"{NOT_TOML}: {message}")]) from None
    except (RecursionError, ValueError) as error:
        raise InvalidFileError([Problem(name, 1, 1, "", f"{NOT_TOML}: {error}")]) from None
    document = Document(name, text, data, folder)
    deep = _too_deep(data)
    if deep is not None:
        raise InvalidFileError([document.problem(deep[:1], f"tables are nested more than {MAXIMUM_DEPTH} deep")])
    wrong = _wrong_format(data.pop("format", FORMAT))
    if wrong:
        raise InvalidFileError([document.problem(("format",), wrong)])
    return document


def _overwritten(text: str, line: int) -> str:
    """Message for a line that states a value again, or a table in place of a value."""
    again = _STATED.match(text.split("\n")[line - 1])
    key = again[1].strip() if again else ""
    # The usual cause: `platform = "summit"` followed by a table `[platform]`.
    if key.split(".")[0].strip() == "platform" and re.search(r"^platform\s*=", text, re.MULTILINE):
        return f'`{key}`: the platform is stated already; to change it, write `[platform]` with `extends = "NAME"`'
    return f"`{key}` is stated twice" if key else "a value is stated twice"


def _advice(text: str, line: int) -> str:
    """Hint at the likely correction of a line that is not TOML; empty if unknown."""
    if "\r" in text and "\n" not in text:
        return r"; its lines end with CR alone: convert them, such as with `tr '\r' '\n' < OLD > NEW`"
    rows = text.split("\n")
    stated = _UNQUOTED.fullmatch(rows[line - 1]) if line <= len(rows) else None
    if stated is None:
        return ""
    key, value = stated.groups()
    if not _QUOTATION_MARKS.isdisjoint(value):
        return '; texts stand between straight quotes, `"`'
    value = value.rstrip("; ")
    number = _NUMBER.fullmatch(value)
    meant = number[1] if number else _TRUTH.get(value.lower(), f'"{value}"')
    correct = f"{key} = {meant}"
    return "" if correct == rows[line - 1].strip() else f"; write `{correct}`"


_kept_document = lru_cache(maxsize=256)(parse_document)
"""Documents of files, which are read again with each scenario."""


def _wrong_format(stated: object) -> str:
    """Error message for a `format` that is not read; empty for one that is."""
    if not isinstance(stated, int) or isinstance(stated, bool):
        return f"must be a whole number: `{FORMAT_LINE}`"
    if stated > FORMAT:
        return f"this whatif reads format {FORMAT}; the file states format {stated}, which a newer whatif reads"
    return "" if stated >= 1 else f"`{stated}` is not a format; the first is 1"


def _too_deep(data: dict[str, Any]) -> KeyPath | None:
    """Path of a value nested deeper than `MAXIMUM_DEPTH`; None without one."""
    pending: list[tuple[KeyPath, Any]] = [((key,), value) for key, value in data.items()]
    while pending:
        path, value = pending.pop()
        if len(path) > MAXIMUM_DEPTH:
            return path
        if isinstance(value, dict):
            pending.extend(((*path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            pending.extend(((*path, "[]"), item) for item in value)
    return None


@dataclass(frozen=True)
class Layer:
    """A document at a path of the merged one: platform files are at `platform`, scenarios at the top.

    A part is at the table that extends it, and replaces the previous content of that table.
    """

    document: Document
    at: KeyPath = ()
    part: bool = False
    beside: bool = False
    """Whether these are values of a part for the table next to its own, with which they merge."""

    @property
    def of_part(self) -> bool:
        """Whether its values, with their sources, are those of a part."""
        return self.part or self.beside

    @property
    def data(self) -> dict[str, Any]:
        """Data to merge, without the sources and fits of a part."""
        data = self.document.data
        return {key: value for key, value in data.items() if key not in _OF_PARTS} if self.of_part else data

    def defines(self, path: KeyPath) -> bool:
        """Whether this layer states the value (or table) at a path of the merged document."""
        if path[: len(self.at)] != self.at:
            return self.at[: len(path)] == path
        return self.stated(path) is not None

    @property
    def nested(self) -> dict[str, Any]:
        """Tables that this layer states, from the top of the merged document."""
        return tables_around(self.document.data, self.at)

    def stated(self, path: KeyPath) -> Any:
        """Value (or table) that this layer states at a path; None if it states nothing."""
        value: Any = self.document.data if path[: len(self.at)] == self.at else None
        for key in path[len(self.at) :]:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value


@dataclass(frozen=True)
class Layers:
    """Layers of a scenario, from the base to the last override, and the merged document."""

    items: tuple[Layer, ...]
    merged: dict[str, Any] = field(compare=False)

    @classmethod
    def of(cls, items: Sequence[Layer]) -> Layers:
        """Merged layers: tables merge key by key; other values, tables of another `kind`, and parts replace."""
        merged: dict[str, Any] = {}
        for layer in items:
            if layer.part:
                merged = _cleared(merged, layer.at)
            merged = merge(merged, tables_around(layer.data, layer.at))
        return cls(tuple(items), merged)

    def origin(self, path: KeyPath) -> Layer | None:
        """Last layer that states a path; None for a value that no layer states, or that a later one removes."""
        table = self._table(path[:-1])
        if table is None or path[-1] not in table.merged:
            return None
        last = table.last.get(path[-1], NEVER)
        return None if last == NEVER or last < table.replaced else self.items[last]

    def begun(self, path: KeyPath) -> int:
        """Index of the file or override that states a table first, or that last puts a part in its place."""
        parts = [index for index, layer in enumerate(self.items) if layer.part and layer.at == path]
        stating = (index for index, layer in enumerate(self.items) if layer.defines(path))
        first = parts[-1] if parts else next(stating, NEVER)
        return NEVER if first == NEVER else self.file_of(self.items[first])

    def file_of(self, layer: Layer) -> int:
        """Index of the file or override that states a layer itself, or the part that the layer is of."""
        first = next(index for index, item in enumerate(self.items) if item is layer)
        return next((index for index in range(first, len(self.items)) if not self.items[index].of_part), first)

    @cached_property
    def _tables(self) -> dict[KeyPath, StatedTable | None]:
        """Tables that were asked for, by path: of most tables of a file, such as its sources, nobody asks."""
        whole = [(index, layer.nested) for index, layer in enumerate(self.items)]
        return {(): StatedTable.of(whole, self.merged, self._parts.get((), NEVER))}

    def _table(self, path: KeyPath) -> StatedTable | None:
        """Table at a path of the merged document, as the layers state it; None for a value, and for an unknown path."""
        tables = self._tables
        if path not in tables:
            around = self._table(path[:-1])
            tables[path] = None if around is None else around.below(path[-1], self._parts.get(path, NEVER))
        return tables[path]

    @cached_property
    def _parts(self) -> Mapping[KeyPath, int]:
        """Index of the last part in place of a table, by path."""
        return {layer.at: index for index, layer in enumerate(self.items) if layer.part}

    def problem(self, path: KeyPath, message: str) -> Problem:
        """`Problem` at the place that states a value of the merged document, or its nearest enclosing table."""
        layers = (self._stating(path[:length], length == len(path)) for length in range(len(path), 0, -1))
        found = next((layer for layer in layers if layer is not None), (self._files or self.items)[-1])
        return found.document.problem(path[len(found.at) :], message, path)

    @property
    def _files(self) -> list[Layer]:
        """Layers that are no overrides."""
        return [layer for layer in self.items if layer.document.folder is not None]

    def _stating(self, path: KeyPath, exactly: bool) -> Layer | None:
        """Last layer that states a value, or a table that lacks one: the file, unless an override changes its kind."""
        layer = self.origin(path)
        if exactly or layer is None or layer.stated((*path, "kind")) is not None:
            return layer
        return next((file for file in reversed(self._files) if file.defines(path)), layer)


def _cleared(data: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """Copy of the tables without the content at a path."""
    rest = {key: value for key, value in data.items() if key != path[0]}
    below = data.get(path[0])
    return {**rest, path[0]: _cleared(below, path[1:])} if len(path) > 1 and isinstance(below, dict) else rest


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over`, merged key by key."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict) and value.get("kind", old.get("kind")) == old.get("kind"):
            result[key] = merge(old, value)
        else:
            result[key] = value
    return result


def without(data: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    """Copy of the tables without the value at a path, which exists."""
    if len(path) == 1:
        return {key: value for key, value in data.items() if key != path[0]}
    return {**data, path[0]: without(data[path[0]], path[1:])}


def tables_around(value: Any, path: KeyPath) -> dict[str, Any]:
    """Tables with one value at a path; the value itself, a table, for an empty path."""
    for key in reversed(path):
        value = {key: value}
    found: dict[str, Any] = value
    return found


def walk(data: Mapping[str, Any], at: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Values that are not tables, with their paths."""
    return ((path, value) for path, value in entries(data, at) if not isinstance(value, dict))


def entries(data: Mapping[str, Any], at: KeyPath = ()) -> list[tuple[KeyPath, Any]]:
    """Tables and values with their paths, a table before its values."""
    found: list[tuple[KeyPath, Any]] = []
    for key, value in data.items():
        found.append(((*at, key), value))
        if isinstance(value, dict):
            found += entries(value, found[-1][0])
    return found
