"""Plain data as TOML text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from whatif.errors import UsageError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: Mapping[str, Any]) -> str:
    """A document of texts, numbers, booleans, lists and tables as TOML."""
    return "\n".join(_table(data, ())).strip() + "\n"


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    values = {key: value for key, value in data.items() if not isinstance(value, Mapping)}
    if path and values:
        yield f"\n[{'.'.join(map(toml_key, path))}]"
    for key, value in values.items():
        yield f"{toml_key(key)} = {toml_value(value)}"
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _table(value, (*path, key))


def toml_key(key: str) -> str:
    """A key as TOML, in quotes where it needs them."""
    return key if _BARE.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """A text, number, boolean, list or table as TOML on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{toml_key(key)} = {toml_value(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"a number that is {value} has no place in a file")
    # JSON's texts, numbers and booleans are TOML's; DEL is the one character TOML wants escaped as well.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
