"""Steps of HPL's loop over the panels without look-ahead, compiled.

Panels that are still to be applied keep their pivots and exchanges in slots, panel j in slot j modulo their number.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

from whatif.linpack.simulation.broadcast_kernel import broadcast_row
from whatif.linpack.simulation.costs import (
    DLASWP00N,
    DLATCPY,
    DTRSM,
    REMOTE,
    matrix_deviation,
    matrix_mean,
    mean_wire,
    size_deviation,
    size_mean,
    with_noise,
)
from whatif.linpack.simulation.layout import (
    AGREED,
    BEGUN,
    BROADCAST,
    CLOCK,
    COLUMN_CLOCK,
    COLUMN_DEVIATION,
    COLUMN_FACTOR,
    COLUMN_NODE,
    COLUMN_ROWS,
    DEVIATION,
    FACTOR,
    FACTORED,
    FIRST,
    NODE,
    ROW_CLOCK,
    ROW_GAP,
    ROW_NODE,
    ROW_TAKEN,
    SECOND,
    SEEN_BROADCAST_END,
    SEEN_BROADCAST_START,
    SEEN_FACTOR_END,
    SEEN_FACTOR_START,
    SEEN_UPDATE_END,
    SWAP_BINARY,
    SWAP_SPREAD,
    SWAPPED,
    TARGETS,
    UPDATED,
    RunNumbers,
    owned_from,
    panel_bytes,
    rows_below,
    spreads,
    width_of,
)
from whatif.linpack.simulation.panel_kernel import factor_panel
from whatif.linpack.simulation.sharing_kernel import (
    NOT_NOTED,
    Adapters,
    end_of_step,
    note,
    note_pivots,
    panel_gap,
    share_links,
)
from whatif.linpack.simulation.swap_kernel import (
    binary_exchanges,
    draw_pivots,
    gather_time,
    roll_at_once,
    rolling_exchanges,
    string_exchanges,
    swap_rows,
)
from whatif.models.quantities import FloatArray, IntArray


class Room(NamedTuple):
    """Temporary arrays of the compiled functions, which allocate none."""

    column: FloatArray
    """[5, process row]"""
    row: FloatArray
    """[4, process column]"""
    gaps: FloatArray
    """[log2 P + 1, process row]"""
    charges: FloatArray
    """[2, 2, 6]"""
    chunks: FloatArray
    """[process column, 6]"""
    gathered: FloatArray
    """[process row + 1]"""
    lengths: FloatArray
    """[process row]"""
    share: FloatArray
    """[process row]"""
    order: IntArray
    """[process row]"""


class PanelMessages(NamedTuple):
    """Senders and receivers; see `Paths` and `Exchanges`."""

    targets: IntArray
    spread: IntArray
    roll: IntArray
    chunk_count: int
    binary: IntArray
    swap_roll: IntArray
    cube: int


class HPLState(NamedTuple):
    """State of a run."""

    times: FloatArray
    """[process, quantity], as `layout` names the columns."""
    marks: IntArray
    """[process, quantity], as `layout` names the columns."""
    ends: FloatArray
    """[panel]: when the last process had done its part of the step."""
    seen: FloatArray
    """[panel, process, 5], of the first panels: when factorisation and broadcast began and ended, waiting for the panel
    with nothing else to do included, and when the update with it ended; NaN where a process has no part in it."""
    counts: FloatArray
    """[slot, distance]: pivots of a panel in each process row."""
    swaps: FloatArray
    """[slot, algorithm, exchange, column], as `layout` names the columns."""
    used: IntArray
    """[slot, algorithm]: exchanges."""
    openings: IntArray
    """[slot, algorithm, distance]: the first exchange of each process row, -1: none."""
    waiting: IntArray
    """[4 x process + 1]: processes that can continue, and at the end their number."""
    adapters: Adapters
    room: Room


def factor(
    panel: int, state: HPLState, run: RunNumbers, messages: PanelMessages, pieces: FloatArray, lines: FloatArray,
    noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Factor a panel in its process column, and draw the process rows of its pivots."""
    q, count = panel % run.q, run.p
    column = state.room.column
    for place in range(count):
        p = (panel + place) % count
        column[COLUMN_CLOCK, place] = state.times[p * run.q + q, CLOCK]
        column[COLUMN_ROWS, place] = owned_from(panel * run.nb, run.n, run.nb, p, count)
        column[COLUMN_FACTOR, place] = state.times[p * run.q + q, FACTOR]
        column[COLUMN_NODE, place] = state.marks[p * run.q + q, NODE]
        column[COLUMN_DEVIATION, place] = state.times[p * run.q + q, DEVIATION]
    if state.adapters.gap > 0.0:
        share_links(panel, state.room.gaps, state.adapters, state.marks, run)
    agreeing = factor_panel(column, state.room.gaps, state.room.charges, lines, pieces, noisy, random)
    if state.adapters.noted_count[0] != NOT_NOTED:
        note_pivots(panel, column[COLUMN_CLOCK], state.room.gaps, state.adapters, state.times, state.marks, run, pieces)
    for place in range(count):
        me = (panel + place) % count * run.q + q
        if panel < state.seen.shape[0]:
            state.seen[panel, me, SEEN_FACTOR_START] = state.times[me, CLOCK]
            state.seen[panel, me, SEEN_FACTOR_END] = column[COLUMN_CLOCK, place]
        state.times[me, FACTORED] += column[COLUMN_CLOCK, place] - state.times[me, CLOCK]
        state.times[me, AGREED] += agreeing
        state.times[me, CLOCK] = column[COLUMN_CLOCK, place]
    if count > 1:
        prepare_swaps(panel, column[COLUMN_ROWS], state, run, messages, random)


def prepare_swaps(
    panel: int, rows: FloatArray, state: HPLState, run: RunNumbers, messages: PanelMessages, random: Any
) -> None:
    """Draw the pivots of a panel and lay out the exchanges of the algorithms that are used."""
    slot, width = panel % state.counts.shape[0], width_of(panel, run)
    counts, room = state.counts[slot], state.room
    draw_pivots(rows, width, counts, random)
    if run.swap != SWAP_SPREAD:
        state.used[slot, SWAP_BINARY] = binary_exchanges(
            messages.binary, messages.cube, counts, width, room.gathered, state.swaps[slot, SWAP_BINARY]
        )
    if run.swap != SWAP_BINARY:
        state.used[slot, SWAP_SPREAD] = rolling_exchanges(
            messages.swap_roll, counts, width, room.lengths, room.share, room.order, state.swaps[slot, SWAP_SPREAD]
        )
    for algorithm in (SWAP_BINARY, SWAP_SPREAD):
        string_exchanges(state.swaps[slot, algorithm], state.used[slot, algorithm], state.openings[slot, algorithm])


def broadcast(
    panel: int, state: HPLState, run: RunNumbers, messages: PanelMessages, pieces: FloatArray, random: Any
) -> None:
    """Broadcast a panel along every process row, everyone waiting for it."""
    row = state.room.row
    for p in range(run.p):
        for place in range(run.q):
            me = p * run.q + (panel + place) % run.q
            row[ROW_CLOCK, place], row[ROW_NODE, place] = state.times[me, CLOCK], state.marks[me, NODE]
            source = p * run.q + (panel + max(messages.targets[place, TARGETS], 0)) % run.q
            row[ROW_GAP, place] = panel_gap(state.adapters, source, me, state.marks)
        broadcast_row(
            row, panel_bytes(panel, p, run), messages.targets, messages.spread, messages.roll, messages.chunk_count,
            state.room.chunks, pieces, random,
        )  # fmt: skip
        for place in range(run.q):
            me = p * run.q + (panel + place) % run.q
            source = messages.targets[place, TARGETS]
            if source >= 0 and row[ROW_NODE, place] != row[ROW_NODE, source]:
                sender = p * run.q + (panel + source) % run.q
                wire = mean_wire(pieces, REMOTE, panel_bytes(panel, p, run), row[ROW_GAP, place])
                note(
                    state.adapters,
                    row[ROW_TAKEN, place] - wire,
                    row[ROW_TAKEN, place],
                    sender,
                    me,
                    False,
                    state.adapters.panels + me,
                    state.marks,
                )
        for place in range(run.q):
            took(panel, p * run.q + (panel + place) % run.q, row[ROW_CLOCK, place], state.times, state.seen)


def took(panel: int, me: int, end: float, times: FloatArray, seen: FloatArray) -> None:
    """A process has had a panel's broadcast behind it at `end`."""
    begin = times[me, CLOCK]
    times[me, BROADCAST] += end - begin
    times[me, CLOCK] = end
    if panel < seen.shape[0]:
        seen[panel, me, SEEN_BROADCAST_START], seen[panel, me, SEEN_BROADCAST_END] = begin, end


def update_mean(
    rows: int, columns: int, width: int, factor: float, alone: bool, holds_block: bool, kernels: FloatArray
) -> float:
    """Time of one process for the triangular solve and the update of a number of columns; `alone` in its column."""
    size = float(width) * columns
    time = size_mean(kernels, DTRSM, width * size)
    time += matrix_mean(kernels, rows, columns, width) * factor
    if alone:
        time += size_mean(kernels, DLASWP00N, size)
    elif holds_block:
        time += size_mean(kernels, DLATCPY, size)
    return time


def update_deviation(
    rows: int, columns: int, width: int, scale: float, alone: bool, holds_block: bool, kernels: FloatArray
) -> float:
    """Standard deviation of that time for independent kernels, with the deviation of dgemm times `scale`."""
    size = float(width) * columns
    solved = size_deviation(kernels, DTRSM, width * size)
    updated = matrix_deviation(kernels, rows, columns, width) * scale
    moved = 0.0
    if alone or holds_block:
        moved = size_deviation(kernels, DLASWP00N if alone else DLATCPY, size)
    return sqrt(solved * solved + updated * updated + moved * moved)


def update_time(
    rows: int, columns: int, width: int, factor: float, deviation: float, alone: bool, holds_block: bool,
    kernels: FloatArray, noisy: bool, random: Any,
) -> float:  # fmt: skip
    """Time of the update of some columns, with noise if `noisy`."""
    time, spread = update_mean(rows, columns, width, factor, alone, holds_block, kernels), 0.0
    if noisy:
        spread = update_deviation(rows, columns, width, factor * deviation, alone, holds_block, kernels)
    return with_noise(time, spread, random)


def update_column(
    panel: int, q: int, columns: int, crowded: bool, state: HPLState, run: RunNumbers, kernels: FloatArray,
    pieces: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Apply a panel to a number of columns of one process column, with no broadcast on the way."""
    times, width = state.times, width_of(panel, run)
    if columns <= 0:
        return
    for p in range(run.p):
        times[p * run.q + q, BEGUN] = times[p * run.q + q, CLOCK]
    if run.p > 1:
        swap_column(panel, q, columns, crowded, state, run, kernels, pieces, noisy, random)
    for p in range(run.p):
        me = p * run.q + q
        times[me, SWAPPED] += times[me, CLOCK] - times[me, BEGUN]
        times[me, CLOCK] += update_time(
            rows_below(panel, p, run), columns, width, times[me, FACTOR], times[me, DEVIATION], run.p == 1,
            p == panel % run.p, kernels, noisy, random,
        )  # fmt: skip
        times[me, UPDATED] += times[me, CLOCK] - times[me, BEGUN]
        if panel < state.seen.shape[0]:
            state.seen[panel, me, SEEN_UPDATE_END] = times[me, CLOCK]


def swap_column(
    panel: int, q: int, columns: int, crowded: bool, state: HPLState, run: RunNumbers, kernels: FloatArray,
    pieces: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Advance one process column over the swap of a number of columns; `crowded` where all process columns swap."""
    spreading, slot, times = spreads(columns, run), panel % state.counts.shape[0], state.times
    algorithm = SWAP_SPREAD if spreading else SWAP_BINARY
    plan, used = state.swaps[slot, algorithm], state.used[slot, algorithm]
    for place in range(run.p):
        own = state.counts[slot, place]
        times[(panel + place) % run.p * run.q + q, CLOCK] += gather_time(
            place, columns, width_of(panel, run), own, spreading, kernels, noisy, random
        )
    for at in range(used):
        a = (panel + int(plan[at, FIRST])) % run.p * run.q + q
        b = (panel + int(plan[at, SECOND])) % run.p * run.q + q
        place = (used - 1 - at) * run.q + (q - panel) % run.q if crowded else -1
        swap_rows(a, b, at, columns, place, plan, times, state.marks, state.adapters, kernels, pieces, noisy, random)
    if spreading and run.roll_rows > 0.0:
        roll_at_once(panel, q, 8.0 * run.roll_rows * columns, crowded, times, state.marks, state.adapters, pieces, run,
                     random)  # fmt: skip


def latest(times: FloatArray) -> float:
    """End time of the last process."""
    found = 0.0
    for process in range(times.shape[0]):
        found = max(found, times[process, CLOCK])
    return found


def end_step(panel: int, state: HPLState) -> None:
    """Write down when a step ended, and who shared adapters in it."""
    state.ends[panel] = latest(state.times)
    if state.adapters.gap > 0.0:
        end_of_step(panel, state.ends, state.adapters)
