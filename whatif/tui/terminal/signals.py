"""Signals that quit the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress


def on_end(ended: Callable[[int], None]) -> None:
    """Call a function on SIGTERM and on SIGHUP, which a closed terminal sends; one that is ignored stays so.

    Windows has no SIGHUP.
    """
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, ended, number)
