"""Worker processes of the explorer, forked from a process that has imported what they need.

A start costs some milliseconds of CPU time in place of 0.4 s. Run as a program, this module is that process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from multiprocessing.reduction import recv_handle, send_handle

PRELOADED = (
    "whatif.tui.jobs.worker",
    "whatif.tui.jobs.study_job",
    "whatif.studies.measured_points",
    "whatif.simulation.channel_nodes",
)


class PreloadedWorkers:
    """Starts processes in place of `subprocess`, whose names it has as far as the explorer's workers need them."""

    PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL

    def __init__(self):
        self._server = self._requests = None

    def Popen(self, command, *, env, **_pipes):  # noqa: N802 - the name in `subprocess`
        """The forked process that takes the place of a command."""
        assert command[1:] == ["-P", "-m", PRELOADED[0]]
        if self._server is None:
            self._start(env)
        return _Forked(self, env)

    def _start(self, env):
        self._requests, theirs = Pipe()
        words = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        self._server = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=env, pass_fds=[theirs.fileno()])
        theirs.close()

    def ask(self, *request, handles=()):
        """The server's answer to a request."""
        self._requests.send(request)
        for handle in handles:
            send_handle(self._requests, handle, self._server.pid)
        return self._requests.recv()

    def close(self):
        """End the server."""
        if self._server is not None:
            self._requests.close()
            self._server.wait()


class _Forked:
    """What the explorer uses of a `Popen`."""

    def __init__(self, workers, env):
        (jobs, stdin), (stdout, answers) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self._workers, self.pid = workers, workers.ask("fork", dict(env), handles=(jobs, answers))
        os.close(jobs)
        os.close(answers)

    def poll(self):
        return self._workers.ask("poll", self.pid)

    def kill(self):
        self._workers.ask("kill", self.pid)

    def wait(self):
        return self._workers.ask("wait", self.pid)


class _Server:
    """Forks processes and ends them, as it is asked to."""

    def __init__(self, requests):
        self._requests = requests
        self._codes = {}

    def serve(self):
        """Answer until the other side has ended."""
        while True:
            try:
                name, value = self._requests.recv()
            except EOFError:
                return
            self._requests.send(getattr(self, name)(value))

    def fork(self, env):
        jobs, answers = (recv_handle(self._requests) for _ in range(2))
        pid = os.fork()
        if not pid:
            self._requests.close()
            _work(jobs, answers, env)
        os.close(jobs)
        os.close(answers)
        self._codes[pid] = None
        return pid

    def poll(self, pid, options=os.WNOHANG):
        """How a process has ended; None while it runs. An ended one is not looked for: its number may be another's."""
        if self._codes[pid] is None and os.waitpid(pid, options) != (0, 0):
            self._codes[pid] = 1
        return self._codes[pid]

    def wait(self, pid):
        return self.poll(pid, 0)

    def kill(self, pid):
        if self.poll(pid) is None:
            os.kill(pid, signal.SIGKILL)


def _work(jobs, answers, env):
    """Be a worker process, to its end."""
    for handle, number in ((jobs, 0), (answers, 1)):
        os.dup2(handle, number)
        os.close(handle)
    os.environ.clear()
    os.environ.update(env)
    import_module(PRELOADED[0]).main()
    os._exit(0)


def main():
    """Import, then fork on request."""
    # An interrupt on the terminal is meant for the tests.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        import_module(name)
    _Server(Connection(int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
