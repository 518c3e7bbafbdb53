"""`whatif tune`: search the parameters of an application for its best run on a platform."""

from __future__ import annotations

from typing import Final

import click

from whatif.cli.lazy_group import LazyGroup
from whatif.plugins import Verb, registered_verbs

VERBS: Final = {
    "grid": Verb("whatif.cli.tune_grid", "Decomposition and mapping of an application's grid."),
    **registered_verbs("tune"),
}


@click.group("tune", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Search the parameters of an application for its best run on a platform."""
