"""Steps of a long run that are simulated, and the times of those between them.

The time of a step changes slowly with the matrix that remains. Short windows of steps are simulated. From the end of
one to the start of the next the state is carried over: each process takes the place of the one that was as far from
the pivot block. Periods between windows are interpolated: their roots linearly, as products are quadratic in what
remains. This holds for identical processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import Final, NamedTuple

import numpy as np

from whatif.linpack.simulation.layout import (
    ABSENT,
    BEGUN,
    BROADCAST,
    CLOCK,
    DEVICE,
    FACTORED,
    POSTED,
    UPDATED_SO_FAR,
    RunNumbers,
)
from whatif.linpack.simulation.step_kernel import HPLState
from whatif.models.quantities import FloatArray

LEAST_WORK: Final = 3e7
"""Steps times processes above which steps are sampled by default."""
RECORDED_EVERY: Final = 4
"""Steps from one to the next whose messages determine how many share the adapters."""
_WINDOW_COUNT, _LEAST_WINDOWS = 24, 16
"""Windows of a run, about and at least."""
_SETTLING, _MEASURED = 8, 16
"""Steps of a window before those that count, and that count, at least."""
_FIRST, _LAST = 48, 128
"""Steps at the start and at the end that all count."""
_CLOCKS: Final = (CLOCK, POSTED, BEGUN, ABSENT, DEVICE, UPDATED_SO_FAR)
_PARTS: Final = slice(FACTORED, BROADCAST + 1)
Play = Callable[[int, int], None]
"""Function that simulates the steps from the first number up to, but not, the second."""


class Window(NamedTuple):
    """Steps [first, behind) that are simulated; those from `settled` on count."""

    first: int
    settled: int
    behind: int


def windows_of(step_count: int, p: int, q: int, ranks_per_node: int) -> list[Window]:
    """Windows of a run on P x Q processes; empty if they would be about all of it."""
    settling, measured = (-(-least // ranks_per_node) * ranks_per_node for least in (_SETTLING, _MEASURED))
    last = step_count - _LAST - settling - measured
    distance = max(last // _WINDOW_COUNT, 2 * (settling + measured))
    unit = _unit(p, q, ranks_per_node, distance)
    distance = distance // unit * unit
    found = [Window(0, _FIRST, _FIRST + measured)]
    while distance > 0 and (left := (last - found[-1].behind) // unit * unit) > 0:
        start = found[-1].behind + min(left, distance)
        found.append(Window(start, start + settling, start + settling + measured))
    return found if len(found) > _LEAST_WINDOWS else []


def _unit(p: int, q: int, ranks_per_node: int, most: int) -> int:
    """Steps that processes move by between windows: after these the same ones have the most rows and columns left.

    For grids with no such small number it is that of the rows, or just that of a node's ranks.
    """
    return next(unit for unit in (lcm(p, q, ranks_per_node), lcm(p, ranks_per_node), ranks_per_node)
                if unit <= most or unit == ranks_per_node)  # fmt: skip


def simulated_steps(windows: Sequence[Window], step_count: int) -> int:
    """Number of steps that are simulated."""
    return sum(window.behind - window.first for window in windows) + step_count - windows[-1].behind


def play_windows(windows: Sequence[Window], play: Play, state: HPLState, run: RunNumbers) -> None:
    """Simulate the windows and all steps behind the last; leave clocks, ends and parts as of the whole run."""
    parts, shares = state.times[:, _PARTS], []
    for before, window in zip([None, *windows], windows, strict=False):
        if before is not None:
            _carry_over(before, window, state, run)
        saved = parts.copy()
        play(window.first, window.settled)
        if before is not None:
            parts[:] = saved
        saved = parts.copy()
        play(window.settled, window.behind)
        shares.append((parts - saved) / (window.behind - window.settled))
    play(windows[-1].behind, len(state.ends))
    _interpolate(windows, shares, state)


def _period(window: Window, ends: FloatArray) -> float:
    return float((ends[window.behind - 1] - ends[window.settled - 1]) / (window.behind - window.settled))


def _carry_over(before: Window, after: Window, state: HPLState, run: RunNumbers) -> None:
    """Move the state to the next window; the time between them is provisional."""
    skipped, parts = after.first - before.behind, state.times[:, _PARTS].copy()
    passed = _period(before, state.ends) * np.arange(1, skipped + 1)
    state.ends[before.behind : after.first] = state.ends[before.behind - 1] + passed
    panels = state.adapters.crowds[state.adapters.panels :]
    for values in (state.times, panels):
        grid = values.reshape(run.p, run.q, -1)
        grid[:] = np.roll(grid, (skipped, skipped), axis=(0, 1))
    state.times[:, _PARTS] = parts
    state.times[:, _CLOCKS] += passed[-1]
    for slots in (state.counts, state.swaps, state.used, state.openings):
        slots[:] = np.roll(slots, skipped, axis=0)


def _interpolate(windows: Sequence[Window], shares: Sequence[FloatArray], state: HPLState) -> None:
    """Replace the periods between windows, and add the parts of their steps."""
    missing = np.ones(len(state.ends), dtype=bool)
    missing[: windows[0].behind] = missing[windows[-1].settled :] = False
    for window in windows:
        missing[window.settled : window.behind] = False
    steps = np.flatnonzero(missing)
    centres = [(window.settled + window.behind - 1) / 2 for window in windows]
    durations, end = np.diff(state.ends, prepend=0.0), state.ends[-1]
    durations[steps] = np.interp(steps, centres, [_period(window, state.ends) ** 0.5 for window in windows]) ** 2
    state.ends[:] = np.cumsum(durations)
    state.times[:, _CLOCKS] += state.ends[-1] - end
    for share, own in zip(shares, np.eye(len(windows)), strict=True):
        state.times[:, _PARTS] += share * np.interp(steps, centres, own).sum()
