"""`whatif diff`: why two scenarios, two machines or two revisions differ."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import open_question, picture_option, platforms_option, print_table, set_option, tell_worth
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.engine.attribution import Attribution
    from whatif.engine.question import Question
    from whatif.table import Table
    from whatif.units import Dimension

_BAR_WIDTH, _CELL_WIDTH = 24, 20


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
@click.option("--by", type=click.Choice(["leaf", "table"]), default="leaf", show_default=True,
              help="What counts as one change: a value, or all values of one table.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the orders that are drawn.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    first: str, second: str | None, platforms: tuple[str, ...], folders: tuple[Path, ...], sets: tuple[str, ...],
    result: str, by: str, seed: int, file_format: str, output: Path | None,
) -> None:  # fmt: skip
    """Attribute the difference between A and B to the values that changed, in no order (Shapley values).

    A and B are scenarios, by path or name, or REV:path, as the file was in a git revision. Without B, A on another
    machine. --set holds for both. Exact where up to 14 changes have an effect; else orders are drawn, with an error.
    """
    from whatif.engine.attribution import attribute
    from whatif.export.bars import names_of, waterfall_bars
    from whatif.export.picture import check_picture, write_picture

    if output is not None:
        check_picture(output)
    with ExitStack() as stack:
        one, other = _questions(first, second, platforms, folders, sets, stack)
        tell_worth(one, other)
        found = attribute(one.program, other.program, result, by_table=by == "table", seed=seed)
    _tell(found, seed)
    if output is not None:
        write_picture(waterfall_bars(one.program, found, names_of(one, other)), output)
        return
    print_table(_table(found, bars=file_format == "table"), file_format, [["waterfall"], ["then"], ["before", "after"]])


def _questions(
    first: str, second: str | None, platforms: tuple[str, ...], folders: tuple[Path, ...], sets: tuple[str, ...],
    stack: ExitStack,
) -> tuple[Question, Question]:  # fmt: skip
    if len(platforms) > 2:
        raise UsageError("--platform is given once or twice")
    if second is None and not platforms:
        raise UsageError("name a second scenario, or the machine to compare with: --platform NAME")
    before = platforms[0] if len(platforms) == 2 or (platforms and second is not None) else None
    after = platforms[-1] if platforms else None
    one = open_question(_path(first, stack), before, folders, sets)
    return one, open_question(_path(second or first, stack), after, folders, sets)


def _path(name: str, stack: ExitStack) -> str:
    """Where a scenario lies; one of a revision for as long as the stack."""
    from whatif.cli.revisions import checked_out, names_a_revision

    return str(stack.enter_context(checked_out(name))) if names_a_revision(name) else name


def _tell(found: Attribution, seed: int) -> None:
    from whatif.units import format_quantity

    before, after, difference = (
        format_quantity(number, found.dimension, 4)
        for number in (found.before, found.after, found.after - found.before)
    )
    change = f"{found.after / found.before - 1:+.1%}" if found.before else "from nothing"
    click.echo(f"{found.result}: {before} -> {after} ({difference}, {change})", err=True)
    if not found.exact:
        click.echo(f"{len(found.changes)} changes: mean over 512 orders, seed {seed}", err=True)
    if not found.changes:
        click.echo("nothing that differs has an effect", err=True)
    if found.without_effect:
        count = len(found.without_effect)
        click.echo(f"{count} other values differ and explain nothing", err=True)


def _table(found: Attribution, *, bars: bool) -> Table:
    """One row a change: what changed, what it explains, its share of the difference, and where the result is then."""
    from whatif.table import Table
    from whatif.units import ONE

    total, ends = found.after - found.before, _ends(found)
    columns: dict[str, Dimension | None] = {
        "change": None,
        "before": None,
        "after": None,
        "contribution": found.dimension,
    }
    shown = _short if bars else str
    rows: list[list[object]] = [[c.name, shown(c.before), shown(c.after), c.contribution] for c in found.changes]
    if not found.exact:
        columns["standard_error"] = found.dimension
        rows = [[*row, change.standard_error] for row, change in zip(rows, found.changes, strict=True)]
    columns |= {"share": None if bars else ONE, "then": found.dimension} | ({"waterfall": None} if bars else {})
    for row, change, end, bar in zip(rows, found.changes, ends[1:], _waterfall(ends), strict=True):
        share = change.contribution / total if total else float("nan")
        row.extend([f"{share:+.1%}", end, bar] if bars else [share, end])
    return Table.of_rows(columns, rows, {"before": f"{found.before!r}", "after": f"{found.after!r}"})


def _short(text: str) -> str:
    return text if len(text) <= _CELL_WIDTH else f"{text[: _CELL_WIDTH - 2]}.."


def _ends(found: Attribution) -> list[float]:
    """The result before the first change, and after each."""
    return list(accumulate((change.contribution for change in found.changes), initial=found.before))


def _waterfall(ends: list[float]) -> list[str]:
    """A bar a change from where the result was to where it is then, on one scale."""
    least, most = min(ends), max(ends)
    scale = _BAR_WIDTH / (most - least) if most > least else 0.0
    bars = []
    for start, end in pairwise(ends):
        left, right = sorted((round((start - least) * scale), round((end - least) * scale)))
        bars.append((" " * left + ("+" if end > start else "-") * max(right - left, 1)).ljust(_BAR_WIDTH + 1))
    return bars
