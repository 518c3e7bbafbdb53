"""Spreading and rolling: one process scatters chunks along a binomial tree, then neighbours pass them round.

Both long broadcasts and the spread-roll row swap are made of these two (HPL_blong, HPL_spreadT, HPL_rollT).
"""

from __future__ import annotations

import numpy as np

from whatif.models.quantities import IntArray


def spread_pairs(count: int) -> IntArray:
    """[message, 4]: sender, receiver, and the chunks [first, behind the last) that it carries."""
    step = 1
    while step * 2 < count:
        step *= 2
    found: list[tuple[int, ...]] = []
    while step and count > 1:
        receivers = range(step, count, 2 * step)
        found.extend((receiver - step, receiver, receiver, min(receiver + step, count)) for receiver in receivers)
        step //= 2
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def roll_pairs(count: int) -> IntArray:
    """[exchange, 4]: processes a and b, the chunk that a sends b, and the one that b sends a.

    In step k process i turns to the next one where i + k is even, else to the one before. Where the number of
    processes is odd, the last and the first meet in different steps: exchanges come in a feasible order.
    """
    plans = [[_turn(place, step, count) for step in range(count - 1)] for place in range(count)]
    at = [0] * count
    found = []
    while any(position < count - 1 for position in at):
        for place in range(count):
            if at[place] == count - 1:
                continue
            partner, chunk = plans[place][at[place]]
            if at[partner] < count - 1 and plans[partner][at[partner]][0] == place:
                found.append((place, partner, chunk, plans[partner][at[partner]][1]))
                at[place] += 1
                at[partner] += 1
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def _turn(place: int, step: int, count: int) -> tuple[int, int]:
    """Partner of a process in a step, and the chunk it sends."""
    half = step // 2
    if (place + step) % 2:
        return (place - 1) % count, (place + half) % count
    return (place + 1) % count, (place - half) % count


def rolled_rows(count: int, rows: int) -> float:
    """Rows of messages of equal size that take as long to roll round `count` processes as those of `rows` rows."""
    least, extra = divmod(rows, count)
    done = [0.0] * count
    for first, second, there, back in roll_pairs(count).tolist():
        taken = max(done[first], done[second]) + least + (1 if min(there, back) < extra else 0)
        done[first] = done[second] = taken
    return max(done) / max(count - 1, 1)
