"""Collectives of a library of GPUs, by its algorithms and protocols."""

from __future__ import annotations

from typing import Any

from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.phases.host_transfer import link_bandwidth
from whatif.core.phases.message import injection_bandwidth
from whatif.core.term import Reference
from whatif.models.gpu_collectives import LIBRARY_ALGORITHMS, domain_bandwidth, domain_link_bandwidth, library_time
from whatif.models.ranks import sharing_count
from whatif.schema.application import CollectivePhase

NAMES = (*LIBRARY_ALGORITHMS, "best")


def wire_library(context: Context, name: str, phase: CollectivePhase) -> str:
    """Wire the time of one operation."""
    _check(context, name, phase)
    wiring, node = context.wiring, context.scenario.platform.node
    domain = context.domain_rank_count
    placed = context.once("domain.rank_count", sharing_count, rank_count=context.placed_count, available_count=domain)
    stated: dict[str, Any] = {"topology": node.domain_topology}
    linked: dict[str, Reference] = {"link_bandwidth": link_bandwidth(context, "peer_link"), "domain_rank_count": placed}
    link = wiring.add(f"{name}.link_bandwidth", domain_link_bandwidth, linked, options=stated)
    inputs: dict[str, Reference] = {
        "message_size": f"application.phases.{name}.message_size",
        "rank_count": context.placed_count,
        "domain_rank_count": placed,
        "link_bandwidth": link,
        "network_bandwidth": _network_bandwidth(context, name),
    }
    options = {"algorithm": phase.algorithm, "switch_reduction": node.switch_reduction}
    return wiring.add(f"{name}.operation_time", library_time, inputs, options=options)


def _network_bandwidth(context: Context, name: str) -> str:
    """Bandwidth at which the nodes of a link domain send to others."""
    node = injection_bandwidth(context, "rendezvous")
    if DOMAIN_GPUS not in context.wiring.parameters:
        return node
    inputs = {"nodes_per_domain": context.domains["nodes_per_domain"], "injection_bandwidth": node}
    return context.wiring.add(f"{name}.domain_bandwidth", domain_bandwidth, inputs)


def _check(context: Context, name: str, phase: CollectivePhase) -> None:
    """Report what a library of GPUs cannot do."""
    wiring, path, application = context.wiring, f"application.phases.{name}", context.scenario.application
    platform = context.scenario.platform
    if context.buffers == "host":
        reason = f'`nccl` sends from the memory of GPUs: state `buffers = "device"`; {platform.name} needs peer links'
        wiring.problem(f"{path}.model", reason)
    if phase.algorithm not in NAMES:
        wiring.problem(f"{path}.algorithm", f"`nccl` has no `{phase.algorithm}`; it has {', '.join(NAMES)}")
    if platform.network.inter_node.injection is None:
        wiring.problem(f"{path}.model", f"{platform.name} does not state `[network.inter_node.injection]`")
    if application.communication != "modelled":
        wiring.problem("application.communication", f"`{name}` has a closed form and cannot be simulated")
    wiring.raise_problems()
