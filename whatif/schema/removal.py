"""Removal of inherited values: `key = "none"` in a file that extends another one, or in an override."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from whatif.errors import InvalidFileError, Problem
from whatif.schema.explain_errors import types_at
from whatif.schema.stated_tables import REMOVED
from whatif.schema.toml import KeyPath, Layers, walk, without


def without_removed(model: type[BaseModel], layers: Layers) -> Layers:
    """Layers without the values that one of them removes; raise `InvalidFileError` for one that cannot be removed."""
    if not any(layer.document.removes_any for layer in layers.items):
        return layers
    removed = [path for path, value in walk(layers.merged) if value == REMOVED and removes(model, layers, path)]
    problems = list(_problems(model, layers, removed))
    if problems:
        raise InvalidFileError(problems)
    merged = layers.merged
    for path in removed:
        merged = without(merged, path)
    return Layers(layers.items, merged)


def is_known(model: type[BaseModel], layers: Layers, path: KeyPath) -> bool:
    """Whether the tables that can have a path know its key, stated or not."""
    return any(True for _ in _annotations(model, layers, path))


def removes(model: type[BaseModel], layers: Layers, path: KeyPath) -> bool:
    """Whether `none` removes the key: it is a known one, and no text."""
    known = list(_annotations(model, layers, path))
    return bool(known) and not any(map(_is_text, known))


def _problems(model: type[BaseModel], layers: Layers, removed: list[KeyPath]) -> Iterator[Problem]:
    for path in removed:
        if any(field.is_required() for field in _fields(model, layers, path)):
            yield layers.problem(path, f"`{path[-1]}` is required and cannot be removed with `{REMOVED}`")
        elif not any(layer.stated(path) not in (None, REMOVED) for layer in layers.items):
            message = f"`{REMOVED}` removes an inherited value, but nothing that is extended states `{path[-1]}`"
            yield layers.problem(path, message)


def _annotations(model: type[BaseModel], layers: Layers, path: KeyPath) -> Iterator[Any]:
    """Types of the values that a key can have."""
    yield from (field.annotation for field in _fields(model, layers, path))
    tables = types_at(model, layers.merged, path[:-1])
    yield from (get_args(table)[1] for table in tables if get_origin(table) is dict)


def _fields(model: type[BaseModel], layers: Layers, path: KeyPath) -> list[FieldInfo]:
    """Fields of a key in the tables that can have its path."""
    tables = [table for table in types_at(model, layers.merged, path[:-1]) if get_origin(table) is not dict]
    return [table.model_fields[path[-1]] for table in tables if path[-1] in table.model_fields]


def _is_text(annotation: Any) -> bool:
    """Whether `none` is a value of a type."""
    if get_origin(annotation) is Literal:
        return REMOVED in get_args(annotation)
    if get_origin(annotation) is dict:
        return False
    return annotation in (str, Any) or any(map(_is_text, get_args(annotation)))
