"""The first page: the answer in a few numbers, a parameter swept, and where the time of one iteration goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.core.accuracy_cards import accuracy_notes
from whatif.core.answer_words import larger_is_better
from whatif.core.machine_notes import placement
from whatif.core.relative_scales import relations, relative_map
from whatif.core.result import Result, array_of
from whatif.core.session import SessionInputs
from whatif.core.sweep_answers import Answers, sweep_answers
from whatif.core.sweep_figure import Y_COLUMN, breakdown, columns_to_plot, figure, heat_map, label_of, plot_table
from whatif.plotting.description import Description, HeatMap, PlotDescription, PlotLine
from whatif.schema.phase_edits import edits_of
from whatif.studies.measured_curves import drawn_points, error_picture, with_measured
from whatif.table import Table
from whatif.tui.commands.explorer_commands import SwapAxes
from whatif.tui.events import JobRequested
from whatif.tui.jobs.band_job import ResultBands, measurements_of, sampling_of, uncertainty
from whatif.tui.jobs.job import Job
from whatif.tui.labels import grade_style
from whatif.tui.page_views import ExploreView
from whatif.tui.pages.page import PageKey, extra_key, stepped
from whatif.tui.pages.sweep_page import OPTIMUM_KEYS, RELATION_KEY, SCALES, SweepPage
from whatif.tui.state import ExplorerState
from whatif.tui.variants.variant_lines import others_with, with_variants
from whatif.tui.widgets.answer_line import AnswerLine
from whatif.tui.widgets.breakdown import Breakdown
from whatif.tui.widgets.data_table import TableView
from whatif.tui.widgets.headline import HeadlineView
from whatif.tui.widgets.stacked_plots import StackedPlots
from whatif.tui.widgets.unchanged import set_border_titles
from whatif.vocabulary import Relation

if TYPE_CHECKING:
    from whatif.studies.measured_points import SweepMeasurements


class ExplorePage(SweepPage[ExploreView]):
    """Headline, plot and breakdown of the scenario."""

    NAME: ClassVar[str] = "explore"
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        extra_key("next_curve", "y", "curve(1)", "result", "Draw the next result or phase"),
        PageKey("last_curve", "Y", "curve(-1)", "", "Draw the previous result or phase"),
        extra_key("y_scale", "o", "turn('y_scale')", "y scale", "Scale the y axis: automatic, linear, logarithmic"),
        RELATION_KEY,
        extra_key("x_scale", "O", "turn('x_scale')", "x scale", "Scale the x axis: automatic, linear, logarithmic"),
        extra_key("second", "m", "turn('second')", "heat map", "Switch between curves and a heat map of two axes"),
        extra_key("swap", "x", "swap", "swap axes", "Swap the two axes"),
        extra_key("bands", "B", "bands", "bands", "Show or hide the bands of uncertain values"),
        extra_key("spread", "percent_sign", "turn('spread')", "spread", "Vary assumed values too, then data sheets"),
        PageKey("table", "v", "table", "table", "Switch between the plot and a table"),
        *OPTIMUM_KEYS,
        extra_key("parts", "p", "turn('breakdown')", "breakdown", "Break the time down by phase or by category"),
    )

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._known: tuple[SessionInputs, ResultBands] | None = None
        self._runs: tuple[SessionInputs, SweepMeasurements] | None = None
        self._optimum: tuple[tuple[int, ...], tuple[float, float]] | None = None

    def compose(self) -> ComposeResult:
        """Lay out the panels."""
        yield HeadlineView()
        with Vertical(id="sweep"):
            yield StackedPlots()
            yield TableView()
            yield AnswerLine()
            yield Static("Select a parameter and press s to sweep it.", id="hint", markup=False)
        yield Breakdown()

    def on_mount(self) -> None:
        """The axes of the plot are swept parameters."""
        self.query_one(StackedPlots).adopts = True

    def column(self, state: ExplorerState) -> str:
        """Column or phase that is drawn."""
        return drawn_column(state)

    @property
    def message(self) -> str:
        """The answers of the sweep, one a line."""
        return self.query_one(AnswerLine).full

    def show(self, state: ExplorerState) -> None:
        """Show a state."""
        self.state = state
        self._show_headline(state)
        parts = self.query_one(Breakdown)
        parts.border_title = f"one iteration by {state.view.breakdown}"
        parts.show(breakdown(state.session.point, state.view.breakdown))
        self._show_curves(state)

    def _show_headline(self, state: ExplorerState) -> None:
        program = state.session.program
        headline, scenario = self.query_one(HeadlineView), program.loaded.scenario
        found = self._bands(state)
        headline.show(state, None if found is None else found.point)
        accuracy = "".join(f"{note} · " for note in _accuracy(state))
        grade = program.grade, grade_style(program.grade)
        title = f"{scenario.application.name} on {scenario.platform.name}"
        title = ": ".join(filter(None, (title, placement(state.session.at))))
        set_border_titles(headline, Content(title), Content.assemble(accuracy, "lowest grade: ", grade))

    def _show_curves(self, state: ExplorerState) -> None:
        session, view = state.session, state.view
        drawn, tabular = bool(session.grid.axes), view.picture == "table"
        self.query_one(StackedPlots).display = drawn and not tabular
        self.query_one(TableView).display = drawn and tabular
        self.query_one("#hint").display = not drawn
        if not drawn:
            self.query_one(AnswerLine).show(None)
            return
        found = self._bands(state)
        # Runs were measured with the values of one variant: among several they would belong to none.
        runs = self._measurements(state) if len(state.others()) < 2 else None
        remarks = ["" if found is None else found.remark(), "" if runs is None else runs.remark]
        description, below = picture(state, found), None
        answers = answers_of(state, description)
        description = answers.marked(description)
        self.query_one(AnswerLine).show(answers)
        if runs is not None and isinstance(description, PlotDescription):
            points = drawn_points(runs.points, drawn_column(state))
            description, below = with_measured(description, points), error_picture(description, points)
        related = self.related(state, description, state.baseline.point)
        scale = "" if related is description else f"{self.view_in(view).relation} of "
        title = _title(drawn_column(state), session.grid.parameters())
        set_border_titles(
            self.query_one("#sweep"), Content(f"{scale}{title}"), Content(" · ".join(filter(None, remarks)))
        )
        self.query_one(StackedPlots).show_both(related, below)
        if tabular:
            self.query_one(TableView).show(_numbers(related, scale))

    def related(self, state: ExplorerState, plot: Description, baseline: Result | PlotLine) -> Description:
        """Curves or a heat map on the scale of y that is asked for, where it has a meaning."""
        relation, y = self.view_in(state.view).relation, drawn_column(state)
        if not isinstance(plot, HeatMap):
            return super().related(state, plot, baseline)
        known = relation in relations(state.session.result, y) and relation != "efficiency"
        return related_map(state, plot, y, relation) if known else plot

    def _bands(self, state: ExplorerState) -> ResultBands | None:
        """Bands computed for the scenario and the sampling of a state."""
        wanted = sampling_of(state.view)
        if self._known is None or wanted is None:
            return None
        inputs, found = self._known
        return found if inputs is state.session.inputs and found.point.sampling == wanted else None

    def _measurements(self, state: ExplorerState) -> SweepMeasurements | None:
        """The measured runs on the curves of a state; None without runs, and until they are read."""
        known = self._runs is not None and self._runs[0] is state.session.inputs
        return self._runs[1] if known and self._runs is not None else None

    def job(self, state: ExplorerState) -> Job | None:
        """Read the measured runs; then draw samples if requested and not yet known."""
        named = state.session.program.loaded.scenario.runs is not None
        if named and len(state.session.grid.axes) == 1 and self._measurements(state) is None:
            return Job(measurements_of, (state.session.inputs,))
        sampling = sampling_of(state.view)
        if sampling is None or self._bands(state) is not None:
            return None
        return Job(uncertainty, (state.session.inputs, sampling))

    def take(self, value: ResultBands | SweepMeasurements) -> None:
        """Show the bands, or the measured runs."""
        if isinstance(value, ResultBands):
            self._known = self.state.session.inputs, value
        else:
            self._runs = self.state.session.inputs, value
            self.post_message(JobRequested())
            if not value.points and not value.remark:
                return
        self.show(self.state)

    def action_bands(self) -> None:
        """Show the bands, or none."""
        self.choose_shared("samples", lambda view: 1024 if view.samples is None else None)

    def action_curve(self, steps: int) -> None:
        """Draw the next column or phase."""
        names = columns_to_plot(self.state.session.result)
        self.choose_shared("y", lambda view: stepped(names, view.y if view.y in names else Y_COLUMN, steps))

    def action_optimum(self, opposite: bool = False) -> None:
        """Put the crosshair on the best point of the drawn result, or on the worst one."""
        state, plots = self.state, self.query_one(StackedPlots)
        if plots.description is None or not state.session.grid.axes:
            return
        answers = answers_of(state, picture(state), opposite=opposite)
        found = answers.optimum
        if found is not None:
            self._optimum = found.index, _crosshair(plots.description, found.index)
            plots.point_to(self._optimum[1])
        if found is None or opposite:
            self.notify(answers.sentence if found is None else found.text)

    def index_at(self, plot: Description, cross: tuple[float, float]) -> tuple[int, ...]:
        """Index of a crosshair; on the optimum of curves, that on all axes."""
        if self._optimum is not None and np.array_equal(self._optimum[1], cross, equal_nan=True):
            return self._optimum[0]
        return super().index_at(plot, cross)

    def action_swap(self) -> None:
        """Exchange the axes."""
        self.request(SwapAxes())


def _numbers(plot: Description, scale: str) -> Table:
    """Table of a plot; the columns of curves on another scale of y are named by it."""
    table = plot_table(plot)
    if isinstance(plot, HeatMap) or not scale:
        return table
    (x, places), *curves = table.columns.items()
    return Table({x: places} | {f"{scale}{name}": column for name, column in curves})


def drawn_column(state: ExplorerState) -> str:
    """The column that is drawn: the one asked for, where it takes any time."""
    return state.view.y if state.view.y in columns_to_plot(state.session.result) else Y_COLUMN


def _accuracy(state: ExplorerState) -> Iterable[str]:
    """Error of predictions at runs, and phases without a comparison."""
    if any(edit.word not in ("move", "rename") for edit in edits_of(state.session.scenario.document)):
        return ("phases edited, never compared with a run",)
    return accuracy_notes(state.session.program)


def picture(state: ExplorerState, bands: ResultBands | None = None) -> PlotDescription | HeatMap:
    """Plot description of the sweep of a state, with bands where they are known."""
    session, view, y = state.session, state.view, drawn_column(state)
    scales = SCALES[view.x_scale], SCALES[view.y_scale]
    if view.of(ExploreView).second == "heat" and len(session.grid.axes) > 1:
        places = [session.place_on(axis) for axis in session.grid.axes[:2]]
        return replace(heat_map(session.result, y, (places[0], places[1]), *scales), title="")
    result = session.result if bands is None else replace(session.result, bands=bands.sweep)
    drawn = figure(result, y, session.here, None, *scales)
    return replace(with_variants(drawn, state, y), title="")


def related_map(state: ExplorerState, description: HeatMap, y: str, relation: Relation) -> HeatMap:
    """Heat map relative to another variant point by point, the baseline if it differs; else to the baseline's value."""
    others = others_with(state, y)
    if others:
        item, result = others[0]
        return relative_map(description, state.session.result, y, relation, heat_map(result, y).values, item.label)
    return relative_map(description, state.session.result, y, relation, array_of(state.baseline.point, y))


def answers_of(state: ExplorerState, description: Description, *, opposite: bool = False) -> Answers:
    """Answers of the sweep of a state about the drawn result; of the opposite aim for its worst point."""
    y, result = drawn_column(state), state.session.result
    most = larger_is_better(result.dimensions[y]) != opposite
    curves = figure(result, y) if isinstance(description, HeatMap) else description
    return sweep_answers(result, y, curves, most=most)


def _crosshair(description: Description, index: tuple[int, ...]) -> tuple[float, float]:
    """Place of a point of the sweep on its picture."""
    if isinstance(description, HeatMap):
        return float(description.xs[index[0]]), float(description.ys[index[1]])
    return float(description.lines[0].x[index[0]]), float("nan")


def _title(column: str, paths: tuple[str, ...]) -> str:
    """Title of the plot: the result over the parameter; the axis has the whole path."""
    name = label_of(column).replace("_", " ")
    return f"{name} over {' and '.join('.'.join(path.split('.')[-2:]) for path in paths[:2])}"
