"""Keys that edit the phase under the cursor of the parameter tree."""

from __future__ import annotations

from typing import Final

from textual import work
from textual.binding import Binding

from whatif.api.editing import EditedDocument, PhaseEdit, edited, phases_of
from whatif.core.session import Session
from whatif.errors import WhatifError
from whatif.schema.phase_edits import PhaseWord
from whatif.tui.commands.phase_commands import PHASES, EditPhase
from whatif.tui.events import ChangeRequested, ErrorReported
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.widgets.line_list import LineList

PHASE_KEYS: Final = (
    extra_binding("phase.add", "insert", "phase('add')", "add phase", "Add a phase"),
    Binding("n", "add_here", "add phase", show=False, id="phase.new"),
    extra_binding("phase.copy", "D", "phase('copy')", "duplicate phase", "Duplicate the phase"),
    extra_binding("phase.delete", "delete", "phase('delete')", "delete phase", "Delete the phase"),
    extra_binding("phase.up", "ctrl+up", "phase('move', '-1')", "move phase up", "Move the phase up"),
    extra_binding("phase.down", "ctrl+down", "phase('move', '1')", "move phase down", "Move the phase down"),
    extra_binding("phase.rename", "f2", "phase('rename')", "rename phase", "Rename the phase"),
    extra_binding("phase.form", "f4", "form", "phase form", "Edit all keys of the phase as a form"),
    extra_binding("phase.kind", "K", "phase('kind')", "change kind", "Change the kind of the phase"),
)


class PhaseKeys(LineList):
    """List with the actions of `PHASE_KEYS`; a subclass provides the session and the path under the cursor."""

    phase_wanted = ""
    """Path of a new phase that the cursor goes to once it exists."""
    forms_wanted: tuple[str, ...] = ()
    """New phases to be filled in as forms once they exist."""

    @property
    def session(self) -> Session:
        """Session shown."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """Path under the cursor, of a table too."""
        raise NotImplementedError

    def action_add_here(self) -> None:
        """Add a phase after the one under the cursor."""
        self.action_phase("add")

    @work
    async def action_phase(self, word: PhaseWord, text: str = "") -> None:
        """Edit the phase under the cursor; ask which one without a phase there."""
        from whatif.tui.dialogs.phase_dialogs import PhaseDialogs, phase_at  # noqa: PLC0415 - not for the first frame

        scenario = self.session.scenario
        try:
            edit = await PhaseDialogs(self.app, scenario).ask(word, phase_at(self.place), text)
            if edit is not None:
                self._perform(edit)
        except WhatifError as problem:
            self.post_message(ErrorReported(str(problem)))

    @work
    async def action_form(self) -> None:
        """Edit the phase under the cursor as a form; ask which one without a phase there."""
        from whatif.tui.dialogs.phase_dialogs import PhaseDialogs, phase_at  # noqa: PLC0415 - not for the first frame

        dialogs = PhaseDialogs(self.app, self.session.scenario)
        phase = phase_at(self.place) or await dialogs.which("form")
        if phase:
            await self._fill_in((phase,))

    @work
    async def fill_in_wanted(self) -> None:
        """Show the forms of the phases that were added."""
        wanted, self.forms_wanted = self.forms_wanted, ()
        await self._fill_in(wanted)

    async def _fill_in(self, phases: tuple[str, ...]) -> None:
        """Show the form of each phase in turn, until escape."""
        from whatif.tui.dialogs.phase_dialogs import filled_in  # noqa: PLC0415 - not for the first frame

        for number, phase in enumerate(phases, 1):
            of_all = f", {number} of {len(phases)}" if len(phases) > 1 else ""
            try:
                change = await filled_in(self.app, self.session, phase, of_all)
            except WhatifError as problem:
                self.post_message(ErrorReported(str(problem)))
                return
            if change is None:
                return
            if change.texts:
                self.post_message(ChangeRequested(change))

    def _perform(self, edit: PhaseEdit) -> None:
        """Prompt for an edit, and report changes besides the phase."""
        scenario = self.session.scenario
        document = edited(scenario.document, edit, scenario.folders)
        if isinstance(document, EditedDocument) and document.notes:
            self.app.notify("; ".join(document.notes))
        before, after = (phases_of(item, scenario.folders) for item in (scenario.document, document))
        names = tuple(name for name in after if name not in before) or (edit.name,)
        self.phase_wanted = f"{PHASES}{names[0]}"
        self.forms_wanted = names if edit.word == "add" else ()
        self.post_message(ChangeRequested(EditPhase(edit)))
