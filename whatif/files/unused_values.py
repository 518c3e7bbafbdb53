"""Warnings about fitted values that a platform does not use, or whose effect other values of it limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from whatif.files.platform_file import PlatformChange
from whatif.schema.fields import Value
from whatif.schema.host_messages import states_host_messages
from whatif.schema.load import load_platform_document
from whatif.schema.network import Network, PostalParameters
from whatif.schema.parameters import provenance
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import Layers, read_document
from whatif.units import BYTE_PER_SECOND, format_quantity
from whatif.vocabulary import DISTANCES, MESSAGE_MODELS, PROTOCOLS

_LONG: Final = 2.0**30
"""Size in B of a message whose time is that of its bytes."""
_MARGIN: Final = 1.02
"""Least ratio of times that is reported."""


def unused_values(path: Path, change: PlatformChange, folders: Sequence[Path]) -> list[str]:
    """Warnings about fitted values without their full effect in a written platform file, and about tables it keeps."""
    document = read_document(path)
    platform, layers = load_platform_document(document, folders)
    links_here = "peer_link" in document.data.get("node", {})
    tables = (parameter.split(".") for parameter in change.values)
    distances = [keys[1] for keys in tables if keys[0] == "network" and keys[1] in DISTANCES and keys[2] != "pieces"]
    lines = [*_of_ports(platform.network, change), *_of_copies(change), *_of_kernels(platform, change, layers)]
    lines += _of_links(platform.network) if "inter_node" in distances else ()
    for distance in dict.fromkeys(distances):
        lines += [*_in_node(platform, distance, layers, links_here), *_kept(platform.network, distance, change, layers)]
    return lines


def _of_ports(network: Network, change: PlatformChange) -> Iterator[str]:
    """Fitted rates of a node on a platform whose rates are those of one port."""
    added = "network.inter_node.max_rate.rendezvous.additional_bandwidth"
    if network.port_count is not None and added in change.values:
        unused = "additional_bandwidth is not used, and injection_bandwidth is that of each port"
        way = '`port_count = "none"` takes the rates for those of the node, and line_bandwidth for that of all ports'
        yield f"network.port_count remains, so that {unused}; {way}"


def _of_copies(change: PlatformChange) -> Iterator[str]:
    """Fitted stages of pageable copies, which the default model of transfers does not have."""
    if any(parameter.startswith("node.host_link.staging.") for parameter in change.values):
        yield 'node.host_link.staging is used by transfers with `pageable_model = "staged"` only'


def _of_kernels(platform: PlatformSpec, change: PlatformChange, layers: Layers) -> Iterator[str]:
    """Fitted kernels that others than the timed processors run, or whose times a correction of others changes."""
    kernels = platform.kernels
    if kernels is None or not any(parameter.startswith("kernels.") for parameter in change.values):
        return
    if platform.node.gpu is not None:
        way = "to use times of cores, fit onto one without [node.gpu]"
        yield f"HPL takes the kernels for those of the GPUs of the platform; {way}"
    if kernels.correction != 1.0:
        source, grade = provenance(("kernels", "correction"), layers)
        remains = f"kernels.correction remains {kernels.correction} ({grade}; {source})"
        yield f"{remains}: remove it if it was fitted to other kernels"


def _of_links(network: Network) -> Iterator[str]:
    """Messages that are faster than the links of the topology, which carry them in halos and collectives."""
    between, link = network.inter_node, _link_bandwidth(network)
    if link is None or between.postal is None:
        return
    sizes = (between.short_limit, between.eager_limit, _LONG)
    ratios = {
        protocol: _time_ratio(getattr(between.postal, protocol), size, link)
        for protocol, size in zip(PROTOCOLS, sizes, strict=True)
    }
    slowest = max(ratios, key=ratios.__getitem__)
    if ratios[slowest] > _MARGIN:
        rate = format_quantity(link, BYTE_PER_SECOND)
        longer = f"{slowest} messages between nodes take up to {ratios[slowest] - 1:.0%} longer than measured"
        way = "state the rate of this machine in network.inter_node.line_bandwidth"
        yield f"links of network.topology carry {rate}: {longer}; {way}"


def _link_bandwidth(network: Network) -> float | None:
    """Bandwidth of a link of the topology; None without one, and for an expression of the user's own."""
    topology, line = network.topology, network.inter_node.line_bandwidth
    stated = None if topology is None else topology.bandwidth
    if topology is None or isinstance(stated, float):
        return stated if isinstance(stated, float) else None
    ports = 1.0 if topology.kind == "torus" or network.port_count is None else network.port_count
    return line * ports if isinstance(line, float) and isinstance(ports, float) else None


def _time_ratio(fitted: PostalParameters, size: Value, link: float) -> float:
    """Time of a message over a link, over that of the fit."""
    latency, rate = fitted.latency, fitted.bandwidth
    if not (isinstance(latency, float) and isinstance(rate, float) and isinstance(size, float)):
        return 1.0
    return (latency + size / link) / (latency + size / rate)


def _in_node(platform: PlatformSpec, distance: str, layers: Layers, links_here: bool) -> Iterator[str]:
    """Messages inside a node that no phase has, or only phases with messages between main memories.

    `links_here` tells whether the written file states the links between GPUs.
    """
    node, network = platform.node, platform.network
    linked = node.gpu is not None and node.peer_link is not None
    is_default = linked and states_host_messages(network, layers)
    if distance == "inter_node" or (is_default and not links_here):
        return
    if is_default:
        here = f"network.{distance} and node.peer_link are in one file"
        yield f'{here}: the default of application.buffers is "host", "device" takes the links between GPUs'
    elif linked and (distance == "intra_socket" or node.domain_gpu_count is None):
        used = 'that of messages between main memories, `application.buffers = "host"`'
        yield f"network.{distance} is {used}: those between GPUs take node.peer_link"
    elif distance == "inter_socket" and node.socket_count == 1 and network.intra_socket is not None:
        yield "network.inter_socket is not used: node.socket_count is 1"


def _kept(network: Network, distance: str, change: PlatformChange, layers: Layers) -> Iterator[str]:
    """Tables of a fitted distance that keep their values, perhaps of another machine."""
    for model in MESSAGE_MODELS:
        table = f"network.{distance}.{model}"
        stated = getattr(getattr(network, distance), model)
        if stated is not None and not any(parameter.startswith(f"{table}.") for parameter in change.values):
            source, grade = provenance((*table.split("."), "eager", "latency"), layers)
            kept = f"phases with this model keep its values, under the new limits ({grade}; {source})"
            yield f"{table} was not fitted: {kept}"
