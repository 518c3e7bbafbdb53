"""Ranks played message by message, reduced to what can be drawn: what the page has computed beside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from whatif.engine.evaluate import Evaluation, evaluate
from whatif.engine.session import Asked
from whatif.engine.term import Program
from whatif.errors import UsageError, WhatifError
from whatif.models.quantities import FloatArray
from whatif.schema.application import CollectivePhase, HaloPhase, TracePhase
from whatif.simulation.activity import GROUPS, Activity
from whatif.tui.study import View
from whatif.units import SECOND, UnitError, format_quantity, parse_quantity

if TYPE_CHECKING:
    from whatif.engine.simulate import Simulation

PARTS: Final = 1024
"""Parts of a window, each with what a rank does in most of it."""
BLOCK: Final = 128
"""Ranks that are reduced at a time."""
_BLOCK_STEP: Final = 32
MOST_MARKED: Final = 2000
"""Messages of a window that are told one by one."""
MOST_ITERATIONS: Final = 100_000
_FINEST: Final = 1e-9
"""The shortest window, as a share of the run."""

Window = tuple[float, float]
Ranks32 = NDArray[np.int32]
_Spans = tuple[Ranks32, FloatArray, FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Messages of a window in the order of their sends; `sent`: a send began, `received`: a receive ended, in s."""

    sender: Ranks32
    receiver: Ranks32
    size: FloatArray
    sent: FloatArray
    received: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Some ranks in a window of time, reduced to `PARTS` parts of it."""

    window: Window
    first_rank: int
    node: Ranks32
    """[lane]"""
    group: NDArray[np.uint8]
    """[lane, part]: 1 + a place in `GROUPS`, 0 where most of the part is idle."""
    critical: NDArray[np.int32]
    """[part]: the rank, of all ranks, on which the critical path spends most of it; -1 where it is on none."""
    messages: Messages
    """Those of the rank that is asked for, or of all lanes; none of more than `MOST_MARKED`."""
    message_count: int
    """How many there are of them."""


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
class Played:
    """The part in sight; without a summary where the page knows it."""

    lanes: Lanes
    summary: Summary | None


@dataclass(frozen=True, slots=True)
class Refused:
    """Why there is no run to show."""

    reason: str


def played(asked: Asked, view: View, rank: int | None, known: bool) -> Played | Refused:
    """The part of the run that a view asks for; `rank` is the one whose messages are wanted, `known` says that the
    summary is."""
    try:
        kept = _kept(_Run.of(asked, view))
        window = window_of(view.window, kept.summary.run_time)
        last = max(0, len(kept.summary.node) - BLOCK)
        lanes = _lanes(kept, window, min(block_of(view), last), rank)
    except WhatifError as problem:
        return Refused(str(problem))
    return Played(lanes, None if known else kept.summary)


def parse_window(text: str) -> Window | None:
    """Read `0 s, 3 ms`, None for all of the run; raise `UsageError`."""
    if not text:
        return None
    try:
        edges = [parse_quantity(word) for word in text.split(",")]
    except UnitError as problem:
        raise UsageError(f"window: {problem}") from None
    if len(edges) != 2 or any(edge.dimension != SECOND for edge in edges) or not edges[0].value < edges[1].value:
        raise UsageError(f"window: `{text}`: expected when it begins and ends, such as `0 s, 3 ms`")
    return edges[0].value, edges[1].value


def window_of(text: str, run_time: float) -> Window:
    """The window that a text asks for, as far as it lies in the run; raise `UsageError`."""
    start, end = parse_window(text) or (0.0, run_time)
    return fitting(start, end - start, run_time)


def fitting(start: float, length: float, run_time: float) -> Window:
    """The window nearest to one that begins at `start`, within the run."""
    length = min(max(length, _FINEST * run_time), run_time)
    start = min(max(start, 0.0), run_time - length)
    return start, start + length


def window_text(window: Window, run_time: float) -> str:
    """A window as `parse_window` reads it; empty for the whole run."""
    if window[1] - window[0] >= run_time:
        return ""
    return ", ".join(format_quantity(edge, SECOND, 17) for edge in window)


def iterations_of(view: View) -> int:
    """The iterations that a view asks for; raise `UsageError`."""
    text = view.iterations.strip()
    if not text.isdecimal() or not 1 <= int(text) <= MOST_ITERATIONS:
        raise UsageError(f"iterations: `{text}`: expected a whole number from 1 to {MOST_ITERATIONS}")
    return int(text)


def first_of(view: View) -> int:
    """The first rank that a view asks for; the very first one for what is no number."""
    text = view.first_rank.strip()
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def block_of(view: View) -> int:
    """Where the block of ranks begins that holds those in sight."""
    return first_of(view) // _BLOCK_STEP * _BLOCK_STEP


@dataclass(frozen=True, slots=True)
class _Run:
    """What is played: equal where the words of the question are."""

    words: tuple[object, ...]
    iterations: int
    asked: Asked = field(compare=False, repr=False)

    @classmethod
    def of(cls, asked: Asked, view: View) -> _Run:
        question = asked.question
        sets = tuple(sorted((path, str(value)) for path, value in question.sets.items()))
        document = question.document
        words = (document.text, str(document.folder), question.platform, sets, question.folders)
        return cls(words, iterations_of(view), asked)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """Of a simulation what windows are drawn from: spans, messages, and the spans of its critical path."""

    activity: Activity
    path: _Spans
    """Rank, start and end of each."""
    summary: Summary


@lru_cache(maxsize=2)
def _kept(run: _Run) -> _Kept:
    from whatif.engine.simulate import simulate  # noqa: PLC0415 - not to be loaded by the explorer itself

    program = played_program(run.asked)
    evaluation = evaluate(program)
    simulation = simulate(program, evaluation, run.iterations)
    path, spans = _path(simulation)
    return _Kept(simulation.activity, spans, _summary(run, simulation, program, path))


def played_program(asked: Asked) -> Program:
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
        remarks=tuple(_remarks(program, traced)),
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


def _remarks(program: Program, traced: str) -> list[str]:
    application = program.loaded.scenario.application
    remarks = []
    if traced and len(application.phases) > 1:
        remarks.append(f"Only {traced} is played: a trace is a run of its own.")
    if application.overlaps and not traced:
        remarks.append("Overlaps are not played: the phases follow one another.")
    return remarks


def _path(simulation: Simulation) -> tuple[Path | None, _Spans]:
    """What the critical path is made of, and its spans."""
    from whatif.simulation.checks import cost_table  # noqa: PLC0415 - not to be loaded by the explorer itself
    from whatif.simulation.critical import critical_path  # noqa: PLC0415

    schedule, replay, costs = simulation.schedule, simulation.replay, simulation.machine.costs
    if replay is None:
        return None, (np.empty(0, dtype=np.int32), np.empty(0), np.empty(0))
    found = critical_path(replay, schedule, costs)
    table = cost_table(costs).reshape(5, 3, 3, 2)
    latency_time, transfer_time = (found.counts * table[..., 0]), (found.sizes * table[..., 1])
    # Only what costs something by its size is waited for.
    size = np.where(table[..., 1] > 0, found.sizes, 0.0).sum(axis=(0, 2))
    adapter = np.array([0.0, 0.0, found.adapter_size])
    path = Path(
        found.compute_time,
        found.latency_slopes(),
        latency_time.sum(axis=(0, 2)),
        size + adapter,
        transfer_time.sum(axis=(0, 2)) + adapter * costs.node_gap,
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
    messages = Messages(*ranks, spans.message_size[shown], *times)
    return Lanes(window, first, node, group, critical, messages, len(wanted))


def _wanted(spans: Activity, window: Window, ranks: tuple[int, int]) -> NDArray[np.intp]:
    """The messages of some ranks that are under way in a window."""
    first, last = ranks
    ours = ((spans.sender >= first) & (spans.sender < last)) | ((spans.receiver >= first) & (spans.receiver < last))
    return np.flatnonzero(ours & (spans.sent <= window[1]) & (spans.received >= window[0]))


class _Edges(NamedTuple):
    """Spans that reach into a window, in parts of it: where they begin and end, and in which part."""

    inside: NDArray[np.intp]
    start: FloatArray
    end: FloatArray
    first: NDArray[np.intp]
    last: NDArray[np.intp]


def _edges(start: FloatArray, end: FloatArray, window: Window) -> _Edges:
    low, high = window
    inside = np.flatnonzero((start < high) & (end > low))
    scale = PARTS / (high - low) if high > low else 0.0
    begin, stop = (np.clip((edge[inside] - low) * scale, 0.0, PARTS) for edge in (start, end))
    first, last = (np.minimum(edge.astype(np.intp), PARTS - 1) for edge in (begin, stop))
    return _Edges(inside, begin, stop, first, last)


def main_groups(
    lane: NDArray[np.int32],
    group: NDArray[np.uint8],
    start: FloatArray,
    end: FloatArray,
    window: Window,
    lane_count: int,
) -> NDArray[np.uint8]:
    """What each lane does in most of each part of a window [lane, part]: 1 + the group of the spans that take most of
    it, 0 where more of it is idle."""
    at = _edges(start, end, window)
    base = (lane[at.inside].astype(np.intp) * len(GROUPS) + group[at.inside]) * PARTS
    size, further = lane_count * len(GROUPS) * PARTS, at.last > at.first
    base_on, last = base[further], at.last[further]
    taken = np.bincount(base + at.first, np.minimum(at.end, at.first + 1) - at.start, size)
    taken += np.bincount(base_on + last, at.end[further] - last, size)
    whole = np.bincount(base_on + at.first[further] + 1, minlength=size) - np.bincount(base_on + last, minlength=size)
    share = taken.reshape(lane_count, len(GROUPS), PARTS) + whole.reshape(lane_count, len(GROUPS), PARTS).cumsum(axis=2)
    idle = 1 - share.sum(axis=1, keepdims=True)
    found: NDArray[np.uint8] = np.concatenate([idle, share], axis=1).argmax(axis=1).astype(np.uint8)
    return found


def path_owners(rank: Ranks32, start: FloatArray, end: FloatArray, window: Window) -> NDArray[np.int32]:
    """The rank on which the spans of a path spend most of each part of a window [part]; -1 for none."""
    at = _edges(start, end, window)
    owners = np.full(PARTS, -1, dtype=np.int32)
    between = np.maximum(at.last - at.first - 1, 0)
    inner = np.arange(between.sum()) - np.repeat(between.cumsum() - between, between)
    part = np.concatenate([at.first, at.last, np.repeat(at.first + 1, between) + inner])
    own = rank[at.inside]
    time = np.concatenate(
        [
            np.minimum(at.end, at.first + 1) - at.start,
            np.where(at.last > at.first, at.end - at.last, 0.0),
            np.ones(len(inner)),
        ]
    )
    ranks = np.concatenate([own, own, np.repeat(own, between)])
    count = int(ranks.max(initial=0)) + 1
    keys, place = np.unique(part * count + ranks, return_inverse=True)
    spent = np.bincount(place, time, len(keys))
    order = np.argsort(spent, kind="stable")
    order = order[spent[order] > 0]
    # Of the ranks of one part the last one written stays: the one that spends most.
    owners[keys[order] // count] = keys[order] % count
    return owners
