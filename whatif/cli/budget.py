"""`whatif budget`: nodes and jobs for a budget of money or power."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import one_each, platforms_option, set_option
from whatif.cli.output import Output, output_options


@click.command("budget")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option("--platform", "platforms", multiple=True, callback=one_each, metavar="NAME",
              help="A platform, once for each; by default those of the scenarios.")  # fmt: skip
@click.option("--capital", metavar="MONEY", help="Most that the nodes may cost, e.g. '20 MUSD'.")
@click.option("--cost", metavar="MONEY", help="Most that the nodes and their energy may cost over the lifetime.")
@click.option("--power", metavar="POWER", help="Most power of the nodes under load, with cooling, e.g. '5 MW'.")
@platforms_option
@set_option
@output_options(picture=False)
def command(output: Output, **options: Any) -> None:
    """Show how many nodes of each platform a budget buys, and how many jobs of each SCENARIO they run.

    Jobs run at the same time, each on the nodes it needs. All limits apply together; `limit` is the one that binds.
    --set applies to every platform, e.g. --set platform.price.lifetime='5 year'.
    """
    from whatif.api.decisions import budget

    output.write(budget(**options))
