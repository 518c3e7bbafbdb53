"""Defects: unforeseen errors, with a message in place of the traceback, which goes to a file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from whatif import __version__
from whatif.atomic import write_text
from whatif.errors import WhatifError


def defect_message(error: BaseException) -> str:
    """Message of an unforeseen error, with the file of its traceback where that could be written."""
    import platform
    import traceback

    from platformdirs import user_state_path

    path = user_state_path("whatif") / "defect.txt"
    system = f"whatif {__version__}, Python {platform.python_version()}, {platform.system()}"
    place = ""
    with suppress(OSError, WhatifError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, f"{system}\n{''.join(traceback.format_exception(error))}")
        place = f"; please report it with {shortened(path)}"
    return f"defect: {type(error).__name__}: {str(error).partition(chr(10))[0]}{place}"


def shortened(path: Path) -> str:
    """Path with `~` for the home folder."""
    with suppress(ValueError, RuntimeError):
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    return str(path)
