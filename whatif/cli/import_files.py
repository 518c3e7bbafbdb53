"""`whatif import`: files of other programs as tables, or as parts of a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from whatif.api.file_kinds import import_verb, refusal
from whatif.cli.echo import echo
from whatif.cli.file_group import FileGroup
from whatif.cli.fit_options import columns_option, files_argument, long_option, where_option
from whatif.cli.options import platforms_option
from whatif.cli.output import Output, output_options
from whatif.cli.values import FilePath
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS
from whatif.paths import is_file, is_folder
from whatif.plugins import registered_verbs

_SHEETS: Final = {".csv", ".tsv"}


class ImportGroup(FileGroup):
    """Verbs by kind of file, which its content chooses where none is given."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command that the first argument names, or the content of the file that it names."""
        if self.get_command(ctx, args[0]) is None and (verb := import_verb(args[0])):
            echo(f"{args[0]}: read by `whatif import {verb}`", err=True)
            args = [verb, *args]
        return super().resolve_command(ctx, args)

    def unknown(self, ctx: click.Context, name: str) -> str:
        """Message for a word that is no verb, or a file that is not recognised."""
        path = Path(name)
        if is_file(path) and (reason := refusal(path)):
            return reason
        if is_file(path) and not _SHEETS.isdisjoint(path.suffixes):
            verbs = "`whatif import runs`, `import network` or `import transfer`"
            return f"{name}: a table may hold runs, messages or copies: {verbs} reads it"
        if is_file(path) or is_folder(path):
            return f"{name}: not recognised by its content; name its kind: {', '.join(self.list_commands(ctx))}"
        return f"{name}: no such file" if path.suffix or len(path.parts) > 1 else super().unknown(ctx, name)


@click.group(
    "import",
    cls=ImportGroup,
    verbs=registered_verbs("import"),
)
def command() -> None:
    """Read files of other programs and print their tables, with one name for each quantity and units.

    `whatif import FILE` chooses the command by the content of the file.
    """


@command.command("network", short_help="Message times: OSU, IMB, Netgauge, nccl-tests, SimGrid, CSV.")
@files_argument
@output_options(picture=False)
@columns_option
@where_option
def network(output: Output, **options: Any) -> None:
    """Print the measurements of messages in files and folders, or the parameters of a SimGrid platform."""
    from whatif.api.measurements import import_network

    output.write(import_network(**options))


@command.command("gpu", short_help="Rates and bandwidths: mixbench, BabelStream, gpuroofperf.")
@files_argument
@output_options(picture=False)
def gpu(files: tuple[Path, ...], output: Output) -> None:
    """Print the measured rates and bandwidths of GPUs from files of one tool."""
    from whatif.api.measurements import import_gpu

    output.write(import_gpu(files))


@command.command("transfer", short_help="Host-device copies: nvprof profiles, summaries as CSV.")
@files_argument
@output_options(picture=False)
def transfer(files: tuple[Path, ...], output: Output) -> None:
    """Print the copies between host and device of profiles."""
    from whatif.api.measurements import import_transfer

    output.write(import_transfer(files))


@command.command("kernels", short_help="Kernel phases: Nsight Compute, gpuroofperf.")
@files_argument
@click.option("--gpu", metavar="PART",
              help="GPU of the profile, such as v100-sxm2-16gb.  [default: by the name of its device]")  # fmt: skip
@output_options(picture=False, formats=("toml", *TABLE_FORMATS))
def kernels(files: tuple[Path, ...], gpu: str | None, output: Output) -> None:
    """Print the kernels of profiles as `[application.phases]` of a scenario, or as a table.

    Measured times in a profile are compared with the roofs of its GPU, and anchor the phases: times on
    other GPUs scale with the binding roofs.
    """
    from whatif.api.measurements import import_kernels

    output.write(import_kernels(files, gpu=gpu))


@command.command("runs", short_help="Measured runs: CSV, Extra-P, Caliper, Thicket, nvidia-smi.")
@files_argument
@output_options(picture=False)
@columns_option
@where_option
@long_option
def runs(output: Output, **options: Any) -> None:
    """Print the runs in files and folders, one per row, as `whatif fit` reads them; headings have units."""
    from whatif.api.measurements import import_runs

    output.write(import_runs(**options))


@command.command("logs", short_help="Runs of output: GROMACS, HPL, HPCG, LAMMPS, MLPerf, own.")
@files_argument
@click.option("--pattern", metavar="NAME|FILE.toml", help="Pattern of the output.  [default: by its content]")
@output_options(picture=False)
@columns_option
@where_option
def logs(output: Output, **options: Any) -> None:
    """Print the runs in the output of an application, one per row, as `whatif fit` reads them with -o RUNS.csv.

    Patterns: cloverleaf, gromacs, hpcg, hpl, lammps, mlperf, opensbli, or a file (docs/runs.md).
    """
    from whatif.api.measurements import import_logs

    output.write(import_logs(**options))


@command.command("model", short_help="Transformers: config.json of model hubs.")
@click.argument("file", metavar="CONFIG", type=FilePath(path_type=Path, exists=True, dir_okay=False))
@output_options(picture=False, formats=("toml", *TABLE_FORMATS))
def model(file: Path, output: Output) -> None:
    """Print the transformer of a configuration file as a part that `[application.transformer]` extends, or a table."""
    from whatif.api.measurements import import_model

    output.write(import_model(file))


@command.command("trace", short_help="MPI traces: DUMPI, SimGrid, GOAL, OTF2.")
@click.argument("file", metavar="TRACE", type=FilePath(path_type=Path, exists=True))
@click.option("--platform", metavar="NAME", help="Platform of the scenario.  [default: summit]")
@platforms_option
@output_options(picture=False, formats=(*TABLE_FORMATS, "toml"))
def trace(file: Path, output: Output, platform: str | None, platform_dirs: tuple[Path, ...]) -> None:
    """Print the operations of each rank of a trace, or write a scenario that replays it."""
    from whatif.api.simulations import import_trace

    if output.file_format != "toml" and (platform is not None or platform_dirs):
        raise UsageError("--platform and --platform-dir: no effect on a table; add -o SCENARIO.toml or --format toml")
    output.write(import_trace(file, platform=platform, platform_dirs=platform_dirs))
