"""Printing: the one way by which a message, which may quote a file, reaches the terminal."""

from __future__ import annotations

from typing import IO, Any

import click

from whatif.visible_text import visible


def echo(text: str = "", *, file: IO[Any] | None = None, nl: bool = True, err: bool = False) -> None:
    r"""Print a text, in which control characters other than line ends and tabs are visible, as `\x1b`."""
    click.echo(visible(text), file=file, nl=nl, err=err)
