"""Collectives of a library of GPUs, by its algorithms and protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from whatif.core.context import Context
from whatif.core.phases.host_transfer import link_bandwidth
from whatif.core.phases.library_parameters import measured_operation
from whatif.core.phases.message import PORT_COUNT, injection_bandwidth
from whatif.core.rank_groups import group_of
from whatif.core.term import Reference
from whatif.models.gpu_collectives import domain_link_bandwidth, group_bandwidth, library_time
from whatif.models.group_domains import DOMAINS, LEAST, MOST, group_domains, number_of
from whatif.schema.collective_phase import CollectivePhase
from whatif.units import ONE, Quantity

PEER_COUNT: Final = "platform.node.peer_link.peer_count"


def wire_library(
    context: Context, name: str, phase: CollectivePhase, algorithms: tuple[str, ...], size: Reference
) -> str:
    """Wire the time of one operation, with a buffer of a size, by the fastest of some algorithms.

    Measured parameters apply where the platform has them, else data sheets.
    """
    _check(context, name)
    group = group_of(context, f"application.phases.{name}.group", phase.group)
    return library_operation(context, name, group, algorithms, size)


def library_operation(
    context: Context, name: str, group: Mapping[str, Reference], algorithms: tuple[str, ...], size: Reference
) -> str:
    """Time of one operation of the groups with a size and a stride, by the fastest of some algorithms."""
    inputs = {"message_size": size, **_ranks_and_bandwidths(context, name, group)}
    algorithm = algorithms[0] if len(algorithms) == 1 else "best"
    options = {"algorithm": algorithm, "switch_reduction": context.scenario.platform.node.switch_reduction}

    def datasheet(term: str) -> str:
        return context.wiring.add(term, library_time, inputs, options=options)

    measured = measured_operation(context, name, algorithm, inputs, datasheet)
    return measured or datasheet(f"{name}.operation_time")


def _ranks_and_bandwidths(context: Context, name: str, group: Mapping[str, Reference]) -> dict[str, Reference]:
    """Ranks and their domains, and bandwidths of one in its domain and of the domain with the fewest to others."""
    wiring = context.wiring
    counts = {**group, "rank_count": context.placed_count, "domain_rank_count": context.domain_rank_count}
    numbers = wiring.add(f"{name}.group_domains", group_domains, counts)
    places = {
        key: wiring.add(f"{name}.{key}", number_of, {"numbers": numbers}, options={"number": number})
        for key, number in (("domain_count", DOMAINS), ("domain_rank_count", MOST), ("least_rank_count", LEAST))
    }
    return {
        "rank_count": group["group_size"],
        **places,
        "link_bandwidth": _link_bandwidth(context, name, places["domain_rank_count"]),
        "network_bandwidth": _network_bandwidth(context, name, places["least_rank_count"]),
    }


def _link_bandwidth(context: Context, name: str, members: str) -> str:
    """Bandwidth at which a rank sends to the others of its domain."""
    linked: dict[str, Reference] = {
        "link_bandwidth": link_bandwidth(context, "peer_link"),
        "domain_rank_count": members,
    }
    stated: dict[str, Any] = {"topology": context.scenario.platform.node.domain_topology}
    if PEER_COUNT in context.wiring.parameters and stated["topology"] == "mesh":
        linked["peer_count"] = PEER_COUNT
    return context.wiring.add(f"{name}.link_bandwidth", domain_link_bandwidth, linked, options=stated)


def _network_bandwidth(context: Context, name: str, least: str) -> str:
    """Bandwidth at which the domain with the fewest ranks of a group sends to others, while all groups do."""
    one = Quantity(1.0, ONE)
    inputs: dict[str, Reference] = {
        "injection_bandwidth": injection_bandwidth(context, "rendezvous"),
        "least_rank_count": least,
        "ranks_per_node": context.sharing("inter_node"),
        "port_count": PORT_COUNT if PORT_COUNT in context.wiring.parameters else one,
        "gpu_count": "platform.node.gpu_count",
    }
    return context.wiring.add(f"{name}.group_bandwidth", group_bandwidth, inputs)


def _check(context: Context, name: str) -> None:
    """Report what a library of GPUs cannot do."""
    wiring, path, platform = context.wiring, f"application.phases.{name}", context.scenario.platform
    if context.buffers == "host":
        reason = f"`nccl` sends from the memory of GPUs: {context.device_buffers_need}"
        wiring.problem(f"{path}.model", reason)
    if context.buffers == "staged":
        wiring.problem(
            "application.buffers", f"`staged` has no effect on `{name}`: `nccl` sends from the memory of GPUs"
        )
    if platform.network.inter_node.injection is None:
        wiring.problem(f"{path}.model", f"{platform.name} does not state `[network.inter_node.injection]`")
    if context.is_simulated:
        wiring.problem("application.communication", f"`{name}` has a closed form and cannot be simulated")
    wiring.raise_problems()
