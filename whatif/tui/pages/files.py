"""The files page: every scenario, study and platform with its question; open, copy, begin anew, see unsaved edits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from whatif.api.editing import copy_file, difference
from whatif.errors import WhatifError
from whatif.schema.catalogue import CatalogueEntry, catalogue
from whatif.schema.phase_edits import on_disk
from whatif.schema.rewriting import rewritten
from whatif.schema.toml import shown_path
from whatif.tui.commands.explorer_commands import Adopt, study_changes
from whatif.tui.dialogs.windows import TextDialog, path_to_write
from whatif.tui.events import FileRequested, JobRequested, NewScenarioRequested
from whatif.tui.files.file_paths import catalogue_folders, free_file
from whatif.tui.jobs.job import Job
from whatif.tui.pages.page import Page, PageKey
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.data_table import WORDS, Cell, ColumnsView, TableRows, TableView

_HINT = "⏎ opens a scenario or study, adopts a platform"
_COLOURS = {"+": "$text-success", "-": "$text-error", "@": "$text-primary"}


class FilesPage(Page[PageView]):
    """A table of files; enter opens a scenario or a study, or adopts a platform."""

    NAME: ClassVar[str] = "files"
    WIDE: ClassVar[bool] = True
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("new", "n", "new", "new", "Make a new scenario: its machine, its phases"),
        PageKey("copy", "D", "duplicate", "duplicate", "Copy the file under another name"),
        PageKey(
            "difference", "d", "difference", "difference", "Show what differs between the open scenario and its file"
        ),
    )
    DEFAULT_CSS = """
    FilesPage ColumnsView { height: 1fr; max-height: 100%; }
    FilesPage #about { height: auto; max-height: 50%; padding: 0 1; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._entries: tuple[CatalogueEntry, ...] = ()

    def compose(self) -> ComposeResult:
        """The table, and below it more about the file under the cursor."""
        table = ColumnsView(classes="panel")
        table.border_title = "scenarios, studies and platforms"
        yield table
        yield Static(id="about", classes="panel", markup=False)

    def enter(self) -> None:
        """Focus the table."""
        self.query_one(ColumnsView).focus()

    def show(self, state: ExplorerState) -> None:
        """Show which file is open."""
        self.state = state
        self._fill()

    def job(self, state: ExplorerState) -> Job:
        """Look through the folders."""
        return Job(catalogue, (catalogue_folders(state.session.scenario),))

    def take(self, value: tuple[CatalogueEntry, ...]) -> None:
        """Show the files."""
        if not self._entries:
            # The first time the cursor stands on the file that is open.
            present = _file_of(self.state)
            self.query_one(ColumnsView).cursor = next(
                (at for at, entry in enumerate(value) if entry.path == present), 0
            )
        self._entries = value
        self._fill()

    def _fill(self) -> None:
        if self._entries:
            present = _file_of(self.state)
            machine = self.state.platform_name
            rows = tuple(_row(entry, entry.path == present, entry.name == machine) for entry in self._entries)
            titles = ("", "name", "kind", "where", "question or description")
            self.query_one(ColumnsView).show(TableRows(titles, rows, frozenset(range(5))), 2, _HINT)
            self._tell()

    @property
    def _entry(self) -> CatalogueEntry | None:
        table = self.query_one(ColumnsView)
        return self._entries[table.cursor] if table.cursor < len(self._entries) else None

    @on(TableView.Pointed)
    def _tell(self) -> None:
        """Describe the file under the cursor; of the open one also the unsaved changes."""
        entry, about = self._entry, self.query_one("#about", Static)
        if entry is None:
            return
        about.border_title = Content(shown_path(entry.path))
        words = entry.problem or entry.words or "no question in its first lines"
        opened = entry.path == _file_of(self.state)
        unsaved = ""
        with suppress(WhatifError):
            unsaved = self._difference() if opened else ""
        about.update(Content(words) if not unsaved else Content.assemble(words, "\n", coloured(unsaved)))

    def _difference(self) -> str:
        """Differences that saving would write; raise `WhatifError` if it would fail."""
        scenario = self.state.session.scenario
        text = rewritten(scenario.document, scenario.overrides, scenario.platform, scenario.folders)
        return difference(on_disk(scenario.document).text, text, scenario.document.name)

    @on(TableView.Chosen)
    def _chosen(self) -> None:
        entry = self._entry
        if entry is None:
            return
        if entry.problem:
            self.app.push_screen(TextDialog(entry.problem, entry.path.name))
        elif entry.kind == "scenario":
            self.post_message(FileRequested(str(entry.path)))
        elif entry.kind == "study":
            for change in study_changes(str(entry.path)):
                self.request(change)
        else:
            self.request(Adopt(entry.name))

    def action_difference(self) -> None:
        """Show what would be written."""
        try:
            lines = self._difference()
        except WhatifError as problem:
            self.report(str(problem))
        else:
            title = "the open scenario against its file"
            self.app.push_screen(TextDialog(coloured(lines or "nothing differs from the file"), title))

    def action_new(self) -> None:
        """Begin a scenario: its name, its machine, its phases."""
        self.post_message(NewScenarioRequested())

    @work
    async def action_duplicate(self) -> None:
        """Copy the file under the cursor, and the measured runs that it names."""
        entry = self._entry
        if entry is not None:
            path = await path_to_write(self.app, f"Copy {entry.name} to", free_file(entry.name))
            if path is not None:
                self._copy(entry, path)

    def _copy(self, entry: CatalogueEntry, path: Path) -> None:
        """Copy a file, and open the copy of a scenario."""
        try:
            remark = copy_file(entry.path, path)
        except WhatifError as problem:
            self.report(str(problem))
            return
        self.notify(f"copied to {path}{remark}")
        opened = entry.kind == "scenario" and not entry.problem
        self.post_message(FileRequested(str(path)) if opened else JobRequested())


def _file_of(state: ExplorerState) -> Path:
    """File of the open scenario."""
    return Path(state.session.scenario.document.name).resolve()


def _row(entry: CatalogueEntry, opened: bool, machine: bool) -> tuple[Cell, ...]:
    mark = "▶" if opened and entry.kind == "scenario" else "●" if machine and entry.kind == "platform" else ""
    part = "marked" if mark else "text"
    where = "shipped" if entry.shipped else shown_path(entry.path.parent)
    words = Cell(f"✗ {entry.problem}" if entry.problem else entry.words, WORDS)
    return Cell(mark, "marked"), Cell(entry.name, part), Cell(entry.kind, "faint"), Cell(where, "faint"), words


def coloured(lines: str) -> Content:
    """A difference with its lines in colours."""
    parts = [(f"{line}\n", _COLOURS.get(line[:1], "")) for line in lines.splitlines()]
    return Content.assemble(*parts)
