"""`whatif compare`: machines over several applications, with one figure of merit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import named_platform, open_question, platforms_option, print_table, set_option
from whatif.errors import ImpossiblePointError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.engine.merit import Ranking
    from whatif.table import Table


@click.command("compare", short_help="Rank machines over several applications.")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option("--platform", "names", multiple=True, required=True, metavar="NAME",
              help="A machine, once for each; reference times are those of the first.")  # fmt: skip
@click.option(
    "--weight", "weights", multiple=True, metavar="SCENARIO=NUMBER", help="What an application counts; else 1."
)
@click.option("--reference", "references", multiple=True, metavar="SCENARIO=TIME", help="Its reference time, `120 s`.")
@platforms_option
@set_option
@click.option("--result", default="total_time", show_default=True, help="The time to compare: a result of each.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def command(
    scenarios: tuple[str, ...], names: tuple[str, ...], weights: tuple[str, ...], references: tuple[str, ...],
    folders: tuple[Path, ...], sets: tuple[str, ...], result: str, file_format: str,
) -> None:  # fmt: skip
    """Rank machines by the weighted geometric mean of their speedups over the reference times of all SCENARIOs.

    Says at which weight of an application another machine would lead. --set holds for all scenarios.
    """
    from whatif.engine.merit import ranking

    platforms: dict[str, None] = {}
    for name in names:
        platform, folders = named_platform(name, folders)
        platforms[platform] = None
    questions = {name: open_question(name, None, folders, sets) for name in scenarios}
    counted = {name: _number(text) for name, text in _pairs(weights, "--weight").items()}
    given = {name: _seconds(text) for name, text in _pairs(references, "--reference").items()}
    found = ranking(questions, list(platforms), counted, given, result)
    print_table(_table(found), file_format, [[f"{name} time" for name in questions]])
    _tell(found)


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.rpartition("="))
        if not equals or not name:
            raise UsageError(f"{option} {text}: expected SCENARIO=VALUE")
        pairs[name] = value
    return pairs


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--weight: `{text}` is no number") from None


def _seconds(text: str) -> float:
    from whatif.units import SECOND, UnitError, parse_quantity

    try:
        time = parse_quantity(text)
    except UnitError as error:
        raise UsageError(f"--reference: {error}") from None
    if time.dimension != SECOND or not time.value > 0:
        raise UsageError(f"--reference: `{text}` must be a time greater than 0, such as `120 s`")
    return time.value


def _table(found: Ranking) -> Table:
    """One row a machine, the best first: its merit, time and speedup of every application, why there is none."""
    from whatif.table import Table
    from whatif.units import ONE, SECOND

    columns = {"platform": None, "merit": ONE}
    for name in found.weights:
        columns |= {f"{name} time": SECOND, f"{name} speedup": ONE}
    has_reasons = any(its.reason for its in found.standings)
    columns |= {"impossible": None} if has_reasons else {}
    rows = []
    for its in found.standings:
        cells = [cell for name in found.weights for cell in (its.times[name], its.speedups[name])]
        rows.append([its.platform, its.merit, *cells, *([its.reason] if has_reasons else [])])
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in found.weights.items())
    return Table.of_rows(columns, rows, {"weights": weights})


def _tell(found: Ranking) -> None:
    from whatif.units import SECOND, format_quantity

    for name, weight in found.weights.items():
        reference = format_quantity(found.references[name], SECOND, 4)
        click.echo(f"{name}: weight {weight:.1%}, reference time {reference}", err=True)
    first = found.standings[0]
    if not math.isfinite(first.merit):
        raise ImpossiblePointError("impossible: no machine has an answer for every application that counts")
    for turn in found.turns:
        more = "more" if turn.turns_at > turn.weight else "less"
        click.echo(f"{turn.leader} leads if {turn.application} weighs {more} than {turn.turns_at:.1%}", err=True)
    if not found.turns:
        click.echo(f"{first.platform} leads whatever one application weighs", err=True)
