"""Lists of different lengths in one array, one after another: the first index of each, and the indices of its items."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.int64]


def list_starts(counts: ArrayLike) -> Numbers:
    """First index of lists with some numbers of items [list], and the end of the last one: [list + 1]."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def list_items(first: int | NDArray[Any], counts: NDArray[Any]) -> Numbers:
    """Indices [item] of the items of lists that begin at `first` [list]; from 0, the place of each item in its list."""
    starts = list_starts(counts)
    return np.repeat(first - starts[:-1], counts) + np.arange(starts[-1])
