"""Timeline of one iteration: its phases on a time axis, with stated overlaps in parallel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from whatif.axes import Grid
from whatif.core.evaluate import Evaluation
from whatif.core.result import Result, result_of
from whatif.core.term import PhaseTerm, Program
from whatif.errors import InfeasiblePointError
from whatif.vocabulary import Category


@dataclass(frozen=True, slots=True)
class Bar:
    """One phase: start and duration in s; bars in one lane do not overlap."""

    phase: str
    category: Category
    start: float
    duration: float
    lane: int

    @property
    def end(self) -> float:
        """End of the phase in s."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bars of one iteration in the order of the file; the last one ends at `iteration_time`, in s."""

    bars: tuple[Bar, ...]
    iteration_time: float
    lane_count: int

    def share(self, bar: Bar) -> float:
        """Share of a bar in the iteration's time; NaN for an iteration without time."""
        return bar.duration / self.iteration_time if self.iteration_time > 0 else math.nan


def possible_result(evaluation: Evaluation) -> Result:
    """Results of an evaluation of one point. Raise `InfeasiblePointError` if it is infeasible."""
    result = result_of(evaluation, Grid())
    if result.reasons:
        raise InfeasiblePointError(f"infeasible: {result.obstacle()}")
    return result


def timeline(program: Program, evaluation: Evaluation) -> Timeline:
    """Timeline of one iteration at one point, with the total of the model; it is not a simulation.

    Phases follow one another in the order of the file. Of two phases with a stated overlap, the later one in the file
    starts before the earlier one ends, by the time that is hidden (`fraction` of the shorter one), and
    has a second lane where any is. Phases that the file lists between the two wait until both are over: the model
    hides nothing behind them. So exactly the stated time is saved, and the last end is the iteration's time. Phases
    without time have bars without length. Raise `InfeasiblePointError` if the point has no answer.
    """
    result = possible_result(evaluation)
    times = {name: float(time) for name, time in result.terms.items()}
    phases = {phase.phase: phase for phase in program.phases}
    later = _overlaps(program, evaluation)
    bars: dict[str, Bar] = {}
    end = 0.0
    for name, phase in phases.items():
        if name in bars:
            continue
        first = bars[name] = _bar(phase, end, times[name], 0)
        end = first.end
        if name in later:
            overlapping, hidden = later[name]
            second = bars[overlapping] = _bar(phases[overlapping], end - hidden, times[overlapping], int(hidden > 0))
            end = second.end
    lane_count = 1 + max(bar.lane for bar in bars.values())
    return Timeline(tuple(bars[name] for name in phases), float(result.columns["iteration_time"]), lane_count)


def _bar(phase: PhaseTerm, start: float, duration: float, lane: int) -> Bar:
    return Bar(phase.phase, phase.category, start, duration, lane)


def _overlaps(program: Program, evaluation: Evaluation) -> Mapping[str, tuple[str, float]]:
    """Later phase and hidden time in s of each overlap, by its earlier phase."""
    order = [phase.phase for phase in program.phases]
    found: dict[str, tuple[str, float]] = {}
    for name, overlap in program.loaded.scenario.application.overlaps.items():
        earlier, later = sorted(overlap.phases, key=order.index)
        found[earlier] = later, float(evaluation.values[f"overlap.{name}"])
    return found
