"""A scenario played message by message: its trace, or its phases as patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from whatif.engine.evaluate import Evaluation
from whatif.engine.phases.simulated import ALGORITHMS, contributed
from whatif.engine.phases.trace import TraceFile
from whatif.engine.placement_picture import halo_pattern
from whatif.engine.playing import Machine, block_places, machine_of
from whatif.engine.term import Program
from whatif.engine.timeline import possible_result
from whatif.errors import UsageError
from whatif.models.patterns import GridPattern, sockets
from whatif.schema.application import CollectivePhase, HaloPhase, TracePhase
from whatif.simulation.activity import Activity, activity
from whatif.simulation.generate import collective_trace, halo_trace
from whatif.simulation.lower import lower
from whatif.simulation.replay import Replay, replay
from whatif.simulation.schedule import Places, Schedule
from whatif.simulation.trace import Kind, Loop, Trace
from whatif.simulation.trace import Program as RankProgram

MOST_SIMULATED: Final = 20_000_000
"""Operations that are played at most."""
Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A replay, and what went into it."""

    schedule: Schedule
    places: Places
    machine: Machine
    activity: Activity
    phase: str
    """The phase whose model charges the messages."""
    replay: Replay | None
    """None where messages share links."""


def simulate(program: Program, evaluation: Evaluation, iteration_count: int = 1) -> Simulation:
    """Play a scenario at one point: its trace, or so many iterations of its phases, one after another on every rank.

    The scenario's communication must not be `modelled`. Raise `UsageError` where nothing sends messages, and
    `ImpossiblePointError` where the point cannot exist or the messages of a trace do not find each other.
    """
    possible_result(evaluation)
    phases = program.loaded.scenario.application.phases
    sending = [name for name, phase in phases.items() if isinstance(phase, HaloPhase | CollectivePhase | TracePhase)]
    traced = [name for name in sending if isinstance(phases[name], TracePhase)]
    if not sending:
        raise UsageError("no phase of this scenario sends messages: there is nothing to play")
    if traced:
        schedule, sequential = _traced(program, evaluation, traced[0])
    else:
        schedule, sequential = _generated(program, evaluation, iteration_count), True
    phase = (traced or sending)[0]
    places, machine = _places(program, evaluation, schedule.rank_count), _machine(program, evaluation, phase)
    played = replay(schedule, places, machine.costs) if machine.links is None else None
    times = played or machine.shared(schedule, places)
    spans = activity(schedule, times.start, times.end, times.match, sequential)
    return Simulation(schedule, places, machine, spans, phase, played)


def trace_file(program: Program, phase: str) -> TraceFile:
    """The file of a trace phase."""
    file = program.terms[f"{phase}.times"].options["file"]
    assert isinstance(file, TraceFile)
    return file


def _traced(program: Program, evaluation: Evaluation, phase: str) -> tuple[Schedule, bool]:
    rank_count = round(_number(evaluation, "application.rank_count"))
    factor = _number(evaluation, f"application.phases.{phase}.computation_factor")
    file = trace_file(program, phase)
    return file.schedule(rank_count, factor), all(item.sequential for item in file.trace.programs)


def _number(evaluation: Evaluation, name: str) -> float:
    return float(np.ravel(evaluation.values[name])[0])


def _machine(program: Program, evaluation: Evaluation, phase: str) -> Machine:
    """The machine that the phase's own term is played on."""
    term = next(term for term in program.terms.values() if term.inputs.get("charges") == f"{phase}.charges")
    defaults = {"link_bandwidths": np.empty(0), "link_latency": np.zeros(()), "link_counts": np.empty(0)}
    names = ("charges", "limits", *defaults)
    stated = {name: evaluation.values[str(term.inputs[name])] for name in names if name in term.inputs}
    charges, limits, *links = ((defaults | stated)[name] for name in names)
    arrays = (charges.reshape(9, 5, 2), limits.ravel(), *(np.atleast_1d(array) for array in links))
    return machine_of(
        (*arrays[:3], arrays[3].ravel()[0], arrays[4]), term.options["topology"], term.options["on_arrival"]
    )


def _places(program: Program, evaluation: Evaluation, rank_count: int) -> Places:
    """Where the ranks run: as the grid says, else one node after the other."""
    grid = program.loaded.scenario.application.grid
    halo = next(_halos(program), None)
    if grid is not None and halo is not None:
        pattern = halo_pattern(program, evaluation, halo)
        node = pattern.nodes()
        return Places(node, sockets(node, pattern.ranks_per_socket))
    ranks = [round(_number(evaluation, f"placement.ranks_per_{place}")) for place in ("node", "socket")]
    return block_places(rank_count, *ranks)


def _halos(program: Program) -> Iterator[str]:
    phases = program.loaded.scenario.application.phases
    return (name for name, phase in phases.items() if isinstance(phase, HaloPhase))


def _generated(program: Program, evaluation: Evaluation, iteration_count: int) -> Schedule:
    """The phases as patterns, what computes, copies or waits as work of the time that the model gives it."""
    rank_count = round(_number(evaluation, "application.rank_count"))
    algorithms: dict[Kind, str] = {}
    parts: list[Trace] = []
    for part in program.phases:
        phase = program.loaded.scenario.application.phases.get(part.phase)
        if isinstance(phase, HaloPhase):
            parts += [_halo(program, evaluation, part.phase)] * _count(evaluation, f"{part.phase}.exchange_count")
        elif isinstance(phase, CollectivePhase):
            kind = ALGORITHMS[phase.algorithm][0]
            if algorithms.setdefault(kind, phase.algorithm) != phase.algorithm:
                raise UsageError(f"two algorithms of one collective: {algorithms[kind]} and {phase.algorithm}")
            size = contributed(kind, _number(evaluation, f"application.phases.{part.phase}.message_size"), rank_count)
            collective = collective_trace(kind, rank_count, size)
            parts += [collective] * _count(evaluation, f"{part.phase}.operation_count")
        else:
            parts.append(_work(_number(evaluation, part.term), rank_count))
    trace = repeated(joined(parts), iteration_count)
    if sum(len(trace.programs[number]) for number in trace.program_of.tolist()) * iteration_count > MOST_SIMULATED:
        raise UsageError(f"more than {MOST_SIMULATED:,} operations: play fewer ranks or iterations")
    return lower(trace, algorithms)


def _count(evaluation: Evaluation, leaf: str) -> int:
    return round(_number(evaluation, f"application.phases.{leaf}"))


def _halo(program: Program, evaluation: Evaluation, phase: str) -> Trace:
    pattern = halo_pattern(program, evaluation, phase)
    if not isinstance(pattern, GridPattern):
        raise UsageError(f"{phase}: the boxes of a bisection cannot be played with other phases; the phase alone can")
    return halo_trace(pattern, evaluation.values[f"{phase}.message_size"])


def _work(time: float, rank_count: int) -> Trace:
    """A computation of every rank."""
    program = RankProgram(
        kind=np.array([Kind.COMPUTE], dtype=np.uint8),
        peer=np.zeros(1, dtype=np.int32),
        size=np.array([time]),
        tag=np.zeros(1, dtype=np.int32),
        wait_start=np.zeros(2, dtype=np.int64),
        waits=np.empty(0, dtype=np.int32),
        relative=True,
    )
    return Trace((program,), np.zeros(rank_count, dtype=np.int32))


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of the same ranks one after another; their programs must all be relative and without loops."""
    choices = np.stack([trace.program_of for trace in traces], axis=1)
    distinct, which = np.unique(choices, axis=0, return_inverse=True)
    programs = [
        _concatenated([trace.programs[number] for trace, number in zip(traces, row, strict=True)])
        for row in distinct.tolist()
    ]
    return Trace(tuple(programs), which.ravel().astype(np.int32))


def _concatenated(parts: Sequence[RankProgram]) -> RankProgram:
    ends = list(accumulate((len(part.waits) for part in parts), initial=0))
    starts = [part.wait_start[:-1] + first for part, first in zip(parts, ends, strict=False)]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("kind", "peer", "size", "tag", "waits")
    }
    wait_start = np.concatenate([*starts, [ends[-1]]]).astype(np.int64)
    return RankProgram(**columns, wait_start=wait_start, relative=True)


def repeated(trace: Trace, count: int) -> Trace:
    """A trace whose programs run so many times."""
    if count == 1:
        return trace
    programs = (replace(program, loops=(Loop(0, len(program), count),)) for program in trace.programs)
    return replace(trace, programs=tuple(programs))
