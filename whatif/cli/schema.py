"""`whatif schema`: the JSON Schema that editors complete and check files with."""

from __future__ import annotations

import click


@click.command("schema", short_help="Print the JSON Schema of scenario or platform files.")
@click.argument("kind", type=click.Choice(["platform", "scenario"]))
def command(kind: str) -> None:
    """Print the JSON Schema of a platform or scenario file."""
    from whatif.schema.json_schema import schema_text

    click.echo(schema_text(kind), nl=False)
