"""TOML text of plain data."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from whatif.errors import UsageError
from whatif.schema.toml import FORMAT
from whatif.visible_text import visible_toml

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: Mapping[str, Any]) -> str:
    """TOML text of a document of texts, numbers, booleans, lists and tables."""
    return "\n".join(_table(data, ())).strip() + "\n"


def file_text(data: Mapping[str, Any], comment: str = "") -> str:
    """TOML text of a whole file, which states its format, after a line of comment."""
    return comment_line(comment) + toml_text({"format": FORMAT, **data})


def comment_line(text: str) -> str:
    """Line of a comment, with blanks for line ends and control characters; empty without a text."""
    return f"# {one_line(text)}\n" if text else ""


def rounded(value: float, digits: int = 4) -> float:
    """Number with a few significant digits, for a file."""
    return float(f"{value:.{digits}g}")


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {key: value for key, value in data.items() if not isinstance(value, Mapping)}
    # An empty table has a meaning too: a scenario with an empty `[sweep]` does not inherit one.
    if path and (values or not data):
        yield f"\n[{'.'.join(map(toml_key, path))}]"
    for key, value in values.items():
        yield f"{toml_key(key)} = {toml_value(value)}"
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _table(value, (*path, key))


def one_line(text: str) -> str:
    """Text of a comment, with blanks for line ends and control characters."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text)


def toml_key(key: str) -> str:
    """Key as TOML, in quotes if it needs them."""
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """Text, number, boolean, list or table as TOML on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml_key(key)} = {toml_value(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{value} cannot be written to a file: numbers must be finite")
    # JSON's texts, numbers and booleans are TOML's, which wants DEL escaped as well.
    return visible_toml(json.dumps(value, ensure_ascii=False))
