"""`whatif open`: the explorer."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from whatif.cli.options import parse_sets, question_options
from whatif.errors import UsageError


@click.command("open", short_help="Open the explorer on a scenario.")
@click.argument("scenario", default="jacobi2d")
@question_options
def command(
    scenario: str = "jacobi2d",
    platform: str | None = None,
    folders: tuple[Path, ...] = (),
    sets: tuple[str, ...] = (),
) -> None:
    """Open the explorer on SCENARIO (jacobi2d)."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the explorer needs a terminal; for data in a pipe or file use `whatif run`")
    from whatif.engine.result import Question

    question = Question.open(scenario, platform=platform, sets=parse_sets(sets), folders=folders)
    # Everything wrong with the files is said here, before the terminal is taken over.
    _ = question.program
    from whatif.tui.app import Explorer

    Explorer(question).run()
