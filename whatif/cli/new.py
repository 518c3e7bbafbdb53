"""`whatif new`: a scenario to begin with, and a machine of parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.options import platform_option, platforms_option, show_notes, show_written
from whatif.cli.values import FilePath, Whole


@click.command("new")
@click.argument("name", metavar="NAME")
@platform_option
@click.option("--gpu", metavar="PART", help="GPU of a new machine: a part from `whatif list parts`.")
@click.option("--gpus-per-node", type=Whole(1), metavar="N", help="GPUs of a node.  [default: 1]")
@click.option(
    "--processor",
    metavar="PART",
    help="Processor of the machine.  [default: of a superchip its own, else generic]",
)
@click.option("--sockets-per-node", type=Whole(1), metavar="N", help="Processors of a node.  [default: 1]")
@click.option("--network", metavar="PART", help="Network between nodes.  [default: 100 Gbit/s]")
@click.option("--ports-per-node", type=Whole(1), metavar="N", help="Network ports of a node.  [default: 1]")
@click.option("--nodes", "node_count", type=Whole(1), metavar="N", help="Nodes of the machine.  [default: 1]")
@click.option("--phase", "phases", multiple=True, metavar="[NAME=]SOURCE",
              help="Phase: a motif such as stencil, SCENARIO:PHASE, a profile, a trace; repeat for more.")  # fmt: skip
@click.option(
    "--runs", type=FilePath(path_type=Path), metavar="FILE", help="CSV file of measured runs, of the stated machine."
)
@platforms_option
def command(name: str, **options: Any) -> None:
    """Write the scenario NAME.toml, and with parts its machine NAME_machine.toml; no file is overwritten.

    The machine is a --platform (default: summit), or parts: a GPU, a processor, a network. Motifs: allreduce, cg,
    gemm, stencil and others (docs/builder.md).
    """
    from whatif.api.building import new

    made = new(name, **options)
    show_notes(made.notes)
    made.write()
    for path in made.files:
        show_written(path)
