"""Topology of a machine from hwloc's XML (`lstopo --of xml`), versions 1 and 2 of the format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from xml.parsers import expat

from whatif.importers.text import MOST_TEXT, refuse
from whatif.measuring.hardware import Machine, PhysicalCore

_LEVELS: Final = {f"L{level}Cache": level for level in range(1, 6)}
_SOCKETS: Final = ("Package", "Socket")
Objects = Iterable[Mapping[str, str]]


def parse_hwloc(text: str, host: str = "", file: str = "lstopo") -> Machine:
    """A machine from the XML of `lstopo`. Raise `InvalidFileError` for another text."""
    objects, notes = _objects(text, file)
    cores = [bits for each in objects if each.get("type") == "Core" and (bits := _processors(each))]
    if not cores:
        raise refuse(file, "no object of the type `Core`: is it the output of `lstopo --of xml`?")
    # Where the size of a cache is not known, hwloc states 0.
    stated = [(_level(each), float(each.get("cache_size", 0))) for each in reversed(objects)]
    sizes = {level: size for level, size in stated if level and size}
    last = max(sizes, default=0)
    sockets = _places(each for each in objects if each.get("type") in _SOCKETS)
    domains = _places(each for each in objects if each.get("type") == "NUMANode")
    caches = _places(each for each in objects if last and _level(each) == last)
    version = f"hwloc {notes['hwlocVersion']}" if "hwlocVersion" in notes else "hwloc"
    return Machine(
        host,
        notes.get("CPUModel", ""),
        tuple(
            PhysicalCore(tuple(core), *(places.get(core[0], 0) for places in (sockets, domains, caches)))
            for core in cores
        ),
        tuple(sizes[level] for level in sorted(sizes)),
        version,
    )


def _objects(text: str, file: str) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Attributes of all objects, and the notes on them. Entities are refused, so that a small text cannot grow."""
    if len(text) > MOST_TEXT:
        raise refuse(file, f"larger than {MOST_TEXT // 2**20} MiB")
    objects: list[dict[str, str]] = []
    notes: dict[str, str] = {}
    parser = expat.ParserCreate()

    def begin(name: str, attributes: dict[str, str]) -> None:
        if name == "object":
            objects.append(attributes)
        elif name == "info" and "name" in attributes:
            notes.setdefault(attributes["name"], attributes.get("value", ""))

    def entity(*_: object) -> None:
        raise refuse(file, "entities are not read", parser.CurrentLineNumber)

    parser.StartElementHandler, parser.EntityDeclHandler = begin, entity
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise refuse(file, f"no XML: {expat.ErrorString(error.code)}", error.lineno) from None
    return objects, notes


def _level(attributes: Mapping[str, str]) -> int:
    """Level of a cache of data; 0 of another object."""
    if attributes.get("cache_type") == "2":
        return 0
    kind = attributes.get("type", "")
    return int(attributes.get("depth", 0)) if kind == "Cache" else _LEVELS.get(kind, 0)


def _processors(attributes: Mapping[str, str]) -> list[int]:
    """Logical processors of an object: the bits of `0x1,0x0000ff00`, 32 in each word, the last word lowest."""
    words = attributes.get("cpuset", "").split(",")
    bits = sum(int(word or "0", 16) << 32 * at for at, word in enumerate(reversed(words)))
    return [at for at in range(bits.bit_length()) if bits >> at & 1]


def _places(objects: Objects) -> dict[int, int]:
    """Number of the object that each processor is in."""
    return {processor: at for at, each in enumerate(objects) for processor in _processors(each)}
