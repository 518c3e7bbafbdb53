"""The pages of transformers in the place of the ranks: pipeline stages in one step, memory of a rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from whatif.transformers.serving.parts import MEMORY as SERVING_MEMORY
from whatif.transformers.serving.results import MEMORY_TERMS as SERVING_TERMS
from whatif.transformers.training.memory import MEMORY
from whatif.transformers.training.results import MEMORY_TERMS
from whatif.tui.pages.page import Page
from whatif.tui.stage_lanes import communication_lines, memory_bar, simulated_step
from whatif.tui.state import ExplorerState
from whatif.tui.view_entries import PageView
from whatif.tui.widgets.breakdown import Breakdown
from whatif.tui.widgets.rank_bars import Kinds, RankBars
from whatif.units import BYTE, format_quantity

STEP_KINDS: Final = Kinds(
    ("forward", "backward", "gradients, optimiser"), ("", "series-1", "series-2", "series-3"), " fb=", "+FB="
)


class MemoryPage(Page[PageView]):
    """Memory of a rank by kind."""

    NAME: ClassVar[str] = "memory"
    MEMORY: ClassVar[str] = SERVING_MEMORY
    TERMS: ClassVar[Mapping[str, str]] = SERVING_TERMS
    DEFAULT_CSS = """
    MemoryPage #stages-frame { border: round $primary 40%; border-title-color: $text-primary; padding: 0 1; }
    MemoryPage #step-words { height: auto; color: $text-muted; }
    """

    def compose(self) -> ComposeResult:
        """The memory as a bar."""
        yield Breakdown(id="memory-bar")

    def show(self, state: ExplorerState) -> None:
        """Show a study, whether or not the memory suffices."""
        self._state = state
        self.show_memory(state.session.at.values)

    def show_memory(self, values: Mapping[str, Any]) -> None:
        """Show the memory of a rank."""
        whole = format_quantity(float(values[self.MEMORY]), BYTE, 3)
        picture = self.query_one("#memory-bar", Breakdown)
        picture.border_title = f"memory of a rank: {whole}"
        picture.show(memory_bar(values, self.MEMORY, self.TERMS))


class StagesPage(MemoryPage):
    """One training step on all pipeline stages, what computation hides of the communication, memory of a rank."""

    NAME: ClassVar[str] = "stages"
    MEMORY: ClassVar[str] = MEMORY
    TERMS: ClassVar[Mapping[str, str]] = MEMORY_TERMS
    WIDE: ClassVar[bool] = True

    def compose(self) -> ComposeResult:
        """The stages above the communication and the memory."""
        with Vertical(id="stages-frame"):
            yield RankBars(STEP_KINDS)
            yield Static(id="step-words", markup=False)
        yield from super().compose()

    def enter(self) -> None:
        """The stages want the keys."""
        self.query_one(RankBars).focus()

    def show(self, state: ExplorerState) -> None:
        """Show a study."""
        super().show(state)
        program, values = state.session.program, state.session.at.values
        step = simulated_step(program, values)
        frame = self.query_one("#stages-frame")
        frame.border_title = f"one step on every stage: {step.words}" if step.lanes is not None else "one step"
        self.query_one(RankBars).show(step.lanes)
        words = [] if step.lanes is not None else [f"No pipeline to show: {step.words}."]
        listed = "; ".join(communication_lines(program, values))
        words += [f"Communication: {listed}."] if listed else []
        self.query_one("#step-words", Static).update(Content(" ".join(words)))
