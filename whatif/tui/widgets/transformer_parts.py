"""Lanes of a training step, collectives of the groups of ranks as a table, memory of a rank as a stacked bar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from whatif.plotting.description import BarSegment, StackedBar
from whatif.plotting.lanes import NO_MESSAGES, NO_PATH, Lanes
from whatif.studies.rank_lanes import main_groups
from whatif.transformers.group_collectives import group_collectives
from whatif.transformers.memory_kinds import free_memory, memory_kinds
from whatif.transformers.training.simulated_step import SimulatedStep
from whatif.tui.labels import duration, percent
from whatif.tui.widgets.data_table import Cell, TableRows
from whatif.units import BYTE, format_quantity

if TYPE_CHECKING:
    from whatif.core.term import Program


_AFTER: Final = 2
"""Place of the time after the pipeline among the kinds: gradients, optimiser, waiting for data."""


def step_lanes(step: SimulatedStep) -> Lanes | None:
    """Lanes of the passes of a step, and of what follows them on all stages."""
    simulated = step.schedule
    if simulated is None:
        return None
    end, count, rest = simulated.time, simulated.stage_count, step.remaining_time
    stage = np.append(simulated.stage, np.arange(count)).astype(np.int32)
    kind = np.append(simulated.direction - 1, np.full(count, _AFTER)).astype(np.uint8)
    starts, ends = np.append(simulated.start, np.full(count, end)), np.append(simulated.end, np.full(count, end + rest))
    order, window = np.lexsort((starts, stage)), (0.0, end + rest)
    group = main_groups(stage[order], kind[order], starts[order], ends[order], window, count)
    return Lanes(window, 0, step.nodes, group, NO_PATH, NO_MESSAGES)


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
