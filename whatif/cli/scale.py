"""`whatif scale`: strong and weak scaling, isoefficiency, memory and node-hours."""

from __future__ import annotations

from typing import Any

import click

from whatif.cli.options import scenario_options
from whatif.cli.output import Output, output_options
from whatif.cli.values import OneOf
from whatif.vocabulary import SCALING_VIEWS


@click.command("scale")
@scenario_options
@click.option("--nodes", metavar="SPEC", help="Numbers of nodes: `1 .. 4096` (doubling), `1, 2, 3`, or a range as in "
              "--sweep; by default the powers of 2 up to the platform's nodes.")  # fmt: skip
@click.option("--efficiency", default="50%", show_default=True, help="Lowest acceptable parallel efficiency.")
@click.option("--show", type=OneOf(SCALING_VIEWS), default="scaling",
              show_default=True,
              help="All points, the recommended numbers of nodes, or the growth of the grid.")  # fmt: skip
@output_options(plot="Draw the efficiencies, or the required growth of the grid.")
def command(output: Output, **options: Any) -> None:
    """Plan the scaling of SCENARIO on full nodes: strong scaling of its whole grid, weak scaling of a rank's cells.

    With T the time of an iteration on P ranks and P_b the fewest feasible ranks: strong scaling has the
    speedup T(P_b) / T(P) and the efficiency T(P_b) P_b / (T(P) P), weak scaling the efficiency T(P_b) / T(P). The
    isoefficiency (Grama, Gupta and Kumar 1993) is the growth of the cells W of the whole grid with P that keeps
    --efficiency. Memory is that of a device, and grows with the cells of its ranks. Node-hours are nodes times the
    total time of the job. Exits with 4 if no number of nodes is feasible.
    """
    from whatif.api.decisions import scale

    output.write(scale(**options))
