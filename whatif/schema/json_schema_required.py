"""Required keys of a JSON Schema, apart from the rest: a file or table that extends another one may omit any."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from whatif.schema.json_schema_allowed import REFERENCE, Definitions, Node, if_kind, kinds_of

_SUFFIX = "_required"


def unless_extending(node: Node) -> Node:
    """Schema that applies to tables without `extends`."""
    return {"if": {"required": ["extends"]}, "else": node}


class RequiredKeys:
    """Definitions with the required keys of tables, by name with a suffix, as far as they are asked for."""

    def __init__(self, tables: Definitions, extending: Collection[str]) -> None:
        self._tables, self._extending = tables, extending
        self.definitions: dict[str, Node] = {}

    def of(self, node: Any) -> Node:
        """Required keys below a schema of pydantic; empty without any."""
        if not isinstance(node, dict):
            return {}
        if "$ref" in node:
            return self._table(node["$ref"].removeprefix(REFERENCE))
        branches = [item for item in node.get("anyOf") or node.get("oneOf") or () if item != {"type": "null"}]
        if len(branches) > 1:
            return self._by_kind(branches) if all("$ref" in item for item in branches) else {}
        found = self.of(branches[0]) if branches else {}
        for keyword in ("properties", "patternProperties"):
            below = {key: self.of(value) for key, value in node.get(keyword, {}).items()}
            found |= {keyword: kept} if (kept := {key: value for key, value in below.items() if value}) else {}
        for keyword in ("items", "additionalProperties"):
            found |= {keyword: below} if (below := self.of(node.get(keyword))) else {}
        return found | ({"required": node["required"]} if node.get("required") else {})

    def _table(self, name: str) -> Node:
        if name + _SUFFIX not in self.definitions:
            found = self.of(self._tables[name])
            self.definitions[name + _SUFFIX] = unless_extending(found) if found and name in self._extending else found
        return {"$ref": f"{REFERENCE}{name}{_SUFFIX}"} if self.definitions[name + _SUFFIX] else {}

    def _by_kind(self, branches: list[Node]) -> Node:
        kinds = kinds_of(branches, self._tables)
        tables = {kind: self._table(name) for kind, name in kinds.items()}
        selected = [if_kind(kind, table) for kind, table in tables.items() if kind is not None]
        if None in tables:
            return {"allOf": [*selected, {"if": {"required": ["kind"]}, "else": tables[None]}]}
        return unless_extending({"required": ["kind"], "allOf": selected})
