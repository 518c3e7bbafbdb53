"""`whatif tune grid`: the best decomposition and mapping of an application's grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.atomic import require_writable
from whatif.cli.options import scenario_options, show_written
from whatif.cli.output import Output, output_options
from whatif.cli.progress import progress_line
from whatif.cli.values import FilePath, Whole


@click.command("grid", short_help="Decomposition and mapping of an application's grid.")
@scenario_options
@click.option("--whole-grid", is_flag=True, help="Keep the whole grid (strong scaling), even if the file states the "
              "cells of a rank.")  # fmt: skip
@click.option("--result", default="iteration_time", show_default=True, help="A result, or the name of a phase.")
@click.option("--show", "count", type=Whole(1), default=10, show_default=True, help="Number of layouts shown.")
@click.option("--save", type=FilePath(path_type=Path, dir_okay=False), metavar="SCENARIO.toml",
              help="Write SCENARIO with the best layout to a scenario file; comments are kept.")  # fmt: skip
@output_options(picture=False)
def command(save: Path | None, output: Output, **options: Any) -> None:
    """Rank all decompositions of SCENARIO's grid: all factors of its ranks along the dimensions, in every order, and
    the bisection, with every mapping to nodes and numbering of ranks.

    Weak scaling keeps the cells of a rank, so that the whole grid changes its shape but not its number of cells; with
    --whole-grid all decompositions are of the file's grid.
    """
    from whatif.api.decisions import tune_grid

    if save is not None:
        require_writable(save)
    with progress_line() as line:
        found = tune_grid(progress=line, **options)
    output.write(found)
    if save is not None:
        found.write(save)
        show_written(save)
