"""`whatif fit`: measurements to the parameters of a platform, or runs to a model of an application."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from whatif.cli.echo import echo
from whatif.cli.file_group import FileGroup
from whatif.cli.fit_options import (
    ModelTarget,
    PlatformTarget,
    columns_option,
    datasheet_option,
    distance_option,
    files_argument,
    format_option,
    long_option,
    model_options,
    platform_options,
    where_option,
)
from whatif.cli.options import show_notes
from whatif.cli.output import Output, output_options
from whatif.cli.values import FilePath, OneOf, Whole
from whatif.errors import UsageError
from whatif.limits import REGRESSION_TABLES, SCALING_TABLES
from whatif.vocabulary import CORE_BINDINGS, GRID_WEIGHTINGS, INTERVAL_KINDS, LIBRARIES, POINT_WEIGHTINGS

_KINDS: Final = {"collectives": "network", "grid": "runs", "regression": "runs", "scaling": "runs"}
level_option = click.option("--level", help="Confidence level of the intervals.  [default: 95%]")


@click.group("fit", cls=FileGroup, kinds=_KINDS)
def command() -> None:
    """Fit a platform to measurements, or a model to your own runs: print it with standard errors, and write it."""


@command.command("collectives", short_help="Times of collectives: nccl-tests, rccl-tests, OSU, IMB, CSV.")
@platform_options
@datasheet_option
@click.option("--operation", metavar="NAME", help="Operation of outputs that do not state it, such as alltoall.")
@click.option("--ranks", type=Whole(min=1), help="Number of ranks of outputs that do not state it.")
@click.option("--ranks-per-node", type=Whole(min=1), help="Ranks of a node; tables hold for these only.")
@click.option("--library", type=OneOf(LIBRARIES), help="Library that was measured.  [default: by the tool]")
@click.option("--tables", is_flag=True, help='Write times as they are, for `algorithm = "measured"`.')
@columns_option
@where_option
def collectives(files: tuple[Path, ...], target: PlatformTarget, platform: str | None, **options: Any) -> None:
    """Fit starts and gaps of messages to times of GPU collectives, or keep times of MPI collectives as tables.

    Predictions at the largest number of ranks of each operation are checked with a fit to the smaller ones.
    """
    from whatif.api.fits import fit_collectives

    target.platform()
    target.finish(fit_collectives(files, platform=platform or target.machine, **options))


@command.command("gpu", short_help="Peaks and bandwidths: mixbench, BabelStream, gpuroofperf.")
@platform_options
@datasheet_option
def gpu(files: tuple[Path, ...], target: PlatformTarget, platform: str | None) -> None:
    """Fit the peak rates and bandwidths of a GPU to outputs of mixbench, BabelStream or gpuroofperf."""
    from whatif.api.fits import fit_gpu

    written = target.platform()
    target.finish(fit_gpu(files, platform=platform or written))


@command.command("grid", short_help="Structured grids: runs with computation, communication and total times.")
@model_options
@click.option("--reduction", is_flag=True, help="Fit K_r too, of a global reduction in every iteration.")
@click.option(
    "--weighting",
    type=OneOf(GRID_WEIGHTINGS),
    default="relative",
    show_default=True,
    help="Minimise relative residuals, or the absolute ones of Eq. 5.",
)
@level_option
@click.option("--bootstrap", type=Whole(10, 100_000), metavar="N", help="Take errors from N resampled fits.")
@click.option("--seed", type=Whole(0), help="Random seed of the bootstrap.  [default: 0]")
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=VALUE,..",
    help="Predict this run, e.g. cells=272e6,processes=768; other columns follow from the runs.",
)
@click.option("--next", "advice", is_flag=True, help="Find the run that would narrow the target's interval most.")
@click.option("--vary", multiple=True, metavar="NAME=V,V,..", help="Runs that --next may choose from.")
@click.option("--points", is_flag=True, help="Print the runs with fitted and held-out times, not the parameters.")
@click.option("--case", metavar="NAME", help="Case whose K_w is written.")
@format_option
def grid(files: tuple[Path, ...], target: ModelTarget, case: str | None, file_format: str, **options: Any) -> None:
    """Fit K_w, K_b and the overheads of a structured-grid program (Sharif et al.) to its runs.

    FILES have the columns cells, processes, iterations and total_time (or C, P, I, T_t), and optionally halo_cells (H),
    computation_time (T_w), communication_time (T_c), case, ranks_per_node and inter_node_halo_cells.
    """
    from whatif.api.run_fits import fit_grid

    if case is not None and target.output is None:
        raise UsageError("--case needs -o MODEL.toml: it chooses the K_w that is written")
    result = fit_grid(files, **options)
    show_notes(result.notes)
    target.write(result, case=case)
    table = result.table(in_words=file_format in ("table", "markdown"))
    if len(table):
        Output(file_format).print_table(table)
    if target.output is None and not (options["targets"] or options["points"]):
        show_notes(["nothing is written without -o MODEL.toml"])


@command.command("host", short_help="Memory bandwidths of sockets: STREAM, likwid-bench, CSV.")
@platform_options
@datasheet_option
@click.option("--sockets", type=Whole(min=1), help="Sockets that were measured.  [default: those of a node]")
@click.option(
    "--binding", type=OneOf(CORE_BINDINGS), default="spread", show_default=True,
    help="Whether active cores were spread over all NUMA domains, or filled one socket or one domain after another.",
)  # fmt: skip
def host(files: tuple[Path, ...], target: PlatformTarget, **options: Any) -> None:
    """Fit the sustained memory bandwidths of a socket and of one core to triads by number of active cores.

    FILE.. are outputs of STREAM (compiled with OpenMP) or likwid-bench, with one or several runs each, or CSV files
    with columns cores and bandwidth [GB/s].
    """
    from whatif.api.fits import fit_host

    platform = options.pop("platform") or target.platform()
    target.finish(fit_host(files, platform=platform, **options))


@command.command("kernel", short_help="Kernels and messages of HPL: calibrations as CSV.")
@platform_options
@click.option("--kernel", metavar="NAME", help="The kernel of files that do not name it, or the only one to fit.")
@click.option("--model", metavar="MODEL", help="M-0, M-1, M-2 or M', or M_H-.. for each processor.  [default: by BIC]")
@click.option("--noise", metavar="NOISE", help="N-0, N-1 or N-2 of a kernel, N-0 or N' of messages.  [default: by BIC]")
@distance_option
@columns_option
@where_option
@click.option("--without", multiple=True, metavar="NODE", help="Leave this node out.")
@click.option("--average", multiple=True, metavar="NODE", help="Replace this node by the mean of the others.")
@click.option(
    "--synthetic", type=Whole(1), metavar="NODES", help="Draw a machine of NODES nodes from the calibrated ones."
)
@click.option("--seed", type=Whole(0), help="Random seed.  [default: 0]")
def kernel(files: tuple[Path, ...], target: PlatformTarget, **options: Any) -> None:
    """Fit the costs of HPL's kernels, or the costs of messages in pieces, to calibrations.

    FILES are CSV: calls of one kernel (`time`, `m`, `n`, `k` or `size`, perhaps `node`, `cpu`, `run`), coefficients of
    dgemm for each processor (`constant`, `mnk`), or messages (`test`, `message_size`, `time`).
    """
    from whatif.api.fits import fit_kernel

    target.platform()
    target.finish(fit_kernel(files, **options))


@command.command("network", short_help="Message times: OSU, IMB, Netgauge, SimGrid, CSV.")
@platform_options
@distance_option
@click.option("--limits", metavar="SHORT,EAGER", help="Protocol limits, e.g. '128 B, 64 KiB'.  [default: found]")
@click.option(
    "--weighting", type=OneOf(POINT_WEIGHTINGS), help="Weights of the points.  "
    "[default: relative]",
)  # fmt: skip
@click.option("--test", metavar="NAME", help="Fit to the rows of this test, e.g. ping_pong or bandwidth.")
@click.option("--buffers", metavar="WHERE", help="Fit to host, device, `host to device` or `device to host` buffers.")
@columns_option
@where_option
def network(
    files: tuple[Path, ...], target: PlatformTarget, distance: str | None, weighting: str | None, **options: Any
) -> None:
    """Fit protocol limits and the postal, max-rate and injection parameters of one distance to message times."""
    from whatif.api.fits import fit_network

    target.platform()
    stated = {name: text for name, text in (("distance", distance), ("weighting", weighting)) if text is not None}
    target.finish(fit_network(files, **stated, **options))  # type: ignore[arg-type]


@command.command("regression", short_help="Any measured runs: a formula to coefficients with intervals.")
@model_options
@click.option("--formula", metavar="'TIME ~ TERMS'", help="Model as in R, e.g. `time ~ (x1 + I(x1**2)) * x2`.")
@click.option("--search", metavar="'TIME ~ NAMES'", help="Search the best terms of these columns, e.g. `time ~ p + n`.")
@click.option("--compare", multiple=True, metavar="FORMULA", help="Another model of the same runs, compared by ANOVA.")
@click.option("--folds", type=Whole(1), metavar="K", help="Cross-validate with K folds.")
@click.option("--repeat", type=Whole(1, 1000), help="Number of cross-validations.  [default: 1]")
@click.option("--held-out", type=FilePath(path_type=Path, exists=True), metavar="FILE", help="Runs to predict.")
@click.option("--hold-out", type=Whole(1), metavar="N", help="Predict N randomly drawn runs from the others.")
@level_option
@click.option(
    "--interval",
    type=OneOf(INTERVAL_KINDS),
    help="Interval of a single run, or of the mean of many.  [default: prediction]",
)
@click.option(
    "--at", multiple=True, metavar="NAME=VALUE,..", help="Predict at these values, e.g. 'nodes=512,size=8 GB'."
)
@click.option("--second-opinion", is_flag=True, help="Compare with an additive model of smooth curves.")
@click.option("--seed", type=Whole(0, 2**31), help="Random seed of folds and held-out runs.  [default: 0]")
@click.option("--show", type=OneOf(REGRESSION_TABLES), help="Table to print.  [default: by the other options]")
@format_option
def regression(files: tuple[Path, ...], target: ModelTarget, file_format: str, **options: Any) -> None:
    """Fit a linear model to measured runs, check it, and predict with an interval.

    FILES are CSV or TSV with units in the headings (`time [ms]`), Extra-P's text, JSON and JSON lines, Caliper or
    Thicket profiles, logs of nvidia-smi. Terms: + - * : / ( ), I(x**2), log(x), log2(x), sqrt(x), poly(x, 2);
    `log(time) ~ ..` keeps predictions positive.
    """
    from whatif.api.run_fits import fit_regression

    result = fit_regression(files, **options)
    show_notes(result.notes)
    if len(result.tables) > 1 and file_format in ("csv", "json"):
        names = ", ".join(result.tables)
        raise UsageError(f"--format {file_format} is of one table: choose it by --show, one of {names}")
    target.write(result)
    for number, table in enumerate(result.tables.values()):
        if number:
            echo()
        Output(file_format).print_table(table)


@command.command("scaling", short_help="Runs at several node counts: the time at other counts, with an interval.")
@files_argument
@columns_option
@where_option
@long_option
@click.option("--predict", multiple=True, metavar="NAME=VALUE,..", help="Predict at this count, e.g. nodes=64.")
@click.option(
    "--series", default="", metavar="COLUMN,..", help="Columns that distinguish series.  [default: file and texts]"
)
@level_option
@click.option("--show", type=OneOf(SCALING_TABLES), help="Table to print.  [default: prediction, else held-out]")
@output_options(picture=False)
def scaling(files: tuple[Path, ...], output: Output, **options: Any) -> None:
    """Predict the time of a program on more nodes or processes from runs on fewer, with an interval.

    FILES have a column nodes, processes or another count, and total_time or time; optionally iterations. The prediction
    is a weighted mean of scaling models. The weights depend on how well each model predicted the larger runs from the
    smaller ones; the errors of all series are pooled.
    """
    from whatif.api.run_fits import fit_scaling

    output.write(fit_scaling(files, **options))


@command.command("transfer", short_help="Host-device copies: nvprof profiles, summaries as CSV.")
@platform_options
@datasheet_option
@click.option("--machine", metavar="NAME", help="Keep only the rows of this machine.")
def transfer(files: tuple[Path, ...], target: PlatformTarget, platform: str | None, machine: str | None) -> None:
    """Fit the latencies and the staging of a host-device link to measured copies and the link's data sheet.

    The data sheet is that of --platform, else of the platform that is written or extended.
    """
    from whatif.api.fits import fit_transfer

    written = target.platform()
    target.finish(fit_transfer(files, platform=platform or written, machine=machine))
