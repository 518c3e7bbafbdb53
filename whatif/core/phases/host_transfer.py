"""Copies between host and device or inside a device, from the link's data sheet and one measured latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from whatif.core.context import Context
from whatif.core.phases.node_links import ranks_on_link, wire_shared
from whatif.core.term import PhaseTerm, Reference, parameters_in
from whatif.models.gpu_sharing import of_all_ranks
from whatif.models.staging import CHUNK_SIZE, CORE_SHARE, PASS_COUNT, commanded_bandwidth, core_copy_bandwidth
from whatif.models.transfer import (
    device_copy_time,
    effective_bandwidth,
    nvlink_bandwidth,
    nvlink_read_size,
    nvlink_write_size,
    pageable_time,
    pcie_bandwidth,
    pcie_read_size,
    pcie_write_size,
    pinned_time,
    staged_read_time,
    staged_write_time,
    staging_bandwidth,
)
from whatif.models.workload import copy_count
from whatif.schema.application import TransferPhase
from whatif.schema.platform_spec import NVLink, PCIe
from whatif.units import BYTE, ONE, Quantity

_FLITS: Final = {"payload_size": "maximum_payload_size", "flit_size": "flit_size"}
_PCIE_READ: Final = {
    "read_request_size": "maximum_read_request_size",
    "completion_boundary_size": "read_completion_size",
    "request_header_size": "request_header_size",
    "completion_header_size": "completion_header_size",
}
_PCIE_WRITE: Final = {"payload_size": "maximum_payload_size", "write_header_size": "request_header_size"}
LINK_SIZES: Final[Mapping[tuple[str, str], tuple[Callable[..., Any], Mapping[str, str]]]] = {
    ("pcie", "read"): (pcie_read_size, _PCIE_READ),
    ("pcie", "write"): (pcie_write_size, _PCIE_WRITE),
    ("nvlink", "read"): (nvlink_read_size, _FLITS),
    ("nvlink", "write"): (nvlink_write_size, _FLITS),
}
"""The bytes that cross a link, by its kind and the device's way to use it: function, and its parameters' parameters."""
LINK_BANDWIDTHS: Final[Mapping[str, tuple[Callable[..., Any], tuple[str, ...]]]] = {
    "pcie": (pcie_bandwidth, ("lane_count", "generation")),
    "nvlink": (nvlink_bandwidth, ("link_count", "lane_count", "lane_bandwidth")),
}
"""The bandwidth of a link by its kind: function, and its parameters, named as the parameters."""


def wire_transfer(context: Context, name: str, phase: TransferPhase) -> list[PhaseTerm]:
    """Transfer phase; its time is that of all transfers of one iteration, 0 where kernels run on the host."""
    if context.scenario.kernels_on_sockets:
        return [PhaseTerm(name, context.wiring.sum(name, []), "transfer")]
    path, wiring = f"application.phases.{name}", context.wiring
    size = f"{path}.transfer_size" if phase.halo is None else f"{phase.halo}.rank_size"
    if phase.direction == "device_to_device":
        time = _device_copy(context, name, size)
    else:
        time = _over_link(context, name, phase, size)
    if phase.blocking:
        time = wiring.sum(f"{name}.blocking_time", [time, "platform.node.gpu.synchronisation_time"])
    count = f"{path}.transfer_count"
    if phase.halo is not None:
        exchanges = f"application.phases.{phase.halo}.exchange_count"
        count = wiring.add(f"{name}.copy_count", copy_count, {"transfer_count": count, "exchange_count": exchanges})
    return [PhaseTerm(name, wiring.repeat(name, time, count), "transfer")]


def _device_copy(context: Context, name: str, size: str) -> str:
    gpu, device = "platform.node.gpu", context.scenario.platform.node.gpu
    if device is None or device.copy_latency is None:
        _missing(context, name, "direction", gpu if device is None else f"{gpu}.copy_latency")
    inputs: dict[str, Reference] = {
        "message_size": _joint_size(context, name, size, context.ranks_on_gpu),
        "latency": f"{gpu}.copy_latency",
        "memory_bandwidth": f"{gpu}.dram_bandwidth",
    }
    return context.wiring.add(f"{name}.transfer_time", device_copy_time, inputs)


def _over_link(context: Context, name: str, phase: TransferPhase, size: str) -> str:
    node = context.scenario.platform.node
    key = "peer_link" if phase.direction == "peer_to_peer" else "host_link"
    link = node.peer_link if key == "peer_link" else node.host_link
    base = f"platform.node.{key}"
    if link is None:
        _missing(context, name, "direction", base)
    # The device reads host memory for a copy to the device, and writes it for a copy to the host or a peer.
    way = "read" if phase.direction == "host_to_device" else "write"
    shared = wire_shared(context, name, phase, _bandwidth(context, base, link))
    ranks = ranks_on_link(context, key, name, phase)
    inputs = _crossing(context, name, base, link, way, size, shared, ranks)
    inputs["latency"] = f"{base}.{phase.memory}_{way}_latency"
    if phase.memory == "pinned":
        return context.wiring.add(f"{name}.transfer_time", pinned_time, inputs)
    if phase.pageable_model == "staged":
        return _staged(context, name, base, link, way, inputs)
    if node.host.memory_bandwidth is None:
        _missing(context, name, "memory", "platform.node.host.memory_bandwidth")
    if phase.pageable_model == "projected":
        return _projected(context, name, way, inputs)
    memory: dict[str, Reference] = {"memory_bandwidth": "platform.node.host.memory_bandwidth"}
    return context.wiring.add(f"{name}.transfer_time", pageable_time, inputs | memory)


def _joint_size(context: Context, name: str, size: str, rank_count: Reference) -> str:
    """Size of the copies that ranks make at the same time."""
    return context.wiring.add(f"{name}.joint_size", of_all_ranks, {"quantity": size, "rank_count": rank_count})


def wire_copy(context: Context, name: str, key: str, way: str, size: Reference) -> str:
    """Wire the time of copies of pinned memory over `[node.KEY]`, which must be stated: the device reads or writes."""
    base, link = f"platform.node.{key}", getattr(context.scenario.platform.node, key)
    inputs = _crossing(
        context, name, base, link, way, size, _bandwidth(context, base, link), _ranks_on_host_link(context, key)
    )
    return context.wiring.add(f"{name}.copy_time", pinned_time, {**inputs, "latency": f"{base}.pinned_{way}_latency"})


def link_bandwidth(context: Context, key: str) -> str:
    """Wire the bandwidth of `[node.KEY]` for the payload of long messages; of a host link that of one rank."""
    name = f"{key}.long"
    if f"{name}.effective_bandwidth" not in context.wiring.terms:
        base, link = f"platform.node.{key}", getattr(context.scenario.platform.node, key)
        size, bandwidth = Quantity(2.0**30, BYTE), _bandwidth(context, base, link)
        _crossing(context, name, base, link, "write", size, bandwidth, _ranks_on_host_link(context, key))
    return f"{name}.effective_bandwidth"


def _ranks_on_host_link(context: Context, key: str) -> Reference | None:
    """Ranks that copy over the host link at the same time; None for other links, which carry messages."""
    return ranks_on_link(context, key) if key == "host_link" else None


def _crossing(
    context: Context,
    name: str,
    base: str,
    link: PCIe | NVLink,
    way: str,
    size: Reference,
    bandwidth: str,
    rank_count: Reference | None = None,
) -> dict[str, Reference]:
    """Size of copies, and the bandwidth of a link for their payload while `rank_count` ranks copy; by default one."""
    crossing = _transferred(context, name, base, link, way, size)
    inputs: dict[str, Reference] = {
        "message_size": size,
        "transferred_size": crossing if rank_count is None else _joint_size(context, name, crossing, rank_count),
        "link_bandwidth": bandwidth,
    }
    effective = context.wiring.add(f"{name}.effective_bandwidth", effective_bandwidth, inputs)
    return {"message_size": size, "effective_bandwidth": effective}


def _staged(
    context: Context, name: str, base: str, link: PCIe | NVLink, way: str, inputs: Mapping[str, Reference]
) -> str:
    """Pageable copy through the buffers of the driver; the cached bandwidth equals the other one unless stated."""
    table = f"{base}.staging"
    if link.staging is None:
        _missing(context, name, "pageable_model", table)
    cached = f"{table}.cached_{way}_bandwidth"
    staging: dict[str, Reference] = {
        "message_size": inputs["message_size"],
        "cache_size": f"{table}.cache_size",
        "cached_bandwidth": cached if cached in context.wiring.parameters else f"{table}.{way}_bandwidth",
        "uncached_bandwidth": f"{table}.{way}_bandwidth",
    }
    more: dict[str, Reference] = {
        "staging_bandwidth": context.wiring.add(f"{name}.staging_bandwidth", staging_bandwidth, staging),
        "chunk_size": f"{table}.chunk_size",
    }
    function = staged_read_time if way == "read" else staged_write_time
    return context.wiring.add(f"{name}.transfer_time", function, {**inputs, **more})


def _projected(context: Context, name: str, way: str, inputs: Mapping[str, Reference]) -> str:
    """Pageable copy through the buffers of the driver, staged at the rate of the host memory's data sheet."""
    passes = f"platform.node.host.staging_{way}_pass_count"
    staging: dict[str, Reference] = {
        "memory_bandwidth": "platform.node.host.memory_bandwidth",
        "core_share": Quantity(CORE_SHARE, ONE),
        "pass_count": passes if passes in context.wiring.parameters else Quantity(PASS_COUNT, ONE),
    }
    more: dict[str, Reference] = {
        "staging_bandwidth": context.wiring.add(f"{name}.staging_bandwidth", core_copy_bandwidth, staging),
        "chunk_size": Quantity(CHUNK_SIZE, BYTE),
    }
    if way == "write":
        return context.wiring.add(f"{name}.transfer_time", staged_write_time, {**inputs, **more})
    sizes = {key: inputs[key] for key in ("message_size", "effective_bandwidth")}
    more["effective_bandwidth"] = context.wiring.add(f"{name}.commanded_bandwidth", commanded_bandwidth, sizes)
    return context.wiring.add(f"{name}.transfer_time", staged_read_time, {**inputs, **more})


def _transferred(context: Context, name: str, base: str, link: PCIe | NVLink, way: str, size: Reference) -> str:
    """Bytes that cross the link: payload and packet overhead."""
    function, keys = LINK_SIZES[link.kind, way]
    inputs: dict[str, Reference] = {argument: f"{base}.{key}" for argument, key in keys.items()}
    return context.wiring.add(f"{name}.transferred_size", function, inputs | {"message_size": size})


def _bandwidth(context: Context, base: str, link: PCIe | NVLink) -> str:
    function, keys = LINK_BANDWIDTHS[link.kind]
    name = f"{base.rpartition('.')[2]}.bandwidth"
    return context.once(name, function, **parameters_in(base, *keys))


def _missing(context: Context, name: str, key: str, parameter: str) -> NoReturn:
    platform = context.scenario.platform.name
    context.wiring.refuse(f"application.phases.{name}.{key}", f"{platform} does not state `{parameter}`")
