"""`whatif differences`: results and differing values of several scenarios side by side."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import one_each, platforms_option, set_option
from whatif.cli.output import Output, output_options


@click.command("differences")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option("--name", "names", multiple=True, metavar="TEXT", help="Heading of a scenario, once for each.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    callback=one_each,
    metavar="NAME",
    help="Platform of a scenario, once for each.",
)
@platforms_option
@set_option
@output_options()
def command(scenarios: tuple[str, ...], output: Output, **options: Any) -> None:
    """Show the results of two or more SCENARIOs side by side, and every value that differs between them.

    --set applies to all scenarios.
    """
    from whatif.api.causes import differences

    output.write(differences(*scenarios, **options))
