"""Results of scenarios over grids, with their grades, bands and infeasible points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import Grid
from whatif.core.calibration_notes import model_notes
from whatif.core.evaluate import Evaluation, Points, Texts, distinct, listed_at
from whatif.core.fit_range import extrapolations
from whatif.core.machine_notes import notes_by_machine
from whatif.core.term import Program, no_result, result_name
from whatif.core.uncertainty import Bands, Sampling, bands_of
from whatif.errors import UsageError
from whatif.extras import install_command
from whatif.models.quantities import FloatArray
from whatif.plotting.presentable import Presentable, plotted
from whatif.schema.parameters import worst
from whatif.table import Column, Table, names_share
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
_OMITTED_FIRST: Final = ("total_energy", "mean_power", "iteration_energy", *reversed(CATEGORY_TIMES), "total_time")


def _varies(values: FloatArray) -> bool:
    finite = values[np.isfinite(values)]
    return finite.size > 0 and bool(np.ptp(finite) > 0)


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
        return distinct(self.reason)

    def obstacle(self) -> str:
        """Reasons why points are infeasible, with the numbers of a single one."""
        return "; ".join(filter(None, (*self.reasons, self.shortage)))

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

    @property
    def optional_columns(self) -> list[list[str]]:
        """Groups of columns omitted on a narrow terminal: constant ones, energies and power, times by category, then
        the last ones; the iteration time is kept."""
        names = dict.fromkeys((*_OMITTED_FIRST, *reversed(list(self.columns))))
        names.pop("iteration_time")
        suffixes = () if self.bands is None else self.bands.sampling.names
        constant_first = sorted(names, key=lambda name: _varies(self.columns[name]))
        return [[name, *(f"{name}.{suffix}" for suffix in suffixes)] for name in constant_first]

    def __getitem__(self, name: str) -> FloatArray:
        """Result column, or phase as `terms.NAME` or NAME; NaN at infeasible points."""
        known = result_name(name, self.dimensions)
        if known not in self.dimensions:
            raise KeyError(no_result(name, self.dimensions))
        return self.grid.spread(array_of(self, known))

    def dimension_of(self, name: str) -> Dimension:
        """Unit of a column, or of a phase as `terms.NAME` or NAME. Raise `UsageError` for any other name."""
        if (known := result_name(name, self.dimensions)) in self.dimensions:
            return self.dimensions[known]
        parts = [column for column in self.columns if column.startswith(f"{name} in ")]
        if parts:
            raise UsageError(f"`{name}` is in several currencies: {' and '.join(f'`{column}`' for column in parts)}")
        return self.program.dimension_of(name)

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
        places: dict[str, Points] = {}
        for text, where in self.extrapolated.items():
            name = text.partition(":")[0]
            places[name] = places.get(name, np.False_) | where
        return listed_at(places, self.grid.shape)

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
            yield key, Column(self.grid.spread(array).ravel(), self.dimensions[name], is_share=names_share(name))


def joined(parts: Sequence[Result], grid: Grid, missing: str = "") -> Result:
    """Result over a grid from its parts, in the order of the points, without bands; `missing` is the reason why points
    after the last part have no numbers."""
    rest = grid.size - sum(part.grid.size for part in parts)

    def whole(pieces: Iterable[NDArray[Any]], fill: object) -> NDArray[Any]:
        known = np.concatenate([piece.ravel() for piece in pieces])
        return np.append(known, np.full(rest, fill, dtype=known.dtype)).reshape(grid.shape)

    def join(arrays: Callable[[Result], Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
        names = [name for name in arrays(parts[0]) if all(name in arrays(part) for part in parts)]
        return {name: whole((part.grid.spread(arrays(part)[name]) for part in parts), np.nan) for name in names}

    columns, terms = join(lambda part: part.columns), join(lambda part: part.terms)
    some = rest or any(part.reasons for part in parts)
    reasons = whole((part.reason for part in parts), missing) if some else None
    # It is stated which inputs are outside their range, not at which points.
    beyond = dict.fromkeys((text for part in parts for text in part.extrapolated), np.True_)
    return replace(parts[0], grid=grid, columns=columns, terms=terms, forbidden=reasons, extrapolated=beyond,
                   bands=None, shortage="")  # fmt: skip


def result_of(evaluation: Evaluation, grid: Grid, sampling: Sampling | None = None) -> Result:
    """Result of an evaluation, with bands if there are samples and uncertain values."""
    program = evaluation.program
    columns = {name: evaluation.column(name) for name in program.columns}
    terms = {phase.phase: evaluation.masked(phase.term) for phase in program.phases}
    dimensions = {name: program.terms[term].dimension for name, term in program.results.items()}
    remarks = (np.array(program.grade, dtype=object), evaluation.reason(), extrapolations(evaluation))
    bands = None if sampling is None else bands_of(program, grid, sampling)
    found = Result(program, grid, columns, terms, dimensions, *remarks, bands, program.other_grades)
    return found if found.forbidden is None else replace(found, shortage=evaluation.shortage())


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
