"""`whatif tune transformer`: search the plan of a scenario of training or serving."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import scenario_options
from whatif.cli.output import Output, output_options
from whatif.cli.values import Whole


@click.command("transformer")
@scenario_options
@click.option("--keep", multiple=True, metavar="KEY", help="Key of `application.plan` to keep at its stated value.")
@click.option(
    "--top",
    type=Whole(1, 10_000),
    default=10,
    show_default=True,
    help="Number of fastest plans, and of those on the Pareto front.",
)
@click.option(
    "--worth", is_flag=True, help="Report the gain from more memory, bandwidth, links, ports and GPUs per domain."
)
@output_options(picture=False)
def command(scenario: str, output: Output, **options: Any) -> None:
    """Search the plan of SCENARIO, of training or serving, for the fastest one that fits the memory.

    Prints the fastest plans and the Pareto front: of time and memory in training, of throughput and time of a request
    in serving. Exits with 4 if no plan fits.
    """
    from whatif.api.searches import tune_transformer

    output.write(tune_transformer(scenario, **options))
