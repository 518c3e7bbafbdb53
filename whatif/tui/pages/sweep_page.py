"""Base of the pages whose plot has the swept parameters as axes."""

from __future__ import annotations

from typing import TypeVar

from textual import on

from whatif.core.relative_scales import relations, relative
from whatif.core.result import Result
from whatif.errors import UsageError
from whatif.plotting.description import Description, HeatMap, PlotLine, Scale
from whatif.tui.commands.adoption import adopted_words, edits_at, part_of_sweep, point_of
from whatif.tui.page_views import SweepView
from whatif.tui.pages.page import Page, extra_key, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.plot_view import PlotView

SCALES = {"auto": None, "linear": Scale.LINEAR, "log": Scale.LOG}
RELATION_KEY = extra_key(
    "relation", "r", "relation", "relation", "Show the value, speedup, parallel efficiency or ratio"
)
OPTIMUM_KEYS = (
    extra_key("best", "z", "optimum", "best", "Put the crosshair on the optimum of the drawn result"),
    extra_key("worst", "Z", "optimum(True)", "worst", "Put the crosshair on the opposite of the optimum"),
)


W = TypeVar("W", bound=SweepView)


class SweepPage(Page[W]):
    """Base of pages that draw a sweep: enter adopts the values under the crosshair, `.` sweeps the visible part."""

    def column(self, state: ExplorerState) -> str:
        """Column or phase that is drawn."""
        raise NotImplementedError

    def index_at(self, plot: Description, cross: tuple[float, float]) -> tuple[int, ...]:
        """Index of a crosshair on the axes of the sweep."""
        return point_of(self.state.session, plot, cross)

    def related(self, state: ExplorerState, plot: Description, baseline: Result | PlotLine) -> Description:
        """Curves on the scale of y that is asked for, where it has a meaning."""
        relation, result, y = self.view_in(state.view).relation, state.session.result, self.column(state)
        if isinstance(plot, HeatMap) or relation not in relations(result, y):
            return plot
        try:
            return relative(plot, result, y, relation, baseline, SCALES[state.view.y_scale])
        except UsageError as problem:
            self.report(str(problem))
            return plot

    def action_relation(self) -> None:
        """Draw on the next scale of y that the result has."""
        names = relations(self.state.session.result, self.column(self.state))
        self.choose("relation", lambda view: stepped(names, view.relation))

    @on(PlotView.AdoptionRequested)
    def _adopt(self, event: PlotView.AdoptionRequested) -> None:
        """Adopt the values under the crosshair."""
        if event.plot.description is None:
            return
        session = self.state.session
        changes = edits_at(session, self.index_at(event.plot.description, event.cross))
        self.notify(adopted_words(session, changes))
        for change in changes:
            self.request(change)

    @on(PlotView.PartRequested)
    def _sweep_part(self, event: PlotView.PartRequested) -> None:
        """Sweep the visible part of the axes."""
        try:
            for change in part_of_sweep(self.state.session, event.parts):
                self.request(change)
        except UsageError as problem:
            self.report(str(problem))
