"""A collective: the rounds of its algorithm, each charged with the time of its farthest messages."""

from __future__ import annotations

from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.phases.collective_rounds import (
    channel_sizes,
    domain_ports,
    leaving_count,
    placed_rounds,
    round_repeats,
    round_sizes,
    slowest_times,
)
from whatif.core.phases.device_messages import distance_time
from whatif.core.phases.gpu_library import wire_library
from whatif.core.phases.link_sharing import is_congested, wire_collective_congestion, with_congestion
from whatif.core.phases.measured_times import wire_measured_times
from whatif.core.phases.message import PORT_COUNT, message_time
from whatif.core.rank_groups import group_of
from whatif.core.term import PhaseTerm, Reference
from whatif.models.collectives import ALGORITHMS, rounds_time
from whatif.models.workload import repeated
from whatif.schema.application import CollectivePhase
from whatif.units import ONE, Quantity
from whatif.vocabulary import DISTANCES


def wire_collective(context: Context, name: str, phase: CollectivePhase) -> list[PhaseTerm]:
    """The terms of a collective phase."""
    path, wiring = f"application.phases.{name}", context.wiring
    repeats = f"{path}.operation_count"
    once = _once(context, name, phase, repeats)
    inputs: dict[str, Reference] = {"once_time": once, "repeat_count": repeats}
    return [PhaseTerm(name, wiring.add(name, repeated, inputs), "communication")]


def _once(context: Context, name: str, phase: CollectivePhase, repeats: str) -> str:
    """Time of one operation: measured, of a library of GPUs, or from its messages."""
    if phase.algorithm == "measured":
        return wire_measured_times(context, name, phase)
    if phase.operation is not None:
        context.wiring.problem(f"application.phases.{name}.operation", 'no effect without `algorithm = "measured"`')
        context.wiring.raise_problems()
    return wire_library(context, name, phase) if phase.model == "nccl" else _by_messages(context, name, phase, repeats)


def _by_messages(context: Context, name: str, phase: CollectivePhase, repeats: str) -> str:
    """Time of one operation from the times of its messages."""
    size = f"application.phases.{name}.message_size"
    if phase.algorithm not in ALGORITHMS:
        reason = f'`{phase.algorithm}` needs `model = "nccl"`; `{phase.model}` has {", ".join(ALGORITHMS)}'
        context.wiring.problem(f"application.phases.{name}.algorithm", reason)
        context.wiring.raise_problems()
    if context.scenario.application.communication != "modelled":
        from whatif.core.phases.simulated_exchange import wire_simulated_collective

        if phase.group is not None:
            context.wiring.problem(f"application.phases.{name}.group", "groups are not simulated")
            context.wiring.raise_problems()
        if phase.channel_count != 1 and isinstance(channels := _channels(context, name, phase), str):
            reason = f"parallel channels ({channels}) cannot be simulated; state `channel_count = 1`"
            context.wiring.problem(f"application.phases.{name}.channel_count", reason)
            context.wiring.raise_problems()
        return wire_simulated_collective(context, name, phase.model, phase.algorithm, size)
    rounds = _at_one_distance(context, name, phase) if phase.distance else _placed(context, name, phase)
    once = context.wiring.add(f"{name}.operation_time", rounds_time, rounds)
    if phase.distance in (None, "inter_node") and is_congested(context):
        congestion = wire_collective_congestion(context, name, phase, size)
        once = with_congestion(context, name, once, congestion, repeats)
    return once


def _at_one_distance(context: Context, name: str, phase: CollectivePhase) -> dict[str, Reference]:
    """Numbers and times of rounds whose messages all have the stated distance."""
    wiring, (sizes_of, counts_of) = context.wiring, ALGORITHMS[phase.algorithm]
    group = group_of(context, name, phase.group)["group_size"] if phase.group else context.rank_count
    ranks: dict[str, Reference] = {"process_count": group}
    counts = wiring.add(f"{name}.round_counts", counts_of, ranks)
    buffer: dict[str, Reference] = {"message_size": f"application.phases.{name}.message_size"}
    sizes = wiring.add(f"{name}.round_sizes", sizes_of, ranks | buffer)
    assert phase.distance is not None
    times = message_time(context, name, phase.model, phase.distance, sizes, context.sharing(phase.distance))
    return {"round_counts": counts, "round_times": times}


def _placed(context: Context, name: str, phase: CollectivePhase) -> dict[str, Reference]:
    """Numbers and times of the rounds of placed ranks."""
    wiring, group = context.wiring, group_of(context, name, phase.group)
    placed = {"rank_count": context.placed_count, **group, **context.domains}
    rounds: dict[str, Reference] = {
        "rounds": wiring.add(f"{name}.rounds", placed_rounds, placed, options={"algorithm": phase.algorithm})
    }
    buffer: dict[str, Reference] = {"message_size": f"application.phases.{name}.message_size"}
    sizes = wiring.add(f"{name}.round_sizes", round_sizes, rounds | buffer)
    sent: dict[str, tuple[str, str]] = {distance: (sizes, context.sharing(distance)) for distance in DISTANCES}
    sent["inter_node"] = _of_channels(context, name, phase, rounds["rounds"], sizes)
    times: dict[str, Reference] = {
        f"{distance}_time": distance_time(context, name, phase.model, distance, *sent[distance])
        for distance in DISTANCES
    }
    counts = wiring.add(f"{name}.round_counts", round_repeats, rounds)
    return {"round_counts": counts, "round_times": wiring.add(f"{name}.round_times", slowest_times, rounds | times)}


def _of_channels(context: Context, name: str, phase: CollectivePhase, rounds: Reference, sizes: str) -> tuple[str, str]:
    """Sizes of the messages between domains, and how many of them share the ports of a node."""
    wiring, channels = context.wiring, _channels(context, name, phase)
    if channels == PORT_COUNT and DOMAIN_GPUS in wiring.parameters:
        nodes = {"node_count": context.domains["nodes_per_domain"], "port_count": channels}
        channels = wiring.add(f"{name}.channel_count", domain_ports, nodes)
    leaving = wiring.add(f"{name}.leaving_count", leaving_count, {"rounds": rounds, "channel_count": channels})
    if isinstance(channels, Quantity):
        return sizes, leaving
    inputs: dict[str, Reference] = {"round_sizes": sizes, "channel_count": channels}
    return wiring.add(f"{name}.channel_sizes", channel_sizes, inputs), leaving


def _channels(context: Context, name: str, phase: CollectivePhase) -> Reference:
    """Number of parallel channels of a link domain: as stated, or the ports of a node for messages of device memory."""
    if phase.channel_count is not None:
        return f"application.phases.{name}.channel_count"
    ports = context.buffers != "host" and PORT_COUNT in context.wiring.parameters
    return PORT_COUNT if ports else Quantity(1.0, ONE)
