"""JSON Schema of scenario, platform and study files, for editors.

One mistake is one error. pydantic's unions fail as a whole: an editor shows an error for each branch, and none at the
key. Here `kind` selects the branch, and types that a value may have are one list. What is required depends on
`extends`, which may omit any key, so it is apart from what is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from whatif.schema.field_help import SchemaWithHelp
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.stated_tables import REMOVED
from whatif.schema.study_spec import StudySpec
from whatif.schema.toml import FORMAT

Node = dict[str, Any]
Definitions = Mapping[str, Node]
_REFERENCE: Final = "#/$defs/"
_MAPS: Final = ("properties", "patternProperties")
_WORDS: Final = ("title", "description", "examples")
_REQUIRED: Final = "_required"
"""End of the names of definitions with required keys."""
_MODELS: Final[dict[str, type[BaseModel]]] = {"platform": PlatformSpec, "scenario": ScenarioSpec, "study": StudySpec}
_EXTENDS: Final = {"type": "string", "description": "Name of the file that this one extends."}
_PART: Final = {"type": "string", "description": "Name of the part that this table extends."}
_PARTS: Final = ("GPU", "CPU", "Host", "PCIe", "NVLink", "Distance")
_OF_SCENARIOS: Final = ("RegressionPhase", "StructuredGridPhase", "Transformer")
_FORMAT: Final = {"enum": [FORMAT], "description": f"Format of the file; {FORMAT} by default."}


def file_schema(kind: str) -> Node:
    """JSON Schema of a `platform`, `scenario` or `study` file, as plain data."""
    source: Node = _MODELS[kind].model_json_schema(schema_generator=SchemaWithHelp)
    schema = _rewritten(source, None, ()) if kind == "study" else _partial(kind, source)
    schema["properties"]["format"] = _FORMAT
    # A name without a host: the file is found by the path in `#:schema`, never fetched.
    names = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": f"urn:whatif:schema:{kind}:{FORMAT}"}
    return {**schema, **names, "title": f"whatif {kind} file"}


def _partial(kind: str, source: Node) -> Node:
    """Schema of a file that may extend another one."""
    extending = (*_PARTS, *_OF_SCENARIOS) if kind == "scenario" else _PARTS
    for name in extending:
        source["$defs"][name]["properties"]["extends"] = _PART
    schema = _rewritten(source, REMOVED, ("required",))
    schema["properties"]["extends"] = _EXTENDS
    if kind == "scenario":
        _name_or_table(schema)
        # A scenario runs without a platform of its own too, with `--platform`, and then states any value of it.
        del source["properties"]["platform"]
        source["required"].remove("platform")
    required = _RequiredKeys(source["$defs"], extending)
    whole = _unless_extending(required.of(source))
    found = {name: table for name, table in required.definitions.items() if table}
    return {**schema, **whole, "$defs": {**schema["$defs"], **found}}


def _name_or_table(schema: Node) -> None:
    """Allow the name of a platform in place of its table, which may extend one."""
    schema["$defs"]["PlatformSpec"]["properties"]["extends"] = _EXTENDS
    table = {"$ref": f"{_REFERENCE}PlatformSpec"}
    schema["properties"]["platform"] = {
        "description": "Name of a platform, or a table that extends one and changes values.",
        **_either({"type": "object"}, table, {"type": "string"}),
    }


def _rewritten(schema: Node, removal: str | None, dropped: Sequence[str]) -> Node:
    """Schema with unions distinguished by `kind`, and without the keywords in `dropped`.

    `removal` is the text that removes an inherited value, allowed in place of null; None for files without one.
    """
    rewriter = _Rewriter(removal, ("default", "discriminator", "$defs", *dropped))
    tables = {name: rewriter.node(table, name) for name, table in schema["$defs"].items()}
    root = rewriter.node(schema, "")
    # The unions refer to the tables, and that of tables without a `kind` contains their keys.
    unions = {name: _by_kind(kinds, tables) for name, kinds in rewriter.unions.items()}
    return {**root, "$defs": {**tables, **unions}}


def _kinds_of(branches: Sequence[Node], tables: Definitions) -> dict[str | None, str]:
    """Names of the tables of a union by their `kind`; None is the kind of a table without the key."""
    names = [branch["$ref"].removeprefix(_REFERENCE) for branch in branches]
    return {tables[name]["properties"].get("kind", {}).get("const"): name for name in names}


def _if_kind(kind: str, then: Node) -> Node:
    """Schema that applies to tables of a kind."""
    return {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": then}


class _Rewriter:
    """Walk over the schema, with the unions that it finds, by name."""

    def __init__(self, removal: str | None, dropped: tuple[str, ...]) -> None:
        self._removal, self._dropped = removal, dropped
        self.unions: dict[str, list[Node]] = {}

    def node(self, node: Node, name: str) -> Node:
        """Schema of the value of a key, which names the union."""
        found = {key: self._keyword(key, value, name) for key, value in node.items() if key not in self._dropped}
        if "patternProperties" in found:
            found["additionalProperties"] = False
        branches: list[Node] | None = found.pop("anyOf", None) or found.pop("oneOf", None)
        return found if branches is None else {**self._union(branches, name), **found}

    def _keyword(self, key: str, value: Any, name: str) -> Any:
        if key in _MAPS:
            return {item: self.node(below, item if key == "properties" else name) for item, below in value.items()}
        if key in ("anyOf", "oneOf"):
            return [self.node(branch, name) for branch in value]
        return self.node(value, name) if key in ("items", "additionalProperties") and isinstance(value, dict) else value

    def _union(self, branches: list[Node], name: str) -> Node:
        stated = [branch for branch in branches if branch != {"type": "null"}]
        if len(stated) == 1:
            whole = stated[0]
        elif all("$ref" in branch for branch in stated):
            if self.unions.setdefault(f"{name}_by_kind", stated) != stated:
                raise ValueError(f"two different unions at keys `{name}`")
            whole = {"$ref": f"{_REFERENCE}{name}_by_kind"}
        else:
            whole = _one_of_types(stated)
        return whole if stated == branches or self._removal is None else _or_text(whole, self._removal)


def _one_of_types(branches: Sequence[Node]) -> Node:
    """Values of several types: a keyword such as `minItems` applies to values of its type only."""
    types = [branch["type"] for branch in branches]
    kinds = [item for item in types if item != "integer" or "number" not in types]
    return {**{key: value for branch in branches for key, value in branch.items()}, "type": kinds}


def _or_text(whole: Node, text: str) -> Node:
    """Values of a schema, or a text."""
    if "enum" in whole:
        return {**whole, "enum": [*whole["enum"], text]}
    if "string" in whole.get("type", ()):
        return whole
    return _either({"const": text}, {}, whole)


def _either(condition: Node, then: Node, otherwise: Node) -> Node:
    """Schema `then` for values of a condition, else `otherwise`.

    The `anyOf` allows everything: editors that do not read conditions complete keys and show help from it.
    """
    return {"anyOf": [*filter(None, (then, otherwise)), {}], "if": condition, "then": then, "else": otherwise}


def _by_kind(branches: Sequence[Node], tables: Definitions) -> Node:
    """Union of tables: `kind` selects one, and a table without it may have the keys of all."""
    kinds = _kinds_of(branches, tables)
    stated = [kind for kind in kinds if kind is not None]
    selected = [_if_kind(kind, {"$ref": f"{_REFERENCE}{kinds[kind]}"}) for kind in stated]
    keys = _keys_of_all(list(kinds.values()), tables)
    if None in kinds:
        keys["properties"] |= tables[kinds[None]]["properties"]
    return {
        "type": "object",
        "properties": {"kind": {"enum": stated}},
        "anyOf": [*branches, {}],
        "allOf": [*selected, {"if": {"required": ["kind"]}, "else": keys}],
    }


def _keys_of_all(names: Sequence[str], tables: Definitions) -> Node:
    """Table with the keys of several tables; the values of a key are those of any of them."""
    stated = [tables[name]["properties"] for name in names]
    keys = dict.fromkeys(key for properties in stated for key in properties if key != "kind")
    values = {key: [properties[key] for properties in stated if key in properties] for key in keys}
    found = {key: _any_of([_without_help(value) for value in of_key], tables) for key, of_key in values.items()}
    return {"properties": found, "additionalProperties": False}


def _without_help(value: Node) -> Node:
    return {word: item for word, item in value.items() if word not in _WORDS}


def _any_of(values: Sequence[Node], tables: Definitions) -> Node:
    """Values of any of the schemas; unchecked if they have nothing in common."""
    if all(value == values[0] for value in values):
        return values[0]
    if all("enum" in value for value in values):
        return {"enum": list(dict.fromkeys(item for value in values for item in value["enum"]))}
    if all("$ref" in value for value in values):
        return _keys_of_all([value["$ref"].removeprefix(_REFERENCE) for value in values], tables)
    return {}


def _unless_extending(node: Node) -> Node:
    """Schema that applies to tables without `extends`."""
    return {"if": {"required": ["extends"]}, "else": node}


class _RequiredKeys:
    """Definitions with the required keys of tables, by name with a suffix, as far as they are asked for."""

    def __init__(self, tables: Definitions, extending: Collection[str]) -> None:
        self._tables, self._extending = tables, extending
        self.definitions: dict[str, Node] = {}

    def of(self, node: Any) -> Node:
        """Required keys below a schema of pydantic; empty without any."""
        if not isinstance(node, dict):
            return {}
        if "$ref" in node:
            return self._table(node["$ref"].removeprefix(_REFERENCE))
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
        key = name + _REQUIRED
        if key not in self.definitions:
            found = self.of(self._tables[name])
            self.definitions[key] = _unless_extending(found) if found and name in self._extending else found
        return {"$ref": f"{_REFERENCE}{key}"} if self.definitions[key] else {}

    def _by_kind(self, branches: list[Node]) -> Node:
        kinds = _kinds_of(branches, self._tables)
        tables = {kind: self._table(name) for kind, name in kinds.items()}
        selected = [_if_kind(kind, table) for kind, table in tables.items() if kind is not None]
        if None in tables:
            return {"allOf": [*selected, {"if": {"required": ["kind"]}, "else": tables[None]}]}
        return _unless_extending({"required": ["kind"], "allOf": selected})
