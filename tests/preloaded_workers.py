"""Worker processes of the explorer, forked from a process that has imported what they need.

A start costs some milliseconds of CPU time in place of 0.4 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection

WORKER = "whatif.tui.jobs.worker"
PRELOADED = [WORKER, "whatif.tui.jobs.study_job", "whatif.studies.measured_points", "whatif.simulation.channel_nodes"]


class PreloadedWorkers:
    """Starts processes in place of `subprocess`, whose names it has as far as the explorer's workers need them."""

    PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL

    def __init__(self):
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload([__name__, *PRELOADED])

    def Popen(self, command, *, env, **_pipes):  # noqa: N802 - the name in `subprocess`
        """The forked process that takes the place of a command."""
        assert command[1:] == ["-P", "-m", WORKER]
        return _Forked(self._context, dict(env))


class _Forked:
    """What the explorer uses of a `Popen`."""

    def __init__(self, context, env):
        (jobs, stdin), (stdout, answers) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        theirs = Connection(jobs, writable=False), Connection(answers, readable=False)
        self._process = context.Process(target=_work, args=(*theirs, env), daemon=True)
        self._process.start()
        for end in theirs:
            end.close()
        self.pid, self.kill, self.wait = self._process.pid, self._process.kill, self._process.join

    def poll(self):
        return self._process.exitcode


def _work(jobs, answers, env):
    """Be a worker process, to its end."""
    for pipe, number in ((jobs, 0), (answers, 1)):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdin = os.fdopen(0)
    os.environ.clear()
    os.environ.update(env)
    import_module(WORKER).main()
    os._exit(0)
