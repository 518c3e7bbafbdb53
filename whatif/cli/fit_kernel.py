"""`whatif fit kernel`: calibrations to the costs of HPL's kernels and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import PlatformTarget, columns_option, distance_option, platform_options, where_option
from whatif.cli.values import Whole


@click.command("kernel")
@platform_options
@click.option("--kernel", metavar="NAME", help="The kernel of files that do not name it, or the only one to fit.")
@click.option("--model", metavar="MODEL", help="M-0, M-1, M-2 or M', or M_H-.. for each processor.  [default: by BIC]")
@click.option("--noise", metavar="NOISE", help="N-0, N-1 or N-2 of a kernel, N-0 or N' of messages.  [default: by BIC]")
@distance_option
@columns_option
@where_option
@click.option("--without", multiple=True, metavar="NODE", help="Leave this node out.")
@click.option("--average", multiple=True, metavar="NODE", help="Replace this node by the mean of the others.")
@click.option(
    "--synthetic", type=Whole(1), metavar="NODES", help="Draw a machine of NODES nodes from the calibrated ones."
)
@click.option("--seed", type=Whole(0), help="Random seed.  [default: 0]")
def command(files: tuple[Path, ...], target: PlatformTarget, **options: Any) -> None:
    """Fit the costs of HPL's kernels, or the costs of messages in pieces, to calibrations.

    FILES are CSV: calls of one kernel (`time`, `m`, `n`, `k` or `size`, perhaps `node`, `cpu`, `run`), coefficients of
    dgemm for each processor (`constant`, `mnk`), or messages (`test`, `message_size`, `time`).
    """
    from whatif.api.fits import fit_kernel

    target.platform()
    target.finish(fit_kernel(files, **options))
