"""Arrays of a run of HPL for the compiled loops, with a column for each quantity, and block-cyclic sizes.

Processes are numbered p Q + q over the grid, whatever their ranks. A call with many arrays costs more than the
work of most of these functions, so that the state of a process is in two arrays: `times`, [process, quantity] float64,
and `marks`, [process, quantity] int64.
"""

from __future__ import annotations

from typing import Final, NamedTuple

CLOCK, POSTED, BEGUN, FACTOR, DEVIATION = 0, 1, 2, 3, 4
"""Columns of `times`: the process's clock; when its panel was sent to it; when its update began; time of dgemm
relative to the model, and its deviation relative to that of the model."""
FACTORED, AGREED, UPDATED, SWAPPED, SOLVED, BROADCAST = 5, 6, 7, 8, 9, 10
"""More columns of `times`: time of each part so far, as in HPL's detailed timing."""
ABSENT: Final = 11
"""One more column of `times`: earliest time at which its panel can be sent."""
DEVICE, UPDATED_SO_FAR = 12, 13
"""More columns of `times`, where panels are factored on the host: when the device is done with all updates it was
given, and with those that a copy or a swap waits for."""
TIME_COLUMNS: Final = 14
NODE, ROW, PHASE, STATUS, HAS_PANEL, SENT, LEFT, NEXT, GROUP, LINK = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
"""Columns of `marks`: the process's node and process row; its phase in a step; its state; whether it has the panel;
number of targets it has sent the panel to; columns left to update; its next exchange of the swap, -1: none; group of
the links it shares, and its link of the group."""
MARK_COLUMNS: Final = 10
TARGETS: Final = 3
"""Targets of a process in a broadcast: columns of `PanelMessages.targets`, followed by that of its source."""
COLUMN_CLOCK, COLUMN_ROWS, COLUMN_FACTOR, COLUMN_NODE, COLUMN_DEVIATION = range(5)
"""Rows of `Room.column`, a process column that factors a panel: clock, local rows, factor of dgemm, node, deviation of
dgemm."""
ROW_CLOCK, ROW_NODE, ROW_GAP, ROW_TAKEN = range(4)
"""Rows of `Room.row`, a process row in a broadcast: clock, node, time per byte of the adapter, end of the receive."""
CHARGE_SEND, CHARGE_WIRE, CHARGE_RECEIVE, CHARGE_IS_PARTIAL, CHARGE_LATENCY, CHARGE_SIZE = range(6)
"""Columns of `Room.charges`, [distance, SMALL or LARGE]; partial: a message needs more than these charges."""
SMALL, LARGE = 0, 1
"""Messages of a pivot: without and with the current row."""
CHUNK_WIRE, CHUNK_SEND, CHUNK_LATENCY, CHUNK_SIZE = 0, 2, 4, 5
"""Columns of `Room.chunks`; wire and send have one for each distance."""
(
    LINE_MATRIX, LINE_MATRIX_SLOPE, LINE_MATRIX_LESS, LINE_OTHER, LINE_OTHER_SLOPE, LINE_OTHER_LESS,
    LINE_MATRIX_VARIANCE, LINE_MATRIX_VARIANCE_M, LINE_MATRIX_VARIANCE_MM,
    LINE_OTHER_VARIANCE, LINE_OTHER_VARIANCE_M, LINE_OTHER_VARIANCE_MM, LINE_COLUMNS,
) = range(13)  # fmt: skip
"""Columns of `panel_lines`: of dgemm and of the other kernels, mean times as constant, slope in the local rows m, and
the difference of the row of the pivot block; then variances as coefficients of 1, m and m^2."""
SEEN_FACTOR_START, SEEN_FACTOR_END, SEEN_BROADCAST_START, SEEN_BROADCAST_END, SEEN_UPDATE_END, SEEN_COLUMNS = range(6)
"""Columns of `HPLState.seen`."""
SWAP_BINARY, SWAP_SPREAD, SWAP_MIX = 0, 1, 2
"""`RunNumbers.swap`; the first two are also the algorithms of a swap."""
STRUCTURE_PROCESS, STRUCTURE_SENT, STRUCTURE_AFTER = 0, 2, 8
"""Columns of `Exchanges.binary`: both processes; of each, kind, first and end of the rows it sends; kernels after."""
ROLL_FIRST, ROLL_SECOND, ROLL_THERE, ROLL_BACK = range(4)
"""Columns of `Exchanges.roll` and `Paths.roll`: two processes, and the chunk that each sends."""
CHUNKS_SENDER, CHUNKS_RECEIVER, CHUNKS_FIRST, CHUNKS_END = range(4)
"""Columns of `Paths.spread`."""
FIRST, SECOND, FROM_FIRST, FROM_SECOND, WIDE_FIRST, WIDE_SECOND, AFTER_FIRST, AFTER_SECOND = 0, 1, 2, 3, 4, 5, 6, 7
NEXT_FIRST, NEXT_SECOND, SWAP_COLUMNS = 8, 9, 10
"""Columns of `swaps`, [slot, algorithm, exchange, column]: two process rows by distance from the pivot block's, the
rows that each sends, whether these carry their index (one word a row), the kernel of each after the exchange, and
the next exchange of each, -1: none."""


class RunNumbers(NamedTuple):
    """The whole numbers of a configuration, in HPL's letters."""

    n: int
    nb: int
    p: int
    q: int
    depth: int
    swap: int
    threshold: int
    roll_rows: float = 0.0
    """Rows of a message by which spread-roll rolls the rows of all processes round at once; 0: message by message."""


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
    """Whether rows of this width are swapped by spread-roll."""
    return run.swap == SWAP_SPREAD or (run.swap == SWAP_MIX and columns > run.threshold)
