"""Runs jobs in a worker process that can be killed, so the GIL never blocks the user interface."""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock, Thread
from typing import IO, Any, TypeVar

from whatif.errors import WhatifError

# This import is what every job needs; it is made while nobody waits for it.
from whatif.tui.commands.performing import INTERNAL
from whatif.tui.jobs.pickling import answer_from_bytes, answer_to_bytes

Value = TypeVar("Value")
Answer = tuple[bool, Any]
Report = Callable[[Any], None]
"""Callback for results that a job reports before it ends."""
Shared = Iterable[tuple[object, object]]
"""Objects among the arguments of a job, each with its reference in the answer."""


class _Process:
    """A worker process and the two pipes to it."""

    def __init__(self) -> None:
        # No folder of the user's may hold a module that takes the place of one of ours: -P.
        places = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "whatif.tui.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": places},
        )
        self.thread: Thread | None = None
        self.busy = False
        self._lost = False

    @property
    def alive(self) -> bool:
        return not self._lost and self.process.poll() is None

    def ask(self, job: tuple[Any, ...], report: Report, shared: Shared) -> Answer:
        """Send a job and wait for its answer; results before it go to the callback."""
        sent, own = tuple(zip(*shared, strict=True)) or ((), ())
        try:
            jobs, answers = self._pipes()
            _write(jobs, pickle.dumps((sent, *job), pickle.HIGHEST_PROTOCOL))
            while True:
                good, value = answer_from_bytes(_read(answers), own)
                if good is not None:
                    return good, value
                report(value)
        except (OSError, EOFError):
            # Only the operating system ends it unasked, and `poll` notices that a little later.
            self._lost = True
            text = "the computation was ended by the system; it may need more memory than is available"
            return False, WhatifError(text)
        except Exception as problem:
            return False, _internal(problem)

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        jobs, answers = self.process.stdin, self.process.stdout
        if jobs is None or answers is None:
            raise ValueError("the process was started without pipes")
        return jobs, answers

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        if self.thread is not None:
            self.thread.join()
        for pipe in self._pipes():
            with suppress(OSError):
                pipe.close()


# Idle processes: the next scenario need not wait for a new one.
_IDLE: list[_Process] = []


@atexit.register
def _end() -> None:
    while _IDLE:
        _IDLE.pop().kill()


class Worker:
    """Worker process for one job at a time, started by `warm` or by the first job."""

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._closed = False

    def warm(self) -> None:
        """Start the process, so that the first job need not wait for its imports."""
        if not self._closed:
            self._ready()

    def _ready(self) -> _Process:
        if self._process is None or not self._process.alive:
            self.stop()
            while _IDLE and not _IDLE[-1].alive:
                _IDLE.pop().kill()
            self._process = _IDLE.pop() if _IDLE else _Process()
        return self._process

    def stop(self) -> None:
        """Kill the process and its job."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Release the process: an idle one is reused, a busy one killed."""
        process, self._process, self._closed = self._process, None, True
        if process is not None and process.alive and not process.busy:
            _IDLE.append(process)
        elif process is not None:
            process.kill()

    async def run(
        self, function: Callable[..., Value], *arguments: Any, report: Report | None = None, shared: Shared = ()
    ) -> Value:
        """Result of `function(*arguments)` in the process, which is killed if the task is cancelled.

        Raises what the function raises. With `report`, the function gets a callback as its last argument, which it may
        call from any thread. Shared objects in the result are those of this process, not copies.
        """
        process, folder = self._ready(), os.curdir
        with suppress(OSError):
            # Names of files are relative to this folder.
            folder = os.getcwd()  # noqa: PTH109 - a text is all that is needed
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Value] = loop.create_future()

        def hand(action: Callable[..., None], *items: Any) -> None:
            # The program may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(action, future, *items)

        def exchange() -> None:
            job = folder, function, arguments, report is not None
            answer = process.ask(job, lambda value: hand(_report, report, value), shared)
            # Whoever gets the answer may release the process before this thread has ended.
            process.busy = False
            hand(_settle, *answer)

        process.busy = True
        # Threads of the loop's own pool would hold up the end of the program.
        process.thread = Thread(target=exchange, daemon=True, name="whatif worker")
        process.thread.start()
        try:
            return await future
        except asyncio.CancelledError:
            if self._process is process:
                self.stop()
            raise


async def run_once(function: Callable[..., Value], *arguments: Any) -> Value:
    """Result of a function in a worker process of its own. Raise what the function raises."""
    worker = Worker()
    try:
        return await worker.run(function, *arguments)
    finally:
        worker.close()


def _settle(future: asyncio.Future[Value], good: bool, value: Any) -> None:
    if not future.done():
        (future.set_result if good else future.set_exception)(value)


def _report(future: asyncio.Future[Value], report: Report, value: Any) -> None:
    if not future.done():
        report(value)


def _write(pipe: IO[bytes], text: bytes) -> None:
    pipe.write(len(text).to_bytes(8, "little") + text)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    size = int.from_bytes(_exactly(pipe, 8), "little")
    return _exactly(pipe, size)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    text = pipe.read(size)
    if len(text) < size:
        raise EOFError
    return text


def serve(jobs: IO[bytes], answers: IO[bytes]) -> None:
    """Perform jobs until the pipe is closed."""
    lock = Lock()

    def tell(value: Any) -> None:
        with lock:
            _write(answers, pickle.dumps((None, value), pickle.HIGHEST_PROTOCOL))

    with suppress(EOFError, BrokenPipeError):
        while True:
            _write(answers, _answer(_read(jobs), tell))


def _answer(job: bytes, tell: Report) -> bytes:
    try:
        # Written by the process that started this one.
        sent, folder, function, arguments, tells = pickle.loads(job)  # noqa: S301
    except Exception as problem:
        return answer_to_bytes((False, _internal(problem)), ())
    with suppress(OSError):
        os.chdir(folder)
    return answer_to_bytes(_outcome(function, (*arguments, *([tell] if tells else []))), sent)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Answer:
    try:
        return True, function(*arguments)
    except MemoryError:
        return False, WhatifError("this needs more memory than is available")
    except WhatifError as problem:
        return False, problem
    except Exception as problem:
        return False, _internal(problem)


def _internal(problem: Exception) -> WhatifError:
    return WhatifError(f"{INTERNAL}: {type(problem).__name__}: {problem}")


def _watch(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def main() -> None:
    """Serve jobs over stdin and stdout; nothing else may write there."""
    Thread(target=_watch, args=(os.getppid(),), daemon=True).start()
    # An interrupt on the terminal is meant for the program in front.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
