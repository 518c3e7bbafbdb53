"""`whatif run`: results of a scenario at one point or over a grid."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from whatif.cli.echo import echo
from whatif.cli.options import (
    on_option,
    scenario_options,
    show_notes,
    show_written,
    uncertainty_options,
    workers_option,
)
from whatif.cli.output import Output, terminal_width
from whatif.cli.progress import show_percentage
from whatif.cli.values import FilePath, OneOf, Whole
from whatif.errors import UsageError
from whatif.limits import DEFAULT_MAXIMUM_POINTS, FORMATS, MOST_POINTS, PICTURES
from whatif.paths import is_folder
from whatif.vocabulary import RELATIONS, Relation


@click.command("run")
@scenario_options
@click.option(
    "--sweep",
    "axes",
    multiple=True,
    metavar="PATH=SPEC",
    help="Sweep a parameter: `1, 2, 4`, `1 GB/s .. 64 GB/s log 7`, `.. linear N`, `.. step SIZE`; "
    "`PATH=SPEC; PATH=SPEC` moves parameters together; `platform=a, b` or `platform=dgx_*` compares platforms.",
)
@uncertainty_options
@click.option("--point", is_flag=True, help="Ignore the scenario's own sweep.")
@click.option("--format", "file_format", type=OneOf(FORMATS),
              help="Output format; by default that of the file name, else table.")  # fmt: skip
@click.option("-o", "--output", type=FilePath(path_type=Path), metavar="FILE",
              help="Write a table, or a picture (.svg, .png, .pdf). With --on and a name without suffix, write a "
                   "folder of Parquet files; repeat the command to continue it.")  # fmt: skip
@click.option("--plot", is_flag=True, help="Plot the iteration time over the first swept parameter.")
@click.option("--relative", type=OneOf(RELATIONS),
              help="Draw the iteration time relative to the present point: speedup (larger is better) or ratio; or as "
                   "parallel efficiency over application.rank_count.")  # fmt: skip
@click.option("--runs", type=FilePath(path_type=Path), metavar="FILE",
              help="CSV file of measured runs to draw over the curves.  [default: that of the scenario]")  # fmt: skip
@click.option(
    "--max-points",
    type=Whole(1, MOST_POINTS),
    default=DEFAULT_MAXIMUM_POINTS,
    show_default=True,
    help="Largest grid that is evaluated.",
)
@on_option
@workers_option
@click.option("--part-points", type=Whole(1, MOST_POINTS), metavar="N",
              help="With --on: number of points that a worker evaluates at a time.")  # fmt: skip
def command(
    scenario: str,
    axes: tuple[str, ...],
    file_format: str | None,
    output: Path | None,
    plot: bool,
    relative: Relation | None,
    runs: Path | None,
    on: str | None,
    **options: Any,
) -> None:
    """Evaluate SCENARIO over the grid of all --sweep options, by default over its own sweep."""
    from whatif.api.evaluation import sweep_parts

    if plot and on is not None:
        raise UsageError("--plot excludes -o, --format and --on")
    draws = plot or (output is not None and output.suffix.lower() in PICTURES)
    if draws and on is not None:
        raise UsageError(f"--on {on}: no effect on the picture {output}; write a table")
    is_file = on is None and not (output is not None and is_folder(output))
    target = Output.of(file_format, output, plot, FORMATS) if is_file else None
    picture = target if draws else None
    if relative is not None and picture is None:
        raise UsageError("--relative: no effect on a table; add --plot or -o FILE.svg")
    if runs is not None and (picture is None or relative is not None):
        raise UsageError("--runs: drawn over a sweep by --plot or -o FILE.svg; `whatif validate` compares tables")
    parts = sweep_parts(scenario, *axes, on=on, **options)
    show_notes(parts.notes)
    parts.relation, parts.runs = relative or "value", runs
    parts.message = lambda text: echo(text, err=True)
    if sys.stderr.isatty():
        parts.progress = show_percentage
    if plot and not parts.request.grid.axes:
        raise UsageError("--plot needs a sweep; add --sweep PATH=SPEC")
    if picture is not None:
        picture.draw(parts)
    else:
        parts.width = terminal_width()
        parts.write(output, file_format)
        if output is not None:
            show_written(output)
    show_notes(parts.remarks)
    parts.raise_if_infeasible()
