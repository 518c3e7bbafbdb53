"""Opening the file of a parameter in the user's editor, with the explorer suspended."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from whatif.api.editing import FilePlace, editor_command, place_of
from whatif.errors import UsageError

if TYPE_CHECKING:
    from whatif.tui.app import Explorer


async def edit_file(app: Explorer, path: str) -> str:
    """Open the file that states a parameter; returns a message. Raise `UsageError` if it is impossible.

    Of a scenario that came with the program a copy is offered, as when it is saved.
    """
    place = _place(app, path)
    # Before a copy is offered: without an editor it would be of no use.
    editor_command(os.environ, place or FilePlace(app.file_sync.file.path, 1))
    if place is None:
        await app.action_save_as().wait()
        place = _place(app, path)
    if place is None:
        return ""
    before = place.file.read_bytes()
    _run(app, editor_command(os.environ, place))
    return "" if place.file.read_bytes() != before else f"nothing changed in {place.file.name}"


def _place(app: Explorer, path: str) -> FilePlace | None:
    return place_of(path, app.state.session.program.loaded, app.file_sync.file.path)


def _run(app: Explorer, command: list[str]) -> None:
    try:
        with app.suspend():
            done = subprocess.run(command, check=False)  # noqa: S603 - the user's own editor
    except SuspendNotSupported:
        raise UsageError("an editor needs a terminal, which a browser has not; use an editor next to it") from None
    except OSError as error:
        raise UsageError(f"`{command[0]}`: cannot be started: {error.strerror}; $EDITOR names it") from None
    if done.returncode:
        raise UsageError(f"`{command[0]}` ended with code {done.returncode}")
