"""A traced run, replayed on the platform: its time, told apart by what the critical path spends it on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from whatif import units
from whatif.core.context import Context, scenario_folder
from whatif.core.message_simulation import (
    MACHINE_CORES,
    NO_COUNTS,
    NO_LATENCY,
    NO_LINKS,
    SOURCE,
    UNLIMITED,
    Limits,
    LinkCounts,
    block_places,
    each_point,
    machine_of,
    wire_playing,
)
from whatif.core.phases.node_links import LinkBandwidths
from whatif.core.term import PhaseTerm, Reference
from whatif.importers.trace_formats import read_trace, trace_files
from whatif.models.charges import ProtocolCharges
from whatif.models.decomposition import MOST_RANKS, is_count
from whatif.models.k_model import effective_process_count, k_factor
from whatif.models.quantities import BytesPerSecond, Core, Count, FloatArray, Seconds, model
from whatif.schema.application import TracePhase
from whatif.simulation.counting import node_message_counts
from whatif.simulation.extrapolate import extrapolate
from whatif.simulation.lower import lower
from whatif.simulation.rank_programs import Trace
from whatif.simulation.schedule import Schedule, Step
from whatif.vocabulary import DISTANCES

Parts = Annotated[FloatArray, units.SECOND, Core("part")]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace on disk as it is now; what was read of it is kept for as long as it does not change."""

    path: Path
    stamps: tuple[tuple[int, int], ...]
    """When each of its files was changed, in ns, and its size in B."""

    @classmethod
    def at(cls, path: Path) -> TraceFile:
        """The file or folder at a path; raise `OSError` where there is none."""
        found = [file.stat() for file in (path, *trace_files(path))]
        return cls(path.resolve(), tuple((file.st_mtime_ns, file.st_size) for file in found))

    @property
    def trace(self) -> Trace:
        """What the file says; raise `InvalidFileError`."""
        return _trace(self)

    def for_ranks(self, rank_count: int) -> Trace:
        """The trace of so many ranks; raise `UsageError` where it is not regular enough to be told."""
        return _for_ranks(self, rank_count)

    def schedule(self, rank_count: int, computation_factor: float = 1.0) -> Schedule:
        """The operations of so many ranks, computations taking so many times as long."""
        schedule = _schedule(self, rank_count)
        if computation_factor == 1:
            return schedule
        factor = np.where(schedule.step == Step.COMPUTE, computation_factor, 1.0)
        return replace(schedule, size=schedule.size * factor)


@lru_cache(maxsize=4)
def _trace(file: TraceFile) -> Trace:
    return read_trace(file.path)


@lru_cache(maxsize=8)
def _for_ranks(file: TraceFile, rank_count: int) -> Trace:
    trace = file.trace
    return trace if rank_count == trace.rank_count else extrapolate(trace, rank_count)


@lru_cache(maxsize=2)
def _schedule(file: TraceFile, rank_count: int) -> Schedule:
    return lower(file.for_ranks(rank_count))


@model("T = T_computation + T_communication on the critical path", SOURCE)
def trace_times(
    rank_count: Count,
    ranks_per_node: Count,
    ranks_per_socket: Count,
    computation_factor: Count,
    charges: ProtocolCharges,
    limits: Limits,
    link_bandwidths: LinkBandwidths = NO_LINKS,
    link_latency: Seconds = NO_LATENCY,
    link_counts: LinkCounts = NO_COUNTS,
    injection_bandwidth: BytesPerSecond = UNLIMITED,
    *,
    file: TraceFile,
    topology: str = "",
    on_arrival: bool = False,
) -> Parts:
    """Run time of a trace as [..., part]: what the critical path computes, and the rest, which is communication.

    `charges` [..., protocol, charge, size], `limits` [..., kind], the others [...]. Consecutive ranks fill a node. NaN
    where the trace cannot be told for `rank_count` ranks.
    """

    def play(*point: Any) -> FloatArray:
        (*numbers, factor), stated = point[:4], point[4:]
        if not is_count(np.array(numbers), most=MOST_RANKS).all():
            return np.full(2, np.nan)
        ranks, *per = (int(number) for number in numbers)
        machine = machine_of(stated, topology, on_arrival)
        return machine.times(file.schedule(ranks, float(factor)), block_places(ranks, *per))

    arrays = (rank_count, ranks_per_node, ranks_per_socket, computation_factor)
    machine = (charges, limits, link_bandwidths, link_latency, link_counts, injection_bandwidth)
    return each_point(play, (0, 0, 0, 0, *MACHINE_CORES), *arrays, *machine, shape=(2,))


@model("T_computation", SOURCE)
def computation_part(times: Parts) -> Seconds:
    """What the critical path computes."""
    return times[..., 0]


@model("T_communication", SOURCE)
def communication_part(times: Parts) -> Seconds:
    """What of the critical path is no computation."""
    return times[..., 1]


@model("k = K_inter / K_total · k'", "Choi et al. 2020, Eq. 4")
def traced_k(rank_count: Count, ranks_per_node: Count, process_count: Count, *, file: TraceFile) -> Count:
    """k of the K-model, from the messages that the nodes of a trace send, consecutive ranks filling a node.

    Point-to-point messages are counted, as the paper counts those of halos (Table 5); those of collectives where there
    are no others. `process_count` is k', the ranks of a node. Elementwise over any broadcastable shapes. NaN where the
    trace cannot be told for `rank_count` ranks; 0 where nothing is sent.
    """

    def count(*point: Any) -> float:
        if not is_count(np.array(point), most=MOST_RANKS).all():
            return float("nan")
        ranks, per_node, sharing = (int(number) for number in point)
        schedule, node = file.schedule(ranks), block_places(ranks, per_node, per_node).node
        counts = node_message_counts(schedule, node, collectives=False)
        inter_node_count, total_count = counts if counts[1] else node_message_counts(schedule, node)
        return float(k_factor(*(np.array(number) for number in (inter_node_count, total_count, sharing))))

    return each_point(count, (0, 0, 0), rank_count, ranks_per_node, process_count)


def wire_trace(context: Context, name: str, phase: TracePhase) -> list[PhaseTerm]:
    """The terms of a trace phase: its computations and the rest of its critical path."""
    wiring, file = context.wiring, _file(context, f"application.phases.{name}.file", phase.file)
    sharing: dict[str, Reference] = {distance: context.sharing(distance) for distance in DISTANCES}
    if phase.model == "k_model":
        counted: dict[str, Reference] = {
            "rank_count": context.placed_count,
            "ranks_per_node": context.ranks_per_node,
            "process_count": sharing["inter_node"],
        }
        k = wiring.add(f"{name}.k", traced_k, counted, options={"file": file})
        sharing["inter_node"] = wiring.add(f"{name}.effective_k", effective_process_count, {"k": k})
    played = wire_playing(context, name, phase.model, sharing)
    inputs: dict[str, Reference] = {
        "rank_count": context.placed_count,
        "ranks_per_node": context.ranks_per_node,
        "ranks_per_socket": context.ranks_per_socket,
        "computation_factor": f"application.phases.{name}.computation_factor",
        **played.inputs,
    }
    times = wiring.add(f"{name}.times", trace_times, inputs, options={"file": file, **played.options})
    computation = wiring.add(f"{name}.computation", computation_part, {"times": times})
    communication = wiring.add(f"{name}.communication", communication_part, {"times": times})
    return [
        PhaseTerm(f"{name}.computation", computation, "kernel"),
        PhaseTerm(f"{name}.communication", communication, "communication"),
    ]


def _file(context: Context, path: str, name: str) -> TraceFile:
    """The trace beside the scenario."""
    folder = scenario_folder(context.wiring)
    if folder is None or Path(name).name != name or name in ("", ".", ".."):
        context.wiring.problem(path, "needs the plain name of a file or folder beside the scenario")
        context.wiring.raise_problems()
    try:
        return TraceFile.at((folder or Path()) / name)
    except OSError as error:
        context.wiring.problem(path, f"`{name}` cannot be read: {error.strerror}")
        context.wiring.raise_problems()
        raise
