"""`whatif tune transformer`: search the parallelism plan of a training scenario."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import overrides_of, scenario_options
from whatif.cli.output import Output, output_options


@click.command("transformer")
@scenario_options
@click.option("--keep", multiple=True, metavar="KEY", help="Key of `application.plan` to keep at its stated value.")
@click.option(
    "--top",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    help="Number of fastest plans, and of those on the Pareto front.",
)
@output_options(picture=False)
def command(
    scenario: str, overrides: tuple[str, ...], keep: tuple[str, ...], top: int, output: Output, **options: Any
) -> None:
    """Search the parallelism plan of a training SCENARIO for the fastest step that fits the memory.

    Prints the fastest plans and the Pareto front of time and memory. Exits with 4 if no plan fits.
    """
    from whatif.api.searches import tune_transformer

    output.write(tune_transformer(scenario, overrides=overrides_of(overrides), keep=keep, top=top, **options))
