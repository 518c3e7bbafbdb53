"""Memory of the explorer: what the garbage collector skips, and what goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from typing import Final

_ARENA_MAX: Final = -8
"""M_ARENA_MAX of glibc's malloc.h."""


def keep_memory() -> None:
    """Exclude what lives as long as the program from garbage collection: scanning it takes 30 ms at a key press."""
    gc.enable()
    gc.collect()
    gc.freeze()


def share_arena() -> None:
    """Let all threads allocate from one arena: those that wait for workers would keep some 10 MB of their own."""
    _call("mallopt", _ARENA_MAX, 1)


def return_memory() -> None:
    """Return freed memory to the system; the C library would keep some 10 MB between arrays."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    """Call a function of glibc; other C libraries do not have it."""
    if sys.platform == "linux":
        with suppress(AttributeError):
            getattr(ctypes.CDLL(None), name)(*arguments)
