"""Parts that the tables of a platform extend: a GPU, a processor, links and interconnects."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from whatif.schema.load import Loaded
from whatif.schema.toml import dotted

EXTENDS: Final = ".extends"
"""End of the path of a part."""
_TABLES: Final = {
    "node": ("gpu", "cpu", "host_link", "peer_link"),
    "network": ("intra_socket", "inter_socket", "inter_node"),
}


def parts_in_use(loaded: Loaded) -> dict[str, str]:
    """Name of the part of each table that can extend one, by the path of its `extends`; empty without a part."""
    named = {dotted(layer.at): Path(layer.document.name).stem for layer in loaded.layers.items if layer.part}
    tables = [
        f"platform.{table}.{key}"
        for table, keys in _TABLES.items()
        for key in keys
        if getattr(getattr(loaded.scenario.platform, table), key, None) is not None
    ]
    return {f"{table}{EXTENDS}": named.get(table, "") for table in tables}
