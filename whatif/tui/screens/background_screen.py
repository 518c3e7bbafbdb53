"""Base of the main screen: the jobs in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.screen import Screen

from whatif.tui.events import BackgroundRequested, ChangeRequested, FileRequested
from whatif.tui.jobs.background import BackgroundJob, BackgroundJobs, JobStage

if TYPE_CHECKING:
    from whatif.tui.jobs.latest_only import LatestOnly
    from whatif.tui.pages.page import Page
    from whatif.tui.state import ExplorerState


class BackgroundScreen(Screen[None]):
    """Starts and lists jobs, and hands their answers to the page that asks the same."""

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

    @on(BackgroundRequested)
    def _start_job(self, event: BackgroundRequested) -> None:
        self._tell(self.jobs.start(event.job))

    def _tell(self, text: str) -> None:
        self.notify(text)

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
            self._tell(f"{job.title} {words}; L lists the jobs")
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
            self.post_message(ChangeRequested(change))


def _dialog() -> type[Any]:
    from whatif.tui.dialogs.job_list import JobsDialog  # noqa: PLC0415 - not for the first frame

    return JobsDialog
