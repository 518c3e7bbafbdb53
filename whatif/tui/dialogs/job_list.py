"""Window with the jobs in the background: what they answer, how far they are, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from whatif.core.scenario import Scenario
from whatif.tui.jobs.background import BackgroundJob, BackgroundJobs, JobStage
from whatif.tui.widgets.data_table import Cell, TableRows, TableView
from whatif.tui.widgets.key_bar import KeyBar

_NONE = "No jobs yet. A question that takes minutes offers & to compute it in the background."
_PARTS = {JobStage.DONE: "marked", JobStage.RUNNING: "text", JobStage.WAITING: "text"}


class JobsDialog(ModalScreen[BackgroundJob | None]):
    """The list of jobs; returns the job whose answer is to be shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "x,delete", "stop", "stop or remove", tooltip="Stop the job, or remove it from the list", id="jobs.stop"
        ),
        Binding("escape,q,L", "dismiss(None)", "close", key_display="esc", id="jobs.close"),
    ]
    DEFAULT_CSS = """
    JobsDialog #window { height: auto; max-height: 80%; min-height: 8; }
    JobsDialog TableView { height: auto; min-height: 3; max-height: 16; }
    JobsDialog #asked { height: auto; max-height: 4; color: $text-muted; }
    """

    def __init__(self, jobs: BackgroundJobs, present: Callable[[], Scenario]) -> None:
        super().__init__()
        self._jobs, self._present = jobs, present

    def compose(self) -> ComposeResult:
        """The list, and the values that the job under the cursor was asked for."""
        with Vertical(id="window") as window:
            window.border_title = "jobs in the background"
            window.border_subtitle = "enter shows the answer"
            yield TableView()
            yield Static(id="asked", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the jobs."""
        self.show()
        self.query_one(TableView).focus()

    def show(self) -> None:
        """Show how far the jobs are."""
        rows = tuple(self._row(job) for job in self._jobs.items)
        self.query_one(TableView).show(TableRows(("stage", "question", "values"), rows, frozenset({0, 1, 2})))
        self._say()

    def _row(self, job: BackgroundJob) -> tuple[Cell, ...]:
        present = self._present()
        values = "present" if job.is_of(present) else "earlier"
        if not job.is_of_file(present):
            values = Path(job.scenario.document.name).stem
        return Cell(job.words, _PARTS.get(job.stage, "faint")), Cell(job.title, "text"), Cell(values, "faint")

    @property
    def _job(self) -> BackgroundJob | None:
        cursor = self.query_one(TableView).cursor
        return self._jobs.items[cursor] if cursor < len(self._jobs.items) else None

    @on(TableView.Pointed)
    def _say(self) -> None:
        """Show the inputs of the job."""
        self.query_one("#asked", Static).update(Content(_NONE if self._job is None else asked(self._job)))

    @on(TableView.Chosen)
    def _chosen(self) -> None:
        self.dismiss(self._job)

    def action_stop(self) -> None:
        """Stop the job under the cursor, or remove it from the list."""
        if self._job is not None:
            self._jobs.stop(self._job)
            self.show()


def asked(job: BackgroundJob) -> str:
    """The values that an answer is for, as far as they differ from the file."""
    scenario = job.scenario
    platform = [f"platform = {scenario.platform}"] if scenario.platform is not None else []
    values = [*platform, *(f"{path} = {text}" for path, text in scenario.overrides.items())]
    return f"asked for {', '.join(values) if values else 'the values of the file'}"
