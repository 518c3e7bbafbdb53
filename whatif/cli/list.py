"""`whatif list`: shipped files, and the parameters of a scenario."""

from __future__ import annotations

import click

from whatif.cli.echo import echo
from whatif.cli.values import OneOf
from whatif.limits import LISTED


@click.command("list")
@click.argument("what", type=OneOf(LISTED))
@click.argument("scenario", required=False)
@click.option(
    "--platform", metavar="NAME|FILE", help="Parameters on this platform; without SCENARIO only those of the platform."
)
def command(what: str, scenario: str | None, platform: str | None) -> None:
    """List the shipped files, or every parameter of SCENARIO (jacobi2d) with value, use, grade and source.

    One line each, with tabs between the columns.
    """
    from whatif.api.scenarios import list_

    for row in list_(what, scenario, platform=platform).table().rows():
        echo("\t".join(row))
