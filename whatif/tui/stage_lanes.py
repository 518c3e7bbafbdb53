"""A training step as lanes of its pipeline stages, its communication, and the memory of a rank as a stacked bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from whatif.core.context import DOMAIN_GPUS
from whatif.errors import UsageError
from whatif.plotting.description import BarSegment, StackedBar
from whatif.studies.rank_lanes import PARTS, Lanes, MessageLines, main_groups
from whatif.transformers.group_collectives import group_collectives
from whatif.transformers.memory_kinds import free_memory, memory_kinds
from whatif.transformers.training.schedule import SimulatedSchedule, simulate
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.data_table import Cell, TableRows
from whatif.units import BYTE, format_quantity

if TYPE_CHECKING:
    from whatif.core.term import Program

_FORWARD_SHARE: Final = {"none": 1 / 3, "selective": 1 / 3, "full": 1 / 4}
"""Share of the forward passes in the time of a micro batch, by recomputation."""
_PLAN: Final = "application.plan"
_AFTER: Final = 2
"""Place of the time after the pipeline among the kinds: gradients, optimiser, waiting for data."""


class Step(NamedTuple):
    """A step on all stages of one replica."""

    lanes: Lanes | None
    words: str
    """Sizes of the pipeline, or the reason why there are no lanes."""


def simulated_step(program: Program, values: Mapping[str, Any]) -> Step:
    """Lanes of the stages in one step."""
    plan: Any = getattr(program.loaded.scenario.application, "plan", None)
    stages, parts, batches = (
        int(values[path]) for path in (f"{_PLAN}.pipeline_size", f"{_PLAN}.virtual_count", "training.micro_batch_count")
    )
    computing, bubble, step = (
        float(values[term]) for term in ("training.stage_time", "pipeline_bubble", "iteration.time")
    )
    forward = computing / (parts * batches) * _FORWARD_SHARE[plan.recomputation]
    try:
        simulated = simulate(stages, parts, batches, forward, computing / (parts * batches) - forward)
    except UsageError as problem:
        return Step(None, str(problem))
    sizes = [f"{stages} stages" if stages > 1 else "one stage", f"{batches} micro batches"]
    sizes += [f"{parts} parts a stage"] * (parts > 1) + [f"bubble {bubble / step:.1%} of the step"] * (stages > 1)
    sizes += ["drawn as 1f1b"] * (plan.schedule != "1f1b")
    return Step(_lanes(simulated, step - computing - bubble, _nodes(values, stages)), ", ".join(sizes))


def _nodes(values: Mapping[str, Any], stages: int) -> Any:
    """Node of the first rank of each stage."""
    on_node = float(values.get("placement.ranks_per_node", values.get(DOMAIN_GPUS, 1.0)))
    return (np.arange(stages) * float(values["training.replica_span"]) // on_node).astype(np.int32)


def _lanes(simulated: SimulatedSchedule, rest: float, nodes: Any) -> Lanes:
    """Lanes of the simulated passes, and of what follows them on all stages."""
    end, count = simulated.time, simulated.stage_count
    stage = np.append(simulated.stage, np.arange(count)).astype(np.int32)
    kind = np.append(simulated.direction - 1, np.full(count, _AFTER)).astype(np.uint8)
    starts, ends = np.append(simulated.start, np.full(count, end)), np.append(simulated.end, np.full(count, end + rest))
    order, window = np.lexsort((starts, stage)), (0.0, end + rest)
    group = main_groups(stage[order], kind[order], starts[order], ends[order], window, count)
    nobody = np.empty(0, dtype=np.int32)
    messages = MessageLines(nobody, nobody, np.empty(0), np.empty(0), np.empty(0))
    return Lanes(window, 0, nodes, group, np.full(PARTS, -1, np.int32), messages, 0)


def collective_rows(program: Program, values: Mapping[str, Any]) -> TableRows:
    """Collectives of the groups of ranks as rows of a table."""
    titles = ("collective", "ranks", "in a domain", "buffer", "one", "all", "hidden")
    found = tuple(group_collectives(program, values))
    shown = len(titles) - all(item.hidden is None for item in found)
    rows = []
    for item in found:
        hidden = "" if item.hidden is None else percent(item.hidden)
        counts = f"{item.ranks:,.0f}", f"{item.in_domain:,.0f}", format_quantity(item.size, BYTE, 3)
        texts = (*counts, duration(item.time), duration(item.whole), hidden)
        rows.append((Cell(item.name), *(Cell(text) for text in texts))[:shown])
    return TableRows(titles[:shown], tuple(rows), frozenset((0,)))


def memory_bar(values: Mapping[str, Any], whole: str, terms: Mapping[str, str]) -> StackedBar:
    """Memory of a rank by kind, and what is free."""
    parts = [BarSegment(name, size) for name, size in memory_kinds(values, terms).items()]
    free = free_memory(values, whole)
    return StackedBar((*parts, *([BarSegment("free", free, "label")] if free else [])), BYTE)
