"""Contents of a report: results, sweep, sensitivities and difference from another scenario, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import numpy as np

from whatif.axes import Axis, Grid
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.grid_run import run
from whatif.core.iteration_timeline import Timeline, timeline
from whatif.core.result import Result, joined, result_of
from whatif.core.scenario import Scenario
from whatif.core.session import CURVE_POINTS, FAMILY_POINTS, SIMULATED_POINTS
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, UsageError
from whatif.plotting.picture import Drawable
from whatif.plotting.presentable import Presentable
from whatif.schema.expressions import Expression
from whatif.schema.parameters import Parameter
from whatif.studies.attribution import Attribution, finest_attribution
from whatif.studies.bar_charts import phase_bars
from whatif.studies.bottlenecks import Bottlenecks, ideal_parts, ladder
from whatif.studies.elasticity import Elasticity, elasticities
from whatif.table import Table

PATIENCE: Final = 15.0
"""Time limit in s: nothing is started that would take longer than the rest of it."""
_SIMULATED: Final = 0.1
"""Time in s of a term above which its points are assumed to be simulated one by one, each at the same cost."""
_MOVED: Final = 1 + 1e-6
_ATTRIBUTED: Final = 30_000
"""Points of an attribution, at most or nearly so."""
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Presentable):
    """Contents of a report; parts that are missing are None or empty, with the reason in `left_out`."""

    scenario: Scenario
    at: Evaluation
    point: Result
    other: Scenario | None
    other_point: Result | None
    sweep: Result | None
    timeline: Timeline | None = None
    elasticities: tuple[Elasticity, ...] = ()
    ladder: Bottlenecks | None = None
    attribution: Attribution | None = None
    left_out: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Parts that were left out, extrapolations, and why the point is infeasible."""
        left_out = [f"left out: {text}" for text in self.left_out]
        warnings = [f"warning: {text}" for text in self.point.extrapolated]
        infeasible = [self._infeasible()] if self.point.reasons and not self._without_answer() else []
        return (*left_out, *warnings, *infeasible)

    def table(self) -> Table:
        """The sweep, else the point."""
        return (self.sweep or self.point).table()

    def picture(self) -> Drawable:
        """The sweep, else the phases of one iteration. Raise `UsageError` if the point is infeasible."""
        if self.sweep is not None:
            return self.sweep.picture()
        if self.timeline is None:
            raise UsageError(self._infeasible())
        return phase_bars(self.scenario.program, self.timeline)

    def raise_if_infeasible(self) -> None:
        """Raise `InfeasiblePointError` if no point is feasible."""
        if self._without_answer():
            raise InfeasiblePointError(self._infeasible())

    def _infeasible(self) -> str:
        return f"infeasible: {self.point.obstacle()}"

    def _without_answer(self) -> bool:
        return bool(self.point.reasons) and (self.sweep is None or self.sweep.infeasible == self.sweep.grid.size)


def findings(
    scenario: Scenario,
    grid: Grid,
    other: Scenario | None = None,
    patience: float = PATIENCE,
    progress: Callable[[str], None] = lambda text: None,
) -> Findings:
    """Contents of a report on a scenario: at its point, over a grid, and compared with another scenario.

    A long sweep is thinned to the points of a picture. If points are simulated one by one, a sweep ends at the time
    limit, `patience` in s, and what would take longer is left out. `progress` receives what is computed next. Raise
    `InvalidFileError` and `UsageError` as `run`.
    """
    at = evaluate(scenario.program)
    point = result_of(at, Grid())
    clock = _Clock(_seconds_of_a_point(at), time.monotonic() + patience, progress)
    # Before the sweep, which takes what time there is.
    there = None if other is None else result_of(evaluate(other.program), Grid())
    found = Findings(scenario, at, point, other, there, _swept(scenario, grid, clock))
    if not point.reasons:
        found = _explained(found, clock)
    return replace(found, left_out=tuple(clock.left_out))


def _explained(found: Findings, clock: _Clock) -> Findings:
    """Contents with the parts that need a feasible point."""
    program = found.scenario.program
    parameters, parts = len(program.reached), len(ideal_parts(program, "iteration_time"))
    followed = clock.within("the elasticities", 2 * parameters, lambda: elasticities(program)) or ()
    rungs = clock.within("the ladder of ideals", parts * (parts + 1) // 2, lambda: ladder(program))
    return replace(
        found,
        timeline=timeline(program, found.at),
        elasticities=followed,
        ladder=rungs,
        attribution=_difference(program, found.other_point, clock),
    )


def _seconds_of_a_point(at: Evaluation) -> float:
    """Time in s of one more point; the first one includes loading or compiling its simulation."""
    slowest = max(at.seconds, key=lambda name: at.seconds[name], default="")
    if not slowest or at.seconds[slowest] < _SIMULATED:
        return 0.0
    parameters = (at.program.parameters[path] for path in sorted(at.program.inputs_of(slowest)))
    moved = next((parameter for parameter in parameters if _moves(parameter)), None)
    began = time.monotonic()
    if moved is not None:
        evaluate(at.program, {moved.path: np.asarray(float(moved.value) * _MOVED)})
    return time.monotonic() - began


def _moves(parameter: Parameter) -> bool:
    if parameter.field is None or isinstance(parameter.value, Expression) or parameter.field.domain.whole:
        return False
    return parameter.value != 0 and bool(parameter.field.domain.accepts(float(parameter.value) * _MOVED))


@dataclass(slots=True)
class _Clock:
    """Time limit of a report, and the parts left out because of it."""

    point_seconds: float
    end: float
    progress: Callable[[str], None]
    left_out: list[str] = field(default_factory=list)

    def left(self) -> float:
        """Time left in s."""
        return self.end - time.monotonic()

    @property
    def simulated(self) -> bool:
        """Whether points are simulated one by one."""
        return self.point_seconds > 0

    def within(self, what: str, points: int, compute: Callable[[], Found]) -> Found | None:
        """Result of a computation of `points` points; None if it does not fit into the time left."""
        if points * self.point_seconds > max(self.left(), 0.0):
            self.left_out.append(
                f"{what}: {points:,} points, each simulated in {self.point_seconds:.2g} s, take too long"
            )
            return None
        self.progress(what)
        try:
            return compute()
        except InfeasiblePointError as error:
            self.left_out.append(f"{what}: {error}")
            return None


def _swept(scenario: Scenario, grid: Grid, clock: _Clock) -> Result | None:
    """Sweep with as many points as a picture shows and the time allows."""
    if not grid.axes:
        return None
    shown = _thinned(grid, clock)
    if shown.size < grid.size:
        clock.left_out.append(f"{grid.size - shown.size:,} of the {grid.size:,} points of the sweep")
    parts: list[Result] = []
    began = time.monotonic()
    # Choices stay together: an unsuitable platform is an infeasible point only among others.
    one_by_one = clock.simulated and not any(axis.structural for axis in shown.axes)
    clock.progress("the sweep")
    for part in run(scenario, shown, 1 if one_by_one else shown.size):
        parts.append(part)
        clock.progress(f"the sweep: {sum(each.grid.size for each in parts):,} of {shown.size:,} points")
        # The next one takes as long as those before, or longer.
        if clock.left() < (time.monotonic() - began) / len(parts):
            break
    if len(parts) == 1 and parts[0].grid.size == shown.size:
        return parts[0]
    return joined(parts, shown, "not computed: the time of the report was over")


def _thinned(grid: Grid, clock: _Clock) -> Grid:
    """Grid with as many places of two axes as a picture shows, further axes at their first place."""
    limits = [CURVE_POINTS, FAMILY_POINTS]
    if clock.simulated:
        most = max(2, int(clock.left() / 2 / clock.point_seconds))
        limits = [min(SIMULATED_POINTS, most), max(1, min(SIMULATED_POINTS, most // SIMULATED_POINTS))]
    kept = [*limits, *[1] * len(grid.axes)][: len(grid.axes)]
    return Grid(tuple(_places(axis, most) for axis, most in zip(grid.axes, kept, strict=True)))


def _places(axis: Axis, most: int) -> Axis:
    """Axis with at most `most` places, evenly spread, with both ends."""
    if len(axis) <= most:
        return axis
    chosen = np.unique(np.linspace(0, len(axis) - 1, most).round().astype(int))
    return axis.slice(chosen)


def _difference(program: Program, there: Result | None, clock: _Clock) -> Attribution | None:
    """Attribution of the difference; by table if single values cannot change alone."""
    if there is None:
        return None
    if there.reasons:
        clock.left_out.append(f"the difference: {there.obstacle()}")
        return None
    return clock.within("the difference", _ATTRIBUTED, lambda: finest_attribution(program, there.program))
