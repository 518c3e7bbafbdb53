"""Data sheet of a platform for collectives of a library of GPUs, as its scenarios use it."""

from __future__ import annotations

from whatif.core.evaluate import evaluate
from whatif.core.scenario import Scenario
from whatif.errors import UsageError
from whatif.fitting.library_points import LibrarySheet
from whatif.schema.load import load_platform
from whatif.schema.platform_spec import PlatformSpec

_PHASE = "all"


def library_sheet(platform: str) -> LibrarySheet:
    """GPUs of a link domain, their bandwidths, and those of its ports; `platform` is a name or a file.

    Raise `UsageError` for a platform without peer links.
    """
    spec = load_platform(platform)[0]
    ranks = _one_domain(spec)
    values = evaluate(_scenario(platform, ranks).program).values
    return LibrarySheet(
        float(values[f"{_PHASE}.domain_rank_count"]),
        float(values["peer_link.long.effective_bandwidth"]),
        float(values[f"{_PHASE}.group_bandwidth"]),
        spec.node.domain_topology,
        spec.node.switch_reduction,
    )


def other_placement(platform: str, ranks_per_node: int) -> list[str]:
    """Warning about ranks that were measured on more nodes, and so in more link domains, than they have here."""
    spec = load_platform(platform)[0]
    counts = (spec.node.gpu_count, spec.node.domain_gpu_count)
    domain = min((count for count in counts if isinstance(count, float)), default=0.0)
    if ranks_per_node >= domain:
        return []
    taken = f"as if {domain:.0f} were in a link domain, as on {spec.name}"
    return [
        f"measured with {ranks_per_node} ranks on a node, but fitted {taken}: name a platform with the measured nodes"
    ]


def _one_domain(spec: PlatformSpec) -> int:
    """GPUs of a link domain, or of a node with several ones."""
    counts = [spec.node.gpu_count, spec.node.domain_gpu_count or spec.node.gpu_count]
    numbers = [int(count) for count in counts if isinstance(count, float)]
    if len(numbers) != len(counts) or spec.node.peer_link is None:
        remedy = (
            "name a platform with GPUs and `[node.peer_link]` by --platform, or write times as they are with --tables"
        )
        raise UsageError(f"{spec.name} does not describe GPUs that are linked: {remedy}")
    return max(numbers)


def _scenario(platform: str, ranks: int) -> Scenario:
    phase = {"kind": "collective", "model": "nccl", "algorithm": "best", "message_size": "1 B"}
    application = {
        "name": _PHASE,
        "rank_count": ranks,
        "iteration_count": 1,
        "buffers": "device",
        "phases": {_PHASE: phase},
    }
    return Scenario.of({"application": application}, platform=platform)
