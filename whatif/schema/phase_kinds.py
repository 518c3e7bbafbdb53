"""Kinds of phases: their keys, and what a phase keeps when its kind changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from whatif.errors import UsageError, did_you_mean
from whatif.schema.application import Phase
from whatif.schema.motifs import motifs


class ChangedKind(NamedTuple):
    """Keys of a phase after a change of its kind: kept as they are, set to a first value, and dropped."""

    kept: tuple[str, ...]
    added: dict[str, Any]
    dropped: tuple[str, ...]


def phase_kinds() -> dict[str, str]:
    """Kinds that a phase can be changed to, with their descriptions: those that a motif has first values for."""
    return {kind: _words(model) for kind, model in _models().items() if kind in _first_values()}


def _models() -> dict[str, type[BaseModel]]:
    models = get_args(get_args(Phase)[0])
    return {get_args(model.model_fields["kind"].annotation)[0]: model for model in models}


def _words(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0].rstrip(".")


def _first_values() -> dict[str, dict[str, Any]]:
    """Values of the first phase of each kind in the motifs, the shortest first: the others may need a grid."""
    found: dict[str, dict[str, Any]] = {}
    for motif in sorted(motifs(), key=lambda item: len(item.phases)):
        for table in motif.phases.values():
            found.setdefault(table["kind"], table)
    return found


def changed_kind(table: Mapping[str, Any], kind: str) -> ChangedKind:
    """Keys of a phase as another kind; raise `UsageError` for a kind that it cannot be changed to.

    A key of both kinds stays unless its value is none of the new kind.
    """
    if kind not in phase_kinds():
        whole = f"a phase of kind `{kind}` is made from a file, with `whatif fit` or `whatif import`"
        choices = phase_kinds()
        other = f"`{kind}`: expected one of {', '.join(choices)}{did_you_mean(kind, choices)}"
        raise UsageError(whole if kind in _models() else other)
    if table.get("kind") == kind:
        raise UsageError(f"the phase is of kind `{kind}` already")
    model, first = _models()[kind], _first_values()[kind]
    shared = {key: value for key, value in table.items() if key in model.model_fields and key != "kind"}
    refused = _refused(model, {**first, **shared})
    kept = tuple(key for key in shared if key not in refused)
    required = {key for key, field in model.model_fields.items() if field.is_required()}
    needed = required | ({"message_size"} if kind == "collective" else set()) | ({"transfer_size"} & first.keys())
    added = {key: value for key, value in first.items() if key in needed - {"kind", *kept}}
    return ChangedKind(kept, added, tuple(key for key in table if key not in {"kind", *kept, *added}))


def _refused(model: type[BaseModel], table: Mapping[str, Any]) -> set[Any]:
    """Keys whose values a kind of phase does not allow."""
    try:
        model.model_validate(table)
    except ValidationError as error:
        return {item["loc"][0] for item in error.errors(include_url=False) if item["loc"]}
    return set()
