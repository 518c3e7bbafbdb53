"""`whatif differences`: results and differing values of several scenarios side by side."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.options import one_each, parse_sets, platforms_option, set_option
from whatif.cli.output import Output, output_options


@click.command("differences")
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO..")
@click.option("--name", "names", multiple=True, metavar="TEXT", help="Heading of a scenario, once for each.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    callback=one_each("--platform"),
    metavar="NAME",
    help="Platform of a scenario, once for each.",
)
@platforms_option
@set_option
@output_options()
def command(
    scenarios: tuple[str, ...], names: tuple[str, ...], platforms: tuple[str, ...], platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...], output: Output,
) -> None:  # fmt: skip
    """Show the results of two or more SCENARIOs side by side, and every value that differs between them.

    --set applies to all scenarios.
    """
    from whatif.api.causes import differences

    found = differences(
        *scenarios, names=names, platforms=platforms, platform_dirs=platform_dirs, overrides=parse_sets(overrides)
    )
    output.write(found)
