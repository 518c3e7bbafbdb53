"""Ranks that share a GPU in time slices: launches that follow one another, and switches between the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from whatif.core.context import Context
from whatif.core.parameter_paths import GPU
from whatif.core.term import PhaseTerm, Reference
from whatif.models.gpu_sharing import of_all_ranks, switching_time
from whatif.schema.application import HaloPhase, TransferPhase
from whatif.schema.collective_phase import CollectivePhase
from whatif.schema.kernel_phase import GemmPhase, KernelPhase, MeasuredKernelPhase

SWITCHES: Final = "gpu_switches"
"""Phase of the time in which GPUs switch between ranks."""


def launch_time_of_ranks(context: Context, phase: str, launch_time: str) -> str:
    """Time that a launch takes from the ranks of a GPU: one for all at once, in time slices one for each."""
    if not context.in_time_slices:
        return launch_time
    inputs: dict[str, Reference] = {"quantity": launch_time, "rank_count": context.ranks_on_gpu}
    return context.wiring.add(f"{phase}.launch_time", of_all_ranks, inputs)


def with_switches(context: Context, phases: Sequence[PhaseTerm]) -> list[PhaseTerm]:
    """Phases, and that of the switches of GPUs in time slices."""
    stated = context.scenario.application.phases
    shared = KernelPhase | MeasuredKernelPhase | GemmPhase
    kernels = [phase.term for phase in phases if isinstance(stated.get(phase.phase), shared)]
    if not context.in_time_slices or not kernels:
        return list(phases)
    inputs: dict[str, Reference] = {
        "kernel_time": context.wiring.sum(f"{SWITCHES}.kernel_time", kernels),
        "ranks_per_gpu": context.ranks_on_gpu,
        "switch_time": f"{GPU}.switch_time",
        "time_slice": f"{GPU}.time_slice",
    }
    inputs |= {count: count for count in _waits(context)}
    return [*phases, PhaseTerm(SWITCHES, context.wiring.add(SWITCHES, switching_time, inputs), "overhead")]


def _waits(context: Context) -> Iterator[str]:
    """Parameters and terms that count how often a rank waits in an iteration: for messages and blocking copies."""
    for name, phase in context.scenario.application.phases.items():
        path = f"application.phases.{name}"
        if isinstance(phase, HaloPhase):
            yield f"{path}.exchange_count"
        elif isinstance(phase, CollectivePhase):
            yield f"{path}.operation_count"
        elif isinstance(phase, TransferPhase) and phase.blocking:
            yield f"{path}.transfer_count" if phase.halo is None else f"{name}.copy_count"
