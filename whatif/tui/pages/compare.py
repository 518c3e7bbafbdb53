"""The comparison: the same application on every machine that is known, in numbers and in curves."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.axes import Grid
from whatif.core.scenario import Scenario
from whatif.core.sweep_answers import curve_family_answers
from whatif.core.sweep_figure import MAXIMUM_CURVES, Y_COLUMN, plot_table
from whatif.plotting.description import PlotDescription, series_style
from whatif.studies.platform_comparison import PlatformRow, comparison
from whatif.tui.commands.explorer_commands import Adopt
from whatif.tui.jobs.job import Job
from whatif.tui.labels import brief
from whatif.tui.page_views import CompareView
from whatif.tui.pages.compared_machines import (
    ARROWS,
    KEPT,
    PRESENT,
    baseline,
    chosen_machines,
    curves,
    has_curve,
    keys,
    order,
    result_columns,
    rows,
    why_no_curves,
)
from whatif.tui.pages.page import PageKey, extra_key, stepped
from whatif.tui.pages.sweep_page import OPTIMUM_KEYS, RELATION_KEY, SweepPage
from whatif.tui.state import ExplorerState, View
from whatif.tui.widgets.answer_line import AnswerLine
from whatif.tui.widgets.data_table import Cell, ColumnsView, TableView
from whatif.tui.widgets.plot_view import PlotView

ComparisonInputs = tuple[Scenario, Grid, str]


class ComparePage(SweepPage[CompareView]):
    """A table of machines with their results, and below it the swept parameter with a curve for each of them."""

    NAME: ClassVar[str] = "compare"
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 20, "-flat": 8}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("sort", "o", "sort(1)", "sort", "Sort by the next column"),
        extra_key("turn", "O", "reverse", "reverse", "Reverse the order"),
        PageKey("mark", "m", "mark", "mark", "Mark the machine, to draw marked ones and the baseline"),
        PageKey("against", "x", "against", "reference", "Compare all machines with this one"),
        PageKey("next_curve", "y", "curve(1)", "result", "Draw the next result or phase"),
        RELATION_KEY,
        *OPTIMUM_KEYS,
        PageKey("table", "v", "table", "table", "Switch between the plot and a table"),
    )
    DEFAULT_CSS = """
    ComparePage #curves { height: 1fr; }
    ComparePage #no-curves { width: 1fr; height: 1fr; content-align: center middle; color: $text-muted; }
    ComparePage.-flat ColumnsView { max-height: 100%; }
    ComparePage.-flat #curves { display: none; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._machines: tuple[PlatformRow, ...] = ()
        self._inputs: ComparisonInputs | None = None
        self._order: list[int] = []
        self._drawn: list[int] = []
        """Machine of each curve."""
        self._curves: PlotDescription | None = None
        self._sorted = ""

    def compose(self) -> ComposeResult:
        """The table, and below it the curves, their numbers, or the reason for their absence."""
        yield ColumnsView(classes="panel")
        with Vertical(id="curves", classes="panel"):
            yield PlotView()
            yield TableView(id="curve-numbers")
            yield AnswerLine()
            yield Static(id="no-curves", markup=False)

    def on_mount(self) -> None:
        """The axis of the plot is a swept parameter."""
        self.query_one(PlotView).adopts = True

    def column(self, state: ExplorerState) -> str:
        """Column or phase that is drawn."""
        return state.view.y if state.view.y in state.session.result.dimensions else Y_COLUMN

    def enter(self) -> None:
        """Focus the list of machines."""
        self.query_one(ColumnsView).focus()

    def show(self, state: ExplorerState) -> None:
        """Show a state; while the machines are being asked, the last picture stays."""
        self.state = state
        if self._fresh(state) or not self._machines:
            self._fill(state)

    def _fresh(self, state: ExplorerState) -> bool:
        """Whether the machines were evaluated for this state."""
        if self._inputs is None:
            return False
        scenario, grid, column = self._inputs
        session = state.session
        return scenario is session.scenario and grid is session.grid and column == state.view.y

    def job(self, state: ExplorerState) -> Job | None:
        """Ask all machines, unless only the view has changed."""
        if self._fresh(state):
            return None
        return Job(comparison, (state.session.scenario, None, state.session.grid, state.view.y))

    def take(self, value: tuple[PlatformRow, ...]) -> None:
        """Show what the machines answered."""
        self._machines = value
        self._inputs = self.state.session.scenario, self.state.session.grid, self.state.view.y
        self._fill(self.state)

    def _fill(self, state: ExplorerState) -> None:
        machines, view, pointed = self._machines, self.view_in(state.view), self._pointed
        base = baseline(machines, state.view.against)
        chosen = chosen_machines(machines, view.marked, base, state.view.y)
        drawn = [at for at in chosen if has_curve(machines[at])][:MAXIMUM_CURVES]
        signs = {at: self._sign(place) for place, at in enumerate(drawn)}
        self._order = order(machines, view.sort)
        names, table = keys(machines), self.query_one(ColumnsView)
        table.cursor = next((row for row, at in enumerate(self._order) if names[at] == pointed), 0)
        content = rows(machines, self._order, base, signs, state.view)
        table.border_title = "machines" if machines else "evaluating the other machines …"
        table.show(content, KEPT, f"speedups over {machines[base].label}" if machines else "")
        if view.sort != self._sorted:
            self._sorted = view.sort
            table.bring(next((at for at, title in enumerate(content.titles) if title.endswith(ARROWS)), 0))
        self._drawn = drawn
        if drawn:
            self._draw(state, [machines[at] for at in drawn])
        else:
            self._draw_nothing(why_no_curves(state, [machines[at] for at in chosen]))

    @property
    def message(self) -> str:
        """The answers of the curves, one a line."""
        return self.query_one(AnswerLine).full

    @property
    def _pointed(self) -> str:
        """Name of the platform under the cursor; empty without one."""
        row = self.query_one(ColumnsView).cursor
        names = keys(self._machines)
        return names[self._order[row]] if row < len(self._order) and self._order[row] < len(names) else ""

    def _sign(self, place: int) -> Cell:
        """Key of a curve in the table: its colour, or without colours its letter in the plot."""
        return Cell(chr(ord("a") + place) if self.app.no_color else "━━", series_style(place))

    def _draw(self, state: ExplorerState, machines: list[PlatformRow]) -> None:
        """The curves of some machines, or their numbers."""
        panel, plot = self.query_one("#curves"), self.query_one(PlotView)
        numbers, tabular = self.query_one("#curve-numbers", TableView), state.view.picture == "table"
        self.query_one("#no-curves").display, plot.display, numbers.display = False, not tabular, tabular
        self._curves = description = curves(state, machines)
        answers = curve_family_answers(description, state.view.y, "platform")
        drawn_alone = len(machines) < sum(map(has_curve, self._machines))
        self.query_one(AnswerLine).show(answers, "of those drawn: " if drawn_alone else "")
        description = self._over_baseline(state, answers.marked(description))
        over = ".".join(description.x.label.split(".")[-2:])
        panel.border_title = Content(f"{description.y.label} over {over}")
        marked = self.view_in(state.view).marked
        absent = (
            machine
            for name, machine in zip(keys(self._machines), self._machines, strict=True)
            if not has_curve(machine) and (name in marked or (machine.curve_reason and not machine.reason))
        )
        # Advice about options of the command line is left out.
        why = ((machine.label, (machine.curve_reason or machine.reason).partition("; ")[0]) for machine in absent)
        reasons = (brief(text) if text.startswith(label) else f"{label}: {brief(text)}" for label, text in why)
        panel.border_subtitle = Content(" · ".join((f"{len(machines)} of {len(self._machines)} drawn", *reasons)))
        plot.show(description)
        if tabular:
            numbers.show(plot_table(description))

    def _over_baseline(self, state: ExplorerState, plot: PlotDescription) -> PlotDescription:
        """Curves on the scale of y that is asked for, over that of the machine that others are compared with."""
        if self.view_in(state.view).relation == "value":
            return plot
        base = baseline(self._machines, state.view.against)
        if base not in self._drawn:
            label = self._machines[base].label
            self.report(f"{label} has no curve to compare with; x chooses another machine")
            return plot
        related = self.related(state, plot, plot.lines[self._drawn.index(base)])
        assert isinstance(related, PlotDescription)  # noqa: S101 - curves stay curves
        return related

    def _draw_nothing(self, reason: str) -> None:
        """Why there are no curves."""
        panel, words = self.query_one("#curves"), self.query_one("#no-curves", Static)
        panel.border_title = panel.border_subtitle = ""
        self._curves = None
        self.query_one(PlotView).show(None)
        self.query_one(AnswerLine).show(None)
        for child in panel.children:
            child.display = child is words
        words.update(reason)

    @on(TableView.Chosen)
    def _chosen(self, event: TableView.Chosen) -> None:
        """Go to the machine under the cursor."""
        if event.table is not self.query_one(ColumnsView):
            return
        at = self._order[event.row]
        if at > 0 and self._machines[at].name:
            self.request(Adopt(self._machines[at].name))

    def action_sort(self, steps: int) -> None:
        """Sort by the next column; after the last one, as the machines come."""
        machines = self._machines

        def sorting(view: View) -> str:
            columns = ("", *result_columns(machines, view.breakdown))
            return stepped(columns, self.view_in(view).sort.removeprefix("-"), steps)

        self.choose_shared("compare.sort", sorting)

    def action_reverse(self) -> None:
        """Reverse the order; without sorting, the slowest machine first."""
        self.choose("sort", lambda view: view.sort[1:] if view.sort.startswith("-") else f"-{view.sort or Y_COLUMN}")

    def action_mark(self) -> None:
        """Mark the machine under the cursor, or take its mark away."""
        name = self._pointed

        def marking(view: CompareView) -> tuple[str, ...]:
            marks = view.marked
            return tuple(mark for mark in marks if mark != name) if name in marks else (*marks, name)

        if name:
            self.choose("marked", marking)

    def action_against(self) -> None:
        """Compare all with the machine under the cursor."""
        if self._pointed:
            self.ask("against", "" if self._pointed == PRESENT else self._pointed)

    def action_optimum(self, opposite: bool = False) -> None:
        """Put the crosshair on the best point of all drawn machines, or the worst, and the cursor on its machine."""
        plot = self._curves
        if plot is None:
            return
        answers = curve_family_answers(plot, self.state.view.y, "platform", opposite=opposite)
        if answers.optimum is not None:
            across, which = answers.optimum.index
            self.query_one(ColumnsView).move_to(self._order.index(self._drawn[which]))
            self.query_one(PlotView).point_to((float(plot.lines[0].x[across]), float("nan")))
        self.notify(answers.optimum.text if answers.optimum is not None else answers.sentence)

    def action_curve(self, steps: int) -> None:
        """Draw the next column."""
        columns = result_columns(self._machines, "phase")
        self.choose_shared("y", lambda view: stepped(columns, view.y, steps) if view.y in columns else columns[0])
