"""Results of scenarios over grids, with their grades, bands and infeasible points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import pairwise, product
from typing import TYPE_CHECKING, Final

import numpy as np

from whatif.axes import Grid
from whatif.core.calibration_notes import model_notes
from whatif.core.evaluate import Evaluation, Texts, evaluate
from whatif.core.fit_range import Points, extrapolations
from whatif.core.machine_notes import notes_by_machine
from whatif.core.scenario import Scenario, structural_places, worst_grades
from whatif.core.sweep import PLATFORM_PARAMETER, is_machine, machine_name
from whatif.core.term import Program, common_dimension
from whatif.core.uncertainty import Bands, Sampling, bands_of, joined_bands
from whatif.errors import InvalidFileError, UsageError
from whatif.extras import install_command
from whatif.models.quantities import FloatArray
from whatif.plotting.presentable import Presentable, plotted
from whatif.schema.parameters import worst
from whatif.table import Column, Table
from whatif.units import Dimension
from whatif.vocabulary import CATEGORIES

if TYPE_CHECKING:
    from pathlib import Path

    import xarray as xr
    from matplotlib.figure import Figure

    from whatif.core.sweep_answers import Answers
    from whatif.plotting.description import Description

NO_NUMBER: Final = "the model gives no number there"
_ROUNDING: Final = 1e-9
"""Relative difference of equal numbers."""

CATEGORY_TIMES: Final = (*(f"{category}_time" for category in CATEGORIES), "overlap_time")
"""Columns of the parts of an iteration by category."""

# Points evaluated at a time: large enough to amortise Python, small enough to stay in a core's cache.
CHUNK_POINTS: Final = 65_536


def why_not(forbidden: Texts | None, numbers: FloatArray) -> Texts:
    """Reason why each number is missing: an infeasible point, or an infinite time; empty if it is not."""
    reason = np.broadcast_to("" if forbidden is None else forbidden, numbers.shape).astype(object)
    reason[~np.isfinite(numbers) & (reason == "")] = NO_NUMBER
    return reason


@dataclass(frozen=True, eq=False, repr=False)
class Result(Presentable):
    """Columns and phase times over a grid; every array broadcasts to the grid's shape.

    `grades` are the lowest grades of the values that the results depend on; `forbidden` are the reasons of infeasible
    points, empty at feasible ones, None if all are feasible; `extrapolated` are inputs outside their fitted range
    (`PHASE: ..`), and where.
    """

    program: Program
    grid: Grid
    columns: Mapping[str, FloatArray]
    terms: Mapping[str, FloatArray]
    dimensions: Mapping[str, Dimension]
    """Units of columns, and of phases as `terms.NAME`."""
    grades: Texts
    forbidden: Texts | None = None
    extrapolated: Mapping[str, Points] = field(default_factory=dict)
    bands: Bands | None = None
    """Quantiles over samples of the uncertain values; None without samples or uncertain values."""
    other_grades: Mapping[str, str] = field(default_factory=dict)
    """Lowest grades of the columns that are not times."""
    elsewhere: str = ""
    """Lowest grade of the whole grid if this is a part of one, else empty."""
    shortage: str = ""
    """Shortage at a single infeasible point, in words."""
    machines: Mapping[str, Program] = field(default_factory=dict)
    """A program of each machine of a sweep over machines, by name."""

    @cached_property
    def grade(self) -> str:
        """Lowest grade of all points; of the whole grid if this is a part of one."""
        return worst([*np.ravel(self.grades).tolist(), self.elsewhere])

    @cached_property
    def reason(self) -> Texts:
        """Reason why each point of the grid has no result, empty if it has one."""
        return why_not(self.forbidden, self.grid.spread(self.columns["total_time"]))

    @property
    def infeasible(self) -> int:
        """Number of infeasible points of the grid."""
        return int((self.reason != "").sum()) if self.reasons else 0

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """Reasons why points are infeasible, each once."""
        if self.forbidden is None and np.isfinite(self.columns["total_time"]).all():
            return ()
        return tuple(text for text in dict.fromkeys(self.reason.ravel().tolist()) if text)

    def table(self) -> Table:
        """One row per point: swept parameters, columns, phase times (`terms.NAME`), reason if it is infeasible, the
        lowest grade of its inputs, and the phases outside the range they were fitted in."""
        columns = {path: self._coordinate(path) for path in self.grid.parameters()}
        for name in (*self.columns, *(f"terms.{phase}" for phase in self.terms)):
            columns |= dict(self._columns(name))
        # A view of one text costs nothing, however many points there are.
        nowhere = np.broadcast_to(np.array("", dtype=object), self.grid.size)
        columns["infeasible"] = Column(self.reason.ravel() if self.reasons else nowhere)
        columns["grade"] = Column(
            np.broadcast_to(self.grades.ravel() if self.grades.ndim else self.grades, self.grid.size)
        )
        columns["extrapolated"] = Column(self._beyond().ravel() if self.extrapolated else nowhere)
        return Table(columns, {"scenario": self.program.loaded.name, "grade": self.grade})

    def __getitem__(self, name: str) -> FloatArray:
        """Result column, or phase as `terms.NAME`; NaN at infeasible points."""
        if name not in self.dimensions:
            raise KeyError(name)
        return self.grid.spread(array_of(self, name))

    def to_xarray(self) -> xr.Dataset:
        """Data set with a dimension for each axis, named by its first parameter. Needs the extra `xarray`."""
        try:
            import xarray
        except ImportError:
            raise UsageError(f"to_xarray needs xarray: {install_command('xarray')}") from None
        names = [next(iter(axis.parameters)) for axis in self.grid.axes]
        coordinates = {
            path: (name, values)
            for name, axis in zip(names, self.grid.axes, strict=True)
            for path, values in axis.parameters.items()
        }
        columns = {name: (names, self[name], {"units": str(unit)}) for name, unit in self.dimensions.items()}
        found = xarray.Dataset(columns, coordinates)
        found["infeasible"] = (names, self.reason)
        if self.bands is not None:
            for name, quantiles in self.bands.values.items():
                spread = np.stack([self.grid.spread(array) for array in quantiles])
                found[f"{name}_band"] = (["quantile", *names], spread)
            found.coords["quantile"] = list(self.bands.sampling.quantiles)
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """Calibration and accuracy, extrapolations, missing samples, grades, and reasons of infeasible points."""
        from whatif.core.result_summary import Tally

        if self.reasons and self.infeasible == self.grid.size:
            return (Tally.of(self).refusal,)
        programs = self.machines or {"": self.program}
        about = notes_by_machine({name: model_notes(program) for name, program in programs.items()})
        return (*about, *Tally.of(self).notes(self.grid))

    @property
    def outside(self) -> tuple[str, ...]:
        """Columns with values that lie outside of their bands."""
        if self.bands is None:
            return ()
        ends = {name: (lower, upper) for name, (lower, _, upper) in self.bands.values.items() if name in self.columns}
        return tuple(name for name, (lower, upper) in ends.items() if _is_beyond(self.columns[name], lower, upper))

    def answers(self, y: str = "iteration_time") -> Answers:
        """Answers about one column: optimum, knee, crossovers and the first infeasible value, in sentences and as data.

        None for a single point. Times, energies and costs are to be small, rates are to be large.
        """
        from whatif.core.sweep_answers import sweep_answers

        return sweep_answers(self, y)

    def picture(self, y: str = "") -> Description:
        """Plot of one column (`iteration_time` by default) with its band and the marks of its answers, as
        `whatif run --plot` draws it.

        Raise `UsageError` for a single point.
        """
        if not self.grid.axes:
            raise UsageError("a single point has no plot; sweep a parameter")
        return self.answers(y or "iteration_time").picture()

    def plot(self, path: str | Path | None = None, y: str = "") -> Figure:
        """Matplotlib figure of one column, `iteration_time` unless named (extra `report`); with a path, also a file
        `.svg`, `.png` or `.pdf`. Raise `UsageError` for a single point."""
        return plotted(self.picture(y), path)

    def _beyond(self) -> Texts:
        """Phases outside the range they were fitted in, at every point."""
        phases = np.full(self.grid.shape, "", dtype=object)
        places: dict[str, Points] = {}
        for text, where in self.extrapolated.items():
            name = text.partition(":")[0]
            places[name] = places.get(name, np.False_) | where
        for name, where in places.items():
            phases = np.where(where, np.where(phases == "", name, phases + f", {name}"), phases)
        return phases

    def _coordinate(self, path: str) -> Column:
        parameter = self.program.parameters.get(path)
        dimension = parameter.dimension if parameter is not None and parameter.field is not None else None
        return Column(self.grid.coordinate(path).ravel(), dimension)

    def _columns(self, name: str) -> Iterator[tuple[str, Column]]:
        """Column of a result, and those of its quantiles if there are samples: `total_time`, `total_time.p5`, .."""
        arrays = {name: array_of(self, name)}
        if self.bands is not None:
            suffixes, quantiles = self.bands.sampling.names, self.bands.values[name]
            arrays |= {f"{name}.{suffix}": array for suffix, array in zip(suffixes, quantiles, strict=True)}
        for key, array in arrays.items():
            yield key, Column(self.grid.spread(array).ravel(), self.dimensions[name])


class Evaluator:
    """Evaluator of parts of a grid, one after the other; terms that did not change since the last part are reused."""

    def __init__(self, scenario: Scenario, sampling: Sampling | None = None) -> None:
        self._scenario, self._sampling = scenario, sampling
        self._latest: Evaluation | None = None

    def run(self, grid: Grid, chunk_points: int = CHUNK_POINTS) -> Iterator[Result]:
        """Results of a part, in chunks along its leading axis, in order."""
        samples = 1 if self._sampling is None else self._sampling.count
        for part in grid.chunks(max(1, chunk_points // samples)):
            if any(axis.structural for axis in part.axes):
                yield _run_structural(self._scenario, part, self._sampling)
            else:
                self._latest = evaluate(self._scenario.program, part.arrays(), self._latest)
                yield result_of(self._latest, part, self._sampling)


def run(
    scenario: Scenario,
    grid: Grid = Grid(),  # noqa: B008
    chunk_points: int = CHUNK_POINTS,
    sampling: Sampling | None = None,
) -> Iterator[Result]:
    """Results over a grid, in chunks along its leading axis, in order."""
    return Evaluator(scenario.compiled(grid), sampling).run(grid, chunk_points)


def run_whole(scenario: Scenario, grid: Grid, sampling: Sampling | None = None) -> Result:
    """Result over a whole grid."""
    points = grid.size * (1 if sampling is None else sampling.count)
    return next(run(scenario, grid, chunk_points=max(1, points), sampling=sampling))


def result_of(evaluation: Evaluation, grid: Grid, sampling: Sampling | None = None) -> Result:
    """Result of an evaluation, with bands if there are samples and uncertain values."""
    program = evaluation.program
    columns = {name: evaluation.column(name) for name in program.columns}
    terms = {phase.phase: evaluation.masked(evaluation.values[phase.term]) for phase in program.phases}
    dimensions = {name: program.terms[term].dimension for name, term in program.results.items()}
    remarks = (np.array(program.grade, dtype=object), evaluation.reason(), extrapolations(evaluation))
    bands = None if sampling is None else bands_of(program, grid, sampling)
    found = Result(program, grid, columns, terms, dimensions, *remarks, bands, program.other_grades)
    return found if found.forbidden is None else replace(found, shortage=evaluation.shortage())


def _run_structural(scenario: Scenario, grid: Grid, sampling: Sampling | None) -> Result:
    """Result over a grid with structural values: one compilation for each combination of them."""
    reason = np.full(grid.shape, "", dtype=object)
    parts: list[tuple[tuple[slice, ...], Result]] = []
    machines: dict[str, Program] = {}
    failed: InvalidFileError | None = None
    for places in product(*(structural_places(axis) for axis in grid.axes)):
        structural = {path: value for _, values in places for path, value in values.items()}
        part = Grid(tuple(axis.slice(place) for axis, (place, _) in zip(grid.axes, places, strict=True)))
        where = tuple(place for place, _ in places)
        try:
            program = scenario.program_at(structural)
        except InvalidFileError as problem:
            reason[where] = unfit(scenario, problem, structural)
            failed = problem
            continue
        _refuse_missing(program, part, structural)
        machines.setdefault(machine_name(structural), program)
        result = result_of(evaluate(program, part.arrays()), part, sampling)
        reason[where] = result.reason
        parts.append((where, result))
    if not scenario.programs:
        assert failed is not None
        raise failed
    return replace(_joined(scenario, grid, parts, reason, sampling), machines=machines)


def _joined(
    scenario: Scenario, grid: Grid, parts: Sequence[tuple[tuple[slice, ...], Result]], reason: Texts,
    sampling: Sampling | None,
) -> Result:  # fmt: skip
    """Result of joined parts of a grid; NaN where a part has no such column."""
    known = scenario.programs
    nowhere = np.full(grid.shape, np.nan)
    columns = dict.fromkeys(_in_order([list(item.columns) for item in known]), nowhere)
    terms = {phase.phase: nowhere for item in known for phase in item.phases}
    columns |= grid.join((where, result.grid, result.columns) for where, result in parts)
    terms |= grid.join((where, result.grid, result.terms) for where, result in parts)
    grades = np.full(grid.shape, "", dtype=object)
    extrapolated: dict[str, Points] = {}
    for where, result in parts:
        grades[where] = result.grades
        for text, beyond in result.extrapolated.items():
            extrapolated.setdefault(text, np.zeros(grid.shape, dtype=bool))[where] = beyond  # type: ignore[index]
    dimensions = _dimensions(known)
    sampled = [(where, result.grid, result.bands) for where, result in parts if result.bands is not None]
    bands = None if sampling is None else joined_bands(grid, sampled, sampling, dimensions)
    program = parts[0][1].program if parts else known[0]
    whole = worst_grades(known)
    others = {name: grade for name, grade in whole.items() if name}
    remarks = (grades, reason, extrapolated, bands, others, whole[""])
    return Result(program, grid, columns, terms, dimensions, *remarks)


def _in_order(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of all lists, each list in its own order."""
    before: dict[str, list[str]] = {name: [] for names in lists for name in names}
    for names in lists:
        for first, second in pairwise(names):
            before[second].append(first)
    return tuple(TopologicalSorter(before).static_order())


def _dimensions(programs: Sequence[Program]) -> dict[str, Dimension]:
    """Units of all results of some programs. Raise `UsageError` for costs in several currencies, which cannot share a
    column."""
    found: dict[str, list[Dimension]] = {}
    for program in programs:
        for name, term in program.results.items():
            found.setdefault(name, []).append(program.terms[term].dimension)
    return {name: common_dimension(name, units) for name, units in found.items()}


def unfit(scenario: Scenario, problem: InvalidFileError, structural: Mapping[str, str]) -> str:
    """Reason why a scenario does not fit a platform of a sweep; an error for any other invalid choice."""
    if not any(map(is_machine, structural)) or any(is_machine(item.key) for item in problem.problems):
        raise problem
    scenario.check_platform(structural.get(PLATFORM_PARAMETER))
    return problem.problems[0].message


def _refuse_missing(program: Program, grid: Grid, structural: Mapping[str, str]) -> None:
    """Refuse a swept parameter that some structural choice lacks: a flat line would hide that."""
    missing = next((path for path in grid.arrays() if path not in program.parameters), None)
    if missing is not None:
        choices = ", ".join(f"{path}={value}" for path, value in structural.items())
        raise UsageError(f"`{missing}`: no such parameter with {choices}")


def _is_beyond(values: FloatArray, lower: FloatArray, upper: FloatArray) -> bool:
    """Whether some values are below or above their bands by more than rounding."""
    margin = _ROUNDING * np.abs(values)
    return bool(np.any((values < lower - margin) | (values > upper + margin)))


def array_of(result: Result, name: str) -> FloatArray:
    """Array of a result column, or of a phase as `terms.NAME`."""
    return result.terms[name.removeprefix("terms.")] if name.startswith("terms.") else result.columns[name]


def has_column(result: Result, name: str) -> bool:
    """Whether a result has such a column or phase."""
    return name in result.columns or (name.startswith("terms.") and name.removeprefix("terms.") in result.terms)
