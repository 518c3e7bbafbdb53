"""`whatif resolve`: the merged document."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.options import open_question, scenario_options


@click.command("resolve", short_help="Print a scenario with its platform merged in.")
@scenario_options
def command(scenario: str, platform: str | None, folders: tuple[Path, ...], sets: tuple[str, ...]) -> None:
    """Print SCENARIO as one TOML document: platform and `extends` merged in, every change applied."""
    from whatif.export.toml import toml_text

    question = open_question(scenario, platform, folders, sets)
    click.echo(toml_text(question.program.loaded.layers.merged), nl=False)
