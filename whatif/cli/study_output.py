"""Progress of long work, as one line of stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from whatif.visible_text import visible

_PATIENCE: Final = 1.0
"""Seconds before progress is shown on a terminal."""


class ProgressLine:
    """Progress of a long computation on the last line of a terminal."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _PATIENCE
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
def progress() -> Iterator[ProgressLine]:
    """Progress line, erased at the end."""
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear()
