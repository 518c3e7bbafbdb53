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
from whatif.units import WATT, format_quantity

_NODE: Final = ("platform", "node")
_POWER: Final = "platform.node.host.power"
_POWERS: Final = "idle_power", "dynamic_power"
DEVICE_LOSSES: Final = 0.08
"""Share of the power of a node's devices that pumps, fans and losses of the power supplies take, by rule."""
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
    yield from _kept_power(program)


def _kept_power(program: Program) -> Iterator[str]:
    """Warning of the power of the rest of a node that another file states than the one with the devices, if it is less
    than their losses."""
    value = (*_NODE, "host", "power")
    tables = [(*_NODE, key) for key in ("gpu", "cpu")]
    part = next(filter(None, (_replacing_part(program.loaded.layers, table, value) for table in tables)), "")
    if not part or not _is_needed(program, _POWER):
        return
    losses = DEVICE_LOSSES * _full_power(program)
    if program.numbers[_POWER] < losses:
        least = f"less than {DEVICE_LOSSES:.0%} of the power of its devices, {format_quantity(losses, WATT)}"
        yield f"warning: {_POWER} remains {program.parameters[_POWER].text()}, {least} (docs/machines.md, rest of node)"


def _full_power(program: Program) -> float:
    """Power in W of all devices of a node that compute, as far as it is stated."""
    kinds = {"gpu": "gpu_count", "cpu": "socket_count"}
    paths = [(f"{dotted(_NODE)}.{kind}.{key}", count) for kind, count in kinds.items() for key in _POWERS]
    numbers = program.numbers
    return sum(float(numbers[path] * numbers[f"{dotted(_NODE)}.{count}"]) for path, count in paths if path in numbers)


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
