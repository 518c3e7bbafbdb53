"""`whatif simulate`: traces and scenarios played message by message."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, get_args

import click

from whatif.cli.options import question_options
from whatif.errors import UsageError
from whatif.limits import TABLE_FORMATS
from whatif.schema.application import TraceModel

if TYPE_CHECKING:
    from whatif.core.scenario import Scenario
    from whatif.studies.simulation_run import Simulation


@click.command("simulate", short_help="Play a trace, or a scenario, message by message.")
@click.argument("source", metavar="TRACE|SCENARIO")
@question_options
@click.option(
    "--model", type=click.Choice(get_args(TraceModel)), help="What a message of a trace costs; the best there is."
)
@click.option("--ranks", type=click.IntRange(1), help="Play for so many ranks; a trace must be regular for that.")
@click.option("--iterations", type=click.IntRange(1), default=1, show_default=True, help="Iterations of a scenario.")
@click.option("--show", type=click.Choice(["ranks", "messages", "path", "slopes"]), default="ranks", show_default=True)
@click.option("--format", "file_format", type=click.Choice(TABLE_FORMATS), default="table", show_default=True)
@click.option(
    "--timeline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the time line: FILE.json for Perfetto, FILE.paje for ViTE.",
)
def command(
    source: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    model: str | None,
    ranks: int | None,
    iterations: int,
    show: str,
    file_format: str,
    timeline: Path | None,
) -> None:
    """Play a TRACE (DUMPI, SimGrid, GOAL, OTF2) or the phases of a SCENARIO message by message on a platform.

    Prints what each rank spends on computing, sending, receiving and waiting; the messages between nodes; the critical
    path; or how the run time answers to latency and bandwidth.
    """
    from whatif.files.timeline_files import TIMELINE_WRITERS
    from whatif.studies.simulation_run import simulate, without_playing
    from whatif.studies.simulation_tables import TABLES
    from whatif.table_writers import TABLE_WRITERS

    if timeline is not None and timeline.suffix not in TIMELINE_WRITERS:
        raise UsageError(f"{timeline}: a time line ends in {' or '.join(TIMELINE_WRITERS)}")
    question = _question(source, platform, platform_dirs, overrides, model, ranks, iterations)
    program = question.program
    patience = Timer(3.0, lambda: click.echo("playing; the event loop is compiled once on a machine", err=True))
    patience.start()
    try:
        simulation = simulate(program, without_playing(program), iterations)
    finally:
        patience.cancel()
    _narrate(question, simulation)
    TABLE_WRITERS[file_format](TABLES[show](simulation), sys.stdout)
    if timeline is not None:
        TIMELINE_WRITERS[timeline.suffix](simulation.activity, simulation.places.node.tolist(), timeline)
        click.echo(f"time line in {timeline}", err=True)


def _question(
    source: str,
    platform: str | None,
    platform_dirs: tuple[Path, ...],
    overrides: tuple[str, ...],
    model: str | None,
    ranks: int | None,
    iterations: int,
) -> Scenario:
    """The question that a trace or a scenario asks, its communication simulated."""
    from whatif.cli.scenario_sources import open_source

    more = [f"application.rank_count={ranks}"] if ranks is not None else []
    opened = open_source(source, platform, platform_dirs, (*overrides, *more), model)
    question = opened.question
    if opened.kind == "profile":
        raise UsageError(f"{source}: a GPU profile holds no messages; see `whatif project` and `whatif open`")
    if opened.kind == "trace" and iterations > 1:
        raise UsageError("--iterations is for scenarios: a trace is played as it was recorded")
    if opened.kind != "trace" and model is not None:
        raise UsageError("--model is for traces; the phases of a scenario name theirs")
    modelled = question.program.loaded.scenario.application.communication == "modelled"
    if opened.kind == "trace" or not modelled or "application.communication" in question.sets:
        return question
    return question.changed({"application.communication": "simulated", **question.sets}, question.platform)


def _narrate(question: Scenario, simulation: Simulation) -> None:
    from whatif.units import SECOND, format_quantity

    places = simulation.places
    count = int(places.node.max()) + 1
    nodes = f"{count} node{'s' * (count != 1)}"
    time = format_quantity(simulation.activity.run_time, SECOND)
    machine = question.program.loaded.scenario.platform.name
    click.echo(
        f"{time} on {machine}: {len(places.node)} ranks on {nodes}, {len(simulation.activity.sent)} messages", err=True
    )
