"""`whatif tune hpl`: search the parameters of HPL for its best run on a platform."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from whatif.atomic import require_writable
from whatif.cli.echo import echo
from whatif.cli.hpl import machine_options
from whatif.cli.options import on_option, show_written, workers_option
from whatif.cli.output import Output, output_options
from whatif.cli.progress import runs_percentage
from whatif.cli.values import FilePath, Whole


@click.command("hpl")
@machine_options
@click.option("--ranks", type=Whole(1, 2**24), help="P x Q; default: as many as fit the platform.")
@click.option("--grid", "grids", multiple=True, metavar="PxQ", help="Grid to search; default: all grids of --ranks.")
@click.option("--memory-fraction", metavar="SHARE", default="80%", show_default=True,
              help="Share of the nodes' memory for the matrix.")  # fmt: skip
@click.option("--matrix-sizes", metavar="N,..", help="Default: the largest that fits the memory.")
@click.option("--block-sizes", metavar="NB,..", help="Default: 96 to 384; on GPUs: 256 to 1024.")
@click.option("--broadcasts", metavar="NAME,..", help="Such as ring or long_modified; default: all six.")
@click.option("--swaps", metavar="NAME,..", help="binary_exchange, spread_roll, mix; default: all.")
@click.option("--depths", metavar="DEPTH,..", default="0, 1", show_default=True, help="Panels of look-ahead.")
@click.option("--candidates", type=Whole(1, 100_000), default=200, show_default=True,
              help="Combinations to simulate, drawn at random if there are more.")  # fmt: skip
@click.option("--seed", type=Whole(0, 2**53), default=0, show_default=True, help="Random seed.")
@click.option("--log", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE",
              help="Keep every run in this file; the same search continues from it.")  # fmt: skip
@click.option("--write-input", type=FilePath(path_type=Path, dir_okay=False), metavar="HPL.dat",
              help="Write the best configuration as an HPL.dat.")  # fmt: skip
@on_option
@workers_option
@output_options(picture=False)
def command(write_input: Path | None, output: Output, **options: Any) -> None:
    """Search N, NB, P x Q, broadcast, swap and look-ahead of HPL for the highest rate that the memory allows.

    Candidates are simulated on small matrices first, the better ones on larger ones, the best at full size; then single
    parameters of the best are varied while the rate improves. Prints the ten best, also when interrupted.
    """
    from whatif.api.linpack import TuningInterrupted, TuningObserver, tune_hpl

    class Narrator(TuningObserver):
        """Writes remarks and the progress to stderr."""

        def note(self, text: str) -> None:
            echo(text, err=True)

        def simulating(self, count: int) -> AbstractContextManager[Any]:
            return runs_percentage(count)

    if write_input is not None:
        require_writable(write_input)
    try:
        tuning = tune_hpl(observer=Narrator(), **options)
    except TuningInterrupted as interruption:
        if interruption.tuning is not None:
            output.print_table(interruption.tuning.table())
            sys.stdout.flush()
        raise
    output.print_table(tuning.table())
    if write_input is not None:
        tuning.write_input(write_input)
        show_written(write_input)
