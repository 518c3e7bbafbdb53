"""`whatif import`: files of other programs as tables, or as parts of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from whatif.cli.fit_options import columns_option, files_argument, format_option, long_option, tell, where_option
from whatif.cli.lazy_group import LazyGroup
from whatif.cli.options import platforms_option
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS
from whatif.plugins import registered_verbs

if TYPE_CHECKING:
    from whatif.plotting.presentable import Presentable


@click.group(
    "import",
    cls=LazyGroup,
    verbs=registered_verbs("import"),
    short_help="Read files of measurements and profiles of other programs.",
)
def command() -> None:
    """Read files of other programs and print their tables, with one name for each quantity and units."""


@command.command("network", short_help="Message times: OSU, IMB, Netgauge, SimGrid, CSV.")
@files_argument
@format_option
@columns_option
@where_option
def network(files: tuple[Path, ...], file_format: str, columns: str | None, where: tuple[str, ...]) -> None:
    """Print the measurements of messages in files and folders, or the parameters of a SimGrid platform."""
    from whatif.api.measurements import import_network

    _print(import_network(files, columns=columns, where=where), file_format)


@command.command("gpu", short_help="Rates and bandwidths: mixbench, BabelStream, gpuroofperf.")
@files_argument
@format_option
def gpu(files: tuple[Path, ...], file_format: str) -> None:
    """Print the measured rates and bandwidths of GPUs; files of several tools one at a time."""
    from whatif.api.measurements import import_gpu

    _print(import_gpu(files), file_format)


@command.command("transfer", short_help="Host-device copies: nvprof profiles, summaries as CSV.")
@files_argument
@format_option
def transfer(files: tuple[Path, ...], file_format: str) -> None:
    """Print the copies between host and device of profiles."""
    from whatif.api.measurements import import_transfer

    _print(import_transfer(files), file_format)


@command.command("kernels", short_help="Kernel phases: Nsight Compute, gpuroofperf.")
@files_argument
@click.option("--format", "file_format", type=click.Choice(["toml", *TABLE_FORMATS]), default="toml", show_default=True)
def kernels(files: tuple[Path, ...], file_format: str) -> None:
    """Print the kernels of profiles as `[application.phases]` of a scenario, or as a table."""
    from whatif.api.measurements import import_kernels

    result = import_kernels(files)
    if file_format != "toml":
        _print(result, file_format)
        return
    tell(result.notes)
    click.echo(result.toml(), nl=False)


@command.command("runs", short_help="Measured runs: CSV, Extra-P, Caliper, Thicket, nvidia-smi.")
@files_argument
@format_option
@columns_option
@where_option
@long_option
def runs(
    files: tuple[Path, ...], file_format: str, columns: str | None, where: tuple[str, ...], long: str | None
) -> None:
    """Print the runs in files and folders, a row each, as `whatif fit` reads them; headings have units."""
    from whatif.api.measurements import import_runs

    _print(import_runs(files, columns=columns, where=where, long=long), file_format)


@command.command("trace", short_help="MPI traces: DUMPI, SimGrid, GOAL, OTF2.")
@click.argument("file", metavar="TRACE", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="SCENARIO.toml",
    help="Write the scenario that replays the trace.",
)
@click.option("--platform", metavar="NAME", help="Platform of the scenario; default: summit.")
@platforms_option
@click.option(
    "--format", "file_format", type=click.Choice(["toml", *TABLE_FORMATS]), default="table", show_default=True
)
def trace(
    file: Path, output: Path | None, platform: str | None, platform_dirs: tuple[Path, ...], file_format: str
) -> None:
    """Print the operations of each rank of a trace, or write a scenario that replays it."""
    from whatif.api.simulations import import_trace

    if output is None and file_format != "toml" and (platform is not None or platform_dirs):
        raise UsageError("--platform and --platform-dir: no effect on a table; add -o SCENARIO.toml or --format toml")
    found = import_trace(file, platform=platform, platform_dirs=platform_dirs)
    if output is not None:
        found.write(output)
        click.echo(f"written: {output}", err=True)
    elif file_format == "toml":
        click.echo(found.to_toml(), nl=False)
    else:
        _print(found, file_format)


def _print(result: Presentable, file_format: str) -> None:
    from whatif.table_writers import TABLE_WRITERS, worth_showing

    tell(result.notes)
    table = result.table()
    TABLE_WRITERS[file_format](worth_showing(table) if file_format == "table" else table, sys.stdout)
