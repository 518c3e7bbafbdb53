"""The state that the explorer shows, and the commands that read and write its files."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

from rich.text import Text
from textual import on, work
from textual.notifications import SeverityLevel
from textual.worker import Worker, WorkerFailed

from whatif.core.scenario import EvaluationRequest
from whatif.defects import defect_message
from whatif.errors import InvalidFileError, WhatifError
from whatif.paths import exists, user_path
from whatif.tui.commands.command_runner import CommandRunner
from whatif.tui.commands.explorer_commands import Revert
from whatif.tui.dialogs.windows import ChoicePrompt, path_to_write
from whatif.tui.events import EditorRequested, VariantFilesRequested
from whatif.tui.files.file_sync import FileSync
from whatif.tui.files.scenario_file import FileChanges
from whatif.tui.jobs.background import BackgroundJobs
from whatif.tui.jobs.worker import run_once
from whatif.tui.keys.keys_in_order import KeysInOrder
from whatif.tui.labels import toast
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.state import ExplorerState
from whatif.tui.terminal.process_memory import return_memory

_BUSY_SECONDS: Final = 0.15


class FileCommands(KeysInOrder):
    """Base of the explorer: its state, messages about it, and its files."""

    file_sync: FileSync
    runner: CommandRunner
    main_screen: MainScreen
    """The screen under whatever window is open."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = BackgroundJobs()
        self._file_error = ""
        self._saving: Worker[None] | None = None
        self._looked_at: ExplorerState | None = None

    @property
    def state(self) -> ExplorerState:
        """State shown now."""
        return self.runner.state

    def _shown(self, error: str) -> None:
        """Show the state or an error; an invalid file stays reported."""
        self.main_screen.show(self.state, error, busy=self.runner.busy, notice=self._file_error)
        self._say(self.file_sync.write_journal())

    def _handle_exception(self, error: Exception) -> None:
        """Report what a dialog could not do to a file, in place of ending the session."""
        cause = error.error if isinstance(error, WorkerFailed) else None
        if isinstance(cause, WhatifError | OSError):
            self._shown(str(cause))
        else:
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """End the session after a defect, with a message in place of Textual's traceback."""
        message = defect_message(self._exception or RuntimeError())
        self.panic(Text(f"whatif: {message}\nUnsaved edits are offered at the next start."))

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message as it is, in the lines that a corner of the screen has room for."""
        super().notify(toast(message, self.size.width), title=title, severity=severity, timeout=timeout, markup=False)

    def _say(self, text: str) -> None:
        if text:
            self.notify(text)

    def _watch_work(self) -> None:
        if self.runner.busy:
            self.set_timer(_BUSY_SECONDS, self._tell_busy)

    def _tell_busy(self) -> None:
        if self.runner.busy:
            self.main_screen.show(self.state, busy=True)

    def _look(self) -> None:
        """Check the files for changes, note unsaved edits for recovery, return freed memory."""
        self.file_sync.write_down()
        if self._looked_at is not self.state:
            self._looked_at = self.state
            return_memory()
        if self.file_sync.touched() and not self.runner.busy:
            self._reload()

    def _reload(self) -> None:
        """Reload changed files and report the changes."""
        try:
            found = self.file_sync.reload()
        except InvalidFileError as problem:
            first = problem.problems[0]
            place = f"line {first.line} of {Path(first.file).name}" if first.line else Path(first.file).name
            self._file_error = f"{problem} ({place} on disk; the last valid values are kept)"
        except WhatifError as problem:
            self._file_error = str(problem)
        else:
            self._file_error = ""
            self._tell(found)
            return
        self._shown("")

    def _tell(self, found: FileChanges) -> None:
        """Report what changed in a file."""
        if found.changes:
            self._say("changed on disk: " + "; ".join(found.changes))
        against = "; ".join(found.conflicts.values())
        if against:
            self.runner.later(lambda: self._shown(f"both you and the file changed {against}; yours is kept"))
        elif not found.changes:
            self._shown("")

    def action_save(self) -> None:
        """Write the edits into the scenario's file; one that came with the program is written elsewhere."""
        self.runner.later(self._save)
        self._watch_work()

    def _save(self) -> None:
        if self.file_sync.shipped and self.state.unsaved():
            self._saving = self.action_save_as()
            return
        if self.file_sync.touched() or self._file_error:
            self._reload()
        if not self._file_error or self.file_sync.file.gone:
            self.runner.later(self._write)
        else:
            self._shown(f"not saved: {self._file_error}; W saves to another file")

    def _write(self) -> None:
        if self.file_sync.conflicts and not self.file_sync.file.gone:
            self._saving = self._settle()
        else:
            self._store(self.file_sync.save)

    @work
    async def _settle(self) -> None:
        """Ask whose values to write where both changed."""
        conflicts, mine = self.file_sync.conflicts, self.state.unsaved()
        lines = (f"{text} on disk; yours is {mine[path]}" for path, text in conflicts.items())
        text = "\n".join(("Both you and the file changed:", "", *lines))
        answer = await self.push_screen_wait(ChoicePrompt(text, {"m": "write mine", "t": "take theirs"}))
        if answer == "t":
            for path in conflicts:
                self.runner.ask(Revert(path))
        if answer:
            self.runner.later(lambda: self._store(self.file_sync.save))
            await self.runner.idle()

    def _store(self, work: Callable[[], str]) -> None:
        """Write the scenario's file: what was wrong with the one on disk is over then."""

        def write() -> str:
            said, self._file_error = work(), ""
            return said

        self._try(write)

    def _try(self, work: Callable[[], str]) -> None:
        """Run a command on a file; report its message or its error."""
        try:
            self._say(work())
        except WhatifError as problem:
            self.runner.error = str(problem)
            self._shown(str(problem))
        else:
            self._shown("")

    @work
    async def action_save_as(self) -> None:
        """Write the scenario, with its edits, to another file."""
        present = self.file_sync.file.path
        start = present.name if self.file_sync.shipped else str(present)
        path = await path_to_write(self, "Save the scenario to", start)
        if path is not None:
            self.runner.later(lambda: self._store(lambda: self.file_sync.save_as(path)))
            await self.runner.idle()

    def action_copy(self, what: str) -> None:
        """Copy what is on the screen, as a command line or as a TOML patch."""
        self._try(lambda: self._copied(what))

    def _copied(self, what: str) -> str:
        text, place = self.file_sync.copied(what, self.main_screen.page.command)
        self.copy_to_clipboard(text)
        return f"copied{f', also to {place}' if place else ''}:\n{text}"

    @on(EditorRequested)
    @work
    async def _edit_file(self, event: EditorRequested) -> None:
        """Open a file in the editor, then take in what changed."""
        try:
            self._say(await import_module("whatif.tui.files.file_editor").edit_file(self, event.path))
        except WhatifError as problem:
            self._shown(str(problem))
        else:
            self._look()

    @work
    async def action_journal(self) -> None:
        """Write the journal to a file, to be replayed."""
        path = await path_to_write(self, "Save the journal to", "whatif.journal", user_path)
        if path is not None:
            self._say(self.file_sync.save_journal(path))

    @work
    async def action_report(self) -> None:
        """Write a report about the values and the sweep as they are."""
        path = await path_to_write(self, "Write a report to", "report.html", user_path)
        if path is None:
            return
        inputs, report = self.state.session.inputs, import_module("whatif.tui.jobs.report_job").report
        self._say(f"writing {path}")
        try:
            self._say(await run_once(report, EvaluationRequest(inputs.scenario, inputs.grid), path))
        except WhatifError as problem:
            self._shown(str(problem))

    @on(VariantFilesRequested)
    @work
    async def _write_asked(self) -> None:
        await self.write_variants()

    async def write_variants(self) -> None:
        """Write each variant to a file of its own, once the commands before are done."""
        await self.runner.idle()
        try:
            existing = [path for path in self.file_sync.variant_files().values() if exists(path)]
        except WhatifError as problem:
            self._shown(str(problem))
            return
        text = f"What they say will be lost: {', '.join(str(path) for path in existing)}"
        if not existing or await self.push_screen_wait(ChoicePrompt(text, {"o": "overwrite"})) == "o":
            self._try(self.file_sync.save_variants)
