"""Job that a page asks a worker process to do, and its reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

_REPORT_SECONDS: Final = 0.1


class Job(NamedTuple):
    """Function of a module to run in a worker process, and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    reports: bool = False
    """Whether the function takes one more argument, a callback for results that come before its return value."""


def sparingly(report: Callable[[Any], None]) -> Callable[[Any], None]:
    """Callback that reports at most one value in a short interval, as a reader could not follow more."""
    last = -_REPORT_SECONDS

    def reported(value: Any) -> None:
        nonlocal last
        if time.monotonic() >= last + _REPORT_SECONDS:
            last = time.monotonic()
            report(value)

    return reported
