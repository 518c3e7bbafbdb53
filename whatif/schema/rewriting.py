"""Overrides written into the text of a scenario file, which otherwise stays the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from whatif.errors import UsageError
from whatif.schema.fields import LARGEST_INTEGER
from whatif.schema.load import Loaded, load_document
from whatif.schema.parameters import Parameter, parameter_table
from whatif.schema.removal import removes
from whatif.schema.scenario_spec import ScenarioSpec
from whatif.schema.stated_tables import REMOVED
from whatif.schema.toml import Document, KeyPath, key_path
from whatif.schema.toml_sections import with_platform_table, with_values
from whatif.schema.toml_text import toml_value
from whatif.units import ONE

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def rewritten(
    document: Document,
    overrides: Mapping[str, Any],
    platform: str | None = None,
    folders: Sequence[Path] = (),
    built: Mapping[str, Document] | None = None,
) -> str:
    """Text of a scenario file with overrides by parameter path and, if given, another platform.

    Everything else stays the same to the byte. Raise `InvalidFileError` for values that the scenario cannot have.
    """
    loaded = load_document(document, platform=platform, overrides=overrides, folders=folders, built=built)
    parameters = parameter_table(loaded)
    values: dict[KeyPath, str | None] = {
        key_path(path): _literal(_text(value), parameters.get(path)) for path, value in overrides.items()
    }
    values |= dict.fromkeys(path for path in values if _is_own_removal(path, document, loaded))
    by_name = isinstance(document.data.get("platform"), str)
    opened = by_name and any(path[0] == "platform" for path in values)
    if platform is not None:
        values = {("platform",) if by_name and not opened else ("platform", "extends"): toml_value(platform), **values}
    try:
        return with_values(with_platform_table(document.text) if opened else document.text, values)
    except (ValueError, StopIteration):
        raise UsageError(f"{document.name}: written in a way that only an editor can change") from None


def _is_own_removal(path: KeyPath, document: Document, loaded: Loaded) -> bool:
    """Whether an override removes a value that this file alone states, so that its line goes."""
    layers = loaded.layers
    stated = [layer for layer in layers.items if layer.stated(path) is not None]
    removed = bool(stated) and removes(ScenarioSpec, layers, path) and stated[-1].stated(path) == REMOVED
    return removed and all(layer.document.name == document.name for layer in stated[:-1])


def _text(value: Any) -> str:
    """An override as a user would type it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _literal(text: str, parameter: Parameter | None) -> str:
    """Typed value as TOML: numbers without a unit and booleans unquoted, all else as text."""
    text = text.strip()
    number = (
        parameter is not None and not parameter.structural and parameter.dimension == ONE and _NUMBER.fullmatch(text)
    )
    # Beyond 2^53 a TOML number is refused where a text is not.
    if text in ("true", "false") or (number and abs(float(text)) <= LARGEST_INTEGER):
        return text
    return toml_value(text)
