"""Saves the edits of the user: into the scenario's file, the journal and a recovery file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from whatif.api.editing import command_line, save, save_as, toml_patch, variant_paths, write_variants
from whatif.atomic import write_text
from whatif.core.scenario import Scenario
from whatif.core.session import SessionInputs
from whatif.errors import UsageError
from whatif.schema.phase_edits import edits_of
from whatif.schema.shipped import is_shipped
from whatif.schema.toml import Document
from whatif.tui.commands.command_runner import CommandRunner
from whatif.tui.commands.explorer_commands import Reread
from whatif.tui.commands.history import lines_to
from whatif.tui.files.recovery import Recovery
from whatif.tui.files.scenario_file import FileChanges, ScenarioFile, values_before
from whatif.units import counted


class FileSync:
    """Files of the open scenario: its own, the journal and the one for recovery."""

    def __init__(
        self, scenario: Scenario, runner: CommandRunner, journal: Path | None = None, folder: Path | None = None
    ) -> None:
        self.file = ScenarioFile(scenario)
        self.recovery = Recovery(self.file.path, folder)
        self._runner = runner
        self._journal = journal
        self._journalled = 0
        self._written: list[str] = []
        self._touched = False
        self._conflicts: dict[str, str] = {}

    @property
    def _scenario(self) -> Scenario:
        return self._runner.state.session.scenario

    @property
    def shipped(self) -> bool:
        """Whether the file was shipped with the program; others expect its numbers."""
        return is_shipped(self.file.path.parent, "scenarios")

    def touched(self) -> bool:
        """Whether a file changed since it was taken in."""
        self._touched = self.file.touched() or self._touched
        return self._touched

    def reload(self) -> FileChanges:
        """Reload the files; edits stay. Raise `InvalidFileError` for invalid files."""
        # Edits of phases that do not fit the file now may be taken back: it is read again then.
        self._touched = bool(edits_of(self._scenario.document))
        if self.file.gone:
            raise UsageError(f"{self.file.path.name} was deleted; w writes it again")
        found = self.file.reread(self._runner.state)
        self._touched = False
        # A new comment changes no number, but what is saved next must rest on it.
        if found.changes or found.scenario.document is not self._scenario.document:
            self._runner.ask(Reread(found.scenario))
            self.file.watch(found.scenario.program)
        self._conflicts |= found.conflicts
        return found

    @property
    def conflicts(self) -> dict[str, str]:
        """Parameters that were edited both here and in the file since the last save."""
        edited = self._runner.state.unsaved()
        return {path: text for path, text in self._conflicts.items() if path in edited}

    def save(self) -> str:
        """Write the edits into the file; returns a message. Raise `WhatifError` if it fails."""
        scenario = self._scenario
        if not self._runner.state.unsaved() and not self.file.gone:
            return "nothing to save"
        if self.file.gone:
            return self.save_as(self.file.path)
        self._saved(save(self.file.path, scenario.document, scenario))
        self._runner.history.lines.append("save")
        return f"saved to {scenario.document.name}"

    def save_as(self, path: Path) -> str:
        """Write the scenario with its edits to another file, and continue with that file."""
        scenario = self._scenario
        remark = save_as(path, scenario)
        moved = Scenario.open(path, folders=scenario.folders)
        _ = moved.program
        self._saved(moved.document)
        self.file = ScenarioFile(self._scenario)
        self.recovery.forget()
        self.recovery = Recovery(self.file.path, self.recovery.folder)
        return f"saved to {path}{remark}"

    def _saved(self, document: Document) -> None:
        """Continue with the file just written; no number changes, only its source."""
        runner, scenario = self._runner, self._scenario
        state = runner.state
        runner.history.rebase(document, values_before(scenario), edits_of(scenario.document))
        fresh = Scenario(document, None, {}, scenario.folders)
        session = replace(state.session, inputs=SessionInputs(fresh, state.session.grid))
        variants = state.variants.rebased(scenario, document, values_before(scenario), saved=True)
        runner.state = replace(state, session=session, variants=variants)
        self.file.watch(session.program)
        self._conflicts = {}
        self.write_down()

    def variant_files(self) -> dict[str, Path]:
        """The files that `save_variants` writes; raise `UsageError` if the scenario cannot be extended."""
        return variant_paths(self._variants())

    def save_variants(self) -> str:
        """Write each variant to its own file; returns a message. Raise `WhatifError` if it fails."""
        runner = self._runner
        paths = write_variants(self._variants(), runner.state.session.grid.axes)
        runner.state = runner.state.written()
        self.write_down()
        names = ", ".join(str(path) for path in paths.values())
        return f"variants written to {names}" if paths else "no variant differs from the scenario's file"

    def _variants(self) -> dict[str, Scenario]:
        return {item.label: item.scenario for item in self._runner.state.listed()}

    def write_down(self) -> None:
        """Keep aside what is not saved."""
        state = self._runner.state
        lines = lines_to(state) if state.at_stake() or state.unsaved_views() else []
        if lines != self._written:
            self._written = lines
            self.recovery.keep(lines)

    def write_journal(self) -> str:
        """Append the commands to the requested journal; returns a message if it fails."""
        lines = self._runner.history.lines
        added, self._journalled = lines[self._journalled :], len(lines)
        if self._journal is not None and added:
            try:
                with self._journal.open("a", encoding="utf-8") as file:
                    file.writelines(f"{line}\n" for line in added)
            except OSError as problem:
                path, self._journal = self._journal, None
                return f"{path}: cannot be written: {problem.strerror}"
        return ""

    def save_journal(self, path: Path) -> str:
        """Write all commands so far to a file; returns a message. Raise `UsageError` if it cannot be written."""
        lines = self._runner.history.lines
        write_text(path, "".join(f"{line}\n" for line in lines))
        return (
            f"{counted(len(lines), 'command')} written to {path}; `whatif open SCENARIO --replay {path}` repeats them"
        )

    def copied(self, what: str, command: str = "") -> tuple[str, Path | None]:
        """Screen as text, and the file that also holds it, for terminals without a clipboard.

        `command`: the command line where it is not that of the sweep.
        """
        axes = self._runner.state.session.grid.axes
        own = command if what == "command" else ""
        text = own or (command_line if what == "command" else toml_patch)(self._scenario, axes)
        path = self.recovery.folder.parent / "copied.txt"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, f"{text.rstrip()}\n")
        except (OSError, UsageError):
            return text, None
        return text, path
