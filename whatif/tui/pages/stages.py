"""The pages of transformers in the place of the ranks: pipeline stages in one step, memory of a rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.plotting.lane_cells import lanes_in_sight
from whatif.plotting.lanes import Kinds, Lanes
from whatif.transformers.serving.parts import MEMORY as SERVING_MEMORY
from whatif.transformers.serving.results import MEMORY_TERMS as SERVING_TERMS
from whatif.transformers.training.memory import MEMORY
from whatif.transformers.training.results import MEMORY_TERMS
from whatif.transformers.training.simulated_step import simulated_step
from whatif.tui.pages.page import Page, PageKey
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.breakdown import Breakdown
from whatif.tui.widgets.data_table import ColumnsView
from whatif.tui.widgets.rank_bars import RankBars
from whatif.tui.widgets.transformer_parts import collective_rows, memory_bar, step_lanes
from whatif.units import BYTE, format_quantity

STEP_KINDS: Final = Kinds(
    ("forward", "backward", "gradients, optimiser"), ("", "series-1", "series-2", "series-3"), " fb=", "+FB="
)


class MemoryPage(Page[PageView]):
    """Collectives of the groups of ranks, and memory of a rank by kind."""

    NAME: ClassVar[str] = "memory"
    WIDE: ClassVar[bool] = True
    MEMORY: ClassVar[str] = SERVING_MEMORY
    TERMS: ClassVar[Mapping[str, str]] = SERVING_TERMS
    DEFAULT_CSS = """
    MemoryPage .panel { padding: 0 1; }
    MemoryPage ColumnsView { height: 1fr; max-height: 100%; }
    """

    def compose(self) -> ComposeResult:
        """The collectives above the memory."""
        yield ColumnsView(id="groups", classes="panel")
        yield Breakdown(id="memory-bar")

    def enter(self) -> None:
        """Focus the table."""
        self.query_one(ColumnsView).focus()

    def show(self, state: ExplorerState) -> None:
        """Show a state, whether or not the memory suffices."""
        self.state = state
        values = state.session.at.values
        groups = self.query_one(ColumnsView)
        groups.border_title = "collectives of the groups of ranks"
        groups.show(collective_rows(state.session.program, values), 1)
        picture = self.query_one("#memory-bar", Breakdown)
        picture.border_title = f"memory of a rank: {format_quantity(float(values[self.MEMORY]), BYTE, 3)}"
        picture.show(memory_bar(values, self.MEMORY, self.TERMS))


class StagesPage(MemoryPage):
    """One training step on all pipeline stages, collectives of the groups of ranks, memory of a rank by kind."""

    NAME: ClassVar[str] = "stages"
    MEMORY: ClassVar[str] = MEMORY
    TERMS: ClassVar[Mapping[str, str]] = MEMORY_TERMS
    KEYS: ClassVar[tuple[PageKey, ...]] = (
        PageKey("table", "v", "table", "collectives", "Switch between the stages and the collectives"),
        PageKey("up", "up,k", "scroll(-1)", "", "Scroll up by one stage"),
        PageKey("down", "down,j", "scroll(1)", "", "Scroll down by one stage"),
    )

    def __init__(self, state: ExplorerState) -> None:
        super().__init__(state)
        self._lanes: Lanes | None = None
        self._first = 0

    def compose(self) -> ComposeResult:
        """The stages or the collectives, above the memory."""
        with Vertical(id="stages-frame", classes="panel"):
            yield RankBars(STEP_KINDS)
            yield Static(id="step-words", markup=False)
        yield from super().compose()

    def enter(self) -> None:
        """Focus the visible part."""
        self.focus_first(self.query("RankBars, ColumnsView"))

    def show(self, state: ExplorerState) -> None:
        """Show a state."""
        super().show(state)
        tabular = state.view.picture == "table"
        frame, groups = self.query_one("#stages-frame"), self.query_one("#groups")
        frame.display, groups.display = not tabular, tabular
        focused = self.screen.focused
        if focused is None or self in focused.ancestors:
            self.call_after_refresh(self.enter)
        step = simulated_step(state.session.program, state.session.at.values)
        frame.border_title = f"one step on every stage: {step.words}" if step.schedule is not None else "one step"
        self._lanes = step_lanes(step)
        # The stages have no size until they are displayed.
        self.call_after_refresh(self.action_scroll, 0)
        reason = "" if step.schedule is not None else f"No pipeline to show: {step.words}."
        self.query_one("#step-words", Static).update(Content(reason))

    def on_resize(self) -> None:
        """Show as many stages as fit."""
        self.call_after_refresh(self.action_scroll, 0)

    def action_scroll(self, steps: int) -> None:
        """Bring other stages into sight; the frame states which are."""
        bars, count = self.query_one(RankBars), 0 if self._lanes is None else len(self._lanes.node)
        seen = lanes_in_sight(count, *bars.size)
        self._first = min(max(self._first + steps, 0), count - seen)
        bars.show_lanes(self._lanes, self._first)
        cut = f"stages {self._first} to {self._first + seen - 1} of {count} · ↑ ↓ others" if 0 < seen < count else ""
        self.query_one("#stages-frame").border_subtitle = Content(cut)
