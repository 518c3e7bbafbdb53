"""`whatif budget`: what a budget of money or power buys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.options import (
    named_platform,
    open_question,
    platforms_option,
    print_table,
    set_option,
    tell_on_all,
    tell_worth,
)
from whatif.errors import ImpossiblePointError, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.units import Quantity


@click.command("budget", short_help="Say what a budget of money or power buys.")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option("--platform", "names", multiple=True, required=True, metavar="NAME", help="A machine, once for each.")
@click.option("--capital", metavar="MONEY", help="What nodes may cost, `20 MUSD`.")
@click.option("--cost", metavar="MONEY", help="What nodes and their energy may cost over the lifetime.")
@click.option("--power", metavar="POWER", help="What nodes may draw while kernels run, with cooling, `5 MW`.")
@platforms_option
@set_option
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def command(
    scenarios: tuple[str, ...], names: tuple[str, ...], capital: str | None, cost: str | None, power: str | None,
    platform_dirs: tuple[Path, ...], overrides: tuple[str, ...], file_format: str,
) -> None:  # fmt: skip
    """Say how many nodes of each machine a budget buys, the jobs of each SCENARIO that they run, and what a job takes.

    Jobs run side by side, each on the nodes that it needs. All limits given hold at once; `limit` is the one that
    binds. --set holds on every machine, such as --set platform.price.lifetime='5 year'.
    """
    from whatif.studies.decision_tables import offers_table
    from whatif.studies.purchase import LIMITS, checked_limits, offers

    texts = dict(zip(LIMITS, (capital, cost, power), strict=True))
    limits = checked_limits({name: _quantity(name, text) for name, text in texts.items() if text is not None})
    platforms: dict[str, None] = {}
    for name in names:
        platform, platform_dirs = named_platform(name, platform_dirs)
        platforms[platform] = None
    questions = {name: open_question(name, None, platform_dirs, overrides) for name in scenarios}
    found = offers(questions, list(platforms), limits)
    optional = [["scenario"] if len(scenarios) == 1 else [], ["side by side"], ["limit"]]
    print_table(offers_table(found), file_format, optional)
    tell_on_all(*questions.values())
    answered = ((questions[row.scenario], row.platform) for row in found if not row.reason)
    tell_worth(*(question.changed(question.sets, platform) for question, platform in answered))
    if all(row.reason for row in found):
        raise ImpossiblePointError("impossible: no machine has an answer within the budget")


def _quantity(name: str, text: str) -> Quantity:
    from whatif.units import UnitError, parse_quantity

    try:
        return parse_quantity(text)
    except UnitError as error:
        wanted = "a power, such as `5 MW`" if name == "power" else "money, such as `20 MUSD`"
        raise UsageError(f"--{name}: {str(error).partition('; did you mean')[0]}; expected {wanted}") from None
