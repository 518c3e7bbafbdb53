"""Windows above the main screen: a text to read, a question to answer, a line to type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from whatif.paths import exists, toml_path
from whatif.tui.widgets.key_bar import KeyBar
from whatif.tui.widgets.labelled_text import LabelledText
from whatif.tui.widgets.prompt import PromptInput


class TextDialog(ModalScreen[None]):
    """A text in full."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,e,q,f1", "dismiss", "close", key_display="esc", id="reading.close"),
        Binding("j,down", "scroll(1)", "Down", show=False, id="reading.down"),
        Binding("k,up", "scroll(-1)", "Up", show=False, id="reading.up"),
    ]

    def __init__(self, text: str | Content, title: str = "") -> None:
        super().__init__()
        self._text = Content(text) if isinstance(text, str) else text
        self._heading = title

    def compose(self) -> ComposeResult:
        """The text in a window that scrolls."""
        with VerticalScroll(id="window") as window:
            window.border_title = Content(self._heading)
            window.border_subtitle = "esc"
            yield LabelledText(self._text)
        yield KeyBar()

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one("#window").scroll_relative(y=lines, animate=False)


class ChoicePrompt(ModalScreen[str]):
    """A question with a few answers, each with its key; escape answers with nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll(1)", "Down", show=False, id="deciding.down"),
        Binding("k,up", "scroll(-1)", "Up", show=False, id="deciding.up"),
        Binding("escape", "dismiss('')", "go back", key_display="esc", id="deciding.leave"),
    ]

    VERTICAL_BREAKPOINTS = [(0, "-few"), (16, "-tall")]  # noqa: RUF012 - declared without ClassVar by Textual

    def __init__(self, text: str, answers: dict[str, str], *, leave: str = "") -> None:
        super().__init__()
        self._text, self._answers = text, answers
        for key, word in answers.items():
            self._bindings.bind(key, f"dismiss('{key}')", word)
        # The footer begins with the answers.
        bound = self._bindings.key_to_bindings
        last = bound.pop("escape")
        bound["escape"] = [replace(item, description=leave or item.description) for item in last]

    def compose(self) -> ComposeResult:
        """The question, and the keys below it."""
        with Vertical(id="window"):
            with VerticalScroll(id="told", can_focus=False):
                yield Static(self._text, markup=False)
            yield Static(Content.assemble("\n", *self._keys()), id="answers", markup=False)
        yield KeyBar()

    def _keys(self) -> list[tuple[str, str]]:
        return [part for key, word in self._answers.items() for part in ((f" {key} ", "reverse"), (f" {word}   ", ""))]

    def action_scroll(self, lines: int) -> None:
        """Move the text."""
        self.query_one("#told").scroll_relative(y=lines, animate=False)


class TextPrompt(ModalScreen[str]):
    """A line to type, with suggestions; escape answers with nothing.

    What `check` finds wrong with a line stands below it, and the window stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('')", "leave", key_display="esc", id="asking.leave"),
    ]

    def __init__(
        self,
        title: str,
        text: str = "",
        check: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__()
        self._heading, self._line, self._check = title, text, check

    def compose(self) -> ComposeResult:
        """The question and the line."""
        with Vertical(id="window"):
            yield Static(self._heading, markup=False)
            yield PromptInput(self._line, compact=True)
            yield Static(id="wrong", markup=False)
        yield KeyBar()

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        wrong = self._check(text) if self._check is not None else ""
        if wrong:
            self.query_one("#wrong", Static).update(wrong)
        else:
            self.dismiss(text)


async def path_to_write(
    app: App[Any], title: str, start: str, path_of: Callable[[str], Path] = toml_path
) -> Path | None:
    """Path of a file that a user names to be written; None after escape, and if an existing file is to stay."""
    name = await app.push_screen_wait(TextPrompt(title, start))
    path = path_of(name) if name else None
    return path if path is not None and await may_write(app, path) else None


async def may_write(app: App[Any], *paths: Path) -> bool:
    """Whether all files may be written: each is new, or the user agrees to replace it."""
    for path in filter(exists, paths):
        text = f"{path} exists; its content will be lost."
        if await app.push_screen_wait(ChoicePrompt(text, {"o": "overwrite it"})) != "o":
            return False
    return True
