"""Arithmetic of a reduction: the memory traffic of combining what a rank receives with what it has."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from whatif.core.context import Context
from whatif.core.parameter_paths import GPU
from whatif.core.phases.collective_wiring import CollectiveWiring
from whatif.core.socket_share import bandwidth_of_reduction, missing_bandwidth
from whatif.core.term import Reference
from whatif.models.collectives import rounds_time
from whatif.models.reductions import operation_time, reduction_time
from whatif.models.sockets import device_bandwidth
from whatif.schema.collective_phase import CollectivePhase
from whatif.vocabulary import MESSAGE_ALGORITHMS

Combined = Callable[[], tuple[str, str]]
"""Wires the counts of combinations, and the sizes of the rounds."""
_REDUCTIONS: Final = ("allreduce", "reduce_scatter", "reduce")
_OTHERS: Final = frozenset({"binomial_tree"})
"""Algorithms of a reduction that without `operation` are those of another operation."""


def reduces(phase: CollectivePhase) -> bool:
    """Whether a phase is a reduction by messages."""
    if phase.model == "nccl" or phase.algorithm == "measured":
        return False
    if phase.operation is not None or phase.algorithm == "best":
        return (phase.operation or "allreduce") in _REDUCTIONS
    return phase.algorithm not in _OTHERS and any(phase.algorithm in MESSAGE_ALGORITHMS[one] for one in _REDUCTIONS)


def missing_of_arithmetic(context: Context, parameters: Container[str]) -> str:
    """Parameter of the platform without which arithmetic is left out; empty if it is known."""
    return missing_bandwidth(parameters) if context.buffers == "host" else ""


def reducing_bandwidth(collective: CollectiveWiring) -> str | None:
    """Memory bandwidth at which a rank combines: of its core, or of its GPU for device memory; None without."""
    context, parameters = collective.context, collective.context.wiring.parameters
    phase = collective.phase
    if not reduces(phase) or phase.arithmetic == "none" or missing_of_arithmetic(context, parameters):
        return None
    if context.buffers != "host":
        shared: dict[str, Reference] = {
            "dram_bandwidth": f"{GPU}.dram_bandwidth",
            "ranks_per_gpu": context.ranks_on_gpu,
        }
        return context.once("node.device_reducing_bandwidth", device_bandwidth, **shared)
    return bandwidth_of_reduction(context, collective.phase_name, collective.size)


def with_arithmetic(collective: CollectiveWiring, messages: dict[str, Reference], combined: Combined) -> str:
    """Term of the time of an operation, `messages` being the inputs of that of its rounds."""
    name, wiring = collective.name, collective.context.wiring
    bandwidth = reducing_bandwidth(collective)
    if bandwidth is None:
        return wiring.add(f"{name}.operation_time", rounds_time, messages)
    counts, sizes = combined()
    inputs: dict[str, Reference] = {
        "combining_counts": counts,
        "round_sizes": sizes,
        "reducing_bandwidth": bandwidth,
    }
    times: dict[str, Reference] = {
        "rounds_time": wiring.add(f"{name}.rounds_time", rounds_time, messages),
        "reduction_time": wiring.add(f"{name}.reduction_time", reduction_time, inputs),
    }
    return wiring.add(f"{name}.operation_time", operation_time, times)
