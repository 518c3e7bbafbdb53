"""`whatif open`: the explorer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from threading import Timer

import click

from whatif.cli.options import open_question, question_options
from whatif.errors import UsageError

_LARGEST_JOURNAL = 10_000_000


@click.command("open", short_help="Open the explorer on a scenario.")
@click.argument("scenario", default="jacobi2d")
@question_options
@click.option("--replay", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Repeat a journal.")
@click.option(
    "--journal", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write every command to FILE."
)
def command(
    scenario: str = "jacobi2d",
    platform: str | None = None,
    folders: tuple[Path, ...] = (),
    sets: tuple[str, ...] = (),
    replay: Path | None = None,
    journal: Path | None = None,
) -> None:
    """Open the explorer on SCENARIO (jacobi2d)."""
    # In a browser the terminal is a driver of Textual's at the other end of pipes.
    if "TEXTUAL_DRIVER" not in os.environ and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the explorer needs a terminal; for data in a pipe or file use `whatif run`")
    question = open_question(scenario, platform, folders, sets)
    # Everything wrong with the files is said here, before the terminal is taken over.
    _ = question.program
    lines = read_journal(replay) if replay is not None else []
    from whatif.tui.app import Explorer
    from whatif.tui.config import read_config

    patience = Timer(1.0, lambda: click.echo("computing the first picture; ctrl+c gives it up", err=True))
    patience.start()
    try:
        explorer = Explorer(question, read_config(), replay=lines, journal=journal)
    finally:
        patience.cancel()
    explorer.run()
    code = explorer.return_code or 0
    if code > 128:
        click.echo("ended by a signal; what was not saved is offered when the scenario is opened again", err=True)
    sys.exit(code)


def read_journal(path: Path) -> list[str]:
    """The lines of a journal; raise `UsageError` for what cannot be one."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LARGEST_JOURNAL + 1)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a journal: it is not UTF-8") from None
    if len(text) > _LARGEST_JOURNAL:
        raise UsageError(f"{path}: larger than {_LARGEST_JOURNAL // 1_000_000} MB: not a journal of commands")
    return text.splitlines()
