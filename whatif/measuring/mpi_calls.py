"""Calls of the MPI library that mpi4py has loaded, by their addresses."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.simulation.jit import ROUTINE

_LIBRARY: Final = re.compile(r"\S*/libmpi[^/\s]*\.so\S*$", re.MULTILINE)


def address(name: str) -> int:
    """Address of a routine such as MPI_Send."""
    return int(ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0)


def arguments(words: Sequence[int]) -> NDArray[np.int64]:
    """Arguments of a call, padded to the number that every routine is called with."""
    return np.array([*words, *[0] * (ROUTINE - len(words))], dtype=np.uint64).view(np.int64)


def handle(thing: Any) -> int:
    """Handle of a communicator, a type or an operation of mpi4py."""
    from mpi4py import MPI

    return int(MPI._handleof(thing))


@cache
def _library() -> ctypes.CDLL:
    for path in dict.fromkeys(_LIBRARY.findall(Path("/proc/self/maps").read_text("utf-8", "surrogateescape"))):
        library = ctypes.CDLL(path)
        if hasattr(library, "MPI_Send"):
            return library
    raise OSError("the MPI library of mpi4py was not found in memory")
