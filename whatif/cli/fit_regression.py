"""`whatif fit regression`: measured runs to a model with intervals, and to a phase of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.echo import echo
from whatif.cli.fit_options import ModelTarget, format_option, model_options
from whatif.cli.options import show_notes
from whatif.cli.output import Output
from whatif.cli.values import FilePath, OneOf, Whole
from whatif.errors import UsageError
from whatif.limits import REGRESSION_TABLES
from whatif.vocabulary import INTERVAL_KINDS


@click.command("regression")
@model_options
@click.option("--formula", metavar="'TIME ~ TERMS'", help="Model as in R, e.g. `time ~ (x1 + I(x1**2)) * x2`.")
@click.option("--search", metavar="'TIME ~ NAMES'", help="Search the best terms of these columns, e.g. `time ~ p + n`.")
@click.option("--compare", multiple=True, metavar="FORMULA", help="Another model of the same runs, compared by ANOVA.")
@click.option("--folds", type=Whole(1), metavar="K", help="Cross-validate with K folds.")
@click.option("--repeat", type=Whole(1, 1000), help="Number of cross-validations.  [default: 1]")
@click.option("--held-out", type=FilePath(path_type=Path, exists=True), metavar="FILE", help="Runs to predict.")
@click.option("--hold-out", type=Whole(1), metavar="N", help="Predict N randomly drawn runs from the others.")
@click.option("--level", help="Confidence level of the intervals.  [default: 95%]")
@click.option(
    "--interval",
    type=OneOf(INTERVAL_KINDS),
    help="Interval of a single run, or of the mean of many.  [default: prediction]",
)
@click.option(
    "--at", multiple=True, metavar="NAME=VALUE,..", help="Predict at these values, e.g. 'nodes=512,size=8 GB'."
)
@click.option("--second-opinion", is_flag=True, help="Compare with an additive model of smooth curves.")
@click.option("--seed", type=Whole(0, 2**31), help="Random seed of folds and held-out runs.  [default: 0]")
@click.option("--show", type=OneOf(REGRESSION_TABLES), help="Table to print.  [default: by the other options]")
@format_option
def command(files: tuple[Path, ...], target: ModelTarget, level: str | None, file_format: str, **options: Any) -> None:
    """Fit a linear model to measured runs, check it, and predict with an interval.

    FILES are CSV or TSV with units in the headings (`time [ms]`), Extra-P's text, JSON and JSON lines, Caliper or
    Thicket profiles, logs of nvidia-smi. Terms: + - * : / ( ), I(x**2), log(x), log2(x), sqrt(x), poly(x, 2);
    `log(time) ~ ..` keeps predictions positive.
    """
    from whatif.api.run_fits import fit_regression

    result = fit_regression(files, level=level, **options)
    show_notes(result.notes)
    if len(result.tables) > 1 and file_format in ("csv", "json"):
        names = ", ".join(result.tables)
        raise UsageError(f"--format {file_format} is of one table: choose it by --show, one of {names}")
    target.write(result)
    for number, table in enumerate(result.tables.values()):
        if number:
            echo()
        Output(file_format).print_table(table)
