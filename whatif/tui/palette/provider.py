"""The palette: one list of everything that has a name, the best hits first, one line each."""

from __future__ import annotations

import asyncio
from itertools import chain

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.style import Style

from whatif.plotting.description import text_cells
from whatif.schema.catalogue import catalogue
from whatif.tui.files.file_paths import catalogue_folders
from whatif.tui.labels import MUTED
from whatif.tui.palette.palette_entries import (
    Entry,
    best,
    commands,
    file_entries,
    model_entries,
    pages,
    system_commands,
)
from whatif.tui.screens.main_screen import MainScreen

_NAME_WIDTH, _TAG_WIDTH = 24, 9


class PaletteProvider(Provider):
    """Entries that fit what is typed; without a text, all commands and pages."""

    @property
    def _faint(self) -> str:
        """Style of faint text; in the terminal's own colours none, which would stay white in a white row."""
        return "" if self.app.current_theme.ansi else MUTED

    async def startup(self) -> None:
        """Gather the entries once; folders are read in a thread, and files that did not change are known."""
        screen = self.screen
        self._commands = list(system_commands(screen))
        self._model: list[Entry] = []
        self._files: asyncio.Task[list[Entry]] | None = None
        if isinstance(screen, MainScreen):
            self._commands = [*commands(screen), *self._commands, *pages(screen)]
            self._model = list(model_entries(screen))
            self._files = asyncio.create_task(_files(screen))

    async def discover(self) -> Hits:
        """Commands and pages."""
        for entry in self._commands:
            yield DiscoveryHit(_line(entry, self._faint), entry.run, text=entry.name)

    async def search(self, query: str) -> Hits:
        """Entries that fit a text, the best first."""
        files = [] if self._files is None else await asyncio.shield(self._files)
        for rank, entry in enumerate(best(chain(self._commands, self._model, files), query)):
            yield Hit(1 / (1 + rank), _line(entry, self._faint, query, self.match_style), entry.run, text=entry.name)


async def _files(screen: MainScreen) -> list[Entry]:
    folders = catalogue_folders(screen.state.session.scenario)
    return list(file_entries(screen, await asyncio.to_thread(catalogue, folders)))


def _line(entry: Entry, faint: str, query: str = "", style: Style | None = None) -> Content:
    """Name, key or kind, and explanation in one line, the latter two `faint`."""
    gap = " " * max(1, _NAME_WIDTH - len(text_cells(entry.name)))
    tag = entry.key if entry.kind == "command" else entry.kind
    name = Content(entry.name).stylize("bold")
    for word in query.lower().split():
        at = entry.name.lower().find(word)
        if at >= 0 and style is not None:
            name = name.stylize(style, at, at + len(word))
    return Content.assemble(name, gap, (f"{tag:<{_TAG_WIDTH}} ", faint), (entry.words, faint))
