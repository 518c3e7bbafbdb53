"""`whatif fit scaling`: runs on several counts of nodes or processes to the time on others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import columns_option, files_argument, long_option, where_option
from whatif.cli.output import Output, output_options
from whatif.cli.values import OneOf
from whatif.limits import SCALING_TABLES


@click.command("scaling")
@files_argument
@columns_option
@where_option
@long_option
@click.option("--predict", multiple=True, metavar="NAME=VALUE,..", help="Predict at this count, e.g. nodes=64.")
@click.option(
    "--series", default="", metavar="COLUMN,..", help="Columns that distinguish series.  [default: file and texts]"
)
@click.option("--level", help="Confidence level of the intervals.  [default: 95%]")
@click.option("--show", type=OneOf(SCALING_TABLES), help="Table to print.  [default: prediction, else held-out]")
@output_options(picture=False)
def command(files: tuple[Path, ...], output: Output, level: str | None, **options: Any) -> None:
    """Predict the time of a program on more nodes or processes from runs on fewer, with an interval.

    FILES have a column nodes, processes or another count, and total_time or time; optionally iterations. The prediction
    is a weighted mean of scaling models. The weights depend on how well each model predicted the larger runs from the
    smaller ones; the errors of all series are pooled.
    """
    from whatif.api.run_fits import fit_scaling

    output.write(fit_scaling(files, level=level, **options))
