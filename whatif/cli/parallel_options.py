"""Who evaluates a grid for `whatif run`, and what is told of it on the way and at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.errors import ImpossiblePointError, UsageError

if TYPE_CHECKING:
    from whatif.axes import Grid
    from whatif.core.executors import Place
    from whatif.core.result import Result
    from whatif.core.result_summary import Tally
    from whatif.core.scenario import EvaluationRequest


on_option = click.option(
    "--on", metavar="WHERE",
    help="Work side by side: `threads`, `processes`, `local` (a cluster of dask.distributed on this machine) or the "
         "address of a scheduler, `tcp://HOST:8786`.",
)  # fmt: skip
workers_option = click.option(
    "--workers", type=click.IntRange(1, 4096), help="With --on; default: as many as there are cores here."
)


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    """The options `--on`, `--workers` and `--part-points`; without `on` this process works alone."""

    on: str | None
    workers: int | None
    part_points: int | None = None

    def __post_init__(self) -> None:
        if self.on is None and (self.workers, self.part_points) != (None, None):
            raise UsageError("--workers and --part-points go with --on")

    def makes_data_set(self, output: Path) -> bool:
        """Whether a name asks for a folder of parts."""
        return self.on is not None and (is_folder(output) or not output.suffix)

    @contextmanager
    def results(self, request: EvaluationRequest) -> Iterator[Iterable[Result]]:
        """The results of a grid in the order of its points, wherever they are computed."""
        from whatif.core.result import run

        if self.on is None:
            yield run(request.question, request.grid, sampling=request.sampling)
            return
        from whatif.core.partition import run_on

        with self._place() as place:
            yield run_on(place, request, self._points(request.grid))

    def write_data_set(self, request: EvaluationRequest, folder: Path) -> None:
        """Compute the parts that a folder lacks; ended early, what is there stays, and it says how to go on."""
        from whatif.files.data_set import DataSet

        data_set = DataSet(folder, request, self._points(request.grid, written=True))
        telling = Telling(request.grid)
        for tally in data_set.known.values():
            telling.add(tally)
        if data_set.known:
            click.echo(f"{len(data_set.known)} of {data_set.count} parts are in {folder}", err=True)
        try:
            if len(data_set.known) < data_set.count:
                with self._place() as place:
                    for tally in data_set.fill(place):
                        telling.add(tally)
        except (KeyboardInterrupt, UsageError) as problem:
            kept = (
                f"{len(data_set.known)} of {data_set.count} parts are in {folder}; the same command goes on from there"
            )
            if isinstance(problem, KeyboardInterrupt):
                raise KeyboardInterrupt(f"interrupted; {kept}") from None
            raise UsageError(f"{problem}; {kept}") from problem
        telling.report()

    def _points(self, grid: Grid, *, written: bool = False) -> int:
        from whatif.core.partition import part_points

        return self.part_points or part_points(grid, written=written)

    @contextmanager
    def place(self) -> Iterator[Place | None]:
        """The workers for as long as they are needed; None where this process works alone."""
        if self.on is None:
            yield None
            return
        with self._place() as place:
            yield place

    @contextmanager
    def _place(self) -> Iterator[Place]:
        from whatif.core.executors import opened

        with opened(self.on or "", self.workers) as place:
            if not place.count():
                click.echo(f"{self.on} has no workers yet; waiting for the first", err=True)
            yield place


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; a name that no file can have is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


class Telling:
    """Tells about progress on long runs, and at the end what is to know beside the numbers."""

    def __init__(self, grid: Grid) -> None:
        from whatif.core.result_summary import Tally

        self._size = grid.size
        self._structural = any(axis.structural for axis in grid.axes)
        self._tally = Tally()

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """Pass results on, counting."""
        from whatif.core.result_summary import Tally

        for result in results:
            self.add(Tally.of(result))
            yield result

    def add(self, tally: Tally) -> None:
        """Count more results."""
        self._tally += tally
        if self._tally.points < self._size and sys.stderr.isatty():
            click.echo(f"\r{self._tally.points / self._size:4.0%}\r", nl=False, err=True)

    def report(self) -> None:
        """Say why points are missing and which are extrapolated; an answer without a single point is an error."""
        tally = self._tally
        for line in tally.extrapolated:
            click.echo(f"warning: {line}", err=True)
        if tally.unanswered:
            share = f"{tally.unanswered / self._size:.1%}"
            click.echo(f"warning: {share} of the samples have no answer and do not count", err=True)
        if self._structural:
            from whatif.schema.parameters import worst

            click.echo(f"worst grade over all of them: {worst(tally.grades)}", err=True)
        reasons = "; ".join(tally.reasons)
        if tally.impossible == self._size:
            raise ImpossiblePointError(f"impossible: {reasons}")
        if tally.impossible:
            click.echo(f"{tally.impossible} of {self._size} points are impossible: {reasons}", err=True)
