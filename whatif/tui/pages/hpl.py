"""The page of HPL in the place of the ranks: its rate, its parts, its first panels, and other grids."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Grid as Quarters
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.core.scenario import Scenario
from whatif.core.sweep_figure import plot_table
from whatif.linpack.grid_lines import GridLine
from whatif.linpack.process_grids import Grid, GridRate, HPLRunView, Share, grid_of, grids
from whatif.plotting.lane_cells import lanes_in_sight
from whatif.tui.commands.explorer_commands import EditAll
from whatif.tui.jobs.hpl_job import simulate_hpl
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.labels import brief
from whatif.tui.page_views import HPL_PANELS, HPL_PARTS, HPLView
from whatif.tui.pages.page import Page, PageKey, extra_key, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.data_table import ColumnsView, TableView
from whatif.tui.widgets.hpl_labels import (
    PANEL_KINDS,
    THEY_OVERLAP,
    GridsView,
    best_words,
    component_rows,
    grid_rows,
    lanes_words,
    panel_lanes,
    rate_plot,
    sentences,
    share_words,
)
from whatif.tui.widgets.plot_view import PlotView
from whatif.tui.widgets.rank_bars import RankBars

_WIDE, _HIGH = 96, 20
"""Least size of the screen for all parts."""
_OF_PANELS: Final = ("panels", "line", "across", "scroll")


class HPLPage(Page[HPLView]):
    """HPL simulated step by step: rate over the run, parts of the time, first panels, and other grids P x Q."""

    NAME: ClassVar[str] = "hpl"
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 14, "-flat": 9}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("part", "m", "part", "part", "Show the next part alone, after the last one all of them"),
        PageKey("more", "plus,z", "panels(1)", "panels", "Show the time line of more panels"),
        extra_key("fewer", "minus,Z", "panels(-1)", "fewer panels", "Show the time line of fewer panels"),
        PageKey("line", "x", "line(1)", "next row", "Show the next process row or column"),
        PageKey("last_line", "X", "line(-1)", "", "Show the previous process row or column"),
        PageKey("across", "y", "across", "columns", "Switch between process rows and process columns"),
        PageKey("up", "up,k", "scroll(-1)", "", "Scroll up by one process"),
        PageKey("down", "down,j", "scroll(1)", "", "Scroll down by one process"),
        PageKey("table", "v", "table", "table", "Switch between the curves of the rate and a table"),
    )
    DEFAULT_CSS = """
    HPLPage #hpl-words { height: auto; max-height: 3; padding: 0 1; }
    HPLPage #quarters { height: 1fr; grid-size: 2 2; grid-columns: 1fr 1fr; grid-rows: 1fr 1fr; }
    HPLPage.-alone #quarters { grid-size: 1 1; grid-columns: 1fr; grid-rows: 1fr; }
    HPLPage ColumnsView { max-height: 100%; height: 1fr; }
    HPLPage.-low #hpl-words { max-height: 1; }
    HPLPage.-flat #hpl-words { display: none; }
    HPLPage.-empty #hpl-words { display: block; max-height: 100%; }
    HPLPage.-empty #quarters { display: none; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._run: HPLRunView | None = None
        self._run_of: Scenario | None = None
        self._rates: dict[Grid, float] = {}
        self._share: Share | None = None
        self._reason = ""
        self._inputs: Scenario | None = None
        self._job: Job | None = None
        self._finished = False

    def compose(self) -> ComposeResult:
        """A few words, and four parts."""
        yield Static(id="hpl-words", markup=False)
        with Quarters(id="quarters"):
            with Vertical(id="rates", classes="panel"):
                yield PlotView()
                yield TableView(id="rate-table")
            with Vertical(id="components", classes="panel"):
                yield ColumnsView()
            with Vertical(id="panels", classes="panel"):
                yield RankBars(PANEL_KINDS)
            with Vertical(id="geometries", classes="panel"):
                yield GridsView()

    def enter(self) -> None:
        """Focus the first visible part that has keys; the grids before all."""
        self.focus_first((*self.query(GridsView), *self.query("PlotView, TableView, RankBars")))

    def on_resize(self) -> None:
        """Show as many parts as fit."""
        self._arrange()

    def on_hide(self) -> None:
        """Cancel the job when another page is shown; on return it continues from the known results."""
        self._job = None

    def offers(self, action: str) -> bool:
        """Only what changes a visible part."""
        part = "panels" if action in _OF_PANELS else "rates" if action == "table" else None
        return part is None or bool(self.query_one(f"#{part}").display)

    def show(self, state: ExplorerState) -> None:
        """Show the known results of a state's run."""
        self.state = state
        self._fill()

    def job(self, state: ExplorerState) -> Job | None:
        """Job that simulates the run and the other grids, unless they are known or under way."""
        scenario = state.session.scenario
        if scenario != self._inputs:
            self._inputs, self._finished, self._job, self._share, self._reason = scenario, False, None, None, ""
            self._fill()
        if not self._finished and self._job is None:
            known = frozenset(self._rates) if self._current else frozenset[Grid]()
            self._job = Job(simulate_hpl, (state.session.inputs, known), reports=True)
        return None if self._finished else self._job

    @property
    def _current(self) -> bool:
        """Whether the visible run is the requested one."""
        return self._run is not None and self._run_of == self._inputs

    def take(self, value: HPLRunView | GridRate | Share | JobRefusal | None) -> None:
        """Show a reported value: the progress, the run, the rate of a grid, or the reason why it failed."""
        if isinstance(value, Share):
            self._share = value
        elif isinstance(value, HPLRunView):
            self._take_run(value)
        elif isinstance(value, GridRate):
            self._rates[value.grid] = value.rate
        else:
            self._finished, self._job, self._share = True, None, None
            self._reason = value.reason if value is not None else ""
        self._fill(anew=isinstance(value, HPLRunView))

    def _take_run(self, run: HPLRunView) -> None:
        """Show another run, the cursor on its grid if that changed."""
        here, before = grid_of(run.outcome.configuration), self._run
        if before is None or grid_of(before.outcome.configuration) != here:
            self.query_one(GridsView).cursor = grids(run.outcome.configuration.rank_count).index(here)
        self._run, self._run_of, self._share = run, self._inputs, None
        self._rates = {here: run.outcome.rate}

    def _fill(self, *, anew: bool = True) -> None:
        """Show what is known; `anew` draws the run as well."""
        run = self._run
        refused = bool(self._reason) and not self._current
        self.set_class(run is None or refused, "-empty")
        words = self.query_one("#hpl-words", Static)
        if refused:
            words.update(Content(f"HPL cannot be simulated: {brief(self._reason)}.\n\n{self.state.undo_hint}"))
        elif run is None:
            words.update(share_words(self._share))
        else:
            words.update(Content("\n".join(self._words(run))))
            if anew:
                self._draw(run)
            self._draw_grids(run)
        self._arrange()

    def _words(self, run: HPLRunView) -> list[str]:
        """Summary of the run, and the progress of the next one, which comes first in a single line."""
        first, second = sentences(run)
        if self._current:
            return [first, second if self._finished else f"{second} · {share_words(self._share)}"]
        share = share_words(self._share)
        return [share] if self.has_class("-low") else [f"before: {first}", share]

    def _draw(self, run: HPLRunView) -> None:
        """All parts but the grids, whether visible or not."""
        self._title("rates", "rate over the run", f"v shows the {'curves' if self._tabular else 'numbers'}")
        plot = rate_plot(run.outcome)
        self.query_one(PlotView).show(plot)
        self.query_one("#rate-table", TableView).show(plot_table(plot))
        self._title("components", "time of a process, by HPL's timers", THEY_OVERLAP)
        self.query_one("#components ColumnsView", ColumnsView).show(component_rows(run.outcome), 1)
        line, count = self._line(self.view), self.view.panels
        lanes = panel_lanes(run.outcome, run.nodes, line, count)
        self._title("panels", lanes_words(line, min(count, len(run.outcome.seen))), "")
        self.show_hints()
        self.query_one(RankBars).show_lanes(lanes, self.view.first_process)

    def show_hints(self) -> None:
        """Name the keys of the panels."""
        self.query_one(
            "#panels"
        ).border_subtitle = f"{self.keys_hint('+ - panels', 'z Z panels')} · x next · y rows, columns"

    def _draw_grids(self, run: HPLRunView) -> None:
        chosen = run.outcome.configuration
        here, shown = grid_of(chosen), grids(chosen.rank_count)
        hint = self._reason or (
            share_words(self._share) if not self._finished else best_words(shown, self._rates, here)
        )
        self._title("geometries", f"P x Q of {chosen.rank_count:,} processes", f"{brief(hint)} · enter adopts it")
        self.query_one(GridsView).show(grid_rows(shown, self._rates, here), 1)

    def _title(self, part: str, title: str, subtitle: str) -> None:
        panel = self.query_one(f"#{part}")
        panel.border_title, panel.border_subtitle = Content(title), Content(subtitle)

    def _line(self, view: HPLView) -> GridLine:
        """The processes that are lanes."""
        return GridLine.of(f"{view.across} {view.line}", *self._process_grid)

    @property
    def _process_grid(self) -> Grid:
        """Rows and columns of the processes of the visible run."""
        return grid_of(self._run.outcome.configuration) if self._run is not None else (1, 1)

    @property
    def _roomy(self) -> bool:
        """Whether there is room for all parts."""
        return self.size.width >= _WIDE and self.size.height >= _HIGH

    @property
    def _tabular(self) -> bool:
        return self.state.view.picture == "table"

    def _arrange(self) -> None:
        """Show the chosen parts that fit on the screen."""
        wanted = self.view.part
        shown = list(HPL_PARTS) if wanted == "all" and self._roomy else [HPL_PARTS[0] if wanted == "all" else wanted]
        before = [part for part in HPL_PARTS if self.query_one(f"#{part}").display]
        for part in HPL_PARTS:
            self.query_one(f"#{part}").display = part in shown
        self.set_class(len(shown) == 1, "-alone")
        self.query_one(PlotView).display = not self._tabular
        self.query_one("#rate-table").display = self._tabular
        self.screen.refresh_bindings()
        focused = self.screen.focused
        if focused is None or (before != shown and self in focused.ancestors):
            self.call_after_refresh(self.enter)

    def action_part(self) -> None:
        """Show the next part alone; after the last one all of them, if space permits."""
        parts = ("all", *HPL_PARTS) if self._roomy else HPL_PARTS
        self.choose("part", lambda view: stepped(parts, view.part))

    def action_panels(self, steps: int) -> None:
        """Bring more panels into sight, or fewer."""
        last = len(HPL_PANELS) - 1
        self.choose("panels", lambda view: HPL_PANELS[min(max(HPL_PANELS.index(view.panels) + steps, 0), last)])

    def action_across(self) -> None:
        """Show a process column in the place of a row, or a row in that of a column."""
        self.action_turn("across")

    def action_line(self, steps: int) -> None:
        """Show the next process row or column; after the last one, the first."""
        self.choose("line", lambda view: self._stepped(self._line(view), steps))

    def _stepped(self, line: GridLine, steps: int) -> int:
        rows, columns = self._process_grid
        return (line.number + steps) % (rows if line.kind == "row" else columns)

    def action_scroll(self, steps: int) -> None:
        """Bring other processes into sight."""
        bars = self.query_one(RankBars)
        last = max(0, bars.lane_count - lanes_in_sight(bars.lane_count, *bars.size))
        self.choose("first_process", lambda view: min(max(min(view.first_process, last) + steps, 0), last))

    @on(TableView.Chosen)
    def _chosen(self, event: TableView.Chosen) -> None:
        """Take a grid into the scenario."""
        if self._run is None or not isinstance(event.table, GridsView):
            return
        rows, columns = grids(self._run.outcome.configuration.rank_count)[event.row]
        edits = ("application.process_rows", str(rows)), ("application.process_columns", str(columns))
        self.request(EditAll(edits))
