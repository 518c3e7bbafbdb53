"""Job of the ranks page: a simulated run and its lanes in a window, computed in a worker process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from whatif.core.session import SessionInputs
from whatif.plotting.lanes import Lanes
from whatif.studies.rank_lanes import RunSummary
from whatif.tui.jobs.refusal import answer_or_refusal
from whatif.tui.page_views import RanksView
from whatif.tui.time_window import window_of

if TYPE_CHECKING:
    from whatif.studies.simulation_summary import SummarisedRun

_BLOCK_STEP: Final = 32


@dataclass(frozen=True, slots=True, eq=False)
class SimulationPart:
    """Lanes of the visible ranks; without a summary if the page has it."""

    lanes: Lanes
    summary: RunSummary | None


@answer_or_refusal
def simulated_part(inputs: SessionInputs, view: RanksView, rank: int | None, known: bool) -> SimulationPart:
    """Lanes of the run in the window of a view, with the messages of `rank`; without the summary if it is `known`."""
    from whatif.studies.simulation_summary import BLOCK, lanes_of  # noqa: PLC0415 - only the worker process needs it

    kept = _kept(_Run.of(inputs, view))
    window = window_of(view.window, kept.summary.run_time)
    last = max(0, len(kept.summary.node) - BLOCK)
    lanes = lanes_of(kept, window, min(block_of(view.first_rank), last), rank)
    return SimulationPart(lanes, None if known else kept.summary)


def block_of(first_rank: int) -> int:
    """First rank of the block that holds the visible ones."""
    return first_rank // _BLOCK_STEP * _BLOCK_STEP


@dataclass(frozen=True, slots=True)
class _Run:
    """Key of a simulated run: the text of the scenario, its overrides, and the number of iterations."""

    words: tuple[object, ...]
    iterations: int
    inputs: SessionInputs = field(compare=False, repr=False)

    @classmethod
    def of(cls, inputs: SessionInputs, view: RanksView) -> _Run:
        scenario = inputs.scenario
        sets = tuple(sorted((path, str(value)) for path, value in scenario.overrides.items()))
        document = scenario.document
        words = (document.text, str(document.folder), scenario.platform, sets, scenario.folders)
        return cls(words, view.iterations, inputs)


@lru_cache(maxsize=2)
def _kept(run: _Run) -> SummarisedRun:
    from whatif.studies.simulation_summary import summarised_run  # noqa: PLC0415 - only the worker process needs it

    return summarised_run(run.inputs.scenario, run.iterations)
