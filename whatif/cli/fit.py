"""`whatif fit`: measurements to the parameters of a platform, each with its standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whatif import vocabulary
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.files.platform_file import PlatformChange
    from whatif.fitting.fit_result import Fit
    from whatif.schema.platform_spec import PlatformSpec
    from whatif.table import Table

DISTANCES = tuple(distance.replace("_", "-") for distance in vocabulary.DISTANCES)


@dataclass(frozen=True)
class FitOutput:
    """What becomes of the parameters."""

    output: Path | None
    extends: str | None
    source: str | None
    file_format: str
    points: bool

    def platform(self) -> PlatformSpec | None:
        """The platform whose data sheet measurements are compared with; what cannot be written is told before a fit."""
        from whatif.files.platform_file import present
        from whatif.schema.load import load_platform, load_platform_document

        if self.output is not None:
            return load_platform_document(present(self.output, self.extends))[0]
        return load_platform(self.extends)[0] if self.extends is not None else None

    def source_of(self, files: Sequence[Path], *tables: Table) -> str:
        """Where fitted values come from, as a `[sources]` entry says it."""
        if self.source is not None:
            return self.source
        names = ", ".join(path.name for path in files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        tools = dict.fromkeys(_tool(table.notes) for table in tables)
        return f"fitted to {names} ({', '.join(tool for tool in tools if tool)})".replace(" ()", "")

    def finish(
        self, fits: Sequence[Fit], change: PlatformChange, points: Callable[[], Table], notes: Mapping[str, str]
    ) -> None:
        """Write the platform, then print the parameters, or the points."""
        from whatif.files.platform_file import kept_from_below, write_platform
        from whatif.fitting.fit_tables import parameter_table
        from whatif.table_writers import TABLE_WRITERS

        if self.output is not None:
            write_platform(self.output, change, self.extends)
            tell([f"written: {self.output}"])
            tell(kept_from_below(self.output, change), "warning: ")
        in_words = self.file_format in ("table", "markdown")
        shown = points() if self.points else parameter_table(fits, notes, in_words=in_words)
        TABLE_WRITERS[self.file_format](shown, sys.stdout)
        if self.output is None:
            tell(["nothing is written without -o PLATFORM.toml"])


def _tool(notes: Mapping[str, str]) -> str:
    words = (notes.get(key, "") for key in ("tool", "version", "date"))
    return " ".join(word for word in words if word)


def tell(lines: Iterable[str], lead: str = "") -> None:
    """Narrate, each line once."""
    for line in dict.fromkeys(lines):
        click.echo(f"{lead}{line}", err=True)


def fit_options(command: Callable[..., None]) -> Callable[..., None]:
    """FILE.. and the options that make a `FitOutput`."""

    @wraps(command)
    def with_target(**given: Any) -> None:
        names = ("output", "extends", "source", "file_format", "points")
        command(target=FitOutput(**{name: given.pop(name) for name in names}), **given)

    options = (
        click.argument("files", nargs=-1, required=True, metavar="FILE..",
                       type=click.Path(path_type=Path, exists=True)),
        click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="PLATFORM.toml",
                     help="Write the parameters into this platform file; without it nothing is written."),
        click.option("--extends", metavar="NAME", help="The platform that a new PLATFORM.toml extends."),
        click.option("--source", metavar="TEXT", help="What [sources] says, instead of file and tool."),
        click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True),
        click.option("--points", is_flag=True, help="Print the points with their residuals, not the parameters."),
    )  # fmt: skip
    decorated: Callable[..., None] = with_target
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@click.group("fit", short_help="Fit a platform to measurements, or a model to your own runs.")
def command() -> None:
    """Fit a platform to measurements, or a model to your own runs: print it with standard errors, and write it."""


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
    files: tuple[Path, ...], target: FitOutput, distance: str, limits: str | None, weighting: str, test: str | None,
    buffers: str | None, columns: str | None, where: tuple[str, ...],
) -> None:  # fmt: skip
    """Fit protocol limits and the postal, max-rate and injection parameters of one distance to message times."""
    from whatif.cli.measurement_files import read_messages
    from whatif.files.platform_file import network_change
    from whatif.fitting.fit_tables import limits_in_words, network_notes, point_table
    from whatif.fitting.message_parameters import fit_network

    target.platform()
    table = read_messages(files, columns, where)
    at = distance.replace("-", "_")
    fit = fit_network(table, distance=at, limits=_limits(limits), weighting=weighting, test=test, buffers=buffers)  # type: ignore[arg-type]
    tell([*table.notes.get("warnings", "").splitlines(), *fit.warnings], "warning: ")
    tell(limits_in_words(fit))
    change = network_change(fit, target.source_of(files, table))
    target.finish(fit.fits, change, lambda: point_table(fit), network_notes(fit))


def _limits(text: str | None) -> tuple[float, float] | None:
    from whatif.units import BYTE, UnitError, parse_quantity

    if text is None:
        return None
    try:
        sizes = [parse_quantity(part) for part in text.split(",")]
    except UnitError as error:
        raise UsageError(f"--limits {text}: {error}") from None
    unknown = any(size.value and size.dimension != BYTE for size in sizes)
    if unknown or len(sizes) != 2 or sizes[0].value > sizes[1].value:
        raise UsageError(f"--limits {text}: expected two sizes, the smaller one first, such as `128 B, 64 KiB`")
    return sizes[0].value, sizes[1].value


@command.command("gpu", short_help="Peaks and bandwidths: mixbench, BabelStream, gpuroofperf.")
@fit_options
def gpu(files: tuple[Path, ...], target: FitOutput) -> None:
    """Fit the peak rates and bandwidths of a GPU to outputs of mixbench, BabelStream or gpuroofperf."""
    from whatif.cli.measurement_files import in_folders
    from whatif.files.platform_file import change_of
    from whatif.fitting.fit_tables import gpu_points
    from whatif.fitting.gpu_rates import DIMENSIONS, fit_gpu
    from whatif.importers.gpu_benchmarks import read_gpu

    platform = target.platform()
    device = platform.node.gpu if platform is not None else None
    datasheet = (
        {parameter: float(getattr(device, parameter)) for parameter in DIMENSIONS} if device is not None else None
    )
    tables = [read_gpu(path) for path in in_folders(files)]
    fit = fit_gpu(tables, datasheet=datasheet, device=device.name if device is not None else "")
    tell(fit.warnings, "warning: ")
    change = change_of(fit.fits, target.source_of(files, *tables))
    target.finish(fit.fits, change, lambda: gpu_points(fit), {"device": fit.device})


@command.command("transfer", short_help="Host-device copies: nvprof profiles, summaries as CSV.")
@fit_options
@click.option("--machine", metavar="NAME", help="Only the rows of this machine, where a file has several.")
def transfer(files: tuple[Path, ...], target: FitOutput, machine: str | None) -> None:
    """Fit the latencies and the staging of a host-device link to measured copies, against the link's data sheet.

    The data sheet is that of the platform written, or of the one it extends.
    """
    from whatif.cli.measurement_files import in_folders, read_transfers
    from whatif.files.platform_file import change_of
    from whatif.profiles.link_fit import fit_transfer
    from whatif.table_writers import column_rows

    platform = target.platform()
    link = platform.node.host_link if platform is not None else None
    if platform is None or link is None:
        wanted = "name a platform with `[node.host_link]` by --extends"
        raise UsageError(f"the link that was measured is not known; {wanted}")
    memory = platform.node.host.memory_bandwidth
    table = read_transfers(in_folders(files))
    fit = fit_transfer(table, link, machine=machine, memory_bandwidth=memory)  # type: ignore[arg-type]
    tell([*table.notes.get("warnings", "").splitlines(), *fit.warnings], "warning: ")
    column_rows(fit.comparison, sys.stderr)
    change = change_of(fit.fits, target.source_of(files, table))
    target.finish(fit.fits, change, lambda: fit.points, {})


import whatif.cli.fit_grid  # noqa: E402
import whatif.cli.fit_kernel  # noqa: E402
import whatif.cli.fit_regression  # noqa: E402, F401
