"""Row swap along a process column: pairs of processes, by distance from the pivot block's row.

In the binary exchange the pivot block's row passes its own rows (U) along a hypercube while the others gather theirs
(W) for it. Spread-roll scatters U along a tree, evens the pieces out and rolls them round.
Source: the structure of HPL 2.2, HPL_pdlaswp00T and HPL_pdlaswp01T.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from whatif.linpack.simulation.rolling import roll_pairs
from whatif.models.quantities import IntArray

NOTHING: Final = 0
ROWS_OF_BLOCK: Final = 1
GATHERED: Final = 2
"""Rows that a process sends: none, those of the pivot block, or gathered ones."""
NO_KERNEL, RUN_DLASWP03T, RUN_DLASWP04T = 0, 1, 2
"""Kernel of a process after an exchange."""
_Side = tuple[int, int, int]
_NONE: Final = (NOTHING, 0, 0)
_BLOCK: Final = (ROWS_OF_BLOCK, 0, 0)


class Exchanges(NamedTuple):
    """Exchanges of one column swap over `P` processes, in a feasible order."""

    binary: IntArray
    """[exchange, 10]: a, b; kind of the rows that a sends, and their span of gathered rows; likewise for b; the kernels
    of a and b on the received rows: 1 dlaswp03T, 2 dlaswp04T."""
    roll: IntArray
    """[exchange, 4]: as `roll_pairs`."""
    cube: int
    """Processes in the hypercube, the largest power of two."""


def exchanges_of(count: int) -> Exchanges:
    """Both algorithms over `count` processes."""
    cube = 1 << (count.bit_length() - 1)
    found = [*_fold(count, cube), *_along(cube), *_among_folded(count, cube), *_unfold(count, cube)]
    return Exchanges(np.array(found, dtype=np.int64).reshape(-1, 10), roll_pairs(count), cube)


def _entry(
    a: int, b: int, from_a: _Side, from_b: _Side, after_a: int = NO_KERNEL, after_b: int = NO_KERNEL
) -> tuple[int, ...]:
    return (a, b, *from_a, *from_b, after_a, after_b)


def _fold(count: int, cube: int) -> list[tuple[int, ...]]:
    """Processes beyond the power of two give their rows to the one below; the first one gets the block's."""
    found: list[tuple[int, ...]] = []
    for extra in range(cube, count):
        back = _BLOCK if extra == cube else _NONE
        after = RUN_DLASWP03T if extra == cube else NO_KERNEL
        found.append(_entry(extra, extra - cube, (GATHERED, extra, extra + 1), back, NO_KERNEL, after))
    return found


def _along(cube: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    step = 1
    while step < cube:
        for base in range(0, cube, 2 * step):
            mine, theirs = (GATHERED, base, base + step), (GATHERED, base + step, base + 2 * step)
            sides = (_BLOCK, theirs, RUN_DLASWP03T, RUN_DLASWP04T) if base == 0 else (mine, theirs)
            found.extend(_entry(a, a + step, *sides) for a in range(base, base + step))
        step *= 2
    return found


def _among_folded(count: int, cube: int) -> list[tuple[int, ...]]:
    """Exchanges in which the first of the folded processes broadcasts the rows to the others."""
    size, step = count - cube, 1
    found: list[tuple[int, ...]] = []
    while step * 2 < size:
        step *= 2
    while step and size > 1:
        receivers = range(cube + step, count, 2 * step)
        found.extend(_entry(receiver - step, receiver, _BLOCK, _NONE) for receiver in receivers)
        step //= 2
    return found


def _unfold(count: int, cube: int) -> list[tuple[int, ...]]:
    return [_entry(extra - cube, extra, _BLOCK, _NONE) for extra in range(cube, count)]
