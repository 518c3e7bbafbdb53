"""The one-line editor in the tree: a value, a range, or words to filter by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from whatif.plotting.description import shorten
from whatif.tui.events import Purpose


class PromptInput(Input):
    """Input whose enter key is shown in the footer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "accept", tooltip="Accept the text", key_display="⏎", id="line.accept")
    ]


class Prompt(Horizontal):
    """Shown while the user types; reports the text, or that the user left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", tooltip="Leave the text as it was", key_display="esc", id="line.leave")
    ]

    @dataclass(eq=False)
    class Typed(Message):
        """The text changed, or was accepted with enter."""

        purpose: Purpose
        text: str
        accepted: bool

    @dataclass(eq=False)
    class Left(Message):
        """The user left without accepting."""

        purpose: Purpose

    def __init__(self) -> None:
        super().__init__()
        self.purpose = Purpose.VALUE
        self.path = ""
        self.original = ""

    def compose(self) -> ComposeResult:
        """A caption and the input."""
        yield Static(id="caption", markup=False)
        yield PromptInput(compact=True)

    @property
    def line(self) -> PromptInput:
        """The input."""
        return self.query_one(PromptInput)

    def ask(self, purpose: Purpose, path: str, text: str) -> None:
        """Let the user type, starting from a text."""
        self.purpose, self.path, self.original = purpose, path, text
        self.query_one("#caption", Static).update(_caption(purpose, path))
        self.display = True
        self.line.value = text
        self.line.focus()
        self.mark(wrong=False)

    def mark(self, *, wrong: bool) -> None:
        """Show whether the text was refused."""
        self.set_class(wrong, "-wrong")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.display:
            self.mark(wrong=False)
            self.post_message(self.Typed(self.purpose, event.value, accepted=False))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Typed(self.purpose, event.value, accepted=True))

    def action_leave(self) -> None:
        """Cancel typing."""
        self.post_message(self.Left(self.purpose))


def _caption(purpose: Purpose, path: str) -> str:
    name = shorten(path.rpartition(".")[2], 20)
    words = {
        Purpose.VALUE: f"{name} =",
        Purpose.RANGE: f"{name} over",
        Purpose.SECOND: f"{name} also over",
        Purpose.TARGET: f"{name} for",
    }
    return words.get(purpose, "/")
