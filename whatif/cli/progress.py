"""Progress of long work on stderr: a line of text, a percentage, or a remark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Timer
from typing import Final

import click

from whatif.cli.echo import echo
from whatif.extras import install_command
from whatif.visible_text import visible

_LINE_SECONDS: Final = 1.0
"""Time before a line of progress is shown."""
_REMARK_SECONDS: Final = 3.0
"""Time of a simulation before the remark on its duration."""
_COMPILING: Final = "simulating; the loops are compiled once on a machine"
_IN_PYTHON: Final = "simulating in Python, slowly; compiled loops need numba"


class ProgressLine:
    """Progress of a long computation on the last line of a terminal."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _LINE_SECONDS
        self._shown = False

    def __call__(self, text: str) -> None:
        """Show a text, at most ten times a second, on a terminal only."""
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            click.echo(f"\r\x1b[K{visible(text)}", nl=False, err=True)
            self._next, self._shown = now + 0.1, True

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Progress line, erased at the end."""
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear()


def show_percentage(share: float) -> None:
    """Show the finished share of a grid, on a terminal."""
    if share < 1:
        click.echo(f"\r{share:4.0%}\r", nl=False, err=True)


@contextmanager
def runs_percentage(count: int) -> Iterator[Callable[[int, float], None]]:
    """Function that shows the finished share of `count` runs, given the number of the run and its share.

    Until it is called, a remark says why nothing finishes for a while.
    """
    remark, shown = remark_on_duration(), -1

    def show(number: int, share: float) -> None:
        nonlocal shown
        remark.cancel()
        now = int(100 * (number + share) / count)
        if now > shown and sys.stderr.isatty():
            click.echo(f"\r{now:3d}%\r", nl=False, err=True)
        shown = max(now, shown)

    try:
        yield show
    finally:
        remark.cancel()


def remark_on_duration() -> Timer:
    """Timer that prints why a simulation takes more than a few seconds, unless it is cancelled before."""
    remark = _COMPILING if find_spec("numba") else f"{_IN_PYTHON}: {install_command('simulation')}"
    timer = Timer(_REMARK_SECONDS, lambda: echo(remark, err=True))
    timer.daemon = True
    timer.start()
    return timer
