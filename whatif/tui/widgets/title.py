"""The line on top: the names of program and scenario, the question, and the groups of pages with their keys."""

from __future__ import annotations

from typing import Final, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from whatif.plotting.description import shorten
from whatif.tui.page_registry import GROUPS, PageGroup, group_of, pages_of
from whatif.tui.widgets.unchanged import KeptStatic

_BADGE: Final = 9
"""Width of the name of the program."""
_QUESTION: Final = 12
"""Least width of the question; on narrow screens the names of the groups replace it."""
_SPACES: Final = 2
"""Spaces around the name of the scenario, which replaces the question, or, in less room, that of the program."""


class Title(Horizontal):
    """Title bar: the open scenario and the pages."""

    def compose(self) -> ComposeResult:
        """Name, question and pages."""
        yield KeptStatic("whatif", id="badge", markup=False)
        yield KeptStatic(id="question", markup=False)
        yield Pages(id="pages")

    def show(self, question: str, name: str, page: str, unsaved: int) -> None:
        """Show another question, or the name of the scenario in little room, and page; a star marks unsaved changes."""
        pages, asked, width = self.query_one(Pages), self.query_one("#question", KeptStatic), self.app.size.width
        pages.show(page, width)
        room = width - _BADGE - pages.cells
        asked.display = room >= min(len(name) + _SPACES, _QUESTION)
        badge = "whatif" if asked.display else shorten(name, max(_BADGE + room - _SPACES - 1, 1))
        text, shown = f"{badge}{'*' if unsaved else ' '}", self.query_one("#badge", KeptStatic)
        shown.update(text, layout=len(text) != len(str(shown.content)))
        asked.update(Content(question if room >= _QUESTION else name))


class Word(NamedTuple):
    """Part of the line of pages: its text and the action of a click on it."""

    text: str
    action: str
    present: bool = False


class Pages(KeptStatic):
    """The groups of pages with their keys, and the pages of the present group."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, markup=False)
        self._words: list[Word] = []

    @property
    def cells(self) -> int:
        """Width of the line."""
        return sum(len(word.text) for word in self._words)

    def show(self, page: str, width: int) -> None:
        """Show which page is visible."""
        before, self._words = self._words, page_words(page, width)
        parts = ((word.text, "bold reverse $text-primary" if word.present else "$text-muted") for word in self._words)
        self.update(Content.assemble(*parts), layout=before != self._words)

    async def on_click(self, event: events.Click) -> None:
        """Go to the page or the group under the mouse."""
        end = 0
        for word in self._words:
            end += len(word.text)
            if event.x < end:
                await self.run_action(f"screen.{word.action}")
                return


def page_words(page: str, width: int) -> list[Word]:
    """Groups and pages that fit into a width, with one of the pages visible."""
    layouts = ((_roomy(page), _QUESTION), (_tight(page), 0))
    fitting = (words for words, rest in layouts if sum(len(word.text) for word in words) <= width - _BADGE - rest)
    return next(fitting, _narrow(page))


def _roomy(page: str) -> list[Word]:
    """Every group with its name, the present one also with its pages."""
    words = []
    for group in GROUPS:
        names = [item.name for item in pages_of(group.name)]
        present, name = page in names, f" {group.key} {group.title}"
        several = present and len(names) > 1
        words.append(Word(f"{name}:" if several else f"{name} ", _action(group), present and not several))
        words += [Word(f" {name} ", f"go('{name}')", name == page) for name in names if several]
    return words


def _tight(page: str) -> list[Word]:
    """Every group with its name, the present one with the name and number of its page in place of it."""
    return _joined([(_present(group, page) or f"{group.key} {group.title}", group) for group in GROUPS], page)


def _narrow(page: str) -> list[Word]:
    """Every group with its key, the present one with its page."""
    return _joined([(_present(group, page) or group.key, group) for group in GROUPS], page)


def _joined(texts: list[tuple[str, PageGroup]], page: str) -> list[Word]:
    present = group_of(page)
    words = [(Word(text, _action(group), group.name == present), Word(" ", _action(group))) for text, group in texts]
    return [word for pair in words for word in pair][:-1]


def _present(group: PageGroup, page: str) -> str:
    """Key, page and number of the page in its group; empty if the page is in another group."""
    names = [item.name for item in pages_of(group.name)]
    if page not in names:
        return ""
    return (
        f"{group.key} {page} {names.index(page) + 1}/{len(names)}" if len(names) > 1 else f"{group.key} {group.title}"
    )


def _action(group: PageGroup) -> str:
    return f"go_group('{group.name}')"
