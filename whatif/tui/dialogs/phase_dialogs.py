"""Windows that ask for an edit of phases: which phase, which motif, which name, which kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from textual.app import App

from whatif.api.editing import (
    PhaseEdit,
    edited,
    free_phase_name,
    motif_named,
    motifs,
    phase_files,
    phase_kinds,
    phases_of,
    source_name,
)
from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import UsageError, WhatifError
from whatif.schema.phase_edits import PhaseWord
from whatif.schema.shipped import shipped_names
from whatif.studies.phase_form import form_problems, form_values, phase_form
from whatif.tui.commands.explorer_commands import EditAll
from whatif.tui.commands.phase_commands import PHASES
from whatif.tui.dialogs.form import FormScreen
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.keys.keys_in_order import before_window

FILE_ROW: Final = ("(file)", "From a file: a profile of GPU work, profiled kernels, a trace, another scenario")


def phase_at(path: str) -> str:
    """Phase of a parameter or table; empty for any other path."""
    return path.removeprefix(PHASES).split(".")[0] if path.startswith(PHASES) else ""


async def pick_file(app: App[Any]) -> str | None:
    """File of phases that a user picks in the present folder, or types; None after escape."""
    rows = await before_window(app, phase_files, Path())
    return await app.push_screen_wait(
        PickList("A profile, a trace or a scenario: pick or type its name", rows, free=True)
    )


def motif_rows() -> Iterator[tuple[str, str]]:
    """Names and descriptions of the motifs, then of the phases of shipped scenarios."""
    yield from ((motif.name, motif.description) for motif in motifs())
    for name in shipped_names("scenarios"):
        try:
            phases = motif_named(name).phases
        except WhatifError:
            continue
        for phase, table in phases.items():
            yield f"{name}:{phase}", f"{table.get('kind', 'phase')} of {name}".replace("_", " ")


class PhaseDialogs:
    """Questions about the phases of a scenario."""

    def __init__(self, app: App[Any], scenario: Scenario) -> None:
        self._app, self._scenario = app, scenario
        self._phases = phases_of(scenario.document, scenario.folders)

    async def ask(self, word: PhaseWord, phase: str, text: str = "") -> PhaseEdit | None:
        """Edit of a phase that a user requests; None after escape. Raise `WhatifError` if it is impossible."""
        if word == "add":
            return await self._add(phase)
        phase = phase or await self.which(word)
        if not phase:
            return None
        if word == "kind":
            kind = self._phases[phase].get("kind", "") if phase in self._phases else ""
            text = await self._pick(f"Kind of {phase}", phase_kinds().items(), kind)
        elif word in ("copy", "rename"):
            title = f"Copy of {phase}" if word == "copy" else f"New name of {phase}"
            begin = free_phase_name(phase, self._phases) if word == "copy" else phase
            text = await self._name(title, begin, lambda name: PhaseEdit(word, phase, name))
        return PhaseEdit(word, phase, text) if text or word == "delete" else None

    async def _add(self, after: str) -> PhaseEdit | None:
        source = await self._pick(
            "Add a phase: a motif, SCENARIO:PHASE or a file", (FILE_ROW, *motif_rows()), free=True
        )
        if source == FILE_ROW[0]:
            source = await pick_file(self._app) or ""
        if not source:
            return None
        text = f"{source} after {after}" if after in self._phases else source
        begin = free_phase_name(source_name(source), self._phases)
        name = await self._name(f"Name of the phase ({source})", begin, lambda name: PhaseEdit("add", name, text))
        return PhaseEdit("add", name, text) if name else None

    async def which(self, word: str) -> str:
        """Phase that a user picks; empty after escape."""
        rows = ((name, str(table.get("kind", ""))) for name, table in self._phases.items())
        return await self._pick(f"Which phase? ({word})", rows)

    async def _pick(self, title: str, rows: Iterable[tuple[str, str]], current: str = "", *, free: bool = False) -> str:
        return await self._app.push_screen_wait(PickList(title, tuple(rows), current, free=free)) or ""

    async def _name(self, title: str, begin: str, edit: Callable[[str], PhaseEdit]) -> str:
        return await self._app.push_screen_wait(TextPrompt(title, begin, check=lambda name: self._wrong(edit(name))))

    def _wrong(self, edit: PhaseEdit) -> str:
        try:
            edited(self._scenario.document, edit, self._scenario.folders)
        except WhatifError as problem:
            return str(problem)
        return ""


async def filled_in(app: App[Any], session: Session, phase: str, of_all: str) -> EditAll | None:
    """Values that a user gives a phase in a form, empty without changes; None after escape."""
    if phase not in phases_of(session.scenario.document, session.scenario.folders):
        raise UsageError(f"there is no phase `{phase}`")
    scenario, fields = session.scenario, phase_form(session.program, phase)
    kind = session.program.parameters[f"{PHASES}{phase}.kind"].text()
    form = FormScreen(f"{phase}: {kind}{of_all}", fields, lambda texts: form_problems(scenario, fields, texts))
    texts = await app.push_screen_wait(form)
    return None if texts is None else EditAll(tuple(form_values(fields, texts).items()))
