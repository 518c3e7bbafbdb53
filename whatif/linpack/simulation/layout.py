"""How a run of HPL is laid out for the compiled loops: block-cyclic sizes, and arrays with a column for each quantity.

Processes are numbered p Q + q over the grid, whatever their ranks. A call with many arrays costs more than what most of
these functions do, so that all that is known of a process stands in two arrays: `times`, [process, quantity]
float64, and `marks`, [process, quantity] int64.
"""

from __future__ import annotations

from typing import Final, NamedTuple

CLOCK, POSTED, BEGUN, FACTOR, DEVIATION = 0, 1, 2, 3, 4
"""Columns of `times`: the process's clock; when its panel was sent to it; when its update began; time of dgemm
relative to the model, and its deviation relative to that of the model."""
FACTORED, AGREED, UPDATED, SWAPPED, SOLVED, BROADCAST = 5, 6, 7, 8, 9, 10
"""More columns of `times`: what each part has taken so far, as HPL's detailed timing counts."""
ABSENT: Final = 11
"""One more column of `times`: its panel is not sent before this."""
DEVICE, UPDATED_SO_FAR = 12, 13
"""More columns of `times`, where panels are factored on the host: when the device is done with all updates it was
given, and with those that a copy or a swap waits for."""
TIME_COLUMNS: Final = 14
NODE, ROW, PHASE, STATUS, HAS_PANEL, SENT, LEFT, NEXT, GROUP, LINK = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
"""Columns of `marks`: the process's node and process row; where it is in a step; what it waits for; whether it has
the panel; targets it has sent the panel to; columns left to update; its next exchange of the swap, -1: none;
whose links it shares, and which of these leads to it."""
MARK_COLUMNS: Final = 10
FIRST, SECOND, FROM_FIRST, FROM_SECOND, WIDE_FIRST, WIDE_SECOND, AFTER_FIRST, AFTER_SECOND = 0, 1, 2, 3, 4, 5, 6, 7
NEXT_FIRST, NEXT_SECOND, SWAP_COLUMNS = 8, 9, 10
"""Columns of `swaps`, [slot, algorithm, exchange, column]: two process rows by distance from the pivot block's, the
rows that each sends, whether these carry their index (one word a row), what each does with what it received, and the
next exchange of each, -1: none."""


class RunNumbers(NamedTuple):
    """The whole numbers of a configuration, in HPL's letters."""

    n: int
    nb: int
    p: int
    q: int
    depth: int
    swap: int
    threshold: int


def owned(extent: int, block: int, place: int, count: int) -> int:
    """Indices below `extent` that a process owns of a block-cyclic distribution over `count` (numroc)."""
    blocks = extent // block
    over = blocks % count
    mine = blocks // count * block
    if place < over:
        return mine + block
    return mine + extent % block if place == over else mine


def owned_from(start: int, extent: int, block: int, place: int, count: int) -> int:
    """Indices in [start, extent) that a process owns."""
    return owned(extent, block, place, count) - owned(min(start, extent), block, place, count)


def width_of(panel: int, run: RunNumbers) -> int:
    """Columns of a panel."""
    return min(run.nb, run.n - panel * run.nb)


def rows_below(panel: int, p: int, run: RunNumbers) -> int:
    """Local rows of a process row that a panel's update changes."""
    rows = owned_from(panel * run.nb, run.n, run.nb, p, run.p)
    return rows - width_of(panel, run) if p == panel % run.p else rows


def columns_behind(panel: int, q: int, run: RunNumbers) -> int:
    """Local columns behind a panel, the right-hand side included."""
    return owned_from(min((panel + 1) * run.nb, run.n), run.n + 1, run.nb, q, run.q)


def panel_bytes(panel: int, p: int, run: RunNumbers) -> float:
    """Size of a panel's message in one process row: L2, L1, the pivots and one more word."""
    width = width_of(panel, run)
    return 8.0 * (rows_below(panel, p, run) * width + width * width + width + 1)


def spreads(columns: int, run: RunNumbers) -> bool:
    """Whether rows of so many columns are swapped by spread-roll."""
    return run.swap == 1 or (run.swap == 2 and columns > run.threshold)
