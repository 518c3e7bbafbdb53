"""Messages between the memories of GPUs: over the peer links of a link domain, or between nodes, copied or not."""

from __future__ import annotations

from collections.abc import Callable

from whatif.core.context import DOMAIN_GPUS, Context
from whatif.core.phases.host_transfer import wire_copy
from whatif.core.phases.message import message_time
from whatif.core.term import Reference
from whatif.models.phase import staged_time, time_in_node


def distance_time(
    context: Context, phase: str, model: str, distance: str, message_size: Reference, process_count: Reference
) -> str:
    """Wire the time of messages of `phase` over a distance, from the memory that holds their data."""

    def sent() -> str:
        return message_time(context, phase, model, distance, message_size, process_count)

    name = f"{phase}.{distance}"
    return from_memory(context, name, distance, message_size, sent)


def from_memory(context: Context, name: str, distance: str, message_size: Reference, sent: Callable[[], str]) -> str:
    """Wire the time of messages from the memory that holds their data; `sent` wires that from main memory.

    Between GPUs, `intra_socket` is inside the part of a link domain in a node, and `inter_socket` inside a node or a
    link domain of several nodes, whichever is larger.
    """
    if context.buffers == "host":
        return sent()
    if distance == "inter_node":
        return sent() if context.buffers == "device" else _staged(context, name, message_size, sent())
    linked = wire_copy(context, name, "peer_link", "write", message_size)
    if distance == "intra_socket" or DOMAIN_GPUS not in context.wiring.parameters:
        return linked
    gpus: dict[str, Reference] = {"domain_gpu_count": DOMAIN_GPUS, "gpu_count": "platform.node.gpu_count"}
    times: dict[str, Reference] = {"domain_time": linked, "host_time": sent()}
    return context.wiring.add(f"{name}.time_in_node", time_in_node, times | gpus)


def _staged(context: Context, name: str, message_size: Reference, sent: str) -> str:
    """Time of messages between nodes, with their copies to and from main memory."""
    if context.scenario.platform.node.host_link is None:
        reason = f"`staged`: {context.scenario.platform.name} does not state `[node.host_link]`"
        context.wiring.refuse("application.buffers", reason)
    inputs: dict[str, Reference] = {
        "message_time": sent,
        "write_time": wire_copy(context, f"{name}.to_host", "host_link", "write", message_size),
        "read_time": wire_copy(context, f"{name}.to_device", "host_link", "read", message_size),
    }
    return context.wiring.add(f"{name}.staged_time", staged_time, inputs)
