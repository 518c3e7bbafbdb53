"""`whatif sensitivity`: which values a result follows, and what would be left of it if parts were ideal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import (
    open_question,
    picture_option,
    print_table,
    sampling_options,
    scenario_options,
    tell_worth,
)
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.term import Program
    from whatif.core.uncertainty import Sampling
    from whatif.studies.elasticity import Elasticity
    from whatif.studies.sobol import Variance
    from whatif.table import Table

_BAR_WIDTH = 24
_SOBOL_SAMPLES = 4096


@click.command("sensitivity", short_help="Rank the values that a result follows, or climb the ladder of ideals.")
@scenario_options
@click.option("--result", default="iteration_time", show_default=True, help="A result, or a phase: terms.NAME.")
@click.option("--show", type=click.Choice(["tornado", "ladder", "sobol"]), default="tornado", show_default=True,
              help="Elasticities of all values; what is left if the worst part were ideal, then more; or what explains "
                   "the variance of the samples.")  # fmt: skip
@sampling_options
@click.option("--all", "everything", is_flag=True, help="Values without effect too, and those that cannot move.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    result: str,
    show: str,
    sampling: Sampling | None,
    everything: bool,
    file_format: str,
    output: Path | None,
) -> None:
    """Say what the result of SCENARIO depends on: by how many percent it moves with one percent of each value.

    The ladder makes rates infinite and fixed times 0, part by part, the part first that saves most: the bottlenecks.
    Sobol' indices say which uncertain value (`V +- E`, or --spread) is worth measuring.
    """
    if sampling is not None and show != "sobol":
        raise UsageError("--samples and --spread go with --show sobol")
    question = open_question(scenario, platform, platform_dirs, overrides)
    tell_worth(question)
    program = question.program
    if output is not None:
        _draw(program, result, show, sampling, output)
        return
    bars = file_format == "table"
    if show == "ladder":
        table = _ladder(program, result, bars)
    elif show == "sobol":
        table = _sobol(program, sampling, result, everything, bars)
    else:
        table = _tornado(program, result, everything, bars)
    print_table(table, file_format, [["tornado", "what_is_left", "explains"], ["change"], ["now"]])


def _draw(program: Program, result: str, show: str, sampling: Sampling | None, output: Path) -> None:
    from whatif.plotting.picture import check_picture, write_picture
    from whatif.studies.bar_charts import ladder_bars, tornado_bars, variance_bars
    from whatif.studies.bottlenecks import ladder
    from whatif.studies.elasticity import elasticities

    check_picture(output)
    if show == "ladder":
        write_picture(ladder_bars(program, ladder(program, result)), output)
    elif show == "sobol":
        write_picture(variance_bars(result, _variance(program, sampling, result)), output)
    else:
        write_picture(tornado_bars(program, result, elasticities(program, result)), output)


def _tornado(program: Program, result: str, everything: bool, bars: bool) -> Table:
    from whatif.studies.elasticity import elasticities
    from whatif.table import Table
    from whatif.units import ONE

    found = elasticities(program, result)
    shown = [item for item in found if everything or item.elasticity]
    shown = [item for item in shown if everything or not item.reason]
    most = max((abs(item.elasticity) for item in shown if not item.reason), default=1.0)
    columns = {"value": None, "now": None, "change": None, "elasticity": ONE} | ({"tornado": None} if bars else {})
    rows = [
        [item.path, item.value, item.change or item.reason, item.elasticity, *([_arm(item, most)] if bars else [])]
        for item in shown
    ]
    click.echo(f"{result}: follows {len(shown)} of {len(found)} values", err=True)
    return Table.of_rows(columns, rows, {"result": result})


def _arm(item: Elasticity, most: float) -> str:
    """A bar to the left of the middle where more of a value is less of the result, else to the right."""
    half = _BAR_WIDTH // 2
    length = 0 if item.reason or not most else max(round(abs(item.elasticity) / most * half), 1)
    left, right = (length, 0) if item.elasticity < 0 else (0, length)
    return f"{'#' * left:>{half}}|{'#' * right:<{half}}"


def _variance(program: Program, sampling: Sampling | None, result: str) -> Variance:
    from whatif.core.uncertainty import Sampling
    from whatif.studies.sobol import sobol_indices

    return sobol_indices(program, sampling or Sampling(_SOBOL_SAMPLES), result)


def _sobol(program: Program, sampling: Sampling | None, result: str, everything: bool, bars: bool) -> Table:
    from whatif.studies.cause_tables import variance_in_words, variance_table

    found = _variance(program, sampling, result)
    click.echo(variance_in_words(found, result, program.dimension_of(result)), err=True)
    return variance_table(found, result, everything=everything, bars=bars)


def _ladder(program: Program, result: str, bars: bool) -> Table:
    from whatif.studies.bottlenecks import ladder
    from whatif.studies.cause_tables import ladder_in_words, ladder_table

    found, dimension = ladder(program, result), program.dimension_of(result)
    click.echo(ladder_in_words(found, dimension), err=True)
    return ladder_table(found, dimension, bars=bars)
