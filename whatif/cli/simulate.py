"""`whatif simulate`: traces and scenarios, simulated message by message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from whatif.cli.options import question_options, show_written
from whatif.cli.output import Output, output_options
from whatif.cli.progress import remark_on_duration
from whatif.cli.values import FilePath, OneOf, Whole
from whatif.errors import UsageError
from whatif.limits import MOST_LANES
from whatif.vocabulary import SIMULATION_TABLES, TRACE_MODELS


@click.command("simulate")
@click.argument("scenario", metavar="SCENARIO|TRACE")
@question_options
@click.option(
    "--model",
    type=OneOf(TRACE_MODELS),
    help="Model of the messages of a trace; default: the most accurate one that the platform has parameters for.",
)
@click.option(
    "--collective",
    "collectives",
    multiple=True,
    metavar="LIBRARY|OPERATION=ALGORITHM",
    help="Algorithms of the collectives of a trace: by the rules of a library (mpich, openmpi), or of one operation"
    " (allreduce=ring); may be repeated.",
)
@click.option("--ranks", type=Whole(1), help="Number of ranks; a trace must be regular to be extrapolated.")
@click.option("--iterations", type=Whole(1), default=1, show_default=True, help="Iterations of a scenario.")
@click.option(
    "--show",
    type=OneOf(SIMULATION_TABLES),
    default="ranks",
    show_default=True,
    help="Time of each rank, all messages, the critical path, or slopes of the run time in latency and bandwidth.",
)
@output_options(plot=f"Draw the time lines of the first {MOST_LANES} ranks.")
@click.option(
    "--timeline",
    type=FilePath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the time line: FILE.json for Perfetto, FILE.paje for ViTE.",
)
def command(scenario: str, show: Any, output: Output, timeline: Path | None, **options: Any) -> None:
    """Simulate the phases of a SCENARIO, or a TRACE (DUMPI, SimGrid, GOAL, OTF2), message by message on a platform.

    Prints the time that each rank computes, sends, receives and waits; the messages; the critical path; or how the run
    time changes with latency and bandwidth. A picture has the time lines of the first ranks.
    """
    from whatif.api.simulations import check_timeline, simulate

    if output.is_picture and show != "ranks":
        raise UsageError(f"--show {show}: no effect on a picture, which has the time lines of ranks")
    if timeline is not None:
        check_timeline(timeline)
    remark = remark_on_duration()
    try:
        found = simulate(scenario, show=show, **options)
    finally:
        remark.cancel()
    output.write(found)
    if timeline is not None:
        found.write_timeline(timeline)
        show_written(timeline)
