"""Values of a machine that remain although the part that they belong to was replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from whatif.core.parts_in_use import EXTENDS
from whatif.core.term import Program
from whatif.schema.expressions import Expression
from whatif.schema.toml import KeyPath, Layers, dotted

_BELONGING: Final[tuple[tuple[KeyPath, KeyPath], ...]] = (
    (("platform", "node", "cpu"), ("platform", "node", "host", "memory_bandwidth")),
    (("platform", "network", "inter_node"), ("platform", "network", "topology", "bandwidth")),
    (("platform", "network", "inter_node"), ("platform", "network", "topology", "global_bandwidth")),
)
"""Tables that extend a part, and values of other tables that are those of the part in most machines."""


def kept_value_notes(program: Program) -> Iterator[str]:
    """Remark on each value that results depend on, and that another file states than the one with the part."""
    needed = program.upstream(phase.term for phase in program.phases)
    for table, value in _BELONGING:
        path = dotted(value)
        part = _replacing_part(program.loaded.layers, table, value)
        if part and path in needed and not isinstance(program.parameters[path].value, Expression):
            text = f"{path} remains {program.parameters[path].text()}, as stated for another part"
            yield f"warning: {dotted(table)}{EXTENDS} = {part}, but {text}"


def _replacing_part(layers: Layers, table: KeyPath, value: KeyPath) -> str:
    """Part that a table has since a value was stated; empty if the value was stated with the part or later."""
    stated = layers.origin(value)
    parts = [index for index, layer in enumerate(layers.items) if layer.part and layer.at == table]
    if stated is None or not parts or layers.items.index(stated) > parts[-1]:
        return ""
    return Path(layers.items[parts[-1]].document.name).stem
