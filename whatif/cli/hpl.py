"""`whatif hpl`: every run of an HPL.dat on a platform, in HPL's own table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from whatif.cli.options import named_platform, parse_sets, platforms_option, set_option
from whatif.errors import InvalidFileError, Problem, UsageError
from whatif.limits import TABLE_FORMATS

if TYPE_CHECKING:
    from whatif.linpack.input_reader import HPLInput
    from whatif.linpack.output_reader import HPLRun
    from whatif.linpack.prediction_tables import HPLPrediction, Key
    from whatif.linpack.predictions import HPLRuns
    from whatif.linpack.scenario_writer import HPLPlacement, Noise
    from whatif.linpack.simulation.configuration import Configuration
    from whatif.schema.toml import Document
    from whatif.table import Table

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_MAXIMUM_RUNS: Final = 10_000
"""Combinations of an HPL.dat that are played without being asked twice."""
MOST_RUNS: Final = 1_000_000
_NOISY_REPLICATES: Final = 10
_NOISES: Final[Mapping[tuple[bool, bool], Noise]] = {
    (False, False): "none",
    (True, False): "kernels",
    (False, True): "network",
    (True, True): "both",
}
_INTERVAL: Final = "95 % of times"
_LINES: Final = {"N": 6, "P x Q": 11, "DEPTH": 25, "": 0}
"""Where an HPL.dat says what a machine may refuse."""


def machine_options(command: Command) -> Command:
    """The platform, and what HPL.dat does not say of a run."""
    options = (
        click.option("--platform", required=True, metavar="NAME", help="The machine: a name, or a file."),
        platforms_option,
        set_option,
        click.option("--ranks-per-node", type=click.IntRange(1, 2**24), help="Default: one for each GPU, or core."),
        click.option(
            "--binding",
            type=click.Choice(["by_core", "by_socket"]),
            default="by_core",
            show_default=True,
            help="Ranks of a node fill one socket after the other, or take the sockets in turn.",
        ),
        click.option(
            "--panel-on",
            type=click.Choice(["device", "host"]),
            default="device",
            show_default=True,
            help="Panels are factored where the matrix lies, or on the host of the GPUs, as in rocHPL.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("hpl", short_help="Predict every run of an HPL.dat.")
@click.argument("input_file", metavar="HPL.dat", type=click.Path(path_type=Path))
@machine_options
@click.option("--noise", is_flag=True, help="Every call of a kernel deviates, as the platform says.")
@click.option("--network-noise", is_flag=True, help="Every message takes the time of one of its modes.")
@click.option("--replicates", type=click.IntRange(1, 10_000), help="Runs of each combination; with --noise: 10.")
@click.option("--seed", type=click.IntRange(0, 2**53), help="Of the first replicate, the next has the next; else 0.")
@click.option(
    "--measured",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="HPL.out",
    help="Lay the runs of an output of HPL beside the prediction.",
)
@click.option("--components", is_flag=True, help="What HPL's detailed timing tells, as well.")
@click.option("--format", "file_format", type=click.Choice(("hpl", *TABLE_FORMATS)), default="hpl", show_default=True)
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
              help="Write the first combination as a scenario, to be explored, and play nothing.")  # fmt: skip
@click.option("--max-points", type=click.IntRange(1, MOST_RUNS), default=DEFAULT_MAXIMUM_RUNS, show_default=True)
def command(
    input_file: Path,
    platform: str,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    ranks_per_node: int | None,
    binding: str,
    panel_on: str,
    noise: bool,
    network_noise: bool,
    replicates: int | None,
    seed: int | None,
    measured: tuple[Path, ...],
    components: bool,
    file_format: str,
    save: Path | None,
    max_points: int,
) -> None:
    """Play every combination of HPL.dat on a platform, in HPL's order, and print HPL's own table.

    Each line appears as soon as it is known. With noise or replicates the time is the mean, and the interval holds 95 %
    of the replicates.
    """
    from whatif.linpack.input_reader import read_hpl_input
    from whatif.linpack.prediction_tables import by_key

    asked = read_hpl_input(input_file)
    if asked.configuration_count > max_points:
        count = f"{asked.configuration_count:,} combinations"
        raise UsageError(f"{input_file}: {count}, more than --max-points {max_points:,}")
    placement = placement_of(ranks_per_node, binding, panel_on, _NOISES[noise, network_noise], seed or 0)
    first = next(asked.configurations())
    if save is not None:
        _save(save, *scenario_of(first, platform, platform_dirs, overrides, placement))
        return
    runs = open_runs(first, platform, platform_dirs, overrides, placement)
    _refuse(asked, input_file, runs)
    known = by_key(_measured(measured))
    seeds = range(runs.seed, runs.seed + (replicates or (_NOISY_REPLICATES if runs.is_noisy else 1)))
    _narrate(asked, runs, seeds)
    predictions = _predictions(asked, runs, seeds, known)
    if file_format == "hpl":
        _write_hpl(predictions, components, len(seeds) > 1)
    else:
        _write_table(predictions, file_format, _tables(runs, seeds, components, bool(known)))


def placement_of(
    ranks_per_node: int | None, binding: str, panel_on: str, noise: Noise = "none", seed: int = 0
) -> HPLPlacement:
    """What the options say of a run."""
    from whatif.linpack.scenario_writer import HPLPlacement

    by_socket, on_host = binding == "by_socket", panel_on == "host"
    return HPLPlacement(
        ranks_per_node, "by_socket" if by_socket else "by_core", "host" if on_host else "device", noise, seed
    )


def scenario_of(
    first: Configuration,
    platform: str,
    platform_dirs: tuple[Path, ...],
    overrides: Sequence[str],
    placement: HPLPlacement,
) -> tuple[Document, dict[str, str], tuple[Path, ...]]:
    """The scenario of one configuration, what is set in it, and where its platform is looked for."""
    from whatif.linpack.predictions import parameters_of
    from whatif.linpack.scenario_writer import hpl_scenario

    pairs = parse_sets(tuple(overrides))
    own = (*parameters_of(first), "rank_count")
    taken = next((name for name in own if f"application.{name}" in pairs), None)
    if taken is not None:
        raise UsageError(f"--set application.{taken}: HPL.dat, or the search, says it")
    if "application.ranks_per_node" in pairs and placement.ranks_per_node is not None:
        raise UsageError("--set application.ranks_per_node and --ranks-per-node exclude each other")
    name, platform_dirs = named_platform(platform, platform_dirs)
    document, assumed = hpl_scenario(first, name, placement, platform_dirs)
    if assumed and "application.ranks_per_node" not in pairs:
        click.echo(f"assumed: {assumed} (--ranks-per-node)", err=True)
    return document, pairs, platform_dirs


def open_runs(
    first: Configuration,
    platform: str,
    platform_dirs: tuple[Path, ...],
    overrides: Sequence[str],
    placement: HPLPlacement,
) -> HPLRuns:
    """HPL on the machine that the options name; `first` is any configuration."""
    from whatif.core.scenario import Scenario
    from whatif.linpack.predictions import HPLRuns

    document, pairs, platform_dirs = scenario_of(first, platform, platform_dirs, overrides, placement)
    runs = HPLRuns(Scenario(document, None, pairs, platform_dirs).program)
    if runs.panel_place:
        click.echo(f"assumed: {runs.panel_place} (--panel-on)", err=True)
    return runs


def _save(path: Path, document: Document, overrides: Mapping[str, str], platform_dirs: tuple[Path, ...]) -> None:
    from whatif.atomic import atomic_file
    from whatif.core.scenario import Scenario
    from whatif.schema.rewriting import rewritten

    Scenario(document, None, overrides, platform_dirs).program_at({})
    text = rewritten(document, overrides, None, platform_dirs)
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    elsewhere = [folder for folder in platform_dirs if folder.resolve() != path.resolve().parent]
    words = ["whatif", "open", str(path), *(word for folder in elsewhere for word in ("--platform-dir", str(folder)))]
    click.echo(f"written: {path}; explore it with `{shlex.join(words)}`", err=True)


def _refuse(asked: HPLInput, file: Path, runs: HPLRuns) -> None:
    """Raise `InvalidFileError` for every size, grid and depth of the file that the machine has no room for."""
    from whatif.schema.toml import shown_path

    problems: dict[Problem, None] = {}
    sizes = {(run.matrix_size, run.process_rows, run.process_columns, run.depth): run for run in asked.configurations()}
    for run in sizes.values():
        refusal = runs.refusal(run)
        if refusal is not None:
            line = _LINES[refusal.about]
            problems[Problem(shown_path(file), line, min(line, 1), refusal.about, refusal.message)] = None
    if problems:
        raise InvalidFileError(list(problems))


def _measured(files: Sequence[Path]) -> list[HPLRun]:
    from whatif.cli.measurement_files import once
    from whatif.linpack.output_reader import read_hpl_output

    return [run for path in once(files) for run in read_hpl_output(path)]


def _narrate(asked: HPLInput, runs: HPLRuns, seeds: range) -> None:
    from whatif.linpack.machine import NOISES

    program = runs.program
    count = asked.configuration_count
    click.echo(
        f"platform {program.loaded.scenario.platform.name}; worst grade of its values: {program.grade}; "
        f"{count:,} run{'s' * (count != 1)}; {runs.ranks_per_node} ranks on a node; "
        f"noise {NOISES[runs.plan.noise]}; "
        + (f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"),
        err=True,
    )
    if runs.plan.kernels_deviate and not runs.has_deviations:
        click.echo("warning: the platform states no deviations of its kernels: only pivots are drawn", err=True)


def _predictions(
    asked: HPLInput, runs: HPLRuns, seeds: range, known: Mapping[Key, Sequence[HPLRun]]
) -> Iterator[HPLPrediction]:
    """Every combination as it is known; at the end, what was measured and is none of them is told."""
    from whatif.linpack.prediction_tables import key_of, prediction_of

    tasks = ((run, seed) for run in asked.configurations() for seed in seeds)
    met: set[Key] = set()
    with meter(asked.configuration_count * len(seeds)) as told:
        outcomes = runs.in_order(tasks, told)
        while replicates := list(islice(outcomes, len(seeds))):
            met.add(key_of(replicates[0].configuration))
            yield prediction_of(replicates, known)
    missed = [key for key in known if key not in met]
    if missed:
        code, n, nb, p, q = missed[0]
        which = f"such as {code} N {n} NB {nb} P {p} Q {q}"
        click.echo(f"warning: {len(missed)} of the measured runs are no combination of HPL.dat, {which}", err=True)


@contextmanager
def meter(count: int) -> Iterator[Callable[[int, float], None]]:
    """Shows on a terminal how much of so many runs is done; says, where nothing shows for a while, why."""
    patience = Timer(3.0, lambda: click.echo("playing; the model is compiled once on a machine", err=True))
    patience.daemon = True
    patience.start()
    shown = -1

    def told(number: int, share: float) -> None:
        nonlocal shown
        patience.cancel()
        now = int(100 * (number + share) / count)
        if now > shown and sys.stderr.isatty():
            click.echo(f"\r{now:3d}%\r", nl=False, err=True)
        shown = max(now, shown)

    try:
        yield told
    finally:
        patience.cancel()


def _write_hpl(predictions: Iterable[HPLPrediction], components: bool, interval: bool) -> None:
    """HPL's own table; what is told of a run beside its line follows it."""
    from whatif.linpack.output_writer import HPLRow, hpl_table
    from whatif.linpack.prediction_tables import detail_lines

    latest: list[HPLPrediction] = []

    def rows() -> Iterator[HPLRow]:
        for item in predictions:
            latest.append(item)
            yield item.row

    for line in hpl_table(rows(), _INTERVAL if interval else ""):
        details = chain.from_iterable(detail_lines(item, components) for item in latest)
        click.echo("\n".join([line, *details]))
        latest.clear()


def _tables(
    runs: HPLRuns, seeds: range, components: bool, measured: bool
) -> Callable[[Sequence[HPLPrediction]], Table]:
    """What makes a table of predictions, with the columns that the options ask for."""
    from whatif.linpack.prediction_tables import prediction_table

    program = runs.program
    notes = {
        "platform": program.loaded.scenario.platform.name,
        "grade": program.grade,
        "ranks_per_node": str(runs.ranks_per_node),
        "noise": runs.plan.noise,
        "seeds": f"{seeds[0]} to {seeds[-1]}",
    }
    return lambda rows: prediction_table(
        rows, interval=len(seeds) > 1, components=components, measured=measured, notes=notes
    )


def _write_table(
    predictions: Iterable[HPLPrediction], file_format: str, table: Callable[[Sequence[HPLPrediction]], Table]
) -> None:
    """Rows as they come; JSON, which is one object, at the end, or when it is interrupted."""
    from whatif.table_writers import column_rows, csv_rows, json_rows, markdown_rows

    if file_format == "json":
        found: list[HPLPrediction] = []
        try:
            for item in predictions:
                found.append(item)  # noqa: PERF402 - what was there before an interruption is kept
        finally:
            if found:
                json_rows(table(found), sys.stdout)
        return
    widths: list[int] = []
    for number, item in enumerate(predictions):
        if file_format == "table":
            widths = column_rows(table([item]), sys.stdout, widths)
        else:
            (csv_rows if file_format == "csv" else markdown_rows)(table([item]), sys.stdout, heading=number == 0)
        sys.stdout.flush()
