"""`whatif fit transfer`: measured copies to the parameters of a host-device link."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.fit_options import PlatformTarget, datasheet_option, platform_options


@click.command("transfer")
@platform_options
@datasheet_option
@click.option("--machine", metavar="NAME", help="Keep only the rows of this machine.")
def command(files: tuple[Path, ...], target: PlatformTarget, platform: str | None, machine: str | None) -> None:
    """Fit the latencies and the staging of a host-device link to measured copies and the link's data sheet.

    The data sheet is that of --platform, else of the platform that is written or extended.
    """
    from whatif.api.fits import fit_transfer

    written = target.platform()
    target.finish(fit_transfer(files, platform=platform or written, machine=machine))
