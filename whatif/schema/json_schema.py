"""JSON Schema of scenario, platform and study files; a key of the first two may be that of a file they extend."""

from __future__ import annotations

import json
from typing import Any

from whatif.schema.field_help import SchemaWithHelp
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.removal import NONE
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.study_spec import StudySpec

_EXTENDS = {"type": "string", "description": "Name of the file that this one extends."}
_PART = {"type": "string", "description": "Name of the part that this table extends."}
_PARTS = ("GPU", "CPU", "Host", "PCIe", "NVLink", "Distance")
_DIALECT = "http://json-schema.org/draft-07/schema#"
_OF_SCENARIOS = ("RegressionPhase", "StructuredGridPhase", "Transformer")


def file_schema(kind: str) -> dict[str, Any]:
    """JSON Schema of a `platform`, `scenario` or `study` file, as plain data."""
    if kind == "study":
        study: dict[str, Any] = _without_null(StudySpec.model_json_schema(schema_generator=SchemaWithHelp))
        return {**study, "$schema": _DIALECT, "title": "whatif study file"}
    model = PlatformSpec if kind == "platform" else ScenarioSpec
    schema: dict[str, Any] = _partial(model.model_json_schema(schema_generator=SchemaWithHelp))
    schema["$schema"] = _DIALECT
    schema["title"] = f"whatif {kind} file"
    schema["properties"]["extends"] = _EXTENDS
    for part in (*_PARTS, *(_OF_SCENARIOS if kind == "scenario" else ())):
        schema["$defs"][part]["properties"]["extends"] = _PART
    if kind == "scenario":
        schema["$defs"]["PlatformSpec"]["properties"]["extends"] = _EXTENDS
        schema["properties"]["platform"] = {
            "description": "Name of a platform, or a table that extends one and changes values.",
            "anyOf": [{"type": "string"}, {"$ref": "#/$defs/PlatformSpec"}],
        }
    return schema


def _partial(node: Any) -> Any:
    """Schema without `required` and `default`, as another file may provide what is missing."""
    if isinstance(node, list):
        return [_partial(item) for item in node]
    if not isinstance(node, dict):
        return node
    # TOML has no null: an optional value is left out, or removed.
    if node == {"type": "null"}:
        return {"const": NONE}
    # `oneOf` fails for incomplete tables without `kind`, which may match several branches.
    renamed = {("anyOf" if key == "oneOf" else key): value for key, value in node.items()}
    dropped = ("required", "default", "discriminator")
    return {key: _partial(value) for key, value in renamed.items() if key not in dropped or _is_property(value)}


def _without_null(node: Any) -> Any:
    """Schema without `null`, which TOML does not have, and without defaults."""
    if isinstance(node, list):
        return [_without_null(item) for item in node if item != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    return {key: _without_null(value) for key, value in node.items() if key != "default" or _is_property(value)}


def _is_property(value: Any) -> bool:
    """Whether a key is the name of a property, not a keyword: its value is then a schema."""
    return isinstance(value, dict) and ("type" in value or "anyOf" in value or "$ref" in value)


def schema_text(kind: str) -> str:
    """JSON Schema as the text of its file."""
    return json.dumps(file_schema(kind), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
