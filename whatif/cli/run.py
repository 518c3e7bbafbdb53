"""`whatif run`: evaluate a scenario at one point or over a grid."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import open_question, scenario_options
from whatif.errors import ImpossiblePointError, UsageError
from whatif.limits import DEFAULT_MAXIMUM_POINTS, FORMATS, MOST_POINTS

if TYPE_CHECKING:
    from whatif.axes import Grid
    from whatif.engine.result import Question, Result
    from whatif.engine.term import Program


@click.command("run", short_help="Evaluate a scenario, or sweep any of its leaves.")
@scenario_options
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="PATH=SPEC",
    help="Sweep a leaf: `1, 2, 4`, `1 GB/s .. 64 GB/s log 7`, `.. linear N`, `.. step SIZE`; "
    "`PATH=SPEC; PATH=SPEC` moves leaves together; `platform=a, b` compares machines.",
)
@click.option("--point", is_flag=True, help="Ignore the sweep that the scenario itself asks for.")
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="Default: by the name of FILE, else table.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
@click.option("--plot", is_flag=True, help="Draw the iteration time over the first swept leaf.")
@click.option("--max-points", type=click.IntRange(1, MOST_POINTS), default=DEFAULT_MAXIMUM_POINTS, show_default=True)
def command(
    scenario: str,
    platform: str | None,
    folders: tuple[Path, ...],
    sets: tuple[str, ...],
    sweeps: tuple[str, ...],
    point: bool,
    file_format: str | None,
    output: Path | None,
    plot: bool,
    max_points: int,
) -> None:
    """Evaluate SCENARIO as it stands, or over the grid of all --sweep options (else over its own sweep)."""
    if plot and (output is not None or file_format is not None):
        raise UsageError("--plot draws on the terminal; it goes with neither -o nor --format")
    question = open_question(scenario, platform, folders, sets)
    grid = _grid(question, sweeps, point, max_points)
    _narrate(question, grid)
    if plot:
        _plot(question, grid)
    else:
        _write(question, grid, file_format or _format_of(output), output)


def _grid(question: Question, sweeps: tuple[str, ...], point: bool, limit: int) -> Grid:
    from whatif.engine.sweep import file_axes, grid_of, parse_option

    if point and sweeps:
        raise UsageError("--point and --sweep exclude each other")
    if sweeps:
        return grid_of([parse_option(text, question.program, limit) for text in sweeps], limit)
    axes = [] if point else file_axes(question.program, limit)
    # A value set on the command line is meant: the file's own axis over it gives way.
    return grid_of([axis for axis in axes if question.sets.keys().isdisjoint(axis.leaves)], limit)


def _narrate(question: Question, grid: Grid) -> None:
    program = question.program
    click.echo(program.loaded.question or program.loaded.name, err=True)
    axes = " x ".join(f"{' + '.join(axis.leaves)} ({len(axis)})" for axis in grid.axes) or "one point"
    platform = program.loaded.scenario.platform.name
    click.echo(f"platform {platform}; worst grade of its values: {program.grade}{_energy(program)}; {axes}", err=True)


def _energy(program: Program) -> str:
    """What energy and cost rest on, where that is less than what times rest on."""
    from whatif.schema.leaves import worst

    grade = worst([program.grade, *program.other_grades.values()])
    return "" if grade == program.grade else f" (energy and cost: {grade})"


def _format_of(output: Path | None) -> str:
    if output is None:
        return "table"
    known = {".json": "json", ".csv": "csv", ".md": "markdown", ".parquet": "parquet", ".txt": "table"}
    if output.suffix not in known:
        raise UsageError(f"{output}: cannot tell the format from `{output.suffix}`; say --format")
    return known[output.suffix]


def _write(question: Question, grid: Grid, file_format: str, output: Path | None) -> None:
    from whatif.engine.result import run
    from whatif.export.write import WRITERS, write_file

    tally = Tally(grid)
    results = tally.watch(run(question, grid))
    if output is not None:
        write_file(results, file_format, output)
    elif file_format == "parquet":
        raise UsageError("Parquet is not for a terminal; name a file with -o")
    else:
        WRITERS[file_format](results, sys.stdout)
    tally.report()


def _plot(question: Question, grid: Grid) -> None:
    from whatif.engine.result import run_whole
    from whatif.export.figure import terminal_plot

    if not grid.axes:
        raise UsageError("--plot needs a sweep; add --sweep PATH=SPEC")
    tally = Tally(grid)
    result = next(iter(tally.watch(iter([run_whole(question, grid)]))))
    click.echo(terminal_plot(result), color=None if sys.stdout.isatty() else False)
    tally.report()


class Tally:
    """Counts the points that cannot exist while results pass by, and tells about progress on long runs."""

    def __init__(self, grid: Grid) -> None:
        self.size = grid.size
        self.structural = any(axis.structural for axis in grid.axes)
        self.seen = 0
        self.impossible = 0
        self.reasons: dict[str, None] = {}
        self.extrapolated: dict[str, None] = {}
        self.grades: dict[str, None] = {}

    def watch(self, results: Iterable[Result]) -> Iterator[Result]:
        """Pass results on, counting."""
        for result in results:
            self.seen += result.grid.size
            self.impossible += result.impossible
            self.reasons |= dict.fromkeys(result.reasons)
            self.extrapolated |= dict.fromkeys(result.extrapolated)
            self.grades[result.grade] = None
            if self.seen < self.size and sys.stderr.isatty():
                click.echo(f"\r{self.seen / self.size:4.0%}", nl=False, err=True)
            yield result

    def report(self) -> None:
        """Say why points are missing and which are extrapolated; an answer without a single point is an error."""
        for line in self.extrapolated:
            click.echo(f"warning: {line}", err=True)
        if self.structural:
            from whatif.schema.leaves import worst

            click.echo(f"worst grade over all of them: {worst(self.grades)}", err=True)
        reasons = "; ".join(self.reasons)
        if self.impossible == self.size:
            raise ImpossiblePointError(f"impossible: {reasons}")
        if self.impossible:
            click.echo(f"{self.impossible} of {self.size} points are impossible: {reasons}", err=True)
