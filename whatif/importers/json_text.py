"""JSON of other programs, with errors for texts that are cut off, nested too deeply or of another shape."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from whatif.errors import InvalidFileError, Problem
from whatif.importers.text import refuse

Shape = TypeVar("Shape")
_ADAPTERS: Final[dict[Any, TypeAdapter[Any]]] = {}


def parse_json(text: str, file: str, line: int = 0) -> Any:
    """Document of a JSON text that starts at `line` of its file. Raise `InvalidFileError`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = (line, 1) if line else (error.lineno, error.colno)
        message = f"not JSON: {error.msg}{_likely(text, error)}"
        raise InvalidFileError([Problem(file, *place, "", message)]) from None
    except (ValueError, RecursionError):
        raise refuse(file, "not JSON that a program would write", line) from None


def _likely(text: str, error: json.JSONDecodeError) -> str:
    """Probable cause of an error, as the end of a message; empty if it is not known."""
    rest = text[error.pos :].lstrip()
    if not rest or error.msg.startswith("Unterminated"):
        return "; is the file cut off?"
    if text[: error.pos].rstrip().endswith(",") and rest[0] in "}]":
        return f"; no comma may stand before `{rest[0]}`"
    return ""


def shaped(document: Any, shape: type[Shape], file: str, line: int = 0) -> Shape:
    """Document checked against a type; raise `InvalidFileError` with the path of the first mistake."""
    try:
        if shape not in _ADAPTERS:
            _ADAPTERS[shape] = TypeAdapter(shape)
        checked: Shape = _ADAPTERS[shape].validate_python(document)
        return checked
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:200]
        raise refuse(file, first["msg"][:200], line, place) from None
