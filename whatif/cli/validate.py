"""`whatif validate`: the agreement of the models and simulators with independent results."""

from __future__ import annotations

import sys
from typing import Final

import click

from whatif.limits import TABLE_FORMATS

TOPICS: Final = ("schedules", "links", "counts", "transfers", "hpl", "power", "power_caps")


@click.command("validate", short_help="Compare with measurements and other simulators.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]..", type=click.Choice(TOPICS))
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
def command(topics: tuple[str, ...], file_format: str) -> None:
    """Print tables of our results beside those of others, all of them or those of each TOPIC.

    schedules: end times of LogGOPSim; links: flow-level times of SimGrid; counts: K of Table 5 of Choi et al.;
    transfers: the released sweeps of AHEAD; hpl: HPL beside SimGrid's emulation and real runs (two minutes);
    power: whole machines beside TOP500; power_caps: training under power limits (Zeus). The data are in the folder
    `validation` of the program.
    """
    from whatif.table_writers import TABLE_WRITERS
    from whatif.validation.tables import TABLES

    for topic in topics or TOPICS:
        table = TABLES[topic]()
        if not topics:
            click.echo(f"\n{topic}: {table.notes.get('title', '')}", err=True)
        TABLE_WRITERS[file_format](table, sys.stdout)
