"""Bandwidths of devices of a node that copy at the same time over shared links."""

from __future__ import annotations

import numpy as np

from whatif.core.context import GPU_COUNT, Context
from whatif.core.term import Reference
from whatif.models.congestion import LinkBandwidths
from whatif.models.decomposition import is_count
from whatif.models.quantities import BytesPerSecond, Count, FloatArray, model
from whatif.models.ranks import copying_devices, copying_ranks, sharing_count
from whatif.schema.application import TransferPhase
from whatif.units import ONE, Quantity

Ends = tuple[tuple[str, str], ...]


def by_link(*bandwidths: BytesPerSecond) -> LinkBandwidths:
    """The bandwidths of the links of a node, joined along the axis "link"."""
    return np.stack(np.broadcast_arrays(*bandwidths), axis=-1)


@model("least of the max-min fair shares, and of the own link", "Abdelhafez et al. (AHEAD), Sec. IX: proposed there")
def shared_bandwidth(
    link_bandwidth: BytesPerSecond,
    device_count: Count,
    link_bandwidths: LinkBandwidths,
    *,
    ends: Ends,
    direction: str,
) -> BytesPerSecond:
    """Bandwidth left to the slowest of `device_count` devices that copy at the same time.

    `link_bandwidths` [..., link] are those of the links between `ends`; each copy takes the fewest links between its
    device and the nearest processor, or the next device. `link_bandwidth` [...] is that of a single copy. NaN where
    `device_count` is not a whole number from 1 to the devices that the links lead to.
    """
    shape = np.broadcast_shapes(link_bandwidth.shape, device_count.shape, link_bandwidths.shape[:-1])
    result = np.full(shape, np.nan)
    alone, counts = (np.broadcast_to(array, shape) for array in (link_bandwidth, device_count))
    links = np.broadcast_to(link_bandwidths, (*shape, len(ends)))
    for at in np.ndindex(shape):
        if is_count(counts[at], most=device_total(ends)):
            shares = _shares(ends, links[at], transfers(ends, int(counts[at]), direction), float(alone[at]))
            result[at] = shares.min()
    return result


def _shares(ends: Ends, bandwidths: FloatArray, copies: list[tuple[str, str]], alone: float) -> FloatArray:
    from whatif.simulation.node_graph import NodeGraph, concurrent_bandwidths

    named = zip(ends, bandwidths.tolist(), strict=True)
    graph = NodeGraph({str(number): (*pair, bandwidth) for number, (pair, bandwidth) in enumerate(named)})
    return concurrent_bandwidths(graph, copies, np.full(len(copies), alone))


def device_total(ends: Ends) -> int:
    """The devices that links lead to."""
    return sum(end.startswith("gpu") for end in {end for pair in ends for end in pair})


def transfers(ends: Ends, device_count: int, direction: str) -> list[tuple[str, str]]:
    """Source and destination of the copies of the first devices, all at the same time."""
    devices = [f"gpu{number}" for number in range(device_count)]
    if direction == "peer_to_peer":
        ring = [*devices[1:], devices[0]] if device_count > 1 else ["gpu1"]
        return list(zip(devices, ring, strict=True))
    hosts = [_nearest_host(ends, device) for device in devices]
    pairs = zip(hosts, devices, strict=True)
    return [pair if direction == "host_to_device" else pair[::-1] for pair in pairs]


def _nearest_host(ends: Ends, device: str) -> str:
    """The processor with the fewest links to a device."""
    reached, edge = {device}, {device}
    while edge and not (hosts := sorted(end for end in edge if end.startswith("cpu"))):
        edge = {end for pair in ends if edge.intersection(pair) for end in pair} - reached
        reached |= edge
    return hosts[0] if edge else "cpu0"


def ranks_on_link(context: Context, key: str, name: str = "", phase: TransferPhase | None = None) -> Reference | None:
    """Ranks that copy over a link `[node.KEY]` at the same time; None if kernels run on processors.

    A link carries the copies of one GPU, or of as many devices as it states to share it; the phase `name` may state
    that fewer devices copy.
    """
    wiring, devices, node = context.wiring, f"platform.node.{key}.device_count", context.scenario.platform.node
    if not context.on_gpus or node.gpu is None:
        return None
    if devices not in wiring.parameters or node.links:
        return context.ranks_on_gpu
    if phase is not None and phase.device_count is not None:
        stated: dict[str, Reference] = {
            "rank_count": f"application.phases.{name}.device_count",
            "available_count": devices,
        }
        devices = wiring.add(f"{name}.device_count", sharing_count, stated)
    inputs = {"node_rank_count": context.sharing("inter_node"), "ranks_on_gpu": context.ranks_on_gpu}
    return context.once(f"{name or key}.ranks_on_link", copying_ranks, **inputs, device_count=devices)


def _copying_count(context: Context, name: str, phase: TransferPhase) -> Reference:
    """Devices of a node that copy at the same time: as stated, else all with ranks."""
    if phase.device_count is not None:
        return f"application.phases.{name}.device_count"
    if not context.on_gpus or context.scenario.platform.node.gpu is None:
        return Quantity(1.0, ONE)
    ranks = {"node_rank_count": context.sharing("inter_node"), "ranks_per_device": context.ranks_per_device}
    return context.once("placement.copying_devices", copying_devices, **ranks, gpu_count=GPU_COUNT)


def wire_shared(context: Context, name: str, phase: TransferPhase, bandwidth: str) -> str:
    """Bandwidth of a transfer during the transfers of other devices; `bandwidth` if no links are stated."""
    links, path = context.scenario.platform.node.links, f"application.phases.{name}.device_count"
    if not links:
        _require_shared_links(context, path, phase)
        return bandwidth
    count = _copying_count(context, name, phase)
    ends = tuple((link.ends[0], link.ends[1]) for link in links.values())
    words = "the number of devices with ranks" if phase.device_count is None else path
    reason = f"{words} exceeds the {device_total(ends)} devices of platform.node.links"
    devices = Quantity(float(device_total(ends)), ONE)
    context.wiring.require_fit(f"{name}.device_count", reason, count, devices)
    paths = [f"platform.node.links.{key}.bandwidth" for key in links]
    joined = context.once("node.links", by_link, **{path: path for path in paths})
    inputs: dict[str, Reference] = {"link_bandwidth": bandwidth, "device_count": count, "link_bandwidths": joined}
    options = {"ends": ends, "direction": phase.direction}
    return context.wiring.add(f"{name}.shared_bandwidth", shared_bandwidth, inputs, options=options)


def _require_shared_links(context: Context, path: str, phase: TransferPhase) -> None:
    """Record a problem where several devices copy, but the platform does not state what they share."""
    node, key = context.scenario.platform.node, "peer_link" if phase.direction == "peer_to_peer" else "host_link"
    stated = getattr(getattr(node, key), "device_count", None) is not None
    if isinstance(phase.device_count, float) and phase.device_count > 1 and not stated:
        lacks = f"does not state the links that devices share (`[node.links]`, or `device_count` of `[node.{key}]`)"
        context.wiring.problem(path, f"{context.scenario.platform.name} {lacks}")
