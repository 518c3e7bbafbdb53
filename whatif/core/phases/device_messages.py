"""Messages between the memories of GPUs: over the peer links of a link domain, or between nodes with or without copies."""

from __future__ import annotations

from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.phases.host_transfer import wire_copy
from whatif.core.phases.message import message_time
from whatif.core.term import Reference
from whatif.models.phase import staged_time, time_in_node


def distance_time(
    context: Context, phase: str, model: str, distance: str, message_size: Reference, process_count: Reference
) -> str:
    """Wire the time of messages of `phase` over a distance, from the memory that holds their data.

    Between GPUs, `intra_socket` is inside the part of a link domain in a node, and `inter_socket` inside a node or a
    link domain of several nodes, whichever is larger.
    """
    if context.buffers == "host":
        return message_time(context, phase, model, distance, message_size, process_count)
    if distance == "inter_node":
        return _between_nodes(context, phase, model, message_size, process_count)
    linked = _in_domain(context, phase, message_size)
    if distance == "intra_socket" or DOMAIN_GPUS not in context.wiring.parameters:
        return linked
    host = message_time(context, phase, model, distance, message_size, process_count)
    inputs: dict[str, Reference] = {
        "domain_time": linked,
        "host_time": host,
        "domain_gpu_count": DOMAIN_GPUS,
        "gpu_count": "platform.node.gpu_count",
    }
    return context.wiring.add(f"{phase}.in_node.message_time", time_in_node, inputs)


def _in_domain(context: Context, phase: str, message_size: Reference) -> str:
    """Time of messages over peer links."""
    name = f"{phase}.link_domain"
    known = f"{name}.copy_time"
    return known if known in context.wiring.terms else wire_copy(context, name, "peer_link", "write", message_size)


def _between_nodes(context: Context, phase: str, model: str, message_size: Reference, process_count: Reference) -> str:
    """Time of messages between nodes, with the copies to and from main memory that precede and follow them."""
    sent = message_time(context, phase, model, "inter_node", message_size, process_count)
    if context.buffers == "device":
        return sent
    if context.scenario.platform.node.host_link is None:
        reason = f"`staged`: {context.scenario.platform.name} does not state `[node.host_link]`"
        context.wiring.problem("application.buffers", reason)
        context.wiring.raise_problems()
    inputs: dict[str, Reference] = {
        "message_time": sent,
        "write_time": wire_copy(context, f"{phase}.to_host", "host_link", "write", message_size),
        "read_time": wire_copy(context, f"{phase}.to_device", "host_link", "read", message_size),
    }
    return context.wiring.add(f"{phase}.inter_node.staged_time", staged_time, inputs)
