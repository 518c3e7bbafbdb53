"""Workers: threads or processes of this machine, a cluster that is started on it, or a running cluster."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from whatif.errors import UsageError, WhatifError, require_least
from whatif.extras import install_command

if TYPE_CHECKING:
    from distributed import Client

Task = TypeVar("Task")
Value = TypeVar("Value")

_CONNECT_SECONDS: Final = 5
# Dask has workers give every array back to the system at once; to ask for its pages again takes half of their time.
_WORKER_ENVIRONMENT: Final = {
    "MALLOC_TRIM_THRESHOLD_": 2**28,
    "MALLOC_MMAP_THRESHOLD_": 2**28,
    "OMP_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
}
_AHEAD: Final = 2
"""Tasks submitted per worker: the one it works on, and the next one."""


@dataclass(frozen=True)
class Place:
    """Workers that run tasks in parallel; `count` returns how many there are now, `name` is the user's name."""

    name: str
    executor: Executor
    count: Callable[[], int]
    starting: Callable[[], AbstractContextManager[None]] = nullcontext
    """Context for submitting a task, which may start a worker."""
    writes: bool = False
    """Whether each worker is a process of this machine and can write files itself."""

    def outcomes(
        self, function: Callable[[Task], Value], tasks: Iterable[Task], *, ordered: bool
    ) -> Iterator[tuple[Task, Value]]:
        """Each task with its outcome, in order or as completed; only a few are submitted at a time.

        Function, tasks and outcomes are pickled. A cluster repeats a task whose worker is lost. Raise `UsageError` if
        workers are lost or fail.
        """
        waiting: dict[Future[Value], Task] = {}
        remaining = iter(tasks)
        while True:
            with self._failures_reported():
                room = _AHEAD * max(self.count(), 1) - len(waiting)
            for task in itertools.islice(remaining, max(room, 0)):
                with self._failures_reported(), self.starting():
                    waiting[self.executor.submit(function, task)] = task
            if not waiting:
                return
            first = itertools.islice(waiting, 1) if ordered else waiting
            for future in wait(list(first), return_when=FIRST_COMPLETED).done:
                task = waiting.pop(future)
                with self._failures_reported():
                    value = future.result()
                yield task, value

    @contextmanager
    def _failures_reported(self) -> Iterator[None]:
        try:
            yield
        except (WhatifError, MemoryError):
            raise
        except Exception as problem:
            raise UsageError(f"{self.name}: {_reason(problem)}") from problem


def _reason(problem: Exception) -> str:
    if isinstance(problem, CancelledError | OSError):
        return "the connection to the scheduler is lost"
    if isinstance(problem, BrokenProcessPool):
        return "a worker was ended by the system; it may need more memory than is available"
    if type(problem).__name__ == "KilledWorker":
        return "one part of the work ended every worker that tried it; it may need more memory than they have"
    return f"a worker failed: {type(problem).__name__}: {str(problem)[:300]}"


@contextmanager
def opened(on: str, worker_count: int | None = None) -> Iterator[Place]:
    """Workers at `threads`, `processes`, `local` (a cluster of dask.distributed for as long as this lasts) or the
    address of a running scheduler, such as `tcp://HOST:PORT`; `worker_count` is by default the cores of this machine.

    Raise `UsageError` for anything else, a scheduler that does not answer, or without the extra.
    """
    require_least("workers", worker_count, 1)
    start = {"threads": _threads, "processes": _processes, "local": _local_cluster}.get(on)
    if start is not None:
        with start(worker_count or core_count()) as place:
            yield place
    elif "://" not in on:
        raise UsageError(f"--on {on}: expected threads, processes, local, or a scheduler such as tcp://HOST:8786")
    elif worker_count is not None:
        raise UsageError(f"--workers has no effect on a running scheduler, {on}")
    else:
        with _cluster(on, on) as place:
            yield place


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _threads(count: int) -> Iterator[Place]:
    pool = ThreadPoolExecutor(count)
    try:
        yield Place("threads", pool, lambda: count)
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _processes(count: int) -> Iterator[Place]:
    others = set(multiprocessing.active_children())
    # A fork would inherit the threads of numpy and Arrow in whatever state they are.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _end_with_parent)
    try:
        yield Place("processes", pool, lambda: count, _interrupts_held, writes=True)
    finally:
        # Unfinished tasks are no longer needed.
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


def _end_with_parent() -> None:
    """End a worker whose program was killed; it would wait for work forever."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block SIGINT in workers that are started here: Ctrl-C on the terminal would make each print a traceback."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows has no mask of signals.
        yield
        return
    # If it were started later, it would unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _local_cluster(count: int) -> Iterator[Place]:
    try:
        import dask
        from distributed import LocalCluster
    except ImportError:
        raise _needs_extra() from None
    with _interrupts_held(), dask.config.set({"distributed.nanny.pre-spawn-environ": _WORKER_ENVIRONMENT}):
        cluster = LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
        )
    with cluster, _cluster(cluster.scheduler_address, "local", direct_to_workers=True) as place:
        yield place


@contextmanager
def _cluster(address: str, name: str, **options: bool) -> Iterator[Place]:
    try:
        from distributed import Client
    except ImportError:
        raise _needs_extra() from None
    # It would log tracebacks of errors that are reported here in one sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL + 1)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, **options)
    except (OSError, ValueError) as problem:
        raise UsageError(f"--on {name}: no scheduler answers there: {str(problem)[:200]}") from None
    try:
        workers = Workers(client)
        yield Place(name, workers, workers.count, writes=name == "local")
    finally:
        client.close(timeout=_CONNECT_SECONDS)


class Workers(Executor):
    """Workers of a cluster. Dask's own executor never completes a future whose connection is lost."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def count(self) -> int:
        """Number of tasks that run at a time. Raise `ConnectionError` if the scheduler is lost."""
        if self.client.status != "running":
            raise ConnectionError
        return sum(self.client.nthreads().values())

    def submit(self, function: Callable[..., Value], /, *tasks: Any, **options: Any) -> Future[Value]:
        """Future of a task that is submitted to any worker."""
        outcome: Future[Value] = Future()
        future = self.client.submit(function, *tasks, pure=False, **options)
        future.add_done_callback(partial(_pass_on, outcome))
        return outcome


def _pass_on(outcome: Future[Any], future: Any) -> None:
    try:
        outcome.set_result(future.result())
    except BaseException as problem:
        outcome.set_exception(problem)


def _needs_extra() -> UsageError:
    return UsageError(f"a cluster needs dask.distributed: {install_command('cluster')}")
