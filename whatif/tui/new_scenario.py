"""Questions that lead to a scenario of one's own: its name, its machine, its phases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from textual.app import App

from whatif.api.editing import motifs, template
from whatif.core.scenario import Scenario
from whatif.errors import WhatifError
from whatif.schema.toml import parse_document
from whatif.tui.labels import toast
from whatif.tui.phase_dialogs import free_name
from whatif.tui.screens.dialogs import TextPrompt, toml_path
from whatif.tui.screens.pick_list import PickList, Row

_DONE: Final = "(done)"


class NewScenario(NamedTuple):
    """File of a new scenario and its text."""

    path: Path
    text: str


async def new_scenario(
    app: App[Any], name: str, platforms: Sequence[Row], platform: str, folders: tuple[Path, ...]
) -> NewScenario | None:
    """Scenario that a person puts together; None after escape.

    `name` and `platform` are proposed; `platforms` are names of machines with their descriptions.
    """
    typed = await app.push_screen_wait(TextPrompt("1 of 3: name of the new scenario", name))
    if not typed:
        return None
    path = toml_path(typed)
    machine = await app.push_screen_wait(PickList("2 of 3: your machine", platforms, platform))
    if machine is None:
        return None
    phases: list[tuple[str, str]] = []
    text = ""
    while True:
        picked = await app.push_screen_wait(PickList(_title(phases), _rows(phases)))
        if picked in (None, _DONE):
            return None if picked is None else NewScenario(path, text)
        more = [*phases, (free_name(str(picked), _names(phases)), str(picked))]
        try:
            text = _checked(path, machine, folders, more)
        except WhatifError as problem:
            app.notify(toast(f"{picked} does not run on {machine}: {problem}"), severity="error", markup=False)
        else:
            phases = more


def _names(phases: Sequence[tuple[str, str]]) -> list[str]:
    return [name for name, _ in phases]


def _title(phases: Sequence[tuple[str, str]]) -> str:
    if not phases:
        return "3 of 3: your application, first phase of an iteration"
    return f"3 of 3: {', '.join(_names(phases))}; next phase?"


def _rows(phases: Sequence[tuple[str, str]]) -> list[Row]:
    done = [(_DONE, f"Open the scenario with {', '.join(_names(phases))}")] if phases else []
    return [*done, *((motif.name, motif.description) for motif in motifs())]


def _checked(path: Path, machine: str, folders: tuple[Path, ...], phases: Sequence[tuple[str, str]]) -> str:
    """Text of a scenario; raise `WhatifError` if it does not run."""
    text = template(path.stem, machine, folders, phases)
    _ = Scenario(parse_document(text, path.name, path.parent), folders=folders).program
    return text
