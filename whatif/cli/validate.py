"""`whatif validate`: the agreement of the models and simulators with independent results."""

from __future__ import annotations

import click

from whatif.cli.output import Output, output_options
from whatif.errors import UsageError
from whatif.limits import VALIDATION_TOPICS


@click.command("validate")
@click.argument("topics", nargs=-1, metavar="[TOPIC]..", type=click.Choice(VALIDATION_TOPICS))
@output_options(picture=False)
def command(topics: tuple[str, ...], output: Output) -> None:
    """Print tables that compare our results with others, of each TOPIC or of all of them.

    schedules: end times of LogGOPSim; links: flow-level times of SimGrid; counts: K of Table 5 of Choi et al.;
    transfers: the released sweeps of AHEAD; hpl: HPL, SimGrid's emulation and real runs (two minutes); power: whole
    machines of TOP500; power_caps: training under power limits (Zeus). The data are in the folder `validation` of the
    program.
    """
    from whatif.api.scenarios import validate

    if output.path is not None and len(topics) != 1:
        raise UsageError("-o holds one table: name one TOPIC")
    for topic, table in validate(*topics):
        if not topics:
            click.echo(f"\n{topic}: {table.notes.get('title', '')}", err=True)
        output.print_table(table)
