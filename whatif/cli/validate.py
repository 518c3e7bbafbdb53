"""`whatif validate`: predictions of measured runs, and the agreement of the models with independent results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whatif.cli.echo import echo
from whatif.cli.options import question_options, show_notes
from whatif.cli.output import Output, output_options
from whatif.cli.progress import runs_percentage, show_percentage
from whatif.cli.values import FilePath, OneOf
from whatif.errors import InvalidFileError, UsageError, did_you_mean
from whatif.limits import LONG_TOPICS, TABLE_FORMATS, TOPIC_GROUPS, VALIDATION_TOPICS
from whatif.paths import exists
from whatif.vocabulary import ERROR_ROWS

if TYPE_CHECKING:
    from whatif.validation.comparisons import Comparisons
    from whatif.validation.measured_kinds import ErrorTable


@click.command("validate")
@click.argument("scenario", required=False, metavar="[SCENARIO | TOPIC]")
@click.argument("topics", nargs=-1, metavar="[TOPIC]..")
@question_options
@click.option("--runs", type=FilePath(path_type=Path), metavar="FILE",
              help="CSV file of measured runs.  [default: that of the scenario]")  # fmt: skip
@click.option("--by", type=OneOf(ERROR_ROWS),
              help="Rows: each result of each run, or mean errors by result or topic.  [default: run; without an "
                   "argument: result]")  # fmt: skip
@click.option("--tolerance", metavar="SHARE",
              help="Exit with 5 if the mean absolute error of a result is larger: `15 %` or 0.15.")  # fmt: skip
@output_options(picture=False, formats=(*TABLE_FORMATS, "toml"))
def command(scenario: str | None, topics: tuple[str, ...], output: Output, **options: Any) -> None:
    """Compare the predictions of SCENARIO with measured runs, or the models with published results by TOPIC.

    -o FILE.toml writes the scenario with its accuracy, which then is a part of its uncertainty.

    Without an argument, the mean error and bias of the models by topic, of all but the last two. Topics: schedules: end
    times of LogGOPSim; links: flow-level times of SimGrid; counts: K of Table 5 of Choi et al.; transfers: sweeps of
    copies; hpcg and power: HPCG and the power of whole machines of TOP500; power_caps: training under power limits
    (Zeus); kernels: kernels measured on one GPU and predicted on another (RAJA Performance Suite); kernel_sizes: the
    same kernels with fewer elements; programs: programs on one GPU, profiled on an H100; cpu_programs: programs on
    processors that they were not measured on; shared_gpus: programs of several ranks on a GPU; gemm: products of
    matrices; collectives and mpi_collectives: those of GPU libraries and of MPI; training: steps of transformers;
    serving: tokens per second; first_tokens: times to the first token; decoding: steps of one token; transformers:
    these four; each some minutes: hpl: HPL, SimGrid's emulation and real runs; top500: HPL on whole machines. Their
    data are in the folder `validation` of the program.
    """
    if scenario is None or scenario in (*VALIDATION_TOPICS, *TOPIC_GROUPS):
        _compare(() if scenario is None else (scenario, *topics), output, **options)
        return
    if topics:
        raise UsageError(f"{', '.join(topics)}: one SCENARIO at a time; topics: {', '.join(VALIDATION_TOPICS)}")
    _validate(scenario, output, **options)


def _validate(scenario: str, output: Output, *, by: Any, **options: Any) -> None:
    from whatif.api.scenarios import validate

    try:
        found = validate(scenario, by=by or "run", **options)
    except InvalidFileError:
        near = did_you_mean(scenario, (*VALIDATION_TOPICS, *TOPIC_GROUPS))
        if near and not exists(scenario):
            raise UsageError(f"`{scenario}`: no such scenario or topic{near}") from None
        raise
    output.write(found)
    found.raise_if_beyond()


def _compare(topics: tuple[str, ...], output: Output, *, by: str | None, **options: Any) -> None:
    from whatif.api.scenarios import comparisons

    if stated := [name for name, value in options.items() if value]:
        option = {"overrides": "set", "platform_dirs": "platform-dir"}.get(stated[0], stated[0])
        raise UsageError(f"--{option}: no effect without SCENARIO")
    if output.file_format == "toml":
        raise UsageError("--format toml: no effect without SCENARIO")
    found = comparisons(*topics)
    show = _means if by == "result" or (by is None and not topics) else _rows
    show(found, output)
    show_notes(found.notes)
    found.raise_if_beyond()


def _rows(found: Comparisons, output: Output) -> None:
    """Print the rows of each topic, with its mean errors as a heading."""
    if output.path is not None and len(found.topics) > 1:
        raise UsageError("-o holds one table: name one TOPIC, or --by result")
    for topic in found.topics:
        table = _computed(found, topic)
        echo(f"{topic}: {table.notes['title']}", err=True)
        output.print_table(table, table.optional_columns)


def _means(found: Comparisons, output: Output) -> None:
    """Print the mean errors of all topics."""
    for done, topic in enumerate(found.topics):
        if sys.stderr.isatty():
            show_percentage(done / len(found.topics))
        _computed(found, topic)
    output.print_table(found.mean_errors())


def _computed(found: Comparisons, topic: str) -> ErrorTable:
    """Table of a topic, with its progress on stderr if it takes minutes."""
    if topic not in LONG_TOPICS:
        return found[topic]
    with runs_percentage(1) as progress:
        return found.compute(topic, lambda share: progress(0, share))
