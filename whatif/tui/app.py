"""The explorer: a terminal program around one scenario, from its start to its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, Final

from textual import on, work
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.reactive import Reactive
from textual.theme import Theme

from whatif.core.scenario import Scenario
from whatif.core.session import Session
from whatif.errors import WhatifError
from whatif.plain_text import is_plain
from whatif.plugins import resolve
from whatif.tui.commands.command_runner import CommandRunner
from whatif.tui.commands.explorer_commands import Adopt
from whatif.tui.commands.history import lines_to
from whatif.tui.config import Config, keymap
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import ChoicePrompt
from whatif.tui.events import ChangeRequested, FileRequested, StopRequested
from whatif.tui.files.file_commands import FileCommands
from whatif.tui.files.file_sync import FileSync
from whatif.tui.jobs.worker import run_once
from whatif.tui.keys.all_keys import all_keys
from whatif.tui.keys.key_bindings import extra_binding
from whatif.tui.keys.keys_in_order import before_window
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.state import ExplorerState, View
from whatif.tui.terminal.graphics import Graphics
from whatif.tui.terminal.process_memory import keep_memory, share_arena
from whatif.tui.terminal.signals import on_end
from whatif.tui.terminal.visible_lines import PLAIN_LINES, VISIBLE_LINES
from whatif.tui.themes import DEFAULT_THEME, THEMES, series_variables

LOOK_SECONDS: Final = 0.7
"""Interval of checking the files, and of saving edits for recovery."""
_FIRST_RUN: Final = "ctrl+n: a scenario of your own, from your machine and your application"
_OUR_THEMES: Final = {theme.name: theme for theme in THEMES}


class Explorer(FileCommands):
    """Explorer of a scenario: opens it and lets the user change it."""

    TITLE = "whatif"
    CSS_PATH = "explorer.tcss"
    COMMANDS = {partial(resolve, "whatif.tui.palette.provider:PaletteProvider")}  # noqa: RUF012 - as Textual declares it
    # From the first moment: everything would be drawn again in the colours of a theme that is set later.
    theme: Reactive[str] = Reactive(DEFAULT_THEME)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo", tooltip="Undo the last change", id="app.undo"),
        extra_binding("app.redo", "U,ctrl+r", "redo", "redo", "Redo the last change undone"),
        Binding("w", "save", "save", tooltip="Save the edits to the scenario's file", id="app.save"),
        extra_binding("app.save_as", "W", "save_as", "save as", "Save the scenario to another file"),
        extra_binding("app.copy_command", "c", "copy('command')", "copy", "Copy the command that prints this answer"),
        extra_binding("app.copy_patch", "C", "copy('patch')", "copy TOML", "Copy the edits as TOML"),
        extra_binding("app.platform", "P", "platform", "platform", "Choose another platform"),
        extra_binding("app.report", "H", "report", "report", "Write a report, one HTML page"),
        extra_binding("app.journal", "J", "journal", "journal", "Save the journal of all commands"),
        extra_binding("app.suspend", "ctrl+z", "suspend_process", "", "Suspend the program; fg resumes it"),
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
        self.graphics = Graphics(self, os.environ, asked=self.config.marker == "pixels")
        self._start(scenario, Session.start(scenario))

    def _start(self, scenario: Scenario, session: Session) -> None:
        """Start with a scenario and an empty history."""
        self._file_error = ""
        marker = self.config.marker or ("pixels" if self.graphics.available else "braille")
        self.runner = CommandRunner(
            ExplorerState.start(session, View(marker=marker, picture="table" if self._is_plain else "plot")),
            self._shown,
        )
        self.file_sync = FileSync(scenario, self.runner, self._journal, self._recovery_folder)

    @cached_property
    def available_themes(self) -> dict[str, Theme]:
        """Textual's themes and ours; cached, as the current theme is asked for 800 times before the first frame."""
        return super().available_themes | _OUR_THEMES

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's filters, the one that lets no control character of a file reach the terminal, and that of plain
        text."""
        return [*super().get_line_filters(), VISIBLE_LINES, *([PLAIN_LINES] if self._is_plain else [])]

    @property
    def _is_plain(self) -> bool:
        """Whether words take the place of pictures and frames."""
        return self.config.plain or is_plain()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Colours of curves for themes without their own."""
        return series_variables(self.current_theme)

    async def on_mount(self) -> None:
        """Choose the theme, with sixteen colours that of the terminal; then open the main screen."""
        terminal = self.console.color_system == "standard"
        self.theme = self.config.theme or ("ansi-dark" if terminal else DEFAULT_THEME)
        self.set_keymap(self._keys)
        # After the update of all styles that the theme has queued: else the main screen would be styled twice.
        self.call_next(self._open_main_screen)

    async def _open_main_screen(self) -> None:
        self.main_screen = MainScreen(self.state, self.jobs)
        await self.push_screen(self.main_screen)
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
        """Start with the options of the command line, then replay a journal or offer to restore lost edits."""
        share_arena()
        if not self.is_headless:
            keep_memory()
        self.runner.worker.warm()
        self.main_screen.latest.warm()
        self.graphics.warm()
        if self._opening and not await self._repeat(self._opening):
            return
        if self._replay:
            await self._repeat(self._replay)
            return
        if self.file_sync.shipped and not self._opening and not any(Path().glob("*.toml")):
            self._say(_FIRST_RUN)
        lost = self.file_sync.recovery.lost()
        if lost is not None:
            answer = await self.push_screen_wait(
                ChoicePrompt(lost.question, {"r": "restore changes", "d": "discard changes"}, leave="decide later")
            )
            if answer == "d" or (answer == "r" and await self._repeat(lost.lines)):
                lost.path.unlink(missing_ok=True)

    async def _repeat(self, lines: Iterable[str]) -> bool:
        """Run the commands of some lines; whether all of them succeeded."""
        lines, error = tuple(lines), ""
        tell = self.main_screen.tell_activity
        try:
            await self.runner.replay(lines, self.action_save, lambda at: tell(f"replaying line {at} of {len(lines)}"))
        except WhatifError as problem:
            error = f"the replay stopped at {problem}"
        tell("")
        if error:
            self._shown(error)
        return not error

    def on_unmount(self) -> None:
        """Leave nothing open."""
        self.graphics.close()
        self._close()
        self.jobs.close()

    def _close(self) -> None:
        self.runner.close()
        self.file_sync.recovery.close()

    @on(ChangeRequested)
    def _change_requested(self, event: ChangeRequested) -> None:
        self.runner.ask(event.change)
        self._watch_work()

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

    @work
    async def action_platform(self) -> None:
        """Go to another platform."""
        from whatif.studies.choice_lists import platform_choices  # noqa: PLC0415 - not for the first frame

        rows = await before_window(self, platform_choices, self.state.session.scenario)
        name = await self.push_screen_wait(PickList("platform", rows, self.state.platform_name or ""))
        if name:
            self.post_message(ChangeRequested(Adopt(name)))

    @on(FileRequested)
    @work
    async def _open(self, event: FileRequested) -> None:
        """Open another scenario in place of this one."""
        if not await self._may_leave("open it"):
            return
        left = lines_to(self.state)
        try:
            scenario = Scenario.open(event.source, folders=self.state.session.scenario.folders)
            session = await run_once(Session.start, scenario)
        except WhatifError as problem:
            self._shown(str(problem))
            return
        # Keys were pressed meanwhile.
        if lines_to(self.state) != left and not await self._may_leave("open it"):
            return
        while not isinstance(self.screen, MainScreen):
            self.pop_screen()
        self.file_sync.recovery.forget()
        self._close()
        self._start(session.scenario, session)
        self.main_screen = MainScreen(self.state, self.jobs)
        await self.switch_screen(self.main_screen)
        for change in event.changes:
            self.runner.ask(change)
        self.runner.worker.warm()

    async def _answer(self, text: str, lines: Sequence[str], answers: dict[str, str]) -> str:
        """Key that answers a question about some lines; empty after escape."""
        return await self.push_screen_wait(ChoicePrompt("\n".join((text, "", *lines[:12])), answers))

    async def _may_leave(self, words: str) -> bool:
        """Whether nothing would be lost, or the user saves or discards it."""
        discard = {"d": f"discard changes and {words}"}
        for view in self.state.unsaved_views():
            text = f"Not saved; w on page {view.PAGE} saves:"
            if await self._answer(text, _lines(view.unsaved()), discard) != "d":
                return False
        unsaved = self.state.at_stake()
        if not unsaved:
            return True
        shipped = self.file_sync.shipped
        text = (
            "Not saved; s asks for the name of your copy:" if shipped else f"Not saved to {self.file_sync.file.path}:"
        )
        answer = await self._answer(text, _lines(unsaved), {"s": f"save and {words}", **discard})
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
        jobs = [f"{job.title}, {job.words}" for job in self.jobs.items if job.active]
        if jobs and not await self._answer("Quitting stops these jobs:", jobs, {"x": "stop them and quit"}):
            return
        if await self._may_leave("quit"):
            self.file_sync.recovery.forget()
            self.exit()

    def action_help_quit(self) -> None:
        """Report which key quits."""
        self._say("q quits")


def _lines(values: Mapping[str, str]) -> list[str]:
    return [f"{name} = {value}" for name, value in values.items()]
