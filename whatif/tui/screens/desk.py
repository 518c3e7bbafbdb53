"""The one screen so far: leaves on the left, what comes of them on the right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static

from whatif.engine.session import Session
from whatif.errors import WhatifError
from whatif.export.figure import Y_COLUMN, breakdown, columns_to_plot, figure
from whatif.tui.beside import beside
from whatif.tui.changes import Change, Edit, Outcome, Study, Sweep, perform, queued
from whatif.tui.messages import ChangeAsked, LeafSelected, PromptAsked, Purpose
from whatif.tui.widgets.breakdown import Breakdown
from whatif.tui.widgets.explanation import Explanation
from whatif.tui.widgets.headline import HeadlineView
from whatif.tui.widgets.leaf_tree import LeafTree
from whatif.tui.widgets.plot import PlotView
from whatif.tui.widgets.prompt import Prompt
from whatif.tui.widgets.status import Detail, Status
from whatif.tui.words import grade_style

# What takes longer than this is computed beside the event loop.
QUICK_SECONDS = 0.010


class Explore(Screen[None]):
    """Shows a study and turns what the person asks for into the next one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "curve(1)", "curve", tooltip="Draw another column or phase"),
        Binding("Y", "curve(-1)", "Back", show=False, tooltip="Draw the previous column or phase"),
        Binding("e", "detail", "more", tooltip="Show the whole message"),
        Binding(
            "escape", "stop", "Stop computing", show=False, tooltip="Stop computing, forget the message or the filter"
        ),
        Binding("q", "app.quit", "quit"),
    ]
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared without ClassVar by Textual
        (0, "-mini"),
        (40, "-tiny"),
        (60, "-narrow"),
        (100, "-normal"),
        (160, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-low"), (30, "-tall")]  # noqa: RUF012

    class Computed(Message):
        """What a worker made of a queue of changes."""

        def __init__(self, queue: tuple[Change, ...], outcome: Outcome) -> None:
            super().__init__()
            self.queue = queue
            self.outcome = outcome

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.study = Study.start(session)
        self.y = Y_COLUMN
        self._error = ""
        self._queue: tuple[Change, ...] = ()
        self._seconds = 0.0
        self._answering = False

    def compose(self) -> ComposeResult:
        """Lay out the panels."""
        session = self.study.session
        with Horizontal(id="title"):
            yield Static("whatif", id="badge", markup=False)
            yield Static(session.program.loaded.question or session.program.loaded.name, id="question", markup=False)
        with Horizontal(id="body"):
            with Vertical(id="leaves"):
                yield LeafTree(session)
                yield Prompt()
            with Vertical(id="answer"):
                yield HeadlineView()
                with Vertical(id="sweep"):
                    yield PlotView()
                    yield Static("Select a value and press s to draw the time over it.", id="hint", markup=False)
                yield Breakdown()
        yield Breakdown(id="below")
        yield Explanation(markup=False)
        yield Status()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Draw the first picture."""
        self.query_one("#leaves").border_title = "leaves"
        self.query(Breakdown).first().border_title = "one iteration, phase by phase"
        self.query_one(LeafTree).focus()
        self._show()

    def _show(self) -> None:
        """Hand the study down to every widget."""
        session = self.study.session
        self.query_one(LeafTree).show(session)
        self.query_one(HeadlineView).show(self.study)
        for parts in self.query(Breakdown):
            parts.show(breakdown(session.point))
        self._show_curves()
        self._show_words()

    def _show_words(self) -> None:
        """The title of the answer, the explanation and the status line."""
        program, row = self.study.session.program, self.query_one(LeafTree).row
        platform = program.loaded.scenario.platform.name
        headline = self.query_one(HeadlineView)
        headline.border_title = Content(f"{program.loaded.scenario.application.name} on {platform}")
        headline.border_subtitle = Content.assemble("worst grade: ", (program.grade, grade_style(program.grade)))
        if row is not None:
            self.query_one(Explanation).show(self.study, row.path)
        self._show_status()

    def _show_status(self) -> None:
        status = self.query_one(Status)
        told = status.telling
        status.show(self.study, self._error, busy=self._busy)
        if status.telling != told:
            self.refresh_bindings()

    def _show_curves(self) -> None:
        session, before = self.study.session, self.study.before
        swept = bool(session.grid.axes)
        self.query_one(PlotView).display = swept
        self.query_one("#hint").display = not swept
        if not swept:
            return
        self.y = self.y if self.y in columns_to_plot(session.result) else Y_COLUMN
        drawn = figure(session.result, self.y, session.here, before.result if before else None)
        self.query_one(PlotView).show(replace(drawn, title=""))
        self.query_one("#sweep").border_title = Content(_title(self.y, session.grid.leaves()[0]))

    @property
    def _busy(self) -> bool:
        return bool(self._queue)

    @on(ChangeAsked)
    def _asked(self, event: ChangeAsked) -> None:
        self.change(event.change)

    def change(self, change: Change) -> None:
        """Carry out a change: at once where it is known to be quick, else in a worker that supersedes the last."""
        self._queue = queued(self._queue, change)
        if len(self._queue) == 1 and change.small and self._seconds <= QUICK_SECONDS:
            self._take(perform(self.study, self._queue))
        else:
            self._compute(self.study, self._queue)
            self.set_timer(0.15, self._tell_busy)

    @work(exclusive=True, group="evaluate")
    async def _compute(self, study: Study, queue: tuple[Change, ...]) -> None:
        # A superseded worker is cancelled while it waits here, and never comes to post anything.
        outcome = await beside(lambda stop: perform(study, queue, stop))
        self.post_message(self.Computed(queue, outcome))

    @on(Computed)
    def _computed(self, event: Computed) -> None:
        # More may have been asked for while the message was on its way.
        if event.queue is self._queue:
            self._take(event.outcome)

    def _take(self, outcome: Outcome) -> None:
        """Show an outcome; after an error the last good picture simply stays."""
        self._queue, self._seconds, self._error = (), outcome.seconds, outcome.error
        answered, self._answering = self._answering, False
        if answered:
            self._answered(wrong=bool(outcome.error))
        if outcome.study is self.study:
            self._show_words()
        else:
            self.study = outcome.study
            self._show()

    def _tell_busy(self) -> None:
        if self._busy:
            self._show_words()

    def action_stop(self) -> None:
        """Forget what is being computed; else clear the error, else the filter."""
        if self._busy:
            self.workers.cancel_group(self, "evaluate")
            self._queue, self._answering = (), False
        elif self._error:
            self._error = ""
        else:
            self._filter("")
        self._show_words()

    @on(LeafSelected)
    def _selected(self, event: LeafSelected) -> None:
        self.query_one(Explanation).show(self.study, event.path)

    @on(PromptAsked)
    def _prompt(self, event: PromptAsked) -> None:
        tree, prompt = self.query_one(LeafTree), self.query_one(Prompt)
        leaf = tree.leaf
        if event.purpose is Purpose.FILTER:
            prompt.ask(event.purpose, "", tree.words)
        elif leaf is not None and event.purpose is Purpose.VALUE:
            prompt.ask(event.purpose, leaf.path, leaf.text(), leaf.choices)
        elif leaf is not None:
            self._ask_range(leaf.path)

    def _ask_range(self, path: str) -> None:
        try:
            text = self.study.session.range_text(path)
        except WhatifError as problem:
            self._error = str(problem)
            self._show_words()
        else:
            self.query_one(Prompt).ask(Purpose.RANGE, path, text)

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        prompt = self.query_one(Prompt)
        if event.purpose is Purpose.FILTER:
            self._filter(event.text)
            if event.accepted:
                self._close_prompt()
        elif event.accepted and event.text == prompt.original and event.purpose is Purpose.VALUE:
            # A value is shown rounded: taking it back as it stands must not change it.
            self._close_prompt()
        elif event.accepted:
            self._answering = True
            self.change(_change(event.purpose, prompt.path, event.text))

    def _answered(self, *, wrong: bool) -> None:
        """Close the prompt after a good answer; a refused one stays to be mended."""
        self.query_one(Prompt).mark(wrong=wrong)
        if not wrong:
            self._close_prompt()

    @on(Prompt.Left)
    def _left(self, event: Prompt.Left) -> None:
        if event.purpose is Purpose.FILTER:
            self._filter("")
        self._close_prompt()

    def _close_prompt(self) -> None:
        self.query_one(Prompt).close()
        self.query_one(LeafTree).focus()

    def _filter(self, words: str) -> None:
        self.query_one(LeafTree).filter(words)
        self.query_one("#leaves").border_subtitle = Content(f"/{words}" if words else "")

    def action_curve(self, steps: int) -> None:
        """Draw the next column or phase."""
        names = columns_to_plot(self.study.session.result)
        self.y = names[(names.index(self.y) + steps) % len(names)] if self.y in names else Y_COLUMN
        self._show_curves()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the whole message only where there is one."""
        return self.query_one(Status).telling if action == "detail" else True

    def action_detail(self) -> None:
        """Show the whole of the message in the status line."""
        self.app.push_screen(Detail(self.query_one(Status).full))

    def commands(self) -> Iterable[SystemCommand]:
        """What the keys can do, for the command palette; moving the cursor is for keys alone."""
        for widget in (self.query_one(LeafTree), self):
            for binding in widget.BINDINGS:
                if isinstance(binding, Binding) and binding.tooltip:
                    run = partial(widget.run_action, binding.action)
                    key = binding.key_display or binding.key.split(",")[0]
                    yield SystemCommand(binding.tooltip, f"key {key}", run)


def _change(purpose: Purpose, path: str, text: str) -> Change:
    return Edit(path, text) if purpose is Purpose.VALUE else Sweep(path, text)


def _title(column: str, path: str) -> str:
    """What is drawn over what; the axis bears the whole path."""
    name = column.removesuffix("_time").removeprefix("terms.").replace("_", " ")
    return f"{name} over {'.'.join(path.split('.')[-2:])}"
