"""A sweep of Jacobi's method in two dimensions: plain functions, which numba compiles."""

from __future__ import annotations

from typing import Any


def sweeps(new: Any, old: Any, count: int) -> None:
    """`count` sweeps of the five-point stencil, to and fro between two grids."""
    for _ in range(count // 2):
        one_sweep(new, old)
        one_sweep(old, new)


def one_sweep(new: Any, old: Any) -> None:
    """Mean of the four neighbours of each inner cell."""
    for row in range(1, old.shape[0] - 1):
        above, here, below, target = old[row - 1], old[row], old[row + 1], new[row]
        for column in range(old.shape[1] - 2):
            target[column + 1] = 0.25 * (above[column + 1] + below[column + 1] + here[column] + here[column + 2])
