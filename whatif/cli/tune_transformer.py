"""`whatif tune transformer`: search the plan of a training."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import overrides_of, scenario_options
from whatif.cli.output import Output, output_options


@click.command("transformer")
@scenario_options
@click.option("--keep", multiple=True, metavar="KEY", help="Key of `application.plan` that stays as stated.")
@click.option("--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Fastest plans to print.")
@output_options(picture=False)
def command(
    scenario: str, overrides: tuple[str, ...], keep: tuple[str, ...], top: int, output: Output, **options: Any
) -> None:
    """Search the plan of SCENARIO, a training, for the fastest step that fits: sizes, sharding, recomputation.

    Prints the fastest plans, and those that no other one beats in time and memory. Exits with 4 if none fits.
    """
    from whatif.api.searches import tune_transformer

    output.write(tune_transformer(scenario, overrides=overrides_of(overrides), keep=keep, top=top, **options))
