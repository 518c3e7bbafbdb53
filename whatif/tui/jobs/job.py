"""Job that a page asks a worker process to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Job(NamedTuple):
    """Function of a module to run in a worker process, and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    reports: bool = False
    """Whether the function takes one more argument, a callback for results that come before its return value."""
