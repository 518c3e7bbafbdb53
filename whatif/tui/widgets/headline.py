"""The answer in a few numbers: the times, the share of communication, the phase that takes longest."""

from __future__ import annotations

import math

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from whatif.export.figure import Headline, headline
from whatif.tui.changes import Study
from whatif.tui.words import MUTED, duration, percent


class Tile(Static):
    """A label, a number and a remark."""

    def show(self, label: str, value: str, remark: str, tone: str = "") -> None:
        """Show other words; `tone` is the style of the number."""
        self.update(Content.assemble((label, MUTED), "\n", (value, f"bold {tone}".strip()), "\n", (remark, MUTED)))


class HeadlineView(Horizontal):
    """Four tiles, side by side as far as there is room."""

    def compose(self) -> ComposeResult:
        """Lay out the tiles."""
        for name in ("iteration", "total", "communication", "bottleneck"):
            yield Tile(id=name, markup=False)

    def show(self, study: Study) -> None:
        """Show another answer."""
        now, program = headline(study.session.point), study.session.program
        before = headline(study.opened.point) if study.changed else None
        category = next((phase.category for phase in program.phases if phase.phase == now.bottleneck), "")
        count = program.leaves["application.iteration_count"].text()
        self._tile("iteration").show("iteration", duration(now.iteration_time), _compared(now, before), "$text-primary")
        self._tile("total").show("total", duration(now.total_time), f"{count} iterations")
        self._tile("communication").show(
            "communication", percent(now.communication_fraction), duration(now.communication_time)
        )
        self._tile("bottleneck").show(
            "bottleneck",
            f"{now.bottleneck} {percent(now.bottleneck_fraction)}",
            f"{category} {duration(now.bottleneck_time)}",
        )

    def _tile(self, name: str) -> Tile:
        return self.query_one(f"#{name}", Tile)


def _compared(now: Headline, before: Headline | None) -> str:
    """What the time was as opened, and by how much it differs."""
    if before is None or not math.isfinite(before.iteration_time):
        return "as opened"
    change = now.iteration_time / before.iteration_time - 1 if before.iteration_time else math.nan
    by = f" ({change:+.1%})" if math.isfinite(change) else ""
    return f"was {duration(before.iteration_time)}{by}"
