"""Profiles of Caliper, `.cali`: one row a region, with its metrics and the attributes of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from whatif.importers.run_records import DEEPEST, REGION, records_table
from whatif.importers.text import CUT_OFF, read_as_it_ends, refuse, text_of, whole_lines
from whatif.table import Table

TOOL: Final = "Caliper"
MARK: Final = "__rec="
"""Start of each line of a file."""

_NAME, _TYPE, _PROPERTIES = 8, 9, 10
"""Attributes that describe attributes."""
_TYPES: Final = ("usr", "int", "uint", "string", "addr", "double", "bool", "type")
_NUMBERS: Final = ("int", "uint", "double")
_HIDDEN, _NESTED = 128, 256
"""Bits of the properties of an attribute."""
_ESCAPED: Final = {"\\\\": "\0", "\\,": "\1", "\\=": "\2", "\\n": "\n"}
_PLAIN: Final = {"\0": "\\", "\1": ",", "\2": "="}


class _Node(NamedTuple):
    attribute: int
    data: str
    above: _Node | None
    depth: int


class _Attribute(NamedTuple):
    name: str
    unit: str
    is_number: bool
    properties: int


@dataclass
class _Reader:
    """Definitions and records of the lines read so far."""

    file: str
    line: int = 0
    nodes: dict[int, _Node] = field(default_factory=dict)
    attributes: dict[int, _Attribute] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    is_whole: bool = False
    """Whether the closing record was read."""
    units: dict[str, str] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Define the types of attributes, which files use without a definition."""
        self.nodes = {at: _Node(_TYPE, name, None, 0) for at, name in enumerate(_TYPES)}
        for at, name, kind in ((_NAME, "name", 3), (_TYPE, "type", 7), (_PROPERTIES, "prop", 1)):
            self.nodes[at] = _Node(_NAME, f"cali.attribute.{name}", self.nodes[kind], 1)

    def read(self, text: str) -> None:
        """Read one line; raise `InvalidFileError`."""
        for escaped, code in _ESCAPED.items() if "\\" in text else ():
            text = text.replace(escaped, code)
        record = {key: rest.split("=") for key, _, rest in (part.partition("=") for part in text.split(","))}
        kind = record.get("__rec", [""])[0]
        if kind == "node":
            self._define(record)
        elif kind == "ctx":
            self.rows.append(self._values_of(record))
        elif kind == "globals":
            self.known |= self._values_of(record)
            self.is_whole = True
        elif not kind:
            raise self._wrong("no record of Caliper")

    def _define(self, record: dict[str, list[str]]) -> None:
        number, attribute = self._number(record, "id"), self._number(record, "attr")
        above = self._node(record["parent"][0]) if "parent" in record else None
        depth = above.depth + 1 if above else 0
        if depth > DEEPEST:
            raise self._wrong(f"nested deeper than {DEEPEST} levels")
        self.nodes[number] = _Node(attribute, _restored("=".join(record.get("data", [""]))), above, depth)

    def _values_of(self, record: dict[str, list[str]]) -> dict[str, Any]:
        """Values of a record by attribute, with the path of its region."""
        found: dict[str, Any] = {}
        path: list[str] = []
        for reference in record.get("ref", []):
            for item in reversed(list(_chain(self._node(reference)))):
                if self._attribute(item.attribute).properties & _NESTED:
                    path.append(item.data)
                else:
                    self._add(found, item.attribute, item.data)
        attributes, values = record.get("attr", []), record.get("data", [])
        if len(attributes) != len(values):
            raise self._wrong(f"{len(values)} values of {len(attributes)} attributes")
        for attribute, value in zip(attributes, values, strict=True):
            self._add(found, self._whole(attribute), _restored(value))
        return {REGION: "/".join(path)} | found if record["__rec"] == ["ctx"] else found

    def _add(self, values: dict[str, Any], number: int, value: str) -> None:
        attribute = self._attribute(number)
        if attribute.properties & _HIDDEN:
            return
        values[attribute.name] = value
        if attribute.unit:
            self.units[attribute.name] = attribute.unit
        if not attribute.is_number:
            self.texts.add(attribute.name)

    def _attribute(self, number: int) -> _Attribute:
        if number not in self.attributes:
            about = self._node(str(number))
            name, alias, unit, kind, properties = about.data, "", "", "", 0
            for node in _chain(about):
                what = self._node(str(node.attribute)).data
                alias = alias or (node.data if what == "attribute.alias" else "")
                unit = unit or (node.data if what == "attribute.unit" else "")
                kind = node.data if node.attribute == _TYPE else kind
                properties |= self._whole(node.data) if node.attribute == _PROPERTIES else 0
            taken = {attribute.name for attribute in self.attributes.values()}
            name = alias if alias and alias not in taken else name
            self.attributes[number] = _Attribute(name, unit, kind in _NUMBERS, properties)
        return self.attributes[number]

    def _node(self, number: str) -> _Node:
        node = self.nodes.get(self._whole(number))
        if node is None:
            raise self._wrong(f"node {number[:40]} is not defined above")
        return node

    def _number(self, record: dict[str, list[str]], key: str) -> int:
        return self._whole(record.get(key, [""])[0])

    def _whole(self, text: str) -> int:
        if not text.isdecimal() or len(text) > 18:
            raise self._wrong(f"`{text[:40]}` is not the number of a node")
        return int(text)

    def _wrong(self, message: str) -> Exception:
        return refuse(self.file, message, self.line)


def read_caliper(source: str | Path, file: str = "<text>") -> Table:
    """Regions of a profile, or of its text: run attributes, `region`, and the metrics with the units of the file.

    A cut-off text causes a warning, an invalid line an error.
    """
    text, file = text_of(source, file, read_as_it_ends)
    reader = _Reader(file)
    text, rest = whole_lines(text)
    for reader.line, line in enumerate(text.split("\n"), 1):
        if line.strip():
            reader.read(line)
    warnings = [f"{file}:{reader.line}: {CUT_OFF}"] if rest.strip() else []
    warnings += (
        [] if reader.is_whole else [f"{file}: the closing record, of globals, is missing; the file may be cut off"]
    )
    metrics = {name for row in reader.rows for name in row}
    # A program may state something of the run and of each region under one name.
    known = {f"global.{name}" if name in metrics else name: value for name, value in reader.known.items()}
    rows = [known | row for row in reader.rows]
    texts = reader.texts | {f"global.{name}" for name in reader.texts}
    return records_table(rows, {"file": file, "tool": TOOL}, reader.units, texts, warnings)


def _chain(node: _Node | None) -> Iterator[_Node]:
    """A node and its ancestors."""
    while node is not None:
        yield node
        node = node.above


def _restored(text: str) -> str:
    for code, plain in _PLAIN.items():
        text = text.replace(code, plain)
    return text
