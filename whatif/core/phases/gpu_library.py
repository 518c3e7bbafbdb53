"""Collectives of a library of GPUs, by its algorithms and protocols."""

from __future__ import annotations

from typing import Any

from whatif.core.context import Context
from whatif.core.phases.host_transfer import link_bandwidth
from whatif.core.phases.message import injection_bandwidth
from whatif.core.rank_groups import group_of
from whatif.core.term import Reference
from whatif.models.gpu_collectives import domain_link_bandwidth, group_bandwidth, library_time
from whatif.models.ranks import members_in_domain, sharing_count
from whatif.schema.application import CollectivePhase


def wire_library(
    context: Context, name: str, phase: CollectivePhase, algorithms: tuple[str, ...], size: Reference
) -> str:
    """Wire the time of one operation by the fastest of some algorithms, with a buffer of a size."""
    _check(context, name, phase)
    wiring, node = context.wiring, context.scenario.platform.node
    domain = context.domain_rank_count
    placed = context.once("domain.rank_count", sharing_count, rank_count=context.placed_count, available_count=domain)
    group = group_of(context, f"application.phases.{name}.group", phase.group)
    members = wiring.add(f"{name}.domain_member_count", members_in_domain, {**group, "domain_rank_count": placed})
    stated: dict[str, Any] = {"topology": node.domain_topology}
    linked: dict[str, Reference] = {
        "link_bandwidth": link_bandwidth(context, "peer_link"),
        "domain_rank_count": members,
    }
    link = wiring.add(f"{name}.link_bandwidth", domain_link_bandwidth, linked, options=stated)
    inputs: dict[str, Reference] = {
        "message_size": size,
        "rank_count": group["group_size"],
        "domain_rank_count": members,
        "link_bandwidth": link,
        "network_bandwidth": _network_bandwidth(context, name, members),
    }
    options = {
        "algorithm": algorithms[0] if len(algorithms) == 1 else "best",
        "switch_reduction": node.switch_reduction,
    }
    return wiring.add(f"{name}.operation_time", library_time, inputs, options=options)


def _network_bandwidth(context: Context, name: str, members: str) -> str:
    """Bandwidth at which the ranks of a group in a link domain send to others, while all groups do."""
    inputs: dict[str, Reference] = {
        "injection_bandwidth": injection_bandwidth(context, "rendezvous"),
        "member_count": members,
        "ranks_per_node": context.sharing("inter_node"),
    }
    return context.wiring.add(f"{name}.group_bandwidth", group_bandwidth, inputs)


def _check(context: Context, name: str, phase: CollectivePhase) -> None:
    """Report what a library of GPUs cannot do."""
    wiring, path, application = context.wiring, f"application.phases.{name}", context.scenario.application
    platform = context.scenario.platform
    if context.buffers == "host":
        reason = f'`nccl` sends from the memory of GPUs: state `buffers = "device"`; {platform.name} needs peer links'
        wiring.problem(f"{path}.model", reason)
    if platform.network.inter_node.injection is None:
        wiring.problem(f"{path}.model", f"{platform.name} does not state `[network.inter_node.injection]`")
    if application.communication != "modelled":
        wiring.problem("application.communication", f"`{name}` has a closed form and cannot be simulated")
    wiring.raise_problems()
