"""Help texts of the keys of files: docstrings of fields, read from the source when they are first needed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema


@cache
def field_help(table: type[BaseModel]) -> Mapping[str, str]:
    """Docstring of each field of a table and of its bases.

    Pydantic reads them from the source whenever a class is made: a tenth of the time to the first frame.
    """
    found: dict[str, str] = {}
    for kind in reversed(table.__mro__):
        if issubclass(kind, BaseModel) and kind is not BaseModel:
            found |= _classes(kind.__module__).get(kind.__name__, {})
    return found


@cache
def _classes(module: str) -> dict[str, dict[str, str]]:
    tree = ast.parse(inspect.getsource(import_module(module)))
    return {node.name: dict(_docstrings(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _docstrings(node: ast.ClassDef) -> list[tuple[str, str]]:
    return [
        (field.target.id, inspect.cleandoc(text.value.value))
        for field, text in pairwise(node.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    ]


class SchemaWithHelp(GenerateJsonSchema):
    """Generator of JSON Schema whose properties have the help texts as descriptions."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Schema of a table."""
        found = super().model_schema(schema)
        properties = found.get("properties", {})
        for name, text in field_help(schema["cls"]).items():
            if name in properties:
                properties[name].setdefault("description", text)
        return found
