"""`whatif run`: evaluate a scenario at one point or over a grid."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whatif.cli.options import open_question, scenario_options
from whatif.cli.workforce import Telling, Workforce, is_folder
from whatif.errors import UsageError
from whatif.limits import DEFAULT_MAXIMUM_POINTS, FORMATS, MOST_POINTS

if TYPE_CHECKING:
    from whatif.axes import Grid
    from whatif.engine.result import Question


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
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="With --on and no suffix, a folder of Parquet files; the same command goes on with it.")  # fmt: skip
@click.option("--plot", is_flag=True, help="Draw the iteration time over the first swept leaf.")
@click.option("--max-points", type=click.IntRange(1, MOST_POINTS), default=DEFAULT_MAXIMUM_POINTS, show_default=True)
@click.option("--on", metavar="WHERE", help="Evaluate parts side by side: `threads`, `processes`, `local` (a cluster "
              "of dask.distributed on this machine) or the address of a scheduler, `tcp://HOST:8786`.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 4096), help="With --on; default: as many as there are cores here.")
@click.option("--part-points", type=click.IntRange(1, MOST_POINTS), metavar="N",
              help="With --on: points that a worker evaluates at a time.")  # fmt: skip
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
    **elsewhere: Any,
) -> None:
    """Evaluate SCENARIO as it stands, or over the grid of all --sweep options (else over its own sweep)."""
    workforce = Workforce(**elsewhere)
    if plot and (output is not None or file_format is not None or workforce.on is not None):
        raise UsageError("--plot draws on the terminal; it goes with neither -o nor --format nor --on")
    question = open_question(scenario, platform, folders, sets)
    grid = _grid(question, sweeps, point, max_points)
    _narrate(question, grid)
    if plot:
        _plot(question, grid)
    elif output is not None and file_format is None and workforce.makes_data_set(output):
        workforce.write_data_set(question, grid, output)
    else:
        _write(question, grid, file_format or _format_of(output), output, workforce)


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
    click.echo(f"platform {platform}; worst grade of its values: {program.grade}; {axes}", err=True)


def _format_of(output: Path | None) -> str:
    if output is None:
        return "table"
    if is_folder(output):
        raise UsageError(f"{output}: is a directory; --on makes a data set in it")
    known = {".json": "json", ".csv": "csv", ".md": "markdown", ".parquet": "parquet", ".txt": "table"}
    if output.suffix not in known:
        raise UsageError(f"{output}: cannot tell the format from `{output.suffix}`; say --format")
    return known[output.suffix]


def _write(question: Question, grid: Grid, file_format: str, output: Path | None, workforce: Workforce) -> None:
    from whatif.export.write import WRITERS, write_file

    if output is None and file_format == "parquet":
        raise UsageError("Parquet is not for a terminal; name a file with -o")
    telling = Telling(grid)
    with workforce.results(question, grid) as evaluated:
        results = telling.watch(evaluated)
        if output is not None:
            write_file(results, file_format, output)
        else:
            WRITERS[file_format](results, sys.stdout)
    telling.report()


def _plot(question: Question, grid: Grid) -> None:
    from whatif.engine.result import run_whole
    from whatif.export.figure import terminal_plot

    if not grid.axes:
        raise UsageError("--plot needs a sweep; add --sweep PATH=SPEC")
    telling = Telling(grid)
    result = next(iter(telling.watch([run_whole(question, grid)])))
    click.echo(terminal_plot(result), color=None if sys.stdout.isatty() else False)
    telling.report()
