"""Isoefficiency (Grama, Gupta and Kumar 1993): how a problem must grow with the ranks to hold an efficiency.

With T(W, P) the time of an iteration of W cells on P ranks, the efficiency is T(W, P_b) P_b / (T(W, P) P): against P_b,
the fewest ranks that are asked for, where the original has the serial program. W(P) is the least W that reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.models.quantities import FloatArray
from whatif.studies.scaling import GRID, MEMORY, RANKS, Planner, column

_OCTAVES: Final = 30
"""How far the whole grid may grow or shrink, in powers of 2."""
_HALVINGS: Final = 24
"""How often that range is halved: W is told to 10^-5."""


@dataclass(frozen=True, slots=True, eq=False)
class Isoefficiency:
    """How the whole grid must grow to hold an efficiency; arrays [point], NaN where no size within 2^30 times does."""

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
    """Why points cannot exist on this machine, each reason once."""

    def law(self) -> tuple[float, float, float] | None:
        """b of W ~ P^b over the upper half of the points that have an answer, with the nodes from and to which it
        holds; None for fewer than two."""
        known = np.flatnonzero(np.isfinite(self.cells))
        if len(known) < 2:
            return None
        ends = known[[(len(known) - 1) // 2, -1]]
        exponent = np.diff(np.log(self.cells[ends])) / np.diff(np.log(self.ranks[ends]))
        return float(exponent[0]), float(self.nodes[ends[0]]), float(self.nodes[ends[1]])


def isoefficiency(planner: Planner, efficiency: float, nodes: Sequence[float]) -> Isoefficiency:
    """How the whole grid must grow with the ranks to hold an efficiency of the strong scaling.

    The fewest nodes are the base, and have no row. All dimensions grow by one factor, to whole cells. The efficiency is
    taken to grow with the grid. Memory is told, but refuses nothing: the base of a large grid is no run that anybody
    makes. Raise `UsageError` for a scenario without a grid, and for fewer than two numbers of nodes.
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
    memory = known * planner.memory(ranks, whole) * planner.ranks_per_gpu
    evaluation = times.evaluation(np.where(np.isnan(growth), 1.0, growth), ranks)
    time = known * column(evaluation, "iteration_time", len(ranks))
    growth = cells / np.prod(planner.whole)
    return Isoefficiency(efficiency, counts[1:], ranks, cells, growth, time, memory, evaluation.reasons())


def _growth(times: _Times, efficiency: float, fewest: float, ranks: FloatArray) -> FloatArray:
    """The least factor of the cells that reaches an efficiency, by halving; NaN where none does."""

    def reached(octaves: FloatArray) -> NDArray[np.bool_]:
        alone = times(2.0**octaves, np.full(len(ranks), fewest)) * fewest
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(alone / (times(2.0**octaves, ranks) * ranks) >= efficiency * (1 - 1e-12))

    low, high = np.full(len(ranks), -float(_OCTAVES)), np.full(len(ranks), float(_OCTAVES))
    never = ~reached(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = reached(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(never, np.nan, 2.0**high)


class _Times:
    """Times of an iteration in s of grids that have grown, on some ranks; memory refuses nothing."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.program: Program = planner.program("strong")

    def grown(self, growth: FloatArray) -> FloatArray:
        """The whole grid [point, dimension], every dimension by the same factor."""
        cells = self.planner.whole * growth[:, None] ** (1 / len(self.planner.keys))
        return np.asarray(np.ceil(cells * (1 - 1e-12)))

    def evaluation(self, growth: FloatArray, ranks: FloatArray) -> Evaluation:
        """[point]"""
        cells = self.grown(growth)
        parameters = {f"{GRID}.cells.{key}": cells[:, at] for at, key in enumerate(self.planner.keys)}
        return evaluate(self.program, {**parameters, RANKS: ranks, MEMORY: np.zeros(len(ranks))})

    def __call__(self, growth: FloatArray, ranks: FloatArray) -> FloatArray:
        """[point]"""
        return column(self.evaluation(growth, ranks), "iteration_time", len(ranks))
