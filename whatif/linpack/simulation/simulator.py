"""A run of HPL on a machine: the compiled loops with their arrays around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from whatif.errors import UsageError
from whatif.linpack.simulation import (
    accelerated_kernel,
    ahead_kernel,
    broadcast_kernel,
    costs,
    layout,
    loop_kernel,
    panel_kernel,
    sharing_kernel,
    solve_kernel,
    step_kernel,
    swap_kernel,
)
from whatif.linpack.simulation.broadcasts import paths_of
from whatif.linpack.simulation.configuration import Configuration, Mapping, RowSwap
from whatif.linpack.simulation.layout import RunNumbers
from whatif.linpack.simulation.panel import panel_lines
from whatif.linpack.simulation.rolling import rolled_rows
from whatif.linpack.simulation.sampling import RECORDED_EVERY, Window, play_windows, simulated_steps, windows_of
from whatif.linpack.simulation.sharing_kernel import NOTED_COLUMNS, Adapters
from whatif.linpack.simulation.step_kernel import HPLState, PanelMessages, Room
from whatif.linpack.simulation.swaps import exchanges_of
from whatif.models.quantities import FloatArray, IntArray
from whatif.simulation.jit import jitted_or_plain

COMPONENTS: Final = {
    "recursive_factorisation": layout.FACTORED,
    "pivot_exchange": layout.AGREED,
    "update": layout.UPDATED,
    "row_swap": layout.SWAPPED,
    "back_substitution": layout.SOLVED,
    "broadcast": layout.BROADCAST,
}
"""Parts of the time, as HPL's detailed timing names them, and the broadcast, by column of `HPLState.times`."""
Progress = Callable[[int, int], None]
"""Function of the number of finished steps and of all steps; may raise to end the run."""
_MODULES: Final = (
    costs, layout, panel_kernel, broadcast_kernel, swap_kernel, sharing_kernel, solve_kernel, step_kernel, ahead_kernel,
    loop_kernel,
)  # fmt: skip
_ACCELERATED: Final = (*_MODULES, accelerated_kernel)
_INLINED: Final = frozenset({
    "go_on", "may_go_on", "wake", "answer_targets", "gather", "gather_time", "exchange_rows", "swap_rows", "exchange",
    "send_posted", "note", "crowd_of", "panel_gap", "take", "send_on", "finish", "update_until_sent", "columns_time",
    "update_mean", "update_deviation", "size_time", "with_noise", "noise", "compute_between", "agree_on_pivot",
    "exchange_along",
})  # fmt: skip
"""Functions called for every process or exchange of a step, for which a call would be too expensive."""
_STEPS_AT_ONCE: Final = 64
_MOST_SETTLED: Final = 500
"""Least number of steps of a run, about, that determine how many messages share the adapters."""


@dataclass(frozen=True, slots=True, eq=False)
class HostProcessors:
    """Processors that factor panels during updates on accelerators: those of a node's host, or the accelerators."""

    kernels: FloatArray
    """[row of `KERNELS`, 5], on the host with all of the node's cores."""
    copies: FloatArray
    """[to the host or back, 2]: latency, and time per byte."""
    split_fraction: float
    """Share of a process's columns whose rows are swapped a step ahead, at most."""
    is_shared: bool = True
    """Whether processes of one process column divide the processors of their node, while those of the node's other
    process columns lend theirs, as in rocHPL."""


@dataclass(frozen=True, slots=True, eq=False)
class HPLMachine:
    """Costs of kernels and messages; see `whatif.linpack.simulation.costs`."""

    kernels: FloatArray
    """[row of `KERNELS`, 5]"""
    pieces: FloatArray
    """[local or remote, piece, 8]"""
    nodes: IntArray
    """[rank]: the node of each rank."""
    factors: FloatArray
    """[rank]: time of dgemm on each rank's processor, relative to the model."""
    adapter_gap: float = 0.0
    """Time per byte of a node's adapter, which its ranks share, or of a group's link; 0: messages never wait for it."""
    deviations: FloatArray | None = None
    """[rank]: deviation of dgemm on each rank's processor, relative to the model, besides its factor; None: 1."""
    groups: IntArray | None = None
    """[rank]: group of the shared links, the switch of the rank; None: the adapter of its node."""
    links: IntArray | None = None
    """[rank]: the one of a group's links that messages to it take (D-mod-k); None: each group has one."""
    host: HostProcessors | None = None
    """None: there are no accelerators, panels and updates follow one another."""

    def slowed(self, factor: float) -> HPLMachine:
        """Machine with the times and deviations of all kernels, also those of the host, multiplied by `factor`."""
        host = None if self.host is None else replace(self.host, kernels=_slowed(self.host.kernels, factor))
        return replace(self, kernels=_slowed(self.kernels, factor), host=host)


@dataclass(frozen=True, slots=True, eq=False)
class HPLOutcome:
    """Outcome of one run."""

    configuration: Configuration
    time: float
    """Time at which the last process had solved the system, in s."""
    components: dict[str, FloatArray]
    """[process row, process column] of each part: s. They overlap, as HPL's do: pivots are part of the factorisation,
    swaps and waiting for a broadcast part of the update."""
    ends: FloatArray
    """[panel]: when the last process had done its part of the step, in s."""
    seen: FloatArray
    """[panel, process row, process column, 5], of the first panels: when factorisation and broadcast began and ended,
    waiting for the panel with nothing else to do included, and when the update with it ended; NaN where a process had
    no part in it."""

    @property
    def rate(self) -> float:
        """Operations a second, as HPL reports them."""
        return self.configuration.operations / self.time

    def progress(self) -> tuple[FloatArray, FloatArray]:
        """Share of the columns done after each panel, and operations a second up to then."""
        n, nb = self.configuration.matrix_size, self.configuration.block_size
        done = np.minimum((np.arange(len(self.ends)) + 1) * nb, n)
        left = n - done
        operations = 2 / 3 * (float(n) ** 3 - left.astype(float) ** 3)
        return done / n, operations / self.ends


def simulate(
    configuration: Configuration,
    machine: HPLMachine,
    *,
    seed: int = 0,
    noisy: bool = False,
    panels_seen: int = 0,
    progress: Progress | None = None,
    sampled: bool = False,
) -> HPLOutcome:
    """Outcome of one run; `seed` draws the pivots and, if `noisy`, the deviations of kernels.

    The first `panels_seen` panels are recorded for every process. Of a `sampled` run windows of steps are simulated,
    see `sampling`. Raise `UsageError` if the numbers of ranks of the machine and of the grid differ.
    """
    if len(machine.nodes) != configuration.rank_count:
        wanted = f"{configuration.process_rows} x {configuration.process_columns} = {configuration.rank_count}"
        raise UsageError(f"the grid needs {wanted} ranks; the machine has {len(machine.nodes)}")
    windows = _windows(configuration, machine) if sampled else []
    run = _run(configuration, machine, rolls_at_once=bool(windows))
    state = _state(configuration, machine, run, panels_seen, windows)
    random = np.random.Generator(np.random.PCG64(seed))
    _simulate(configuration, run, state, machine, bool(noisy), random, progress, windows)
    shape = (run.p, run.q)
    return HPLOutcome(
        configuration,
        float(state.times[:, layout.CLOCK].max()),
        {name: state.times[:, at].reshape(shape).copy() for name, at in COMPONENTS.items()},
        state.ends,
        state.seen.reshape(panels_seen, *shape, layout.SEEN_COLUMNS),
    )


def _simulate(
    configuration: Configuration, run: RunNumbers, state: HPLState, machine: HPLMachine, noisy: bool, random: Any,
    progress: Progress | None, windows: Sequence[Window],
) -> None:  # fmt: skip
    count, messages, host = configuration.step_count, _messages(configuration, run), machine.host
    width = configuration.matrix_size - (count - 1) * configuration.block_size
    kernels = machine.kernels if host is None else _of_panels(configuration, machine, host)
    lines = panel_lines(configuration, min(configuration.block_size, configuration.matrix_size), kernels)
    charges = machine.kernels, machine.pieces, lines, panel_lines(configuration, width, kernels)
    modules, entry = (_MODULES, "steps") if host is None else (_ACCELERATED, "accelerated_steps")
    host_costs = () if host is None else (host.copies, host.split_fraction)
    steps, back_substitute = jitted_or_plain(modules, (entry, "back_substitute"), borrowing=True, inlined=_INLINED)
    simulated, wanted = 0, simulated_steps(windows, count) if windows else count

    def play(start: int, end: int) -> None:
        nonlocal simulated
        for first in range(start, end, _STEPS_AT_ONCE):
            behind = min(first + _STEPS_AT_ONCE, end)
            steps(first, behind, state, run, messages, *charges, *host_costs, noisy, random)
            simulated += behind - first
            if progress is not None:
                progress(simulated, wanted)

    if windows:
        play_windows(windows, play, state, run)
    else:
        play(0, count)
    back_substitute(state.times, state.marks, machine.kernels, machine.pieces, run, noisy, random)


def _slowed(kernels: FloatArray, factor: float) -> FloatArray:
    """Table of kernels with all times and deviations multiplied, but not the sizes from which dgemm is offloaded."""
    found = kernels * factor
    found[costs.DGEMM_LIMITS] = kernels[costs.DGEMM_LIMITS]
    return found


def _of_panels(configuration: Configuration, machine: HPLMachine, host: HostProcessors) -> FloatArray:
    """Kernels of panels: those of the host divided among the most processes of a node in one process column."""
    if not host.is_shared:
        return host.kernels
    nodes = machine.nodes[rank_of_process(configuration)].reshape(configuration.process_rows, -1)
    return host.kernels * max(int(np.unique(column, return_counts=True)[1].max()) for column in nodes.T)


def _windows(configuration: Configuration, machine: HPLMachine) -> list[Window]:
    ranks_per_node = int(np.unique(machine.nodes, return_counts=True)[1].max())
    grid = configuration.process_rows, configuration.process_columns
    return windows_of(configuration.step_count, *grid, ranks_per_node)


def _run(configuration: Configuration, machine: HPLMachine, *, rolls_at_once: bool = False) -> RunNumbers:
    """Numbers of a run; HPL does not look ahead with a single process column, or further than a panel on the host."""
    p, q, depth = configuration.process_rows, configuration.process_columns, configuration.depth
    if machine.host is not None and depth > 1:
        raise UsageError(f"depth is {depth}; on GPUs HPL looks ahead one panel, or none")
    if machine.host is None and q == 1:
        depth = 0
    n, nb = configuration.matrix_size, configuration.block_size
    depth = min(depth, configuration.step_count)
    roll_rows = rolled_rows(p, nb) if rolls_at_once and machine.host is not None else 0.0
    return RunNumbers(n, nb, p, q, depth, int(configuration.swap), configuration.swap_threshold, roll_rows)


def _messages(configuration: Configuration, run: RunNumbers) -> PanelMessages:
    paths = paths_of(configuration.broadcast, configuration.process_columns)
    exchanges = exchanges_of(configuration.process_rows)
    targets = np.column_stack([paths.targets, paths.sources])
    roll = exchanges.roll[:0] if run.roll_rows > 0 else exchanges.roll
    return PanelMessages(targets, paths.spread, paths.roll, paths.chunk_count, exchanges.binary, roll, exchanges.cube)


def _state(
    configuration: Configuration, machine: HPLMachine, run: RunNumbers, panels_seen: int, windows: Sequence[Window]
) -> HPLState:
    p, q, depth = run.p, run.q, run.depth
    exchanges = exchanges_of(p)
    # To even rows out (HPL_equil) no more than 2 P pieces move, each over log2 P messages, and to the left twice.
    # All at once they are one piece of each process.
    rolled = p if run.roll_rows > 0 else len(exchanges.roll)
    rolling = 0 if configuration.swap is RowSwap.BINARY_EXCHANGE else rolled + 4 * p * p.bit_length()
    capacity = max(len(exchanges.binary), rolling, 1)
    place = rank_of_process(configuration)
    deviations = np.ones(p * q) if machine.deviations is None else machine.deviations
    times, marks = np.zeros((p * q, layout.TIME_COLUMNS)), np.zeros((p * q, layout.MARK_COLUMNS), dtype=np.int64)
    times[:, layout.FACTOR], times[:, layout.DEVIATION] = machine.factors[place], deviations[place]
    marks[:, layout.NODE] = np.unique(machine.nodes[place], return_inverse=True)[1]
    groups = machine.nodes if machine.groups is None else machine.groups
    marks[:, layout.GROUP] = np.unique(groups[place], return_inverse=True)[1]
    marks[:, layout.LINK] = 0 if machine.links is None else machine.links[place]
    interval = RECORDED_EVERY if windows else max(1, configuration.step_count // _MOST_SETTLED)
    adapters = _adapters(configuration, machine, marks, capacity, interval)
    room = Room(
        np.zeros((layout.COLUMN_DEVIATION + 1, p)), np.zeros((layout.ROW_TAKEN + 1, q)), np.zeros((p.bit_length(), p)),
        np.zeros((2, 2, layout.CHARGE_SIZE + 1)), np.zeros((q, layout.CHUNK_SIZE + 1)),
        np.zeros(p + 1), np.zeros(p), np.zeros(p), np.zeros(p, dtype=np.int64),
    )  # fmt: skip
    return HPLState(
        times, marks, np.zeros(configuration.step_count), np.full((panels_seen, p * q, layout.SEEN_COLUMNS), np.nan),
        np.zeros((depth + 1, p)), np.zeros((depth + 1, 2, capacity, layout.SWAP_COLUMNS)),
        np.zeros((depth + 1, 2), dtype=np.int64), np.zeros((depth + 1, 2, p), dtype=np.int64),
        np.zeros(4 * p * q + 1, dtype=np.int64),
        adapters, room,
    )  # fmt: skip


def _adapters(
    configuration: Configuration, machine: HPLMachine, marks: IntArray, capacity: int, interval: int
) -> Adapters:
    process_count, p, q = len(marks), configuration.process_rows, configuration.process_columns
    pivots = capacity * q
    panels = pivots + p * p.bit_length()
    places = panels + process_count
    # Panels on the host: rows are swapped in two sections.
    sections = 1 if machine.host is None else 2
    most = sections * (capacity + 4) * q + 2 * process_count + panels - pivots if machine.adapter_gap > 0 else 0
    link_count, group_count = (1 + marks[:, [layout.LINK, layout.GROUP]].max(axis=0)).tolist()
    lane_count = 2 * link_count * group_count
    return Adapters(
        machine.adapter_gap, link_count, np.ones(lane_count), np.ones(places), pivots, panels,
        np.zeros((most, NOTED_COLUMNS)), np.zeros(1, dtype=np.int64), machine.groups is None,
        interval,
        np.zeros(lane_count + 1, dtype=np.int64), np.zeros(4 * most, dtype=np.int64), np.zeros(most),
        np.zeros((4, most)), np.zeros((3, most + 1), dtype=np.int64),
    )  # fmt: skip


def rank_of_process(configuration: Configuration) -> IntArray:
    """[process]: its rank, by PMAP."""
    p, q = configuration.process_rows, configuration.process_columns
    ranks = np.arange(p * q)
    if configuration.mapping is Mapping.COLUMN:
        return ranks.reshape(q, p).T.reshape(-1)
    return ranks
