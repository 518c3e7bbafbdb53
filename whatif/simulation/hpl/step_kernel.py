"""HPL's loop over the panels, compiled, as far as it does not look ahead.

Clocks are [process row, process column]. `Panel`s that are still to be applied keep their pivots and exchanges in
arrays with a leading axis of slots, panel j in slot j modulo their number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.hpl.broadcast_kernel import broadcast_row
from whatif.simulation.hpl.costs import matrix_time, size_time
from whatif.simulation.hpl.layout import Charges, Messages, Run, owned_from
from whatif.simulation.hpl.panel_kernel import factor_panel
from whatif.simulation.hpl.swap_kernel import binary_exchanges, draw_pivots, rolling_exchanges, swap_column

DTRSM, DLASWP00N, DLATCPY = 0, 7, 13
FACTOR, PIVOTS, UPDATE, SWAP, SOLVE, BROADCAST = 0, 1, 2, 3, 4, 5
"""Components of the time, rows of `State.spent`."""


class State(NamedTuple):
    """What a run is made of while it goes on."""

    clock: FloatArray
    """[process row, process column]: s"""
    spent: FloatArray
    """[component, process row, process column]: s, as HPL's detailed timing adds them up."""
    marks: FloatArray
    """[panel, process row, process column, 5]: of the first panels: when its factorisation and its broadcast began and
    ended, and when the update with it ended; NaN where a process has no part in it."""
    ends: FloatArray
    """[panel]: when the last process had done its part of the step."""
    counts: FloatArray
    """[slot, distance]: pivots of a panel in each process row."""
    partners: IntArray
    """[slot, algorithm, exchange, 2]"""
    rows: FloatArray
    """[slot, algorithm, exchange, 2]"""
    wide: IntArray
    """[slot, algorithm, exchange, 2]"""
    after: IntArray
    """[slot, algorithm, exchange, 2]"""
    used: IntArray
    """[slot, algorithm]: exchanges."""


def width_of(panel: int, run: Run) -> int:
    """Columns of a panel."""
    return min(run.nb, run.n - panel * run.nb)


def rows_below(panel: int, p: int, run: Run) -> int:
    """Local rows of a process row that a panel's update changes."""
    rows = owned_from(panel * run.nb, run.n, run.nb, p, run.p)
    return rows - width_of(panel, run) if p == panel % run.p else rows


def columns_behind(panel: int, q: int, run: Run) -> int:
    """Local columns behind a panel, the right-hand side included."""
    return owned_from((panel + 1) * run.nb, run.n + 1, run.nb, q, run.q)


def factor(
    panel: int, state: State, run: Run, charges: Charges, messages: Messages, lines: FloatArray, noisy: bool, random: Any
) -> None:
    """Factor a panel in its process column, and draw where its pivots lie."""
    column = panel % run.q
    order = (panel % run.p + np.arange(run.p)) % run.p
    rows, clock, factors = np.empty(run.p), np.empty(run.p), np.empty(run.p)
    nodes = np.empty(run.p, dtype=np.int64)
    for place in range(run.p):
        p = order[place]
        rows[place] = owned_from(panel * run.nb, run.n, run.nb, p, run.p)
        clock[place], factors[place] = state.clock[p, column], charges.factors[p, column]
        nodes[place] = charges.nodes[p, column]
    begin = clock.copy()
    pivots = factor_panel(clock, rows, factors, nodes, lines, charges.pieces, charges.limits, noisy, random)
    for place in range(run.p):
        p = order[place]
        state.clock[p, column] = clock[place]
        state.spent[FACTOR, p, column] += clock[place] - begin[place]
        state.spent[PIVOTS, p, column] += pivots
        if panel < len(state.marks):
            state.marks[panel, p, column, 0] = begin[place]
            state.marks[panel, p, column, 1] = clock[place]
    if run.p > 1:
        prepare_swaps(panel, rows, state, run, messages, random)


def prepare_swaps(panel: int, rows: FloatArray, state: State, run: Run, messages: Messages, random: Any) -> None:
    """Draw the pivots of a panel and lay out the exchanges of both algorithms, as far as they are used."""
    slot, width = panel % len(state.counts), width_of(panel, run)
    counts = draw_pivots(rows, width, random)
    state.counts[slot] = counts
    if run.swap != 1:
        state.used[slot, 0] = binary_exchanges(
            messages.binary, messages.cube, counts, width,
            state.partners[slot, 0], state.rows[slot, 0], state.wide[slot, 0], state.after[slot, 0],
        )  # fmt: skip
    if run.swap != 0:
        state.used[slot, 1] = rolling_exchanges(
            messages.swap_roll, counts, width,
            state.partners[slot, 1], state.rows[slot, 1], state.wide[slot, 1], state.after[slot, 1],
        )  # fmt: skip


def panel_bytes(panel: int, p: int, run: Run) -> float:
    """Size of a panel's message in one process row: L2, L1, the pivots and one more word."""
    width = width_of(panel, run)
    return 8.0 * (rows_below(panel, p, run) * width + width * width + width + 1)


def broadcast(panel: int, state: State, run: Run, charges: Charges, messages: Messages) -> None:
    """Broadcast a panel along every process row, everyone waiting for it."""
    order = (panel % run.q + np.arange(run.q)) % run.q
    clock, nodes, gaps = np.empty(run.q), np.empty(run.q, dtype=np.int64), np.empty(run.q)
    for p in range(run.p):
        for place in range(run.q):
            clock[place] = state.clock[p, order[place]]
            nodes[place] = charges.nodes[p, order[place]]
            gaps[place] = charges.gaps[p, order[place]]
        broadcast_row(
            clock, nodes, gaps, panel_bytes(panel, p, run), messages.targets, messages.spread, messages.roll,
            messages.chunk_count, charges.pieces, charges.limits,
        )  # fmt: skip
        for place in range(run.q):
            took(panel, p, order[place], clock[place], state)


def took(panel: int, p: int, q: int, end: float, state: State) -> None:
    """A process has had a panel's broadcast behind it at `end`."""
    begin = state.clock[p, q]
    state.spent[BROADCAST, p, q] += end - begin
    state.clock[p, q] = end
    if panel < len(state.marks):
        state.marks[panel, p, q, 2] = begin
        state.marks[panel, p, q, 3] = end


def solve_and_multiply(
    panel: int, p: int, q: int, columns: int, run: Run, charges: Charges, noisy: bool, random: Any
) -> float:
    """Time of one process for the triangular solve and the update of so many columns."""
    width, rows = width_of(panel, run), rows_below(panel, p, run)
    time = size_time(charges.sizes[DTRSM], float(width) * width * columns, noisy, random)
    time += matrix_time(charges.matrix, charges.factors[p, q], rows, columns, width, noisy, random)
    if run.p == 1:
        time += size_time(charges.sizes[DLASWP00N], float(width) * columns, noisy, random)
    elif p == panel % run.p:
        time += size_time(charges.sizes[DLATCPY], float(width) * columns, noisy, random)
    return time


def spreads(columns: int, run: Run) -> bool:
    """Whether rows of so many columns are swapped by spread-roll."""
    return run.swap == 1 or (run.swap == 2 and columns > run.threshold)


def update_column(
    panel: int, q: int, columns: int, state: State, run: Run, charges: Charges, noisy: bool, random: Any
) -> None:
    """Apply a panel to so many columns of one process column, with no broadcast on the way."""
    if columns <= 0:
        return
    begin = state.clock[:, q].copy()
    if run.p > 1:
        slot, algorithm = panel % len(state.counts), 1 if spreads(columns, run) else 0
        order = (panel % run.p + np.arange(run.p)) % run.p
        swap_column(
            state.clock, q, order, columns, width_of(panel, run), state.counts[slot], algorithm == 1,
            state.used[slot, algorithm], state.partners[slot, algorithm], state.rows[slot, algorithm],
            state.wide[slot, algorithm], state.after[slot, algorithm], charges.nodes, charges.gaps, charges.pieces,
            charges.limits, charges.sizes, noisy, random,
        )  # fmt: skip
    for p in range(run.p):
        state.spent[SWAP, p, q] += state.clock[p, q] - begin[p]
        state.clock[p, q] += solve_and_multiply(panel, p, q, columns, run, charges, noisy, random)
        state.spent[UPDATE, p, q] += state.clock[p, q] - begin[p]
        if panel < len(state.marks):
            state.marks[panel, p, q, 4] = state.clock[p, q]


def step(
    panel: int, state: State, run: Run, charges: Charges, messages: Messages, lines: FloatArray, noisy: bool, random: Any
) -> None:
    """One step without look-ahead: factor, broadcast, update."""
    factor(panel, state, run, charges, messages, lines, noisy, random)
    if run.q > 1:
        broadcast(panel, state, run, charges, messages)
    for q in range(run.q):
        update_column(panel, q, columns_behind(panel, q, run), state, run, charges, noisy, random)
    state.ends[panel] = state.clock.max()


def steps(
    first: int, last: int, state: State, run: Run, charges: Charges, messages: Messages, lines: FloatArray,
    last_lines: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Steps [first, last) without look-ahead."""
    for panel in range(first, last):
        whole = width_of(panel, run) == run.nb
        step(panel, state, run, charges, messages, lines if whole else last_lines, noisy, random)
