"""Nodes of shipped platforms, by their GPU or processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from typing import Any, Final

from whatif.schema.load import extend_chain, open_document
from whatif.schema.shipped import shipped_names
from whatif.schema.toml import merge

_SAME_BOARD: Final = {
    "a100-sxm4-80gb": "a100-sxm4-40gb", "h20-sxm": "h100-sxm5-80gb", "mi325x": "mi300x", "mi355x": "mi300x"
}  # fmt: skip
"""GPUs that no shipped machine has, and those whose boards have the same links between devices."""
OWN_LINKS: Final = {"mi355x": "infinity-fabric-mi355x"}
"""Parts for faster links of the same board."""


def nodes_with(kind: str, part: str) -> Sequence[Mapping[str, Any]]:
    """Tables of the nodes of shipped platforms with a GPU, or one on the same board, or without GPUs with a processor.

    `kind` is the table of the part, `gpu` or `cpu`.
    """
    meant = _SAME_BOARD.get(part, part)
    nodes = (node for node in _nodes() if ("gpu" in node) == (kind == "gpu"))
    return [node for node in nodes if node.get(kind, {}).get("extends") == meant]


def links_with(gpu: str, link: str) -> set[str]:
    """Parts of the table `host_link` or `peer_link` in nodes with a GPU."""
    if link == "peer_link" and gpu in OWN_LINKS:
        return {OWN_LINKS[gpu]}
    return {node[link]["extends"] for node in nodes_with("gpu", gpu) if "extends" in node.get(link, {})}


@cache
def _nodes() -> Sequence[Mapping[str, Any]]:
    """Tables of the nodes of shipped platforms, each with what it extends."""
    chains = (extend_chain(open_document(name, "platforms"), "platforms", ()) for name in shipped_names("platforms"))
    return [reduce(merge, (document.data.get("node", {}) for document in chain)) for chain in chains]
