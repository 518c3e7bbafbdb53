"""Isoefficiency (Grama, Gupta and Kumar 1993): growth of a problem with the ranks that keeps an efficiency.

With T(W, P) the time of an iteration of W cells on P ranks, the efficiency is T(W, P_b) P_b / (T(W, P) P): against P_b,
the fewest ranks of the plan, where the original has the serial program. W(P) is the least W with the efficiency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.parameter_paths import RANK_COUNT
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.plotting.description import AxisDescription, PlotDescription, PlotLine, Scale
from whatif.studies.bracketing import narrowed
from whatif.studies.scaling import GRID, MEMORY, Planner, column
from whatif.studies.study_result import StudyResult
from whatif.table import Column, Table
from whatif.units import BYTE, ONE, SECOND, in_percent

_OCTAVES: Final = 30
"""Range of the growth of the whole grid, in powers of 2."""
_HALVINGS: Final = 24
"""Halvings of that range: W has a relative error of 10^-5."""


@dataclass(frozen=True, eq=False, repr=False)
class Isoefficiency(StudyResult):
    """Growth of the whole grid that keeps an efficiency; arrays [point], NaN if up to 2^30 times is not enough."""

    efficiency: float
    nodes: FloatArray
    ranks: FloatArray
    cells: FloatArray
    """W: cells of the whole grid."""
    growth: FloatArray
    """W over that of the file."""
    time: FloatArray
    memory: FloatArray
    reasons: tuple[str, ...]
    """Reasons why points are infeasible on this platform, each once."""
    device_memory: float = np.nan
    """Memory of a device in B; NaN if the platform does not state it."""
    optional_columns = (["memory"], ["ranks"])

    def table(self) -> Table:
        """One row per number of nodes: cells, growth, time of an iteration, and memory if the scenario states it."""
        arrays = {"nodes": self.nodes, "ranks": self.ranks, "cells": self.cells, "growth": self.growth}
        columns = {name: Column(array, ONE) for name, array in arrays.items()}
        columns["iteration_time"] = Column(self.time, SECOND)
        if np.isfinite(self.memory).any():
            columns["memory"] = Column(self.memory, BYTE)
        return Table(columns, {"efficiency": f"{self.efficiency:g}"})

    def picture(self) -> PlotDescription:
        """Cells of the whole grid over the nodes."""
        axes = AxisDescription("nodes", scale=Scale.LOG, whole=True), AxisDescription("cells", scale=Scale.LOG)
        title = f"cells that hold {in_percent(self.efficiency)} efficiency"
        return PlotDescription(title, *axes, (PlotLine("cells", self.nodes, self.cells),))

    def summary(self) -> tuple[str, ...]:
        """Exponent of the growth, and points that need more memory than a device has."""
        lines, law = [], self.law()
        if law is not None:
            exponent, first, last = law
            where = f"from {first:,.0f} to {last:,.0f} nodes"
            lines.append(f"to hold {in_percent(self.efficiency)}, the cells grow like P^{exponent:.2f} {where}")
        too_large = int((self.memory > self.device_memory).sum())
        if too_large:
            lines.append(f"{too_large} of {len(self.memory)} need more memory than a device has")
        return tuple(lines)

    def obstacle(self) -> str:
        """Reason why no size of the grid has the efficiency on any number of nodes."""
        if np.isfinite(self.cells).any():
            return ""
        never = f"no grid up to 2^{_OCTAVES} times as large has an efficiency of {in_percent(self.efficiency)}"
        return f"infeasible: {next(iter(self.reasons), never)}"

    def law(self) -> tuple[float, float, float] | None:
        """Exponent b of W ~ P^b over the upper half of the points with an answer, and the first and last number of
        nodes of that half; None for fewer than two points."""
        known = np.flatnonzero(np.isfinite(self.cells))
        if len(known) < 2:
            return None
        ends = known[[(len(known) - 1) // 2, -1]]
        exponent = np.diff(np.log(self.cells[ends])) / np.diff(np.log(self.ranks[ends]))
        return float(exponent[0]), float(self.nodes[ends[0]]), float(self.nodes[ends[1]])


def isoefficiency(planner: Planner, efficiency: float, nodes: Sequence[float]) -> Isoefficiency:
    """Growth of the whole grid with the ranks that keeps an efficiency of the strong scaling.

    The fewest nodes are the base, and have no row. All dimensions grow by one factor, to whole cells. The efficiency is
    assumed to increase with the grid. Memory is reported but limits nothing, because the base of a large grid is only a
    reference. Raise `UsageError` for a scenario without a grid, and for fewer than two numbers of nodes.
    """
    counts = np.unique(np.asarray(nodes, dtype=np.float64))
    if planner.grid is None:
        raise UsageError("the isoefficiency needs `[application.grid]`: without it no problem can grow")
    if len(counts) < 2:
        raise UsageError("the isoefficiency needs at least two numbers of nodes")
    times, ranks = _Times(planner), counts[1:] * planner.ranks_per_node
    growth = _growth(times, efficiency, counts[0] * planner.ranks_per_node, ranks)
    whole = times.grown(np.where(np.isnan(growth), 1.0, growth))
    known = np.where(np.isnan(growth), np.nan, 1.0)
    cells = known * np.prod(whole, axis=-1)
    memory = known * planner.memory(ranks, whole) * planner.ranks_per_device
    evaluation = times.evaluation(np.where(np.isnan(growth), 1.0, growth), ranks)
    time = known * column(evaluation, "iteration_time", len(ranks))
    growth = cells / np.prod(planner.whole)
    reasons, room = evaluation.reasons(), planner.device_memory
    return Isoefficiency(efficiency, counts[1:], ranks, cells, growth, time, memory, reasons, room)


def _growth(times: _Times, efficiency: float, fewest: float, ranks: FloatArray) -> FloatArray:
    """Least factor of the cells with an efficiency, by halving; NaN without one."""

    def reached(octaves: FloatArray) -> NDArray[np.bool_]:
        growth = 2.0 ** octaves[:, 0]
        alone = times(growth, np.full(len(ranks), fewest)) * fewest
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(alone / (times(growth, ranks) * ranks) >= efficiency * (1 - 1e-12))[:, None]

    high = np.full(len(ranks), float(_OCTAVES))
    enough = reached(high[:, None])[:, 0]
    return np.where(enough, 2.0 ** narrowed(-high, high, reached, parts=2, rounds=_HALVINGS)[1], np.nan)


class _Times:
    """Times of an iteration in s of larger grids on some ranks, without a limit of memory."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.program: Program = planner.program("strong")

    def grown(self, growth: FloatArray) -> FloatArray:
        """The whole grid [point, dimension], every dimension by the same factor."""
        cells = self.planner.whole * growth[:, None] ** (1 / len(self.planner.keys))
        return np.asarray(np.ceil(cells * (1 - 1e-12)))

    def evaluation(self, growth: FloatArray, ranks: FloatArray) -> Evaluation:
        """Evaluation of larger grids [point]."""
        cells = self.grown(growth)
        parameters = {f"{GRID}.cells.{key}": cells[:, at] for at, key in enumerate(self.planner.keys)}
        return evaluate(self.program, {**parameters, RANK_COUNT: ranks, MEMORY: np.zeros(len(ranks))})

    def __call__(self, growth: FloatArray, ranks: FloatArray) -> FloatArray:
        """Time of an iteration in s [point]."""
        return column(self.evaluation(growth, ranks), "iteration_time", len(ranks))
