"""Bases of the pages that read files: of all of them, and of those that fit measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from textual import work
from textual.content import Content
from textual.widgets import Static

from whatif.errors import WhatifError
from whatif.tui.dialogs.windows import TextPrompt
from whatif.tui.files.file_paths import file_names, missing_paths
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.jobs.worker import run_once
from whatif.tui.page_views import MeasurementView, view_kind
from whatif.tui.pages.page import Page
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import V

M = TypeVar("M", bound=MeasurementView)
Read = TypeVar("Read")


class ReadingPage(Page[V], Generic[V, Read]):
    """Base of the pages that read files: a good answer stays until other files allow one too."""

    PANEL: ClassVar[str]
    """Selector of the frame around the picture."""
    WORDS: ClassVar[str]
    """Selector of the words about the answer, or in place of one."""
    NOTHING: ClassVar[str]
    """Text without files."""
    REMEDY: ClassVar[str]
    """Text below the reason why there is no answer."""

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._found: Read | JobRefusal | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files."""
        raise NotImplementedError

    def show(self, state: ExplorerState) -> None:
        """Show the known answer to the files of a state."""
        self.state = state
        if not self.files:
            self._found = None
        self._fill()

    def _fill(self) -> None:
        """Show the state and the answer that are known."""
        found, words = self._found, self.query_one(self.WORDS, Static)
        if found is None or isinstance(found, JobRefusal):
            self.add_class("-empty")
            words.update(self.explanation())
        else:
            self.remove_class("-empty")
            self.draw(found)
            words.update(self.summary(found))
            if self.screen.focused is None:
                self.call_after_refresh(self.enter)
        self.screen.refresh_bindings()

    def draw(self, found: Read) -> None:
        """Draw an answer and its tables."""
        raise NotImplementedError

    def summary(self, found: Read) -> Content:
        """Answer in words, with warnings."""
        raise NotImplementedError

    def explanation(self) -> Content:
        """Text in place of an answer: what is read, how to read something, or why it allows no answer."""
        if isinstance(self._found, JobRefusal):
            return Content(f"{self._found.reason}\n\n{self.REMEDY}")
        return Content(f"reading {', '.join(self.files)} …" if self.files else self.NOTHING)

    async def _readable(self, files: Sequence[str], read: Callable[..., Any], *arguments: object) -> bool:
        """Whether files may replace those that are shown: a good answer is only replaced by another one."""
        if self._found is None or isinstance(self._found, JobRefusal):
            return True
        self.query_one(self.PANEL).border_subtitle = Content(f"reading {', '.join(files)} …")
        try:
            value = await run_once(read, *arguments)
        except WhatifError as problem:
            value = JobRefusal(str(problem))
        if isinstance(value, JobRefusal):
            self._fill()
            self.report(value.reason)
        return not isinstance(value, JobRefusal)


class MeasurementPage(ReadingPage[M, Read]):
    """Base of the fit page and the runs page."""

    COMPUTE: ClassVar[Callable[..., Any]]
    """Function that fits the measurements of a view, or returns a refusal."""
    MEASUREMENTS: ClassVar[str]
    """Kind of the files, for the title of the prompt."""
    COLUMNS: ClassVar[str]
    """Example of columns of CSV files."""
    CHOICE: ClassVar[str]
    """Field of the view that other files reset."""

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._inputs: M | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files and folders."""
        return self.view.files

    def offers(self, action: str) -> bool:
        """Only to read files until some are read."""
        return action in ("open", "columns") or self._found is not None

    @work
    async def action_open(self) -> None:
        """Ask for files of measurements."""
        title = f"{self.MEASUREMENTS}: files or folders, separated by commas"
        present = ", ".join(self.view.files)
        text = await self.app.push_screen_wait(TextPrompt(title, present, check=missing_paths))
        view, files = self.view, file_names(text)
        default = getattr(view_kind(self.NAME)(), self.CHOICE)
        changes: dict[str, Any] = {"files": files, self.CHOICE: default}
        compute = type(self).COMPUTE
        if files and files != view.files and await self._readable(files, compute, replace(view, **changes)):
            if getattr(view, self.CHOICE) != default:
                self.ask(self.CHOICE, default)
            self.ask("files", files)

    @work
    async def action_columns(self) -> None:
        """Ask for the columns of CSV files."""
        present = self.view.columns or self.COLUMNS
        text = await self.app.push_screen_wait(TextPrompt("Columns of CSV files, as NAME=HEADING [UNIT]", present))
        if text:
            self.ask("columns", text)
