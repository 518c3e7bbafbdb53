"""Export of the plot on the screen to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.app import App

from whatif.api.editing import command_line
from whatif.errors import WhatifError
from whatif.paths import user_path
from whatif.tui.dialogs.windows import path_to_write
from whatif.tui.jobs.worker import run_once
from whatif.tui.pages.page import Page
from whatif.tui.widgets.plot_view import PlotView

if TYPE_CHECKING:
    from whatif.tui.state import ExplorerState


def plot_of(page: Page[Any]) -> PlotView | None:
    """The plot that a page shows; None without one."""
    return next((plot for plot in page.query(PlotView) if plot.seen is not None), None)


async def export_plot(app: App[Any], page: Page[Any], state: ExplorerState) -> None:
    """Ask for a file name, and write the plot of a page in its format."""
    plot = plot_of(page)
    description = None if plot is None else plot.exported
    if description is None:
        return
    title = "Export to (.svg .png .pdf .csv .json .md .html .sh .txt)"
    path = await path_to_write(app, title, f"{page.NAME}.svg", user_path)
    if path is None:
        return
    from whatif.api.exporting import SCRIPT, write_plot  # noqa: PLC0415 - not for the first frame

    try:
        needed = path.suffix.lower() == SCRIPT
        command = page.command or command_line(state.session.scenario, state.session.grid.axes) if needed else ""
        app.notify(await run_once(write_plot, description, path, command))
        # An earlier export may have failed.
        page.report("")
    except WhatifError as problem:
        page.report(str(problem))
