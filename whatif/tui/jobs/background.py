"""Jobs that take minutes: run one after another in a worker process, whichever page is visible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from whatif.core.scenario import Scenario
from whatif.errors import WhatifError
from whatif.tui.commands.explorer_commands import Change, Edit
from whatif.tui.jobs.job import sparingly
from whatif.tui.jobs.worker import Report, Worker
from whatif.tui.variants.variant_set import scenario_key

MOST_JOBS: Final = 20
"""Jobs in the list; the oldest that has ended makes room for another one."""


class JobStage(Enum):
    """Progress of a job."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(slots=True, eq=False)
class BackgroundJob:
    """A function of a module with its arguments, the scenario that it answers for, its progress and its answer."""

    title: str
    scenario: Scenario
    """Scenario with the values that the answer is for."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    key: object = None
    """Inputs of the answer: a page with the same inputs shows it."""
    seconds: float = 0.0
    """Estimated duration; 0 if unknown."""
    opens: tuple[Change, ...] = ()
    """Commands that lead to the page of the answer."""
    stage: JobStage = JobStage.WAITING
    progress: str = ""
    answer: Any = None
    error: str = ""

    @property
    def active(self) -> bool:
        """Whether the job runs or waits for its turn."""
        return self.stage in (JobStage.WAITING, JobStage.RUNNING)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Commands that lead to the answer."""
        return (*((self.answer,) if isinstance(self.answer, Edit) else ()), *self.opens)

    @property
    def words(self) -> str:
        """Stage, progress and about how long it takes."""
        if not self.active:
            return self.error or self.stage.value
        about = f"about {max(self.seconds / 60, 1):,.0f} min" if self.seconds else ""
        return ", ".join(filter(None, (self.stage.value, self.progress, about)))

    def is_of(self, scenario: Scenario) -> bool:
        """Whether the answer is for the values of a scenario."""
        return self.is_of_file(scenario) and scenario_key(self.scenario) == scenario_key(scenario)

    def is_of_file(self, scenario: Scenario) -> bool:
        """Whether the answer is for the file of a scenario, whatever the values."""
        return self.scenario.document.name == scenario.document.name


class BackgroundJobs:
    """The list of jobs, the newest first; `changed(job)` is called at every start, progress and end."""

    def __init__(
        self, changed: Callable[[BackgroundJob], None] = lambda job: None, worker: Callable[[], Worker] = Worker
    ) -> None:
        self.items: list[BackgroundJob] = []
        self.changed, self._new_worker = changed, worker
        self._running: tuple[BackgroundJob, Worker, asyncio.Task[None]] | None = None

    @property
    def line(self) -> str:
        """The running job in a few words; empty without one."""
        running = next((job for job in self.items if job.stage is JobStage.RUNNING), None)
        waiting = sum(job.stage is JobStage.WAITING for job in self.items)
        more = f" (+{waiting})" if waiting else ""
        return "" if running is None else f"in the background{more}: {running.title}, {running.words}"

    def start(self, job: BackgroundJob) -> str:
        """Start or queue a job; returns the message for the user."""
        same = next((its for its in self.items if its.active and its.key == job.key and its.title == job.title), None)
        if same is not None:
            return f"{job.title} is in the background already; L lists the jobs"
        ended = [its for its in self.items if not its.active]
        if len(self.items) >= MOST_JOBS:
            if not ended:
                return f"{MOST_JOBS} jobs are waiting; stop one of them first (L lists them)"
            self.items.remove(ended[-1])
        self.items.insert(0, job)
        self._next()
        return f"{job.title} is computed in the background; L lists the jobs"

    def _next(self) -> None:
        waiting = [job for job in self.items if job.stage is JobStage.WAITING]
        if self._running is None and waiting:
            job, worker = waiting[-1], self._new_worker()
            job.stage = JobStage.RUNNING
            task = asyncio.get_running_loop().create_task(self._work(job, worker))
            self._running = job, worker, task
            self.changed(job)

    async def _work(self, job: BackgroundJob, worker: Worker) -> None:
        def report(text: str) -> None:
            job.progress = text
            self.changed(job)

        try:
            job.answer = await worker.run(counting, job.function, job.arguments, report=report)
            job.stage = JobStage.DONE
        except WhatifError as problem:
            job.stage, job.error = JobStage.FAILED, str(problem)
        worker.close()
        self._running = None
        self.changed(job)
        self._next()

    def stop(self, job: BackgroundJob) -> None:
        """Stop a job, or take one that has ended from the list."""
        if not job.active:
            self.items.remove(job)
            return
        job.stage = JobStage.STOPPED
        if self._running is not None and self._running[0] is job:
            self._end()
        self.changed(job)
        self._next()

    def _end(self) -> None:
        if self._running is not None:
            _, worker, task = self._running
            self._running = None
            task.cancel()
            worker.stop()
            worker.close()

    def close(self) -> None:
        """Stop all jobs."""
        for job in self.items:
            job.stage = JobStage.STOPPED if job.active else job.stage
        self._end()

    def answer(self, key: object) -> Any:
        """Answer of the job with a key; None without one."""
        return next((job.answer for job in self.items if key and job.key == key and job.stage is JobStage.DONE), None)

    def earlier(self, title: str) -> BackgroundJob | None:
        """The newest answered job of a title, whatever values it was asked for."""
        return next((job for job in self.items if job.title == title and job.stage is JobStage.DONE), None)


def counting(function: Callable[..., Any], arguments: tuple[Any, ...], report: Report) -> Any:
    """Result of a function in a worker process, which reports how many points it has simulated."""
    from whatif.studies.simulation_count import simulations_counted  # noqa: PLC0415 - only the worker process needs it

    with simulations_counted(sparingly(report)):
        return function(*arguments)
