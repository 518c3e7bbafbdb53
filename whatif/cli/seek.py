"""`whatif seek`: values that meet targets, break-even points and Pareto fronts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from whatif.cli.options import log_option, scenario_options
from whatif.cli.output import Output, output_options
from whatif.cli.progress import progress_line
from whatif.cli.values import Whole
from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.studies.study_result import StudyResult


@click.command("seek")
@scenario_options
@click.option("--vary", multiple=True, required=True, metavar="PATH[=LOW .. HIGH | =A, B]",
              help="Parameter to vary, over a range, a list, or values as in --sweep; or choices: `platform=a, b`. By "
              "default from a thousandth of its value to a thousand times it.")  # fmt: skip
@click.option("--target", "targets", multiple=True, metavar="'RESULT <= VALUE'",
              help="Bound of a result or parameter: `iteration_time <= 5 ms`, `terms.halo <= 80 %` of the present "
              "value, or >=.")  # fmt: skip
@click.option("--minimise", metavar="RESULT", help="Result, phase or parameter to minimise.")
@click.option("--maximise", metavar="RESULT", help="Result, phase or parameter to maximise; by default the values "
              "change as little as possible.")  # fmt: skip
@click.option("--equal-to", metavar="PLATFORM", help="Find where the result equals that on PLATFORM or with PATH=VALUE:"
              " values of one parameter, or a curve over a second one.")  # fmt: skip
@click.option("--result", help="Result that --equal-to compares.  [default: iteration_time]")
@click.option("--pareto", "objectives", metavar="RESULT,..",
              help="Objectives of a Pareto front, to minimise or, as `max RESULT`, to maximise.")  # fmt: skip
@click.option("--within", metavar="SHARE",
              help="Operating range: share of the best of each --pareto objective.  [default: 10%]")  # fmt: skip
@click.option("--points", type=Whole(1, 10_000_000), metavar="N",
              help="Most points per combination of choices; by default 20000, or if each is simulated 200, with "
              "--pareto 100.")  # fmt: skip
@click.option("--seed", type=Whole(0, 2**31), metavar="N", help="Random seed.  [default: 0]")
@log_option
@output_options(plot="Draw the result of --equal-to or --pareto.")
def command(
    scenario: str, vary: tuple[str, ...], targets: tuple[str, ...], minimise: str | None, maximise: str | None,
    equal_to: str | None, result: str | None, objectives: str | None, within: str | None, points: int | None,
    seed: int | None, output: Output, **options: Any,
) -> None:  # fmt: skip
    """Find the values of parameters of SCENARIO, nearest to the present ones, that meet all targets; or the best ones.

    The nearest values have the least sum of the squared logarithms of their factors, after the fewest changed choices.
    One parameter with one target has a root finder, unless each point is simulated, or --points or --seed request a
    search. Otherwise each combination of choices is searched: all points if they are few, else by differential
    evolution. The output shows which targets bind and which values are at an end of their range. Exits with 4 if
    nothing meets the targets, with the closest results and the longest phases there.
    """
    from whatif.api.searches import break_even, pareto_front, seek

    _refuse_mixed(bool(targets), bool(minimise or maximise), equal_to is not None, objectives is not None)
    _refuse_unused(equal_to is not None, objectives is not None, points, seed)
    if output.is_picture and equal_to is None and objectives is None:
        raise UsageError("--plot and pictures need --equal-to or --pareto")
    if result is not None and equal_to is None:
        raise UsageError("--result: no effect without --equal-to")
    if within is not None and objectives is None:
        raise UsageError("--within: no effect without --pareto")
    found: StudyResult
    with progress_line() as line:
        if equal_to is not None:
            found = break_even(scenario, vary, equal_to, result=result or "iteration_time", progress=line, **options)
        elif objectives is not None:
            found = pareto_front(scenario, vary, objectives, targets=targets, within=within or "10%", points=points,
                                 progress=line, **options)  # fmt: skip
        else:
            found = seek(scenario, vary, targets, minimise=minimise, maximise=maximise, points=points, seed=seed,
                         progress=line, **options)  # fmt: skip
    output.write(found)


def _refuse_mixed(targets: bool, aims: bool, equal: bool, pareto: bool) -> None:
    if equal and (targets or aims or pareto):
        raise UsageError("--equal-to excludes --target, --minimise, --maximise and --pareto")
    if pareto and aims:
        raise UsageError("--pareto excludes --minimise and --maximise: it states the objectives")


def _refuse_unused(equal: bool, pareto: bool, points: int | None, seed: int | None) -> None:
    if equal and points is not None:
        raise UsageError("--points: no effect with --equal-to, which has a root finder")
    if (equal or pareto) and seed is not None:
        raise UsageError("--seed: no effect with --equal-to and --pareto, which use no random numbers")
