"""JSON Schema of scenario, platform and study files, for editors.

What is required depends on `extends`, so it is apart from what is allowed (`json_schema_required`).
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from whatif.schema.field_help import SchemaWithHelp
from whatif.schema.json_schema_allowed import REFERENCE, Node, either, rewritten
from whatif.schema.json_schema_required import RequiredKeys, unless_extending
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.removal import NONE
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.study_spec import StudySpec
from whatif.schema.toml import FORMAT

_MODELS: Final[dict[str, type[BaseModel]]] = {"platform": PlatformSpec, "scenario": ScenarioSpec, "study": StudySpec}
_EXTENDS: Final = {"type": "string", "description": "Name of the file that this one extends."}
_PART: Final = {"type": "string", "description": "Name of the part that this table extends."}
_PARTS: Final = ("GPU", "CPU", "Host", "PCIe", "NVLink", "Distance")
_OF_SCENARIOS: Final = ("RegressionPhase", "StructuredGridPhase", "Transformer")
_FORMAT: Final = {"enum": [FORMAT], "description": f"Format of the file; {FORMAT} by default."}


def file_schema(kind: str) -> Node:
    """JSON Schema of a `platform`, `scenario` or `study` file, as plain data."""
    source: Node = _MODELS[kind].model_json_schema(schema_generator=SchemaWithHelp)
    schema = rewritten(source, None, ()) if kind == "study" else _partial(kind, source)
    schema["properties"]["format"] = _FORMAT
    # A name without a host: the file is found by the path in `#:schema`, never fetched.
    names = {"$schema": "http://json-schema.org/draft-07/schema#", "$id": f"urn:whatif:schema:{kind}:{FORMAT}"}
    return {**schema, **names, "title": f"whatif {kind} file"}


def _partial(kind: str, source: Node) -> Node:
    """Schema of a file that may extend another one."""
    extending = (*_PARTS, *_OF_SCENARIOS) if kind == "scenario" else _PARTS
    for name in extending:
        source["$defs"][name]["properties"]["extends"] = _PART
    schema = rewritten(source, NONE, ("required",))
    schema["properties"]["extends"] = _EXTENDS
    if kind == "scenario":
        _name_or_table(schema)
        # A scenario runs without a platform of its own too, with `--platform`, and then states any value of it.
        del source["properties"]["platform"]
        source["required"].remove("platform")
    required = RequiredKeys(source["$defs"], extending)
    whole = unless_extending(required.of(source))
    found = {name: table for name, table in required.definitions.items() if table}
    return {**schema, **whole, "$defs": {**schema["$defs"], **found}}


def _name_or_table(schema: Node) -> None:
    """Allow the name of a platform in place of its table, which may extend one."""
    schema["$defs"]["PlatformSpec"]["properties"]["extends"] = _EXTENDS
    table = {"$ref": f"{REFERENCE}PlatformSpec"}
    schema["properties"]["platform"] = {
        "description": "Name of a platform, or a table that extends one and changes values.",
        **either({"type": "object"}, table, {"type": "string"}),
    }
