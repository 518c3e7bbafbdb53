"""The why page: what a result is computed from, and which values it follows most."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.core.answer_words import is_time
from whatif.core.derivation import explain
from whatif.core.session import SessionInputs
from whatif.studies.elasticity import Elasticity
from whatif.tui.jobs.elasticity_job import Leverage, leverage, sentence, written
from whatif.tui.jobs.job import Job
from whatif.tui.pages.page import Page, PageKey
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.elasticity_bars import ElasticityBars
from whatif.tui.widgets.line_list import LineList
from whatif.tui.widgets.why_tree import WhyTree, details

_MEANING = "Elasticities: with -0.5, 1 % more of a parameter is 0.5 % less {}."

_WIDE, _TALL = 100, 26


class WhyPage(Page[PageView]):
    """Explanation as an outline, and the elasticities of its result next to it or below."""

    NAME: ClassVar[str] = "why"
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("next_result", "y", "result(1)", "result", "Explain the next result"),
        PageKey("last_result", "Y", "result(-1)", "", "Explain the previous result"),
        PageKey("half", "m", "half", "elasticities", "Switch between the tree and the elasticities"),
        PageKey("table", "v", "table", "table", "Switch between elasticity bars and a table"),
    )
    DEFAULT_CSS = """
    WhyPage #halves { layout: vertical; }
    WhyPage.-wide #halves { layout: horizontal; }
    WhyPage .panel { padding: 0 1; width: 1fr; height: 1fr; }
    WhyPage.-one.-tree #leverage, WhyPage.-one.-leverage #tree { display: none; }
    WhyPage Static { width: 1fr; height: auto; color: $text-muted; }
    WhyPage .words { height: 4; border-top: solid $primary 40%; }
    WhyPage.-small .words { height: 5; }
    WhyPage.-tall .words { height: 7; }
    WhyPage.-brief .words, WhyPage.-small #meaning, WhyPage TableView, WhyPage .reason { display: none; }
    WhyPage.-table TableView, WhyPage.-none #nothing, WhyPage.-infeasible #reasons { display: block; }
    WhyPage.-table ElasticityBars, WhyPage.-infeasible WhyTree, WhyPage.-infeasible #details { display: none; }
    WhyPage.-none ElasticityBars, WhyPage.-none TableView { display: none; }
    WhyPage.-none #meaning, WhyPage.-none #sentence { display: none; }
    """

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self.add_class("-tree")
        self._leverage: Leverage | None = None
        self._answered: tuple[SessionInputs, str] | None = None
        """Inputs of the elasticities, and their result."""

    def compose(self) -> ComposeResult:
        """The tree and the bars, each with the whole of its row below."""
        with Container(id="halves"):
            with Vertical(id="tree", classes="panel"):
                yield WhyTree()
                yield Static(id="details", classes="words", markup=False)
                yield Static(id="reasons", classes="reason", markup=False)
            with Vertical(id="leverage", classes="panel"):
                yield Static(_MEANING.format("time"), id="meaning", markup=False)
                yield ElasticityBars()
                yield TableView()
                yield Static(id="sentence", classes="words", markup=False)
                yield Static(id="nothing", classes="reason", markup=False)

    def enter(self) -> None:
        """Focus the visible half."""
        leverage = TableView if self.has_class("-table") else ElasticityBars
        self.query_one(leverage if self.has_class("-leverage") else WhyTree).focus()

    def on_resize(self) -> None:
        """Lay the halves side by side, one below the other, or show one of them."""
        width, height = self.size
        wide, one = width >= _WIDE, width < _WIDE and height < _TALL
        classes = {
            "-wide": wide,
            "-one": one,
            "-tall": height >= (_TALL if wide else 2 * _TALL),
            "-small": width < 64 or height < 18,
            "-brief": height < 10,
        }
        self.update_classes(classes)

    def show(self, state: ExplorerState) -> None:
        """Show a state: the tree immediately, the elasticities when computed."""
        self.state = state
        name, at = state.explained, state.session.at
        obstacle = at.obstacle()
        self.set_class(bool(obstacle), "-infeasible")
        self._turn_to_table(table=state.view.picture == "table")
        self.query_one("#tree").border_title = Content(f"why {in_words(name)}")
        if obstacle:
            text = f"Infeasible point: {obstacle}. {state.undo_hint}"
            self.query_one("#reasons", Static).update(Content(text))
        else:
            self.query_one(WhyTree).show(explain(at, name))
        self._show_leverage()

    def _turn_to_table(self, *, table: bool) -> None:
        """Show the bars or their table; the new one takes the focus of the other."""
        turned = table != self.has_class("-table")
        self.set_class(table, "-table")
        if turned and isinstance(self.screen.focused, ElasticityBars | TableView):
            self.call_after_refresh(self.enter)

    def job(self, state: ExplorerState) -> Job | None:
        """Compute the elasticities, unless only the view has changed."""
        inputs = state.session.inputs, state.explained
        return None if inputs == self._answered else Job(leverage, inputs)

    def take(self, value: Leverage) -> None:
        """Show the elasticities."""
        self._answered = self.state.session.inputs, value.result
        self._leverage = value
        self._show_leverage()

    def _show_leverage(self) -> None:
        found, state = self._leverage, self.state
        if found is None:
            return
        self.set_class(bool(found.reason), "-none")
        self.query_one("#leverage").border_title = Content(f"elasticities of {in_words(found.result)}")
        hint = state.undo_hint if state.session.point.reasons else "y explains the next result."
        self.query_one("#nothing", Static).update(Content(f"There are no elasticities: {found.reason}. {hint}"))
        timed = is_time(found.result)
        meaning = _MEANING.format("time" if timed else "of the result")
        self.query_one("#meaning", Static).update(Content(meaning))
        bars, table = self.query_one(ElasticityBars), self.query_one(TableView)
        bars.show(found.items, timed=timed)
        table.show(_table(found.items))
        self._say(table.cursor if self.has_class("-table") else bars.cursor)

    @on(LineList.Pointed)
    def _pointed(self, event: LineList.Pointed) -> None:
        """Show the full text of the row under the cursor."""
        rows = event.rows
        if isinstance(rows, WhyTree):
            self.query_one("#details", Static).update(details(rows.row))
        elif isinstance(rows, TableView) == self.has_class("-table"):
            self._say(rows.cursor)

    def _say(self, index: int) -> None:
        """Explain one of the elasticities."""
        if self._leverage is not None and index < len(self._leverage.items):
            result = self._leverage.result
            text = sentence(self._leverage.items[index], in_words(result), timed=is_time(result))
            self.query_one("#sentence", Static).update(Content(text))

    def action_half(self) -> None:
        """Go to the other half."""
        self._turn_to(leverage=self.has_class("-tree"))
        self.enter()

    @on(events.DescendantFocus)
    def _focused(self, event: events.DescendantFocus) -> None:
        self._turn_to(leverage=not isinstance(event.widget, WhyTree))

    def _turn_to(self, *, leverage: bool) -> None:
        """The half to show if only one fits."""
        self.update_classes({"-leverage": leverage, "-tree": not leverage})


def in_words(name: str) -> str:
    """`iteration_time` is the iteration time, `terms.halo` is the phase halo."""
    return f"the phase {name.removeprefix('terms.')}" if name.startswith("terms.") else f"the {name.replace('_', ' ')}"


def _table(items: tuple[Elasticity, ...]) -> TableRows:
    """The elasticities in words."""
    rows = (
        (Cell(written(item)), Cell(item.path), Cell(item.change, "faint"), Cell(item.value), Cell(item.reason, "faint"))
        for item in items
    )
    return TableRows(("elasticity", "parameter", "step", "now", ""), tuple(rows), frozenset((1, 2, 4)))
