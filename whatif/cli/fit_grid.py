"""`whatif fit grid`: runs of a structured-grid program to its parameters, a prediction, and the run to make next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import ModelTarget, format_option, model_options
from whatif.cli.options import show_notes
from whatif.cli.output import Output
from whatif.cli.values import OneOf, Whole
from whatif.errors import UsageError
from whatif.vocabulary import GRID_WEIGHTINGS


@click.command("grid")
@model_options
@click.option("--reduction", is_flag=True, help="Fit K_r too, of a global reduction in every iteration.")
@click.option(
    "--weighting",
    type=OneOf(GRID_WEIGHTINGS),
    default="relative",
    show_default=True,
    help="Minimise relative residuals, or the absolute ones of Eq. 5.",
)
@click.option("--level", help="Confidence level of the intervals.  [default: 95%]")
@click.option("--bootstrap", type=Whole(10, 100_000), metavar="N", help="Take errors from N resampled fits.")
@click.option("--seed", type=Whole(0), help="Random seed of the bootstrap.  [default: 0]")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=VALUE,..",
    help="Predict this run, e.g. cells=272e6,processes=768; other columns follow from the runs.",
)
@click.option("--next", "advice", is_flag=True, help="Find the run that would narrow the target's interval most.")
@click.option("--vary", multiple=True, metavar="NAME=V,V,..", help="Runs that --next may choose from.")
@click.option("--points", is_flag=True, help="Print the runs with fitted and held-out times, not the parameters.")
@click.option("--case", metavar="NAME", help="Case whose K_w is written.")
@format_option
def command(
    files: tuple[Path, ...],
    target: ModelTarget,
    level: str | None,
    case: str | None,
    file_format: str,
    **options: Any,
) -> None:
    """Fit K_w, K_b and the overheads of a structured-grid program (Sharif et al.) to its runs.

    FILES have the columns cells, processes, iterations and total_time (or C, P, I, T_t), and optionally halo_cells (H),
    computation_time (T_w), communication_time (T_c), case, ranks_per_node and inter_node_halo_cells.
    """
    from whatif.api.run_fits import fit_grid

    if case is not None and target.output is None:
        raise UsageError("--case needs -o MODEL.toml: it chooses the K_w that is written")
    result = fit_grid(files, level=level, **options)
    show_notes(result.notes)
    target.write(result, case=case)
    table = result.table(in_words=file_format in ("table", "markdown"))
    if len(table):
        Output(file_format).print_table(table)
    if target.output is None and not (options["targets"] or options["points"]):
        show_notes(["nothing is written without -o MODEL.toml"])
