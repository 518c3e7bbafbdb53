"""`whatif tune grid`: the best decomposition and mapping of an application's grid."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import open_question, print_table, scenario_options, tell_worth
from whatif.cli.seek_search import progress
from whatif.errors import ImpossiblePointError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.studies.decompositions import Layout, Layouts


@click.command("grid", short_help="Decomposition and mapping of an application's grid.")
@scenario_options
@click.option("--whole-grid", is_flag=True, help="Keep the cells of the whole grid, also where the file states those "
              "of a rank (weak scaling).")  # fmt: skip
@click.option("--result", default="iteration_time", show_default=True, help="A result, or a phase: terms.NAME.")
@click.option("--show", "count", type=click.IntRange(1), default=10, show_default=True, help="So many of the best.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write SCENARIO with the best one as a scenario of its own, comments kept.")  # fmt: skip
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def tune_grid(
    scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...], whole_grid: bool,
    result: str, count: int, output: Path | None, file_format: str,
) -> None:  # fmt: skip
    """Rank every decomposition of SCENARIO's grid: all factors of its ranks along the dimensions, in every order,
    and the bisection, with every mapping to nodes and numbering of ranks.

    A weak scaling keeps the cells of a rank, so that the whole grid takes another shape with as many cells; with
    --whole-grid all decompositions are of the file's grid.
    """
    from whatif.studies.decision_tables import layouts_table
    from whatif.studies.decompositions import layouts
    from whatif.studies.scaling import Planner

    question = open_question(scenario, platform, platform_dirs, overrides)
    tell_worth(question)
    if whole_grid:
        question = Planner(question).of_whole_grid()
    with progress() as told:
        found = layouts(question, result, lambda done, of: told(f"{done} of {of} layouts"))
    _tell(found, question)
    print_table(layouts_table(found, question, count), file_format, [["decomposition"], ["order"], ["change"]])
    if not math.isfinite(found.ranked[0].result):
        raise ImpossiblePointError(f"impossible: {found.ranked[0].reason}")
    if output is not None:
        _write(output, question, found.ranked[0])


def _tell(found: Layouts, question: Scenario) -> None:
    from whatif.units import format_quantity

    for reason in found.refused:
        click.echo(f"left out: {reason}", err=True)
    missing = sum(not math.isfinite(item.result) for item in found.ranked)
    if missing:
        click.echo(f"{missing} of {len(found.ranked)} layouts are impossible", err=True)
    grid = question.program.loaded.scenario.application.grid
    if grid is not None and grid.scaling == "weak":
        click.echo("weak scaling: ranks keep their cells, the whole grid its number of cells but not its shape; "
                   "--whole-grid keeps that", err=True)  # fmt: skip
    best, present = found.ranked[0], found.present
    if math.isfinite(present.result) and math.isfinite(best.result):
        dimension = question.program.dimension_of(found.result)
        now, then = (format_quantity(item.result, dimension, 4) for item in (present, best))
        change = f" ({found.change(best):+.2%})" if math.isfinite(found.change(best)) else ""
        click.echo(f"{found.result}: {now} as it stands, {then} at best{change}", err=True)


def _write(output: Path, question: Scenario, best: Layout) -> None:
    from whatif.files.scenario_edits import save_as
    from whatif.studies.decompositions import settings

    changed = question.changed({**question.sets, **settings(best, question)}, question.platform)
    save_as(output, changed)
    click.echo(f"written: {output}", err=True)
