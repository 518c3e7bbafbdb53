"""The processors of a machine: how much faster or slower each is than the model of a kernel, and how that spreads.

M_H and N_H of Cornebize et al. 2019, section 6.1, as one factor for each processor: of 64 processors of Dahu, measured
over five weeks, the slowest takes 10 % more than the mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.errors import UsageError, abridged, did_you_mean
from whatif.measuring.repetition import MAD_SCALE
from whatif.models.quantities import FloatArray

SLOW: Final = 3.0
"""Robust standard deviations above the median from which a processor is called slow."""
MOST_PROCESSORS: Final = 1_000_000
"""Processors of a synthetic machine."""


@dataclass(frozen=True, eq=False)
class Processors:
    """Relative times of processors, in the order of node and processor; arrays of shape (processors,)."""

    nodes: tuple[str, ...]
    """Nodes of the processors."""
    cpus: tuple[str, ...]
    """Names of the processors within their nodes."""
    factors: FloatArray
    """Time relative to the model, mean 1 when they come from a calibration."""
    run_counts: FloatArray
    """Number of calibrations of each processor."""
    drift: float
    """Standard deviation of the factor of one processor from one calibration to the next; NaN where none was repeated.
    """

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def keys(self) -> tuple[str, ...]:
        """`node1_cpu0`: names of the processors in a platform file."""
        return tuple(
            f"{_key('node', node)}_{_key('cpu', cpu)}" for node, cpu in zip(self.nodes, self.cpus, strict=True)
        )

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the factors, from the drift; NaN where it is not known."""
        return self.drift / np.sqrt(self.run_counts)

    @property
    def table(self) -> dict[str, float]:
        """Table `[kernels.processors]`."""
        return dict(zip(self.keys, self.factors.tolist(), strict=True))

    @property
    def slow(self) -> tuple[str, ...]:
        """Keys of processors that are more than `SLOW` robust standard deviations slower than the median."""
        median = float(np.median(self.factors))
        limit = median + SLOW * MAD_SCALE * float(np.median(np.abs(self.factors - median)))
        return tuple(key for key, factor in self.table.items() if factor > limit)

    def without(self, nodes: Iterable[str]) -> Processors:
        """The machine without these nodes; raise `UsageError` for a missing node, and if none is left."""
        kept = ~self._of(nodes)
        if not kept.any():
            raise UsageError("no node is left")
        return self._where(kept)

    def averaged(self, nodes: Iterable[str]) -> Processors:
        """The machine with the mean of all others in the place of these nodes' processors; raise as `without`."""
        replaced = self._of(nodes)
        if replaced.all():
            raise UsageError("no node is left to take the average of")
        return replace(self, factors=np.where(replaced, self.factors[~replaced].mean(), self.factors))

    def _of(self, nodes: Iterable[str]) -> NDArray[np.bool_]:
        names = [self._node(node) for node in nodes]
        return np.isin(np.array(self.nodes, dtype=str), np.array(names, dtype=str))

    def _node(self, name: str) -> str:
        known = dict.fromkeys(self.nodes)
        found = next((node for node in known if name in (node, _key("node", node))), None)
        if found is None:
            raise UsageError(f"no node `{name}` was calibrated{did_you_mean(name, known)}")
        return found

    def _where(self, kept: NDArray[np.bool_]) -> Processors:
        places = np.flatnonzero(kept).tolist()
        return Processors(
            tuple(self.nodes[at] for at in places),
            tuple(self.cpus[at] for at in places),
            self.factors[kept],
            self.run_counts[kept],
            self.drift,
        )


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithm of a factor by what they come from, without the drift."""

    means: tuple[float, ...]
    """Mean of the logarithms by place in the node: the first processor may be the warmer one in all of them."""
    node: float
    """From node to node."""
    cpu: float
    """From processor to processor of a node."""


def processors(nodes: Any, cpus: Any, times: Any, weights: Any = None) -> Processors:
    """The processors of calibrations, one a row: its node, its processor and its time, in any unit.

    `weights` are 1/σ² of the times. A processor's factor is the mean over its calibrations; all are divided by their
    mean. Raise `UsageError` for times that are not above zero.
    """
    time = np.asarray(times, dtype=float)
    weight = np.ones_like(time) if weights is None else np.asarray(weights, dtype=float)
    if not (np.isfinite(time) & (time > 0)).all():
        raise UsageError("the time of a processor must be above zero")
    names = [(str(node), str(cpu)) for node, cpu in zip(nodes, cpus, strict=True)]
    known = sorted(set(names), key=lambda name: (_order(name[0]), _order(name[1])))
    places = {name: at for at, name in enumerate(known)}
    owner = np.array([places[name] for name in names])
    counts = np.bincount(owner).astype(float)
    means = np.bincount(owner, weight * time) / np.bincount(owner, weight)
    overall = float(means.mean())
    freedom = len(time) - len(known)
    squares = float((((time - means[owner]) / overall) ** 2).sum())
    drift = float(np.sqrt(squares / freedom)) if freedom else np.nan
    nodes_known, cpus_known = (tuple(column) for column in zip(*known, strict=True))
    return Processors(nodes_known, cpus_known, means / overall, counts, drift)


def spread(found: Processors) -> Spread:
    """Components of the variance of the logarithms by the method of moments, none below zero.

    The mean squares between processors of a node and between nodes (nested analysis of variance; S. R. Searle, G.
    Casella and C. E. McCulloch, Variance Components, 1992, section 3.3), less what the drift explains. Raise
    `UsageError` for fewer than three nodes, and for nodes with different numbers of processors.
    """
    logs = np.log(found.factors)
    owner = np.unique(np.array(found.nodes, dtype=str), return_inverse=True)[1]
    counts = np.bincount(owner)
    if len(counts) < 3 or np.ptp(counts) > 0:
        message = f"{len(counts)} nodes with {counts.min()} to {counts.max()} processors were calibrated"
        raise UsageError(f"{message}; a distribution of nodes needs at least 3 identical nodes")
    # A row a node, a column a processor.
    grid = logs[np.argsort(owner, kind="stable")].reshape(len(counts), -1)
    places, rows = grid.mean(axis=0), grid.mean(axis=1)
    drift = float(np.nan_to_num(found.drift)) ** 2 * float(np.mean(1 / found.run_counts))
    freedom = (grid.shape[0] - 1) * (grid.shape[1] - 1)
    rest = grid - places - rows[:, None] + grid.mean()
    within = float((rest**2).sum()) / freedom if freedom else drift
    between = float(np.var(rows, ddof=1)) - within / grid.shape[1]
    return Spread(tuple(places.tolist()), max(between, 0.0) ** 0.5, max(within - drift, 0.0) ** 0.5)


def synthetic_processors(effects: Spread, node_count: int, seed: int) -> dict[str, float]:
    """`[kernels.processors]` of a machine that was never built, drawn from a distribution of processors.

    A factor is exp(mean of the place + node + processor) with both effects normal (`spread`): it is log-normal. Raise
    `UsageError` for no nodes or too many, and a seed below zero.
    """
    cpu_count = len(effects.means)
    if not 1 <= node_count * cpu_count <= MOST_PROCESSORS:
        raise UsageError(f"{node_count} nodes: there must be at least 1 and at most {MOST_PROCESSORS // cpu_count:,}")
    if seed < 0:
        raise UsageError(f"a seed of {seed}; it must not be below zero")
    random = np.random.default_rng(seed)
    node = random.normal(0.0, effects.node, (node_count, 1))
    drawn = np.exp(np.array(effects.means) + node + random.normal(0.0, effects.cpu, (node_count, cpu_count)))
    return {f"node{row + 1}_cpu{column}": float(drawn[row, column]) for row, column in np.ndindex(drawn.shape)}


def in_words(found: Processors) -> list[str]:
    """Differences of the processors and their drift, a line each."""
    lowest, highest = (float(end) for end in (found.factors.min(), found.factors.max()))
    deviation = float(np.std(found.factors))
    lines = [f"{len(found)} processors differ by {deviation:.2%} (standard deviation; {lowest:.4f} to {highest:.4f})"]
    if np.isfinite(found.drift):
        runs = f"{found.run_counts.min():g} to {found.run_counts.max():g} calibrations each"
        lines.append(f"from one calibration to the next the same processor differs by {found.drift:.2%} ({runs})")
    return lines


def slow_in_words(found: Processors) -> list[str]:
    """Warning with the slow processors; empty without any."""
    table, names = found.table, found.slow
    listed = abridged([f"{key} ({table[key] - 1:+.1%})" for key in names], 8)
    message = f"slower than all others by more than {SLOW:g} robust standard deviations: {listed}"
    return [f"{message}; `--without NODE` or `--average NODE` shows the machine without"] if names else []


def _key(lead: str, name: str) -> str:
    """A name as a key of a platform file."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if plain[:1].isalpha() else f"{lead}{plain}"


def _order(name: str) -> tuple[tuple[int, str], ...]:
    """`node10` after `node9`."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name) if part)
