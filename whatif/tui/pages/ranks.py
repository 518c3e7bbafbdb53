"""The ranks page: a run simulated message by message, the activity of every rank over time, and a summary."""

from __future__ import annotations

import itertools
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.plotting.lane_cells import lanes_in_sight
from whatif.plotting.lanes import Lanes, Window
from whatif.studies.rank_lanes import RunSummary, busiest
from whatif.tui.events import JobRequested
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.refusal import JobRefusal
from whatif.tui.jobs.simulation_job import (
    SimulationPart,
    block_of,
    simulated_part,
)
from whatif.tui.labels import brief
from whatif.tui.page_views import RanksView
from whatif.tui.pages.page import ZOOM_KEYS, Page, PageKey, extra_key, stepped
from whatif.tui.state import ExplorerState
from whatif.tui.time_window import moved, window_of
from whatif.tui.widgets.data_table import ColumnsView, TableView
from whatif.tui.widgets.facts import Facts
from whatif.tui.widgets.rank_bars import RankBars
from whatif.tui.widgets.run_labels import (
    group_rows,
    headed,
    node_times,
    path_facts,
    path_rows,
    rank_times,
    sentences,
    window_words,
)

_ROOMY: Final = 24
"""Least height for both halves."""
_STEPS: Final = (1, 2, 5, 10, 20, 50, 100)
"""Numbers of iterations that a key cycles through."""
_WAITING: Final = "simulating the messages one by one …"
_ELSE: Final = "The other pages show the analytic model."


class RanksPage(Page[RanksView]):
    """Activity of every rank over time, simulated message by message: zoom, pan, and the parts of the run time."""

    NAME: ClassVar[str] = "ranks"
    WIDE: ClassVar[bool] = True
    HEIGHT_CLASSES: ClassVar[dict[str, int]] = {"-low": 18, "-flat": 12}
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("rank", "y", "rank(1)", "rank", "Select the next rank and mark its messages"),
        PageKey("last_rank", "Y", "rank(-1)", "", "Select the previous rank"),
        PageKey("critical", "x", "critical(1)", "critical", "Select the next rank on the critical path"),
        PageKey("last_critical", "X", "critical(-1)", "", "Select the previous rank on the critical path"),
        PageKey("zoom_in", "plus,z", "zoom(0.5)", "zoom", "Zoom in to the busiest half"),
        extra_key("zoom_out", "minus,Z", "zoom(2)", "zoom out", "Zoom out to twice the time"),
        extra_key("whole", "home", "whole", "whole run", "Show the whole run"),
        PageKey("earlier", "left,h", "pan(-0.25)", "", "Scroll to earlier times"),
        PageKey("later", "right,l", "pan(0.25)", "", "Scroll to later times"),
        PageKey("up", "up,k", "scroll(-1)", "", "Scroll up by one rank"),
        PageKey("down", "down,j", "scroll(1)", "", "Scroll down by one rank"),
        PageKey("page_up", "pageup,ctrl+u", "page(-1)", "", "Scroll up by a screen of ranks"),
        PageKey("page_down", "pagedown,ctrl+d", "page(1)", "", "Scroll down by a screen of ranks"),
        PageKey("first", "g", "scroll(-1000000000)", "", "Go to the first ranks"),
        PageKey("last", "G", "scroll(1000000000)", "", "Go to the last ranks"),
        PageKey("half", "m", "half", "summary", "Show time lines, parts of the run time, or times by node"),
        PageKey("table", "v", "table", "table", "Switch between the time lines and a table"),
        PageKey("iterations", "I", "iterations", "iterations", "Simulate more iterations"),
    )
    DEFAULT_CSS = """
    RanksPage #lanes { height: 1fr; }
    RanksPage #spent { height: auto; max-height: 50%; }
    RanksPage.-alone #spent { height: 1fr; max-height: 100%; }
    RanksPage #groups, RanksPage #path { max-height: 100%; }
    RanksPage #run-words { height: auto; max-height: 5; padding: 0 1; }
    RanksPage.-low #run-words { max-height: 2; }
    RanksPage.-flat #run-words { display: none; }
    RanksPage.-empty #run-words { display: block; max-height: 100%; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._found: SimulationPart | JobRefusal | None = None
        self._summary: RunSummary | None = None
        self._inputs: tuple[object, ...] = ()
        self._job: tuple[tuple[object, ...], Job] | None = None
        self._rank: int | None = None
        self._half = "both"
        self._stop = 0
        """Place of the chosen rank on the critical path."""

    def compose(self) -> ComposeResult:
        """The picture or the table of the ranks, what their time is spent on, and a few words."""
        with Vertical(id="lanes", classes="panel"):
            yield RankBars()
            yield TableView(id="rank-times")
            yield TableView(id="node-times")
        with Vertical(id="spent", classes="panel"):
            yield Facts()
            yield ColumnsView(id="groups")
            yield ColumnsView(id="path")
        yield Static(id="run-words", markup=False)

    def enter(self) -> None:
        """Focus the picture, or the table in its place."""
        self.focus_first(self.query("RankBars, TableView"))

    def on_resize(self) -> None:
        """Show both halves if they fit."""
        self._arrange()

    def offers(self, action: str) -> bool:
        """Only another number of iterations without a run."""
        return action == "iterations" or self._summary is not None

    def show(self, state: ExplorerState) -> None:
        """Show the known results of a state's run."""
        if self.state.session.scenario != state.session.scenario:
            self._rank = None
        self.state = state
        self._fill()

    def job(self, state: ExplorerState) -> Job | None:
        """Job that simulates the run, or looks at another part of it, unless it is under way."""
        wanted = self._wanted(state)
        if wanted == self._inputs:
            return None
        if self._job is None or self._job[0] != wanted:
            known = self._summary is not None and wanted[:2] == self._inputs[:2]
            self._job = wanted, Job(simulated_part, (state.session.inputs, self.view_in(state.view), self._rank, known))
        return self._job[1]

    def take(self, value: SimulationPart | JobRefusal) -> None:
        """Show a part of a run, or the reason why it failed."""
        if self._job is None:
            return
        self._found, (self._inputs, _), self._job = value, self._job, None
        self._summary = None if isinstance(value, JobRefusal) else value.summary or self._summary
        self._fill()

    def _wanted(self, state: ExplorerState) -> tuple[object, ...]:
        """Inputs of the answer: first those of the run, then those of the part shown."""
        view = self.view_in(state.view)
        return state.session.scenario, view.iterations, view.window, block_of(view.first_rank), self._rank

    def _ready(self) -> RunSummary | None:
        """Summary of the requested run; None while it is simulated, and if it failed."""
        return self._summary if self._wanted(self.state)[:2] == self._inputs[:2] else None

    def _fill(self) -> None:
        found, summary = self._found, self._summary
        self.set_class(summary is None, "-empty")
        if isinstance(found, SimulationPart) and summary is not None:
            self._draw(found.lanes, summary)
        self._arrange()
        words = self.query_one("#run-words", Static)
        if summary is not None:
            drawn = self.query_one("#lanes").display and self.query_one(RankBars).display
            words.update(Content("\n".join(sentences(summary, self._rank, drawn=drawn))))
        elif isinstance(found, JobRefusal):
            words.update(Content(f"There is no time line: {brief(found.reason)}.\n\n{_ELSE} {self.state.undo_hint}"))
        else:
            words.update(_WAITING)
        self.screen.refresh_bindings()

    def _draw(self, lanes: Lanes, summary: RunSummary) -> None:
        """The picture, the table, and what the time is spent on."""
        panel = self.query_one("#lanes")
        panel.border_title = Content(headed(summary))
        self.query_one(RankBars).show_lanes(lanes, self.view.first_rank, self._rank)
        self.query_one("#rank-times", TableView).show(rank_times(summary))
        if self._half == "nodes":
            self.query_one("#node-times", TableView).show(node_times(summary))
        self.query_one("#spent").border_title = "parts of the run time"
        self.query_one(Facts).show(path_facts(summary), "")
        self.query_one("#groups", ColumnsView).show(group_rows(summary), 1)
        self.query_one("#path", ColumnsView).show(path_rows(summary.path), 1)

    def show_hints(self) -> None:
        """The part of the run that is visible, and the keys that show others; those of a table in its place."""
        found, summary, words = self._found, self._summary, ""
        if isinstance(found, SimulationPart) and summary is not None and self.query_one(RankBars).display:
            words = window_words(found.lanes.window, summary.run_time, self.keys_hint(*ZOOM_KEYS))
        self.query_one("#lanes").border_subtitle = Content("simulating …" if self._ready() is None else words)
        self.query_one("#rank-times", TableView).announce()

    def _arrange(self) -> None:
        """Show the chosen halves that fit on the screen."""
        both = self.size.height >= _ROOMY
        shown = self._half if self._half != "both" else "both" if both else "lanes"
        tabular = self.state.view.picture == "table"
        self.set_class(shown == "spent", "-alone")
        self.query_one("#lanes").display = self._summary is not None and shown != "spent"
        self.query_one("#spent").display = self._summary is not None and shown in ("both", "spent")
        self.query_one(RankBars).display = shown != "nodes" and not tabular
        self.query_one("#rank-times").display = shown != "nodes" and tabular
        self.query_one("#node-times").display = shown == "nodes"
        self.show_hints()
        if self.screen.focused is None:
            self.call_after_refresh(self.enter)

    @on(RankBars.Pointed)
    def _pointed(self, event: RankBars.Pointed) -> None:
        """Choose the rank that is pointed at, or no rank any more."""
        self._choose(None if event.rank == self._rank else event.rank)

    def _choose(self, rank: int | None) -> None:
        self._rank = rank
        self._fill()
        self.post_message(JobRequested())

    @property
    def _in_sight(self) -> int:
        """Number of visible ranks."""
        summary = self._summary
        return lanes_in_sight(len(summary.node) if summary is not None else 1, *self.query_one(RankBars).size)

    def action_rank(self, steps: int) -> None:
        """Choose the next rank, and bring it into sight; after the last one, none."""
        summary = self._ready()
        if summary is None:
            return
        first, count = min(self.view.first_rank, self._last_first), len(summary.node)
        stop = min(first + self._in_sight, count)
        rank = self._rank + steps if self._rank is not None else first if steps > 0 else stop - 1
        self._choose(rank if 0 <= rank < count else None)
        if self._rank is not None:
            self._bring(rank)

    def _bring(self, rank: int) -> None:
        """Bring a rank into sight."""
        first = min(self.view.first_rank, self._last_first)
        if not first <= rank < first + self._in_sight:
            wanted = rank if rank < first else rank - self._in_sight + 1
            self.ask("first_rank", min(max(wanted, 0), self._last_first))

    def action_critical(self, steps: int) -> None:
        """Choose the next of the ranks that the critical path comes to in the window."""
        found = self._found
        if self._ready() is None or not isinstance(found, SimulationPart):
            return
        ranks = [rank for rank, _ in itertools.groupby(found.lanes.critical.tolist()) if rank >= 0]
        if not ranks:
            self.report("the critical path is on no rank here; home shows the whole run")
            return
        self._stop = (self._stop + steps) % len(ranks) if self._rank in ranks else 0
        self._choose(ranks[self._stop])
        self._bring(ranks[self._stop])

    def action_scroll(self, steps: int) -> None:
        """Bring other ranks into sight."""
        if self._ready() is not None:
            last = self._last_first
            self.choose("first_rank", lambda view: min(max(min(view.first_rank, last) + steps, 0), last))

    def action_page(self, pages: int) -> None:
        """Bring the next screen of ranks into sight."""
        self.action_scroll(pages * self._in_sight)

    @property
    def _last_first(self) -> int:
        """The first visible rank where the last one is."""
        return max(0, len(self._summary.node) - self._in_sight) if self._summary is not None else 0

    def action_pan(self, shift: float) -> None:
        """Look at an earlier or a later part of the run."""
        self._look(shift, 1.0)

    def action_zoom(self, factor: float) -> None:
        """Look at a longer part of the run, or at a shorter one: the busiest of the visible ones."""
        found, summary = self._found, self._ready()
        if factor > 1 or summary is None or not isinstance(found, SimulationPart):
            self._look(0.0, factor)
            return
        lanes, run_time = found.lanes, summary.run_time

        def shorter(view: RanksView) -> Window | None:
            # Keys may come faster than the lanes of their windows.
            seen = window_of(view.window, run_time) == lanes.window
            return busiest(lanes, factor) if seen else moved(view.window, run_time, 0.0, factor)

        self.choose("window", shorter)

    def action_whole(self) -> None:
        """Look at the whole run."""
        if self.view.window is not None:
            self.ask("window", None)

    def _look(self, shift: float, factor: float) -> None:
        """Move the window by a share of its length, and scale it around its middle."""
        summary = self._ready()
        if summary is not None:
            self.choose("window", lambda view: moved(view.window, summary.run_time, shift, factor))

    def action_half(self) -> None:
        """Show the other half; on large screens both, then each alone; then the nodes."""
        halves = ["both", "lanes", "spent"] if self.size.height >= _ROOMY else ["both", "spent"]
        self._half = stepped([*halves, "nodes"], self._half)
        self._fill()

    def action_table(self) -> None:
        """Show the picture, or the table of the ranks, wherever the other half was."""
        if self._half in ("spent", "nodes"):
            self._half = "lanes"
        super().action_table()

    def action_iterations(self) -> None:
        """Simulate more iterations; after the most, one."""
        if self._summary is not None and self._summary.traced:
            self.report("a trace is simulated once: it has no iterations to choose")
        else:
            self.choose("iterations", lambda view: _next_iterations(view.iterations))


def _next_iterations(count: int) -> int:
    at = _STEPS.index(count) if count in _STEPS else 0
    return _STEPS[(at + 1) % len(_STEPS)]
