"""`whatif explain`: where a number comes from."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.options import open_question, scenario_options
from whatif.errors import ImpossiblePointError


@click.command("explain", short_help="Show the equation, inputs, units and sources behind a result.")
@scenario_options
@click.argument("term", default="iteration_time")
@click.option("--depth", type=click.IntRange(0), help="Show only so many levels below TERM.")
def command(
    scenario: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    term: str,
    depth: int | None,
) -> None:
    """Explain TERM (iteration_time), a result, phase, term or parameter of SCENARIO: equation, inputs, sources,
    share."""
    from whatif.core.derivation import explain, lines
    from whatif.core.evaluate import evaluate
    from whatif.core.fit_range import extrapolations

    program = open_question(scenario, platform, platform_dirs, overrides).program
    evaluation = evaluate(program)
    for line in lines(explain(evaluation, term), depth):
        click.echo(line)
    for line in extrapolations(evaluation):
        click.echo(f"warning: {line}", err=True)
    if evaluation.reasons():
        raise ImpossiblePointError(f"impossible: {'; '.join(evaluation.reasons())}")
