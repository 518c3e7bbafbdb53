"""Edits of phases as commands: performed in any process, written to the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, get_args

from whatif.axes import Axis, Grid
from whatif.core.session import Session, SessionInputs, still_there
from whatif.schema.phase_edits import PhaseEdit, PhaseWord
from whatif.tui.state import ExplorerState, View

PHASES: Final = "application.phases."
"""Beginning of the paths of phases."""


@dataclass(frozen=True, slots=True)
class EditPhase:
    """Add, copy, delete, move or rename a phase, or change its kind."""

    edit: PhaseEdit

    def apply(self, state: ExplorerState) -> ExplorerState:
        """State with other phases; sweep and view follow a new name."""
        session, edit = state.session, self.edit
        scenario = session.scenario.with_phase(edit)
        grid = _renamed(session.grid, edit) if edit.word == "rename" else session.grid
        inputs = SessionInputs(scenario, still_there(grid, scenario.program))
        view = _view(state.view, edit) if edit.word == "rename" else state.view
        return replace(state, view=view).with_session(Session.of(inputs))

    def line(self) -> str:
        """`phase WORD NAME` or `phase WORD NAME = TEXT`."""
        return self.edit.line()


_NEEDS: Final[dict[PhaseWord, str]] = {
    "add": "NAME = MOTIF",
    "copy": "NAME = NEW",
    "delete": "NAME",
    "move": "NAME = STEPS",
    "rename": "NAME = NEW",
    "kind": "NAME = KIND",
}


def _edit(word: PhaseWord, name: str, text: str) -> EditPhase:
    return EditPhase(PhaseEdit(word, name, text))


PHASE_LINES: Final[dict[str, tuple[str, Callable[[str, str], EditPhase]]]] = {
    f"phase {word}": (_NEEDS[word], partial(_edit, word)) for word in get_args(PhaseWord)
}
"""Lines of a journal by their words: their arguments, and the change that they make."""


def _renamed(grid: Grid, edit: PhaseEdit) -> Grid:
    """Grid whose parameters have the new path."""

    def follow(path: str) -> str:
        old = f"{PHASES}{edit.name}."
        return f"{PHASES}{edit.text}.{path.removeprefix(old)}" if path.startswith(old) else path

    def axis(item: Axis) -> Axis:
        values = {follow(path): value for path, value in item.parameters.items()}
        texts = {follow(path): text for path, text in item.texts.items()}
        return replace(item, name=follow(item.name), parameters=values, texts=texts)

    return replace(grid, axes=tuple(map(axis, grid.axes)))


def _view(view: View, edit: PhaseEdit) -> View:
    names = {f"terms.{edit.name}": f"terms.{edit.text}"}
    return replace(view, y=names.get(view.y, view.y), why=names.get(view.why, view.why))
