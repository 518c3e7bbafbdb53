"""Questions that lead to a scenario of one's own: its name, its machine, its phases, its measured runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from textual.app import App

from whatif.api.building import (
    DEFAULT_PLATFORM,
    MachineParts,
    NewScenario,
    machine_form,
    machine_of,
    machine_problems,
    named_phases,
    new_scenario,
)
from whatif.api.editing import motifs
from whatif.errors import WhatifError
from whatif.paths import user_path
from whatif.studies.choice_lists import platform_choices
from whatif.tui.dialogs.form import FormScreen
from whatif.tui.dialogs.phase_dialogs import FILE_ROW, pick_file
from whatif.tui.dialogs.pick_list import PickList, Row
from whatif.tui.dialogs.windows import may_write, path_to_write
from whatif.tui.files.file_paths import catalogue_folders, free_file
from whatif.tui.keys.keys_in_order import before_window
from whatif.tui.state import ExplorerState

_DONE: Final = "(done)"
_ENDS: Final = (None, _DONE)
_PARTS: Final = ("(from parts)", "Your own machine: GPU, processor, network and how many of each")
_RUNS: Final = ("(runs)", "A CSV file of measured runs, with ranks, nodes and times, to compare with and to calibrate")


@dataclass(frozen=True, slots=True)
class _Answers:
    """Answers so far."""

    path: Path
    machine: str | MachineParts
    machine_name: str = ""
    phases: tuple[str, ...] = ()
    runs: Path | None = None

    def files(self, folders: tuple[Path, ...]) -> NewScenario:
        """Files of these answers; raise `WhatifError` if they do not fit together."""
        return new_scenario(
            self.path, self.machine, self.phases, machine_name=self.machine_name, runs=self.runs, folders=folders
        )

    @property
    def title(self) -> str:
        """Question for the next phase."""
        names = [name for name, _ in named_phases(self.phases)]
        return f"3 of 3: {', '.join(names)}; next phase?" if names else "3 of 3: your application, first phase"

    @property
    def rows(self) -> list[Row]:
        """Answers to the question for the next phase."""
        names = ", ".join(name for name, _ in named_phases(self.phases))
        with_runs = f" and {self.runs}" if self.runs is not None else ""
        done = [(_DONE, f"Open the scenario with {names}{with_runs}")] if names else []
        runs = [_RUNS] if self.runs is None and names else []
        return [*done, *((motif.name, motif.description) for motif in motifs()), FILE_ROW, *runs]


async def make_scenario(app: App[Any], state: ExplorerState) -> Path | None:
    """File of a scenario that a user puts together, written with its machine and its runs; None after escape.

    Raise `WhatifError` if a file cannot be written.
    """
    folders = catalogue_folders(state.session.scenario)
    path = await path_to_write(app, "1 of 3: name of the new scenario", free_file("mine"))
    if path is None:
        return None
    platforms = await before_window(app, platform_choices, replace(state.session.scenario, folders=folders))
    started = _Answers(path, state.platform_name or DEFAULT_PLATFORM)
    answers = await _machine(app, started, platforms, folders)
    made = None if answers is None else await _phases(app, answers, folders)
    if made is None or not await may_write(app, *(file for file in made.files if file != path)):
        return None
    made.write(overwrite=True)
    return made.path


async def _machine(
    app: App[Any], answers: _Answers, platforms: Sequence[Row], folders: tuple[Path, ...]
) -> _Answers | None:
    """Answers with a machine: a known one, or one of parts."""
    picked = await app.push_screen_wait(PickList("2 of 3: your machine", (_PARTS, *platforms)))
    if picked != _PARTS[0]:
        return None if picked is None else replace(answers, machine=picked)
    name = free_file(str(answers.path.with_suffix("")) + "_machine")
    fields = machine_form(Path(name).stem, folders)
    folder = answers.path.parent
    form = FormScreen("2 of 3: your machine", fields, lambda texts: machine_problems(fields, texts, folders, folder))
    texts = await app.push_screen_wait(form)
    return None if texts is None else replace(answers, machine=machine_of(texts), machine_name=texts["name"])


async def _phases(app: App[Any], answers: _Answers, folders: tuple[Path, ...]) -> NewScenario | None:
    """Files with the phases that a user picks one after the other."""
    made: NewScenario | None = None
    refused = ""
    while (picked := await app.push_screen_wait(PickList(answers.title, answers.rows, problem=refused))) not in _ENDS:
        more = await _with(app, answers, str(picked))
        try:
            made = await before_window(app, more.files, folders)
        except WhatifError as problem:
            refused = f"{picked} does not fit: {problem}"
        else:
            answers, refused = more, ""
            if made.notes:
                app.notify("; ".join(made.notes))
    return None if picked is None else made


async def _with(app: App[Any], answers: _Answers, picked: str) -> _Answers:
    """Answers with one more phase, or with a file of runs; the same after escape."""
    if picked == _RUNS[0]:
        rows = [(path.name, "CSV file") for path in sorted(Path().glob("*.csv"))]
        window = PickList("Measured runs: pick or type the name of a CSV file", rows, free=True)
        file = await app.push_screen_wait(window)
        return replace(answers, runs=user_path(file)) if file else answers
    source = await pick_file(app) if picked == FILE_ROW[0] else picked
    return replace(answers, phases=(*answers.phases, source)) if source else answers
