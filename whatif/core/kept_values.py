"""Values of a machine that remain although the part that they belong to was replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from whatif.core.parts_in_use import EXTENDS
from whatif.core.term import Program
from whatif.schema.expressions import Expression
from whatif.schema.shipped_nodes import links_with
from whatif.schema.toml import KeyPath, Layers, dotted

_NODE: Final = ("platform", "node")
_NETWORK: Final = ("platform", "network")
_BELONGING: Final[tuple[tuple[KeyPath, KeyPath], ...]] = (
    ((*_NODE, "cpu"), (*_NODE, "host", "memory_bandwidth")),
    ((*_NODE, "gpu"), (*_NODE, "host_link")),
    ((*_NODE, "gpu"), (*_NODE, "peer_link")),
    ((*_NODE, "gpu"), ("platform", "price")),
    ((*_NODE, "peer_link"), (*_NODE, "domain_gpu_count")),
    ((*_NETWORK, "inter_node"), (*_NETWORK, "topology", "bandwidth")),
    ((*_NETWORK, "inter_node"), (*_NETWORK, "topology", "global_bandwidth")),
)
"""Tables that extend a part, and values, or other tables, that are those of the part in most machines."""


def kept_value_notes(program: Program) -> Iterator[str]:
    """Remark on each value or table that results depend on, and that another file states than the one with the part."""
    layers = program.loaded.layers
    for table, value in _BELONGING:
        path = dotted(value)
        part = _replacing_part(layers, table, value) if _is_needed(program, path) else ""
        if part and _last_part(layers, value) not in links_with(part, value[-1]):
            text = f"{path} remains{_words(program, value)}, as stated for another part"
            yield f"warning: {dotted(table)}{EXTENDS} = {part}, but {text}"


def _is_needed(program: Program, path: str) -> bool:
    """Whether a result depends on a value that no expression computes, or on some value of a table."""
    if path in program.parameters:
        return path in program.reached and not isinstance(program.parameters[path].value, Expression)
    return any(needed.startswith(f"{path}.") for needed in program.reached)


def _words(program: Program, value: KeyPath) -> str:
    """Value in its unit, or name of the part of a table, after a space; empty for a table without a part."""
    path = dotted(value)
    if path in program.parameters:
        return f" {program.parameters[path].text()}"
    part = _last_part(program.loaded.layers, value)
    return f" {part}" if part else ""


def _replacing_part(layers: Layers, table: KeyPath, value: KeyPath) -> str:
    """Other part that a table has since a value was stated; empty if the value was stated with the part or later."""
    stated, part = layers.origin(value), _last_part(layers, table)
    if not part or stated is None:
        return ""
    since = layers.file_of(stated)
    return part if since < layers.begun(table) and part != _last_part(layers, table, since) else ""


def _last_part(layers: Layers, table: KeyPath, until: int | None = None) -> str:
    """Name of the last part of a table, up to the file of an index; empty without one."""
    parts = [layer for layer in layers.items[:until] if layer.part and layer.at == table]
    return Path(parts[-1].document.name).stem if parts else ""
