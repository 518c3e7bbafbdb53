"""Simulations in threads."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from typing import TypeVar

from whatif.core.executors import core_count
from whatif.linpack.simulation.simulator import Progress

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
Reported = Callable[[int, float], None]
"""Function of the number of a run, counted from 0, and the finished share of its steps."""
Share = Callable[[float], None]
"""Function of the finished share of all runs."""


def silent(_: float) -> None:
    """Ignore the progress."""


def in_threads(
    simulated: Callable[[Task, Progress], Outcome], tasks: Iterable[Task], progress: Reported | None = None
) -> Iterator[Outcome]:
    """Outcomes in the order of the tasks, one thread for each core. All simulations end when the iteration does."""
    ended = Event()

    def run(number: int, task: Task) -> Outcome:
        def step_done(done: int, count: int) -> None:
            if ended.is_set():
                raise CancelledError
            if progress is not None:
                progress(number, done / count)

        return simulated(task, step_done)

    numbered = enumerate(tasks)
    # The first alone: several at once would each compile the model.
    for number, task in itertools.islice(numbered, 1):
        yield run(number, task)
    yield from _pooled(run, numbered, ended)


def all_in_threads(
    simulated: Callable[[Task, Progress], Outcome], tasks: Iterable[Task], progress: Share = silent
) -> list[Outcome]:
    """Outcomes of all tasks, whose shares of the progress are equal."""
    known = list(tasks)
    return list(in_threads(simulated, known, in_total(len(known), progress)))


def in_total(count: int, progress: Share) -> Reported:
    """Progress of single runs, reported as that of all of them."""
    shares = [0.0] * count

    def report(number: int, share: float) -> None:
        shares[number] = share
        progress(sum(shares) / count)

    return report


def _pooled(
    run: Callable[[int, Task], Outcome], numbered: Iterable[tuple[int, Task]], ended: Event
) -> Iterator[Outcome]:
    count = core_count()
    pool = ThreadPoolExecutor(count)
    waiting: deque[Future[Outcome]] = deque()
    try:
        for number, task in numbered:
            waiting.append(pool.submit(run, number, task))
            if len(waiting) > 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        ended.set()
        pool.shutdown(cancel_futures=True)
