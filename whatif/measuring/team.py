"""A team of workers: one process on each core, which start every round of a loop together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import numpy as np

from whatif.errors import UsageError
from whatif.models.quantities import FloatArray

_FLAG: Final = 64
"""Bytes of shared memory of one worker: a cache line."""
_ONE_THREAD: Final = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "GOTO_NUM_THREADS",
    "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


class Timer(Protocol):
    """Backend of the measurements; tests replace it."""

    def rounds(self, workers: int, count: int, **command: Any) -> FloatArray:
        """Start and end in s, of shape (rounds, workers, 2), of a loop that the first `workers` workers run at once."""
        ...


class Team(AbstractContextManager["Team"]):
    """Workers on given logical processors, each with one thread; they end with the block."""

    def __init__(self, processors: Sequence[int], library: str | None = None) -> None:
        self._turn = 0
        self._memory = tempfile.TemporaryFile()  # noqa: SIM115
        self._memory.truncate(_FLAG * len(processors))
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
        ending = [] if library is None else [library]
        self._workers: list[subprocess.Popen[str]] = []
        for rank, processor in enumerate(processors):
            words = [
                "-m",
                "whatif.measuring.core_worker",
                str(self._memory.fileno()),
                str(rank),
                str(processor),
                *ending,
            ]
            self._workers.append(self._started(words, environment))

    def rounds(self, workers: int, count: int, **command: Any) -> FloatArray:
        """See `Timer`. Raise `UsageError` for a worker that has ended."""
        taking_part = self._workers[:workers]
        text = json.dumps({**command, "count": workers, "rounds": count, "turn": self._turn + 1})
        self._turn += count
        for worker in taking_part:
            self._tell(worker, text)
        return np.stack([self._answer(worker) for worker in taking_part], axis=1) * 1e-9

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.communicate()
        self._memory.close()

    def _started(self, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        pipe, shared = subprocess.PIPE, [self._memory.fileno()]
        command = [sys.executable, *words]
        return subprocess.Popen(  # noqa: S603
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment, pass_fds=shared
        )

    def _tell(self, worker: subprocess.Popen[str], text: str) -> None:
        assert worker.stdin is not None
        try:
            worker.stdin.write(f"{text}\n")
            worker.stdin.flush()
        except BrokenPipeError:
            self._lost(worker)

    def _answer(self, worker: subprocess.Popen[str]) -> FloatArray:
        assert worker.stdout is not None
        line = worker.stdout.readline()
        if not line:
            self._lost(worker)
        times: FloatArray = np.array(json.loads(line), dtype=float)
        return times

    def _lost(self, worker: subprocess.Popen[str]) -> None:
        worker.kill()
        said = worker.communicate()[1].strip().splitlines()
        raise UsageError(f"a worker has ended: {said[-1] if said else f'exit code {worker.returncode}'}")
