"""Output of the results of studies: notes to stderr, then a table or a picture."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import click

from whatif.cli.options import Draw, print_table
from whatif.errors import ImpossiblePointError, UsageError

if TYPE_CHECKING:
    from whatif.plotting.description import Description
    from whatif.studies.study_result import StudyResult

_PATIENCE: Final = 1.0
"""Seconds before progress is shown on a terminal."""


def write_study(result: StudyResult, file_format: str, draw: Draw | None = None) -> None:
    """Print the notes, then draw the picture or print the table; raise `ImpossiblePointError` without an answer."""
    for note in result.notes:
        click.echo(note, err=True)
    obstacle = result.obstacle()
    if draw is not None and (result.shows_failures or not obstacle):
        # Bar charts are drawn into files only: their verbs have no --plot.
        draw(cast("Description", result.picture()))
    elif result.shows_failures or not obstacle:
        readable = file_format == "table"
        table = result.readable_table() if readable else result.table()
        if len(table) or not readable:
            print_table(table, file_format, result.optional_columns)
    if result.interruption():
        sys.stdout.flush()
        raise KeyboardInterrupt(result.interruption())
    if obstacle:
        raise ImpossiblePointError(obstacle)


def values_by_name(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """`SCENARIO=VALUE` texts of an option as a mapping; raise `UsageError` for any other text."""
    pairs = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise UsageError(f"{option} {text}: expected SCENARIO=VALUE")
        pairs[name] = value
    return pairs


class ProgressLine:
    """Progress of a long computation on the last line of a terminal."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE
        self._shown = False

    def __call__(self, text: str) -> None:
        """Show a text, at most ten times a second, on a terminal only."""
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{text}", nl=False, err=True)
            self._next, self._shown = now + 0.1, True

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False


@contextmanager
def progress() -> Iterator[ProgressLine]:
    """Progress line, erased at the end."""
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear()
