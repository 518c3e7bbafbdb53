"""Overrides written into a study file, whose comments and order stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from whatif.atomic import write_text
from whatif.errors import UsageError
from whatif.files.scenario_edits import put_text
from whatif.paths import is_file
from whatif.schema.parameters import stated_parameters
from whatif.schema.study_file import StudyFile, open_study
from whatif.schema.toml import Document, KeyPath, Layer, key_path, parse_document
from whatif.schema.toml_sections import with_values
from whatif.schema.toml_text import toml_value

_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false")
"""Numbers without a unit and booleans, which TOML has without quotes."""


def edited_study(document: Document, overrides: Mapping[str, Any], path: Path) -> Document:
    """Document of a study with overrides by path, for a file; everything else stays the same to the byte.

    Raise `InvalidFileError` for values that a study cannot have, `UsageError` for a text that only an editor can
    change.
    """
    wanted = _texts(open_study(document, overrides))
    layer = Layer(document)
    keys: dict[KeyPath, Any] = {key_path(path): value for path, value in overrides.items()}
    values: dict[KeyPath, str | None] = {key: _literal(str(its), layer.stated(key)) for key, its in keys.items()}
    try:
        text = with_values(document.text, values)
    except ValueError:
        text = ""
    edited = parse_document(text, str(path), path.parent)
    if not text or _texts(open_study(edited)) != wanted:
        raise UsageError(f"{document.name}: written in a way that only an editor can change")
    return edited


def _texts(study: StudyFile) -> dict[str, str]:
    """Every value of a study in words, as numbers below `overrides` may be texts or not."""
    return {path: item.text() for path, item in stated_parameters(study.spec, study.layers).items()}


def _literal(text: str, before: Any) -> str:
    """Typed value as TOML: in quotes where a text was, else plain if it can be."""
    return text if _PLAIN.fullmatch(text) and not isinstance(before, str) else toml_value(text)


def put_study(path: Path, document: Document, edited: Document) -> None:
    """Write an edited study into its own file, or into another one, whole or not at all.

    Its own file is made again where it was deleted. Raise `ChangedOnDiskError` if it has changed since it was read.
    """
    own = is_file(path) and document.folder is not None and path.resolve() == Path(document.name).resolve()
    if own:
        put_text(path, document, edited.text)
    else:
        write_text(path, edited.text)
