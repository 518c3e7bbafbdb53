"""What all pages have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from textual.containers import Container
from textual.widget import Widget

from whatif.tui.commands import Choose, Show
from whatif.tui.events import ChangeAsked
from whatif.tui.state import ExplorerState, View


class Job(NamedTuple):
    """What a page wants computed beside: a function of a module, and what it is called with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tells: bool = False
    """Whether the function has one more argument, by which it hands over what there is before its answer."""


def stepped(choices: Sequence[str], present: str, steps: int = 1) -> str:
    """The choice some steps after the present one, round and round; from one that is none of them, as from the first.

    `choices` must not be empty.
    """
    at = choices.index(present) if present in choices else 0
    return choices[(at + steps) % len(choices)]


class Page(Container):
    """One of the screens. `show` draws at once what is at hand; what takes long is gathered beside and `take`n.

    A page is only shown while it is in sight. Its bindings work wherever the focus is on the desk.
    """

    NAME: ClassVar[str]
    WIDE: ClassVar[bool] = False
    """Whether the page is worth more than the parameters beside it."""

    def __init__(self) -> None:
        super().__init__(id=self.NAME)
        self._study: ExplorerState | None = None

    @property
    def command(self) -> str:
        """The command line that gives what is in sight; empty for that of the sweep."""
        return ""

    def show(self, study: ExplorerState) -> None:
        """Show a study."""
        raise NotImplementedError

    def offers(self, action: str) -> bool:
        """Whether one of the page's keys can do something now."""
        return True

    def ask(self, key: str, value: str) -> None:
        """Ask for another look."""
        self.post_message(ChangeAsked(Show(key, value)))

    def choose(self, key: str, value_in: Callable[[View], str]) -> None:
        """Ask for a look that follows from the one asked for last, which may not be shown yet."""
        self.post_message(ChangeAsked(Choose(key, value_in)))

    def action_turn(self, key: str) -> None:
        """Turn an entry of the view to its next choice."""
        self.choose(key, lambda view: view.next_of(key))

    def action_table(self) -> None:
        """Show the picture, or the table of its numbers."""
        self.action_turn("picture")

    def job(self, study: ExplorerState) -> Job | None:
        """What to compute beside for a study; None where nothing is missing."""
        return None

    def take(self, value: Any) -> None:
        """Show what was computed beside for the study shown last, or what is told of it before."""

    def focus_first(self, widgets: Iterable[Widget]) -> None:
        """Give the keys to the first of the widgets that is in sight and takes them."""
        for widget in widgets:
            if widget.focusable and all(node.display for node in widget.ancestors_with_self):
                widget.focus()
                return

    def enter(self) -> None:
        """Take the focus, where the page wants it."""
