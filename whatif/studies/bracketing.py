"""Root finder of the studies: repeated division of brackets, all of them in one evaluation per round.

The results of models have steps (whole ranks, whole cells, protocols), so that a bracket is narrowed by a condition
that holds at its upper and not at its lower end; methods that interpolate need a continuous function.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from whatif.models.quantities import FloatArray

Condition = Callable[[FloatArray], NDArray[np.bool_]]
"""Whether a condition holds at places [bracket, place]."""
Rounding = Callable[[FloatArray], FloatArray]


def narrowed(
    lower: FloatArray, upper: FloatArray, condition: Condition, *, parts: int, rounds: int,
    rounding: Rounding | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Ends [bracket] of narrower brackets, each around the first place from `lower` at which the condition holds.

    Every round divides each bracket into `parts`, up to `rounds` times. The condition is taken to hold at `upper`,
    which may lie below `lower`. With a `rounding` only whole numbers are tried, until they are neighbours.
    """
    shares, rows = np.linspace(0.0, 1.0, parts + 1)[1:-1], np.arange(len(lower))
    for _ in range(rounds if len(lower) else 0):
        places = lower[:, None] + (upper - lower)[:, None] * shares
        if rounding is not None:
            places = np.clip(rounding(places), np.minimum(lower, upper)[:, None], np.maximum(lower, upper)[:, None])
        holds = np.pad(condition(places), ((0, 0), (0, 1)), constant_values=True)
        first = holds.argmax(axis=1)
        ends = np.column_stack([lower, places, upper])
        lower, upper = ends[rows, first], ends[rows, first + 1]
        if rounding is not None and (np.abs(upper - lower) <= 1).all():
            break
    return lower, upper
