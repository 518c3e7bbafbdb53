"""`whatif diff`: why two scenarios, two machines or two revisions differ."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import open_question, picture_option, platforms_option, print_table, set_option, tell_worth
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario


@click.command("diff", short_help="Say which changes explain why two scenarios differ.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.option(
    "--platform", "platforms", multiple=True, metavar="NAME",
    help="Twice: the machine of A and that of B. Once: that of B, and with two scenarios of both.",
)  # fmt: skip
@platforms_option
@set_option
@click.option("--result", default="iteration_time", show_default=True, help="A result, or a phase: terms.NAME.")
@click.option("--by", type=click.Choice(["parameter", "table"]), default="parameter", show_default=True,
              help="What counts as one change: a value, or all values of one table.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the orders that are drawn.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    first: str,
    second: str | None,
    platforms: tuple[str, ...],
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    result: str,
    by: str,
    seed: int,
    file_format: str,
    output: Path | None,
) -> None:
    """Attribute the difference between A and B to the values that changed, in no order (Shapley values).

    A and B are scenarios, by path or name, or REV:path, as the file was in a git revision. Without B, A on another
    machine. --set holds for both. Exact where up to 14 changes have an effect; else orders are drawn, with an error.
    """
    from whatif.plotting.picture import check_picture, write_picture
    from whatif.studies.attribution import attribute
    from whatif.studies.bar_charts import names_of, waterfall_bars
    from whatif.studies.cause_tables import attribution_in_words, attribution_table

    if output is not None:
        check_picture(output)
    with ExitStack() as stack:
        one, other = _questions(first, second, platforms, platform_dirs, overrides, stack)
        tell_worth(one, other)
        found = attribute(one.program, other.program, result, by_table=by == "table", seed=seed)
    dimension = one.program.dimension_of(result)
    for line in attribution_in_words(found, dimension, seed):
        click.echo(line, err=True)
    if output is not None:
        write_picture(waterfall_bars(one.program, found, names_of(one, other)), output)
        return
    if not found.changes and file_format == "table":
        return
    table = attribution_table(found, dimension, bars=file_format == "table")
    print_table(table, file_format, [["waterfall"], ["then"], ["before", "after"]])


def _questions(
    first: str,
    second: str | None,
    platforms: tuple[str, ...],
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    stack: ExitStack,
) -> tuple[Scenario, Scenario]:
    if len(platforms) > 2:
        raise UsageError("--platform is given once or twice")
    if second is None and not platforms:
        raise UsageError("name a second scenario, or the machine to compare with: --platform NAME")
    before = platforms[0] if len(platforms) == 2 or (platforms and second is not None) else None
    after = platforms[-1] if platforms else None
    one = open_question(_path(first, stack), before, platform_dirs, overrides)
    return one, open_question(_path(second or first, stack), after, platform_dirs, overrides)


def _path(name: str, stack: ExitStack) -> str:
    """Where a scenario lies; one of a revision for as long as the stack."""
    from whatif.cli.revisions import checked_out, names_a_revision

    return str(stack.enter_context(checked_out(name))) if names_a_revision(name) else name
