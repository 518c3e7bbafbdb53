"""Long work beside the event loop, in a thread that nobody has to wait for: not the next one, not the exit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import BoundedSemaphore, Thread
from typing import TypeVar

Value = TypeVar("Value")

# One that nobody waits for any more must not keep the next one waiting; more would only slow each other down.
_TURNS = BoundedSemaphore(2)


async def beside(work: Callable[[Callable[[], bool]], Value]) -> Value:
    """The value of `work`, which is given a function that says whether anybody still waits for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Value] = loop.create_future()

    def run() -> None:
        with _TURNS:
            if not future.cancelled():
                _settle(loop, future, work)

    # Threads of the loop's own pool would hold up the end of the program.
    Thread(target=run, daemon=True, name="whatif evaluation").start()
    return await future


def _settle(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Value], work: Callable[[Callable[[], bool]], Value]
) -> None:
    try:
        value = work(future.cancelled)
    except Exception as problem:
        _tell(loop, future, partial(future.set_exception, problem))
    else:
        _tell(loop, future, partial(future.set_result, value))


def _tell(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Value], settle: Callable[[], None]) -> None:
    def tell() -> None:
        if not future.done():
            settle()

    # The program may have ended meanwhile.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(tell)
