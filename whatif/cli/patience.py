"""Remark on stderr where a simulation takes more than a few seconds."""

from __future__ import annotations

from importlib.util import find_spec
from threading import Timer
from typing import Final

from whatif.cli.echo import echo
from whatif.extras import install_command

_SECONDS: Final = 3.0
_COMPILING: Final = "simulating; the loops are compiled once on a machine"
_IN_PYTHON: Final = "simulating in Python, slowly; compiled loops need numba"


def start_patience() -> Timer:
    """Timer that prints the remark unless it is cancelled before."""
    remark = _COMPILING if find_spec("numba") else f"{_IN_PYTHON}: {install_command('simulation')}"
    timer = Timer(_SECONDS, lambda: echo(remark, err=True))
    timer.daemon = True
    timer.start()
    return timer
