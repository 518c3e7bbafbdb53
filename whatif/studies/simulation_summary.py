"""Summary of a simulated run: its times, messages and critical path, and the lanes of its ranks in a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from whatif.axes import first_number
from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.scenario import Scenario
from whatif.core.term import Program
from whatif.errors import UsageError
from whatif.limits import MOST_LANES
from whatif.models.quantities import FloatArray
from whatif.plotting.lanes import LaneChart, Lanes, MessageLines, Ranks32, Window
from whatif.schema.application import HaloPhase, TracePhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.simulation.activity import Activity
from whatif.simulation.critical import critical_path
from whatif.studies.rank_lanes import RANK_KINDS, PathSummary, RunSummary, main_groups, path_owners
from whatif.studies.simulation_run import (
    Simulation,
    evaluation_without_messages,
    has_closed_forms,
    simulate,
    traced_phase,
    with_simulated_messages,
)
from whatif.units import counted
from whatif.vocabulary import MODEL_OF_ONE_MESSAGE

BLOCK: Final = 128
"""Ranks of one set of lanes."""
MOST_MARKED: Final = 2000
"""Most messages of a window that are listed one by one."""

_Spans = tuple[Ranks32, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class SummarisedRun:
    """Input of the lanes of a simulated run: spans and messages, spans of the critical path, and the summary."""

    activity: Activity
    path: _Spans
    """Rank, start and end of each span."""
    summary: RunSummary


def summarised_run(scenario: Scenario, iteration_count: int) -> SummarisedRun:
    """Simulation of a scenario, with its communication simulated, and its summary."""
    program = with_simulated_messages(scenario).program
    simulation = simulate(program, evaluation_without_messages(program), iteration_count)
    path, spans = _path(simulation)
    return SummarisedRun(
        simulation.activity, spans, _summary(scenario.program, program, simulation, path, iteration_count)
    )


def _summary(
    stated: Program, program: Program, simulation: Simulation, path: PathSummary | None, iterations: int
) -> RunSummary:
    """Summary of a simulation of `program`, next to the evaluation of the scenario as stated."""
    spent, study, traced = simulation.activity, evaluate(stated), traced_phase(program)
    return RunSummary(
        run_time=spent.run_time,
        machine=program.loaded.scenario.platform.name,
        title=_title(program, traced, iterations),
        traced=bool(traced),
        models=tuple(_models(program, traced)),
        node=simulation.node,
        ends=spent.rank_ends(),
        times=spent.rank_times(),
        message_count=len(spent.sent),
        message_size=float(spent.message_size.sum()),
        path=path,
        study_time=_study_time(study, traced, iterations),
        modelled=has_closed_forms(stated),
        remarks=simulation.remarks,
    )


def _title(program: Program, traced: str, iterations: int) -> str:
    phase = program.loaded.scenario.application.phases.get(traced)
    if isinstance(phase, TracePhase):
        return phase.file
    return f"{counted(iterations, 'iteration')} of {program.loaded.name}"


def _models(program: Program, traced: str) -> list[tuple[str, str]]:
    phases = program.loaded.scenario.application.phases
    names = [traced] if traced else list(phases)
    kinds = (TracePhase, HaloPhase, CollectivePhase)
    stated = [(name, phase.model) for name in names if isinstance(phase := phases[name], kinds)]
    return [(name, MODEL_OF_ONE_MESSAGE.get(model, model)) for name, model in stated]


def _study_time(study: Evaluation, traced: str, iterations: int) -> float:
    if traced:
        terms = [phase.term for phase in study.program.phases if phase.term.startswith(f"{traced}.")]
        return sum(first_number(study.values[term]) for term in terms)
    return iterations * first_number(study.column("iteration_time"))


def _path(simulation: Simulation) -> tuple[PathSummary | None, _Spans]:
    """Summary of the critical path, and its spans."""
    schedule, replay, costs = simulation.schedule, simulation.replay, simulation.machine.costs
    if replay is None:
        return None, (np.empty(0, dtype=np.int32), np.empty(0), np.empty(0))
    found = critical_path(schedule, replay, costs)
    adapter_size = np.array([0.0, 0.0, found.adapter_byte_count])
    path = PathSummary(
        found.compute_time,
        found.latency_slope.sum(axis=1),
        found.latency_time.sum(axis=1),
        found.byte_slope.sum(axis=1) + adapter_size,
        found.byte_time.sum(axis=1) + adapter_size * costs.node_gap,
    )
    rank = schedule.rank_of(found.operations)
    return path, (rank, replay.start[found.operations], replay.end[found.operations])


def lanes_of(run: SummarisedRun, window: Window, first: int, rank: int | None) -> Lanes:
    """Lanes of a block of ranks in a window, with the messages of one rank, or of all in the block."""
    return _lanes(run.activity, run.summary.node[first : first + BLOCK], run.path, window, first, rank)


def lane_chart(simulation: Simulation) -> LaneChart:
    """Picture of the first ranks over the whole run. Raise `UsageError` for a run that takes no time."""
    spans, node = simulation.activity, simulation.node
    if not spans.run_time > 0:
        raise UsageError("no time lines to draw: the run takes no time")
    lanes = _lanes(spans, node[:MOST_LANES], _path(simulation)[1], (0.0, spans.run_time), 0, None)
    ranks = f"{len(node)} ranks" if len(node) <= MOST_LANES else f"first {MOST_LANES} of {len(node):,} ranks"
    return LaneChart(f"{ranks} on {simulation.platform}", lanes, RANK_KINDS)


def _lanes(spans: Activity, node: Ranks32, path: _Spans, window: Window, first: int, rank: int | None) -> Lanes:
    low, high = np.searchsorted(spans.rank, [first, first + len(node)])
    part = slice(int(low), int(high))
    group = main_groups(
        spans.rank[part] - first, spans.group[part], spans.start[part], spans.end[part], window, len(node)
    )
    critical = path_owners(*path, window)
    wanted = _wanted(spans, window, (first, first + len(node)) if rank is None else (rank, rank + 1))
    shown = wanted if len(wanted) <= MOST_MARKED else wanted[:0]
    messages = MessageLines(spans.sender[shown], spans.receiver[shown], spans.sent[shown], spans.received[shown])
    return Lanes(window, first, node, group, critical, messages)


def _wanted(spans: Activity, window: Window, ranks: tuple[int, int]) -> NDArray[np.intp]:
    """Messages of some ranks that are under way in a window."""
    first, last = ranks
    ours = ((spans.sender >= first) & (spans.sender < last)) | ((spans.receiver >= first) & (spans.receiver < last))
    return np.flatnonzero(ours & (spans.sent <= window[1]) & (spans.received >= window[0]))
