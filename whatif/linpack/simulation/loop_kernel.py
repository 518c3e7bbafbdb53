"""HPL's loop over the panels, compiled: the functions called by the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from whatif.linpack.simulation.ahead_kernel import BELOW, ITEMS, MESSAGE, OWN, PLACE, PanelStep, begin, update_ahead
from whatif.linpack.simulation.layout import RunNumbers, columns_behind, owned_from, panel_bytes, rows_below, width_of
from whatif.linpack.simulation.step_kernel import (
    HPLState,
    PanelMessages,
    broadcast,
    end_step,
    factor,
    latest,
    update_column,
)
from whatif.models.quantities import FloatArray, IntArray


def step_at_once(
    panel: int, state: HPLState, run: RunNumbers, messages: PanelMessages, kernels: FloatArray, pieces: FloatArray,
    lines: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """One step without look-ahead: factor, broadcast, update."""
    factor(panel, state, run, messages, pieces, lines, noisy, random)
    if run.q > 1:
        broadcast(panel, state, run, messages, pieces, random)
    for q in range(run.q):
        update_column(panel, q, columns_behind(panel, q, run), True, state, run, kernels, pieces, noisy, random)


def step_ahead(
    panel: int, state: HPLState, run: RunNumbers, messages: PanelMessages, kernels: FloatArray, pieces: FloatArray,
    lines: FloatArray, columns: IntArray, rows: FloatArray, places: IntArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """One step of the main loop: factor a panel, then update with the oldest while the panel is broadcast."""
    old = panel - run.depth
    for earlier in range(old, panel):
        update_column(earlier, panel % run.q, width_of(panel, run), False, state, run, kernels, pieces, noisy, random)
    factor(panel, state, run, messages, pieces, lines, noisy, random)
    if messages.chunk_count > 0:
        broadcast(panel, state, run, messages, pieces, random)
        for q in range(run.q):
            update_column(old, q, columns_behind(panel, q, run), True, state, run, kernels, pieces, noisy, random)
        return
    slot = old % state.counts.shape[0]
    for p in range(run.p):
        place = (p - old) % run.p
        rows[BELOW, p], rows[MESSAGE, p] = rows_below(old, p, run), panel_bytes(panel, p, run)
        rows[OWN, p], rows[PLACE, p], places[place] = state.counts[slot, place], place, p * run.q
    step = PanelStep(
        state.times, state.marks, state.seen, state.swaps[slot], state.used[slot], state.openings[slot], columns, rows,
        places, state.waiting, state.adapters, kernels, pieces, panel, old, width_of(old, run), run, noisy,
    )  # fmt: skip
    begin(step, messages.targets)
    update_ahead(step, random)


def fill_pipeline(
    state: HPLState, run: RunNumbers, messages: PanelMessages, kernels: FloatArray, pieces: FloatArray,
    lines: FloatArray, last_lines: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Factor and broadcast the first panels, each applied to those of them behind it."""
    for panel in range(run.depth):
        now = lines if width_of(panel, run) == run.nb else last_lines
        factor(panel, state, run, messages, pieces, now, noisy, random)
        broadcast(panel, state, run, messages, pieces, random)
        for q in range(run.q):
            columns = columns_behind(panel, q, run) - columns_behind(run.depth - 1, q, run)
            update_column(panel, q, columns, False, state, run, kernels, pieces, noisy, random)
        state.ends[panel] = latest(state.times)


def steps(
    first: int, last: int, state: HPLState, run: RunNumbers, messages: PanelMessages, kernels: FloatArray,
    pieces: FloatArray, lines: FloatArray, last_lines: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Simulate steps [first, last), including those that fill and drain the pipeline of look-ahead."""
    columns, rows, places = np.zeros((run.q, ITEMS), np.int64), np.zeros((4, run.p)), np.zeros(run.p, np.int64)
    count = len(state.ends)
    if first == 0:
        fill_pipeline(state, run, messages, kernels, pieces, lines, last_lines, noisy, random)
    for panel in range(max(first, run.depth), last):
        now = lines if width_of(panel, run) == run.nb else last_lines
        if run.depth > 0:
            step_ahead(panel, state, run, messages, kernels, pieces, now, columns, rows, places, noisy, random)
        else:
            step_at_once(panel, state, run, messages, kernels, pieces, now, noisy, random)
        end_step(panel, state)
    if last == count:
        update_right_hand_side(state, run, kernels, pieces, noisy, random)


def update_right_hand_side(
    state: HPLState, run: RunNumbers, kernels: FloatArray, pieces: FloatArray, noisy: bool, random: Any
) -> None:
    """Apply the last panels, which look-ahead has not applied, to the right-hand side."""
    owner = run.n // run.nb % run.q
    columns = owned_from(run.n, run.n + 1, run.nb, owner, run.q)
    for panel in range(len(state.ends) - run.depth, len(state.ends)):
        update_column(panel, owner, columns, False, state, run, kernels, pieces, noisy, random)
