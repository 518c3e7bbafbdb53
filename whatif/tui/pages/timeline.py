"""The timeline page: one iteration phase by phase, and the one it is compared with."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.axes import first_number
from whatif.core.iteration_timeline import Timeline as Schedule
from whatif.core.iteration_timeline import timeline
from whatif.core.session import Session
from whatif.errors import InfeasiblePointError
from whatif.tui.labels import duration, percent
from whatif.tui.pages.page import Page, PageKey
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.time_bars import TimeBars, hidden, was_of, words_of
from whatif.vocabulary import CATEGORIES

_COUNT = "application.iteration_count"


class TimelinePage(Page[PageView]):
    """Begin and end of each phase of an iteration, as a picture or a table, with a summary."""

    NAME: ClassVar[str] = "timeline"
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-brief": 22, "-flat": 8}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("table", "v", "table", "table", "Switch between the bars and a table"),
    )
    DEFAULT_CSS = """
    TimelinePage #frame { padding: 0 1; }
    TimelinePage Static { height: auto; max-height: 4; width: 1fr; color: $text-muted; }
    TimelinePage.-brief #kinds, TimelinePage.-flat Static { display: none; }
    TimelinePage.-flat.-none #words { display: block; }
    """

    def compose(self) -> ComposeResult:
        """The bars or their table, with words below."""
        with Vertical(id="frame", classes="panel"):
            yield TimeBars()
            yield TableView()
            yield Static(id="kinds", markup=False)
            yield Static(id="words", markup=False)

    def enter(self) -> None:
        """Focus the table."""
        self.query_one(TableView).focus()

    def show(self, state: ExplorerState) -> None:
        """Show a state."""
        self.state = state
        try:
            now = timeline(state.session.program, state.session.at)
        except InfeasiblePointError as problem:
            self._show_nothing(f"No iteration to show: this point is {problem}. {state.undo_hint}")
            return
        self.remove_class("-none")
        before, remark = _before(state, now)
        self.query_one("#frame").border_title = Content(f"one iteration: {duration(now.iteration_time)}")
        self._show_picture(now, before, tabular=state.view.picture == "table")
        self.query_one("#kinds", Static).update(Content(_kinds(state.session)))
        self.query_one("#words", Static).update(Content(" ".join([_run(state.session), *_overlaps(now), remark])))

    def _show_picture(self, now: Schedule, before: Schedule | None, *, tabular: bool) -> None:
        self.query_one(TimeBars).display = not tabular
        self.query_one(TableView).display = tabular
        if tabular:
            self.query_one(TableView).show(_table(now, before))
            if self.screen.focused is None:
                self.call_after_refresh(self.enter)
        else:
            self.query_one(TimeBars).show((now, before))

    def _show_nothing(self, text: str) -> None:
        """Explain why there is no iteration to show."""
        self.add_class("-none")
        self.query_one("#frame").border_title = "one iteration"
        self.query_one(TimeBars).display = self.query_one(TableView).display = False
        self.query_one("#kinds", Static).update("")
        self.query_one("#words", Static).update(Content(text))


def _before(state: ExplorerState, now: Schedule) -> tuple[Schedule | None, str]:
    """The iteration that is compared with, where it differs, and a sentence about it."""
    if not state.changed:
        return None, ""
    try:
        before = timeline(state.baseline.program, state.baseline.at)
    except InfeasiblePointError as problem:
        return None, f"The baseline is {problem}."
    return before if before.bars != now.bars else None, _difference(now.iteration_time, before.iteration_time)


def _run(session: Session) -> str:
    """Time of all iterations."""
    total, setup = (duration(_column(session, name)) for name in ("total_time", "setup_time"))
    count = first_number(session.at.values[_COUNT])
    return f"{count:.15g} iteration{'s' * (count != 1)}: {total}, including {setup} of setup."


def _kinds(session: Session) -> str:
    """Time of each kind of work in one iteration."""
    times = [(kind, _column(session, f"{kind}_time")) for kind in CATEGORIES]
    listed = ", ".join(f"{kind} {duration(time)}" for kind, time in times if time > 0)
    return f"{listed.capitalize()}." if listed else ""


def _column(session: Session, name: str) -> float:
    return first_number(session.at.column(name))


def _overlaps(now: Schedule) -> list[str]:
    return [f"The overlap hides {duration(time)} of {one} behind {other}." for time, one, other in hidden(now)]


def _difference(now: float, before: float) -> str:
    """By how much an iteration is shorter or longer than the one before."""
    if now == before:
        return f"The iteration takes as long as before: {duration(before)}."
    share = f" ({percent(abs(now / before - 1))})" if before > 0 else ""
    word = "shorter" if now < before else "longer"
    return f"{duration(abs(now - before))}{share} {word} than before: {duration(before)}."


def _table(now: Schedule, before: Schedule | None) -> TableRows:
    """The numbers of the bars, with the duration that each phase had before."""
    titles = ("phase", "category", "start", "end", "time", "share", "before")
    rows = []
    for bar in now.bars:
        phase, category, start, time, share = words_of(bar, now)
        numbers = (start, duration(bar.end), time, share, was_of(bar, before))
        rows.append((Cell(phase), Cell(category, "faint"), *(Cell(text) for text in numbers)))
    shown = len(titles) - (before is None)
    return TableRows(titles[:shown], tuple(row[:shown] for row in rows), frozenset((0, 1)))
