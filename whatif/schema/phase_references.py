"""References to a phase elsewhere in a scenario file: its descriptions, and the values computed from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from whatif.schema.phase_text import PHASES, mentions, renamed
from whatif.schema.toml import KeyPath, walk
from whatif.schema.toml_text import toml_value

_FACTORS: Final[KeyPath] = ("calibration", "application", "kernel_factors")
_BY_PATH: Final = ("sources", "fits")


def _at(data: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Table at a path; empty without a table there."""
    value: Any = data
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, dict) else {}


def _is_path_of(key: str, name: str) -> bool:
    prefix = ".".join((*PHASES, name))
    return key == prefix or key.startswith(f"{prefix}.")


def descriptions(data: Mapping[str, Any], name: str) -> Iterator[KeyPath]:
    """Paths of the values that concern only one phase: sources, sweeps, corrections .."""
    for table in _BY_PATH:
        yield from ((table, key) for key in _at(data, table) if _is_path_of(key, name))
    for axis, values in _at(data, "sweep").items():
        swept = [key for key in values if _is_path_of(key, name)] if isinstance(values, dict) else []
        yield from [("sweep", axis)] if swept and len(swept) == len(values) else (("sweep", axis, key) for key in swept)
    for overlap, table in _at(data, "application", "overlaps").items():
        if isinstance(table, dict) and name in table.get("phases", ()):
            yield ("application", "overlaps", overlap)
    for place in (_FACTORS, ("application", "repeats")):
        if name in _at(data, *place):
            yield (*place, name)


def uses(data: Mapping[str, Any], name: str) -> Iterator[KeyPath]:
    """Paths of the values that are computed from a phase: expressions, and transfers of its messages."""
    gone = tuple(descriptions(data, name))
    for path, value in walk(data):
        inside = path[:3] == (*PHASES, name) or any(path[: len(place)] == place for place in gone)
        if not inside and (mentions(value, name) or _is_halo(path, value, name)):
            yield path


def _is_halo(path: KeyPath, value: Any, name: str) -> bool:
    return path[:2] == PHASES and path[3:] == ("halo",) and value == name


def renamed_values(data: Mapping[str, Any], old: str, new: str) -> dict[KeyPath, str | None]:
    """Values (path: TOML; None for one that goes) that name a phase without its path, with another name."""
    values: dict[KeyPath, str | None] = {}
    for overlap, table in _at(data, "application", "overlaps").items():
        if old in table.get("phases", ()):
            phases = [new if name == old else name for name in table["phases"]]
            values["application", "overlaps", overlap, "phases"] = toml_value(phases)
    for phase, table in _at(data, *PHASES).items():
        if isinstance(table, dict) and _is_halo((*PHASES, phase, "halo"), table.get("halo"), old):
            values[*PHASES, phase, "halo"] = toml_value(new)
    factors = _at(data, *_FACTORS)
    if old in factors:
        values |= {(*_FACTORS, old): None, (*_FACTORS, new): toml_value(factors[old])}
    return values


def renamed_data(data: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Tables of a scenario with another name of a phase, wherever it is named."""
    result = _renamed(data, old, new, ())
    assert isinstance(result, dict)  # noqa: S101 - the tables of a table
    return result


def _renamed(value: Any, old: str, new: str, at: KeyPath) -> Any:
    if isinstance(value, Mapping):
        named = at in (PHASES, ("application", "repeats"), _FACTORS)
        keys = {key: new if named and key == old else renamed(key, old, new) for key in value}
        return {keys[key]: _renamed(item, old, new, (*at, key)) for key, item in value.items()}
    if isinstance(value, list) and at[:2] == ("application", "overlaps") and at[3:] == ("phases",):
        return [new if item == old else item for item in value]
    if _is_halo(at, value, old):
        return new
    return renamed(value, old, new) if mentions(value, old) else value
