"""`whatif fit network`: message times to the parameters of one distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import PlatformTarget, columns_option, distance_option, platform_options, where_option
from whatif.cli.values import OneOf
from whatif.vocabulary import POINT_WEIGHTINGS


@click.command("network")
@platform_options
@distance_option
@click.option("--limits", metavar="SHORT,EAGER", help="Protocol limits, e.g. '128 B, 64 KiB'.  [default: found]")
@click.option(
    "--weighting", type=OneOf(POINT_WEIGHTINGS), help="Weights of the points.  "
    "[default: relative]",
)  # fmt: skip
@click.option("--test", metavar="NAME", help="Fit to the rows of this test, e.g. ping_pong or bandwidth.")
@click.option("--buffers", metavar="WHERE", help="Fit to host, device, `host to device` or `device to host` buffers.")
@columns_option
@where_option
def command(
    files: tuple[Path, ...], target: PlatformTarget, distance: str | None, weighting: str | None, **options: Any
) -> None:
    """Fit protocol limits and the postal, max-rate and injection parameters of one distance to message times."""
    from whatif.api.fits import fit_network

    target.platform()
    stated = {name: text for name, text in (("distance", distance), ("weighting", weighting)) if text is not None}
    target.finish(fit_network(files, **stated, **options))  # type: ignore[arg-type]
