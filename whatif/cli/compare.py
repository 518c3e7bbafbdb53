"""`whatif compare`: platforms ranked over several applications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whatif.arguments import pairs
from whatif.cli.options import one_each, parse_sets, platforms_option, set_option, uncertainty_options
from whatif.cli.output import Output, output_options
from whatif.cli.values import OneOf
from whatif.vocabulary import RANKING_VIEWS

if TYPE_CHECKING:
    from whatif.vocabulary import RankingView


@click.command("compare")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option(
    "--platform", "platforms", multiple=True, callback=one_each("--platform"), required=True, metavar="NAME",
    help="A platform, once for each, or a pattern such as `dgx_*`; the first one gives the reference times.",
)  # fmt: skip
@click.option(
    "--weight", "weights", multiple=True, metavar="SCENARIO=NUMBER", help="Weight of an application; 1 by default."
)
@click.option("--reference", "references", multiple=True, metavar="SCENARIO=TIME",
              help="Reference time of an application, e.g. minife='120 s'.")  # fmt: skip
@click.option("--measured", multiple=True, metavar="SCENARIO=TIME",
              help="Measured time on the first platform: scales the predictions of all platforms.")  # fmt: skip
@platforms_option
@set_option
@uncertainty_options
@click.option("--within", multiple=True, metavar="'SCENARIO=RESULT <= TIME'",
              help="Show the fewest nodes that meet a target, e.g. 'minife=total_time <= 1 s'.")  # fmt: skip
@click.option("--show", type=OneOf(RANKING_VIEWS), default="ranking", show_default=True,
              help="One row per platform, or per platform and application with the time to commit to.")  # fmt: skip
@click.option("--result", default="total_time", show_default=True, help="A result to compare: a time, energy or cost.")
@output_options()
def command(
    scenarios: tuple[str, ...], platforms: tuple[str, ...], weights: tuple[str, ...], references: tuple[str, ...],
    measured: tuple[str, ...], platform_dirs: tuple[Path, ...], overrides: tuple[str, ...], within: tuple[str, ...],
    show: RankingView, result: str, output: Output, **sampling: Any,
) -> None:  # fmt: skip
    """Rank platforms by the weighted geometric mean of their speedups over the reference times of all SCENARIOs.

    Also shows at which weight of an application another platform leads and, with --samples, the probability that each
    platform is the best. --set applies to all scenarios.
    """
    from whatif.api.decisions import compare

    found = compare(
        scenarios, platforms, platform_dirs=platform_dirs, overrides=parse_sets(overrides),
        weights=pairs("--weight", weights, "SCENARIO=VALUE"),
        references=pairs("--reference", references, "SCENARIO=VALUE"),
        measured=pairs("--measured", measured, "SCENARIO=VALUE"),
        within=pairs("--within", within, "SCENARIO=VALUE"), result=result, show=show, **sampling,
    )  # fmt: skip
    output.write(found)
