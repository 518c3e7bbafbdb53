"""`whatif import`: files of other programs as tables, or as parts of a scenario."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from whatif.cli.lazy_group import LazyGroup
from whatif.cli.options import platforms_option
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS
from whatif.plugins import registered_verbs

if TYPE_CHECKING:
    from whatif.table import Table

Command = TypeVar("Command", bound=Callable[..., object])
files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE..", type=click.Path(path_type=Path, exists=True)
)
format_option = click.option(
    "--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True
)


@click.group(
    "import",
    cls=LazyGroup,
    verbs=registered_verbs("import"),
    short_help="Read files of measurements and profiles of other programs.",
)
def command() -> None:
    """Read files of other programs and print what they say, with one name for each quantity and units."""


@command.command("network", short_help="Message times: OSU, IMB, Netgauge, SimGrid, CSV.")
@files_argument
@format_option
@click.option("--columns", metavar="NAME=HEADING,..", help="What the columns of a CSV file are, as message_size=bytes.")
@click.option("--where", "where", multiple=True, metavar="HEADING=VALUE", help="Only rows of a CSV file with this.")
def network(files: tuple[Path, ...], file_format: str, columns: str | None, where: tuple[str, ...]) -> None:
    """Print the measurements of messages in files and folders, or the parameters of a SimGrid platform."""
    from whatif.cli.measurement_files import read_messages
    from whatif.importers.simgrid import is_platform, read_platform

    if len(files) == 1 and is_platform(files[0]):
        _show(read_platform(files[0]), file_format)
        return
    _show(read_messages(files, columns, where), file_format)


@command.command("gpu", short_help="Rates and bandwidths: mixbench, BabelStream, gpuroofperf.")
@files_argument
@format_option
def gpu(files: tuple[Path, ...], file_format: str) -> None:
    """Print the measured rates and bandwidths of GPUs; files of several tools one at a time."""
    from whatif.cli.measurement_files import in_folders
    from whatif.importers.gpu_benchmarks import read_gpu
    from whatif.importers.rows import joined

    _show(joined([read_gpu(path) for path in in_folders(files)]), file_format)


@command.command("transfer", short_help="Host-device copies: nvprof profiles, summaries as CSV.")
@files_argument
@format_option
def transfer(files: tuple[Path, ...], file_format: str) -> None:
    """Print the copies between host and device of profiles."""
    from whatif.cli.measurement_files import in_folders, read_transfers

    _show(read_transfers(in_folders(files)), file_format)


@command.command("kernels", short_help="Kernel phases: Nsight Compute, gpuroofperf.")
@files_argument
@click.option("--format", "file_format", type=click.Choice(["toml", *TABLE_FORMATS]), default="toml", show_default=True)
def kernels(files: tuple[Path, ...], file_format: str) -> None:
    """Print the kernels of profiles as `[application.phases]` of a scenario, or as a table."""
    from whatif.cli.measurement_files import in_folders
    from whatif.importers.gpu_benchmarks import read_kernels
    from whatif.importers.kernel_phases import kernels_toml
    from whatif.importers.rows import joined

    table = joined([read_kernels(path) for path in in_folders(files)])
    if file_format != "toml":
        _show(table, file_format)
        return
    _warn(table)
    click.echo(kernels_toml(table), nl=False)


@command.command("runs", short_help="Measured runs: CSV, Extra-P, Caliper, Thicket, nvidia-smi.")
@files_argument
@format_option
@click.option("--columns", metavar="NAME=HEADING,..", help="The columns to keep, as 'time=Wall time [ms],ranks=Ranks'.")
@click.option("--where", "where", multiple=True, metavar="HEADING=VALUE", help="Only rows with this.")
@click.option("--long", "long", metavar="METRIC=VALUE", help="The columns of a CSV file with a row for each metric.")
def runs(
    files: tuple[Path, ...], file_format: str, columns: str | None, where: tuple[str, ...], long: str | None
) -> None:
    """Print the runs in files and folders, one a row, as a fit takes them; units stand in the headings of the files."""
    from whatif.cli.measurement_files import read_run_files

    _show(read_run_files(files, columns, where, long), file_format)


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
        _show(found.table(), file_format)


def _show(table: Table, file_format: str) -> None:
    from whatif.table_writers import TABLE_WRITERS, worth_showing

    _warn(table)
    TABLE_WRITERS[file_format](worth_showing(table) if file_format == "table" else table, sys.stdout)


def _warn(table: Table) -> None:
    for line in table.notes.get("warnings", "").splitlines():
        click.echo(f"warning: {line}", err=True)
    known = (f"{name} {text}" for name, text in table.notes.items() if name != "warnings")
    click.echo("; ".join(known), err=True)
