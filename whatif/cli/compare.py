"""`whatif compare`: machines over several applications, with one figure of merit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import (
    named_platform,
    open_question,
    platforms_option,
    print_table,
    sampling_options,
    set_option,
)
from whatif.errors import ImpossiblePointError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.engine.merit import Ranking, Standing
    from whatif.engine.uncertainty import Sampling
    from whatif.table import Table
    from whatif.units import Dimension


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
@sampling_options
@click.option("--show", type=click.Choice(["ranking", "commitment"]), default="ranking", show_default=True,
              help="One row a machine; or one a machine and application, with the time to commit to.")  # fmt: skip
@click.option("--result", default="total_time", show_default=True, help="The time to compare: a result of each.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def command(
    scenarios: tuple[str, ...], names: tuple[str, ...], weights: tuple[str, ...], references: tuple[str, ...],
    folders: tuple[Path, ...], sets: tuple[str, ...], sampling: Sampling | None, show: str, result: str,
    file_format: str,
) -> None:  # fmt: skip
    """Rank machines by the weighted geometric mean of their speedups over the reference times of all SCENARIOs.

    Says at which weight of an application another machine would lead; with --samples, how likely each machine is the
    best and ahead of the first. --set holds for all scenarios.
    """
    from whatif.engine.merit import ranking

    platforms: dict[str, None] = {}
    for name in names:
        platform, folders = named_platform(name, folders)
        platforms[platform] = None
    questions = {name: open_question(name, None, folders, sets) for name in scenarios}
    counted = {name: _number(text) for name, text in _pairs(weights, "--weight").items()}
    given = {name: _seconds(text) for name, text in _pairs(references, "--reference").items()}
    found = ranking(questions, list(platforms), counted, given, result, sampling)
    if show == "commitment":
        print_table(commitments(found, sampling), file_format, [["grade"], ["weight"]])
    else:
        bands = [] if sampling is None else [[f"merit {name}" for name in sampling.names]]
        print_table(_table(found, sampling), file_format, [[f"{name} time" for name in questions], *bands])
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


def _table(found: Ranking, sampling: Sampling | None) -> Table:
    """One row a machine, the best first: its merit and chances, time and speedup of every application, or why not."""
    from whatif.table import Table
    from whatif.units import ONE, SECOND

    columns: dict[str, Dimension | None] = {"platform": None, "merit": ONE}
    if sampling is not None:
        columns |= dict.fromkeys([*(f"merit {name}" for name in sampling.names), "best", "ahead"], ONE)
    for name in found.weights:
        columns |= {f"{name} time": SECOND, f"{name} speedup": ONE}
    has_reasons = any(its.reason for its in found.standings)
    columns |= {"impossible": None} if has_reasons else {}
    rows = []
    for its in found.standings:
        cells = [cell for name in found.weights for cell in (its.times[name], its.speedups[name])]
        chances = [] if sampling is None else _chances(its)
        rows.append([its.platform, its.merit, *chances, *cells, *([its.reason] if has_reasons else [])])
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in found.weights.items())
    return Table.of_rows(columns, rows, {"weights": weights})


def _chances(its: Standing) -> list[float]:
    if its.chances is None:
        return [math.nan] * 5
    return [*its.chances.merits, its.chances.best, its.chances.ahead]


def commitments(found: Ranking, sampling: Sampling | None) -> Table:
    """One row a machine and application: the time and speedup to commit to, and what they are worth.

    With samples the time is the upper end of the band, which the machine keeps with that probability.
    """
    import numpy as np

    from whatif.table import Table
    from whatif.units import ONE, SECOND

    upper = "" if sampling is None else f" {sampling.names[2]}"
    columns = {"platform": None, "application": None, "weight": ONE, "reference": SECOND, "time": SECOND}
    columns |= {f"time{upper}": SECOND, f"speedup{upper}": ONE, "grade": None, "remarks": None}
    rows = []
    for its in found.standings:
        for name, answer in its.answers.items():
            time = answer.time
            if sampling is not None and answer.samples is not None:
                time = float(np.nanquantile(answer.samples, sampling.quantiles[2]))
            committed = [] if sampling is None else [time]
            numbers = [
                found.weights[name],
                found.references[name],
                answer.time,
                *committed,
                found.references[name] / time,
            ]
            remarks = "; ".join(text for text in (answer.reason, *answer.extrapolated) if text)
            rows.append([its.platform, name, *numbers, answer.grade, remarks])
    return Table.of_rows(columns, rows, {"weights": ", ".join(found.weights)})


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
