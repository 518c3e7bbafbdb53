"""`whatif diff`: attribution of the difference between two scenarios, platforms or revisions."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import one_each, platforms_option, set_option
from whatif.cli.output import Output, output_options
from whatif.cli.values import OneOf, Whole
from whatif.vocabulary import GROUPINGS


@click.command("diff")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.option("--platform", "platforms", multiple=True, callback=one_each, metavar="NAME",
              help="Twice: the platforms of A and of B. Once: the platform of B, or of both scenarios.")  # fmt: skip
@platforms_option
@set_option
@click.option("--result", default="iteration_time", show_default=True, help="A result, or the name of a phase.")
@click.option("--by", type=OneOf(GROUPINGS), default="parameter", show_default=True,
              help="Treat each parameter, or each table of parameters, as one change.")  # fmt: skip
@click.option("--seed", type=Whole(0), default=0, show_default=True, help="Random seed.")
@output_options()
def command(output: Output, **options: Any) -> None:
    """Attribute the difference between A and B to the parameters that changed (Shapley values, independent of order).

    A and B are scenarios by path or name, or REV:path for a file in a git revision. Without B, A is compared with
    itself on another platform. --set applies to both. Exact for up to 14 changes with an effect; else a mean over
    random orders, with its standard error.
    """
    from whatif.api.causes import diff

    output.write(diff(**options))
