"""`whatif run`: evaluate a scenario at one point or over a grid."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whatif.cli.options import open_question, sampling_options, scenario_options, show_picture
from whatif.cli.parallel_options import ParallelOptions, Telling, is_folder, on_option, workers_option
from whatif.errors import UsageError
from whatif.limits import DEFAULT_MAXIMUM_POINTS, FORMATS, MOST_POINTS, PICTURES

if TYPE_CHECKING:
    from whatif.axes import Grid
    from whatif.core.scenario import EvaluationRequest, Scenario
    from whatif.core.term import Program
    from whatif.core.uncertainty import Sampling


@click.command("run", short_help="Evaluate a scenario, or sweep any of its parameters.")
@scenario_options
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="PATH=SPEC",
    help="Sweep a parameter: `1, 2, 4`, `1 GB/s .. 64 GB/s log 7`, `.. linear N`, `.. step SIZE`; "
    "`PATH=SPEC; PATH=SPEC` moves parameters together; `platform=a, b` compares machines.",
)
@sampling_options
@click.option("--point", is_flag=True, help="Ignore the sweep that the scenario itself asks for.")
@click.option("--format", "file_format", type=click.Choice(FORMATS), help="Default: by the name of FILE, else table.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="A table, or the plot as .svg, .png or .pdf; with --on and no suffix, a folder of Parquet files, "
                   "with which the same command goes on.")  # fmt: skip
@click.option("--plot", is_flag=True, help="Draw the iteration time over the first swept parameter.")
@click.option("--max-points", type=click.IntRange(1, MOST_POINTS), default=DEFAULT_MAXIMUM_POINTS, show_default=True)
@on_option
@workers_option
@click.option("--part-points", type=click.IntRange(1, MOST_POINTS), metavar="N",
              help="With --on: points that a worker evaluates at a time.")  # fmt: skip
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    sweeps: tuple[str, ...],
    sampling: Sampling | None,
    point: bool,
    file_format: str | None,
    output: Path | None,
    plot: bool,
    max_points: int,
    **elsewhere: Any,
) -> None:
    """Evaluate SCENARIO as it stands, or over the grid of all --sweep options (else over its own sweep)."""
    from whatif.core.scenario import EvaluationRequest

    workforce = ParallelOptions(**elsewhere)
    if plot and (output is not None or file_format is not None or workforce.on is not None):
        raise UsageError(
            "--plot draws on the terminal; it goes with neither -o (-o FILE.svg alone draws) nor --format nor --on"
        )
    question = open_question(scenario, platform, platform_dirs, overrides)
    request = EvaluationRequest(question, asked_grid(question, sweeps, point, max_points), sampling)
    _narrate(request)
    if plot:
        _plot(request)
    elif file_format is None and output is not None and output.suffix.lower() in PICTURES:
        _draw(request, output)
    elif output is not None and file_format is None and workforce.makes_data_set(output):
        workforce.write_data_set(request, output)
    else:
        _write(request, file_format or _format_of(output), output, workforce)


def asked_grid(question: Scenario, sweeps: tuple[str, ...], point: bool, limit: int) -> Grid:
    """The grid of the --sweep options, else of the scenario's own sweep; none for --point."""
    from whatif.core.sweep import file_axes, grid_of, parse_option

    if point and sweeps:
        raise UsageError("--point and --sweep exclude each other")
    if sweeps:
        return grid_of([parse_option(text, question.program, limit) for text in sweeps], limit)
    axes = [] if point else file_axes(question.program, limit)
    # A value set on the command line is meant: the file's own axis over it gives way.
    return grid_of([axis for axis in axes if question.sets.keys().isdisjoint(axis.parameters)], limit)


def _narrate(request: EvaluationRequest) -> None:
    program, grid, sampling = request.question.program, request.grid, request.sampling
    click.echo(program.loaded.question or program.loaded.name, err=True)
    axes = " x ".join(f"{' + '.join(axis.parameters)} ({len(axis)})" for axis in grid.axes) or "one point"
    platform = program.loaded.scenario.platform.name
    click.echo(f"platform {platform}; worst grade of its values: {program.grade}{_energy(program)}; {axes}", err=True)
    if sampling is not None:
        from whatif.core.uncertainty import NOTHING_UNCERTAIN, uncertain
        from whatif.units import counted

        count = len(uncertain(program, sampling, grid.parameters()))
        bands = f"{sampling.names[0]} to {sampling.names[2]} of {sampling.count:,} samples"
        click.echo(f"{counted(count, 'uncertain value')}; {bands}" if count else NOTHING_UNCERTAIN, err=True)
    elif any(parameter.distribution is not None for parameter in program.parameters.values()):
        click.echo("some values are distributions: --samples 1024 says what that makes of the results", err=True)


def _energy(program: Program) -> str:
    """What energy and cost rest on, where that is less than what times rest on."""
    from whatif.schema.parameters import worst

    grade = worst([program.grade, *program.other_grades.values()])
    return "" if grade == program.grade else f" (energy and cost: {grade})"


def _format_of(output: Path | None) -> str:
    if output is None:
        return "table"
    if is_folder(output):
        raise UsageError(f"{output}: is a directory; --on makes a data set in it")
    known = {".json": "json", ".csv": "csv", ".md": "markdown", ".parquet": "parquet", ".txt": "table"}
    if output.suffix not in known:
        raise UsageError(f"{output}: cannot tell the format from `{output.suffix}`; say --format")
    return known[output.suffix]


def _write(request: EvaluationRequest, file_format: str, output: Path | None, workforce: ParallelOptions) -> None:
    from whatif.files.result_writers import WRITERS, write_file

    if output is None and file_format == "parquet":
        raise UsageError("Parquet is not for a terminal; name a file with -o")
    telling = Telling(request.grid)
    with workforce.results(request) as evaluated:
        results = telling.watch(evaluated)
        if output is not None:
            write_file(results, file_format, output)
        else:
            WRITERS[file_format](results, sys.stdout)
    telling.report()


def _plot(request: EvaluationRequest) -> None:
    from whatif.core.result import run_whole
    from whatif.core.sweep_figure import alone

    if not request.grid.axes:
        raise UsageError("--plot needs a sweep; add --sweep PATH=SPEC")
    telling = Telling(request.grid)
    result = next(iter(telling.watch([run_whole(request.question, request.grid, request.sampling)])))
    show_picture(alone(result))
    telling.report()


def _draw(request: EvaluationRequest, output: Path) -> None:
    """Write the plot of a sweep, or the phases of a single point, as a picture."""
    from whatif.core.evaluate import evaluate
    from whatif.core.iteration_timeline import timeline
    from whatif.core.result import run_whole
    from whatif.core.sweep_figure import alone
    from whatif.plotting.picture import check_picture, write_picture
    from whatif.studies.bar_charts import phase_bars

    check_picture(output)
    if not request.grid.axes:
        program = request.question.program
        write_picture(phase_bars(program, timeline(program, evaluate(program))), output)
        return
    telling = Telling(request.grid)
    result = next(iter(telling.watch([run_whole(request.question, request.grid, request.sampling)])))
    write_picture(alone(result), output)
    telling.report()
