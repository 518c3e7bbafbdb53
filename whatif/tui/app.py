"""The explorer: a terminal program around one scenario, with its history, its file and its way out."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final

from textual import on, work
from textual.binding import Binding, BindingType
from textual.reactive import Reactive
from textual.theme import Theme
from textual.worker import Worker

from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.session import Session
from whatif.errors import WhatifError
from whatif.plugins import resolve
from whatif.tui.all_keys import all_keys
from whatif.tui.command_runner import CommandRunner
from whatif.tui.commands import Adopt, Revert
from whatif.tui.config import Config, keymap
from whatif.tui.events import ChangeRequested, EditorAsked, FileAsked, StopRequested
from whatif.tui.file_sync import FileSync
from whatif.tui.graphics import Graphics
from whatif.tui.labels import toast
from whatif.tui.screens.dialogs import ChoicePrompt, TextPrompt, may_write, toml_path
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.screens.pick_list import PickList
from whatif.tui.signals import on_end
from whatif.tui.state import ExplorerState, View
from whatif.tui.themes import DEFAULT_THEME, THEMES, series_variables
from whatif.tui.variant_writer import VariantWriter
from whatif.tui.worker import keep_memory, run_once

LOOK_SECONDS: Final = 0.7
"""How often the files are looked at, and edits written down for the worst."""
_BUSY_SECONDS: Final = 0.15
_OUR_THEMES: Final = {theme.name: theme for theme in THEMES}


class Explorer(VariantWriter):
    """Opens a question and lets a person change it."""

    TITLE = "whatif"
    CSS_PATH = "explorer.tcss"
    COMMANDS = {partial(resolve, "whatif.tui.palette:PaletteProvider")}  # noqa: RUF012 - as Textual declares it
    # From the first moment: everything would be drawn again in the colours of a theme that is set later.
    theme: Reactive[str] = Reactive(DEFAULT_THEME)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo", tooltip="Undo the last change", id="app.undo"),
        Binding("U,ctrl+r", "redo", "redo", show=False, tooltip="Redo the last change undone", id="app.redo"),
        Binding("w", "save", "save", tooltip="Save the edits to the scenario's file", id="app.save"),
        Binding("W", "save_as", "save as", show=False, tooltip="Save the scenario to another file", id="app.save_as"),
        Binding(
            "c",
            "copy('command')",
            "copy",
            show=False,
            tooltip="Copy the command line of what is shown",
            id="app.copy_command",
        ),
        Binding("C", "copy('patch')", "copy TOML", show=False, tooltip="Copy the edits as TOML", id="app.copy_patch"),
        Binding("P", "platform", "platform", show=False, tooltip="Choose another platform", id="app.platform"),
        Binding("H", "report", "report", show=False, tooltip="Write a report, one HTML page", id="app.report"),
        Binding("J", "journal", "journal", show=False, tooltip="Save the journal of all commands", id="app.journal"),
        Binding("q", "quit", "quit", tooltip="Quit the program", id="app.quit"),
    ]

    def __init__(
        self,
        scenario: Scenario,
        config: Config | None = None,
        *,
        opening: Iterable[str] = (),
        replay: Iterable[str] = (),
        journal: Path | None = None,
        recovery_folder: Path | None = None,
    ) -> None:
        super().__init__()
        self.config = config or Config()
        self._keys = keymap(self.config, all_keys(type(self))) if self.config.keys else {}
        self._opening, self._replay = tuple(opening), tuple(replay)
        self._journal, self._recovery_folder = journal, recovery_folder
        self._saving: Worker[None] | None = None
        self.graphics = Graphics(self, os.environ, asked=self.config.marker == "pixels")
        self._start(scenario, Session.start(scenario))

    def _start(self, scenario: Scenario, session: Session) -> None:
        """Begin with a question."""
        self._file_error = ""
        marker = self.config.marker or ("pixels" if self.graphics.available else "braille")
        self.runner = CommandRunner(ExplorerState.start(session, View(marker=marker)), self._shown)
        self.file_sync = FileSync(scenario, self.runner, self._journal, self._recovery_folder)

    @property
    def state(self) -> ExplorerState:
        """What is shown."""
        return self.runner.state

    @property
    def main_screen(self) -> MainScreen:
        """The screen under whatever window is open."""
        return next(screen for screen in self.screen_stack if isinstance(screen, MainScreen))

    @property
    def available_themes(self) -> dict[str, Theme]:
        """Textual's themes and ours."""
        return super().available_themes | _OUR_THEMES

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours of curves, for themes that have none of their own."""
        return series_variables(self.current_theme)

    async def on_mount(self) -> None:
        """Choose the theme, with sixteen colours that of the terminal; then open the main screen."""
        terminal = self.console.color_system == "standard"
        self.theme = self.config.theme or ("ansi-dark" if terminal else DEFAULT_THEME)
        self.set_keymap(self._keys)
        # After the update of all styles that the theme has queued: else the main screen would be styled twice.
        self.call_next(self._open_main_screen)

    async def _open_main_screen(self) -> None:
        await self.push_screen(MainScreen(self.state))
        on_end(self._ended)
        self.set_interval(LOOK_SECONDS, self._look)
        self.call_after_refresh(self._begin)

    def _ended(self, number: int) -> None:
        self.file_sync.write_down()
        self.runner.close()
        self.main_screen.latest.close()
        self.graphics.close()
        # Shutdown can hang when the terminal is gone.
        asyncio.get_running_loop().call_later(1.0, os._exit, 128 + number)
        self.exit(return_code=128 + number)

    @work
    async def _begin(self) -> None:
        """Begin with what the command line says, then replay what is asked for, or offer what was lost."""
        if not self.is_headless:
            keep_memory()
        self.runner.worker.warm()
        self.main_screen.latest.warm()
        self.graphics.warm()
        if self._opening and not await self._repeat(self._opening):
            return
        if self._replay:
            self._say(f"replaying {len(self._replay)} lines of the journal …")
            await self._repeat(self._replay)
            return
        lost = self.file_sync.recovery.lost()
        if lost is not None:
            answer = await self.push_screen_wait(
                ChoicePrompt(lost.question, {"r": "restore changes", "d": "discard changes"})
            )
            if answer == "d" or (answer == "r" and await self._repeat(lost.lines)):
                lost.path.unlink(missing_ok=True)

    async def _repeat(self, lines: Iterable[str]) -> bool:
        """Do what some lines say; whether all of them could be done."""
        try:
            await self.runner.replay(lines, self.action_save)
        except WhatifError as problem:
            self._shown(f"the replay stopped at {problem}")
            return False
        return True

    def on_unmount(self) -> None:
        """Leave nothing open."""
        self.graphics.close()
        self._close()

    def _close(self) -> None:
        self.runner.close()
        self.file_sync.recovery.close()

    @on(ChangeRequested)
    def _inputs(self, event: ChangeRequested) -> None:
        self.runner.ask(event.change)
        self._watch_work()

    def _watch_work(self) -> None:
        if self.runner.busy:
            self.set_timer(_BUSY_SECONDS, self._tell_busy)

    def _tell_busy(self) -> None:
        if self.runner.busy:
            self.main_screen.show(self.state, busy=True)

    def _shown(self, error: str) -> None:
        """Show the study as it is now, or what was wrong; that the file is wrong is not forgotten over other news."""
        self.main_screen.show(self.state, error, busy=self.runner.busy, notice=self._file_error)
        self._say(self.file_sync.write_journal())

    def _say(self, text: str) -> None:
        if text:
            self.notify(toast(text), markup=False)

    def _look(self) -> None:
        """Look after the files: what others wrote, and what would be lost."""
        self.file_sync.write_down()
        if self.file_sync.touched() and not self.runner.busy:
            self._reload()

    def _reload(self) -> None:
        """Take in what others wrote, and tell it."""
        try:
            found = self.file_sync.reload()
        except WhatifError as problem:
            self._file_error = f"the file on disk is invalid, the last valid values are kept: {problem}"
            self._shown("")
            return
        self._file_error = ""
        if found.changes:
            self._say("changed on disk: " + "; ".join(found.changes))
        against = "; ".join(found.conflicts.values())
        if against:
            self.runner.later(lambda: self._shown(f"both you and the file changed {against}; yours is kept"))
        elif not found.changes:
            self._shown("")

    def action_undo(self) -> None:
        """Undo the last change."""
        self.runner.undo()
        self._watch_work()

    def action_redo(self) -> None:
        """Redo the last change undone."""
        self.runner.redo()
        self._watch_work()

    @on(StopRequested)
    def _stop(self) -> None:
        self.runner.stop()

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

    def _write(self) -> None:
        if self.file_sync.conflicts:
            self._saving = self._settle()
        else:
            self._try(self.file_sync.save)

    @work
    async def _settle(self) -> None:
        """Ask whose values are to stand in the file."""
        conflicts = self.file_sync.conflicts
        text = "\n".join(("Both you and the file changed:", "", *conflicts.values()))
        answer = await self.push_screen_wait(ChoicePrompt(text, {"m": "write mine", "t": "take theirs"}))
        if answer == "t":
            for path in conflicts:
                self.runner.ask(Revert(path))
        if answer:
            self.runner.later(lambda: self._try(self.file_sync.save))
            await self.runner.idle()

    def _try(self, work: Callable[[], str]) -> None:
        """Do something with a file, and tell how it went."""
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
        path = self.file_sync.file.path
        name = await self.push_screen_wait(
            TextPrompt("Save the scenario to", path.name if self.file_sync.shipped else str(path))
        )
        if name and await may_write(self, toml_path(name)):
            self.runner.later(lambda: self._try(lambda: self.file_sync.save_as(toml_path(name))))
            await self.runner.idle()

    def action_copy(self, what: str) -> None:
        """Copy what is on the screen, as a command line or as a TOML patch."""
        self._try(lambda: self._copied(what))

    def _copied(self, what: str) -> str:
        text, place = self.file_sync.copied(what, self.main_screen.page.command)
        self.copy_to_clipboard(text)
        return f"copied{f', also to {place}' if place else ''}:\n{text}"

    @work
    async def action_platform(self) -> None:
        """Go to another platform."""
        from whatif.studies.choice_lists import platform_choices  # noqa: PLC0415 - not for the first frame

        rows = await asyncio.to_thread(platform_choices, self.state.session.scenario)
        name = await self.push_screen_wait(PickList("platform", rows, self.state.platform_name or ""))
        if name:
            self.post_message(ChangeRequested(Adopt(name)))

    @on(EditorAsked)
    @work
    async def _edit_file(self, event: EditorAsked) -> None:
        """Open a file in the editor, then take in what changed."""
        try:
            self._say(await import_module("whatif.tui.file_editor").edit_file(self, event.path))
        except WhatifError as problem:
            self._shown(str(problem))
        else:
            self._look()

    @work
    async def action_journal(self) -> None:
        """Write the journal to a file, to be replayed."""
        name = await self.push_screen_wait(TextPrompt("Save the journal to", "whatif.journal"))
        if name and await may_write(self, Path(name).expanduser()):
            self._say(self.file_sync.save_journal(Path(name).expanduser()))

    @work
    async def action_report(self) -> None:
        """Write a report about the values and the sweep as they are."""
        name = await self.push_screen_wait(TextPrompt("Write a report to", "report.html"))
        path = Path(name).expanduser()
        if not name or not await may_write(self, path):
            return
        inputs, report = self.state.session.inputs, import_module("whatif.tui.report_job").report
        self._say(f"writing {path}")
        try:
            self._say(await run_once(report, EvaluationRequest(inputs.scenario, inputs.grid), path))
        except WhatifError as problem:
            self._shown(str(problem))

    @on(FileAsked)
    @work
    async def _open(self, event: FileAsked) -> None:
        """Open another scenario in place of this one."""
        if not await self._may_leave("open it"):
            return
        unsaved = self.state.unsaved()
        try:
            scenario = Scenario.open(event.source, folders=self.state.session.scenario.folders)
            session = await run_once(Session.start, scenario)
        except WhatifError as problem:
            self._shown(str(problem))
            return
        # Keys were pressed meanwhile.
        if self.state.unsaved() != unsaved and not await self._may_leave("open it"):
            return
        while not isinstance(self.screen, MainScreen):
            self.pop_screen()
        self.file_sync.recovery.forget()
        self._close()
        self._start(session.scenario, session)
        await self.switch_screen(MainScreen(self.state))
        self.runner.worker.warm()

    async def _may_leave(self, words: str) -> bool:
        """Whether nothing is unsaved, or the person says what becomes of it."""
        unsaved = self.at_stake()
        if not unsaved:
            return True
        lines = "\n".join(f"{path} = {text}" for path, text in list(unsaved.items())[:12])
        text = f"Not saved to {self.file_sync.file.path}:\n\n{lines}"
        answers = {"s": f"save and {words}", "d": f"discard changes and {words}"}
        answer = await self.push_screen_wait(ChoicePrompt(text, answers))
        if answer == "s":
            self.action_save()
            await self.runner.idle()
            if self._saving is not None:
                await self._saving.wait()
            if not self.state.unsaved() and self.state.at_stake():
                await self.write_variants()
            return not self.state.at_stake()
        return answer == "d"

    @work
    async def action_quit(self) -> None:  # type: ignore[override]
        """Quit the program."""
        if await self._may_leave("quit"):
            self.file_sync.recovery.forget()
            self.exit()

    def action_help_quit(self) -> None:
        """Report which key quits."""
        self._say("q quits")
