"""A collective: the rounds of its algorithm, each charged with the time of its farthest messages."""

from __future__ import annotations

from collections.abc import Sequence

from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.phases.collective_choice import chosen_algorithms
from whatif.core.phases.collective_rounds import placed_rounds
from whatif.core.phases.collective_wiring import CollectiveWiring
from whatif.core.phases.device_messages import distance_time
from whatif.core.phases.gpu_library import wire_library
from whatif.core.phases.link_sharing import is_congested, wire_collective_congestion, with_congestion
from whatif.core.phases.measured_times import wire_measured_times
from whatif.core.phases.message import PORT_COUNT, message_time
from whatif.core.phases.reduction import reducing_bandwidth, with_arithmetic
from whatif.core.rank_groups import group_of
from whatif.core.term import PhaseTerm, Reference
from whatif.models.collectives import ALGORITHMS, fastest_time, largest_size
from whatif.models.congestion import congested_time
from whatif.models.corrections import time_of_sharing
from whatif.models.placed_rounds import COMBINING as COMBINING_ROW
from whatif.models.placed_rounds import (
    SHARE,
    channel_sizes,
    domain_ports,
    leaving_count,
    round_repeats,
    round_sizes,
    slowest_times,
)
from whatif.models.reductions import COMBINING
from whatif.schema.collective_phase import CollectivePhase
from whatif.units import ONE, Quantity
from whatif.vocabulary import DISTANCES, MESSAGE_ALGORITHMS


def wire_collective(context: Context, name: str, phase: CollectivePhase) -> list[PhaseTerm]:
    """The terms of a collective phase."""
    once = _once(context, name, phase)
    time = context.wiring.repeat(name, once, f"application.phases.{name}.operation_count")
    return [PhaseTerm(name, time, "communication")]


def _once(context: Context, name: str, phase: CollectivePhase) -> str:
    """Time of one operation: measured, of a library of GPUs, or from its messages."""
    if phase.algorithm == "measured":
        return wire_measured_times(context, name, phase)
    algorithms = chosen_algorithms(context, name, phase)
    size = _buffer_size(context, name, phase, algorithms)
    if phase.model == "nccl":
        return wire_library(context, name, phase, algorithms, size)
    names = [name] if len(algorithms) == 1 else [f"{name}.{algorithm}" for algorithm in algorithms]
    pairs = zip(algorithms, names, strict=True)
    return _by_messages([CollectiveWiring(context, name, phase, *pair, size) for pair in pairs])


def _buffer_size(context: Context, name: str, phase: CollectivePhase, algorithms: Sequence[str]) -> Reference:
    """Size of the buffer, or of one whose messages are all as large as the largest of an uneven all-to-all."""
    path = f"application.phases.{name}"
    size, imbalance = f"{path}.message_size", f"{path}.imbalance"
    if algorithms[0] not in MESSAGE_ALGORITHMS["alltoall"]:
        return size
    _limit_imbalance(context, name, phase)
    uneven: dict[str, Reference] = {"message_size": size, "imbalance": imbalance}
    return context.wiring.add(f"{name}.largest_size", largest_size, uneven)


def _limit_imbalance(context: Context, name: str, phase: CollectivePhase) -> None:
    """Require that the largest message of an all-to-all is no more than all messages of a rank together."""
    path = f"application.phases.{name}"
    imbalance = f"{path}.imbalance"
    members = group_of(context, f"{path}.group", phase.group)["group_size"] if phase.group else context.rank_count
    reason = f"{imbalance} exceeds {members}: the largest message of a rank would exceed all of its messages together"
    context.wiring.require_fit(f"{name}.imbalance", reason, imbalance, members)


def _by_messages(candidates: Sequence[CollectiveWiring]) -> str:
    """Time of one operation by the fastest algorithm, from the times of its messages."""
    first, context = candidates[0], candidates[0].context
    if context.is_simulated:
        return _simulated(first)
    alone = [_operation_time(one) for one in candidates]
    once = _fastest(first, "operation_time", alone)
    if first.phase.distance in (None, "inter_node") and is_congested(context):
        shared = [wire_collective_congestion(one) for one in candidates]
        congestion = shared[0] if len(candidates) == 1 else _congestion(candidates, alone, shared, once)
        repeats = f"application.phases.{first.phase_name}.operation_count"
        once = with_congestion(context, first.phase_name, once, congestion, repeats)
    return once


def _fastest(first: CollectiveWiring, name: str, times: list[str]) -> str:
    """Least of the times of some algorithms."""
    if len(times) == 1:
        return times[0]
    return first.context.wiring.add(f"{first.phase_name}.{name}", fastest_time, {time: time for time in times})


def _congestion(candidates: Sequence[CollectiveWiring], alone: list[str], shared: list[str], once: str) -> str:
    """Congestion of the algorithm that is the fastest with it, over the fastest one without."""
    first, wiring = candidates[0], candidates[0].context.wiring
    together = [
        wiring.add(f"{one.name}.congested_time", congested_time, {"time": time, "congestion_time": congestion})
        for one, time, congestion in zip(candidates, alone, shared, strict=True)
    ]
    times: dict[str, Reference] = {"time": _fastest(first, "fastest_congested_time", together), "time_alone": once}
    return wiring.add(f"{first.phase_name}.operation_congestion", time_of_sharing, times)


def _simulated(collective: CollectiveWiring) -> str:
    """Time of one operation, simulated message by message."""
    from whatif.core.phases.simulated_exchange import wire_simulated_collective

    context, channels = collective.context, _channels(collective)
    if collective.phase.channel_count != 1 and isinstance(channels, str):
        reason = f"parallel channels ({channels}) cannot be simulated; state `channel_count = 1`"
        context.wiring.refuse(f"application.phases.{collective.phase_name}.channel_count", reason)
    return wire_simulated_collective(
        context,
        collective.name,
        collective.phase.model,
        collective.schedule,
        {"message_size": collective.size, **collective.group},
        reducing_bandwidth(collective),
    )


def _operation_time(collective: CollectiveWiring) -> str:
    """Time of one operation from the rounds of the algorithm."""
    rounds = _at_one_distance(collective) if collective.phase.distance else _placed(collective)
    return with_arithmetic(collective, rounds, lambda: (_combinations(collective), f"{collective.name}.round_sizes"))


def _combinations(collective: CollectiveWiring) -> str:
    """Term of the number of combinations in each kind of round of a reduction."""
    name, wiring = f"{collective.name}.combining_counts", collective.context.wiring
    if collective.phase.distance:
        return wiring.add(name, COMBINING[collective.algorithm], {"process_count": _members(collective)})
    return wiring.add(name, round_repeats, {"rounds": f"{collective.name}.rounds"}, options={"row": COMBINING_ROW})


def _members(collective: CollectiveWiring) -> Reference:
    """Ranks of a group, or all."""
    return collective.group["group_size"] if collective.phase.group else collective.context.rank_count


def _at_one_distance(collective: CollectiveWiring) -> dict[str, Reference]:
    """Numbers and times of rounds whose messages all have the stated distance."""
    context, name, phase = collective.context, collective.name, collective.phase
    wiring, (sizes_of, counts_of) = context.wiring, ALGORITHMS[collective.algorithm]
    ranks: dict[str, Reference] = {"process_count": _members(collective)}
    counts = wiring.add(f"{name}.round_counts", counts_of, ranks)
    sizes = wiring.add(f"{name}.round_sizes", sizes_of, {**ranks, "message_size": collective.size})
    assert phase.distance is not None
    times = message_time(context, name, phase.model, phase.distance, sizes, context.sharing(phase.distance))
    return {"round_counts": counts, "round_times": times}


def _placed(collective: CollectiveWiring) -> dict[str, Reference]:
    """Numbers and times of the rounds of placed ranks."""
    context, name, wiring = collective.context, collective.name, collective.context.wiring
    placed = {"rank_count": context.placed_count, **collective.group, **context.domains}
    options = {"algorithm": collective.schedule}
    rounds: dict[str, Reference] = {"rounds": wiring.add(f"{name}.rounds", placed_rounds, placed, options=options)}
    sized = {**rounds, "message_size": collective.size}
    sizes = wiring.add(f"{name}.round_sizes", round_sizes, sized, options={"row": SHARE})
    sent: dict[str, tuple[str, str]] = {distance: (sizes, context.sharing(distance)) for distance in DISTANCES}
    sent["inter_node"] = _of_channels(collective, rounds["rounds"], sizes)
    times: dict[str, Reference] = {
        f"{distance}_time": distance_time(context, name, collective.phase.model, distance, *sent[distance])
        for distance in DISTANCES
    }
    counts = wiring.add(f"{name}.round_counts", round_repeats, rounds)
    return {"round_counts": counts, "round_times": wiring.add(f"{name}.round_times", slowest_times, rounds | times)}


def _of_channels(collective: CollectiveWiring, rounds: Reference, sizes: str) -> tuple[str, str]:
    """Sizes of the messages between domains, and how many of them share the ports of a node."""
    wiring, name, channels = collective.context.wiring, collective.name, _channels(collective)
    if channels == PORT_COUNT and DOMAIN_GPUS in wiring.parameters:
        nodes = {"node_count": collective.context.domains["nodes_per_domain"], "port_count": channels}
        channels = wiring.add(f"{name}.channel_count", domain_ports, nodes)
    leaving = wiring.add(f"{name}.leaving_count", leaving_count, {"rounds": rounds, "channel_count": channels})
    if isinstance(channels, Quantity):
        return sizes, leaving
    inputs: dict[str, Reference] = {"round_sizes": sizes, "channel_count": channels}
    return wiring.add(f"{name}.channel_sizes", channel_sizes, inputs), leaving


def _channels(collective: CollectiveWiring) -> Reference:
    """Number of parallel channels of a link domain: as stated, or the ports of a node for messages of device memory."""
    context = collective.context
    if collective.phase.channel_count is not None:
        return f"application.phases.{collective.phase_name}.channel_count"
    ports = context.buffers != "host" and PORT_COUNT in context.wiring.parameters
    return PORT_COUNT if ports else Quantity(1.0, ONE)
