"""`whatif resolve`: the merged document."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.options import open_question, scenario_options


@click.command("resolve", short_help="Print a scenario with its platform merged in.")
@scenario_options
def command(scenario: str, platform: str | None, platform_dirs: tuple[Path, ...], overrides: tuple[str, ...]) -> None:
    """Print SCENARIO as one TOML document: platform and `extends` merged in, every change applied."""
    from whatif.schema.parameters import fits_of_parts, sources_of
    from whatif.schema.toml_text import toml_text

    program = open_question(scenario, platform, platform_dirs, overrides).program
    document = dict(program.loaded.layers.merged)
    # Each file says where its own values come from; one document must say it of the values that were left.
    document["platform"] = {key: value for key, value in document["platform"].items() if key != "sources"}
    document["sources"] = sources_of(program.parameters.values())
    document["fits"] = document.get("fits", {}) | fits_of_parts(program.loaded.layers)
    click.echo(toml_text(document), nl=False)
