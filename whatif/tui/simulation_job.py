"""Ranks played message by message, reduced to what can be drawn: what the page has computed beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from whatif.core.evaluate import Evaluation, evaluate
from whatif.core.session import SessionInputs
from whatif.core.term import Program
from whatif.errors import WhatifError
from whatif.models.quantities import FloatArray
from whatif.schema.application import CollectivePhase, HaloPhase, TracePhase
from whatif.simulation.activity import Activity
from whatif.tui.rank_lanes import Lanes, MessageLines, Ranks32, Window, main_groups, path_owners

if TYPE_CHECKING:
    from whatif.studies.simulation_run import Simulation
    from whatif.tui.pages.ranks import RanksView

BLOCK: Final = 128
"""Ranks that are reduced at a time."""
_BLOCK_STEP: Final = 32
MOST_MARKED: Final = 2000
"""Messages of a window that are told one by one."""
MOST_ITERATIONS: Final = 100_000
_FINEST: Final = 1e-9
"""The shortest window, as a share of the run."""

_Spans = tuple[Ranks32, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """What the critical path is made of, besides computations by distance: from within a socket to across nodes."""

    compute_time: float
    wait_count: FloatArray
    """[distance]: s of run time for each s of latency: how often the path waits for one."""
    latency_time: FloatArray
    """[distance]: s for what a message costs whatever its size."""
    size: FloatArray
    """[distance]: B that the path waits for."""
    transfer_time: FloatArray
    """[distance]: s for the bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What a run comes to."""

    run_time: float
    machine: str
    played: str
    """The trace, or how many iterations of which scenario."""
    traced: bool
    models: tuple[tuple[str, str], ...]
    """What the messages of each phase are charged by."""
    node: Ranks32
    """[rank]"""
    ends: FloatArray
    """[rank]: when each was done, in s."""
    times: FloatArray
    """[rank, group]: what its time was spent on, in s."""
    message_count: int
    message_size: float
    path: Path | None
    """None where messages share links."""
    study_time: float
    """What the study says of the same, in s."""
    modelled: bool
    """Whether the study has a closed form in the place of the messages."""
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SimulationPart:
    """The part in sight; without a summary where the page knows it."""

    lanes: Lanes
    summary: Summary | None


@dataclass(frozen=True, slots=True)
class SimulationRefusal:
    """Why there is no run to show."""

    reason: str


def played(asked: SessionInputs, view: RanksView, rank: int | None, known: bool) -> SimulationPart | SimulationRefusal:
    """The part of the run that a view asks for; `rank` is the one whose messages are wanted, `known` says that the
    summary is."""
    try:
        kept = _kept(_Run.of(asked, view))
        window = window_of(view.window, kept.summary.run_time)
        last = max(0, len(kept.summary.node) - BLOCK)
        lanes = _lanes(kept, window, min(block_of(view.first_rank), last), rank)
    except WhatifError as problem:
        return SimulationRefusal(str(problem))
    except MemoryError:
        return SimulationRefusal("this needs more memory than there is")
    return SimulationPart(lanes, None if known else kept.summary)


def window_of(window: Window | None, run_time: float) -> Window:
    """Window within the run; all of the run for None."""
    start, end = window or (0.0, run_time)
    return fitting(start, end - start, run_time)


def fitting(start: float, length: float, run_time: float) -> Window:
    """The window nearest to one that begins at `start`, within the run."""
    length = min(max(length, _FINEST * run_time), run_time)
    start = min(max(start, 0.0), run_time - length)
    return start, start + length


def block_of(first_rank: int) -> int:
    """First rank of the block that holds those in sight."""
    return first_rank // _BLOCK_STEP * _BLOCK_STEP


@dataclass(frozen=True, slots=True)
class _Run:
    """What is played: equal where the words of the question are."""

    words: tuple[object, ...]
    iterations: int
    asked: SessionInputs = field(compare=False, repr=False)

    @classmethod
    def of(cls, asked: SessionInputs, view: RanksView) -> _Run:
        question = asked.question
        sets = tuple(sorted((path, str(value)) for path, value in question.sets.items()))
        document = question.document
        words = (document.text, str(document.folder), question.platform, sets, question.folders)
        return cls(words, view.iterations, asked)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Of a simulation what windows are drawn from: spans, messages, and the spans of its critical path."""

    activity: Activity
    path: _Spans
    """Rank, start and end of each."""
    summary: Summary


@lru_cache(maxsize=2)
def _kept(run: _Run) -> _Kept:
    from whatif.studies.simulation_run import (  # noqa: PLC0415 - not to be loaded by the explorer itself
        simulate,
        without_playing,
    )

    program = played_program(run.asked)
    simulation = simulate(program, without_playing(program), run.iterations)
    path, spans = _path(simulation)
    return _Kept(simulation.activity, spans, _summary(run, simulation, program, path))


def played_program(asked: SessionInputs) -> Program:
    """The question, its messages played where the study has a closed form for them; raise `WhatifError`."""
    if not _is_modelled(asked.program):
        return asked.program
    question = asked.question
    sets = {**question.sets, "application.communication": "simulated"}
    return question.changed(sets, question.platform).program


def _is_modelled(program: Program) -> bool:
    application = program.loaded.scenario.application
    return application.communication == "modelled" and not _traced(program)


def _traced(program: Program) -> str:
    """The first phase that plays a trace; empty for none."""
    phases = program.loaded.scenario.application.phases
    return next((name for name, phase in phases.items() if isinstance(phase, TracePhase)), "")


def _summary(run: _Run, simulation: Simulation, program: Program, path: Path | None) -> Summary:
    spent, study = simulation.activity, evaluate(run.asked.program)
    traced = _traced(program)
    return Summary(
        run_time=spent.run_time,
        machine=program.loaded.scenario.platform.name,
        played=_what(program, traced, run.iterations),
        traced=bool(traced),
        models=tuple(_models(program, traced)),
        node=simulation.places.node,
        ends=spent.rank_ends(),
        times=spent.rank_times(),
        message_count=len(spent.sent),
        message_size=float(spent.message_size.sum()),
        path=path,
        study_time=_study_time(study, traced, run.iterations),
        modelled=_is_modelled(run.asked.program),
        remarks=simulation.remarks,
    )


def _what(program: Program, traced: str, iterations: int) -> str:
    phase = program.loaded.scenario.application.phases.get(traced)
    if isinstance(phase, TracePhase):
        return phase.file
    return f"{iterations} iteration{'s' * (iterations > 1)} of {program.loaded.name}"


def _models(program: Program, traced: str) -> list[tuple[str, str]]:
    phases = program.loaded.scenario.application.phases
    names = [traced] if traced else list(phases)
    kinds = (TracePhase, HaloPhase, CollectivePhase)
    return [(name, phase.model) for name in names if isinstance(phase := phases[name], kinds)]


def _study_time(study: Evaluation, traced: str, iterations: int) -> float:
    if traced:
        terms = [phase.term for phase in study.program.phases if phase.term.startswith(f"{traced}.")]
        return float(sum(np.ravel(study.values[term])[0] for term in terms))
    return iterations * float(np.ravel(study.column("iteration_time"))[0])


def _path(simulation: Simulation) -> tuple[Path | None, _Spans]:
    """What the critical path is made of, and its spans."""
    from whatif.simulation.critical import critical_path  # noqa: PLC0415 - not to be loaded by the explorer itself

    schedule, replay, costs = simulation.schedule, simulation.replay, simulation.machine.costs
    if replay is None:
        return None, (np.empty(0, dtype=np.int32), np.empty(0), np.empty(0))
    found = critical_path(schedule, replay, costs)
    adapter_size = np.array([0.0, 0.0, found.adapter_byte_count])
    path = Path(
        found.compute_time,
        found.latency_slope.sum(axis=1),
        found.latency_time.sum(axis=1),
        found.byte_slope.sum(axis=1) + adapter_size,
        found.byte_time.sum(axis=1) + adapter_size * costs.node_gap,
    )
    rank = np.searchsorted(schedule.rank_start, found.operations, side="right").astype(np.int32) - 1
    return path, (rank, replay.start[found.operations], replay.end[found.operations])


def _lanes(kept: _Kept, window: Window, first: int, rank: int | None) -> Lanes:
    spans, node = kept.activity, kept.summary.node[first : first + BLOCK]
    low, high = np.searchsorted(spans.rank, [first, first + len(node)])
    part = slice(int(low), int(high))
    group = main_groups(
        spans.rank[part] - first, spans.group[part], spans.start[part], spans.end[part], window, len(node)
    )
    critical = path_owners(*kept.path, window)
    wanted = _wanted(spans, window, (first, first + len(node)) if rank is None else (rank, rank + 1))
    shown = wanted if len(wanted) <= MOST_MARKED else wanted[:0]
    ranks, times = (spans.sender[shown], spans.receiver[shown]), (spans.sent[shown], spans.received[shown])
    messages = MessageLines(*ranks, spans.message_size[shown], *times)
    return Lanes(window, first, node, group, critical, messages, len(wanted))


def _wanted(spans: Activity, window: Window, ranks: tuple[int, int]) -> NDArray[np.intp]:
    """The messages of some ranks that are under way in a window."""
    first, last = ranks
    ours = ((spans.sender >= first) & (spans.sender < last)) | ((spans.receiver >= first) & (spans.receiver < last))
    return np.flatnonzero(ours & (spans.sent <= window[1]) & (spans.received >= window[0]))
