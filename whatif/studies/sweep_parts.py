"""Sweeps of any size: results in parts, as they are computed, by this process or by workers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from whatif.axes import Grid
from whatif.core.evaluate import evaluate
from whatif.core.grid_run import CHUNK_POINTS, run, run_whole
from whatif.core.iteration_timeline import timeline
from whatif.core.request_notes import request_notes
from whatif.core.result import Result
from whatif.core.result_summary import Tally
from whatif.core.scenario import EvaluationRequest
from whatif.core.sweep_figure import Y_COLUMN
from whatif.errors import InfeasiblePointError, UsageError, require_choice, require_least
from whatif.limits import FORMATS
from whatif.paths import is_folder
from whatif.plotting.description import Description, HeatMap, PlotDescription
from whatif.plotting.picture import Drawable
from whatif.plotting.presentable import Presentable
from whatif.table import Table
from whatif.vocabulary import RELATIONS, Relation

if TYPE_CHECKING:
    from whatif.core.executors import Place
    from whatif.core.sweep_answers import Answers
    from whatif.studies.measured_points import SweepMeasurements


def _ignore(_: object) -> None:
    """Default of callbacks."""


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    """Workers that evaluate a grid; without `on` this process does it alone.

    Raise `UsageError` for a number of workers, or of points in a part, without `on`.
    """

    on: str | None = None
    """`threads`, `processes`, `local`, or the address of a scheduler."""
    workers: int | None = None
    part_points: int | None = None

    def __post_init__(self) -> None:
        if self.on is None and (self.workers, self.part_points) != (None, None):
            raise UsageError("--workers and --part-points: no effect without --on")
        require_least("part-points", self.part_points, 1)

    @contextmanager
    def opened(self, message: Callable[[str], None] = _ignore) -> Iterator[Place]:
        """Workers, for as long as they are needed; `message` receives a text while there are none yet."""
        from whatif.core.executors import opened

        with opened(self.on or "", self.workers) as place:
            if not place.count():
                message(f"{self.on} has no workers yet; waiting for the first")
            yield place

    def points(self, request: EvaluationRequest, *, written: bool = False) -> int:
        """Points of a part."""
        from whatif.core.partition import part_points

        return self.part_points or part_points(request.grid, written=written)


@dataclass(eq=False, repr=False)
class SweepParts(Presentable):
    """Sweep that is evaluated part by part while it is iterated over, written or drawn.

    `remarks` and `raise_if_infeasible` are about the parts that were evaluated so far.
    """

    request: EvaluationRequest
    parallel: ParallelOptions = field(default_factory=ParallelOptions)
    message: Callable[[str], None] = _ignore
    """Receives texts on workers and data sets while they are used."""
    progress: Callable[[float], None] = _ignore
    """Receives the share of the points that are evaluated."""
    relation: Relation = "value"
    """Scale of y of the picture."""
    runs: Path | None = None
    """File of measured runs that the picture shows; by default that of the scenario."""
    width: int | None = None
    """Characters of a line of the terminal that a plain table is written to; columns without room are omitted."""
    tally: Tally = field(default_factory=Tally)
    _omission: str = field(default="", init=False)
    _measured: SweepMeasurements | None = field(default=None, init=False)
    _parts: list[Result] = field(default_factory=list, init=False)
    """Results of a sweep that is small enough to be kept."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Scenario, platform, lowest grade, axes and samples: known before anything is evaluated."""
        return request_notes(self.request)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Extrapolations, missing samples, grades, reasons of infeasible points, and the answers of the sweep."""
        notes, reasons = self.tally.notes(self.request.grid), self.tally.reasons
        # If there are several reasons, a sentence states the one that holds for its points.
        sentence = self.answers().sentence_without(reasons[0] if len(reasons) == 1 else "")
        if self._measured is not None and self._measured.remark:
            notes = (*notes, self._measured.remark)
        notes = (*notes, self._omission) if self._omission else notes
        return (*notes, sentence) if sentence and self.tally.infeasible < self.request.grid.size else notes

    def answers(self) -> Answers:
        """Answers about the iteration time; none for more points than are evaluated at a time."""
        from whatif.core.sweep_answers import answers_of_parts

        return answers_of_parts(self._parts, self.request.grid)

    def raise_if_infeasible(self) -> None:
        """Raise `InfeasiblePointError` if not a single point is feasible."""
        if self.tally.infeasible == self.request.grid.size:
            raise InfeasiblePointError(self.tally.refusal)

    def __iter__(self) -> Iterator[Result]:
        """Results in the order of the points."""
        self._restart()
        with self._results() as results:
            yield from self._counted(results)

    def whole(self) -> Result:
        """One result with all points."""
        self._restart()
        whole = run_whole(self.request.scenario, self.request.grid, self.request.sampling)
        return next(self._counted([whole]))

    def table(self) -> Table:
        """Table of all points: swept parameters, results, times of phases, infeasibility, grade and extrapolation."""
        return self.whole().table()

    def picture(self) -> Drawable:
        """Iteration time over the first swept parameter, with measured runs; the phases of one iteration for a
        single point. Raise `UsageError` if `runs` cannot be shown, `InfeasiblePointError` without a feasible point."""
        if self.request.grid.axes:
            return self._picture()
        from whatif.studies.bar_charts import phase_bars

        program = self.request.scenario.program
        return phase_bars(program, timeline(program, evaluate(program)))

    def _picture(self) -> Drawable:
        from whatif.core.relative_scales import relative

        require_choice("relative", self.relation, ("value", *RELATIONS))
        whole = self.whole()
        self.raise_if_infeasible()
        picture = whole.picture()
        if self.relation == "value":
            return self._with_measured(picture)
        if not isinstance(picture, PlotDescription):
            return picture
        return relative(picture, whole, Y_COLUMN, self.relation, run_whole(self.request.scenario, Grid()))

    def _with_measured(self, picture: Description) -> Description:
        """Picture of a sweep of one parameter with the runs that have the values of all others."""
        from whatif.core.session import SessionInputs
        from whatif.studies.measured_curves import drawn_points, with_measured
        from whatif.studies.measured_points import sweep_measurements

        request = self.request
        if self.runs is None and request.scenario.program.loaded.scenario.runs is None:
            return picture
        if isinstance(picture, HeatMap) or picture.x.ticks or len(request.grid.axes) > 1:
            if self.runs is not None:
                raise UsageError("--runs: measured runs are drawn over a sweep of one number")
            return picture
        found = self._measured = sweep_measurements(SessionInputs(request.scenario, request.grid), self.runs)
        points = drawn_points(found.points, Y_COLUMN)
        if self.runs is not None and not points:
            raise UsageError(found.remark or f"{self.runs}: no run has the values of this sweep")
        return with_measured(picture, points)

    def write(self, path: str | Path | None = None, file_format: str | None = None) -> None:
        """Write to a file, whole or not at all, or to stdout; the format follows from the name, `table` without one.

        With workers, a path without a suffix is a folder for the parts of a Parquet data set. It is completed where
        it has been begun.
        """
        from whatif.files.result_writers import WRITERS, write_file, write_table
        from whatif.table_writers import format_of

        path = None if path is None else Path(path)
        if path is not None and file_format is None and self.parallel.on and (is_folder(path) or not path.suffix):
            self._write_data_set(path)
            return
        if path is not None and is_folder(path):
            raise UsageError(f"{path}: is a folder, not a file; with --on it takes a data set of Parquet files")
        chosen = format_of(path, file_format, FORMATS)
        if path is None and chosen == "parquet":
            raise UsageError("Parquet is not for a terminal; name a file with -o")
        if path is not None:
            write_file(self, chosen, path)
        elif chosen == "table":
            self._omission = write_table(self, sys.stdout, self.width)
        else:
            WRITERS[chosen](self, sys.stdout)

    def _write_data_set(self, folder: Path) -> None:
        """Compute the parts that a folder lacks; complete parts are kept after an interrupt."""
        from whatif.files.data_set import DataSet

        self._restart()
        data_set = DataSet(folder, self.request, self.parallel.points(self.request, written=True))
        for tally in data_set.known.values():
            self._add(tally)
        if data_set.known:
            self.message(f"{len(data_set.known)} of {data_set.count} parts are in {folder}")
        try:
            if len(data_set.known) < data_set.count:
                with self.parallel.opened(self.message) as place:
                    for tally in data_set.fill(place):
                        self._add(tally)
        except (KeyboardInterrupt, UsageError) as problem:
            kept = f"{len(data_set.known)} of {data_set.count} parts are in {folder}; repeat the command to continue"
            if isinstance(problem, KeyboardInterrupt):
                raise KeyboardInterrupt(f"interrupted; {kept}") from None
            raise UsageError(f"{problem}; {kept}") from problem

    def _restart(self) -> None:
        self._parts.clear()
        self.tally = Tally()

    @contextmanager
    def _results(self) -> Iterator[Iterable[Result]]:
        request = self.request
        if self.parallel.on is None:
            yield run(request.scenario, request.grid, sampling=request.sampling)
            return
        from whatif.core.partition import run_on

        with self.parallel.opened(self.message) as place:
            yield run_on(place, request, self.parallel.points(request))

    def _counted(self, results: Iterable[Result]) -> Iterator[Result]:
        for result in results:
            self._add(Tally.of(result))
            if self.request.grid.size <= CHUNK_POINTS:
                self._parts.append(result)
            yield result

    def _add(self, tally: Tally) -> None:
        self.tally += tally
        self.progress(self.tally.points / self.request.grid.size)
