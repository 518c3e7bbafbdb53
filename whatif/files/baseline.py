"""Stored results that scenarios are checked against: a JSON file with readable differences.

`{"results": {SCENARIO: {RESULT: seconds, ..}, ..}}`, scenarios as they were named, results as columns of `whatif run`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whatif.atomic import write_text
from whatif.errors import UsageError
from whatif.importers.text import read_text, refuse
from whatif.schema.toml import shown_path

Results = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Move:
    """Result that differs from the stored one; None if it is missing before or after."""

    scenario: str
    result: str
    before: float | None
    after: float | None


def read_results(path: Path) -> dict[str, dict[str, float]]:
    """Stored results of a file. Raise `UsageError` if it is missing, `InvalidFileError` for another kind of file."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; --update makes it")
    try:
        found = json.loads(read_text(path))["results"]
        return {str(name): {str(key): _number(value) for key, value in its.items()} for name, its in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        message = "no file of results: `whatif check SCENARIO --against FILE --update` writes one"
        raise refuse(shown_path(path), message) from None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return float(value)


def write_results(path: Path, results: Results) -> None:
    """Write results, whole or not at all; those of other scenarios are kept."""
    kept = read_results(path) if path.exists() else {}
    text = json.dumps({"results": {**kept, **results}}, indent=1, allow_nan=False, sort_keys=True)
    write_text(path, f"{text}\n")


def moves(before: Results, after: Results, tolerance: float) -> Iterator[Move]:
    """Results that changed by more than a share, appeared or disappeared, in scenarios that both have."""
    for scenario, now in after.items():
        was = before.get(scenario, now)
        for result in {**was, **now}:
            old, new = was.get(result), now.get(result)
            if old is None or new is None or not abs(new - old) <= tolerance * abs(old):
                yield Move(scenario, result, old, new)
