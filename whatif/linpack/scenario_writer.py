"""Scenario of one configuration of HPL on a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from whatif.core.platform import Platform
from whatif.core.scenario import Scenario, named_platform
from whatif.errors import UsageError
from whatif.linpack.fleet import Fleet, fleet_change
from whatif.linpack.predictions import HPLRuns, parameters_of
from whatif.linpack.simulation.configuration import Configuration
from whatif.schema.load import load_platform
from whatif.schema.platform_spec import PlatformSpec
from whatif.schema.toml import Document, parse_document
from whatif.schema.toml_text import file_text

Binding = Literal["by_core", "by_socket"]
PanelPlace = Literal["device", "host"]
Noise = Literal["none", "kernels", "network", "both"]


_CORES: Final = "platform.node.cpu.core_count"
_SOCKETS: Final = "platform.node.socket_count"


@dataclass(frozen=True, slots=True)
class HPLPlacement:
    """Choices of a run that HPL.dat does not state."""

    ranks_per_node: int | None = None
    """None: one for each GPU of a node, or else for each core."""
    binding: Binding = "by_core"
    panel_on: PanelPlace = "device"
    noise: Noise = "none"
    seed: int = 0
    fleet: Fleet = field(default_factory=Fleet)

    def __post_init__(self) -> None:
        drawn = next((level for level in ("day", "call") if level in self.fleet.spreads), None)
        if drawn is not None and self.noise not in ("kernels", "both"):
            raise UsageError(f"--spread {drawn}=..: no effect without the noise of kernels (`whatif hpl --noise`)")


def hpl_scenario_of(
    configuration: Configuration,
    platform: str | Path | Platform,
    platform_dirs: Sequence[str | Path],
    overrides: Mapping[str, Any],
    placement: HPLPlacement,
) -> tuple[Scenario, str, tuple[str, ...]]:
    """Scenario of one configuration on a platform, the assumption about the ranks of a node, and notes on its fleet.

    Raise `UsageError` for a fleet that the platform does not allow, for overrides of parameters that the configuration
    states, and for a platform that states neither GPUs nor cores; `InvalidFileError` for an unknown platform.
    """
    own = (*parameters_of(configuration), "rank_count")
    taken = next((name for name in own if f"application.{name}" in overrides), None)
    if taken is not None:
        raise UsageError(f"--set application.{taken}: HPL.dat, or the search, states it")
    has_ranks = "application.ranks_per_node" in overrides
    if has_ranks and placement.ranks_per_node is not None:
        raise UsageError("--set application.ranks_per_node and --ranks-per-node exclude each other")
    name, folders = _source(platform, platform_dirs)
    if isinstance(platform, Platform):
        machine, built = platform.spec, {name: platform.document}
    else:
        machine, built = load_platform(name, folders)[0], {}
    stated = placement.ranks_per_node
    ranks = _ranks_of_node(machine, overrides) if stated is None and not has_ranks else stated
    scenario = Scenario(_document(configuration, name, machine.name, placement, ranks), None, overrides, folders, built)
    runs = HPLRuns(scenario.program)
    change = fleet_change(placement.fleet, runs)
    if change.overrides:
        scenario = scenario.with_overrides(change.overrides)
    return scenario, "" if has_ranks or stated is not None else _assumed(runs), change.notes


def _source(platform: str | Path | Platform, platform_dirs: Sequence[str | Path]) -> tuple[str, tuple[Path, ...]]:
    """Name of a platform, and the folders to search for it."""
    folders = tuple(map(Path, platform_dirs))
    if isinstance(platform, Platform):
        return platform.name, (*platform.folders, *folders)
    return named_platform(str(platform), folders)


def _document(
    configuration: Configuration, platform: str, machine: str, placement: HPLPlacement, ranks: int | str | None
) -> Document:
    application: dict[str, Any] = {"kind": "hpl", **parameters_of(configuration)}
    application |= {} if ranks is None else {"ranks_per_node": ranks}
    application |= {
        "binding": placement.binding,
        "panel_on": placement.panel_on,
        "noise": placement.noise,
        "seed": placement.seed,
    }
    text = file_text({"platform": platform, "application": application}, f"How long does HPL take on {machine}?")
    return parse_document(text, f"HPL on {platform}")


def _ranks_of_node(machine: PlatformSpec, overrides: Mapping[str, Any]) -> str | None:
    """Ranks of HPL on a full node: one for each core, or None for one on each GPU, the default of a scenario."""
    node = machine.node
    if node.gpu is not None:
        return None
    if _CORES not in overrides and (node.cpu is None or node.cpu.core_count is None):
        wanted = "state --ranks-per-node"
        raise UsageError(f"{machine.name} states neither GPUs nor the cores of its processors ([node.cpu]): {wanted}")
    return f"= {_CORES} * {_SOCKETS}"


def _assumed(runs: HPLRuns) -> str:
    """Ranks of a node if not stated."""
    if runs.program.loaded.scenario.platform.node.gpu is not None:
        return "a rank for each GPU"
    sockets, cores = (float(runs.base.values[path]) for path in (_SOCKETS, _CORES))
    return f"{runs.ranks_per_node} ranks on a node, one for each core: {sockets:.0f} x {cores:.0f}"
