"""The explorer: a terminal program around one scenario, with its history, its file and its way out."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final

from textual import on, work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.reactive import Reactive
from textual.screen import Screen
from textual.theme import Theme

from whatif.core.scenario import EvaluationRequest, Scenario
from whatif.core.session import Session
from whatif.errors import WhatifError
from whatif.plotting.description import shorten
from whatif.tui import page_registry
from whatif.tui.command_runner import CommandRunner
from whatif.tui.commands import Adopt, Revert
from whatif.tui.config import Config, default_keys, keymap
from whatif.tui.events import ChangeAsked, FileAsked, StopAsked
from whatif.tui.file_sync import FileSync
from whatif.tui.labels import toast
from whatif.tui.screens.dialogs import Asking, Deciding, TextDialog, may_write, toml_path
from whatif.tui.screens.main_screen import MainScreen
from whatif.tui.state import ExplorerState, View
from whatif.tui.themes import DEFAULT_THEME, THEMES, series_variables
from whatif.tui.worker import Worker, keep_memory

LOOK_SECONDS: Final = 0.7
"""How often the files are looked at, and edits written down for the worst."""
_BUSY_SECONDS: Final = 0.15
_OUR_THEMES: Final = {theme.name: theme for theme in THEMES}


class Explorer(App[None]):
    """Opens a question and lets a person change it."""

    TITLE = "whatif"
    CSS_PATH = "explorer.tcss"
    # From the first moment: everything would be drawn again in the colours of a theme that is set later.
    theme: Reactive[str] = Reactive(DEFAULT_THEME)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undo", "undo", tooltip="Take the last change back", id="app.undo"),
        Binding("U,ctrl+r", "redo", show=False, tooltip="Do again what was undone", id="app.redo"),
        Binding("w", "save", "save", tooltip="Write the edits into the scenario's file", id="app.save"),
        Binding("W", "save_as", show=False, tooltip="Write the scenario to another file", id="app.save_as"),
        Binding("c", "copy('command')", "copy", tooltip="Copy as a command line", id="app.copy_command"),
        Binding("C", "copy('patch')", show=False, tooltip="Copy as a TOML patch", id="app.copy_patch"),
        Binding("P", "platform", show=False, tooltip="Go to another platform", id="app.platform"),
        Binding("H", "report", show=False, tooltip="Write a report: one HTML page", id="app.report"),
        Binding("J", "journal", show=False, tooltip="Write the journal to a file", id="app.journal"),
        Binding("q", "quit", "quit", tooltip="End the program", id="app.quit"),
    ]

    def __init__(
        self,
        question: Scenario,
        config: Config | None = None,
        *,
        opening: Iterable[str] = (),
        replay: Iterable[str] = (),
        journal: Path | None = None,
        recovery_folder: Path | None = None,
    ) -> None:
        super().__init__()
        self.config = config or Config()
        self._keys = keymap(self.config, _all_keys()) if self.config.keys else {}
        self._opening, self._replay = tuple(opening), tuple(replay)
        self._journal, self._recovery_folder = journal, recovery_folder
        self._start(question, Session.start(question))

    def _start(self, question: Scenario, session: Session) -> None:
        """Begin with a question."""
        self._file_error = ""
        self.conductor = CommandRunner(ExplorerState.start(session, View(marker=self.config.marker)), self._shown)
        self.keeper = FileSync(question, self.conductor, self._journal, self._recovery_folder)

    @property
    def study(self) -> ExplorerState:
        """What is shown."""
        return self.conductor.study

    @property
    def desk(self) -> MainScreen:
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
        await self.push_screen(MainScreen(self.study))
        self._listen()
        self.set_interval(LOOK_SECONDS, self._look)
        self.call_after_refresh(self._begin)

    def _listen(self) -> None:
        """Shut down in order on SIGTERM and on SIGHUP, which a closed terminal sends; Windows has no SIGHUP."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None:
                with suppress(NotImplementedError, RuntimeError, ValueError):
                    loop.add_signal_handler(number, self._ended, number)

    def _ended(self, number: int) -> None:
        self.keeper.write_down()
        self.conductor.close()
        self.desk.latest.close()
        # Shutdown can hang when the terminal is gone.
        asyncio.get_running_loop().call_later(1.0, os._exit, 128 + number)
        self.exit(return_code=128 + number)

    @work
    async def _begin(self) -> None:
        """Begin with what the command line says, then replay what is asked for, or offer what was lost."""
        if not self.is_headless:
            keep_memory()
        self.conductor.beside.warm()
        self.desk.latest.warm()
        if self._opening and not await self._repeat(self._opening):
            return
        if self._replay:
            await self._repeat(self._replay)
            return
        lost = self.keeper.recovery.lost()
        if lost is not None:
            text = "\n".join(
                (
                    "An earlier session ended with edits that were not saved:",
                    "",
                    *(shorten(line, 76) for line in lost.lines[:12]),
                )
            )
            answer = await self.push_screen_wait(Deciding(text, {"r": "bring them back", "d": "drop them"}))
            if answer == "d" or (answer == "r" and await self._repeat(lost.lines)):
                lost.path.unlink(missing_ok=True)

    async def _repeat(self, lines: Iterable[str]) -> bool:
        """Do what some lines say; whether all of them could be done."""
        try:
            await self.conductor.replay(lines, self.action_save)
        except WhatifError as problem:
            self._shown(f"the replay stopped at {problem}")
            return False
        return True

    def on_unmount(self) -> None:
        """Leave nothing open."""
        self._close()

    def _close(self) -> None:
        self.conductor.close()
        self.keeper.recovery.close()

    @on(ChangeAsked)
    def _asked(self, event: ChangeAsked) -> None:
        self.conductor.ask(event.change)
        self._watch_work()

    def _watch_work(self) -> None:
        if self.conductor.busy:
            self.set_timer(_BUSY_SECONDS, self._tell_busy)

    def _tell_busy(self) -> None:
        if self.conductor.busy:
            self.desk.show(self.study, busy=True)

    def _shown(self, error: str) -> None:
        """Show the study as it is now, or what was wrong; that the file is wrong is not forgotten over other news."""
        self.desk.show(self.study, error, busy=self.conductor.busy, notice=self._file_error)
        self._say(self.keeper.write_journal())

    def _say(self, text: str) -> None:
        if text:
            self.notify(toast(text), markup=False)

    def _look(self) -> None:
        """Look after the files: what others wrote, and what would be lost."""
        self.keeper.write_down()
        if self.keeper.touched() and not self.conductor.busy:
            self._reload()

    def _reload(self) -> None:
        """Take in what others wrote, and tell it."""
        try:
            found = self.keeper.reload()
        except WhatifError as problem:
            self._file_error = f"the file on disk cannot be used, the last good values stay: {problem}"
            self._shown("")
            return
        self._file_error = ""
        if found.changes:
            self._say("changed on disk: " + "; ".join(found.changes))
        against = "; ".join(found.conflicts.values())
        if against:
            self.conductor.later(lambda: self._shown(f"both you and the file changed {against}; yours is kept"))
        elif not found.changes:
            self._shown("")

    def action_undo(self) -> None:
        """Take the last change back."""
        self.conductor.undo()
        self._watch_work()

    def action_redo(self) -> None:
        """Do again what was undone last."""
        self.conductor.redo()
        self._watch_work()

    @on(StopAsked)
    def _stop(self) -> None:
        self.conductor.stop()

    def action_save(self) -> None:
        """Write the edits into the scenario's file; one that came with the program is written elsewhere."""
        self.conductor.later(self._save)
        self._watch_work()

    def _save(self) -> None:
        if self.keeper.shipped and self.study.unsaved():
            self.action_save_as()
            return
        if self.keeper.touched() or self._file_error:
            self._reload()
        if not self._file_error or self.keeper.file.gone:
            self.conductor.later(self._write)

    def _write(self) -> None:
        if self.keeper.conflicts:
            self._settle()
        else:
            self._try(self.keeper.save)

    @work
    async def _settle(self) -> None:
        """Ask whose values are to stand in the file."""
        conflicts = self.keeper.conflicts
        text = "\n".join(("Both you and the file changed:", "", *conflicts.values()))
        answer = await self.push_screen_wait(Deciding(text, {"m": "write mine", "t": "take theirs"}))
        if answer == "t":
            for path in conflicts:
                self.conductor.ask(Revert(path))
        if answer:
            self.conductor.later(lambda: self._try(self.keeper.save))

    def _try(self, work: Callable[[], str]) -> None:
        """Do something with a file, and tell how it went."""
        try:
            self._say(work())
        except WhatifError as problem:
            self.conductor.error = str(problem)
            self._shown(str(problem))
        else:
            self._shown("")

    @work
    async def action_save_as(self) -> None:
        """Write the scenario, with its edits, to another file."""
        path = self.keeper.file.path
        name = await self.push_screen_wait(
            Asking("Write the scenario to", path.name if self.keeper.shipped else str(path))
        )
        if name and await may_write(self, toml_path(name)):
            self.conductor.later(lambda: self._try(lambda: self.keeper.save_as(toml_path(name))))

    def action_copy(self, what: str) -> None:
        """Copy what is on the screen, as a command line or as a TOML patch."""
        text, place = self.keeper.copied(what, self.desk.page.command)
        self.copy_to_clipboard(text)
        self._say(f"copied{f', also to {place}' if place else ''}:\n{text}")

    @work
    async def action_platform(self) -> None:
        """Go to another platform."""
        from whatif.studies.platform_comparison import known_platforms  # noqa: PLC0415 - not for the first frame

        names = known_platforms(self.study.session.question)
        name = await self.push_screen_wait(Asking("Which platform?", "", names))
        if name:
            self.post_message(ChangeAsked(Adopt(name)))

    @work
    async def action_journal(self) -> None:
        """Write the journal to a file, to be replayed."""
        name = await self.push_screen_wait(Asking("Write the journal to", "whatif.journal"))
        if name and await may_write(self, Path(name).expanduser()):
            self._say(self.keeper.save_journal(Path(name).expanduser()))

    @work
    async def action_report(self) -> None:
        """Write a report about the values and the sweep as they are."""
        name = await self.push_screen_wait(Asking("Write a report to", "report.html"))
        path, writer = Path(name).expanduser(), Worker()
        if not name or not await may_write(self, path):
            return
        asked, report = self.study.session.asked, import_module("whatif.tui.report_job").report
        self._say(f"writing {path}")
        try:
            self._say(await writer.run(report, EvaluationRequest(asked.question, asked.grid), path))
        except WhatifError as problem:
            self._shown(str(problem))
        finally:
            writer.close()

    @on(FileAsked)
    @work
    async def _open(self, event: FileAsked) -> None:
        """Open another scenario in place of this one."""
        if not await self._may_leave("open it"):
            return
        unsaved, loader = self.study.unsaved(), Worker()
        try:
            question = Scenario.open(event.source, folders=self.study.session.question.folders)
            session = await loader.run(Session.start, question)
        except WhatifError as problem:
            self._shown(str(problem))
            return
        finally:
            loader.close()
        # Keys were pressed meanwhile.
        if self.study.unsaved() != unsaved and not await self._may_leave("open it"):
            return
        while not isinstance(self.screen, MainScreen):
            self.pop_screen()
        self.keeper.recovery.forget()
        self._close()
        self._start(session.question, session)
        await self.switch_screen(MainScreen(self.study))
        self.conductor.beside.warm()

    async def _may_leave(self, words: str) -> bool:
        """Whether nothing is unsaved, or the person says what becomes of it."""
        unsaved = self.study.unsaved()
        if not unsaved:
            return True
        lines = "\n".join(f"{path} = {text}" for path, text in list(unsaved.items())[:12])
        text = f"Not saved to {self.keeper.file.path}:\n\n{lines}"
        answers = {"s": f"save and {words}", "d": f"drop them and {words}"}
        answer = await self.push_screen_wait(Deciding(text, answers))
        if answer == "s":
            self.action_save()
            await self.conductor.idle()
            return not self.study.unsaved()
        return answer == "d"

    @work
    async def action_quit(self) -> None:  # type: ignore[override]
        """End the program."""
        if await self._may_leave("quit"):
            self.keeper.recovery.forget()
            self.exit()

    def action_help_quit(self) -> None:
        """Tell which key ends the program."""
        self._say("q ends the program")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The commands of Textual and those of the program."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, MainScreen):
            yield from screen.commands(self)


def _all_keys() -> dict[str, str]:
    """Default keys of every binding; imports all widgets and pages, so only for a person with keys of their own."""
    from whatif.tui.widgets.cursor_list import CursorList  # noqa: PLC0415
    from whatif.tui.widgets.data_table import TableView  # noqa: PLC0415
    from whatif.tui.widgets.parameter_tree import ParameterTree  # noqa: PLC0415
    from whatif.tui.widgets.prompt import Prompt, PromptInput  # noqa: PLC0415
    from whatif.tui.widgets.sweep_plot import PlotView  # noqa: PLC0415
    from whatif.tui.widgets.why_tree import WhyTree  # noqa: PLC0415

    widgets = (ParameterTree, TableView, PlotView, CursorList, WhyTree, PromptInput, Prompt)
    screens = (Explorer, MainScreen, TextDialog, Deciding, Asking)
    return default_keys((*screens, *widgets), page_registry.all_bindings())
