"""The answer in a few numbers: the times, the share of communication, the phase that takes longest."""

from __future__ import annotations

import math

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content

from whatif.core.sweep_figure import Headline, headline
from whatif.core.uncertainty import Bands
from whatif.tui.labels import MUTED, StyledText, change_text, duration, percent
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.unchanged import KeptStatic


class Tile(KeptStatic):
    """A label, a number and a remark, one below the other."""

    def show(self, label: str, number: tuple[StyledText, ...], remark: str) -> None:
        """Show other words."""
        self.update(Content.assemble((label, MUTED), "\n", *number, "\n", (remark, MUTED)))


class HeadlineView(Container):
    """Four tiles, side by side as far as there is room."""

    def compose(self) -> ComposeResult:
        """Lay out the tiles."""
        for name in ("iteration", "total", "communication", "bottleneck"):
            yield Tile(id=name, markup=False)

    def show(self, state: ExplorerState, bands: Bands | None = None) -> None:
        """Show another answer, with its band where samples were drawn."""
        now = headline(state.session.point)
        before = headline(state.baseline.point) if state.changed else None
        self._show_times(now, before, state, bands)
        self._show_parts(now, state)

    def _show_times(self, now: Headline, before: Headline | None, state: ExplorerState, bands: Bands | None) -> None:
        was = f"was {duration(before.iteration_time)}" if before else ""
        if bands is not None:
            lower, _, upper = (duration(float(value), 3) for value in bands.values["iteration_time"])
            unit = upper.partition(" ")[2]
            was = f"{lower.removesuffix(f' {unit}')} .. {upper}"
        iteration = ((duration(now.iteration_time), "bold $text-primary"), _change(now, before))
        self._tile("iteration").show("time / iteration", iteration, was)
        count = state.session.program.parameters.get("application.iteration_count")
        total = (duration(now.total_time), "bold")
        self._tile("total").show("run time", (total,), f"{count.text()} iterations" if count else "")

    def _show_parts(self, now: Headline, state: ExplorerState) -> None:
        phases = state.session.program.phases
        category = next((phase.category for phase in phases if phase.phase == now.bottleneck), "")
        share = (percent(now.communication_fraction), "bold")
        self._tile("communication").show("communication", (share,), duration(now.communication_time))
        exists = math.isfinite(now.bottleneck_fraction)
        longest = f"{now.bottleneck} {percent(now.bottleneck_fraction)}" if exists else "–"
        remark = f"{category} {duration(now.bottleneck_time)}" if exists else ""
        self._tile("bottleneck").show("bottleneck", ((longest, "bold"),), remark)

    def _tile(self, name: str) -> Tile:
        return self.query_one(f"#{name}", Tile)


def _change(now: Headline, before: Headline | None) -> StyledText:
    """Relative difference of the time from the baseline, with its colour."""
    text = "" if before is None else change_text(now.iteration_time, before.iteration_time)
    styles = {"+": "$text-error", "x": "$text-error", "-": "$text-success", "±": MUTED}
    return (f"  {text}", styles[text[0]]) if text else ("", "")
