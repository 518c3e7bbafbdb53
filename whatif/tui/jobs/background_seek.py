"""Search for the value that meets a target, in the background where every point is simulated."""

from __future__ import annotations

from whatif.core.session import Session
from whatif.tui.commands.explorer_commands import Edit
from whatif.tui.commands.seek_command import Seek
from whatif.tui.jobs.background import BackgroundJob
from whatif.tui.state import ExplorerState, UndoState


def background_seek(state: ExplorerState, seek: Seek) -> BackgroundJob:
    """Job whose answer is the edit that meets a target."""
    title = f"seek {seek.path.rpartition('.')[2]}: {seek.target}"
    key = seek, state.session.scenario, state.view.y
    return BackgroundJob(title, state.session.scenario, sought_edit, (state.undo_state, seek), key)


def sought_edit(before: UndoState, seek: Seek) -> Edit:
    """Edit that meets a target, computed in a worker process."""
    state = ExplorerState(Session.unswept(before.inputs), before.variants, before.view)
    return Edit(seek.path, seek.sought(state))
