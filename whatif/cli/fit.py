"""`whatif fit`: measurements to the parameters of a platform, each with its standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.export.platform_file import PlatformChange
    from whatif.fitting.network import NetworkFit
    from whatif.schema.platform import Platform
    from whatif.table import Table

Command = TypeVar("Command", bound=Callable[..., object])
DISTANCES = ("intra-socket", "inter-socket", "inter-node")
_FILES = click.Path(path_type=Path, exists=True)


def fit_options(command: Command) -> Command:
    """FILE.. and what becomes of the parameters."""
    options = (
        click.argument("files", nargs=-1, required=True, metavar="FILE..", type=_FILES),
        click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="PLATFORM.toml",
                     help="Write the parameters into this platform file; without it nothing is written."),
        click.option("--extends", metavar="NAME", help="The platform that a new PLATFORM.toml extends."),
        click.option("--source", metavar="TEXT", help="What [sources] says, instead of file and tool."),
        click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True),
        click.option("--points", is_flag=True, help="Print the points with their residuals, not the parameters."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group("fit", short_help="Fit the parameters of a platform to measurements.")
def command() -> None:
    """Fit the parameters of a platform to measurements, print them with their standard errors, and write them."""


@command.command("network", short_help="Message times: OSU, IMB, Netgauge, SimGrid, CSV.")
@fit_options
@click.option("--distance", type=click.Choice(DISTANCES), default="inter-node", show_default=True)
@click.option("--limits", metavar="SHORT,EAGER", help="Protocol limits, such as `128 B, 64 KiB`; without: found.")
@click.option("--weighting", type=click.Choice(["relative", "uniform", "sqrt_size"]), default="relative")
@click.option("--test", metavar="NAME", help="Fit to the rows of this test, such as ping_pong or bandwidth.")
@click.option("--buffers", metavar="WHERE", help="Fit to host, device, `host to device` or `device to host` buffers.")
@click.option("--columns", metavar="NAME=HEADING,..", help="What the columns of a CSV file are, as message_size=bytes.")
@click.option("--where", "where", multiple=True, metavar="HEADING=VALUE", help="Only rows of a CSV file with this.")
def network(
    files: tuple[Path, ...], output: Path | None, extends: str | None, source: str | None, file_format: str,
    points: bool,
    distance: str, limits: str | None, weighting: str, test: str | None, buffers: str | None,
    columns: str | None, where: tuple[str, ...],
) -> None:  # fmt: skip
    """Fit protocol limits and the postal, max-rate and injection parameters of one distance to message times."""
    from whatif.cli.measured import read_messages
    from whatif.export.fit_tables import point_table
    from whatif.export.platform_file import network_change
    from whatif.fitting.network import fit_network

    table = read_messages(files, columns, where)
    at = distance.replace("-", "_")
    fit = fit_network(table, distance=at, limits=_limits(limits), weighting=weighting, test=test, buffers=buffers)  # type: ignore[arg-type]
    tell([*table.notes.get("warnings", "").splitlines(), *fit.warnings], "warning: ")
    tell(_in_words(fit))
    _finish(
        fit.fits, network_change(fit, source or source_of(files, table)), point_table(fit) if points else None,
        file_format, output, extends,
    )  # fmt: skip


def _limits(text: str | None) -> tuple[float, float] | None:
    from whatif.units import BYTE, UnitError, parse_quantity

    if text is None:
        return None
    try:
        sizes = [parse_quantity(part) for part in text.split(",")]
    except UnitError as error:
        raise UsageError(f"--limits {text}: {error}") from None
    if (
        len(sizes) != 2
        or any(size.value and size.dimension != BYTE for size in sizes)
        or sizes[0].value > sizes[1].value
    ):
        raise UsageError(f"--limits {text}: expected two sizes, the smaller one first, such as `128 B, 64 KiB`")
    return sizes[0].value, sizes[1].value


def _in_words(fit: NetworkFit) -> list[str]:
    """What the parameters alone do not tell: where the limits lie, and which model of sharing predicts best."""
    from whatif.export.fit_tables import limits_in_words

    shared = ", ".join(f"{model} {error:.1%}" for model, error in fit.held_out_errors.items())
    told = [f"error at points left out: {shared}; recommended is {fit.recommendation}"] if shared else []
    return [*limits_in_words(fit), *told]


@command.command("gpu", short_help="Peaks and bandwidths: mixbench, BabelStream, gpuroofperf.")
@fit_options
def gpu(
    files: tuple[Path, ...], output: Path | None, extends: str | None, source: str | None, file_format: str,
    points: bool,
) -> None:  # fmt: skip
    """Fit the peak rates and bandwidths of a GPU to outputs of mixbench, BabelStream, STREAM or gpuroofperf."""
    from whatif.cli.measured import in_folders
    from whatif.export.fit_tables import gpu_points
    from whatif.export.platform_file import change_of
    from whatif.fitting.gpu import DIMENSIONS, fit_gpu
    from whatif.importers.gpu import read_gpu

    tables = [read_gpu(path) for path in in_folders(files)]
    device = _stated(output, extends)
    gpu = device.node.gpu if device is not None else None
    datasheet = {leaf: float(getattr(gpu, leaf)) for leaf in DIMENSIONS} if gpu is not None else None
    fit = fit_gpu(tables, datasheet=datasheet, device=gpu.name if gpu is not None else "")
    tell(fit.warnings, "warning: ")
    change = change_of(fit.fits, source or source_of(files, *tables))
    _finish(fit.fits, change, gpu_points(fit) if points else None, file_format, output, extends)


@command.command("transfer", short_help="Host-device copies: nvprof profiles, summaries as CSV.")
@fit_options
@click.option("--machine", metavar="NAME", help="Only the rows of this machine, where a file has several.")
def transfer(
    files: tuple[Path, ...], output: Path | None, extends: str | None, source: str | None, file_format: str,
    points: bool,
    machine: str | None,
) -> None:  # fmt: skip
    """Fit the latencies and the staging of a host-device link to measured copies, against the link's data sheet.

    The data sheet is that of the platform written, or of the one it extends.
    """
    from whatif.cli.measured import in_folders, read_transfers
    from whatif.export.platform_file import change_of
    from whatif.export.tables import column_rows
    from whatif.fitting.transfer import fit_transfer

    platform = _stated(output, extends)
    link = platform.node.host_link if platform is not None else None
    if platform is None or link is None:
        wanted = "name a platform with `[node.host_link]` by --extends"
        raise UsageError(f"the link that was measured is not known; {wanted}")
    memory = platform.node.host.memory_bandwidth
    table = read_transfers(in_folders(files))
    fit = fit_transfer(table, link, machine=machine, memory_bandwidth=memory)  # type: ignore[arg-type]
    tell([*table.notes.get("warnings", "").splitlines(), *fit.warnings], "warning: ")
    column_rows(fit.comparison, sys.stderr)
    change = change_of(fit.fits, source or source_of(files, table))
    _finish(fit.fits, change, fit.points if points else None, file_format, output, extends)


def _stated(output: Path | None, extends: str | None) -> Platform | None:
    """The platform whose data sheet measurements are compared with."""
    from whatif.schema.load import load_platform
    from whatif.schema.shipped import is_file

    if output is not None and is_file(output):
        return load_platform(output)[0]
    return load_platform(extends)[0] if extends is not None else None


def source_of(files: Sequence[Path], *tables: Table) -> str:
    """Where fitted values come from, as a `[sources]` entry says it."""
    names = ", ".join(path.name for path in files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    tools = dict.fromkeys(_tool(table.notes) for table in tables)
    return f"fitted to {names} ({', '.join(tool for tool in tools if tool)})".replace(" ()", "")


def _tool(notes: Mapping[str, str]) -> str:
    words = (notes.get(key, "") for key in ("tool", "version", "date"))
    return " ".join(word for word in words if word)


def tell(lines: Iterable[str], lead: str = "") -> None:
    """Narrate, each line once."""
    for line in dict.fromkeys(lines):
        click.echo(f"{lead}{line}", err=True)


def _finish(
    fits: Sequence[object], change: PlatformChange, points: Table | None, file_format: str,
    output: Path | None, extends: str | None,
) -> None:  # fmt: skip
    """Write the platform, then print the parameters, or the points."""
    from whatif.export.fit_tables import parameter_table
    from whatif.export.platform_file import kept_from_below, write_platform
    from whatif.export.tables import TABLE_WRITERS

    if output is not None:
        write_platform(output, change, extends)
        tell([f"written: {output}"])
        tell(kept_from_below(output, change), "warning: ")
    shown = points if points is not None else parameter_table(fits, in_words=file_format in ("table", "markdown"))  # type: ignore[arg-type]
    TABLE_WRITERS[file_format](shown, sys.stdout)
    if output is None:
        tell(["nothing is written without -o PLATFORM.toml"])
