"""One iteration of a scenario on a time axis, as table and picture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from whatif.core.evaluate import evaluate
from whatif.core.iteration_timeline import Bar, Timeline
from whatif.core.iteration_timeline import timeline as timeline_at
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.plotting.bars import BarChart
from whatif.studies.bar_charts import phase_bars
from whatif.studies.study_result import StudyResult
from whatif.table import Table
from whatif.units import ONE, SECOND, Dimension

_COLUMNS: Final[dict[str, Dimension | None]] = {
    "phase": None, "category": None, "start": SECOND, "end": SECOND, "time": SECOND, "share": ONE,
}  # fmt: skip
_WIDTH: Final = 40
"""Characters of a bar as long as the iteration."""


@dataclass(frozen=True, eq=False, repr=False)
class Iteration(StudyResult):
    """Start and end of each phase of one iteration, with stated overlaps in parallel."""

    program: Program
    timeline: Timeline
    optional_columns = (["timeline"], ["end"], ["category"])

    def table(self) -> Table:
        """One row per phase, in the order of the file."""
        rows = [
            (bar.phase, bar.category, bar.start, bar.end, bar.duration, self.timeline.share(bar))
            for bar in self.timeline.bars
        ]
        return Table.of_rows(_COLUMNS, rows, shares=("share",))

    def readable_table(self) -> Table:
        """The table with a bar per row."""
        whole = self.timeline.iteration_time
        return self.table().with_texts("timeline", (_bar(bar, whole) for bar in self.timeline.bars))

    def picture(self) -> BarChart:
        """One bar per phase, with its time and share."""
        loaded = self.program.loaded.scenario
        chart = phase_bars(self.program, self.timeline)
        return replace(chart, title=f"one iteration of {loaded.application.name} on {loaded.platform.name}")


def iteration(scenario: Scenario) -> Iteration:
    """One iteration of a scenario; raise `InfeasiblePointError` for an infeasible point."""
    program = scenario.program
    return Iteration(program, timeline_at(program, evaluate(program))).about(scenario)


def _bar(bar: Bar, whole: float) -> str:
    """Bar from start to end, at least one character for a phase that takes time."""
    first, last = (round(_WIDTH * place / whole) if whole > 0 else 0 for place in (bar.start, bar.end))
    size = max(last - first, int(bar.duration > 0))
    first = min(first, _WIDTH - size)
    return (" " * first + "█" * size).ljust(_WIDTH)
