"""A run of HPL as a scenario: one configuration on a platform, to be evaluated, swept, explored and saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from whatif.errors import UsageError
from whatif.linpack.predictions import parameters_of
from whatif.linpack.simulation.configuration import Configuration
from whatif.schema.load import load_platform
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import Document, parse_document
from whatif.schema.toml_text import toml_text

Binding = Literal["by_core", "by_socket"]
PanelPlace = Literal["device", "host"]
Noise = Literal["none", "kernels", "network", "both"]


@dataclass(frozen=True, slots=True)
class HPLPlacement:
    """What HPL.dat does not say of a run."""

    ranks_per_node: int | None = None
    """None: as many as the platform has GPUs on a node, or else cores."""
    binding: Binding = "by_core"
    panel_on: PanelPlace = "device"
    noise: Noise = "none"
    seed: int = 0


def hpl_scenario(
    configuration: Configuration, platform: str, placement: HPLPlacement, folders: Sequence[Path] = ()
) -> tuple[Document, str]:
    """The scenario, and what was assumed of the ranks of a node, empty where they are stated.

    Raise `InvalidFileError` for a platform that there is not, `UsageError` for one without a number of ranks.
    """
    machine = load_platform(platform, folders)[0]
    stated, assumed = placement.ranks_per_node, ""
    if stated is None:
        stated, assumed = ranks_of_node(machine)
    application: dict[str, Any] = {"kind": "hpl", **parameters_of(configuration)}
    application |= {} if stated is None else {"ranks_per_node": stated}
    application |= {
        "binding": placement.binding,
        "panel_on": placement.panel_on,
        "noise": placement.noise,
        "seed": placement.seed,
    }
    text = toml_text({"platform": platform, "application": application})
    return parse_document(f"# How long does HPL take on {machine.name}?\n{text}", f"HPL on {platform}"), assumed


def ranks_of_node(machine: PlatformSpec) -> tuple[int | None, str]:
    """Ranks of HPL on a full node, and why; None for as many as there are GPUs, which a scenario needs not state."""
    node = machine.node
    if node.gpu is not None:
        return None, "a rank for each GPU"
    cores, sockets = None if node.cpu is None else node.cpu.core_count, node.socket_count
    if not (isinstance(cores, float) and isinstance(sockets, float)):
        wanted = "say --ranks-per-node"
        raise UsageError(f"{machine.name} states neither GPUs nor the cores of its processors ([node.cpu]): {wanted}")
    count = round(cores * sockets)
    return count, f"{count} ranks on a node, one for each core: {sockets:.0f} x {cores:.0f}"
