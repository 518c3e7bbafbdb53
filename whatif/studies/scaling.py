"""Strong and weak scaling of a scenario, with memory and node-hours.

T is the time of an iteration on P ranks, and P_b the fewest ranks of a plan that have an answer.
- Strong scaling keeps the whole grid: speedup T(P_b) / T(P), efficiency T(P_b) P_b / (T(P) P).
- Weak scaling keeps the cells of a rank: efficiency T(P_b) / T(P), scaled speedup (Gustafson 1988) efficiency P / P_b.
- Node-hours are those of the whole job: nodes times its total time.
- Memory: a rank needs `application.memory_size` with the cells it has in the file, and in proportion with others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from whatif.core.context import DIMENSIONS
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.fit_range import extrapolations
from whatif.core.parameter_paths import NODE_COUNT, RANK_COUNT
from whatif.core.result import why_not
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import InfeasiblePointError, UsageError
from whatif.models.decomposition import largest_box, local_cells
from whatif.models.quantities import FloatArray
from whatif.schema.application import CellGrid
from whatif.units import in_percent

Mode = Literal["strong", "weak"]
GRID: Final = "application.grid"
MEMORY: Final = "application.memory_size"
_FITS: Final = "placement.memory_size fits"
"""Term that compares the memory of the ranks of a device with that of the device."""
_MOST_NODES: Final = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Strong or weak scaling over numbers of nodes; arrays [point], NaN for infeasible points."""

    nodes: FloatArray
    ranks: FloatArray
    time: FloatArray
    """Time of an iteration, in s."""
    speedup: FloatArray
    efficiency: FloatArray
    communication: FloatArray
    """Share of communication in the time of an iteration."""
    memory: FloatArray
    """Memory of a device in B; NaN if the scenario does not state the memory of a rank."""
    node_time: FloatArray
    """Nodes times the total time, in s."""
    reasons: tuple[str, ...]
    """Reason why a point is infeasible; empty for a feasible one."""
    extrapolated: tuple[str, ...] = ()
    """Inputs outside of the range of the runs or measurements that they were fitted to."""

    def largest(self, efficiency: float) -> int | None:
        """Index of the most nodes with at least this efficiency."""
        found = np.flatnonzero(self.efficiency >= efficiency * (1 - 1e-12))
        return int(found[self.nodes[found].argmax()]) if found.size else None

    def cheapest(self, *, with_time: bool = False) -> int | None:
        """Index of the fewest node-hours, or of the least product of node-hours and time."""
        cost = self.node_time * self.time if with_time else self.node_time
        return int(np.nanargmin(cost)) if np.isfinite(cost).any() else None


class Planner:
    """Scenario at any number of nodes, derived from the problem that its file states for its number of ranks."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        program = scenario.program
        application = program.loaded.scenario.application
        if "scaling" in application.refused_studies:
            raise UsageError(application.refused_studies["scaling"])
        self.now = evaluate(program)
        self.grid: CellGrid | None = application.grid
        self.states_whole = application.states_whole
        self.rank_count = float(self.now.values[RANK_COUNT])
        stated = "application.ranks_per_node"
        self.ranks_per_node = float(
            self.now.values[stated if stated in program.parameters else "placement.ranks_per_node"]
        )
        self.memory_size = float(self.now.values[MEMORY])
        self.ranks_per_device, self.device_memory = self._room(program)

    def _room(self, program: Program) -> tuple[float, float]:
        """Ranks of a full node that share the memory of a GPU, or of the node, and its size in B; NaN if not stated."""
        if _FITS not in program.terms:
            return float(self.now.values["application.ranks_per_gpu"]), np.nan
        sizes = program.terms[_FITS].inputs
        sharing = program.terms[str(sizes["needed_size"])].inputs["ranks_per_device"]
        full = program.terms[str(sharing)].inputs["available_count"]
        return float(self.now.values[str(full)]), float(self.now.values[str(sizes["available_size"])])

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on parts of the scenario that do not scale as expected."""
        if self.states_whole:
            return ("the file states the work of all ranks together: only strong scaling is shown",)
        if self.grid is None:
            return ("without `[application.grid]` the work of a rank is fixed: only weak scaling is shown",)
        lines = []
        if self._kind != self.grid.decomposition:
            lines.append(f"a given decomposition holds for one number of ranks: `{self._kind}` here")
        if self.grid.mapping == "file":
            lines.append("the mapping of the file holds for one number of ranks: `block` here")
        scaled = {RANK_COUNT, *(f"{GRID}.cells.{key}" for key in self.grid.cells)}
        program = self.scenario.program
        fixed = [item.phase for item in program.phases if scaled.isdisjoint(program.inputs_of(item.term))]
        return (*lines, f"the same at all numbers of ranks: {', '.join(fixed)}") if fixed else tuple(lines)

    @property
    def _kind(self) -> str:
        assert self.grid is not None
        return "balanced" if self.grid.decomposition == "given" else self.grid.decomposition

    @property
    def keys(self) -> list[str]:
        """Names of the grid's dimensions."""
        assert self.grid is not None
        return list(self.grid.cells)

    def _stated(self, table: str) -> FloatArray:
        return np.array([float(self.now.values[f"{GRID}.{table}.{key}"]) for key in self.keys])

    @cached_property
    def whole(self) -> FloatArray:
        """Cells of the whole grid along each dimension, at the file's number of ranks."""
        assert self.grid is not None
        if self.grid.scaling == "strong":
            return self._stated("cells")
        given = self.grid.decomposition == "given"
        return self._stated("cells") * (self._stated("ranks") if given else self._dimensions(self.rank_count))

    @cached_property
    def part(self) -> FloatArray:
        """Cells of the fullest rank along each dimension, at the file's number of ranks."""
        assert self.grid is not None
        if self.grid.scaling == "weak":
            return self._stated("cells")
        given = self.grid.decomposition == "given"
        return local_cells(self.whole, self._stated("ranks")) if given else self.rank_cells(self.rank_count, self.whole)

    def _dimensions(self, ranks: float | FloatArray) -> FloatArray:
        return np.asarray(DIMENSIONS[self._kind](ranks, dimension_count=len(self.keys)))

    def rank_cells(self, ranks: float | FloatArray, whole: FloatArray) -> FloatArray:
        """Cells of the fullest rank [..., dimension] for numbers of ranks."""
        if self._kind == "bisection":
            return largest_box(np.asarray(ranks, dtype=np.float64), whole)
        return local_cells(whole, self._dimensions(ranks))

    def settings(self, mode: Mode) -> dict[str, str]:
        """Overrides that state the problem for strong or weak scaling."""
        cells = self.whole if mode == "strong" else self.part
        if not np.isfinite(cells).all():
            raise InfeasiblePointError("infeasible: the grid of the scenario cannot be laid out on its ranks")
        sets = {f"{GRID}.cells.{key}": f"{count:.0f}" for key, count in zip(self.keys, cells, strict=True)}
        return {f"{GRID}.scaling": mode, **sets}

    def of_whole_grid(self) -> Scenario:
        """The scenario as strong scaling of the same grid; raise `UsageError` without a grid."""
        if self.grid is None:
            raise UsageError("without `[application.grid]` the scenario has no whole grid to keep")
        return self.scenario.with_overrides(self.settings("strong"))

    def program(self, mode: Mode) -> Program:
        """Compiled scenario for strong or weak scaling, for any number of ranks."""
        return self.of_any_ranks(mode).program

    def of_any_ranks(self, mode: Mode) -> Scenario:
        """The scenario for strong or weak scaling; unchanged without a grid."""
        if self.grid is None:
            return self.scenario
        sets = {**self.settings(mode), f"{GRID}.decomposition": self._kind}
        if self.grid.mapping == "file":
            sets[f"{GRID}.mapping"] = "block"
        return self.scenario.with_overrides(sets)

    def doublings(self) -> list[float]:
        """Powers of 2 up to the number of nodes of the platform."""
        return [float(1 << power) for power in range(int(self.now.values[NODE_COUNT]).bit_length())]

    def modes(self) -> tuple[Mode, ...]:
        """Ways to scale that the scenario allows."""
        if self.states_whole:
            return ("strong",)
        return ("weak",) if self.grid is None else ("strong", "weak")

    def memory(self, ranks: FloatArray, whole: FloatArray) -> FloatArray:
        """Memory of a rank in B for a whole grid on numbers of ranks; NaN if the scenario does not state it."""
        if not self.memory_size:
            return np.full(np.shape(ranks), np.nan)
        return np.asarray(self.memory_size * np.prod(self.rank_cells(ranks, whole), axis=-1) / np.prod(self.part))

    def whole_on(self, ranks: FloatArray) -> dict[str, FloatArray]:
        """Parameters of the whole problem on some ranks: their number, and the memory of one if it follows the grid."""
        follows = self.memory_size and self.grid is not None
        return {RANK_COUNT: ranks, MEMORY: self.memory(ranks, self.whole)} if follows else {RANK_COUNT: ranks}

    def scaling(self, mode: Mode, nodes: Sequence[float]) -> Scaling:
        """Strong or weak scaling over numbers of nodes in increasing order."""
        counts = np.unique(np.asarray(nodes, dtype=np.float64))
        ranks = counts * self.ranks_per_node
        parameters = self.whole_on(ranks) if mode == "strong" else {RANK_COUNT: ranks}
        memory = parameters.get(MEMORY, np.full(len(ranks), self.memory_size or np.nan))
        evaluation = evaluate(self.program(mode), parameters)
        time, total, communication = (column(evaluation, name, len(ranks)) for name in _COLUMNS)
        reasons = tuple(why_not(evaluation.reason(), time).tolist())
        speedup, efficiency = _gains(mode, ranks, time)
        share = np.divide(communication, time, out=np.full(len(time), np.nan), where=time > 0)
        return Scaling(counts, ranks, time, speedup, efficiency, share,
                       memory * self.ranks_per_device, counts * total, reasons,
                       tuple(extrapolations(evaluation)))  # fmt: skip

    def least_nodes(self) -> float | None:
        """Fewest nodes whose devices hold the whole grid; None if too few, or memory is not stated."""
        if self.grid is None or not self.memory_size or np.isnan(self.device_memory):
            return None
        room = self.device_memory / self.ranks_per_device
        # No rank has less than its even share.
        even = self.memory_size * float(np.prod(self.whole) / np.prod(self.part)) / self.ranks_per_node / room
        start = max(int(np.ceil(even * (1 - 1e-9))), 1)
        for first in range(start, _MOST_NODES, 64):
            nodes = np.arange(first, first + 64, dtype=np.float64)
            fits = self.memory(nodes * self.ranks_per_node, self.whole) <= room
            if fits.any():
                return float(nodes[fits.argmax()])
        return None


_COLUMNS: Final = ("iteration_time", "total_time", "communication_time")


def column(evaluation: Evaluation, name: str, count: int) -> FloatArray:
    """Result column [point]."""
    return np.broadcast_to(evaluation.column(name), count)


def _gains(mode: Mode, ranks: FloatArray, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Speedup and efficiency relative to the first feasible point."""
    known = np.flatnonzero(np.isfinite(time) & (time > 0))
    if not known.size:
        return np.full(len(time), np.nan), np.full(len(time), np.nan)
    with np.errstate(divide="ignore"):
        faster, larger = time[known[0]] / time, ranks / ranks[known[0]]
    return (faster, faster / larger) if mode == "strong" else (faster * larger, faster)


def answers(plan: Mapping[Mode, Scaling], efficiency: float) -> dict[str, tuple[Scaling, int]]:
    """Indices of the recommended numbers of nodes in a plan, by description."""
    found = {f"max nodes at >= {in_percent(efficiency)} {mode}-scaling efficiency": (its, its.largest(efficiency))
             for mode, its in plan.items()}  # fmt: skip
    if "strong" in plan:
        strong = plan["strong"]
        found["fewest node-hours"] = (strong, strong.cheapest())
        found["fewest node-hours x time"] = (strong, strong.cheapest(with_time=True))
    return {name: (its, at) for name, (its, at) in found.items() if at is not None}
