"""The study page: bids of a procurement study within its limits, with values that can be changed."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.errors import WhatifError
from whatif.paths import is_file, toml_path
from whatif.schema.shipped import is_shipped
from whatif.schema.toml import Document
from whatif.tui.commands.study_values import values_in
from whatif.tui.dialogs.pick_list import PickList
from whatif.tui.dialogs.windows import TextPrompt, may_write
from whatif.tui.events import JobRequested
from whatif.tui.files.file_paths import free_file
from whatif.tui.files.scenario_file import Stamp, stamp
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.jobs.study_job import StudyAnswer, StudyRequest, answered, saved, with_value
from whatif.tui.jobs.worker import run_once
from whatif.tui.labels import brief
from whatif.tui.page_views import StudyPageView
from whatif.tui.pages.decision_page import WAITING
from whatif.tui.pages.page import Page, PageKey, PageSubject
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.chart_bars import ChartBars
from whatif.tui.widgets.choice_bar import ChoiceBar
from whatif.tui.widgets.data_table import WORDS, Cell, ColumnsView, TableRows, TableView, table_rows
from whatif.units import counted
from whatif.vocabulary import STUDY_VIEWS

_LOOK_SECONDS: Final = 0.7
_TALL, _WIDE = 26, 60
"""Least height and width for bars."""
_HINT: Final = "⏎ changes a value · v next table"
_NAMED: Final = {"bids": 1, "turns": 1}
"""Columns by view that name a row; two in the others."""
_NOTHING: Final = (
    "No study yet. n opens one, a file or a shipped name such as successor; so does `whatif open STUDY`. "
    "`whatif study --new FILE` writes one to begin with."
)
_REMEDY: Final = "u undoes the last change, R all of them; "


class StudyPage(Page[StudyPageView]):
    """Bids of a procurement study: the recommendation and tables; = changes a price, a limit or another value."""

    NAME: ClassVar[str] = "study"
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 22}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("edit", "equals_sign", "edit", "change", "Change a value of the study: a price, a limit, a weight"),
        PageKey("view", "v", "turn('show')", "table", "Show the next table: bids, jobs, commitments, turns .."),
        PageKey("open", "n", "open", "study", "Open a study: a file, or the name of a shipped one"),
        PageKey("save", "w", "save", "save", "Save the study with its changed values, comments kept"),
        PageKey("reset", "R", "reset", "reset", "Discard all changed values of the study"),
    )
    DEFAULT_CSS = """
    StudyPage #study-answer { height: auto; padding: 0 1; }
    StudyPage #study-table { height: 1fr; max-height: 100%; }
    StudyPage #study-words { height: auto; max-height: 8; }
    StudyPage #study-changed { height: auto; max-height: 2; padding: 0 1; color: $text-warning; }
    StudyPage ChartBars { height: 1; margin-top: 1; }
    StudyPage.-low #study-answer { padding: 0; }
    StudyPage.-low #study-table { border: none; }
    StudyPage.-low #study-words { max-height: 4; }
    StudyPage.-empty ColumnsView, StudyPage.-empty ChartBars, StudyPage.-empty ChoiceBar { display: none; }
    StudyPage.-empty #study-answer { height: 1fr; }
    StudyPage.-empty #study-words { max-height: 100%; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._answer: StudyAnswer | None = None
        self._known: StudyRequest | None = None
        """Request of the visible answer."""
        self._refused: tuple[StudyRequest | None, str] = (None, "")
        self._job: Job | None = None
        self._version = 0
        self._stamps: dict[Path, Stamp] = {}

    def compose(self) -> ComposeResult:
        """The recommendation with the bars of the bids, what is changed, and one of the tables."""
        with Vertical(id="study-answer", classes="panel"):
            yield Static(id="study-words", markup=False)
            yield ChartBars()
        yield Static(id="study-changed", markup=False)
        yield ChoiceBar("study.show", STUDY_VIEWS)
        yield ColumnsView(id="study-table", classes="panel")

    def on_mount(self) -> None:
        """Look at the files of the study now and then."""
        self.set_interval(_LOOK_SECONDS, self.look)

    def enter(self) -> None:
        """Focus the table."""
        self.screen.set_focus(None)
        self.focus_first((self.query_one(ColumnsView),))

    def on_resize(self) -> None:
        """Show the bars if they fit."""
        self.query_one(ChartBars).display = self.size.height >= _TALL and self.size.width >= _WIDE

    @property
    def command(self) -> str:
        """Command line that gives the visible table."""
        if self._known is None:
            return ""
        options = [word for path, text in values_in(self._known.values).items() for word in ("--set", f"{path}={text}")]
        return shlex.join(["whatif", "study", self._known.file, "--show", self._known.show, *options])

    @property
    def message(self) -> str:
        """The recommendation in full, and the remarks on the study."""
        return "" if self._answer is None else "\n".join((*self._answer.words, "", *self._answer.remarks))

    @property
    def subject(self) -> PageSubject:
        """The study and its changed values."""
        view = self.view
        name, changed = Path(view.file).stem or "no study", len(view.unsaved())
        status = (
            f"{counted(changed, 'value')} of the study changed, not saved"
            if changed
            else "no value of the study changed"
        )
        question = name if self._answer is None else self._answer.question
        status = f"{WAITING} · {status}" if self._waiting else status
        return PageSubject(question, name, status if view.file else "no study is open")

    def offers(self, action: str) -> bool:
        """Only another study without one; nothing to save or discard without changed values."""
        if not self.view.file:
            return action == "open"
        return action not in ("save", "reset") or bool(self.view.values)

    def show(self, state: ExplorerState) -> None:
        """Show a state; the last answer to the same study stays until the next one."""
        self.state = state
        view = self.view_in(state.view)
        if self._known is not None and self._known.file != view.file:
            self._answer, self._known, self._stamps = None, None, {}
        self._fill()

    @property
    def _request(self) -> StudyRequest:
        """Request of the present view."""
        return StudyRequest(self.view.file, self.view.values, self.view.show, self._version)

    @property
    def _reason(self) -> str:
        """Reason why the present request was refused; empty without a refusal."""
        request, reason = self._refused
        return reason if request == self._request else ""

    @property
    def _waiting(self) -> bool:
        """Whether the present request has neither an answer nor a refusal."""
        return bool(self.view.file) and self._request != self._known and not self._reason

    def job(self, state: ExplorerState) -> Job | None:
        """Answer the study, unless the answer or the reason of its refusal is known."""
        self._job = Job(answered, (self._request,)) if self._waiting else None
        return self._job

    def take(self, value: StudyAnswer | JobRefusal) -> None:
        """Show an answer; after a refusal show the reason and keep the last answer."""
        if self._job is None:
            return
        (request,) = self._job.arguments
        if isinstance(value, JobRefusal):
            self._refused = request, value.reason
            if self._answer is not None:
                self.report(value.reason)
        else:
            self._answer, self._known, self._refused = value, request, (None, "")
        self._watch(request.file)
        self._fill()

    def _watch(self, file: str) -> None:
        """Look at the files of the study from now on."""
        files = (Path(file),) if self._answer is None else self._answer.files
        self._stamps = {path: self._stamps.get(path) or stamp(path) for path in files}

    def look(self) -> None:
        """Answer the study again after a change of its files."""
        now = {path: stamp(path) for path in self._stamps}
        if self.display and now != self._stamps:
            self._stamps, self._version = now, self._version + 1
            self.post_message(JobRequested())

    def _fill(self) -> None:
        view, found = self.view, self._answer
        self.set_class(found is None, "-empty")
        frame, words = self.query_one("#study-answer"), self.query_one("#study-words", Static)
        frame.border_title = Content(view.file or "study" if found is None else found.question)
        frame.border_subtitle = Content(self._about())
        words.update(Content(self._explanation() if found is None else "\n".join(found.words)))
        self._say_changed()
        if found is not None:
            self._draw(found)
        self.screen.refresh_bindings()

    def _about(self) -> str:
        """File of the study, and the key that shows the remarks."""
        if self._answer is None:
            return ""
        return self.view.file + " · e: remarks" * bool(self._answer.remarks)

    def _explanation(self) -> str:
        """Text in place of an answer."""
        if self._reason:
            return f"{self._reason}\n\n{_REMEDY if self.view.values else ''}n opens another study."
        return f"computing {self.view.file} …" if self.view.file else _NOTHING

    def _say_changed(self) -> None:
        """Changed values with those of the file, or which ones were refused."""
        said, found = self.query_one("#study-changed", Static), self._answer
        text = "" if found is None else " · ".join(found.changed)
        if self._reason and found is not None:
            text = self._refusal()
        said.display = bool(text)
        said.update(Content(text))

    def _refusal(self) -> str:
        """Sentence on the refused change, else on the file, which changed on disk."""
        if self._known is not None and self._request == self._known._replace(version=self._version):
            return f"✗ {self._reason.splitlines()[0]} (on disk; the last answer stays)"
        return f"✗ {self.view.values or self.view.file} is refused: the last answer stays; u undoes the change"

    def _draw(self, found: StudyAnswer) -> None:
        """The bars and the table."""
        bars, table = self.query_one(ChartBars), self.query_one(ColumnsView)
        bars.styles.height = len(found.bars.rows)
        bars.show(found.bars)
        asked = self.view.show
        shown = asked if self._known is None else self._known.show
        self.query_one(ChoiceBar).show(asked)
        other, rows = self._waiting and shown != asked, study_rows(found)
        if rows.titles and not other:
            table.show(rows, _NAMED.get(shown, 2), _HINT)
        else:
            table.show(TableRows((f"computing {asked} …" if other else f"no {shown}",), (), frozenset((0,))), 1, _HINT)
        if self.screen.focused is None:
            self.call_after_refresh(self.enter)

    @on(TableView.Chosen)
    @work
    async def action_edit(self) -> None:
        """Ask for a value of the study, and which one."""
        if not self.view.file:
            return
        known = dict(self._answer.values) if self._answer is not None else {}
        title = "Value to change, or PATH = VALUE"
        path = await self.app.push_screen_wait(PickList(title, tuple(known.items()), free=True))
        if path and "=" not in path:
            path = await self._line(path, known.get(path, ""))
        if path:
            self._change(path)

    async def _line(self, path: str, before: str) -> str:
        """`PATH = VALUE` with another value that the study can have; empty if it stays."""

        def wrong(text: str) -> str:
            try:
                if text not in ("", before):
                    with_value(self.view.file, self.view.values, f"{path} = {text}")
            except WhatifError as problem:
                return brief(str(problem))
            return ""

        title = f"{path}; x0.9 is 0.9 times the value of the file"
        text = await self.app.push_screen_wait(TextPrompt(title, before, wrong))
        return "" if text in ("", before) else f"{path} = {text}"

    def _change(self, line: str) -> None:
        """Ask for another value, of `PATH = VALUE`."""
        self.choose("values", lambda view: with_value(view.file, view.values, line))

    def action_reset(self) -> None:
        """Discard all changed values."""
        self.ask("values", "")

    @work
    async def action_open(self) -> None:
        """Ask for another study."""
        present = self.view.file
        name = await self.app.push_screen_wait(TextPrompt("Study: a file, or the name of a shipped one", present))
        if name and name != present:
            self.ask("values", "")
            self.ask("file", name)

    @work
    async def action_save(self) -> None:
        """Write the study with its changed values, into its file or another one."""
        found, known = self._answer, self._known
        if found is None or known is None or not known.values:
            self.report("nothing to save: no value of the study is changed")
            return
        own = found.files[0]
        shipped = is_shipped(own.parent, "studies")
        start = free_file(own.stem) if shipped else known.file
        name = await self.app.push_screen_wait(TextPrompt("Save the study to", start))
        path = toml_path(name) if name else None
        if path is not None and (path.resolve() == own or await may_write(self.app, path)):
            await self._write(known.file if is_file(own) else found.document, known.values, path)

    async def _write(self, study: str | Document, values: str, path: Path) -> None:
        try:
            said = await run_once(saved, study, values, path)
        except WhatifError as problem:
            self.report(str(problem))
        else:
            self.ask("values", "")
            self.ask("file", str(path))
            self.notify(said)


def study_rows(found: StudyAnswer) -> TableRows:
    """Table of a study in cells: the best bid is marked, and reasons stretch to the end of their rows."""
    rows = table_rows(found.table)
    words = {at for at, title in enumerate(rows.titles) if title in ("reason", "remarks")}
    cells = tuple(tuple(_cell(cell, at, words, found.best) for at, cell in enumerate(row)) for row in rows.cells)
    return replace(rows, cells=cells)


def _cell(cell: Cell, at: int, words: set[int], best: str) -> Cell:
    if at in words:
        return Cell(cell.text, WORDS)
    return Cell(cell.text, "marked") if cell.text == best else cell
