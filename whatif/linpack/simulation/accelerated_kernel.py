"""HPL's loop over the panels with the matrix on accelerators and the panels factored on the host, compiled.

A process has two clocks: CLOCK is its host's, which factors panels and sends all messages; DEVICE is when its device is
done with the updates it was given. With look-ahead the columns behind a panel are updated in two sections. Rows of the
far section are swapped a step ahead, while the device updates the near one; its own update hides the way of the next
panel to the host and back, its factorisation and its broadcast, and the swap of the near section's rows. At the end of
a step both clocks meet. Rows are gathered and put back by the device, but charged where they are swapped.
Source: the order of work in ROCm/rocHPL (HPL_pdgesv, HPL_pdpanel_init); Chalmers et al. 2023.
"""

from __future__ import annotations

from typing import Any

from whatif.linpack.simulation.layout import (
    BEGUN,
    CLOCK,
    DEVIATION,
    DEVICE,
    FACTOR,
    SEEN_UPDATE_END,
    SWAPPED,
    UPDATED,
    UPDATED_SO_FAR,
    RunNumbers,
    columns_behind,
    owned,
    owned_from,
    rows_below,
    width_of,
)
from whatif.linpack.simulation.loop_kernel import update_right_hand_side
from whatif.linpack.simulation.step_kernel import (
    HPLState,
    PanelMessages,
    broadcast,
    end_step,
    factor,
    swap_column,
    update_column,
    update_time,
)
from whatif.models.quantities import FloatArray

TO_HOST, TO_DEVICE = 0, 1
COPY_LATENCY, COPY_PER_BYTE = 0, 1
"""Rows and columns of `HostProcessors.copies`."""


def far_columns(panel: int, q: int, run: RunNumbers, split_fraction: float) -> int:
    """Local columns of the far section behind a panel: all if a process column has a single process."""
    behind = columns_behind(panel, q, run)
    if run.p == 1:
        return behind
    return min(behind, int(owned(run.n + 1, run.nb, q, run.q) * split_fraction) // run.nb * run.nb)


def copy_panel(panel: int, way: int, state: HPLState, run: RunNumbers, copies: FloatArray) -> None:
    """Copy the parts of a panel of all processes to the host (`way` TO_HOST) or back (TO_DEVICE)."""
    for p in range(run.p):
        size = 8.0 * owned_from(panel * run.nb, run.n, run.nb, p, run.p) * width_of(panel, run)
        if size > 0.0:
            state.times[p * run.q + panel % run.q, CLOCK] += (
                copies[way, COPY_LATENCY] + copies[way, COPY_PER_BYTE] * size
            )


def factor_on_host(
    panel: int, state: HPLState, run: RunNumbers, messages: PanelMessages, pieces: FloatArray, lines: FloatArray,
    copies: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Bring a panel to the host, factor it, bring it back, and broadcast it from the device."""
    copy_panel(panel, TO_HOST, state, run, copies)
    factor(panel, state, run, messages, pieces, lines, noisy, random)
    copy_panel(panel, TO_DEVICE, state, run, copies)
    if run.q > 1:
        broadcast(panel, state, run, messages, pieces, random)


def update_on_device(
    panel: int, q: int, columns: int, state: HPLState, run: RunNumbers, kernels: FloatArray, noisy: bool, random: Any
) -> None:
    """Queue the update of columns, whose rows were swapped, on the devices of a process column."""
    times, width = state.times, width_of(panel, run)
    if columns <= 0:
        return
    for p in range(run.p):
        me = p * run.q + q
        time = update_time(
            rows_below(panel, p, run), columns, width, times[me, FACTOR], times[me, DEVIATION], run.p == 1,
            p == panel % run.p, kernels, noisy, random,
        )  # fmt: skip
        times[me, UPDATED] += time
        times[me, DEVICE] = max(times[me, DEVICE], times[me, CLOCK]) + time


def swap_after(
    moment: int, panel: int, q: int, columns: int, crowded: bool, state: HPLState, run: RunNumbers, kernels: FloatArray,
    pieces: FloatArray, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Swap rows of some columns of a process column, which the devices have updated at column `moment` of times."""
    times = state.times
    if columns <= 0 or run.p == 1:
        return
    for p in range(run.p):
        me = p * run.q + q
        times[me, BEGUN] = max(times[me, CLOCK], times[me, moment])
        times[me, CLOCK] = times[me, BEGUN]
    swap_column(panel, q, columns, crowded, state, run, kernels, pieces, noisy, random)
    for p in range(run.p):
        me = p * run.q + q
        times[me, SWAPPED] += times[me, CLOCK] - times[me, BEGUN]
        times[me, UPDATED] += times[me, CLOCK] - times[me, BEGUN]


def swap_ahead(
    panel: int, state: HPLState, run: RunNumbers, split_fraction: float, kernels: FloatArray, pieces: FloatArray,
    noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Swap rows of the far section and of the next panel's columns, which are the first to be updated next."""
    following = panel + 1
    if following >= len(state.ends):
        return
    for q in range(run.q):
        columns = far_columns(following, q, run, split_fraction)
        swap_after(UPDATED_SO_FAR, panel, q, columns, True, state, run, kernels, pieces, noisy, random)
    q = following % run.q
    swap_after(DEVICE, panel, q, width_of(following, run), False, state, run, kernels, pieces, noisy, random)


def step_beside(
    panel: int, state: HPLState, run: RunNumbers, messages: PanelMessages, kernels: FloatArray, pieces: FloatArray,
    lines: FloatArray, copies: FloatArray, split_fraction: float, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """One step: the device updates with the panel before while the host factors and broadcasts this one."""
    times, owner, old = state.times, panel % run.q, panel - 1
    update_on_device(old, owner, width_of(panel, run), state, run, kernels, noisy, random)
    for me in range(owner, times.shape[0], run.q):
        times[me, UPDATED_SO_FAR] = max(times[me, DEVICE], times[me, CLOCK])
    for q in range(run.q):
        far = far_columns(panel, q, run, split_fraction)
        update_on_device(old, q, far, state, run, kernels, noisy, random)
    for me in range(owner, times.shape[0], run.q):
        times[me, CLOCK] = times[me, UPDATED_SO_FAR]
    factor_on_host(panel, state, run, messages, pieces, lines, copies, noisy, random)
    for me in range(times.shape[0]):
        times[me, UPDATED_SO_FAR] = times[me, DEVICE]
    for q in range(run.q):
        near = columns_behind(panel, q, run) - far_columns(panel, q, run, split_fraction)
        swap_after(CLOCK, old, q, near, True, state, run, kernels, pieces, noisy, random)
        update_on_device(old, q, near, state, run, kernels, noisy, random)
    swap_ahead(panel, state, run, split_fraction, kernels, pieces, noisy, random)


def meet(panel: int, state: HPLState) -> None:
    """Let every host wait for its device."""
    for me in range(state.times.shape[0]):
        state.times[me, CLOCK] = max(state.times[me, CLOCK], state.times[me, DEVICE])
        if panel < state.seen.shape[0]:
            state.seen[panel, me, SEEN_UPDATE_END] = state.times[me, CLOCK]


def accelerated_steps(
    first: int, last: int, state: HPLState, run: RunNumbers, messages: PanelMessages, kernels: FloatArray,
    pieces: FloatArray,
    lines: FloatArray, last_lines: FloatArray, copies: FloatArray, split_fraction: float, noisy: bool, random: Any,
) -> None:  # fmt: skip
    """Steps [first, last), with look-ahead of one panel or none."""
    for panel in range(first, last):
        now = lines if width_of(panel, run) == run.nb else last_lines
        if run.depth > 0 and panel > 0:
            step_beside(
                panel, state, run, messages, kernels, pieces, now, copies, split_fraction, noisy, random
            )  # fmt: skip
        else:
            factor_on_host(panel, state, run, messages, pieces, now, copies, noisy, random)
            if run.depth > 0:
                swap_ahead(panel, state, run, split_fraction, kernels, pieces, noisy, random)
            else:
                for q in range(run.q):
                    columns = columns_behind(panel, q, run)
                    update_column(panel, q, columns, True, state, run, kernels, pieces, noisy, random)
        meet(panel, state)
        end_step(panel, state)
    if last == len(state.ends):
        update_right_hand_side(state, run, kernels, pieces, noisy, random)
