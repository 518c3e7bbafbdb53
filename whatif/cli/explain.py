"""`whatif explain`: the derivation of a result."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.echo import echo
from whatif.cli.options import overrides_of, scenario_options, show_notes


@click.command("explain")
@scenario_options
@click.argument("term", default="iteration_time")
@click.option("--depth", type=click.IntRange(0), metavar="N", help="Number of levels to show below TERM.")
def command(scenario: str, term: str, overrides: tuple[str, ...], **options: Any) -> None:
    """Explain TERM (iteration_time) of SCENARIO, a result, phase, term or parameter: equation, inputs, sources, share
    of the iteration."""
    from whatif.api.evaluation import explain

    explanation = explain(scenario, term, overrides=overrides_of(overrides), **options)
    for line in explanation.lines():
        echo(line)
    show_notes(explanation.notes)
    explanation.raise_if_infeasible()
