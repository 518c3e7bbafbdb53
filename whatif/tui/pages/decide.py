"""The decide page: one question at a time about the scenario, answered in bars or curves, a table, and words."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.plotting.bars import BarChart
from whatif.plotting.description import PlotDescription
from whatif.tui.commands.explorer_commands import Change
from whatif.tui.decisions.answers import Decision, DecisionRequest
from whatif.tui.decisions.decision_job import decide
from whatif.tui.decisions.titles import DECISIONS
from whatif.tui.jobs.job import Job
from whatif.tui.page_views import DecideView
from whatif.tui.pages.decision_page import START_KEY, WAITING, DecisionPage
from whatif.tui.pages.page import PageKey, extra_key, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.chart_bars import ChartBars
from whatif.tui.widgets.choice_bar import ChoiceBar
from whatif.tui.widgets.cursor_list import CursorList
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.parameter_tree import ParameterTree
from whatif.tui.widgets.plot_view import PlotView
from whatif.units import format_quantity


class DecidePage(DecisionPage[DecideView]):
    """From numbers to decisions: bottlenecks, differences, machines, scale, layouts, fronts and budgets."""

    NAME: ClassVar[str] = "decide"
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 16, "-flat": 8}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("question", "m", "turn('decision')", "question", "Ask the next question"),
        PageKey("result", "y", "result(1)", "result", "Ask about the next result"),
        PageKey("last_result", "Y", "result(-1)", "", "Ask about the previous result"),
        PageKey(
            "other",
            "x",
            "other",
            "other",
            "Compare with the next machine (why), or vary the parameter in the tree (Pareto)",
        ),
        extra_key("bands", "B", "turn('samples')", "samples", "Choose the number of samples of the uncertain values"),
        extra_key("spread", "percent_sign", "turn('spread')", "spread", "Vary assumed values too, then data sheets"),
        PageKey("table", "v", "table", "table", "Switch between the plot and a table"),
        START_KEY,
        PageKey("take", "enter", "take_row", "adopt", "Adopt the machine, layout or value under the cursor"),
    )
    DEFAULT_CSS = """
    DecidePage #frame { padding: 0 1; }
    DecidePage #words { height: auto; max-height: 5; width: 1fr; color: $text-muted; }
    DecidePage #row { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    DecidePage.-none #words { height: 1fr; max-height: 100%; }
    DecidePage.-low #frame { padding: 0; }
    DecidePage.-low #words { max-height: 2; }
    DecidePage.-flat #words, DecidePage.-flat #questions { display: none; }
    DecidePage.-flat.-none #words { display: block; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._job: Job | None = None

    def compose(self) -> ComposeResult:
        """The questions, and the answer to one of them."""
        yield ChoiceBar("decide.decision", DECISIONS, id="questions")
        with Vertical(id="frame", classes="panel"):
            yield ChartBars()
            yield PlotView()
            yield TableView()
            yield Static(id="row", markup=False)
            yield Static(id="words", markup=False)

    def enter(self) -> None:
        """Focus the answer."""
        self.focus_first((self.query_one(ChartBars), self.query_one(PlotView), self.query_one(TableView)))

    def show(self, state: ExplorerState) -> None:
        """Show a state; while the same question is answered anew, the last answer stays."""
        self.state = state
        before, self._inputs = self._inputs, _inputs(state)
        if self._inputs != before:
            self._job = None
        if self._decision is not None and self._answered[0] != self.view_in(state.view).decision:
            self._decision = None
        self._fill()

    def job(self, state: ExplorerState) -> Job | None:
        """Answer the question, unless only the picture has changed."""
        if self._fresh:
            return None
        if self._job is None:
            session, view, own = state.session, state.view, self.view_in(state.view)
            inputs = session.inputs, state.baseline.inputs, state.changed
            seconds = sum(session.at.seconds.values())
            self._request = DecisionRequest(*inputs, own.decision, own.front_over, view, state.explained, seconds)
            self._job = Job(decide, (self._request,))
        return self._job

    def _fill(self) -> None:
        found, name = self._decision, self.view.decision
        self.query_one(ChoiceBar).show(name)
        frame = self.query_one("#frame")
        frame.border_title = Content(DECISIONS[name] if found is None else found.title)
        self.set_class(found is None or found.table is None, "-none")
        self._show_picture(found, tabular=self.state.view.picture == "table")
        frame.border_subtitle = Content(f"{self._begins(found)}{name} · m asks the next question")
        if found is not None and found.table is not None:
            self.query_one(TableView).show(found.table)
        words = (WAITING,) if found is None else found.sentences
        self.query_one("#words", Static).update(Content("\n".join(words)))
        self._say_row()
        self.screen.refresh_bindings()

    def _begins(self, found: Decision | None) -> str:
        """Start of the bars, if not 0."""
        bars = self.query_one(ChartBars)
        if found is None or not isinstance(found.picture, BarChart) or not (bars.display and bars.begins):
            return ""
        return f"bars begin at {format_quantity(bars.begins, found.picture.x.dimension, 3)} · "

    def _show_picture(self, found: Decision | None, *, tabular: bool) -> None:
        """Show the picture of an answer or its table, and focus the visible one."""
        picture = None if found is None else found.picture
        bars, plot, table = self.query_one(ChartBars), self.query_one(PlotView), self.query_one(TableView)
        focused = self.screen.focused in (bars, plot, table)
        tabular = tabular or picture is None
        table.display = tabular and found is not None and found.table is not None
        bars.display = not tabular and isinstance(picture, BarChart)
        plot.display = not tabular and isinstance(picture, PlotDescription)
        if isinstance(picture, BarChart):
            bars.show(picture)
        # The plot that is exported is that of the visible answer, or there is none.
        plot.show(picture if isinstance(picture, PlotDescription) else None)
        if focused or self.screen.focused is None:
            self.call_after_refresh(self.enter)

    @on(CursorList.Pointed)
    def _say_row(self) -> None:
        """Show the full text of the row under the cursor if the bars shorten it."""
        bars, said = self.query_one(ChartBars), self.query_one("#row", Static)
        said.display = bars.display and bars.row is not None and not bars.says_all
        if bars.row is not None:
            said.update(Content(f"{bars.row.text} · {bars.row.label}"))

    def offers(self, action: str) -> bool:
        """Offer `other` only for two questions, `take_row` only if visible rows change something."""
        if action == "other":
            return self.view.decision in ("why", "pareto")
        if action == "start":
            return self.startable
        return action != "take_row" or any(self._changes)

    def action_other(self) -> None:
        """Compare with the next machine, or take the parameter of the tree for the front."""
        decision = self.view.decision
        if decision == "pareto":
            self.ask("front_over", self._parameter())
        elif decision != "why":
            self.report("nothing to choose here: m goes to why or Pareto")
        elif self.state.changed:
            self.report("the values differ from the baseline: press b to set the baseline, then compare machines")
        else:
            names = ("", *self.state.session.scenario.known_platforms)
            self.choose_shared("against", lambda view: stepped(names, view.against))

    def _parameter(self) -> str:
        """The parameter under the cursor of the tree; empty if it is the one taken already, or on none."""
        parameter = next((tree.parameter for tree in self.screen.query(ParameterTree)), None)
        return "" if parameter is None or parameter.path == self.view.front_over else parameter.path

    @property
    def _rows(self) -> TableView | ChartBars:
        """The table, or the bars in its place, which a plot hides too."""
        table = self.query_one(TableView)
        return table if table.display else self.query_one(ChartBars)

    @property
    def _changes(self) -> tuple[Change | None, ...]:
        """Changes that the visible rows propose."""
        return () if self._decision is None or not self._rows.display else self._decision.changes

    @on(TableView.Chosen)
    def action_take_row(self) -> None:
        """Carry out what the row under the cursor proposes."""
        changes, at = self._changes, self._rows.cursor
        change = changes[at] if at < len(changes) else None
        if change is not None:
            self.request(change)
        else:
            self.report("nothing to adopt in this row")


def _inputs(state: ExplorerState) -> tuple[object, ...]:
    """All that an answer follows from; the question first."""
    view, own = state.view, state.view.of(DecideView)
    looks = view.samples, view.spread, view.against, own.front_over
    return own.decision, state.session.scenario, state.baseline.scenario, state.explained, *looks
