"""Changed values of a study as one text, `PATH = VALUE; PATH = VALUE`, as the view of its page keeps them."""

from __future__ import annotations

from collections.abc import Mapping

from whatif.errors import UsageError


def values_in(text: str) -> dict[str, str]:
    """Values by path, of a text; raise `UsageError` for a part without a value."""
    return dict(map(value_in, filter(None, (part.strip() for part in text.split(";")))))


def value_in(text: str) -> tuple[str, str]:
    """Path and value, of `PATH = VALUE`; raise `UsageError` for anything else."""
    path, _, value = (part.strip() for part in text.partition("="))
    if not path or not value or " " in path or ";" in text:
        raise UsageError(f"`{text}`: expected PATH = VALUE, such as `limits.power = 2.5 MW`")
    return path, value


def text_of(values: Mapping[str, str]) -> str:
    """Values by path as a text."""
    return "; ".join(f"{path} = {value}" for path, value in values.items())
