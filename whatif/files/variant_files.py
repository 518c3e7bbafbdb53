"""Variants of a scenario as files of their own, which extend one another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from whatif.atomic import write_text
from whatif.axes import Axis
from whatif.core.scenario import Scenario
from whatif.files.scenario_edits import extended_name, toml_patch, verify
from whatif.schema.shipped import is_shipped


def variant_paths(variants: Mapping[str, Scenario]) -> dict[str, Path]:
    """Paths of the files of some variants, by their names: `jacobi2d_b.toml` next to the scenario's own file.

    Variants of a shipped scenario are in the working folder. A variant without changes is the scenario's file itself
    and not among them. Raise `UsageError` if the file cannot be extended by name.
    """
    changed = {name: its for name, its in variants.items() if its.overrides or its.platform is not None}
    return {
        name: own_folder(its) / f"{extended_name(its.document)}_{_word(name)}.toml" for name, its in changed.items()
    }


def write_variants(variants: Mapping[str, Scenario], axes: Sequence[Axis] = ()) -> dict[str, Path]:
    """Write each variant with changes, with a sweep over `axes`; the paths written, by name.

    A variant extends the one with most of its changes and no others on the same platform, else the scenario's file.
    Each file is loaded before the next one is written and must give the same parameters. Raise `UsageError` if it does
    not or cannot be written.
    """
    paths = variant_paths(variants)
    written: dict[str, tuple[str, Scenario]] = {}
    for name in sorted(paths, key=lambda name: len(variants[name].overrides)):
        path, scenario = paths[name], variants[name]
        document = replace(scenario.document, folder=path.parent)
        local = replace(scenario, document=document, _programs={}, _original=[])
        text = toml_patch(local, axes, _base(scenario, list(written.values())))
        verify(path, replace(document, name=str(path)), text, scenario)
        write_text(path, text)
        written[name] = path.stem, scenario
    return {name: paths[name] for name in paths}


def _base(scenario: Scenario, written: Sequence[tuple[str, Scenario]]) -> tuple[str, Scenario] | None:
    """The file whose changes are the largest part of those of a scenario; None for the scenario's own file."""
    own = scenario.overrides.items()
    parts = [item for item in written if item[1].overrides and item[1].overrides.items() <= own]
    near = [item for item in parts if _like(item[1], scenario) and len(item[1].overrides) < len(own)]
    return max(near, key=lambda item: len(item[1].overrides), default=None)


def _like(one: Scenario, other: Scenario) -> bool:
    return one.platform == other.platform and one.document.text == other.document.text


def own_folder(scenario: Scenario) -> Path:
    """Folder of new files next to a scenario, relative to the present one: its own, unless it is shipped."""
    folder = scenario.document.folder
    if folder is None or is_shipped(folder, "scenarios") or folder.resolve() == Path.cwd():
        return Path()
    return folder


def _word(name: str) -> str:
    """Part of a file name: small letters, digits and underscores."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
