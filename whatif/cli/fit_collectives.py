"""`whatif fit collectives`: times of collectives to messages of a library of GPUs, or to tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import PlatformTarget, columns_option, datasheet_option, platform_options, where_option
from whatif.cli.values import OneOf, Whole
from whatif.vocabulary import LIBRARIES


@click.command("collectives")
@platform_options
@datasheet_option
@click.option("--operation", metavar="NAME", help="Operation of outputs that do not state it, such as alltoall.")
@click.option("--ranks", type=Whole(min=1), help="Number of ranks of outputs that do not state it.")
@click.option("--ranks-per-node", type=Whole(min=1), help="Ranks of a node; tables hold for these only.")
@click.option("--library", type=OneOf(LIBRARIES), help="Library that was measured.  [default: by the tool]")
@click.option("--tables", is_flag=True, help='Write times as they are, for `algorithm = "measured"`.')
@columns_option
@where_option
def command(files: tuple[Path, ...], target: PlatformTarget, platform: str | None, **options: Any) -> None:
    """Fit starts and gaps of messages to times of GPU collectives, or keep times of MPI collectives as tables.

    Predictions at the largest number of ranks of each operation are checked with a fit to the smaller ones.
    """
    from whatif.api.fits import fit_collectives

    target.platform()
    target.finish(fit_collectives(files, platform=platform or target.machine, **options))
