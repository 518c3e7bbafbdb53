"""`whatif fit gpu`: outputs of benchmarks to the peak rates and bandwidths of a GPU."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.fit_options import PlatformTarget, datasheet_option, platform_options


@click.command("gpu")
@platform_options
@datasheet_option
def command(files: tuple[Path, ...], target: PlatformTarget, platform: str | None) -> None:
    """Fit the peak rates and bandwidths of a GPU to outputs of mixbench, BabelStream or gpuroofperf."""
    from whatif.api.fits import fit_gpu

    written = target.platform()
    target.finish(fit_gpu(files, platform=platform or written))
