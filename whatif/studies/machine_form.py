"""Form of a machine of parts: its fields, errors in typed texts, and the resulting machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from whatif.core.inventory import part_description
from whatif.errors import WhatifError, did_you_mean
from whatif.files.machine_template import MachineParts
from whatif.paths import is_file
from whatif.schema.fields import Domain, QuantityField
from whatif.schema.parts import parts_of
from whatif.schema.shipped import is_name
from whatif.studies.choice_lists import FIGURES, Choice
from whatif.studies.phase_form import FormField
from whatif.units import ONE

_COUNT: Final = QuantityField(ONE, Domain(minimum=1, whole=True))
_NO_GPU: Final = ("none", "No GPUs: kernels run on the processors")
_GENERIC: Final = "generic"
_PARTS: Final = {
    "gpu": ("gpu", _NO_GPU, "Accelerator, from the shipped parts: F4 lists them with their memory and peak rate."),
    "processor": (
        "cpu",
        (_GENERIC, "16 cores, round numbers; that of a superchip"),
        "Processor of one socket; F4 lists the shipped parts.",
    ),
    "network": ("distance", (_GENERIC, "100 Gbit/s"), "Network between nodes; F4 lists the shipped parts."),
}
_COUNTS: Final = {
    "gpus_per_node": ("1", "GPUs (or dies that count as GPUs) of one node; no effect without a GPU."),
    "sockets_per_node": ("1", "Processors of one node."),
    "ports_per_node": ("1", "Network ports of one node; many nodes with 4 or 8 GPUs have as many ports."),
    "node_count": ("16", "Nodes of the whole machine."),
}
_ORDER: Final = ("gpu", "gpus_per_node", "processor", "sockets_per_node", "network", "ports_per_node", "node_count")


def machine_form(name: str, folders: Sequence[Path] = ()) -> tuple[FormField, ...]:
    """Fields of a machine: its name, its parts, each to be picked from the shipped ones, and their numbers."""
    about = "Name of the machine: its platform file is NAME.toml next to the scenario."
    named = FormField("name", "name", name, help=about, allowed="letters, digits, `_`, `.` and `-`", required=True)
    return named, *(_part(key, folders) if key in _PARTS else _count(key) for key in _ORDER)


def _part(key: str, folders: Sequence[Path]) -> FormField:
    kind, none, about = _PARTS[key]
    parts = parts_of(kind, folders)
    choices: tuple[Choice, ...] = (
        none, *((name, part_description(item, FIGURES.get(kind, ()))) for name, item in parts.items())
    )  # fmt: skip
    allowed = f"`{none[0]}`, or the name of a part"
    return FormField(key, key, none[0], help=about, allowed=allowed, choices=choices, required=True)


def _count(key: str) -> FormField:
    text, about = _COUNTS[key]
    allowed = _COUNT.domain.describe(ONE)
    return FormField(key, key, text, help=about, allowed=allowed, required=True, quantity=_COUNT)


def machine_of(texts: Mapping[str, str]) -> MachineParts:
    """Machine of the texts of a form."""
    names: dict[str, Any] = {key: "" if texts[key] in (_NO_GPU[0], _GENERIC) else texts[key] for key in _PARTS}
    counts: dict[str, Any] = {key: int(_COUNT.number(texts[key])) for key in _COUNTS}
    return replace(MachineParts(**counts), **names)


def machine_problems(
    fields: tuple[FormField, ...], texts: Mapping[str, str], folders: Sequence[Path] = (), folder: Path | None = None
) -> dict[str, str]:
    """Errors in the texts of a form, by field; under an empty path those of no single field.

    `folder` is that of the new file, where there must be none of its name.
    """
    found = {field.path: field.problem(texts[field.path]) for field in fields if field.problem(texts[field.path])}
    for field in fields:
        if field.choices and texts[field.path] not in dict(field.choices):
            near = did_you_mean(texts[field.path], dict(field.choices))
            found[field.path] = f"`{texts[field.path]}`: no part of this name{near or '; F4 lists them'}"
    if folder is not None and is_file(folder / f"{texts['name']}.toml"):
        found["name"] = f"{texts['name']}.toml exists already, and is not overwritten"
    if not found:
        try:
            machine_of(texts).document(texts["name"], folders)
        except WhatifError as problem:
            found["" if is_name(texts["name"]) else "name"] = str(problem)
    return found
