"""`whatif resolve`: a scenario as one document."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.echo import echo
from whatif.cli.options import scenario_options


@click.command("resolve")
@scenario_options
def command(scenario: str, **options: Any) -> None:
    """Print SCENARIO as one TOML document, with platform, `extends` and overrides merged in."""
    from whatif.api.scenarios import resolve

    echo(resolve(scenario, **options).to_toml(), nl=False)
