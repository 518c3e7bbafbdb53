"""Platform file of a machine of shipped parts, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from whatif.core.kept_values import DEVICE_LOSSES
from whatif.errors import UsageError
from whatif.schema.expressions import Expression
from whatif.schema.gpu import GPU
from whatif.schema.load import load_platform_document
from whatif.schema.network import Distance
from whatif.schema.parts import part_meant, parts_of
from whatif.schema.platform_spec import CPU, Node
from whatif.schema.shipped import is_name
from whatif.schema.shipped_nodes import OWN_LINKS, nodes_with
from whatif.schema.toml import FORMAT_LINE, Document, merge, parse_document
from whatif.schema.toml_text import toml_text, toml_value
from whatif.units import BYTE, WATT, counted, format_quantity, parse_quantity

BASE: Final = "generic_cpu"
"""Platform with the values that a machine of parts does not state."""
_HEAD: Final = """\
# {name}: a machine put together from parts. Values that are not stated here come from the parts and from
# `{base}`; most of those are assumed, and results that depend on them say so. `whatif explain` names each value;
# `whatif measure` and `whatif fit` replace values by measured ones.
{format}
extends = {quoted}
"""
_LINK: Final = "pcie4-x16"
_COUNTS: Final = {"gpu": "gpu_count", "cpu": "socket_count"}
"""Keys of the number of devices in a node, by the table of a device."""
_WORDS: Final = {"gpu": "GPU", "cpu": "processor"}
"""Words for a device, by its table."""
_SUPERCHIPS: Final = frozenset({"gb200", "gb300", "gh200-96gb", "mi300a", "rubin"})
"""GPUs on one board with their processor."""
_WITH_MEMORY: Final = _SUPERCHIPS | {"a64fx", "grace"}
"""Devices whose power includes that of main memory."""
_CORE_MEMORY: Final = 4e9
"""Main memory of a core of the generic server in B."""
_ONE_SWITCH: Final = "rule topology: one switch without limits, as nothing is known of the switches"
_AS_SHIPPED: Final = "as a shipped machine with this {}"
_STATED: Final = "as stated when the machine was put together"


@dataclass(frozen=True, slots=True)
class MachineParts:
    """Parts of a machine, each by the name of its file, and how many there are."""

    gpu: str = ""
    """GPU; empty for a machine without GPUs."""
    gpus_per_node: int = 1
    processor: str = ""
    """Processor; empty for that of a superchip, else of the generic server."""
    sockets_per_node: int = 1
    network: str = ""
    """Network between nodes; empty for that of the generic server."""
    ports_per_node: int = 1
    """Network ports of a node."""
    node_count: int = 1

    def document(self, name: str, folders: Sequence[Path] = ()) -> Document:
        """Platform file of this machine, complete and valid.

        Raise `UsageError` for unknown parts, counts below 1 and a name that no platform can have.
        """
        if problems := list(self._problems(name, folders)):
            raise UsageError("\n".join(problems))
        tables = self._tables(name)
        machine = load_platform_document(_document(name, tables), folders)[0]
        more = merge(self._rest_of_node(machine.node), self._links(machine.network.inter_node))
        document = _document(name, merge(tables, more))
        load_platform_document(document, folders)
        return document

    def _problems(self, name: str, folders: Sequence[Path]) -> Iterator[str]:
        if not is_name(name):
            yield f"`{name}`: the name of a machine holds only ASCII letters, digits, `_`, `.` and `-`"
        wanted = ("gpu", self.gpu, "GPU"), ("cpu", self.processor, "processor"), ("distance", self.network, "network")
        for kind, part, word in wanted:
            known = parts_of(kind, folders) if part else {}
            if part and part not in known:
                yield f"`{part}`: no {word} of this name{part_meant(part, known)}"
        counts = {
            "GPUs a node": self.gpus_per_node,
            "sockets a node": self.sockets_per_node,
            "network ports a node": self.ports_per_node,
            "nodes": self.node_count,
        }
        for words, count in counts.items():
            if count < 1:
                yield f"{count} {words}: expected a whole number of at least 1"

    def _tables(self, name: str) -> dict[str, Any]:
        """Tables of the file: counts, parts, what machines with the same parts have, and the sources."""
        like = _like(*self._devices)
        node: dict[str, Any] = {"gpu_count": self.gpus_per_node} if self.gpu else {}
        node |= {"socket_count": self.sockets_per_node, **_domain(like, self.gpus_per_node, self.node_count)}
        node |= {"gpu": {"extends": self.gpu}, **_device_links(self.gpu, like)} if self.gpu else {}
        node |= self._processor(like)
        # Where GPUs have links of their own, messages inside a node do not go through main memory.
        inside = ("intra_socket", "inter_socket") if "peer_link" in node else ()
        network: dict[str, Any] = dict.fromkeys(inside, "none")
        network |= {"port_count": self.ports_per_node} if self.ports_per_node > 1 else {}
        network |= {"inter_node": {"extends": self.network}} if self.network else {}
        head = {"name": name, "description": f"{self.words}.", "node_count": self.node_count, "node": node}
        return {**head, **({"network": network} if network else {}), "sources": _sources(node, network)}

    def _processor(self, like: Mapping[str, Any]) -> dict[str, Any]:
        """Tables of the processor; of a superchip those of a similar node, which may state its memory alone."""
        part = self.processor or (like["cpu"]["extends"] if self._brings_processor and "cpu" in like else "")
        if part or not self._brings_processor:
            return {"cpu": {"extends": part}} if part else {}
        return {"cpu": "none", "host": {"memory_bandwidth": like["host"]["memory_bandwidth"]}}

    @property
    def _brings_processor(self) -> bool:
        """Whether the processor is that of the GPU."""
        return not self.processor and self.gpu in _SUPERCHIPS

    @property
    def _devices(self) -> tuple[str, str, int]:
        """Table of the devices that run kernels, their part, and how many a node has."""
        return ("gpu", self.gpu, self.gpus_per_node) if self.gpu else ("cpu", self.processor, self.sockets_per_node)

    def _rest_of_node(self, node: Node) -> dict[str, Any]:
        """Tables of main memory and of the power of the rest of a node, with their sources, as far as parts tell."""
        size, source = self._memory(node)
        devices = [(node.cpu, self.sockets_per_node), (node.gpu, self.gpus_per_node)]
        drawn = sum(_full_power(device) * count for device, count in devices if device is not None)
        apart = 0.0 if _WITH_MEMORY & {self.gpu, self.processor} else size / 1e9
        terms = f"{drawn:g} W of its devices + 0.375 W x {apart:g} GB + 25 W x {self.ports_per_node} ports"
        power = DEVICE_LOSSES * drawn + 0.375 * apart + 25 * self.ports_per_node
        values = {
            "memory_size": (size, BYTE, source),
            "power": (power, WATT, f"rule rest of node: {100 * DEVICE_LOSSES:g} % of the {terms}"),
        }
        known = {key: entry for key, entry in values.items() if math.isfinite(entry[0])}
        host = {key: format_quantity(value, unit, 6) for key, (value, unit, _) in known.items()}
        graded = {f"node.host.{key}": {"grade": "assumed", "source": text} for key, (*_, text) in known.items()}
        return {"node": {"host": host}, "sources": graded} if known else {}

    def _links(self, ports: Distance) -> dict[str, Any]:
        """One switch, if the part has the line of a port; no ports, if its rates are those of a node."""
        network: dict[str, Any] = {"topology": {"kind": "star"}} if ports.line_bandwidth is not None else {}
        graded = {"network.topology": {"grade": "assumed", "source": _ONE_SWITCH}} if network else {}
        network |= {"port_count": "none"} if self.ports_per_node == 1 and not _is_one_port(ports) else {}
        return {"network": network, "sources": graded} if network else {}

    def _memory(self, node: Node) -> tuple[float, str]:
        """Main memory of a node, and its source: for each device that of a shipped machine, else for each core."""
        kind, _, count = self._devices
        like = _like(*self._devices)
        stated = like.get("host", {}).get("memory_size")
        if stated is not None:
            size = parse_quantity(stated).value / like[_COUNTS[kind]] * count
            return size, _AS_SHIPPED.format(_WORDS[kind])
        cores = _known(node.cpu.core_count) if node.cpu is not None else math.nan
        return cores * self.sockets_per_node * _CORE_MEMORY, "rule generic: 4 GB a core"

    @property
    def words(self) -> str:
        """Description of the machine in one line."""
        gpus = f"{self.gpus_per_node} x {self.gpu}, " if self.gpu else ""
        processor = self.processor or ("processor of the GPU" if self._brings_processor else "generic processor")
        sockets = f"{self.sockets_per_node} x {processor} a node"
        return f"{gpus}{sockets}, {counted(self.node_count, 'node')}, {self.network or 'generic network'}"


def _document(name: str, tables: dict[str, Any]) -> Document:
    """Platform file from its tables."""
    head = _HEAD.format(name=name, format=FORMAT_LINE, base=BASE, quoted=toml_value(BASE))
    return parse_document(head + toml_text(tables), f"{name}.toml")


def _is_one_port(distance: Distance) -> bool:
    """Whether rates between nodes are those of one port: further processes add nothing."""
    rates = distance.max_rate
    return rates is not None and rates.eager.additional_bandwidth == rates.rendezvous.additional_bandwidth == 0.0


def _full_power(device: CPU | GPU) -> float:
    """Thermal design power of a device in W; NaN where its part does not state it."""
    return _known(device.idle_power) + _known(device.dynamic_power)


def _known(value: float | Expression | None) -> float:
    """Number of a part; NaN for one that is not stated, or that an expression computes."""
    return value if isinstance(value, float) else math.nan


def _like(kind: str, part: str, count: int) -> Mapping[str, Any]:
    """Node of a shipped platform with a part: the first with links between devices, of as many devices if there is one;
    empty without any."""
    same = nodes_with(kind, part)
    closeness = [("extends" in node.get("peer_link", {}), node[_COUNTS[kind]] == count) for node in same]
    return same[closeness.index(max(closeness))] if same else {}


def _device_links(gpu: str, like: Mapping[str, Any]) -> dict[str, Any]:
    """Links of a GPU, as a node with the same GPU has them, where these are parts."""
    found = {key: like.get(key, {}).get("extends") for key in ("host_link", "peer_link")}
    found |= {"peer_link": OWN_LINKS[gpu]} if gpu in OWN_LINKS else {}
    links = {"host_link": {"extends": _LINK}} | {key: {"extends": part} for key, part in found.items() if part}
    sharing = like.get("host_link", {}).get("device_count")
    return links if sharing is None else merge(links, {"host_link": {"device_count": sharing}})


def _domain(like: Mapping[str, Any], gpus_per_node: int, node_count: int) -> dict[str, Any]:
    """GPUs of a link domain, where it is not a node: a part of one as in a similar node, or the nodes of its rack."""
    whole = like.get("domain_gpu_count", 0)
    if whole > like.get("gpu_count", 0):
        whole = min(whole - whole % gpus_per_node, gpus_per_node * node_count)
    elif gpus_per_node % max(whole, 1):
        whole = 0
    return {"domain_gpu_count": whole} if whole and whole != gpus_per_node else {}


def _sources(node: dict[str, Any], network: dict[str, Any]) -> dict[str, Any]:
    assumed = {"node_count": _STATED, "node": _STATED}
    assumed |= {"node.host.memory_bandwidth": _AS_SHIPPED.format("GPU")} if "host" in node else {}
    assumed |= {"network.port_count": _STATED} if "port_count" in network else {}
    return {path: {"grade": "assumed", "source": source} for path, source in assumed.items()}
