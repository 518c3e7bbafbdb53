"""Printing: the one way by which a message, which may quote a file, reaches the terminal."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import IO, Any

import click

from whatif.visible_text import visible


def echo(text: str = "", *, file: IO[Any] | None = None, nl: bool = True, err: bool = False) -> None:
    r"""Print a text, in which control characters other than line ends and tabs are visible, as `\x1b`.

    What stderr does not take is lost: a closed stderr ends no work and changes no exit code.
    """
    with suppress(OSError) if err else nullcontext():
        click.echo(visible(text), file=file, nl=nl, err=err)
