"""One job at a time in a worker process; only the result of the last request is used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from textual.screen import UPDATE_PERIOD

from whatif.errors import WhatifError
from whatif.tui.jobs.job import Job
from whatif.tui.jobs.worker import Worker

_GRACE_SECONDS: Final = 0.5
"""Time that a superseded job may still take: starting a new process takes longer."""


class LatestOnly:
    """Passes results of the last request to `taken` and its error to `failed`; results of earlier ones are dropped."""

    def __init__(
        self, taken: Callable[[Any], None], failed: Callable[[str], None], grace: float = _GRACE_SECONDS
    ) -> None:
        self._taken, self._failed, self._grace = taken, failed, grace
        self._worker = Worker()
        self._task: asyncio.Task[None] | None = None
        self._wanted: Job | None = None
        self._began = 0.0

    @property
    def busy(self) -> bool:
        """Whether a job is running."""
        return self._task is not None

    def warm(self) -> None:
        """Start the process before it is needed."""
        self._worker.warm()

    def ask(self, job: Job) -> None:
        """Request a job in place of the last one."""
        self._wanted = job
        if self._task is None:
            self._begin()
        else:
            rest = self._grace - (time.perf_counter() - self._began)
            asyncio.get_running_loop().call_later(max(rest, 0.0), self._give_up, self._task)

    def stop(self) -> None:
        """Drop the request and kill its job."""
        self._wanted = None
        self._kill()

    def _kill(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._worker.stop()

    def close(self) -> None:
        """Drop the request and release the worker process."""
        self.stop()
        self._worker.close()

    def _give_up(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._kill()
            self._begin()

    def _begin(self) -> None:
        self._began = time.perf_counter()
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        # The frame of the edit is drawn first: to pickle the job takes some milliseconds.
        await asyncio.sleep(UPDATE_PERIOD)
        job, error, value = self._wanted, "", None
        if job is not None:
            try:
                report = partial(self._report, job) if job.reports else None
                value = await self._worker.run(job.function, *job.arguments, report=report)
            except WhatifError as problem:
                error = str(problem)
        self._task = None
        if self._wanted is not job:
            self._begin()
        elif error:
            self._failed(error)
        else:
            self._taken(value)

    def _report(self, job: Job, value: Any) -> None:
        if self._wanted is job:
            self._taken(value)
