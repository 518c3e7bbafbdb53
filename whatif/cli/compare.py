"""`whatif compare`: platforms ranked over several applications."""

from __future__ import annotations

from typing import Any, Final

import click

from whatif.cli.options import one_each, platforms_option, set_option, uncertainty_options, values_by_name
from whatif.cli.output import Output, output_options
from whatif.cli.values import OneOf
from whatif.vocabulary import RANKING_VIEWS

_BY_SCENARIO: Final = values_by_name("SCENARIO=VALUE")


@click.command("compare")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option(
    "--platform", "platforms", multiple=True, callback=one_each, required=True, metavar="NAME",
    help="A platform, once for each, or a pattern such as `dgx_*`; the first one gives the reference times.",
)  # fmt: skip
@click.option(
    "--weight", "weights", multiple=True, callback=_BY_SCENARIO, metavar="SCENARIO=NUMBER",
    help="Weight of an application; 1 by default.",
)  # fmt: skip
@click.option("--reference", "references", multiple=True, callback=_BY_SCENARIO, metavar="SCENARIO=TIME",
              help="Reference time of an application, e.g. minife='120 s'.")  # fmt: skip
@click.option("--measured", multiple=True, callback=_BY_SCENARIO, metavar="SCENARIO=TIME",
              help="Measured time on the first platform: scales the predictions of all platforms.")  # fmt: skip
@platforms_option
@set_option
@uncertainty_options
@click.option("--within", multiple=True, callback=_BY_SCENARIO, metavar="'SCENARIO=RESULT <= TIME'",
              help="Show the fewest nodes that meet a target, e.g. 'minife=total_time <= 1 s'.")  # fmt: skip
@click.option("--show", type=OneOf(RANKING_VIEWS), default="ranking", show_default=True,
              help="One row per platform, or per platform and application with the time to commit to.")  # fmt: skip
@click.option("--result", default="total_time", show_default=True, help="A result to compare: a time, energy or cost.")
@output_options()
def command(output: Output, **options: Any) -> None:
    """Rank platforms by the weighted geometric mean of their speedups over the reference times of all SCENARIOs.

    Also shows at which weight of an application another platform leads and, with --samples, the probability that each
    platform is the best. --set applies to all scenarios.
    """
    from whatif.api.decisions import compare

    output.write(compare(**options))
