"""`whatif measure`: the machine that it runs on, measured, as a platform file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.fit_options import format_option
from whatif.cli.options import show_notes, show_written
from whatif.cli.output import Output
from whatif.cli.progress import progress_line
from whatif.cli.values import FilePath


@click.command("measure")
@click.option("-o", "--output", type=FilePath(path_type=Path, dir_okay=False), metavar="PLATFORM.toml",
              help="Write this platform file; without it nothing is written.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Measure for 20 s instead of two minutes, with larger errors.")
@click.option("--blas", type=FilePath(dir_okay=False), metavar="FILE",
              help="BLAS that your programs use, such as libblas.so.3.  [default: that of scipy]")  # fmt: skip
@click.option("--launcher", metavar="COMMAND",
              help="Command that starts the measured MPI ranks.  [default: mpirun -n 2]")  # fmt: skip
@format_option
def command(output: Path | None, file_format: str, **options: Any) -> None:
    """Measure this machine: memory, caches, flop rates, the kernels of HPL, messages and collectives of MPI, GPUs.

    Run it on an idle machine. The values are written with their sources, dates and standard errors; values
    that cannot be measured are marked as assumed.
    """
    from whatif.api.measuring import measure

    with progress_line() as line:
        found = measure(output, progress=line, **options)
    Output(file_format).write(found)
    if output is None:
        show_notes(["nothing is written without -o PLATFORM.toml"])
    else:
        show_written(output)
