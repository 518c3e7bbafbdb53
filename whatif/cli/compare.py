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
    from whatif.units import Quantity


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
@click.option("--result", default="total_time", show_default=True, help="What to compare: a time, energy or cost.")
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
    given = {name: _reference(text) for name, text in _pairs(references, "--reference").items()}
    numbers = {name: reference.value for name, reference in given.items()}
    found = ranking(questions, list(platforms), counted, numbers, result)
    wrong = next((name for name, reference in given.items() if reference.dimension != found.dimension), None)
    if wrong is not None:
        raise UsageError(f"--reference: that of {wrong} must be in {found.dimension}, as {result} is")
    print_table(_table(found, result), file_format, [_titles(found, result)])
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


def _reference(text: str) -> Quantity:
    from whatif.units import UnitError, parse_quantity

    try:
        reference = parse_quantity(text)
    except UnitError as error:
        raise UsageError(f"--reference: {error}") from None
    if not reference.value > 0:
        raise UsageError(f"--reference: `{text}` must be greater than 0, such as `120 s`")
    return reference


def _titles(found: Ranking, result: str) -> list[str]:
    """What the columns of times, or of another result, are called, by application."""
    what = "time" if found.is_time else result.replace("_", " ")
    return [f"{name} {what}" for name in found.weights]


def _table(found: Ranking, result: str) -> Table:
    """One row a machine, the best first: its merit, time and speedup of every application, why there is none."""
    from whatif.table import Table
    from whatif.units import ONE

    columns = {"platform": None, "merit": ONE}
    gain = "speedup" if found.is_time else "gain"
    for name, title in zip(found.weights, _titles(found, result), strict=True):
        columns |= {title: found.dimension, f"{name} {gain}": ONE}
    has_reasons = any(its.reason for its in found.standings)
    columns |= {"impossible": None} if has_reasons else {}
    rows = []
    for its in found.standings:
        cells = [cell for name in found.weights for cell in (its.times[name], its.speedups[name])]
        rows.append([its.platform, its.merit, *cells, *([its.reason] if has_reasons else [])])
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in found.weights.items())
    return Table.of_rows(columns, rows, {"weights": weights})


def _tell(found: Ranking) -> None:
    from whatif.units import format_quantity

    for name, weight in found.weights.items():
        reference = format_quantity(found.references[name], found.dimension, 4)
        what = "reference time" if found.is_time else "reference"
        click.echo(f"{name}: weight {weight:.1%}, {what} {reference}", err=True)
    first = found.standings[0]
    if not math.isfinite(first.merit):
        raise ImpossiblePointError("impossible: no machine has an answer for every application that counts")
    for turn in found.turns:
        more = "more" if turn.turns_at > turn.weight else "less"
        click.echo(f"{turn.leader} leads if {turn.application} weighs {more} than {turn.turns_at:.1%}", err=True)
    if not found.turns:
        click.echo(f"{first.platform} leads whatever one application weighs", err=True)
