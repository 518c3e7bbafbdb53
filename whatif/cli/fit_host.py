"""`whatif fit host`: outputs of STREAM or likwid-bench to the memory bandwidths of a socket and of one core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import PlatformTarget, datasheet_option, platform_options
from whatif.cli.values import OneOf, Whole
from whatif.vocabulary import CORE_BINDINGS


@click.command("host")
@platform_options
@datasheet_option
@click.option("--sockets", type=Whole(min=1), help="Sockets that were measured.  [default: those of a node]")
@click.option(
    "--binding", type=OneOf(CORE_BINDINGS), default="spread", show_default=True,
    help="Whether active cores were spread over all NUMA domains, or filled one socket or one domain after another.",
)  # fmt: skip
def command(files: tuple[Path, ...], target: PlatformTarget, **options: Any) -> None:
    """Fit the sustained memory bandwidths of a socket and of one core to triads by number of active cores.

    FILE.. are outputs of STREAM (compiled with OpenMP) or likwid-bench, with one or several runs each, or CSV files
    with columns cores and bandwidth [GB/s].
    """
    from whatif.api.fits import fit_host

    platform = options.pop("platform") or target.platform()
    target.finish(fit_host(files, platform=platform, **options))
