"""Job of the ranks page: a simulated run and its lanes in a window, computed in a worker process."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from whatif.core.session import SessionInputs
from whatif.errors import UsageError, WhatifError
from whatif.studies.rank_lanes import Lanes, RunSummary, Window
from whatif.tui.state import View
from whatif.units import SECOND, UnitError, format_quantity, parse_quantity

if TYPE_CHECKING:
    from whatif.studies.simulation_summary import SummarisedRun

_BLOCK_STEP: Final = 32
MOST_ITERATIONS: Final = 100_000
_FINEST: Final = 1e-9
"""Shortest window, as a share of the run."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulationPart:
    """Lanes of the ranks in sight; without a summary if the page has it."""

    lanes: Lanes
    summary: RunSummary | None


@dataclass(frozen=True, slots=True)
class SimulationRefusal:
    """Reason why a run cannot be simulated."""

    reason: str


def played(asked: SessionInputs, view: View, rank: int | None, known: bool) -> SimulationPart | SimulationRefusal:
    """Lanes of the run in the window of a view, with the messages of `rank`; without the summary if it is `known`."""
    from whatif.studies.simulation_summary import BLOCK, lanes_of  # noqa: PLC0415 - only the worker process needs it

    try:
        # A mistake in the window is reported before anything is simulated.
        parse_window(view.window)
        kept = _kept(_Run.of(asked, view))
        window = window_of(view.window, kept.summary.run_time)
        last = max(0, len(kept.summary.node) - BLOCK)
        lanes = lanes_of(kept, window, min(block_of(view), last), rank)
    except WhatifError as problem:
        return SimulationRefusal(str(problem))
    except MemoryError:
        return SimulationRefusal("this needs more memory than there is")
    return SimulationPart(lanes, None if known else kept.summary)


def parse_window(text: str) -> Window | None:
    """Window of a text such as `0 s, 3 ms`; None for the whole run; raise `UsageError`."""
    if not text:
        return None
    try:
        edges = [parse_quantity(word) for word in text.split(",")]
    except UnitError as problem:
        raise UsageError(f"window: {problem}") from None
    if len(edges) != 2 or any(edge.dimension != SECOND for edge in edges) or not edges[0].value < edges[1].value:
        raise UsageError(f"window: `{text}`: expected its start and end, such as `0 s, 3 ms`")
    return edges[0].value, edges[1].value


def window_of(text: str, run_time: float) -> Window:
    """Window of a text, clipped to the run; raise `UsageError`."""
    start, end = parse_window(text) or (0.0, run_time)
    return fitting(start, end - start, run_time)


def fitting(start: float, length: float, run_time: float) -> Window:
    """Window of a length nearest to one that starts at `start`, within the run."""
    length = min(max(length, _FINEST * run_time), run_time)
    start = min(max(start, 0.0), run_time - length)
    return start, start + length


def window_text(window: Window, run_time: float) -> str:
    """Text of a window as `parse_window` reads it; empty for the whole run."""
    if window[1] - window[0] >= run_time:
        return ""
    return ", ".join(format_quantity(edge, SECOND, 17) for edge in window)


def iterations_of(view: View) -> int:
    """Number of iterations of a view; raise `UsageError`."""
    text = view.iterations.strip()
    if not text.isdecimal() or not 1 <= int(text) <= MOST_ITERATIONS:
        raise UsageError(f"iterations: `{text}`: expected a whole number from 1 to {MOST_ITERATIONS}")
    return int(text)


def first_of(view: View) -> int:
    """First rank of a view; 0 if the text is not a number."""
    text = view.first_rank.strip()
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def block_of(view: View) -> int:
    """First rank of the block with the ranks in sight."""
    return first_of(view) // _BLOCK_STEP * _BLOCK_STEP


@dataclass(frozen=True, slots=True)
class _Run:
    """Key of a simulated run: the text of the scenario, its overrides, and the number of iterations."""

    words: tuple[object, ...]
    iterations: int
    asked: SessionInputs = field(compare=False, repr=False)

    @classmethod
    def of(cls, asked: SessionInputs, view: View) -> _Run:
        question = asked.question
        sets = tuple(sorted((path, str(value)) for path, value in question.sets.items()))
        document = question.document
        words = (document.text, str(document.folder), question.platform, sets, question.folders)
        return cls(words, iterations_of(view), asked)


@lru_cache(maxsize=2)
def _kept(run: _Run) -> SummarisedRun:
    from whatif.studies.simulation_summary import summarised_run  # noqa: PLC0415 - only the worker process needs it

    return summarised_run(run.asked.question, run.iterations)
