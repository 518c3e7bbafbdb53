"""`whatif hpl`: every run of an HPL.dat on a platform, in HPL's own table."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from whatif.cli.echo import echo
from whatif.cli.options import Command, platforms_option, set_option, show_notes, with_options
from whatif.cli.output import Output, output_options
from whatif.cli.progress import runs_percentage
from whatif.cli.values import FilePath, OneOf, Whole
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.api.linpack import HPLPredictions
    from whatif.linpack.prediction_tables import HPLPrediction


def machine_options(command: Command) -> Command:
    """Add the platform, and the choices of a run that HPL.dat does not state."""
    options = (
        click.option("--platform", required=True, metavar="NAME", help="Platform: a name, or a file."),
        platforms_option,
        set_option,
        click.option(
            "--ranks-per-node",
            type=Whole(1, 2**24),
            help="Ranks on a node; default: one for each GPU or core.",
        ),
        click.option(
            "--binding",
            type=OneOf(["by_core", "by_socket"]),
            default="by_core",
            show_default=True,
            help="Ranks of a node fill one socket after the other, or alternate between the sockets.",
        ),
        click.option(
            "--panel-on",
            type=OneOf(["device", "host"]),
            default="device",
            show_default=True,
            help="Where panels are factored: with the matrix, or on the host of the GPUs, as in rocHPL.",
        ),
        click.option("--hosts", default="", metavar="NODE,..|FILE", help="Nodes to use, in this order."),
        click.option("--without-slowest", type=Whole(0), default=0, metavar="K", help="Leave out the K slowest nodes."),
        click.option("--cluster", type=Whole(1), metavar="NODES", help="Draw a machine of NODES nodes."),
        click.option(
            "--spread",
            default="",
            metavar="LEVEL=SHARE,..",
            help="Standard deviations of --cluster by node, processor, day and call, such as node=2%,call=3%.",
        ),
        click.option("--cluster-seed", type=Whole(0, 2**53), help="Random seed of --cluster; default: 0."),
        click.option(
            "--without-uplinks",
            type=Whole(0),
            default=0,
            metavar="K",
            help="Remove K uplinks of every lowest-level switch of a fat tree.",
        ),
    )
    return with_options(command, options)


@click.command("hpl")
@click.argument("input_file", metavar="HPL.dat", type=FilePath(path_type=Path, exists=True, dir_okay=False))
@machine_options
@click.option("--noise", is_flag=True, help="Draw the time of every kernel call, as the platform states.")
@click.option("--network-noise", is_flag=True, help="Draw the time of every message from its modes.")
@click.option("--replicates", type=Whole(1, 10_000), help="Runs of each combination; default with noise: 10.")
@click.option("--seed", type=Whole(0, 2**53), help="Random seed of the first replicate; default: 0.")
@click.option(
    "--measured",
    multiple=True,
    type=FilePath(path_type=Path, exists=True, dir_okay=False),
    metavar="HPL.out",
    help="Compare the predictions with the runs of an output of HPL.",
)
@click.option("--components", is_flag=True, help="Add the parts of the time, as HPL's detailed timing.")
@output_options(picture=False, formats=("hpl", *TABLE_FORMATS, "toml"))
@click.option("--save", type=FilePath(path_type=Path, dir_okay=False), metavar="FILE.toml",
              help="Write the first combination as a scenario instead of simulating.")  # fmt: skip
@click.option("--max-points", type=Whole(1, 1_000_000), default=10_000, show_default=True,
              help="Most combinations that are simulated.")  # fmt: skip
def command(input_file: Path, output: Output, save: Path | None, **options: Any) -> None:
    """Simulate every combination of HPL.dat on a platform, in HPL's order, and print HPL's own table.

    Each line appears as soon as it is known. With noise or replicates the time is the mean, and a further run is in the
    interval with 90 % probability. With --measured the errors follow; -o PLATFORM.toml then writes the platform with a
    correction of its kernels learnt from these runs.
    """
    from whatif.api.linpack import hpl

    if save is not None:
        _require_no_results(output, options)
    result = hpl(input_file, **options)
    if save is None:
        _show(result, output)
    else:
        result.scenario.write(save)
        words = ["whatif", "open", str(save), *_platform_dirs(result, save)]
        echo(f"written: {save}; explore it with `{shlex.join(words)}`", err=True)


def _require_no_results(output: Output, options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for options of results, which `--save` does not compute."""
    unused = [f"--{name}" for name in ("replicates", "measured", "components") if options[name]]
    unused += [] if output == Output("hpl") else ["-o and --format"]
    if unused:
        raise UsageError(f"{unused[0]}: no effect with --save")


def _show(result: HPLPredictions, output: Output) -> None:
    notes = result.notes
    show_notes(notes)
    with runs_percentage(result.run_count) as progress:
        _write(result, result.predictions(progress), output)
    show_notes(result.notes[len(notes) :])


def _write(result: HPLPredictions, predictions: Iterable[HPLPrediction], output: Output) -> None:
    if output.file_format == "toml":
        output.write_toml(result)
        if output.path is not None:
            words = ["--platform", str(output.path), *_platform_dirs(result, output.path)]
            echo(f"use it with `{shlex.join(words)}`", err=True)
        return
    with output.opened() as out:
        if output.file_format == "hpl":
            for line in result.lines(predictions):
                echo(line, file=out)
        else:
            _write_table(result, predictions, output, out)


def _platform_dirs(result: HPLPredictions, path: Path) -> list[str]:
    """Options that name the folders of a platform for a file that refers to it, except the folder of the file."""
    elsewhere = [folder for folder in result.scenario.folders if folder.resolve() != path.resolve().parent]
    return [word for folder in elsewhere for word in ("--platform-dir", str(folder))]


def _write_table(result: HPLPredictions, predictions: Iterable[HPLPrediction], output: Output, out: TextIO) -> None:
    """Write rows as soon as they are known; JSON and HTML, which are one document, at the end or when interrupted."""
    from whatif.table_writers import column_rows, csv_rows, markdown_rows

    if output.file_format in {"json", "html"}:
        found: list[HPLPrediction] = []
        try:
            for item in predictions:
                found.append(item)  # noqa: PERF402 - kept when the iteration is interrupted
        finally:
            if found:
                output.write_table(result.table_of(found), out)
        return
    widths: list[int] = []
    for number, item in enumerate(predictions):
        if output.file_format == "table":
            widths = column_rows(result.table_of([item]), out, widths)
        else:
            write = csv_rows if output.file_format == "csv" else markdown_rows
            write(result.table_of([item]), out, heading=number == 0)
        out.flush()
