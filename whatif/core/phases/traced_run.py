"""Traced run, resimulated on the platform: computation and communication on its critical path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np

from whatif import units
from whatif.core.context import Context, scenario_folder
from whatif.core.message_simulation import (
    SOURCE,
    MessageMachine,
    block_places,
    each_point,
    simulated_term,
    wire_machine,
)
from whatif.core.term import PhaseTerm, Reference
from whatif.errors import UsageError
from whatif.importers.trace_formats import read_trace, trace_files
from whatif.models.decomposition import MOST_RANKS, is_count
from whatif.models.k_model import effective_process_count, k_factor
from whatif.models.patterns import block_nodes
from whatif.models.quantities import Core, Count, FloatArray, Seconds, model
from whatif.schema.application import TracePhase
from whatif.simulation.counting import node_message_counts
from whatif.simulation.extrapolate import extrapolate
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Trace
from whatif.simulation.schedule import Schedule, Step
from whatif.simulation.selection import FIRST_ALGORITHMS, Selection, parse_selection
from whatif.units import ONE, Quantity
from whatif.vocabulary import DISTANCES

MOST_KEPT: Final = 2_000_000
"""Operations of a trace that stays in memory with its schedule, for other numbers of ranks."""
Parts = Annotated[FloatArray, units.SECOND, Core("part")]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace on disk; its content is cached until a file changes."""

    path: Path
    stamps: tuple[tuple[int, int], ...]
    """Time of the last change in ns, and size in B, of each of its files."""
    collectives: Selection = FIRST_ALGORITHMS
    """Algorithms of its collectives."""

    @classmethod
    def at(cls, path: Path) -> TraceFile:
        """Trace at a path, a file or folder; raise `OSError` if it does not exist."""
        found = [file.stat() for file in (path, *trace_files(path))]
        return cls(path.resolve(), tuple((file.st_mtime_ns, file.st_size) for file in found))

    @property
    def trace(self) -> Trace:
        """Content of the file; raise `InvalidFileError`."""
        return _trace(replace(self, collectives=FIRST_ALGORITHMS))

    @property
    def facts(self) -> TraceFacts:
        """Facts about the content, which outlive it; raise `InvalidFileError`."""
        return _facts(replace(self, collectives=FIRST_ALGORITHMS))

    def for_ranks(self, rank_count: int) -> Trace:
        """Trace extrapolated to a number of ranks; raise `UsageError` if it is not regular."""
        return _for_ranks(replace(self, collectives=FIRST_ALGORITHMS), rank_count)

    def schedule(self, rank_count: int, computation_factor: float = 1.0) -> Schedule:
        """Operations of a number of ranks, with traced computation times scaled by a factor."""
        schedule = _schedule(self, rank_count)
        if computation_factor == 1:
            return schedule
        factor = np.where(schedule.step == Step.COMPUTE, computation_factor, 1.0)
        return replace(schedule, size=schedule.size * factor)


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """Facts about a trace that need no memory."""

    rank_count: int
    is_sequential: bool
    """Whether each rank calls one operation after another."""
    warnings: tuple[str, ...]


@lru_cache(maxsize=4)
def _trace(file: TraceFile) -> Trace:
    return read_trace(file.path)


@lru_cache(maxsize=16)
def _facts(file: TraceFile) -> TraceFacts:
    trace = file.trace
    return TraceFacts(trace.rank_count, all(program.sequential for program in trace.programs), trace.warnings)


@lru_cache(maxsize=8)
def _for_ranks(file: TraceFile, rank_count: int) -> Trace:
    trace = file.trace
    return trace if rank_count == trace.rank_count else extrapolate(trace, rank_count)


@lru_cache(maxsize=2)
def _schedule(file: TraceFile, rank_count: int) -> Schedule:
    _ = file.facts
    schedule = lower(file.for_ranks(rank_count), file.collectives)
    if len(schedule.step) > MOST_KEPT:
        _trace.cache_clear()
        _for_ranks.cache_clear()
    return schedule


@model("T = T_computation + T_communication on the critical path", SOURCE)
@simulated_term(shape=(2,))
def trace_times(
    rank_count: Count,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    nodes_per_domain: Count,
    computation_factor: Count,
    machine: MessageMachine,
    *,
    file: TraceFile,
) -> Parts:
    """Run time of a trace as [..., part]: computation on the critical path, and the rest, which is communication.

    `charges` [..., protocol, charge, size], `limits` [..., kind], the others [...]. Consecutive ranks fill a node. NaN
    if the trace cannot be extrapolated to `rank_count` ranks.
    """
    numbers = np.array([rank_count, ranks_per_node, ranks_per_socket, nodes_per_domain])
    if not is_count(numbers, most=MOST_RANKS).all():
        return np.full(2, np.nan)
    ranks, *per = (int(number) for number in numbers)
    machine.refuse_shared_domains(per[-1])
    return machine.times(file.schedule(ranks, float(computation_factor)), block_places(ranks, *per))


@model("T_computation", SOURCE)
def computation_part(times: Parts) -> Seconds:
    """Computation part of the critical path."""
    return times[..., 0]


@model("T_communication", SOURCE)
def communication_part(times: Parts) -> Seconds:
    """Communication part of the critical path."""
    return times[..., 1]


@model("k = K_inter / K_total · k'", "Choi et al. 2020, Eq. 4")
def traced_k(
    rank_count: Count, ranks_per_node: Count, nodes_per_domain: Count, process_count: Count, *, file: TraceFile
) -> Count:
    """k of the K-model, from the messages that nodes, or link domains of nodes, of consecutive ranks send in a trace.

    Point-to-point messages are counted, as the paper counts those of halos (Table 5); if there are none, those of
    collectives. `process_count` is k', the ranks of a node. Elementwise over any broadcastable shapes. NaN if the
    trace cannot be extrapolated to `rank_count` ranks; 0 if nothing is sent.
    """

    def count(*point: Any) -> float:
        if not is_count(np.array(point), most=MOST_RANKS).all():
            return float("nan")
        ranks, per_node, nodes, sharing = (int(number) for number in point)
        schedule, node = file.schedule(ranks), block_nodes(ranks, per_node * nodes)
        counts = node_message_counts(schedule, node, collectives=False)
        inter_node_count, total_count = counts if counts[1] else node_message_counts(schedule, node)
        return float(k_factor(*(np.array(number) for number in (inter_node_count, total_count, sharing))))

    return each_point(count, (0, 0, 0, 0), rank_count, ranks_per_node, nodes_per_domain, process_count)


def wire_trace(context: Context, name: str, phase: TracePhase) -> list[PhaseTerm]:
    """Terms of a trace phase: computation and communication on its critical path."""
    wiring, file = context.wiring, _file(context, f"application.phases.{name}", phase)
    sharing: dict[str, Reference] = {distance: context.sharing(distance) for distance in DISTANCES}
    domains: dict[str, Reference] = {"nodes_per_domain": Quantity(1.0, ONE), **context.domains}
    if phase.model == "k_model":
        counted: dict[str, Reference] = {
            "rank_count": context.placed_count,
            "ranks_per_node": domains["ranks_per_node"],
            "nodes_per_domain": domains["nodes_per_domain"],
            "process_count": sharing["inter_node"],
        }
        k = wiring.add(f"{name}.k", traced_k, counted, options={"file": file})
        sharing["inter_node"] = wiring.add(f"{name}.effective_k", effective_process_count, {"k": k})
    simulated = wire_machine(context, name, phase.model, sharing)
    inputs: dict[str, Reference] = {
        "rank_count": context.placed_count,
        **domains,
        "computation_factor": f"application.phases.{name}.computation_factor",
        **simulated.inputs,
    }
    times = wiring.add(f"{name}.times", trace_times, inputs, options={"file": file, **simulated.options})
    computation = wiring.add(f"{name}.computation", computation_part, {"times": times})
    communication = wiring.add(f"{name}.communication", communication_part, {"times": times})
    return [
        PhaseTerm(f"{name}.computation", computation, "kernel"),
        PhaseTerm(f"{name}.communication", communication, "communication"),
    ]


def _file(context: Context, path: str, phase: TracePhase) -> TraceFile:
    """Trace in the folder of the scenario."""
    folder, name = scenario_folder(context.wiring), phase.file
    try:
        collectives = parse_selection(phase.collectives)
    except UsageError as error:
        context.wiring.refuse(f"{path}.collectives", str(error))
    path = f"{path}.file"
    if folder is None or Path(name).name != name or name in ("", ".", ".."):
        context.wiring.refuse(path, "expected the name of a file or folder next to the scenario")
    try:
        return replace(TraceFile.at(folder / name), collectives=collectives)
    except OSError as error:
        context.wiring.refuse(path, f"`{name}` cannot be read: {error.strerror}")
