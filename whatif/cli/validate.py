"""`whatif validate`: the agreement of the models and simulators with independent results."""

from __future__ import annotations

import click

from whatif.cli.options import format_option, print_table
from whatif.limits import VALIDATION_TOPICS


@click.command("validate", short_help="Compare with measurements and other simulators.")
@click.argument("topics", nargs=-1, metavar="[TOPIC]..", type=click.Choice(VALIDATION_TOPICS))
@format_option()
def command(topics: tuple[str, ...], file_format: str) -> None:
    """Print tables that compare our results with others, of each TOPIC or of all of them.

    schedules: end times of LogGOPSim; links: flow-level times of SimGrid; counts: K of Table 5 of Choi et al.;
    transfers: the released sweeps of AHEAD; hpl: HPL, SimGrid's emulation and real runs (two minutes); power: whole
    machines of TOP500; power_caps: training under power limits (Zeus). The data are in the folder `validation` of the
    program.
    """
    from whatif.api.scenarios import validate

    for topic, table in validate(*topics):
        if not topics:
            click.echo(f"\n{topic}: {table.notes.get('title', '')}", err=True)
        print_table(table, file_format)
