"""The explorer: a terminal program around one question."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import App, SystemCommand
from textual.screen import Screen

from whatif.engine.result import Question
from whatif.engine.session import Session
from whatif.tui.screens.explore import Explore


class Explorer(App[None]):
    """Opens a question and lets a person change it."""

    TITLE = "whatif"
    CSS_PATH = "explorer.tcss"

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._session = Session.start(question)

    def on_mount(self) -> None:
        """Open the first screen; with sixteen colours, in those of the terminal."""
        if self.console.color_system == "standard" and not self.theme.startswith("ansi"):
            self.theme = "ansi-dark"
        self.push_screen(Explore(self._session))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The commands of Textual and those of the screen."""
        yield from super().get_system_commands(screen)
        if isinstance(screen, Explore):
            yield from screen.commands()
