"""Platform file of a machine of shipped parts, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final

from whatif.errors import UsageError
from whatif.schema.load import extend_chain, load_platform_document, open_document
from whatif.schema.parts import part_meant, parts_of
from whatif.schema.shipped import is_name, shipped_names
from whatif.schema.toml import FORMAT_LINE, Document, merge, parse_document
from whatif.schema.toml_text import toml_text, toml_value
from whatif.units import counted

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
_SAME_BOARD: Final = {
    "a100-sxm4-80gb": "a100-sxm4-40gb", "h20-sxm": "h100-sxm5-80gb", "mi325x": "mi300x", "mi355x": "mi300x"
}  # fmt: skip
"""GPUs that no shipped machine has, and those whose boards have the same links between devices."""
_OWN_LINKS: Final = {"mi355x": "infinity-fabric-mi355x"}
"""Parts for faster links of the same board."""
_STATED: Final = "as stated when the machine was put together"


@dataclass(frozen=True, slots=True)
class MachineParts:
    """Parts of a machine, each by the name of its file, and how many there are."""

    gpu: str = ""
    """GPU; empty for a machine without GPUs."""
    gpus_per_node: int = 1
    processor: str = ""
    """Processor; empty for that of the generic server."""
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
        head = _HEAD.format(name=name, format=FORMAT_LINE, base=BASE, quoted=toml_value(BASE))
        document = parse_document(head + toml_text(self._tables(name)), f"{name}.toml")
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
        like = _like(self.gpu, self.gpus_per_node) if self.gpu else {}
        node: dict[str, Any] = {"gpu_count": self.gpus_per_node} if self.gpu else {}
        node |= {"socket_count": self.sockets_per_node, **_domain(like, self.gpus_per_node, self.node_count)}
        node |= {"gpu": {"extends": self.gpu}, **_device_links(self.gpu, like)} if self.gpu else {}
        node |= {"cpu": {"extends": self.processor}} if self.processor else {}
        # Where GPUs have links of their own, messages inside a node do not go through main memory.
        network: dict[str, Any] = {"intra_socket": "none"} if "peer_link" in node else {}
        network |= {"port_count": self.ports_per_node} if self.ports_per_node > 1 else {}
        network |= {"inter_node": {"extends": self.network}} if self.network else {}
        head = {"name": name, "description": f"{self.words}.", "node_count": self.node_count, "node": node}
        return {**head, **({"network": network} if network else {}), "sources": _sources(network)}

    @property
    def words(self) -> str:
        """Description of the machine in one line."""
        gpus = f"{self.gpus_per_node} x {self.gpu}, " if self.gpu else ""
        sockets = f"{self.sockets_per_node} x {self.processor or 'generic processor'} a node"
        return f"{gpus}{sockets}, {counted(self.node_count, 'node')}, {self.network or 'generic network'}"


def _like(gpu: str, gpus_per_node: int) -> dict[str, Any]:
    """Node of a shipped platform with a GPU, or with one on the same board: the first with links between devices, of as
    many GPUs if there is one; empty without any."""
    nodes = (_node(name) for name in shipped_names("platforms"))
    same = [node for node in nodes if node.get("gpu", {}).get("extends") == _SAME_BOARD.get(gpu, gpu)]
    closeness = [("extends" in node.get("peer_link", {}), node["gpu_count"] == gpus_per_node) for node in same]
    return same[closeness.index(max(closeness))] if same else {}


def _node(name: str) -> dict[str, Any]:
    """Table of the node of a shipped platform, with what it extends."""
    chain = extend_chain(open_document(name, "platforms"), "platforms", ())
    return reduce(merge, (document.data.get("node", {}) for document in chain))


def _device_links(gpu: str, like: dict[str, Any]) -> dict[str, Any]:
    """Links of a GPU, as a node with the same GPU has them, where these are parts."""
    found = {key: like.get(key, {}).get("extends") for key in ("host_link", "peer_link")}
    found |= {"peer_link": _OWN_LINKS[gpu]} if gpu in _OWN_LINKS else {}
    return {"host_link": {"extends": _LINK}} | {key: {"extends": part} for key, part in found.items() if part}


def _domain(like: dict[str, Any], gpus_per_node: int, node_count: int) -> dict[str, Any]:
    """GPUs of a link domain, where it is not a node: a part of one as in a similar node, or the nodes of its rack."""
    whole = like.get("domain_gpu_count", 0)
    if whole > like.get("gpu_count", 0):
        whole = min(whole - whole % gpus_per_node, gpus_per_node * node_count)
    elif gpus_per_node % max(whole, 1):
        whole = 0
    return {"domain_gpu_count": whole} if whole and whole != gpus_per_node else {}


def _sources(network: dict[str, Any]) -> dict[str, Any]:
    assumed = {"node_count": _STATED, "node": _STATED}
    assumed |= {"network.port_count": _STATED} if "port_count" in network else {}
    return {path: {"grade": "assumed", "source": source} for path, source in assumed.items()}
