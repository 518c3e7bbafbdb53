"""`whatif show`: roofline, messages, placement, domains and timeline of a scenario, as tables and pictures."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.lazy_group import LazyGroup
from whatif.cli.options import scenario_options
from whatif.cli.output import Output, output_options
from whatif.cli.values import Whole
from whatif.errors import UsageError

phase_option = click.option("--phase", metavar="NAME", help="Phase; by default the first one that sends messages.")


@click.group("show", cls=LazyGroup)
def command() -> None:
    """Show one side of a scenario as a table, on the terminal (--plot) or as a picture (-o FILE.svg, .png, .pdf)."""


@command.command("roofline")
@scenario_options
@click.option("--against", metavar="NAME", help="Platform on whose GPU the same kernels are shown, too.")
@output_options(plot="Draw the roofline.")
def roofline_command(output: Output, **options: Any) -> None:
    """Show the kernels of SCENARIO under the roofs of its GPU or cores: rate over operational intensity.

    A kernel has its own roof, as its mix of instructions allows (Konstantinidis and Cotronis 2017).
    """
    from whatif.api.pictures import roofline

    output.write(roofline(**options))


@command.command("messages")
@scenario_options
@phase_option
@click.option("--sent", is_flag=True, help="List the messages of the phase in place of the curves.")
@output_options(plot="Draw the curves with the messages of the phase.")
def messages_command(output: Output, sent: bool, **options: Any) -> None:
    """Show time against message size by model and distance, and the messages that SCENARIO sends."""
    from whatif.api.pictures import messages

    if sent and output.is_picture:
        raise UsageError("--sent: no effect on a picture, which has both")
    output.write(messages(sent=sent, **options))


@command.command("placement")
@scenario_options
@click.option("--phase", metavar="NAME", help="Halo phase; by default the first one.")
@click.option("--plane", type=Whole(0), metavar="N",
              help="Plane of a 3D grid, from 0 on; by default that of the busiest node.")  # fmt: skip
@output_options(plot="Draw the nodes as letters, the busiest one as capitals.")
def placement_command(output: Output, **options: Any) -> None:
    """Show which ranks of SCENARIO share a node and a socket, and what the messages of the busiest node do."""
    from whatif.api.pictures import placement

    output.write(placement(**options))


@command.command("domains")
@scenario_options
@phase_option
@click.option("--message", type=Whole(1), metavar="N",
              help="Message whose path is marked: a row of `messages --sent`; by default the farthest.")  # fmt: skip
@output_options(plot="Draw the domains as boxes.")
def domains_command(output: Output, **options: Any) -> None:
    """Show the domains of the machine, from the machine to the socket, their links, and what a message of SCENARIO
    crosses."""
    from whatif.api.pictures import domains

    output.write(domains(**options))


@command.command("timeline")
@scenario_options
@output_options()
def timeline_command(output: Output, **options: Any) -> None:
    """Show start and end of each phase of one iteration of SCENARIO, with stated overlaps in parallel."""
    from whatif.api.pictures import timeline

    output.write(timeline(**options))
