"""`whatif seek`: which values meet a target, where two machines break even, and what can be traded for what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import (
    drawing,
    open_question,
    picture_option,
    print_table,
    scenario_options,
    share_of,
    tell_worth,
)
from whatif.errors import ImpossiblePointError, InvalidFileError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.studies.population import Objective
    from whatif.studies.search_space import Varied
    from whatif.studies.threshold import SeekResult, Target
    from whatif.table import Table


@click.command("seek", short_help="Find the values that meet targets, break-even points, or Pareto fronts.")
@scenario_options
@click.option("--vary", "varies", multiple=True, required=True, metavar="PATH[=LOW .. HIGH | =A, B]",
              help="A parameter to move, over a range, a list, or as --sweep has it; or choices: `platform=a, b`. By "
              "default from a thousandth of its value to a thousand times it.")  # fmt: skip
@click.option("--target", "targets", multiple=True, metavar="'RESULT <= VALUE'",
              help="`iteration_time <= 5 ms`, `terms.halo <= 80 %` of now, or >=; a result or parameter.")  # fmt: skip
@click.option("--minimise", metavar="RESULT", help="A result, a phase (terms.NAME) or a parameter to make small.")
@click.option("--maximise", metavar="RESULT", help="One to make large; by default values change as little as they can.")
@click.option("--equal-to", metavar="PLATFORM", help="Where the scenario on this machine, or with this PATH=VALUE, "
              "comes to the same result: for one parameter, or as a curve over a second one.")  # fmt: skip
@click.option("--result", default="iteration_time", show_default=True, help="What --equal-to compares.")
@click.option(
    "--pareto", metavar="RESULT,..", help="Points that none other beats in all of these; `max RESULT`: large."
)
@click.option(
    "--within", default="10%", show_default=True, help="Of the best of each --pareto result: operating range."
)
@click.option("--points", type=click.IntRange(1, 10_000_000), metavar="N",
              help="To evaluate for each combination of choices; default 20000, 200 or 100 where "
              "each is played.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31), metavar="N", help="Of what is drawn; default 0.")
@click.option("--plot", is_flag=True, help="Draw what --equal-to or --pareto finds.")
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@picture_option
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    varies: tuple[str, ...],
    targets: tuple[str, ...],
    minimise: str | None,
    maximise: str | None,
    equal_to: str | None,
    result: str,
    pareto: str | None,
    within: str,
    points: int | None,
    seed: int | None,
    plot: bool,
    file_format: str,
    output: Path | None,
) -> None:
    """Find the values of parameters of SCENARIO, nearest to the present ones, that meet all targets; or the best ones.

    Near is the least sum of the squared logarithms of the factors, after the fewest other choices. One parameter and
    one
    target are solved to the last digit, unless each point is played, or --points or --seed ask for a search; elsewhere
    each combination of choices is searched: all points where they are few, else by differential evolution. Says which
    targets bind and which values are at an end of their range. Exit with 4 where nothing meets the targets, and say
    how close it comes and which phases stand in the way.
    """
    from whatif.cli.seek_break_even import show_break_even
    from whatif.cli.seek_search import show_front, show_search
    from whatif.studies.search_space import parse_varied
    from whatif.studies.threshold import parse_target

    draw = drawing(plot, output)
    _refuse_mixed(bool(targets), bool(minimise or maximise), equal_to is not None, pareto is not None, draw is not None)
    _refuse_unused(equal_to is not None, pareto is not None, points, seed)
    question = open_question(scenario, platform, platform_dirs, overrides)
    tell_worth(question)
    varied = [parse_varied(text, question.program) for text in varies]
    _refuse_twice(varied)
    wanted = tuple(parse_target(text, question.program) for text in targets)
    if equal_to is not None:
        path = equal_to.partition("=")[0].strip()
        if any(item.path == path for item in varied):
            raise UsageError(
                f"--equal-to {equal_to}: `{path}` is moved by --vary; set another parameter, or name a machine"
            )
        with _blamed("--equal-to", [path]):
            show_break_even(question, equal_to, varied, result, draw, file_format)
        return
    aim = _objective(question, minimise, maximise)
    with _blamed("--vary", [item.path for item in varied]):
        if pareto is not None:
            show_front(question, varied, pareto, wanted, points, share_of("--within", within), draw, file_format)
        elif points is None and seed is None and _is_simple(question, varied, wanted, aim):
            _show_one(question, varied[0], wanted[0], file_format)
        else:
            show_search(question, varied, wanted, aim, seed or 0, points, file_format)


def _refuse_mixed(targets: bool, aims: bool, equal: bool, pareto: bool, plot: bool) -> None:
    if equal and (targets or aims or pareto):
        raise UsageError("--equal-to goes without --target, --minimise, --maximise and --pareto")
    if pareto and aims:
        raise UsageError("--pareto goes without --minimise and --maximise: it has objectives of its own")
    if plot and not (equal or pareto):
        raise UsageError("--plot and -o draw what --equal-to or --pareto finds")
    if not (targets or aims or equal or pareto):
        raise UsageError("say what is sought: --target, --minimise, --maximise, --equal-to or --pareto")


def _refuse_unused(equal: bool, pareto: bool, points: int | None, seed: int | None) -> None:
    if equal and points is not None:
        raise UsageError("--points: --equal-to takes as many points as the last digit needs")
    if (equal or pareto) and seed is not None:
        raise UsageError("--seed: nothing is drawn for --equal-to and --pareto")


@contextmanager
def _blamed(option: str, paths: Iterable[str]) -> Iterator[None]:
    """Blame an option for what it stands for: the question itself, with its --platform and --set, was read before."""
    own = ("--platform", *(f"--set {path}=" for path in paths))
    try:
        yield
    except InvalidFileError as error:
        raise InvalidFileError(
            [replace(item, file=f"{option}{item.file.removeprefix('--platform').removeprefix('--set')}")
             if item.file.startswith(own) else item for item in error.problems]
        ) from None  # fmt: skip


def _refuse_twice(varied: list[Varied]) -> None:
    paths = [item.path for item in varied]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise UsageError(f"--vary {twice}: it is given twice")


def _objective(question: Scenario, minimise: str | None, maximise: str | None) -> Objective | None:
    from whatif.studies.population import Objective
    from whatif.studies.search_space import quantity_named

    if minimise and maximise:
        raise UsageError("--minimise and --maximise exclude each other; --pareto shows what one costs of the other")
    name = minimise or maximise
    if name is None:
        return None
    quantity_named(name, question.program)
    return Objective(name, least=minimise is not None)


def _is_simple(question: Scenario, varied: list[Varied], wanted: tuple[Target, ...], aim: Objective | None) -> bool:
    """Whether one parameter and one target are asked for, which a root finder answers at thousands of points."""
    from whatif.studies.search_space import is_played

    alone = len(varied) == len(wanted) == 1 and aim is None and not (varied[0].choices or varied[0].values)
    return alone and not is_played(question.program)


def _show_one(question: Scenario, varied: Varied, target: Target, file_format: str) -> None:
    from whatif.studies.threshold import seek

    found = seek(question.program, varied.path, target, varied.low, varied.high)
    if not found.is_met:
        raise ImpossiblePointError(found.obstacle())
    if found.value == float(found.parameter.value):
        click.echo(f"{found.target} is met as it stands", err=True)
    print_table(_table(found), file_format, [["factor"]])


def _table(found: SeekResult) -> Table:
    from whatif.table import Table
    from whatif.units import ONE

    present = float(found.parameter.value)
    factor = found.value / present if present else float("nan")
    result = found.target.result
    columns = {"parameter": None, "now": found.parameter.dimension, "sought": found.parameter.dimension, "factor": ONE}
    columns |= dict.fromkeys((f"{result} now", f"{result} then"), found.target.dimension)
    return Table.of_rows(columns, [[found.parameter.path, present, found.value, factor, found.now, found.then]])
