"""`whatif schema`: the JSON Schema that editors complete and check files with."""

from __future__ import annotations

import json

import click

from whatif.cli.echo import echo
from whatif.cli.values import OneOf


@click.command("schema")
@click.argument("kind", type=OneOf(["platform", "scenario", "study"]))
def command(kind: str) -> None:
    """Print the JSON Schema of platform, scenario or study files."""
    from whatif.api.scenarios import json_schema

    echo(json.dumps(json_schema(kind), indent=2, ensure_ascii=False, sort_keys=True))
