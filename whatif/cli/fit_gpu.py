"""`whatif fit gpu`: outputs of benchmarks to the peak rates and bandwidths of a GPU."""

from __future__ import annotations

from pathlib import Path

import click

from whatif.cli.fit_options import PlatformTarget, platform_options


@click.command("gpu", short_help="Peaks and bandwidths: mixbench, BabelStream, gpuroofperf.")
@platform_options
def command(files: tuple[Path, ...], target: PlatformTarget) -> None:
    """Fit the peak rates and bandwidths of a GPU to outputs of mixbench, BabelStream or gpuroofperf."""
    from whatif.api.fits import fit_gpu

    target.finish(fit_gpu(files, platform=target.platform()))
