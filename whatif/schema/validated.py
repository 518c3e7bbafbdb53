"""Validation of merged documents, with the file, line and key of every problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from whatif.errors import InvalidFileError, Problem, did_you_mean
from whatif.schema.explain_errors import message_of, path_of
from whatif.schema.phase_text import PHASES
from whatif.schema.toml import KeyPath, Layers, entries

Model = TypeVar("Model", bound=BaseModel)
PLATFORM: KeyPath = ("platform",)
_NAMED: Final = {
    ("union_tag_not_found", PHASES): "phase",
    ("missing", ("bids",)): "bid",
    ("missing", ("mix",)): "application",
}
"""Nouns for tables of any name, by the type of the error about an unknown one and the table that they are in."""


def platform_names(layers: Layers) -> tuple[str, ...]:
    """Names of the files of the platform and of those that it extends, itself first."""
    return tuple(Path(layer.document.name).stem for layer in reversed(layers.items) if layer.at == PLATFORM)


def validate(model: type[Model], layers: Layers) -> Model:
    """Validated model of the merged document; raise `InvalidFileError` with all problems and their locations."""
    try:
        return model.model_validate(layers.merged)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        lacking = [path_of(layers.merged, item) for item in errors if item["type"] == "missing"]
        problems = [
            _nothing_to_change(layers, item, lacking)
            or _nothing_of_this_name(layers, item)
            or _located(layers, model, item)
            for item in errors
        ]
        raise InvalidFileError(sorted(set(problems), key=lambda p: (p.file, p.line, p.column, p.key))) from None


def _nothing_to_change(layers: Layers, error: Any, lacking: Sequence[KeyPath]) -> Problem | None:
    """Problem of changed values in a table that the platform does not have, such as a GPU; None for other errors."""
    path = path_of(layers.merged, error)
    table = path[:-1]
    below = [layer for layer in layers.items if layer.at]
    name = next(iter(platform_names(layers)), None)
    if path not in lacking or name is None or table[:1] != PLATFORM or any(layer.defines(table) for layer in below):
        return None
    keys = sorted({item[-1] for item in lacking if item[:-1] == table})
    needed = ", ".join(keys[:3]) + ", .." * (len(keys) > 3)
    what = "GPUs" if table == (*PLATFORM, "node", "gpu") else "such table"
    return layers.problem(table, f"{name} has no {what}; a new table also needs {needed}")


def _nothing_of_this_name(layers: Layers, error: Any) -> Problem | None:
    """Problem of an override in a phase, a bid or an application that no file states; None for other errors."""
    path = path_of(layers.merged, error)
    at = path[:-1] if error["type"] == "missing" else path
    what = _NAMED.get((error["type"], at[:-1]))
    # An override has no text.
    if what is None or any(layer.document.text for layer in layers.items if layer.defines(at)):
        return None
    known = [path[-1] for path, _ in entries(layers.merged) if path[:-1] == at[:-1] and path != at]
    hint = did_you_mean(at[-1], known) or f"; {what}s: {', '.join(known)}"
    return layers.problem(at, f"no {what} `{at[-1]}`{hint}") if known else None


def _located(layers: Layers, model: type[BaseModel], error: Any) -> Problem:
    path = path_of(layers.merged, error)
    return layers.problem(path, message_of(model, layers.merged, path, error))
