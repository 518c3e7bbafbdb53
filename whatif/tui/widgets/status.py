"""Line above the keys: an error, infeasible points, extrapolations, or the sweep."""

from __future__ import annotations

from textual.content import Content

from whatif.tui.labels import MUTED, brief
from whatif.tui.state import ExplorerState
from whatif.tui.widgets.unchanged import KeptStatic
from whatif.units import counted


class Status(KeptStatic):
    """One line, of an error up to three; the whole of a longer message is a tooltip, and a window on demand.

    `has_message`: there is a message.
    """

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.full = ""
        self.has_message = False

    def show(
        self, state: ExplorerState, error: str = "", *, busy: bool = False, background: str = "", own: str = ""
    ) -> None:
        """Show the most important message: an error, else background jobs, else the rest.

        `own`: text of a page about something else, shown instead of the sweep and the edits of the scenario.
        """
        mark, style, self.full = _message(state, error, own, busy=busy)
        self.has_message = bool(mark) and not busy
        line = " ".join(brief(self.full).split())
        line = f"{background} · {line}" if background and not error else line
        self.tooltip = Content(self.full) if mark else None
        self.set_class(bool(error), "-error")
        self.update(Content.assemble((f"{mark} " if mark else "", f"bold {style}"), (line, style)), layout=bool(error))

    async def on_click(self) -> None:
        """Open the whole message."""
        if self.has_message:
            await self.run_action("screen.detail")


def _message(state: ExplorerState, error: str, own: str = "", *, busy: bool) -> tuple[str, str, str]:
    """Mark, style and text of the line."""
    if error:
        return "✗", "$text-error", error
    if busy:
        return "…", MUTED, "computing; Esc stops it"
    if own:
        return "", MUTED, own
    if state.note:
        return "✓", "$text-success", state.note
    warning = _warning(state)
    return ("▲", "$text-warning", warning) if warning else ("", MUTED, _plain(state))


def _warning(state: ExplorerState) -> str:
    """Warning that qualifies the answer; empty without one."""
    session = state.session
    if reasons := session.at.reasons():
        # Numbers first: a narrow screen cuts the end.
        return ": ".join(filter(None, ("infeasible point", session.at.shortage(), "; ".join(reasons))))
    count, size = session.result.infeasible, session.grid.size
    if count and session.grid.axes:
        return f"{count} of {counted(size, 'point')} infeasible: {'; '.join(session.result.reasons)}"
    flat = _without_effect(state)
    if flat:
        return f"{flat} has no effect here: the curve is flat"
    return "; ".join(session.result.extrapolated)


def _without_effect(state: ExplorerState) -> str:
    program = state.session.program
    swept = (path for path in state.session.grid.parameters() if path in program.parameters)
    return next((p for p in swept if not program.parameters[p].structural and p not in program.reached), "")


def _plain(state: ExplorerState) -> str:
    session = state.session
    edited = state.edit_count
    swept = (
        f"{' x '.join(axis.name for axis in session.grid.axes)}: {counted(session.grid.size, 'point')}"
        if session.grid.axes
        else ""
    )
    changes = f"{counted(edited, 'value')} edited, not saved" if edited else "nothing edited"
    view = state.view
    drawn = (
        ""
        if view.samples is None and view.spread == "none"
        else f"samples {view.samples or 'off'}, spread {view.spread}"
    )
    return " · ".join(part for part in (swept, changes, drawn) if part)
