"""`whatif compare`: machines over several applications, with one figure of merit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import (
    named_platform,
    open_question,
    picture_option,
    platforms_option,
    print_table,
    sampling_options,
    set_option,
    tell_on_all,
)
from whatif.errors import ImpossiblePointError, InvalidFileError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.core.uncertainty import Sampling
    from whatif.studies.ranking import Ranking
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
@sampling_options
@click.option("--within", "targets", multiple=True, metavar="'SCENARIO=RESULT <= TIME'",
              help="Tell the fewest nodes on which it meets a target: `minife=total_time <= 1 s`.")  # fmt: skip
@click.option("--show", type=click.Choice(["ranking", "commitment"]), default="ranking", show_default=True,
              help="One row a machine; or one a machine and application, with the time to commit to.")  # fmt: skip
@click.option("--result", default="total_time", show_default=True, help="What to compare: a time, energy or cost.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    scenarios: tuple[str, ...],
    names: tuple[str, ...],
    weights: tuple[str, ...],
    references: tuple[str, ...],
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    sampling: Sampling | None,
    targets: tuple[str, ...],
    show: str,
    result: str,
    file_format: str,
    output: Path | None,
) -> None:
    """Rank machines by the weighted geometric mean of their speedups over the reference times of all SCENARIOs.

    Says at which weight of an application another machine would lead; with --samples, how likely each machine is the
    best and ahead of the first. --set holds for all scenarios.
    """
    from whatif.core.uncertainty import NOTHING_UNCERTAIN
    from whatif.plotting.picture import check_picture, write_picture
    from whatif.studies.bar_charts import merit_bars
    from whatif.studies.decision_tables import commitment_table, ranking_table, titles
    from whatif.studies.ranking import ranking

    if output is not None:
        check_picture(output)
    platforms: dict[str, None] = {}
    for name in names:
        platform, platform_dirs = named_platform(name, platform_dirs)
        platforms[platform] = None
    questions = {name: open_question(name, None, platform_dirs, overrides) for name in scenarios}
    counted = {name: _number(text) for name, text in _pairs(weights, "--weight").items()}
    given = {name: _reference(text) for name, text in _pairs(references, "--reference").items()}
    numbers = {name: reference.value for name, reference in given.items()}
    found = ranking(questions, list(platforms), counted, numbers, result, sampling)
    if sampling is not None and not found.drawn:
        click.echo(NOTHING_UNCERTAIN, err=True)
        sampling = None
    wrong = next((name for name, reference in given.items() if reference.dimension != found.dimension), None)
    if wrong is not None:
        raise UsageError(f"--reference: that of {wrong} must be in {found.dimension}, as {result} is")
    if output is not None:
        write_picture(merit_bars(found), output)
    elif show == "commitment":
        print_table(commitment_table(found, result, sampling), file_format, [["grade"], ["weight"]])
    else:
        needed = _needed(questions, list(platforms), _pairs(targets, "--within"))
        bands = [] if sampling is None else [[f"merit {name}" for name in sampling.names]]
        print_table(ranking_table(found, result, sampling, needed), file_format, [titles(found, result), *bands])
    tell_on_all(*questions.values())
    _tell(found)


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise UsageError(f"{option} {text}: expected SCENARIO=VALUE")
        pairs[name] = value
    return pairs


def _needed(
    questions: dict[str, Scenario], platforms: list[str], targets: dict[str, str]
) -> dict[str, dict[str, float]]:
    """By scenario, the nodes that it needs on each platform for its target; NaN, and why, where none are enough."""
    from whatif.studies.required_nodes import nodes_needed

    needed: dict[str, dict[str, float]] = {}
    for name, target in targets.items():
        if name not in questions:
            raise UsageError(f"--within: `{name}` is none of the applications {', '.join(questions)}")
        needed[name] = {}
        for platform in platforms:
            try:
                needed[name][platform] = nodes_needed(questions[name].changed(questions[name].sets, platform), target)
            except (ImpossiblePointError, InvalidFileError) as problem:
                needed[name][platform] = math.nan
                click.echo(f"{name} on {platform}: {problem}", err=True)
    return needed


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


def _tell(found: Ranking) -> None:
    from whatif.units import format_quantity

    for name, weight in found.weights.items():
        reference = format_quantity(found.references[name], found.dimension, 4)
        what = "reference time" if found.is_time else "reference"
        click.echo(f"{name}: weight {weight:.1%}, {what} {reference}", err=True)
    for its in found.standings:
        for name, answer in its.answers.items():
            for text in answer.extrapolated:
                click.echo(f"warning: {name} on {its.platform}: {text}", err=True)
    assumed = [its.platform for its in found.standings if "assumed" in {item.grade for item in its.answers.values()}]
    if assumed:
        click.echo(f"{', '.join(assumed)}: rest on assumed values", err=True)
    first = found.standings[0]
    if not math.isfinite(first.merit):
        raise ImpossiblePointError("impossible: no machine has an answer for every application that counts")
    for turn in found.turns:
        more = "more" if turn.turns_at > turn.weight else "less"
        click.echo(f"{turn.leader} leads if {turn.application} weighs {more} than {turn.turns_at:.1%}", err=True)
    able = [its for its in found.standings if math.isfinite(its.merit)]
    if not found.turns and len(able) > 1 and len(found.weights) > 1:
        click.echo(f"{first.platform} leads whatever one application weighs", err=True)
