"""JSON of other programs, read safely: cut off, nested too deeply or of another shape, it is refused with its place."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from whatif.importers.text import refuse

Shape = TypeVar("Shape")
_ADAPTERS: Final[dict[Any, TypeAdapter[Any]]] = {}


def parse_json(text: str, file: str, line: int = 0) -> Any:
    """A JSON text; `line` is where it stands in its file. Raise `InvalidFileError`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise refuse(file, f"not JSON: {error.msg}; is the file cut off?", line or error.lineno) from None
    except (ValueError, RecursionError):
        raise refuse(file, "not JSON that a program would write", line) from None


def shaped(document: Any, shape: type[Shape], file: str, line: int = 0) -> Shape:
    """A document as what it should be; raise `InvalidFileError` with the place of the first thing that is wrong."""
    try:
        if shape not in _ADAPTERS:
            _ADAPTERS[shape] = TypeAdapter(shape)
        checked: Shape = _ADAPTERS[shape].validate_python(document)
        return checked
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:200]
        raise refuse(file, first["msg"][:200], line, place) from None
