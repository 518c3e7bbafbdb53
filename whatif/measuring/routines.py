"""Routines of C and Fortran libraries by address: the clock, and BLAS, that of scipy or of a library file."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError
from whatif.simulation.jit import ROUTINE, jitted

BLAS: Final = ("dgemm", "dtrsm", "dtrsv", "dgemv", "dger", "daxpy", "dscal", "idamax")
"""Routines of BLAS that HPL calls."""
OWN: Final = ("dlaswp00n", "dlaswp01t", "dlaswp02n", "dlaswp03t", "dlaswp04t", "dlacpy", "dlatcpy")
"""HPL's own copies, in the order of `kernels.SWAP` and the others."""
_LETTERS: Final = "NTLU"
# Arguments of a call with the sizes m, n, k of HPL: letters, sizes, the scalars 1 and -1, and the three arrays.
_CALLS: Final = {
    "dgemm": "N T m n k minus panel m rows n one matrix lead",
    "dtrsm": "L U T U m n one panel m matrix lead",
    "dtrsv": "U N N n panel n matrix step",
    "dgemv": "N m n minus matrix lead rows step one panel step",
    "dger": "m n minus panel step rows step matrix lead",
    "daxpy": "n minus panel step matrix step",
    "dscal": "n one matrix step",
    "idamax": "n matrix step",
}


class Blas:
    """A BLAS: that of scipy, or of a shared library with 32-bit integers."""

    def __init__(self, library: str | None = None) -> None:
        self.addresses = _scipy_addresses() if library is None else _library_addresses(library)

    def arguments(self, name: str, places: dict[str, int]) -> list[int]:
        """Addresses of the arguments of a call, padded to the number that every routine is called with."""
        found = [places[word] for word in _CALLS[name].split()]
        return found + [0] * (ROUTINE - len(found))


def blas_name(library: str | None) -> str:
    """Name of a BLAS for the source of a value."""
    if library is not None:
        return Path(library).resolve().name
    import scipy

    stated = scipy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{stated['name']} {stated['version']} of scipy {scipy.__version__}"


def clock_block() -> NDArray[np.int64]:
    """Arguments of `kernels.now`: keep the array, whose own address is in it, as long as it is used."""
    library = ctypes.CDLL(None)
    block = np.zeros(3 + ROUTINE, dtype=np.int64)
    block[0] = ctypes.cast(library.clock_gettime, ctypes.c_void_p).value or 0
    block[3:5] = time.CLOCK_MONOTONIC, block.ctypes.data + 8
    return block


def places_of(
    letters: NDArray[np.uint8], sizes: NDArray[np.int32], scalars: NDArray[Any], arrays: Sequence[NDArray[Any]]
) -> dict[str, int]:
    """Addresses of the words of `_CALLS`; `sizes` are m, n, k, lead and 1, `scalars` 1 and -1."""
    named = {letter: letters.ctypes.data + at for at, letter in enumerate(_LETTERS)}
    named |= {word: sizes.ctypes.data + 4 * at for at, word in enumerate(("m", "n", "k", "lead", "step"))}
    named |= {word: scalars.ctypes.data + scalars.itemsize * at for at, word in enumerate(("one", "minus"))}
    return named | {word: array.ctypes.data for word, array in zip(("matrix", "panel", "rows"), arrays, strict=True)}


def letters_array() -> NDArray[np.uint8]:
    """The letters of BLAS as memory."""
    return np.frombuffer(_LETTERS.encode(), dtype=np.uint8).copy()


@cache
def compiled() -> dict[str, Any]:
    """The timed loops of `kernels`, compiled when they are first called."""
    from whatif.measuring import kernels

    entries = ("triad", "convolution", "multiply_add", "routine", "hpl_calls", "ping_pong", "collective")
    return dict(zip(entries, jitted((kernels,), entries, calling=True), strict=True))


def _scipy_addresses() -> dict[str, int]:
    from scipy.linalg import cython_blas

    capsules = cython_blas.__pyx_capi__
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return {routine: pointer(capsules[routine], name(capsules[routine])) for routine in (*BLAS, "sgemm")}


def _library_addresses(library: str) -> dict[str, int]:
    try:
        found = ctypes.CDLL(library)
        return {
            routine: ctypes.cast(getattr(found, f"{routine}_"), ctypes.c_void_p).value or 0
            for routine in (*BLAS, "sgemm")
        }
    except (OSError, AttributeError) as error:
        said = re.sub(r"\s+", " ", str(error))
        raise UsageError(f"--blas {library}: no BLAS with Fortran names, such as `dgemm_`: {said}") from None
