"""Base of the main screen: keys that ask for a command of the explorer or open a window, and background jobs."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on, work
from textual.screen import Screen

from whatif.errors import WhatifError
from whatif.tui.commands.explorer_commands import Change, Choose, Pin, Revert, Show
from whatif.tui.dialogs.windows import TextDialog
from whatif.tui.events import BackgroundRequested, ChangeRequested, EditorRequested, FileRequested, NewScenarioRequested
from whatif.tui.jobs.background import BackgroundJob, BackgroundJobs, JobStage
from whatif.tui.jobs.latest_only import LatestOnly
from whatif.tui.pages.page import Page
from whatif.tui.state import ExplorerState, View
from whatif.tui.variants.variant_commands import Fork, Go
from whatif.tui.widgets.parameter_tree import ParameterTree


class CommandScreen(Screen[None]):
    """Actions of keys that work on every page; jobs, whose answers go to the page that asks the same."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    """No widget that takes the focus where none has it: Textual would choose the parameters even where hidden."""
    state: ExplorerState
    latest: LatestOnly

    def __init__(self, jobs: BackgroundJobs) -> None:
        super().__init__()
        # They go on where another scenario is opened, on another screen.
        self.jobs = jobs
        jobs.changed = self._job_changed

    @property
    def is_ready(self) -> bool:
        """Whether the widgets exist; answers may come before all are mounted, or while they are removed."""
        # Textual displays nothing that it is about to remove.
        return self.is_mounted and self.display

    @property
    def page(self) -> Page[Any]:
        """The visible page."""
        raise NotImplementedError

    def _show_texts(self) -> None:
        raise NotImplementedError

    def fail(self, error: str) -> None:
        """Show an error in the status line; an empty text clears it."""
        raise NotImplementedError

    def change(self, change: Change | Choose) -> None:
        """Ask for a change."""
        self.post_message(ChangeRequested(change))

    def action_go(self, name: str) -> None:
        """Go to another page."""
        self.change(Show("screen", name))

    def action_decide(self, name: str) -> None:
        """Go to one of the questions of the page `decide`."""
        self.change(Show("decide.decision", name))
        self.action_go("decide")

    def action_pin(self) -> None:
        """Set the present values as the baseline."""
        self.change(Pin())

    def action_fork(self) -> None:
        """Fork the present values into a new variant."""
        self.change(Fork())

    def action_variant(self) -> None:
        """Go to the next variant."""
        following = self.state.next_variant()
        if following:
            self.change(Go(following))
        else:
            self.fail("there is no other variant: f forks the present values")

    def action_marker(self) -> None:
        """Draw curves with other dots."""
        self.change(Choose("marker", self._next_marker))

    def _next_marker(self, view: View) -> object:
        """Marker after that of a view: pixels only where the terminal has graphics."""
        following = view.next_of("marker")
        graphics = getattr(self.app, "graphics", None)
        if following == "pixels" and not (graphics and graphics.available):
            return view.with_entry("marker", "pixels").next_of("marker")
        return following

    def action_revert(self) -> None:
        """Discard all edits."""
        self.change(Revert())

    @on(NewScenarioRequested)
    @work
    async def action_new_scenario(self) -> None:
        """Put a scenario together, with a machine of one's own, and open it."""
        from whatif.tui.dialogs.scenario_dialogs import make_scenario  # noqa: PLC0415 - not for the first frame

        try:
            path = await make_scenario(self.app, self.state)
        except WhatifError as problem:
            self.fail(str(problem))
        else:
            if path is not None:
                self.post_message(FileRequested(str(path)))

    def action_edit_file(self) -> None:
        """Open the file of the parameter or table under the cursor in the editor."""
        self.post_message(EditorRequested(self.query_one(ParameterTree).place))

    @work
    async def action_export(self) -> None:
        """Write the plot of the visible page to a file."""
        from whatif.tui.files.export import export_plot  # noqa: PLC0415 - not for the first frame

        await export_plot(self.app, self.page, self.state)

    def action_help(self) -> None:
        """Explain what has the focus, and its keys."""
        from whatif.tui.screens.help import help_text  # noqa: PLC0415 - not for the first frame

        self.app.push_screen(TextDialog(*help_text(self, self.page, self.query_one(ParameterTree))))

    @on(BackgroundRequested)
    def _start_job(self, event: BackgroundRequested) -> None:
        self.notify(self.jobs.start(event.job))

    def answered_before(self) -> bool:
        """Whether a job in the background has the answer of the page, which then shows it."""
        known = self.jobs.answer(self.page.answer_key)
        if known is not None:
            self.page.take(known)
        return known is not None

    def _job_changed(self, job: BackgroundJob) -> None:
        if not self.is_ready:
            return
        if not job.active and job.stage is not JobStage.STOPPED:
            words = f"failed: {job.error}" if job.error else "is done"
            self.notify(f"{job.title} {words}; L lists the jobs")
            if self.answered_before():
                self.latest.stop()
        self._show_texts()
        for screen in self.app.screen_stack:
            if isinstance(screen, _dialog()):
                screen.show()

    @work
    async def action_jobs(self) -> None:
        """List the jobs in the background, and go to the answer of one."""
        chosen = await self.app.push_screen_wait(_dialog()(self.jobs, lambda: self.state.session.scenario))
        if chosen is None:
            return
        if not chosen.is_of_file(self.state.session.scenario):
            self.post_message(FileRequested(chosen.scenario.document.name, chosen.changes))
            return
        for change in chosen.changes:
            self.change(change)


def _dialog() -> type[Any]:
    from whatif.tui.dialogs.job_list import JobsDialog  # noqa: PLC0415 - not for the first frame

    return JobsDialog
