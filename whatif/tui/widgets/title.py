"""The line on top: the name of the program, the question, and the pages with their keys."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from whatif.tui.page_registry import PageEntry, screens

# Room for the full names of the pages, or for the beginnings of them, beside some words of the question.
_ROOMY, _TIGHT = 154, 120


class Title(Horizontal):
    """Tells where one is and where one can go."""

    def compose(self) -> ComposeResult:
        """Name, question and pages."""
        yield Static("whatif", id="badge", markup=False)
        yield Static(id="question", markup=False)
        yield Pages(id="pages", markup=False)

    def show(self, scenario: str, page: str, unsaved: int) -> None:
        """Show another question or page; a star says that something is not saved."""
        self.query_one("#badge", Static).update(f"whatif{'*' if unsaved else ' '}", layout=False)
        self.query_one("#question", Static).update(Content(scenario), layout=False)
        self.query_one(Pages).show(page, self.app.size.width)


class Pages(Static):
    """The pages with their numbers; where there is little room only the present one with its name."""

    def __init__(self, *, id: str | None = None, markup: bool = True) -> None:  # noqa: A002
        super().__init__(id=id, markup=markup)
        self._words: list[str] = []

    def show(self, page: str, width: int) -> None:
        """Show which page is in sight."""
        before, self._words = self._words, [_word(entry, page, width) for entry in screens()]
        styles = ("bold reverse $text-primary" if entry.name == page else "$text-muted" for entry in screens())
        self.update(Content.assemble(*zip(self._words, styles, strict=True)), layout=before != self._words)

    async def on_click(self, event: events.Click) -> None:
        """Go to the page under the mouse."""
        end = 0
        for entry, word in zip(screens(), self._words, strict=True):
            end += len(word)
            if event.x < end:
                await self.run_action(f"screen.go('{entry.name}')")
                return


def _word(entry: PageEntry, page: str, width: int) -> str:
    title = entry.title
    shown = title if width >= _ROOMY or entry.name == page else title[:4] if width >= _TIGHT else ""
    return f" {entry.key} {shown}".rstrip() + " "
